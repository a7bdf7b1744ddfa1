/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who has how much of a pool's hash space, and what a change moves: from the arcs' lengths, never sampled. Pure. */
#ifndef RINGLB_SHARES_H
#define RINGLB_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include "ring.h"

#define SHARES_ALL 4294967296.0 /* positions */

struct share {
	uint64_t length; /* positions, of 2^32 */
	double share;    /* fraction of the hash space */
	double expected; /* weight over the sum of weights */
	double ratio;    /* share over expected; 0 without a weight */
};

/*
 * The largest and smallest ratio among those with a weight: with equal weights the largest and smallest share over the
 * mean. 0 without any.
 */
struct balance {
	double max, min;
};

/* An owner with weight 0 is not expected to have anything. Owners that are `owners` or more are left out. */
struct balance shares_measure(const struct arcs *arcs, const uint32_t *weight, size_t owners, struct share *out);

struct share_move {
	uint16_t from, to;
	uint64_t length; /* positions */
};

/* What changes its owner. Of the hash space `moved` positions do, and at least minimum_twice / 2 in any placement. */
struct share_change {
	struct share_move *move; /* largest first */
	size_t moves;
	uint64_t moved;
	uint64_t minimum_twice; /* L1 distance of the shares: their sum is the same, so it is even */
};

/*
 * From before to after, whose owners are numbered alike and below `owners`. Where one of them has no arcs at all nothing
 * moves. Freed with share_change_free.
 */
void shares_change(const struct arcs *before, const struct arcs *after, size_t owners, struct share_change *out);
/* The same without the list of moves. */
void shares_change_sums(const struct arcs *before, const struct arcs *after, size_t owners, struct share_change *out);
/* What moves beyond the minimum, as a fraction of the hash space. */
double share_change_excess(const struct share_change *c);
void share_change_free(struct share_change *c);

#endif
