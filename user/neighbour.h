/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Routes, neighbours and interfaces, through netlink (libmnl). Acts in the caller's network namespace. */
#ifndef RINGLB_NEIGHBOUR_H
#define RINGLB_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

struct link_info {
	unsigned int ifindex;
	char name[16];
	uint32_t mtu;
	uint8_t mac[6];
	bool up;
	bool loopback;
	unsigned int below;     /* of a VLAN's interface: the one whose frames it tags, else 0 */
	uint16_t vlan_protocol; /* its tag, host order */
	uint16_t vlan_id;
};

struct route {
	unsigned int ifindex;   /* output interface */
	struct address gateway; /* or the destination itself, on link */
	struct address source;  /* preferred source, all zero where the kernel names none */
	bool local;             /* the destination is this host */
	uint32_t mtu;           /* of the route, else of the interface */
};

struct netlink; /* a socket for requests */

int netlink_open(struct netlink **out);
void netlink_close(struct netlink *nl);
/* 0; -ENODEV when there is no such interface. */
int link_by_name(struct netlink *nl, const char *name, struct link_info *out);
int link_by_index(struct netlink *nl, unsigned int ifindex, struct link_info *out);
/* The route to destination, as for a packet of this host. 0; -ENETUNREACH and the kernel's other errors. */
int route_get(struct netlink *nl, const struct address *destination, struct route *out);
/*
 * Makes the kernel keep the neighbour fresh by itself (NTF_EXT_MANAGED; on a kernel without it, NTF_USE once), without
 * overwriting a permanent entry. 0 or -errno.
 */
int neighbour_manage(struct netlink *nl, unsigned int ifindex, const struct address *address);
/* Ends that. -ENOENT when there was none. Permanent entries stay. */
int neighbour_unmanage(struct netlink *nl, unsigned int ifindex, const struct address *address);
/* The link-layer address now: 0; -ENOENT unknown; -EAGAIN being resolved; -EHOSTUNREACH failed. */
int neighbour_get(struct netlink *nl, unsigned int ifindex, const struct address *address, uint8_t mac[6]);
/*
 * True when address is this host's own, or will be answered for by ARP or neighbour discovery of this host; and the
 * subnet question: does an interface have a connected subnet that contains address? *ifindex names it.
 */
bool address_is_local(struct netlink *nl, const struct address *address);
bool address_in_subnet(struct netlink *nl, const struct address *address, unsigned int *ifindex);

#endif
