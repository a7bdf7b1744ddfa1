// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shares and moves: worked by hand, and on random pools against sums that are taken another way. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "random_pool.h"
#include "shares.h"

#define QUARTER (1u << 30)

static struct arc arc(uint32_t last, uint16_t owner)
{
	return (struct arc){ .last = last, .owner = owner, .previous = owner };
}

static void test_by_hand(void **state)
{
	struct arc a[] = { arc(QUARTER - 1, 0), arc(2 * QUARTER - 1, 1), arc(UINT32_MAX, 0) };
	const uint32_t weight[] = { 1, 1, 2, 0 };
	struct arcs arcs = { a, 3 };
	struct share share[4];
	struct balance b = shares_measure(&arcs, weight, 4, share);

	(void)state;
	assert_int_equal(share[0].length, 3ull * QUARTER);
	assert_true(share[0].share == 0.75 && share[0].expected == 0.25 && share[0].ratio == 3);
	assert_true(share[1].share == 0.25 && share[1].ratio == 1);
	assert_true(share[2].share == 0 && share[2].expected == 0.5 && share[2].ratio == 0);
	assert_true(share[3].expected == 0 && share[3].ratio == 0);
	assert_true(b.max == 3 && b.min == 0);
	b = shares_measure(&(struct arcs){ 0 }, weight + 3, 1, share);
	assert_true(b.max == 0 && b.min == 0);
	/* An owner behind the last one is nobody. */
	b = shares_measure(&arcs, weight, 1, share);
	assert_true(share[0].share == 0.75 && b.max == 0.75 && b.min == 0.75);
}

/* 0 gives a half to 1, while 1 gives a quarter to 2: three quarters move where a half would do. */
static void test_moves(void **state)
{
	struct arc a[] = { arc(2 * QUARTER - 1, 0), arc(3 * QUARTER - 1, 1), arc(UINT32_MAX, 2) };
	struct arc b[] = { arc(2 * QUARTER - 1, 1), arc(UINT32_MAX, 2) };
	struct arcs before = { a, 3 }, after = { b, 2 };
	struct share_change c;

	(void)state;
	shares_change(&before, &after, 3, &c);
	assert_int_equal(c.moves, 2);
	assert_true(c.move[0].from == 0 && c.move[0].to == 1 && c.move[0].length == 2ull * QUARTER);
	assert_true(c.move[1].from == 1 && c.move[1].to == 2 && c.move[1].length == QUARTER);
	assert_int_equal(c.moved, 3ull * QUARTER);
	assert_int_equal(c.minimum_twice, 4ull * QUARTER);
	assert_true(share_change_excess(&c) == 0.25);
	share_change_free(&c);
	shares_change(&before, &before, 3, &c);
	assert_int_equal(c.moves, 0);
	assert_true(share_change_excess(&c) == 0);
	share_change_free(&c);
	shares_change(&before, &(struct arcs){ 0 }, 3, &c);
	assert_int_equal(c.moves, 0);
	share_change_free(&c);
}

static int64_t gain(const struct share_change *c, uint16_t owner)
{
	int64_t sum = 0;

	for (size_t i = 0; i < c->moves; i++)
		sum += (c->move[i].to == owner ? (int64_t)c->move[i].length : 0) -
		       (c->move[i].from == owner ? (int64_t)c->move[i].length : 0);
	return sum;
}

/* Lengths add up to the whole; moves to what the shares differ by; a change back is the same, the other way round. */
static void test_random(void **state)
{
	(void)state;
	for (int round = 0; round < 30; round++) {
		size_t members = 2 + random_below(60);
		struct share *was = calloc(members, sizeof(*was)), *is = calloc(members, sizeof(*is));
		uint32_t *weight = calloc(members, sizeof(*weight));
		struct share_change c, back;
		struct arcs before, after;
		struct random_pool p;
		uint64_t sum = 0, distance = 0;

		random_pool_make(&p, members, 100);
		assert_int_equal(ring_build(p.member, members, &before), 0);
		for (size_t i = 0; i < members; i++)
			if (!random_below(3))
				p.member[i].points = 1 + random_below(200);
		assert_int_equal(ring_build(p.member, members, &after), 0);
		shares_measure(&before, weight, members, was);
		shares_measure(&after, weight, members, is);
		shares_change(&before, &after, members, &c);
		shares_change(&after, &before, members, &back);
		for (size_t i = 0; i < members; i++) {
			int64_t gained = (int64_t)is[i].length - (int64_t)was[i].length;

			assert_int_equal(gain(&c, (uint16_t)i), gained);
			assert_int_equal(gain(&back, (uint16_t)i), -gained);
			sum += is[i].length;
			distance += (uint64_t)llabs(gained);
		}
		assert_int_equal(sum, 1ull << 32);
		assert_int_equal(distance, c.minimum_twice);
		assert_int_equal(c.moved, back.moved);
		assert_true(2 * c.moved >= c.minimum_twice);
		for (size_t i = 1; i < c.moves; i++)
			assert_true(c.move[i - 1].length >= c.move[i].length);
		share_change_free(&c);
		share_change_free(&back);
		arcs_free(&before);
		arcs_free(&after);
		random_pool_free(&p);
		free(was);
		free(is);
		free(weight);
	}
}

/* For plain rings the shares' error is what theory says: four standard deviations, sqrt((N - 1) / (N * V + 1)). */
static void test_error(void **state)
{
	static const uint32_t size[][2] = { { 3, 400 }, { 10, 160 }, { 100, 160 }, { 100, 1000 }, { 1000, 40 } };

	(void)state;
	for (size_t k = 0; k < sizeof(size) / sizeof(*size); k++) {
		uint32_t n = size[k][0], v = size[k][1], *weight = calloc(n, sizeof(*weight));
		struct share *share = calloc(n, sizeof(*share));
		struct random_pool p;
		struct arcs arcs;
		double sum = 0, deviation = sqrt((n - 1.0) / ((double)n * v + 1)), measured;

		random_pool_make(&p, n, 1);
		for (uint32_t i = 0; i < n; i++) {
			p.member[i].points = v;
			weight[i] = 1;
		}
		assert_int_equal(ring_build(p.member, n, &arcs), 0);
		shares_measure(&arcs, weight, n, share);
		for (uint32_t i = 0; i < n; i++)
			sum += (share[i].ratio - 1) * (share[i].ratio - 1);
		/* The sample's own deviation, whose error is about 1 / sqrt(2 n) of it. */
		measured = sqrt(sum / (n - 1));
		printf("%u x %u: deviation %.4f, in theory %.4f\n", n, v, measured, deviation);
		assert_true(measured < deviation * (1 + 4 / sqrt(2.0 * (n - 1))));
		if (n >= 100)
			assert_true(measured > deviation * (1 - 4 / sqrt(2.0 * (n - 1))));
		arcs_free(&arcs);
		random_pool_free(&p);
		free(share);
		free(weight);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_error),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
