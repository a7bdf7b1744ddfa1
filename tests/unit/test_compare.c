// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What placements make of a pool, side by side: figures known beforehand, and figures taken the long way. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "compare.h"
#include "quick.h"
#include "random_pool.h"

#define MOST 120

struct pool {
	struct placement_member member[MOST];
	char identity[MOST][32];
	struct placement_pool pool;
	uint32_t points[MOST];
	struct arcs arcs;
};

static void pool_make(struct pool *p, size_t members, uint32_t weights)
{
	for (size_t i = 0; i < members; i++) {
		uint32_t weight = 1 + (uint32_t)i % weights;

		snprintf(p->identity[i], sizeof(p->identity[i]), "10.0.0.%zu:80", i);
		p->member[i] = (struct placement_member){ p->identity[i], weight, 40 * weight, (uint32_t)i + 1 };
	}
	p->pool = (struct placement_pool){ p->member, members, 4099 };
}

/* False: the placement can't express the pool. */
static bool compare(struct pool *p, const char *name, struct comparison *out)
{
	const struct placement *placement = placement_find(name);
	char *why;
	int err = placement_build(placement, &p->pool, &p->arcs, p->points, &why);

	free(why);
	if (!err)
		assert_int_equal(compare_placement(placement, &p->pool, &p->arcs, p->points, out), 0);
	return !err;
}

static void assert_near(double a, double b)
{
	assert_true(fabs(a - b) < 1e-9);
}

/* Those that move the minimum say so, exactly; the others are told apart from them. */
static void test_excess(void **state)
{
	LEAVE_IF_QUICK();
	static const char *const minimal[] = { "ring", "rendezvous", "nginx", "haproxy" };
	static const char *const other[] = { "maglev", "slots", "modulo" };
	struct pool *p = calloc(1, sizeof(*p));
	struct comparison c;

	(void)state;
	for (uint32_t weights = 1; weights < 4; weights += 2) {
		pool_make(p, 13, weights);
		p->member[4].weight = 0;
		for (size_t i = 0; i < 4; i++) {
			assert_true(compare(p, minimal[i], &c));
			assert_true(c.add.known && c.remove.known && c.weight.known);
			assert_true(c.add.excess == 0 && c.remove.excess == 0 && c.remove_worst.excess == 0 &&
				    c.weight.excess == 0);
			assert_int_equal(c.removals, 12);
			/* Each is taken away once, and gives what it has. */
			assert_near(c.remove.moved, 1.0 / 12);
			assert_true(c.add.moved > 0 && c.weight.moved > 0);
			arcs_free(&p->arcs);
		}
		for (size_t i = 0; i < 3; i++) {
			assert_true(compare(p, other[i], &c));
			assert_true(c.add.excess > 0 && c.remove.excess > 0 && c.weight.excess > 0);
			assert_true(c.remove_worst.excess >= c.remove.excess);
			assert_true(c.remove_worst.moved >= c.remove.moved);
			arcs_free(&p->arcs);
		}
	}
	free(p);
}

/* Of four equal ones, numbered by hash modulo 4: one of five stays where one is added. */
static void test_by_hand(void **state)
{
	struct pool *p = calloc(1, sizeof(*p));
	struct comparison c;

	(void)state;
	pool_make(p, 4, 1);
	assert_true(compare(p, "modulo", &c));
	assert_true(fabs(c.add.moved - 4.0 / 5) < 1e-4);
	assert_true(fabs(c.add.excess - (4.0 / 5 - 1.0 / 5)) < 1e-4);
	assert_near(c.balance.max, 1);
	assert_near(c.balance.min, 1);
	assert_int_equal(c.points, 1 << 20);
	arcs_free(&p->arcs);
	/* Four ranges of a quarter become five of a fifth: 1/5 - 1/4 - ... = 1/20, 2/20, 3/20 and 4/20 move. */
	assert_true(compare(p, "slots", &c));
	assert_true(fabs(c.add.moved - 10.0 / 20) < 1e-3);
	assert_true(c.table_bytes > 0 && c.table_bytes < 1024);
	arcs_free(&p->arcs);
	free(p);
}

/* Half as much weight again is half as many points, of the pool's own ring. */
static void test_weight(void **state)
{
	struct pool *p = calloc(1, sizeof(*p));
	struct share_change change;
	struct comparison c;
	struct arcs after;
	char *why;

	(void)state;
	pool_make(p, 5, 1);
	p->member[0].points = 37;
	assert_true(compare(p, "ring", &c));
	p->member[0].points = 37 + 18;
	assert_int_equal(placement_build(placement_find("ring"), &p->pool, &after, NULL, &why), 0);
	shares_change(&p->arcs, &after, 5, &change);
	assert_near(c.weight.moved, (double)change.moved / SHARES_ALL);
	share_change_free(&change);
	arcs_free(&after);
	arcs_free(&p->arcs);
	free(p);
}

static void test_limits(void **state)
{
	struct pool *p = calloc(1, sizeof(*p));
	struct comparison c;

	(void)state;
	/* libmemcached stops at 100: one more can't be told, one less can. */
	pool_make(p, 100, 1);
	assert_true(compare(p, "ketama", &c));
	assert_false(c.add.known);
	assert_true(c.remove.known);
	assert_int_equal(c.removals, 100);
	arcs_free(&p->arcs);
	/* Of more than a hundred a hundred are taken, the first and the last among their neighbours. */
	pool_make(p, MOST, 1);
	assert_true(compare(p, "haproxy", &c));
	assert_int_equal(c.removals, COMPARE_REMOVALS);
	arcs_free(&p->arcs);
	assert_false(compare(p, "ketama", &c));
	/* Alone: nothing can be taken away. */
	pool_make(p, 1, 1);
	assert_true(compare(p, "ring", &c));
	assert_false(c.remove.known);
	assert_true(c.add.known);
	arcs_free(&p->arcs);
	/* Nobody at all. */
	p->member[0].weight = 0;
	assert_true(compare(p, "ring", &c));
	assert_false(c.add.known || c.remove.known || c.weight.known);
	assert_true(c.balance.max == 0 && c.points == 0 && c.table_bytes == 0);
	free(p);
}

/* A name that looks like the newcomer's is nobody else's. */
static void test_newcomer(void **state)
{
	struct pool *p = calloc(1, sizeof(*p));
	struct comparison c;

	(void)state;
	pool_make(p, 3, 1);
	strcpy(p->identity[1], "newcomer");
	strcpy(p->identity[0], "newcomer-1");
	assert_true(compare(p, "ring", &c));
	assert_true(c.add.known && c.add.moved > 0 && c.add.excess == 0);
	arcs_free(&p->arcs);
	free(p);
}

/* placement_build_without is placement_build, whatever the rule makes of the arcs before. */
static void test_without(void **state)
{
	struct pool *p = calloc(1, sizeof(*p));

	(void)state;
	pool_make(p, 9, 3);
	p->member[2].weight = 0;
	for (size_t i = 0; i < placements_count; i++) {
		struct arcs before, with, without;
		uint16_t gone = (uint16_t)(3 + random_below(6));
		uint32_t weight = p->member[gone].weight;
		char *why;

		assert_int_equal(placement_build(placements[i], &p->pool, &before, NULL, &why), 0);
		p->member[gone].weight = 0;
		assert_int_equal(placement_build(placements[i], &p->pool, &with, NULL, &why), 0);
		assert_int_equal(placement_build_without(placements[i], &p->pool, &before, gone, &without, &why), 0);
		p->member[gone].weight = weight;
		assert_int_equal(with.count, without.count);
		assert_memory_equal(with.arc, without.arc, with.count * sizeof(*with.arc));
		arcs_free(&before);
		arcs_free(&with);
		arcs_free(&without);
	}
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_excess), cmocka_unit_test(test_by_hand),  cmocka_unit_test(test_weight),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_newcomer), cmocka_unit_test(test_without),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
