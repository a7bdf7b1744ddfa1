// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A ring that is changed is, byte for byte, the ring that is made anew. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "random_pool.h"
#include "ring.h"
#include "../../include/ringlb_abi.h"

#define ROUNDS 15
#define CHANGES 8

static void assert_same(const struct ring *r, const struct ring_member *member, size_t members)
{
	struct arcs anew;

	assert_int_equal(ring_build(member, members, &anew), 0);
	assert_int_equal(r->arcs.count, anew.count);
	if (anew.count)
		assert_memory_equal(r->arcs.arc, anew.arc, anew.count * sizeof(*anew.arc));
	arcs_free(&anew);
}

/* Some come, some go, some get other points, and all change places. */
static size_t change(const struct random_pool *all, const struct ring_member *was, size_t members,
		     struct ring_member *is)
{
	size_t n = 0;

	for (size_t i = 0; i < members; i++) {
		if (!random_below(8))
			continue;
		is[n] = was[i];
		if (!random_below(4))
			is[n].points = random_below(3000);
		n++;
	}
	for (size_t i = 0; i < all->members && n < all->members; i++) {
		bool there = false;

		for (size_t j = 0; j < n; j++)
			there |= !strcmp(all->member[i].identity, is[j].identity);
		if (!there && random_below(2))
			is[n++] = all->member[i];
	}
	for (size_t i = n; i > 1; i--) {
		size_t j = random_below((uint32_t)i);
		struct ring_member swap = is[i - 1];

		is[i - 1] = is[j];
		is[j] = swap;
	}
	return n;
}

static void test_random(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct random_pool all;
		struct ring_member *was, *is, *swap;
		struct ring r = { 0 };
		size_t members = 0;

		random_pool_make(&all, 1 + random_below(40), 3000);
		was = calloc(all.members, sizeof(*was));
		is = calloc(all.members, sizeof(*is));
		for (unsigned int i = 0; i < CHANGES; i++) {
			size_t next = change(&all, was, members, is);

			assert_int_equal(ring_change(&r, was, members, is, next), 0);
			assert_same(&r, is, next);
			swap = was;
			was = is;
			is = swap;
			members = next;
		}
		ring_free(&r);
		free(was);
		free(is);
		random_pool_free(&all);
	}
}

/* Of points at one position the second shows when the first goes. Those of the last two are at one, see test_ring.c. */
static void test_hidden_point(void **state)
{
	const struct ring_member both[] = { { "web", 3 }, { "t74256", 1 }, { "t112055", 1 } };
	const struct ring_member *one = both, two[] = { { "t74256", 1 }, { "web", 3 } };
	struct ring r = { 0 };

	(void)state;
	assert_int_equal(ring_point("t74256", 0), ring_point("t112055", 0));
	assert_int_equal(ring_change(&r, NULL, 0, one, 1), 0);
	assert_int_equal(ring_change(&r, one, 1, both, 3), 0);
	assert_same(&r, both, 3);
	assert_int_equal(ring_change(&r, both, 3, both, 2), 0);
	assert_same(&r, both, 2);
	assert_int_equal(ring_change(&r, both, 2, both, 3), 0);
	assert_same(&r, both, 3);
	assert_int_equal(ring_change(&r, both, 3, two, 2), 0);
	assert_same(&r, two, 2);
	assert_int_equal(ring_change(&r, two, 2, both + 1, 2), 0);
	assert_same(&r, both + 1, 2);
	assert_int_equal(ring_change(&r, both + 1, 2, NULL, 0), 0);
	assert_same(&r, NULL, 0);
	ring_free(&r);
}

static void test_refusals(void **state)
{
	const struct ring_member good[] = { { "a", 5 }, { "b", 5 } }, twins[] = { { "a", 5 }, { "a", 6 } };
	const struct ring_member many[] = { { "a", RINGLB_MAX_POINTS }, { "b", 1 } };
	struct ring r = { 0 };

	(void)state;
	assert_int_equal(ring_change(&r, NULL, 0, good, 2), 0);
	assert_int_equal(ring_change(&r, good, 2, twins, 2), -EINVAL);
	assert_same(&r, good, 2);
	assert_int_equal(ring_change(&r, good, 2, many, 2), -E2BIG);
	assert_same(&r, good, 2);
	ring_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_hidden_point),
		cmocka_unit_test(test_refusals),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
