/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One netlink request and its answers: what route.c and neighbour.c share. */
#ifndef RINGLB_NETLINK_PRIVATE_H
#define RINGLB_NETLINK_PRIVATE_H

#include <stddef.h>

#include <libmnl/libmnl.h>

#include "neighbour.h"

#define NETLINK_REQUEST_BYTES 512

/* A request under construction: aligned room for a small message. */
struct netlink_request {
	union {
		struct nlmsghdr header;
		char room[NETLINK_REQUEST_BYTES];
	};
};

/* Starts a message, header zeroed; returns its family header of `length` bytes, zeroed. */
void *netlink_request(struct netlink_request *r, uint16_t type, uint16_t flags, size_t length);
typedef void (*netlink_answer_fn)(const struct nlmsghdr *h, void *data);
/*
 * Sends it and gives each answer to each (which may be NULL) until the kernel says that it is done. A dump that was
 * interrupted by a change is asked for again: each then sees messages twice. 0 or -errno.
 */
int netlink_talk(struct netlink *nl, struct netlink_request *r, netlink_answer_fn each, void *data);

/* AF_INET or AF_INET6, and the address's bytes and their count in that family. */
int netlink_family(const struct address *a);
const void *netlink_bytes(const struct address *a, size_t *length);
/* The attribute as an address of the family; false when its length does not fit. */
bool netlink_address(const struct nlattr *attribute, int family, struct address *out);

#endif
