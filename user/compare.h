/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a placement would make of a pool: how even it is, and what changes of the pool move. Pure. */
#ifndef RINGLB_COMPARE_H
#define RINGLB_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "placement.h"
#include "shares.h"

#define COMPARE_REMOVALS 100u /* backends that are taken away in turn, at most; of more, as many evenly spread ones */

/* Fractions of the hash space. */
struct compare_cost {
	bool known; /* false: the placement can't express the changed pool */
	double moved;
	double excess; /* of it, beyond what any placement with these shares must move */
};

struct comparison {
	struct balance balance;
	uint64_t points;      /* or slots, or turns */
	uint32_t table_bytes; /* in the kernel; 0: larger than a table may be */
	/* One more backend, of mean weight, behind the last; one backend less; the first one's weight half as much again. */
	struct compare_cost add, remove, remove_worst, weight;
	size_t removals;
};

/*
 * arcs: of the pool, as p makes them; points: of each member, as p counts them. A weight that is odd can't grow by half:
 * then every weight is doubled first, which for all that counts them relatively changes nothing.
 * 0 or -ENOMEM.
 */
int compare_placement(const struct placement *p, const struct placement_pool *pool, const struct arcs *arcs,
		      const uint32_t *points, struct comparison *out);

#endif
