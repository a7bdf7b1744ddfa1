/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A connection is made, and reset: so that checks leave no port behind in TIME_WAIT. */
#include <errno.h>
#include <netinet/in.h>

#include "probe_private.h"

static void start(struct probe *p)
{
	const struct linger reset = { .l_onoff = 1 };
	struct sockaddr_storage address;
	socklen_t length = probe_sockaddr(&p->address, p->check->is->port, &address);

	setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (connect(p->fd, (struct sockaddr *)&address, length) && errno != EINPROGRESS)
		probe_end_errno(p, errno);
	else
		probe_watch_fd(p->e, p->fd, &p->watch, EPOLLOUT);
}

static void ready(struct probe *p, uint32_t events)
{
	socklen_t length = sizeof(int);
	int error = 0;

	(void)events;
	getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	if (error)
		probe_end_errno(p, error);
	else
		probe_end(p, PROBE_GOOD, "connected");
}

static const char *where(struct probe *p)
{
	(void)p;
	return "while connecting";
}

const struct probe_kind probe_kind_tcp = {
	.type = SOCK_STREAM,
	.protocol = IPPROTO_TCP,
	.protocol6 = IPPROTO_TCP,
	.start = start,
	.ready = ready,
	.where = where,
};
