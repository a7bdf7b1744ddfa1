// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ring: examples worked by hand, edges, limits, and properties of random pools. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../include/ringlb_abi.h"
#include "random_pool.h"
#include "ring.h"
#include "sort.h"

#define CIRCLE (1ull << 32)

static void assert_arcs_sound(const struct arcs *arcs)
{
	assert_true(arcs->count > 0);
	for (size_t i = 0; i < arcs->count; i++) {
		if (i) {
			assert_true(arcs->arc[i - 1].last < arcs->arc[i].last);
			assert_int_not_equal(arcs->arc[i - 1].owner, arcs->arc[i].owner);
		}
		assert_int_equal(arcs->arc[i].previous, arcs->arc[i].owner);
		assert_int_equal(arcs->arc[i].stamp, 0);
		assert_false(arcs->arc[i].moved);
	}
	assert_int_equal(arcs->arc[arcs->count - 1].last, UINT32_MAX);
}

static uint16_t owner_of(const struct arcs *arcs, uint32_t position)
{
	return arcs->arc[arcs_find(arcs, position)].owner;
}

/* Values of an XXH64 written apart, after the specification; `printf %s 'web-1#0' | xxhsum -H1` prints the first. */
static void test_point(void **state)
{
	(void)state;
	assert_int_equal(ring_point("web-1", 0), 0x476d31ac);
	assert_int_equal(ring_point("web-1", 9), 0xe66af46d);
	assert_int_equal(ring_point("web-1", 10), 0x6305032d);
	assert_int_equal(ring_point("web-1", 399), 0xfaedeadf);
	assert_int_equal(ring_point("10.0.0.11:80", 1048575), 0x24871c1a);
	assert_int_equal(ring_point("", 0), 0x575e8e69);
	assert_int_equal(ring_point("a-backend-with-a-name-longer-than-one-stripe-of-32-bytes", UINT32_MAX),
			 0x626b9759);
}

/* Every point of a member lies where ring_point says: the numbers in the text are counted on in place. */
static void test_points_counted(void **state)
{
	const struct ring_member member[] = { { "counted", 11112 }, { "other", 11112 } };
	struct arcs arcs;

	(void)state;
	assert_int_equal(ring_build(member, 2, &arcs), 0);
	assert_arcs_sound(&arcs);
	for (uint16_t m = 0; m < 2; m++)
		for (uint32_t i = 0; i < member[m].points; i++)
			assert_int_equal(owner_of(&arcs, ring_point(member[m].identity, i)), m);
	arcs_free(&arcs);
}

static void test_sort(void **state)
{
	enum { N = 3000 };
	static uint64_t element[N], scratch[N];

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		uint64_t *sorted;

		/* Few distinct positions, so that stability shows; the lower half is the order of input. */
		for (uint64_t i = 0; i < N; i++)
			element[i] = (round ? (random_u64() >> 55) * 0x00800401 : random_u64() >> 32) << 32 | (N - i);
		sorted = sort_by_upper32(element, scratch, N);
		for (size_t i = 1; i < N; i++) {
			assert_true(sorted[i - 1] >> 32 <= sorted[i] >> 32);
			if (sorted[i - 1] >> 32 == sorted[i] >> 32)
				assert_true((uint32_t)sorted[i - 1] > (uint32_t)sorted[i]);
		}
	}
}

#define POINT(position, owner) ((uint64_t)(position) << 32 | (owner))
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* expected: last position and owner of each arc, as POINT. */
static void assert_arcs(const uint64_t *point, size_t points, const uint64_t *expected, size_t count)
{
	struct arcs arcs;

	assert_int_equal(arcs_from_points(point, points, &arcs), 0);
	assert_int_equal(arcs.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(POINT(arcs.arc[i].last, arcs.arc[i].owner), expected[i]);
	assert_arcs_sound(&arcs);
	arcs_free(&arcs);
}

#define ASSERT_ARCS(points, ...)                                                                                       \
	assert_arcs(points, COUNT(points), (const uint64_t[]){ __VA_ARGS__ },                                          \
		    COUNT(((const uint64_t[]){ __VA_ARGS__ })))

static void test_edges(void **state)
{
	const uint64_t one[] = { POINT(1000, 7) };
	const uint64_t two[] = { POINT(1000, 7), POINT(2000, 8) };
	const uint64_t wrap_joins[] = { POINT(1000, 7), POINT(2000, 8), POINT(3000, 7) };
	const uint64_t neighbours[] = { POINT(1, 7), POINT(2, 7), POINT(3, 8), POINT(4, 8), POINT(5, 8), POINT(6, 9) };
	const uint64_t first[] = { POINT(0, 7), POINT(5, 8) };
	const uint64_t last[] = { POINT(5, 7), POINT(UINT32_MAX, 8) };
	const uint64_t only_last[] = { POINT(UINT32_MAX, 3) };
	const uint64_t ends[] = { POINT(0, 1), POINT(UINT32_MAX, 2) };
	const uint64_t all_equal[] = { POINT(99, 4), POINT(99, 2), POINT(99, 3) };
	const uint64_t tie[] = { POINT(5, 1), POINT(9, 3), POINT(9, 2), POINT(12, 1) };

	(void)state;
	ASSERT_ARCS(one, POINT(UINT32_MAX, 7));
	ASSERT_ARCS(two, POINT(1000, 7), POINT(2000, 8), POINT(UINT32_MAX, 7));
	ASSERT_ARCS(wrap_joins, POINT(1000, 7), POINT(2000, 8), POINT(UINT32_MAX, 7));
	ASSERT_ARCS(neighbours, POINT(2, 7), POINT(5, 8), POINT(6, 9), POINT(UINT32_MAX, 7));
	ASSERT_ARCS(first, POINT(0, 7), POINT(5, 8), POINT(UINT32_MAX, 7));
	/* A point on the last position leaves nothing to wrap. */
	ASSERT_ARCS(last, POINT(5, 7), POINT(UINT32_MAX, 8));
	ASSERT_ARCS(only_last, POINT(UINT32_MAX, 3));
	ASSERT_ARCS(ends, POINT(0, 1), POINT(UINT32_MAX, 2));
	ASSERT_ARCS(all_equal, POINT(UINT32_MAX, 4));
	/* The loser of a tie owns nothing. */
	ASSERT_ARCS(tie, POINT(5, 1), POINT(9, 3), POINT(UINT32_MAX, 1));
}

static void test_lengths(void **state)
{
	struct arc arc[] = { { .last = 0, .owner = 1 },
			     { .last = 10, .owner = 0 },
			     { .last = UINT32_MAX, .owner = 1 } };
	const struct arcs arcs = { arc, 3 };
	struct arc whole = { .last = UINT32_MAX };
	uint64_t share[3] = { 5, 5, 5 };

	(void)state;
	assert_int_equal(arcs_length(&arcs, 0), 1);
	assert_int_equal(arcs_length(&arcs, 1), 10);
	assert_int_equal(arcs_length(&arcs, 2), CIRCLE - 11);
	arcs_shares(&arcs, share, 3);
	assert_int_equal(share[0], 10);
	assert_int_equal(share[1], CIRCLE - 10);
	assert_int_equal(share[2], 0);
	assert_int_equal(arcs_length(&(struct arcs){ &whole, 1 }, 0), CIRCLE);
	assert_int_equal(arcs_find(&arcs, 0), 0);
	assert_int_equal(arcs_find(&arcs, 1), 1);
	assert_int_equal(arcs_find(&arcs, 10), 1);
	assert_int_equal(arcs_find(&arcs, 11), 2);
	assert_int_equal(arcs_find(&arcs, UINT32_MAX), 2);
}

/* The points number 0 of these two lie at one position, found by search: whoever comes first in byte order owns it. */
static void test_tie(void **state)
{
	const struct ring_member member[] = { { "t74256", 1 }, { "t112055", 1 }, { "web", 3 } };
	const struct ring_member turned[] = { { "web", 3 }, { "t112055", 1 }, { "t74256", 1 } };
	const uint32_t position = ring_point("t74256", 0);
	struct arcs arcs;

	(void)state;
	assert_int_equal(ring_point("t112055", 0), position);
	assert_int_equal(ring_build(member, 3, &arcs), 0);
	assert_int_equal(owner_of(&arcs, position), 1);
	arcs_free(&arcs);
	assert_int_equal(ring_build(turned, 3, &arcs), 0);
	assert_int_equal(owner_of(&arcs, position), 1);
	arcs_free(&arcs);
	/* Alone at the position, the other has it. */
	assert_int_equal(ring_build((const struct ring_member[]){ { "t74256", 1 }, { "web", 3 } }, 2, &arcs), 0);
	assert_int_equal(owner_of(&arcs, position), 0);
	arcs_free(&arcs);
}

static void test_nobody(void **state)
{
	const struct ring_member idle[] = { { "a", 0 }, { "b", 0 } };
	const struct ring_member some[] = { { "b", 0 }, { "b", 1 }, { "b", 0 } };
	struct arcs arcs = { (struct arc *)-1, 9 };

	(void)state;
	assert_int_equal(ring_build(NULL, 0, &arcs), 0);
	assert_int_equal(arcs.count, 0);
	arcs_free(&arcs);
	assert_int_equal(ring_build(idle, 2, &arcs), 0);
	assert_int_equal(arcs.count, 0);
	arcs_free(&arcs);
	assert_int_equal(ring_build(some, 3, &arcs), 0);
	assert_int_equal(arcs.count, 1);
	assert_int_equal(arcs.arc[0].owner, 1);
	arcs_free(&arcs);
	assert_null(arcs.arc);
	arcs_free(&arcs);
}

static void test_limits(void **state)
{
	const uint32_t half = RINGLB_MAX_POINTS / 2;
	struct random_pool pool;
	struct arcs arcs;

	(void)state;
	assert_int_equal(ring_build((const struct ring_member[]){ { "a", half }, { "b", half } }, 2, &arcs), 0);
	assert_arcs_sound(&arcs);
	arcs_free(&arcs);
	assert_int_equal(ring_build((const struct ring_member[]){ { "a", half }, { "b", half + 1 } }, 2, &arcs),
			 -E2BIG);
	assert_int_equal(arcs.count, 0);
	/* A sum that does not fit 32 bits. */
	assert_int_equal(ring_build((const struct ring_member[]){ { "a", 1u << 31 }, { "b", 1u << 31 } }, 2, &arcs),
			 -E2BIG);
	assert_int_equal(ring_build((const struct ring_member[]){ { "a", 1 }, { "b", 1 }, { "a", 2 } }, 3, &arcs),
			 -EINVAL);
	assert_int_equal(arcs.count, 0);
	random_pool_make(&pool, RINGLB_NO_BACKEND, 1);
	assert_int_equal(ring_build(pool.member, RINGLB_NO_BACKEND, &arcs), -EINVAL);
	assert_int_equal(ring_build(pool.member, RINGLB_NO_BACKEND - 1, &arcs), 0);
	assert_arcs_sound(&arcs);
	arcs_free(&arcs);
	random_pool_free(&pool);
}

static bool comes_first(const char *a, const char *b)
{
	return strcmp(a, b) < 0;
}

/* The owner by the rule as it is written down: the nearest point clockwise of all. */
static uint16_t owner_by_rule(const struct random_pool *pool, uint32_t *const *point, uint32_t position)
{
	uint32_t best = 0;
	size_t owner = pool->members;

	for (size_t m = 0; m < pool->members; m++) {
		for (uint32_t i = 0; i < pool->member[m].points; i++) {
			uint32_t distance = point[m][i] - position;

			if (owner == pool->members || distance < best ||
			    (distance == best && comes_first(pool->member[m].identity, pool->member[owner].identity))) {
				best = distance;
				owner = m;
			}
		}
	}
	return (uint16_t)owner;
}

static void test_rule(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 30; round++) {
		struct random_pool pool;
		uint32_t *point[12];
		struct arcs arcs;

		random_pool_make(&pool, 1 + random_below(12), 1 + random_below(20));
		assert_int_equal(ring_build(pool.member, pool.members, &arcs), 0);
		assert_arcs_sound(&arcs);
		for (size_t m = 0; m < pool.members; m++) {
			point[m] = calloc(pool.member[m].points, sizeof(**point));
			assert_non_null(point[m]);
			for (uint32_t i = 0; i < pool.member[m].points; i++)
				point[m][i] = ring_point(pool.member[m].identity, i);
		}
		for (size_t m = 0; m < pool.members; m++)
			for (uint32_t i = 0; i < pool.member[m].points; i++)
				for (uint32_t d = 0; d < 3; d++) {
					uint32_t position = point[m][i] + d - 1;

					assert_int_equal(owner_of(&arcs, position),
							 owner_by_rule(&pool, point, position));
				}
		for (unsigned int i = 0; i < 200; i++) {
			uint32_t position = i < 2 ? i - 1 : (uint32_t)random_u64();

			assert_int_equal(owner_of(&arcs, position), owner_by_rule(&pool, point, position));
		}
		for (size_t m = 0; m < pool.members; m++)
			free(point[m]);
		arcs_free(&arcs);
		random_pool_free(&pool);
	}
}

static void test_shares_sum(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 20; round++) {
		struct random_pool pool;
		uint64_t share[100], sum = 0;
		struct arcs arcs;

		random_pool_make(&pool, 1 + random_below(100), 1 + random_below(200));
		assert_int_equal(ring_build(pool.member, pool.members, &arcs), 0);
		arcs_shares(&arcs, share, pool.members);
		for (size_t m = 0; m < pool.members; m++)
			sum += share[m];
		assert_true(sum == CIRCLE);
		arcs_free(&arcs);
		random_pool_free(&pool);
	}
}

/*
 * Whatever differs between the two rings goes to `to` and comes from `from`, where these are not `anyone`; returns how
 * much differs. The owners of both are the same members.
 */
static uint64_t assert_moves(const struct arcs *before, const struct arcs *after, int from, int to)
{
	uint64_t moved = 0, start = 0;

	for (size_t b = 0, a = 0; b < before->count && a < after->count;) {
		const struct arc *x = &before->arc[b], *y = &after->arc[a];
		uint32_t last = x->last < y->last ? x->last : y->last;

		if (x->owner != y->owner) {
			moved += last + 1ull - start;
			assert_true(from < 0 || x->owner == from);
			assert_true(to < 0 || y->owner == to);
		}
		start = last + 1ull;
		b += x->last == last;
		a += y->last == last;
	}
	assert_true(start == CIRCLE);
	return moved;
}

/* A change of one member's points moves arcs only to it or only from it: as many as its share changes, no more. */
static void test_minimal_movement(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 40; round++) {
		struct random_pool pool;
		uint64_t share_before[60], share_after[60];
		struct arcs before, after;
		size_t changed;
		uint32_t points;

		random_pool_make(&pool, 2 + random_below(58), 1 + random_below(100));
		changed = random_below((uint32_t)pool.members);
		/* Added, weighted up, weighted down, removed. */
		points = pool.member[changed].points;
		if (round % 2)
			pool.member[changed].points = 0;
		assert_int_equal(ring_build(pool.member, pool.members, &before), 0);
		pool.member[changed].points = points + random_below(100);
		assert_int_equal(ring_build(pool.member, pool.members, &after), 0);
		arcs_shares(&before, share_before, pool.members);
		arcs_shares(&after, share_after, pool.members);
		assert_true(assert_moves(&before, &after, -1, (int)changed) ==
			    share_after[changed] - share_before[changed]);
		assert_true(assert_moves(&after, &before, (int)changed, -1) ==
			    share_after[changed] - share_before[changed]);
		arcs_free(&before);
		arcs_free(&after);
		random_pool_free(&pool);
	}
}

static int start(void **state)
{
	(void)state;
	random_start();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_point),      cmocka_unit_test(test_points_counted),   cmocka_unit_test(test_sort),
		cmocka_unit_test(test_edges),      cmocka_unit_test(test_lengths),          cmocka_unit_test(test_tie),
		cmocka_unit_test(test_nobody),     cmocka_unit_test(test_limits),           cmocka_unit_test(test_rule),
		cmocka_unit_test(test_shares_sum), cmocka_unit_test(test_minimal_movement),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
