/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Next hops of backends as user space knows them: through netlink, written into the mapped memory, where the data plane
 * takes over. And the interfaces that packets leave through.
 */
#ifndef RINGLB_NEXTHOP_H
#define RINGLB_NEXTHOP_H

#include "datapath.h"
#include "neighbour.h"
#include "state.h"

/* Where packets to a backend go now. */
struct nexthop {
	struct address address; /* of the backend */
	char *name;             /* of one backend with this address, for messages */
	struct route route;
	int error; /* of the route, -errno; then of the neighbour: 0 resolved, -EAGAIN, -EHOSTUNREACH */
	bool has_route;
	uint8_t mac[6];
	uint8_t slot; /* of the output */
};

struct nexthops {
	struct nexthop *hop; /* sorted by address, each once */
	size_t count;
};

/*
 * Looks up the route and neighbour of every backend of s, asks the kernel to keep those neighbours fresh, and waits up
 * to wait_ms for those that are being resolved. 0 or -errno; a backend without route is no error here but in hop[].error.
 */
int nexthops_resolve(struct netlink *nl, const struct state *s, int wait_ms, struct nexthops *out);
/* Gives each output interface a slot of the redirect map. 0, or -errno with a message. */
int nexthops_outputs(struct netlink *nl, struct datapath *dp, struct nexthops *hops, struct diag *d);
/* Writes the next hop of every backend of s. */
void nexthops_write(struct datapath *dp, const struct state *s, const struct nexthops *hops);
/* Ends the kernel's care for the neighbours of backends of old that none of the hops in keep[] goes through. */
void nexthops_release(struct netlink *nl, const struct state *old, const struct nexthops *keep, size_t keeps);
/* Every address of a backend of s is one of a backend of by. */
bool nexthops_covered(const struct state *s, const struct state *by);
const struct nexthop *nexthops_find(const struct nexthops *hops, const struct address *address);
void nexthops_free(struct nexthops *hops);

#endif
