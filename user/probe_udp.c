/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One datagram, and the answer to it: any protocol's, or DNS's. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "config_expect.h"
#include "probe_private.h"

static void start_with(struct probe *p, const uint8_t *bytes, size_t length)
{
	struct sockaddr_storage address;
	socklen_t address_length = probe_sockaddr(&p->address, p->check->is->port, &address);

	if (connect(p->fd, (struct sockaddr *)&address, address_length) || send(p->fd, bytes, length, 0) < 0)
		probe_end_errno(p, errno);
	else
		probe_watch_fd(p->e, p->fd, &p->watch, EPOLLIN);
}

/* One datagram; its length, or -1 when there is none now or the probe has ended. */
static ssize_t receive(struct probe *p, uint8_t *bytes, size_t room)
{
	ssize_t got = recv(p->fd, bytes, room, MSG_TRUNC);

	if (got < 0 && errno != EAGAIN && errno != EINTR)
		probe_end_errno(p, errno);
	return got > (ssize_t)room ? (ssize_t)room : got;
}

static const char *where(struct probe *p)
{
	(void)p;
	return "waiting for the answer";
}

static void udp_start(struct probe *p)
{
	uint8_t bytes[EXPECT_MAX_BYTES];
	size_t length = expect_bytes(p->check->is->send, bytes);

	start_with(p, bytes, length);
}

static void udp_ready(struct probe *p, uint32_t events)
{
	const char *expect = p->check->is->expect;
	uint8_t wanted[EXPECT_MAX_BYTES], got[65536];
	size_t length = expect ? expect_bytes(expect, wanted) : 0;
	ssize_t size;

	(void)events;
	size = receive(p, got, sizeof(got));
	if (size < 0)
		return;
	if (memmem(got, (size_t)size, wanted, length))
		probe_end(p, PROBE_GOOD, "answer of %zd bytes", size);
	else
		probe_end(p, PROBE_BAD, "answer of %zd bytes without \"%.60s\"", size, expect);
}

const struct probe_kind probe_kind_udp = {
	.type = SOCK_DGRAM,
	.protocol = IPPROTO_UDP,
	.protocol6 = IPPROTO_UDP,
	.start = udp_start,
	.ready = udp_ready,
	.where = where,
};

static size_t query_of(const struct probe *p, uint8_t query[512])
{
	return dns_query(query, (uint16_t)p->cookie, p->check->is->query, p->check->is->query_type);
}

static void dns_start(struct probe *p)
{
	uint8_t query[512];

	p->cookie = probe_random(p->e);
	start_with(p, query, query_of(p, query));
}

static void dns_ready(struct probe *p, uint32_t events)
{
	uint8_t query[512], got[4096];
	char reason[PROBE_REASON];
	size_t length = query_of(p, query);
	ssize_t size;
	bool good;

	(void)events;
	/* What does not belong to the query may come from anyone who guesses the port. */
	while ((size = receive(p, got, sizeof(got))) >= 0) {
		if (!dns_answer(query, length, got, (size_t)size, p->check->is->expect, &good, reason))
			continue;
		probe_end(p, good ? PROBE_GOOD : PROBE_BAD, "%s", reason);
		return;
	}
}

const struct probe_kind probe_kind_dns = {
	.type = SOCK_DGRAM,
	.protocol = IPPROTO_UDP,
	.protocol6 = IPPROTO_UDP,
	.start = dns_start,
	.ready = dns_ready,
	.where = where,
};
