// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Redis Cluster: 16,384 slots, in the contiguous ranges that `redis-cli --cluster create` gives to masters in the order
 * of the list: each ends at the rounded end of its share, in single precision, and has at least one slot. Weights,
 * which redis-cli knows only when it rebalances, make the shares differ. The slot of a key is its CRC-16/XMODEM modulo
 * 16,384, of the part between the first { and the next } where that is not empty. A slot is 2^18 positions.
 */
#include <math.h>

#include "placement_private.h"

#define SLOTS 16384u
#define SLOT_SHIFT 18u

static uint16_t crc16(const uint8_t *byte, size_t length)
{
	uint16_t crc = 0;

	for (size_t i = 0; i < length; i++) {
		crc ^= (uint16_t)(byte[i] << 8);
		for (unsigned int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
	}
	return crc;
}

/* The walk along the list. */
struct cursor {
	float end;  /* of the share before, in slots */
	long first; /* slot that is free */
};

/* The last slot of the i-th in the list; SLOTS or more: none is left. */
static long next_last(const struct placement_input *in, struct cursor *c, size_t i)
{
	const struct placement_member *m = placement_member_at(in, in->listed[i]);
	/* Rounded to single precision at each step, and never fused. */
	volatile float share = (float)(SLOTS * (uint64_t)m->weight) / (float)in->weights;
	volatile float end = c->end + share, rounded = end - 1;
	long last = lroundf(rounded);

	if (last > (long)SLOTS - 1 || i == in->takers - 1)
		last = SLOTS - 1;
	if (last < c->first)
		last = c->first;
	c->end = end;
	c->first = last + 1;
	return last;
}

static int check(const struct placement_input *in, char **why)
{
	struct cursor c = { 0 };

	for (size_t i = 0; i < in->takers; i++) {
		if (next_last(in, &c, i) < (long)SLOTS)
			continue;
		*why = xasprintf("no slot is left for backend \"%s\": there are %u, and each needs one",
				 placement_member_at(in, in->listed[i])->identity, SLOTS);
		return -EINVAL;
	}
	return 0;
}

static int build(const struct placement_input *in, struct arcs *out, uint32_t *points)
{
	uint64_t *point = calloc(in->takers, sizeof(*point));
	struct cursor c = { 0 };
	int err;

	if (!point)
		return -ENOMEM;
	for (size_t i = 0; i < in->takers; i++) {
		long first = c.first, last = next_last(in, &c, i);

		point[i] = (((uint64_t)last + 1) << SLOT_SHIFT) - 1;
		point[i] = point[i] << 32 | in->listed[i];
		if (points)
			points[in->listed[i]] = (uint32_t)(last - first + 1);
	}
	err = arcs_from_points(point, in->takers, out);
	free(point);
	return err;
}

static int key(const void *bytes, size_t length, struct placement_key *out, char **why)
{
	const char *open = memchr(bytes, '{', length), *close = NULL;

	(void)why;
	if (open)
		close = memchr(open + 1, '}', length - (size_t)(open + 1 - (const char *)bytes));
	if (close && close > open + 1) {
		bytes = open + 1;
		length = (size_t)(close - open - 1);
	}
	out->hash = crc16(bytes, length);
	out->bits = 16;
	out->slot = (int)(out->hash % SLOTS);
	out->position = (uint32_t)out->slot << SLOT_SHIFT;
	return 0;
}

const struct placement placement_slots = {
	.name = "slots",
	.summary = "as Redis Cluster",
	.use = PLACEMENT_KEYS,
	.check = check,
	.build = build,
	.key = key,
};
