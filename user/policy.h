/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policy routing: what carries a mark leaves by a device of its own. */
#ifndef RINGLB_POLICY_H
#define RINGLB_POLICY_H

#include <stdint.h>

#include "neighbour.h"

/* Number of the routing table of a device; the numbers of all of them have the same upper half. */
#define POLICY_TABLE(ifindex) (0x72620000u | ((ifindex)&0xffffu))
#define POLICY_TABLES 0x72620000u
#define POLICY_TABLES_MASK 0xffff0000u

/*
 * Takes the device up, and sends by it what has the mark, in both families (IPv4 alone where the host has no IPv6).
 * mtu: for what packets' headers leave room. 0 or -errno.
 */
int policy_add(struct netlink *nl, unsigned int ifindex, uint32_t mark, uint32_t mask, uint32_t mtu);
/* Ends it; routes go with their device. */
void policy_remove(struct netlink *nl, unsigned int ifindex, uint32_t mark, uint32_t mask);
/* Removes rules whose device is gone: those of a process that was killed. */
void policy_clean(struct netlink *nl);

#endif
