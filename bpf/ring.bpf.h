/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Step 4: the owner of a position. The table is described at struct ringlb_service.
 *
 * A bucket holds about four points and a sentinel that no key passes, so its first eight entries nearly always have the
 * answer: they are compared without a branch, since whether a point is smaller is a coin toss that a processor guesses
 * wrong every second time. What the eight reach into behind the bucket's end does not count: it comes after an entry
 * that is not smaller.
 */
#ifndef RINGLB_RING_BPF_H
#define RINGLB_RING_BPF_H

#include "service.bpf.h"

#define RANK_POINTS 8
#define SEARCH_ROUNDS 23 /* a bucket has less than 2^23 points: 4 * RINGLB_MAX_POINTS in the whole table */

/* Index of the first point of [low, high) at points_off that is not below key; high is the sentinel's, which never is. */
static __always_inline __u32 search_bucket(const void *t, __u32 points_off, __u32 key, __u32 low, __u32 high)
{
	for (int i = 0; i < SEARCH_ROUNDS && low < high; i++) {
		__u32 middle = low + (high - low) / 2;
		const __u32 *point = table_at(t, points_off + (__u64)middle * sizeof(*point));

		if (!point)
			break;
		if (*point < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The same as a global function: the verifier looks at it once, and not for every way that leads to it. */
__noinline int search_long_bucket(__u32 points_off, __u32 key, __u32 low, __u32 high)
{
	const struct ringlb_tables *t = tables_again();

	return t ? search_bucket(t, points_off, key, low, high) : low;
}

/*
 * Finds the point that has the position: *at is its index, *point the point. `apart`, a constant, says whether long
 * buckets are searched in the global function.
 */
static __always_inline bool ring_search(const void *t, const struct ringlb_service *s, __u32 position, __u32 *at,
					__u32 *point, bool apart)
{
	__u32 key = position << s->bits;
	const __u32 *index = table_at(t, s->index_off + ((__u64)position >> (32 - s->bits)) * sizeof(*index));
	const __u32 *points;
	__u64 smaller = 1, rank = 0;

	if (!index)
		return false;
	points = table_at(t, s->points_off + (__u64)index[0] * sizeof(*points));
	if (!points)
		return false;
#pragma unroll
	for (int i = 0; i < RANK_POINTS; i++) {
		smaller &= is_below(points[i], key);
		rank += smaller;
	}
	if (likely(rank < RANK_POINTS)) {
		*at = index[0] + rank;
		*point = points[rank];
		return true;
	}
	*at = apart ? (__u32)search_long_bucket(s->points_off, key, index[0] + RANK_POINTS, index[1] - 1) :
		      search_bucket(t, s->points_off, key, index[0] + RANK_POINTS, index[1] - 1);
	points = table_at(t, s->points_off + (__u64)*at * sizeof(*points));
	if (!points)
		return false;
	*point = *points;
	return true;
}

#define TABLE_FAULT 0x10000u /* not an index: the table contradicts itself */

/* The backend with a table's own number: an index, RINGLB_NO_BACKEND for nobody, or TABLE_FAULT. */
static __always_inline __u32 table_backend(const void *t, const struct ringlb_service *s, __u32 number)
{
	const __u16 *owner = table_at(t, s->owners_off + (__u64)number * sizeof(*owner));

	return owner ? *owner : TABLE_FAULT;
}

/* Fills in owner and moved; *at is the arc's place in the table. `apart`: see ring_search. */
static __always_inline void find_owner(struct choice *c, __u32 *at, bool apart)
{
	__u32 bits = c->service->bits, point;

	if (!ring_search(c->tables, c->service, c->position, at, &point, apart)) {
		c->owner = TABLE_FAULT;
		return;
	}
	c->moved = point >> (bits - 1) & 1;
	c->owner = table_backend(c->tables, c->service, point & ((1u << (bits - 1)) - 1));
}

#endif
