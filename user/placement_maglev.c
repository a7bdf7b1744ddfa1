// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Maglev (Eisenbud and others, "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016, section 3.4).
 * Of a table of M slots, M prime, a backend prefers them in the order (offset + j * skip) mod M, with
 * offset = XXH64(identity, seed 0) mod M and skip = XXH64(identity, seed 1) mod (M - 1) + 1. The backends, in byte
 * order of their identities, take the first free slot of their list in turns until all are taken. Weights change how
 * often a backend has its turn: in round r = 1, 2, ... if floor(r * w / w_max) > floor((r - 1) * w / w_max). A slot s is
 * the positions p with floor(p * M / 2^32) = s.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "placement_private.h"

#define FREE UINT16_MAX
#define LARGEST_SIZE 1048573u /* the largest prime below RINGLB_MAX_POINTS */

struct preference {
	uint32_t next, skip;
	uint32_t weight, phase; /* phase: round * weight modulo the largest weight */
	uint16_t owner;
};

static bool is_prime(uint32_t n)
{
	for (uint32_t i = 2; (uint64_t)i * i <= n; i++)
		if (n % i == 0)
			return false;
	return n > 1;
}

static int check(const struct placement_input *in, char **why)
{
	uint32_t size = in->pool->maglev_size, below = size, above = size;

	while (below > 2 && !is_prime(below))
		below--;
	while (!is_prime(above) && above < RINGLB_MAX_POINTS)
		above++;
	if (size > RINGLB_MAX_POINTS || above >= RINGLB_MAX_POINTS)
		*why = xasprintf("a maglev_size of %u: the largest prime that a table can hold is %u", size,
				 LARGEST_SIZE);
	else if (above != below)
		*why = xasprintf("a maglev_size of %u: it has to be a prime, such as %u or %u", size, below, above);
	else if (in->takers > size)
		*why = xasprintf("%zu backends don't fit %u slots: raise maglev_size", in->takers, size);
	return *why ? -EINVAL : 0;
}

static struct preference *preferences(const struct placement_input *in, uint32_t *heaviest)
{
	struct preference *p = calloc(in->takers, sizeof(*p));
	uint32_t size = in->pool->maglev_size;

	*heaviest = 0;
	for (size_t i = 0; p && i < in->takers; i++) {
		const struct placement_member *m = placement_member_at(in, in->sorted[i]);
		size_t length = strlen(m->identity);

		p[i] = (struct preference){
			.next = (uint32_t)(XXH64(m->identity, length, 0) % size),
			.skip = size > 2 ? (uint32_t)(XXH64(m->identity, length, 1) % (size - 1) + 1) : 1,
			.weight = m->weight,
			.owner = in->sorted[i],
		};
		if (m->weight > *heaviest)
			*heaviest = m->weight;
	}
	return p;
}

/* Takes the backend's first free slot. */
static void turn(struct preference *p, uint16_t *slot, uint32_t size)
{
	uint32_t at;

	do {
		at = p->next;
		p->next = (uint32_t)(((uint64_t)at + p->skip) % size);
	} while (slot[at] != FREE);
	slot[at] = p->owner;
}

static void fill(struct preference *p, size_t takers, uint32_t heaviest, uint16_t *slot, uint32_t size,
		 uint32_t *points)
{
	uint32_t filled = 0;

	memset(slot, 0xff, size * sizeof(*slot));
	while (filled < size) {
		for (size_t i = 0; i < takers && filled < size; i++) {
			p[i].phase += p[i].weight;
			if (p[i].phase < heaviest)
				continue;
			p[i].phase -= heaviest;
			turn(&p[i], slot, size);
			filled++;
			if (points)
				points[p[i].owner]++;
		}
	}
}

static int build(const struct placement_input *in, struct arcs *out, uint32_t *points)
{
	uint32_t size = in->pool->maglev_size, heaviest;
	struct preference *p;
	uint64_t *point;
	uint16_t *slot;
	int err;

	p = preferences(in, &heaviest);
	slot = malloc(size * sizeof(*slot));
	point = malloc(size * sizeof(*point));
	err = p && slot && point ? 0 : -ENOMEM;
	if (!err) {
		fill(p, in->takers, heaviest, slot, size, points);
		for (uint32_t s = 0; s < size; s++) {
			uint64_t last = (((uint64_t)(s + 1) << 32) - 1) / size;

			point[s] = last << 32 | slot[s];
		}
		err = arcs_from_points(point, size, out);
	}
	free(point);
	free(slot);
	free(p);
	return err;
}

const struct placement placement_maglev = {
	.name = "maglev",
	.summary = "Google's Maglev",
	.use = PLACEMENT_FLOWS,
	.check = check,
	.build = build,
	.key = placement_key_xxh64,
};
