// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rendezvous hashing (Thaler and Ravishankar, 1998) with weights (Schindelhauer and Schomaker, 2005), by slots: the
 * hash space is 65,536 equal slots, and each goes to the backend with the highest weight / -ln(h), where h, between 0
 * and 1, is XXH64 of the identity with the slot's number as seed. A change of one backend touches only the slots that
 * it wins or loses.
 *
 * The same to the last bit everywhere: no libm. -ln(h) is taken as 64 - log2(XXH64), which differs by a factor common
 * to all, in fixed point with 40 bits behind the point. log2 of a number is the place of its highest bit, and of the
 * rest the logarithm of 1 + i/4096 rounded down to 40 bits, i its next 12 bits, and straight lines in between (rounded
 * down; off by less than 2^-24). A hash of 0 counts as 1. Fractions are compared by cross-multiplication; equal ones go
 * to the identity that comes first in byte order.
 */
#include "placement_rendezvous.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "placement_private.h"

#define SLOT_BITS 16u
#define SLOTS (1u << SLOT_BITS)
#define STEP_BITS 12u
#define STEPS (1u << STEP_BITS)
#define FRACTION_BITS 40u
#define MAX_HASHES (1ull << 31) /* about ten seconds */

/* log2 of 1 + i / STEPS, rounded down to FRACTION_BITS, a bit at a time: squaring doubles the logarithm. */
static uint64_t log2_of_step(uint32_t i)
{
	/* The mantissa, 1 to 2, with 62 bits behind the point; each squaring loses less than one unit of them. */
	uint64_t x = (uint64_t)(STEPS + i) << (62 - STEP_BITS), log = 0;

	for (unsigned int bit = 0; bit < FRACTION_BITS; bit++) {
		unsigned __int128 square = (unsigned __int128)x * x >> 62;

		log <<= 1;
		if (square >> 63) {
			log |= 1;
			square >>= 1;
		}
		x = (uint64_t)square;
	}
	return log;
}

struct rendezvous_logs {
	uint64_t log[STEPS + 1];
};

struct rendezvous_logs *rendezvous_logs_new(void)
{
	struct rendezvous_logs *l = malloc(sizeof(*l));

	for (uint32_t i = 0; l && i < STEPS; i++)
		l->log[i] = log2_of_step(i);
	if (l)
		l->log[STEPS] = 1ull << FRACTION_BITS;
	return l;
}

uint64_t rendezvous_distance(const struct rendezvous_logs *l, uint64_t hash)
{
	unsigned int high, rest_bits = 63 - STEP_BITS;
	uint64_t step, rest, log;

	hash |= !hash;
	high = 63 - (unsigned int)__builtin_clzll(hash);
	hash <<= 63 - high; /* the highest bit on top */
	step = hash >> rest_bits & (STEPS - 1);
	rest = hash & ((1ull << rest_bits) - 1);
	log = l->log[step] + (uint64_t)((unsigned __int128)(l->log[step + 1] - l->log[step]) * rest >> rest_bits);
	return ((uint64_t)(64 - high) << FRACTION_BITS) - log;
}

bool rendezvous_beats(uint64_t distance, uint32_t weight, uint64_t other_distance, uint32_t other_weight)
{
	/* 47 bits by 16. */
	return distance * other_weight < other_distance * weight;
}

static uint16_t winner(const struct placement_input *in, const struct rendezvous_logs *logs, const size_t *length,
		       uint32_t slot)
{
	uint64_t best = 0;
	uint32_t best_weight = 0;
	uint16_t owner = 0;

	for (size_t i = 0; i < in->takers; i++) {
		const struct placement_member *m = placement_member_at(in, in->sorted[i]);
		uint64_t distance = rendezvous_distance(logs, XXH64(m->identity, length[i], slot));

		if (best_weight && !rendezvous_beats(distance, m->weight, best, best_weight))
			continue;
		best = distance;
		best_weight = m->weight;
		owner = in->sorted[i];
	}
	return owner;
}

static int check(const struct placement_input *in, char **why)
{
	if (in->takers * SLOTS <= MAX_HASHES)
		return 0;
	*why = xasprintf("%zu backends: rendezvous hashes each of them with each of %u slots, and takes %llu at most",
			 in->takers, SLOTS, MAX_HASHES / SLOTS);
	return -EINVAL;
}

/* Only what the one that has left had changes hands. */
static bool is_kept(const struct placement_input *in, uint32_t slot, uint16_t *owner)
{
	if (!in->before)
		return false;
	*owner = in->before->arc[arcs_find(in->before, slot << (32 - SLOT_BITS))].owner;
	return *owner != in->gone;
}

static int build(const struct placement_input *in, struct arcs *out, uint32_t *points)
{
	struct rendezvous_logs *logs;
	size_t *length;
	uint64_t *point;
	int err = -ENOMEM;

	logs = rendezvous_logs_new();
	length = calloc(in->takers, sizeof(*length));
	point = malloc(SLOTS * sizeof(*point));
	if (logs && length && point) {
		for (size_t i = 0; i < in->takers; i++)
			length[i] = strlen(placement_member_at(in, in->sorted[i])->identity);
		for (uint32_t slot = 0; slot < SLOTS; slot++) {
			uint16_t owner;

			if (!is_kept(in, slot, &owner))
				owner = winner(in, logs, length, slot);
			point[slot] = (((slot + 1ull) << (32 - SLOT_BITS)) - 1) << 32 | owner;
			if (points)
				points[owner]++;
		}
		err = arcs_from_points(point, SLOTS, out);
	}
	free(point);
	free(length);
	free(logs);
	return err;
}

const struct placement placement_rendezvous = {
	.name = "rendezvous",
	.summary = "the highest of each backend's hashes",
	.use = PLACEMENT_FLOWS,
	.check = check,
	.build = build,
	.key = placement_key_xxh64,
};
