// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Moved arcs against the rules, position by position. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "moved.h"
#include "random_pool.h"

#define OWNERS 6u
#define NOW 5000u

static const struct arc *at(const struct arcs *a, uint32_t position)
{
	return &a->arc[arcs_find(a, position)];
}

/* The rules, for one position. */
static struct arc expected(const struct arc *was, const uint16_t *number, uint16_t owner, const uint8_t *alive)
{
	uint16_t before = number[was->owner], stays = was->moved ? number[was->previous] : before;
	struct arc is = { .owner = owner, .previous = owner, .moved = was->moved || before != owner };

	if (stays != MOVED_GONE && alive[stays])
		is.previous = stays;
	else
		is.moved = was->moved; /* nobody's flows are there */
	is.stamp = is.moved ? before == owner ? was->stamp : NOW : 0;
	return is;
}

static void assert_whole(const struct arcs *a)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < a->count; i++) {
		assert_true(!i || a->arc[i].last > a->arc[i - 1].last);
		if (i)
			assert_false(a->arc[i].owner == a->arc[i - 1].owner && a->arc[i].moved == a->arc[i - 1].moved &&
				     a->arc[i].previous == a->arc[i - 1].previous);
		sum += arcs_length(a, i);
	}
	assert_true(sum == 1ull << 32);
}

static void assert_at(const struct arcs *old, const uint16_t *number, const struct arcs *ring, const uint8_t *alive,
		      const struct arcs *out, uint32_t position)
{
	struct arc want = expected(at(old, position), number, at(ring, position)->owner, alive);
	const struct arc *is = at(out, position);

	assert_int_equal(is->owner, want.owner);
	assert_int_equal(is->moved, want.moved);
	assert_int_equal(is->previous, want.previous);
	assert_true(!is->moved || (int32_t)(is->stamp - want.stamp) >= 0); /* neighbours are joined: the later one */
}

static void random_ring(struct arcs *out)
{
	random_arcs_make(out, 1 + random_below(60), OWNERS);
	for (size_t i = 0; i < out->count; i++)
		out->arc[i] = (struct arc){ .last = out->arc[i].last,
					    .owner = out->arc[i].owner,
					    .previous = out->arc[i].owner };
}

static void test_change(void **state)
{
	(void)state;
	random_start();
	for (int round = 0; round < 2000; round++) {
		struct arcs old, ring, out;
		uint16_t number[OWNERS];
		uint8_t alive[OWNERS];

		for (size_t i = 0; i < OWNERS; i++) {
			number[i] = random_below(5) ? (uint16_t)random_below(OWNERS) : MOVED_GONE;
			alive[i] = random_below(4) > 0;
		}
		random_arcs_make(&old, 1 + random_below(60), OWNERS);
		for (size_t i = 0; i < old.count; i++)
			if (old.arc[i].moved)
				old.arc[i].stamp = NOW - random_below(2000);
		random_ring(&ring);
		assert_int_equal(arcs_change(&old, number, &ring, alive, NOW, &out), 0);
		assert_whole(&out);
		for (size_t i = 0; i < old.count; i++) {
			assert_at(&old, number, &ring, alive, &out, old.arc[i].last);
			assert_at(&old, number, &ring, alive, &out, old.arc[i].last + 1);
		}
		for (size_t i = 0; i < ring.count; i++) {
			assert_at(&old, number, &ring, alive, &out, ring.arc[i].last);
			assert_at(&old, number, &ring, alive, &out, ring.arc[i].last + 1);
		}
		arcs_free(&old);
		arcs_free(&ring);
		arcs_free(&out);
	}
}

static void test_from_nothing(void **state)
{
	struct arcs none = { 0 }, ring, out;

	(void)state;
	random_ring(&ring);
	assert_int_equal(arcs_change(&none, NULL, &ring, NULL, NOW, &out), 0);
	assert_int_equal(out.count, ring.count);
	assert_int_equal(arcs_moved(&out), 0);
	arcs_free(&ring);
	arcs_free(&out);
}

/* Two quarters that are moved, the second stamped later. */
static struct arcs two_moved(void)
{
	static const struct arc arc[] = {
		{ .last = 0x3fffffff, .owner = 0, .previous = 1, .stamp = NOW - 10, .moved = true },
		{ .last = 0x7fffffff, .owner = 1, .previous = 0, .stamp = NOW, .moved = true },
		{ .last = 0xffffffff, .owner = 0, .previous = 0 },
	};
	const struct arcs is = { (struct arc *)arc, 3 };
	struct arcs copy;

	assert_int_equal(arcs_copy(&is, &copy), 0);
	return copy;
}

static void test_settle(void **state)
{
	struct arcs a = two_moved();

	(void)state;
	assert_true(arcs_moved(&a) == 1ull << 31);
	assert_int_equal(arcs_settled_in(&a, NOW, 100), 101);
	assert_int_equal(arcs_settled_in(&a, NOW + 60, 100), 41);
	assert_int_equal(arcs_settle(&a, NOW + 90, 100, false), 0);
	assert_int_equal(arcs_settle(&a, NOW + 91, 100, false), 1);
	assert_int_equal(a.count, 3);
	assert_int_equal(at(&a, 0)->previous, 0);
	assert_true(arcs_moved(&a) == 1ull << 30);
	assert_int_equal(arcs_settle(&a, NOW + 100, 100, false), 0);
	assert_int_equal(arcs_settle(&a, NOW + 101, 100, false), 1);
	assert_int_equal(arcs_moved(&a), 0);
	assert_int_equal(arcs_settled_in(&a, NOW + 101, 100), 0);
	arcs_free(&a);
}

/* A stamp from the future, as a clock that a commit read a moment too early sees it. */
static void test_settle_in_the_past(void **state)
{
	struct arcs a = two_moved();

	(void)state;
	assert_int_equal(arcs_settle(&a, NOW - 20, 100, false), 0);
	assert_int_equal(arcs_settle(&a, NOW - 20, 0, true), 2);
	assert_int_equal(a.count, 3);
	assert_int_equal(arcs_moved(&a), 0);
	arcs_free(&a);
}

static void test_settled_neighbours_are_joined(void **state)
{
	struct arcs a = two_moved();

	(void)state;
	a.arc[1].owner = 0;
	a.arc[1].previous = 1;
	assert_int_equal(arcs_settle(&a, NOW, 0, true), 2);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.arc[0].last, UINT32_MAX);
	arcs_free(&a);
}

static void test_renumber(void **state)
{
	const uint16_t number[] = { 7, 3 };
	struct arcs a = two_moved();

	(void)state;
	arcs_renumber(&a, number);
	assert_int_equal(a.arc[0].owner, 7);
	assert_int_equal(a.arc[0].previous, 3);
	assert_int_equal(a.arc[2].previous, 7);
	arcs_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_from_nothing),
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_settle_in_the_past),
		cmocka_unit_test(test_settled_neighbours_are_joined),
		cmocka_unit_test(test_renumber),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
