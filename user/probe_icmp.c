/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Echo requests. All targets share one socket a family, those by way of the service have one each. An answer is known
 * by what it carries, the target's key and a random number: identifiers are 16 bits, and the kernel rewrites them on
 * datagram sockets.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/icmp.h> /* behind netinet/in.h, which it would replace in part */

#include "probe_private.h"

/* On the wire; the two families differ in the types and the checksum. */
struct echo {
	uint8_t type, code;
	uint16_t checksum, id, sequence;
	uint64_t key, cookie;
};

_Static_assert(sizeof(struct echo) == 24, "no padding on the wire");

struct probe_echo {
	struct probe_watch watch; /* first */
	struct probe_engine *e;
	int fd;
};

static uint16_t checksum(const void *bytes, size_t length)
{
	const uint16_t *word = bytes;
	uint32_t sum = 0;

	for (size_t i = 0; i < length / 2; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static bool is_raw(int fd)
{
	socklen_t length = sizeof(int);
	int type = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_RAW;
}

/* A raw socket is handed every ICMP packet of the host: nothing but answers is wanted. */
static void only_answers(int fd, bool four)
{
	struct icmp_filter filter = { .data = ~(1u << ICMP_ECHOREPLY) };
	struct icmp6_filter filter6;

	if (four) {
		setsockopt(fd, SOL_RAW, ICMP_FILTER, &filter, sizeof(filter));
		return;
	}
	ICMP6_FILTER_SETBLOCKALL(&filter6);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter6);
	setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter6, sizeof(filter6));
}

/* The source as ancillary data: the socket is not this target's alone. */
static void set_source(struct msghdr *m, const struct address *source)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	struct in_pktinfo four = { 0 };
	struct in6_pktinfo six = { 0 };

	if (address_is_ipv4(source)) {
		memcpy(&four.ipi_spec_dst, source->byte + 12, 4);
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(four)), IPPROTO_IP, IP_PKTINFO };
		memcpy(CMSG_DATA(c), &four, sizeof(four));
		m->msg_controllen = CMSG_SPACE(sizeof(four));
	} else {
		memcpy(&six.ipi6_addr, source->byte, 16);
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(six)), IPPROTO_IPV6, IPV6_PKTINFO };
		memcpy(CMSG_DATA(c), &six, sizeof(six));
		m->msg_controllen = CMSG_SPACE(sizeof(six));
	}
}

static int send_echo(struct probe *p, int fd)
{
	bool four = address_is_ipv4(&p->address);
	const struct address *source = probe_source(p);
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = { 0 };
	struct sockaddr_storage to;
	struct echo echo = {
		.type = four ? ICMP_ECHO : ICMP6_ECHO_REQUEST,
		.id = (uint16_t)p->cookie,
		.sequence = (uint16_t)(p->cookie >> 16),
		.key = p->key,
		.cookie = p->cookie,
	};
	struct iovec part = { &echo, sizeof(echo) };
	struct msghdr m = { .msg_name = &to, .msg_iov = &part, .msg_iovlen = 1 };

	m.msg_namelen = probe_sockaddr(&p->address, 0, &to);
	if (four)
		echo.checksum = checksum(&echo, sizeof(echo)); /* the kernel makes that of ICMPv6 */
	if (source) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		set_source(&m, source);
	}
	return sendmsg(fd, &m, 0) < 0 ? -errno : 0;
}

static struct address address_from(const struct sockaddr_storage *from)
{
	struct address a = { .byte = { [10] = 0xff, [11] = 0xff } };

	if (from->ss_family == AF_INET)
		memcpy(a.byte + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
	else
		memcpy(a.byte, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
	return a;
}

/* One packet; false when there is none. The probe that it answers in *answered, or NULL. */
static bool receive(struct probe_engine *e, int fd, struct probe **answered)
{
	uint8_t bytes[256], *start = bytes;
	struct sockaddr_storage from = { 0 };
	socklen_t from_length = sizeof(from);
	struct address address;
	struct echo echo;
	struct probe *p;
	ssize_t got;

	*answered = NULL;
	got = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &from_length);
	if (got < 0)
		return errno == EINTR;
	if (from.ss_family == AF_INET && is_raw(fd)) {
		ssize_t header = (bytes[0] & 0xf) * 4;

		start += header;
		got -= header;
	}
	if (got < (ssize_t)sizeof(echo))
		return true;
	memcpy(&echo, start, sizeof(echo));
	if (echo.type != (from.ss_family == AF_INET ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY))
		return true;
	p = probe_find(e, echo.key);
	address = address_from(&from);
	if (p && p->kind == &probe_kind_echo && p->phase == PROBE_RUNNING && p->cookie == echo.cookie &&
	    address_equal(&p->address, &address))
		*answered = p;
	return true;
}

static void echo_ready(struct probe_watch *w, uint32_t events)
{
	struct probe_echo *s = (struct probe_echo *)w;
	struct probe *p;

	(void)events;
	for (unsigned int i = 0; i < 64 && receive(s->e, s->fd, &p); i++) {
		if (p)
			probe_end(p, PROBE_GOOD, "echo reply");
	}
}

static void ready(struct probe *p, uint32_t events)
{
	struct probe *answered;

	(void)events;
	for (unsigned int i = 0; i < 64 && receive(p->e, p->fd, &answered); i++) {
		if (answered == p) {
			probe_end(p, PROBE_GOOD, "echo reply");
			return;
		}
	}
}

static void start(struct probe *p)
{
	bool four = address_is_ipv4(&p->address);
	const struct probe_echo *shared = four ? p->e->echo4 : p->e->echo6;
	int fd = p->fd, err;

	if (fd >= 0) {
		if (is_raw(fd))
			only_answers(fd, four);
		probe_watch_fd(p->e, fd, &p->watch, EPOLLIN);
	} else if (shared) {
		fd = shared->fd;
	} else {
		probe_end(p, PROBE_UNKNOWN, "this host can't check it: no socket for echo requests");
		return;
	}
	p->cookie = probe_random(p->e);
	err = send_echo(p, fd);
	if (err)
		probe_end_errno(p, -err);
}

static const char *where(struct probe *p)
{
	(void)p;
	return "waiting for the echo";
}

static int open_one(struct probe_engine *e, int fd, bool four, struct probe_echo **out)
{
	struct probe_echo *s;

	if (fd < 0)
		fd = socket(four ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, four ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	if (fd < 0)
		return 0; /* those who want it are told */
	s = xcalloc(1, sizeof(*s));
	*s = (struct probe_echo){ { echo_ready }, e, fd };
	*out = s;
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	if (is_raw(fd))
		only_answers(fd, four);
	return probe_watch_fd(e, fd, &s->watch, EPOLLIN);
}

int probe_echo_open(struct probe_engine *e)
{
	int err = open_one(e, e->options.icmp4, true, &e->echo4);

	return err ? err : open_one(e, e->options.icmp6, false, &e->echo6);
}

void probe_echo_close(struct probe_engine *e)
{
	if (e->echo4)
		close(e->echo4->fd);
	if (e->echo6)
		close(e->echo6->fd);
	free(e->echo4);
	free(e->echo6);
}

const struct probe_kind probe_kind_echo = {
	.type = SOCK_RAW,
	.protocol = IPPROTO_ICMP,
	.protocol6 = IPPROTO_ICMPV6,
	.start = start,
	.ready = ready,
	.where = where,
};
