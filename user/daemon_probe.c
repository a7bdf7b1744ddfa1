// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sockets for checks through the data plane. Their mark sends what they send to a device of this process, where the
 * program `probe` takes it (probe.bpf.c); the device, its routes and the program go when the process does. Answers come
 * straight from the backend, as clients' do: to an address of this host, past the balancer's program, which leaves them
 * alone as they are for no service.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_tun.h>

#include "daemon_private.h"
#include "policy.h"

#define MASK (RINGLB_PROBE_FIXED | RINGLB_PROBE_DEVICE_MASK)
/* Any way to a backend has room for this much and the outer headers: IPv6 needs it, and probes are small. */
#define MTU 1280u

struct probe_path {
	int tun;
	unsigned int ifindex;
	ino_t inode; /* of the pins whose maps the program uses */
	struct datapath_probe *program;
	char *failure; /* said already */
};

static uint32_t mark_of(const struct probe_path *p)
{
	return RINGLB_PROBE_MARK | RINGLB_PROBE_DEVICE(p->ifindex);
}

static int make_device(struct probe_path *p)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };

	strcpy(request.ifr_name, "ringlb%d");
	p->tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (p->tun < 0 || ioctl(p->tun, TUNSETIFF, &request))
		return -errno;
	p->ifindex = if_nametoindex(request.ifr_name);
	return p->ifindex ? 0 : -errno;
}

static void close_path(struct daemon *d, struct probe_path *p)
{
	datapath_probe_free(p->program);
	if (p->ifindex)
		policy_remove(d->nl, p->ifindex, mark_of(p), MASK);
	if (p->tun >= 0)
		close(p->tun);
	p->program = NULL;
	p->ifindex = 0;
	p->tun = -1;
}

static int open_path(struct daemon *d, struct probe_path *p)
{
	struct diag diag = { 0 };
	const char *text;
	int err;

	policy_clean(d->nl);
	p->inode = d->inode;
	err = make_device(p);
	if (err)
		diag_error(&diag, "tun", "", "can't make a device (/dev/net/tun): %s", strerror(-err));
	if (!err)
		err = datapath_probe_attach(d->running.dp, p->ifindex, &p->program, &diag);
	if (!err) {
		err = policy_add(d->nl, p->ifindex, mark_of(p), MASK, MTU);
		if (err)
			diag_error(&diag, "rule", "", "can't route by mark: %s", strerror(-err));
	}
	if (err) {
		text = diag.count ? diag.entry[0].message : strerror(-err);
		if (!p->failure || strcmp(p->failure, text))
			log_line(LOG_LEVEL_ERROR, "checks with \"via: service\" can't be made: %s", text);
		free(p->failure);
		p->failure = xstrdup(text);
		close_path(d, p);
	}
	diag_free(&diag);
	return err;
}

/* Ready for use, for the maps that run. */
static int ready(struct daemon *d)
{
	struct probe_path *p = d->path;

	if (!p) {
		p = d->path = xcalloc(1, sizeof(*p));
		p->tun = -1;
	}
	if (p->program && p->inode == d->inode)
		return 0;
	close_path(d, p);
	return open_path(d, p);
}

void probe_path_close(struct daemon *d)
{
	if (!d->path)
		return;
	close_path(d, d->path);
	free(d->path->failure);
	free(d->path);
	d->path = NULL;
}

static socklen_t sockaddr_of(const struct address *a, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (address_is_ipv4(a)) {
		out->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)out)->sin_addr, a->byte + 12, 4);
		return sizeof(struct sockaddr_in);
	}
	out->ss_family = AF_INET6;
	memcpy(&((struct sockaddr_in6 *)out)->sin6_addr, a->byte, 16);
	return sizeof(struct sockaddr_in6);
}

/*
 * The address that this host has towards the backend is what the answers come to; where the check names one, that is set
 * later and wins. Of another family than the service's it is no good: the kernel then takes one of its own.
 */
static void bind_source(struct daemon *d, int fd, int domain, const struct state_backend *b,
			const struct config_check *check)
{
	static const struct address none;
	struct sockaddr_storage source;
	struct route route;
	int one = 1;

	if (domain == AF_INET ? check->has_source4 : check->has_source6)
		return;
	if (route_get(d->nl, &b->address, &route) || address_equal(&route.source, &none) ||
	    (domain == AF_INET) != address_is_ipv4(&route.source))
		return;
	setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&source, sockaddr_of(&route.source, &source)))
		return; /* then the kernel chooses */
}

static bool is_local(const struct daemon *d, const struct state_backend *b)
{
	const struct nexthop *h = nexthops_find(&d->hops, &b->address);

	return h && h->has_route && h->route.local;
}

int probe_path_socket(struct daemon *d, const struct state_backend *b, size_t service, const struct wire_packet *want)
{
	const struct config_service *v = &d->running.state->config->service[service];
	bool local = is_local(d, b); /* it gets its packets from the host, as they are */
	uint32_t mark;
	int fd, err = 0;

	if (want->domain != (address_is_ipv4(&v->address) ? AF_INET : AF_INET6) ||
	    (want->type != SOCK_STREAM && want->type != SOCK_DGRAM))
		return -EPROTONOSUPPORT;
	if (!local)
		err = ready(d);
	if (!err && !local)
		err = datapath_probe_way(d->path->program, b->index, v->forward, v->gue_port);
	if (err)
		return err;
	fd = socket(want->domain, want->type | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    want->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP);
	if (fd < 0)
		return -errno;
	mark = local ? 0 : mark_of(d->path) | b->index;
	if (mark && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark))) {
		err = -errno;
		close(fd);
		return err;
	}
	bind_source(d, fd, want->domain, b, d->running.state->config->pool[v->pool].check);
	return fd;
}
