/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replicas of a position: the next distinct owners clockwise from it. Pure. */
#ifndef RINGLB_REPLICAS_H
#define RINGLB_REPLICAS_H

#include <stddef.h>
#include <stdint.h>

#include "ring.h"

/* What many positions of one ring have in common. */
struct replicas {
	const struct arcs *arcs; /* borrowed, as is zone */
	const char *const *zone; /* of each owner, NULL where it has none; NULL: zones don't count */
	size_t owners;           /* there are, in arcs or not: all are below */
	size_t distinct;         /* that have an arc */
	uint32_t *seen;          /* by owner: the look-up that met it last */
	uint16_t *walked;        /* owners in the order in which they are met */
	uint32_t look_up;
	uint16_t nobody; /* an owner that is none, or UINT16_MAX */
};

/* 0 or -ENOMEM. zone NULL: the next owners; else each from another zone while zones last, then the rest. */
int replicas_init(struct replicas *r, const struct arcs *arcs, size_t owners, const char *const *zone, uint16_t nobody);
/*
 * Up to `wanted` owners for the position into `out`, which has room for them; fewer where there are no more. The first
 * is the position's owner. Owners without a zone count as one zone. Returns how many.
 */
size_t replicas_find(struct replicas *r, uint32_t position, size_t wanted, uint16_t *out);
void replicas_free(struct replicas *r);

#endif
