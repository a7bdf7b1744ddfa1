/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets of probes: made, bound, and what their errors mean. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "probe_private.h"

socklen_t probe_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *four = (struct sockaddr_in *)out;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (address_is_ipv4(a)) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		memcpy(&four->sin_addr, a->byte + 12, 4);
		return sizeof(*four);
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	memcpy(&six->sin6_addr, a->byte, 16);
	return sizeof(*six);
}

const struct address *probe_source(const struct probe *p)
{
	const struct config_check *c = p->check->is;

	if (address_is_ipv4(&p->address))
		return c->has_source4 ? &c->source4 : NULL;
	return c->has_source6 ? &c->source6 : NULL;
}

int probe_socket_prepare(const struct probe *p, int fd)
{
	const struct address *source = probe_source(p);
	struct sockaddr_storage address;
	int flags = fcntl(fd, F_GETFL), on = 1;
	socklen_t length;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		return -errno;
	if (!source || p->kind == &probe_kind_echo)
		return 0;
	/* The port is chosen when it connects, so that many targets can share one. */
	setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	length = probe_sockaddr(source, 0, &address);
	return bind(fd, (struct sockaddr *)&address, length) ? -errno : 0;
}

int probe_socket_make(const struct probe *p)
{
	bool four = address_is_ipv4(&p->address);
	int fd, err;

	fd = socket(four ? AF_INET : AF_INET6, p->kind->type | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    four ? p->kind->protocol : p->kind->protocol6);
	if (fd < 0)
		return -errno;
	err = probe_socket_prepare(p, fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

void probe_end_errno(struct probe *p, int error)
{
	static const struct {
		int error;
		const char *text;
	} bad[] = {
		{ ECONNREFUSED, "connection refused" },
		{ ECONNRESET, "connection reset" },
		{ EPIPE, "connection closed" },
		{ EHOSTUNREACH, "no way to the host" },
		{ ENETUNREACH, "no route to the network" },
		{ EHOSTDOWN, "no way to the host" },
		{ ETIMEDOUT, "no answer" },
		{ EPROTO, "protocol error" },
		{ ENOPROTOOPT, "protocol not available" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (bad[i].error == error) {
			probe_end(p, PROBE_BAD, "%s", bad[i].text);
			return;
		}
	}
	/* No port, no memory, no descriptor, no such source address, forbidden by this host. */
	probe_end(p, PROBE_UNKNOWN, "this host can't check it: %s", strerror(error));
}
