// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "random_pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sort.h"

static uint64_t state;

void random_start(void)
{
	const char *seed = getenv("RINGLB_SEED");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	state = seed ? strtoull(seed, NULL, 0) :
		       (uint64_t)now.tv_sec * 1000003 ^ (uint64_t)now.tv_nsec ^ (uint64_t)getpid();
	printf("RINGLB_SEED=%" PRIu64 "\n", state);
}

/* SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
uint64_t random_u64(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint32_t random_below(uint32_t below)
{
	return (uint32_t)((random_u64() >> 32) * below >> 32);
}

void random_pool_make(struct random_pool *pool, size_t members, uint32_t max_points)
{
	uint32_t tag = (uint32_t)random_u64();

	*pool = (struct random_pool){ .members = members };
	pool->member = calloc(members, sizeof(*pool->member));
	pool->identity = calloc(members, sizeof(*pool->identity));
	if (!pool->member || !pool->identity)
		abort();
	for (size_t i = 0; i < members; i++) {
		snprintf(pool->identity[i], RANDOM_IDENTITY, "%08" PRIx32 "-%zu", tag, i);
		pool->member[i].identity = pool->identity[i];
		pool->member[i].points = 1 + random_below(max_points);
	}
	random_pool_shuffle(pool);
}

void random_pool_shuffle(struct random_pool *pool)
{
	for (size_t i = pool->members; i > 1; i--) {
		size_t j = random_below((uint32_t)i);
		struct ring_member swap = pool->member[i - 1];

		pool->member[i - 1] = pool->member[j];
		pool->member[j] = swap;
	}
}

void random_pool_free(struct random_pool *pool)
{
	free(pool->member);
	free(pool->identity);
	*pool = (struct random_pool){ 0 };
}

/* Anywhere, or the end of one of 2 to 4096 equal parts of the circle, or beside it. */
static uint32_t random_position(void)
{
	unsigned int shift = 20 + random_below(12);

	if (random_below(2))
		return (uint32_t)random_u64();
	return (random_below(1u << (32 - shift)) << shift) - 2 + random_below(3);
}

static struct arc random_arc(uint32_t last, uint32_t owners)
{
	struct arc arc = { .last = last, .owner = (uint16_t)random_below(owners) };

	arc.previous = arc.owner;
	arc.moved = random_below(2);
	if (arc.moved) {
		arc.previous = (uint16_t)random_below(owners);
		arc.stamp = (uint32_t)random_u64();
	}
	return arc;
}

void random_arcs_make(struct arcs *out, size_t count, uint32_t owners)
{
	uint64_t *position = calloc(2 * count, sizeof(*position)), *sorted;

	*out = (struct arcs){ calloc(count, sizeof(*out->arc)), 0 };
	if (!position || !out->arc)
		abort();
	for (size_t i = 0; i + 1 < count; i++)
		position[i] = (uint64_t)random_position() << 32;
	position[count - 1] = (uint64_t)UINT32_MAX << 32;
	sorted = sort_by_upper32(position, position + count, count);
	for (size_t i = 0; i < count; i++) {
		struct arc arc = random_arc((uint32_t)(sorted[i] >> 32), owners), *before;

		before = out->count ? &out->arc[out->count - 1] : NULL;
		if (before && (before->last == arc.last || (before->owner == arc.owner && before->moved == arc.moved &&
							    before->previous == arc.previous)))
			before->last = arc.last;
		else
			out->arc[out->count++] = arc;
	}
	free(position);
}
