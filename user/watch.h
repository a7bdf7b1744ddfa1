/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What changes in this network namespace, as the kernel tells it through netlink: interfaces, neighbours, routes. */
#ifndef RINGLB_WATCH_H
#define RINGLB_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

struct watch;

struct watch_neighbour {
	unsigned int ifindex;
	struct address address;
	bool usable;    /* its link-layer address is known */
	uint8_t mac[6]; /* of a usable one */
};

/* Called from watch_read, any of them NULL where nobody wants to know. */
struct watch_handler {
	void *context;
	void (*link)(void *context);
	void (*neighbour)(void *context, const struct watch_neighbour *n);
	void (*route)(void *context); /* routes, rules and addresses */
	void (*lost)(void *context);  /* events came faster than they were read: anything may have changed */
};

/* 0 or -errno. */
int watch_open(struct watch **out);
void watch_close(struct watch *w); /* NULL is fine */
int watch_fd(const struct watch *w);
/* Reads what there is, without waiting. 0, or -errno: the socket is no good any more. */
int watch_read(struct watch *w, const struct watch_handler *h);

#endif
