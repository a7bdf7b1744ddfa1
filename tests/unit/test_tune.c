// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tuned counts: how near shares come to weights, and what is never touched. Shares are those of a ring built apart. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "../../include/ringlb_abi.h"
#include "quick.h"
#include "random_pool.h"
#include "shares.h"
#include "tune.h"

#define NAME 32

struct pool {
	size_t members;
	char (*name)[NAME];
	struct tune_member *member;
	uint32_t *points;
	struct share *share;
	struct balance balance;
};

/* weights: 1 for equal ones, 3 for 1, 2, 4, 1, 2, 4, ... */
static void pool_make(struct pool *p, const char *prefix, size_t members, uint32_t vnodes, int weights)
{
	p->members = members;
	p->name = calloc(members, sizeof(*p->name));
	p->member = calloc(members, sizeof(*p->member));
	p->points = calloc(members, sizeof(*p->points));
	p->share = calloc(members, sizeof(*p->share));
	for (size_t i = 0; i < members; i++) {
		snprintf(p->name[i], NAME, "%s%zu", prefix, i + 1);
		p->member[i] = (struct tune_member){ .identity = p->name[i], .weight = 1u << i % (size_t)weights };
		p->member[i].points = vnodes * p->member[i].weight;
	}
}

static void pool_free(struct pool *p)
{
	free(p->name);
	free(p->member);
	free(p->points);
	free(p->share);
}

/* The ring of these counts, of which the shares are taken. */
static void pool_build(struct pool *p, const uint32_t *points, struct arcs *arcs)
{
	struct ring_member *ring = calloc(p->members, sizeof(*ring));
	uint32_t *weight = calloc(p->members, sizeof(*weight));

	for (size_t i = 0; i < p->members; i++) {
		weight[i] = p->member[i].weight;
		ring[i] = (struct ring_member){ p->name[i], weight[i] ? points[i] : 0 };
	}
	assert_int_equal(ring_build(ring, p->members, arcs), 0);
	p->balance = shares_measure(arcs, weight, p->members, p->share);
	free(ring);
	free(weight);
}

static void pool_tune(struct pool *p)
{
	struct arcs arcs;

	assert_int_equal(tune(p->member, p->members, p->points), 0);
	pool_build(p, p->points, &arcs);
	arcs_free(&arcs);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What the project promises, for names of several kinds. */
static void test_balance(void **state)
{
	LEAVE_IF_QUICK();
	static const struct {
		size_t members;
		uint32_t vnodes;
		int weights;
		double max;
	} promised[] = {
		{ 100, 160, 1, 1.03 }, { 100, 400, 1, 1.012 }, { 10, 160, 1, 1.015 },
		{ 100, 160, 3, 1.03 }, { 100, 400, 3, 1.012 }, { 10, 160, 3, 1.015 },
	};
	static const char *const prefix[] = { "web-", "b", "10.0.0.", "server-with-a-long-name-" };

	(void)state;
	for (size_t i = 0; i < sizeof(promised) / sizeof(*promised); i++)
		for (size_t j = 0; j < sizeof(prefix) / sizeof(*prefix); j++) {
			struct pool p;

			pool_make(&p, prefix[j], promised[i].members, promised[i].vnodes, promised[i].weights);
			pool_tune(&p);
			printf("%zu x %u, weights %s, %s*: max/mean %.4f, min/mean %.4f\n", promised[i].members,
			       promised[i].vnodes, promised[i].weights == 1 ? "equal" : "1:2:4", prefix[j],
			       p.balance.max, p.balance.min);
			assert_true(p.balance.max <= promised[i].max);
			assert_true(p.balance.min >= 1 - 3 * (promised[i].max - 1));
			pool_free(&p);
		}
}

/* The promise is one second of a program with -O2: the sanitizers take their time, and are given it. */
static void test_time(void **state)
{
	struct pool p;
	double start, slow = 1;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	slow = 5;
#endif
	pool_make(&p, "web-", 100, 400, 1);
	start = seconds();
	pool_tune(&p);
	assert_true(seconds() - start < slow);
	pool_free(&p);
}

/* A newcomer alone: the others keep their points, so all that moves goes to it, and that is the minimum. */
static void test_newcomer(void **state)
{
	struct pool p;
	struct arcs before, after;
	struct share_change change;
	uint32_t old[30];

	(void)state;
	pool_make(&p, "web-", 30, 100, 1);
	p.member[29].weight = 0;
	pool_tune(&p);
	memcpy(old, p.points, sizeof(old));
	pool_build(&p, old, &before);
	p.member[29].weight = 3;
	for (size_t i = 0; i < 30; i++)
		p.member[i].points = i < 29 ? old[i] : 300;
	for (size_t i = 0; i < 29; i++)
		p.member[i].fixed = true;
	assert_int_equal(tune(p.member, 30, p.points), 0);
	assert_memory_equal(p.points, old, 29 * sizeof(*old));
	pool_build(&p, p.points, &after);
	assert_true(fabs(p.share[29].ratio - 1) < 0.003);
	shares_change(&before, &after, 30, &change);
	assert_int_equal(change.moved, p.share[29].length);
	assert_int_equal(change.minimum_twice, 2 * change.moved);
	for (size_t i = 0; i < change.moves; i++)
		assert_int_equal(change.move[i].to, 29);
	share_change_free(&change);
	arcs_free(&before);
	arcs_free(&after);
	pool_free(&p);
}

/* A newcomer to a pool whose counts have nothing to do with its own beginning. */
static void test_other_measure(void **state)
{
	struct pool p;

	(void)state;
	pool_make(&p, "web-", 11, 1000, 1);
	for (size_t i = 0; i < 10; i++)
		p.member[i].fixed = true;
	p.member[10].points = 20;
	pool_tune(&p);
	assert_true(fabs(p.share[10].ratio - 1) < 0.003);
	assert_true(p.points[10] > 800 && p.points[10] < 1200);
	pool_free(&p);
}

/* Counts for the pool, by the number in each identity; who has a number that seven divides takes no part. */
static void tune_random(const struct random_pool *r, uint32_t *points)
{
	struct tune_member *member = calloc(r->members, sizeof(*member));
	uint32_t *out = calloc(r->members, sizeof(*out));

	assert_non_null(member);
	assert_non_null(out);
	for (size_t i = 0; i < r->members; i++) {
		uint32_t original = (uint32_t)strtoul(strchr(r->member[i].identity, '-') + 1, NULL, 10);

		member[i] = (struct tune_member){ .identity = r->member[i].identity,
						  .weight = original % 7 ? 1 + original % 3 : 0,
						  .points = 3 * (1 + original % 3) };
	}
	assert_int_equal(tune(member, r->members, out), 0);
	for (size_t i = 0; i < r->members; i++)
		points[strtoul(strchr(r->member[i].identity, '-') + 1, NULL, 10)] = out[i];
	free(out);
	free(member);
}

/* The order of the members does not matter, and who takes no part neither. Of few points many ways are equally good. */
static void test_order(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct random_pool r;
		uint32_t points[2][40];

		random_pool_make(&r, 40, 60);
		tune_random(&r, points[0]);
		random_pool_shuffle(&r);
		tune_random(&r, points[1]);
		random_pool_free(&r);
		assert_memory_equal(points[0], points[1], sizeof(points[0]));
		assert_int_equal(points[0][7], 3 * 2);
	}
}

static void test_edges(void **state)
{
	struct tune_member m[3] = { { "a", 1, 5, false }, { "b", 1, 5, false }, { "a", 0, 9, false } };
	uint32_t points[3];

	(void)state;
	assert_int_equal(tune(m, 0, points), 0);
	assert_int_equal(tune(m, 1, points), 0);
	assert_int_equal(points[0], 5);
	assert_int_equal(tune(m, 3, points), 0);
	assert_int_equal(points[2], 9);
	assert_true(points[0] >= 1 && points[1] >= 1);
	m[2].weight = 1;
	assert_int_equal(tune(m, 3, points), -EINVAL);
	m[2] = (struct tune_member){ "c", 1, RINGLB_MAX_POINTS, false };
	assert_int_equal(tune(m, 3, points), -E2BIG);
}

/* Where the pool is as large as a pool may be, no count makes it larger. */
static void test_largest(void **state)
{
	LEAVE_IF_QUICK();
	struct pool p;
	uint64_t sum = 0;

	(void)state;
	pool_make(&p, "web-", 16384, 64, 1);
	assert_int_equal(tune(p.member, p.members, p.points), 0);
	for (size_t i = 0; i < p.members; i++) {
		assert_true(p.points[i] >= 1);
		sum += p.points[i];
	}
	assert_true(sum <= RINGLB_MAX_POINTS);
	pool_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_balance),       cmocka_unit_test(test_time),  cmocka_unit_test(test_newcomer),
		cmocka_unit_test(test_other_measure), cmocka_unit_test(test_order), cmocka_unit_test(test_edges),
		cmocka_unit_test(test_largest),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
