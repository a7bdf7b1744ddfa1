/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between placement.c and placement_*.c only. */
#ifndef RINGLB_PLACEMENT_PRIVATE_H
#define RINGLB_PLACEMENT_PRIVATE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement.h"

/* What a rule starts from: at least one member that takes part, fewer than RINGLB_NO_BACKEND, distinct identities. */
struct placement_input {
	const struct placement_pool *pool;
	const uint16_t *listed; /* indices of the members that take part, in their order */
	const uint16_t *sorted; /* the same, in byte order of their identities; not yet for check */
	size_t takers;
	uint64_t weights; /* their sum */
	/* Arcs of the same pool before member `gone` left it, or NULL: a rule may make use of them, or not. */
	const struct arcs *before;
	uint16_t gone;
};

static inline const struct placement_member *placement_member_at(const struct placement_input *in, uint16_t index)
{
	return &in->pool->member[index];
}

/* Whether a table can hold so many points: 0, or -EINVAL and *why. */
int placement_check_points(uint64_t points, char **why);
/* Sorts n points (ring.h: position << 32 | owner) with the room for as many behind them, and makes arcs of them. */
int placement_arcs(uint64_t *point, size_t n, struct arcs *out);
/* Upper 32 bits of XXH64, seed 0: the key hash of the placements that have no system's own. */
int placement_key_xxh64(const void *key, size_t length, struct placement_key *out, char **why);

extern const struct placement placement_ring, placement_maglev, placement_rendezvous, placement_nginx,
	placement_haproxy, placement_ketama, placement_slots, placement_modulo;

#endif
