// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel's table: its layout as ringlb_abi.h has it, its search, and the way back to arcs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../include/ringlb_abi.h"
#include "random_pool.h"
#include "ring.h"
#include "table.h"

struct table {
	struct table_layout layout;
	void *base;
};

static uint32_t *index_of(const struct table *t)
{
	return (uint32_t *)((char *)t->base + t->layout.index_off);
}

static uint32_t *points_of(const struct table *t)
{
	return (uint32_t *)((char *)t->base + t->layout.points_off);
}

static struct ringlb_cold *cold_of(const struct table *t)
{
	return (struct ringlb_cold *)((char *)t->base + t->layout.cold_off);
}

/* Owner i has the kernel's index 1000 + i. What was in the memory before does not show. */
static struct table make_table(const struct arcs *arcs, size_t owners)
{
	uint16_t *owner = calloc(owners, sizeof(*owner));
	struct table t;

	assert_int_equal(table_layout(arcs, owners, &t.layout), 0);
	t.base = aligned_alloc(RINGLB_REGION_ALIGN, t.layout.length);
	assert_non_null(owner);
	assert_non_null(t.base);
	memset(t.base, 0xa5, t.layout.length);
	for (size_t i = 0; i < owners; i++)
		owner[i] = (uint16_t)(1000 + i);
	table_encode(arcs, owner, owners, &t.layout, t.base);
	assert_memory_equal((char *)t.base + t.layout.owners_off, owner, owners * sizeof(*owner));
	free(owner);
	return t;
}

static void assert_layout(const struct table_layout *l, size_t owners)
{
	assert_in_range(l->bits, 1, 22);
	assert_true(owners - 1 < 1u << (l->bits - 1));
	assert_int_equal(l->owners, owners);
	assert_int_equal((l->index_off | l->points_off | l->cold_off | l->owners_off) % RINGLB_REGION_ALIGN, 0);
	assert_true(l->points_off >= l->index_off + 4 * ((1u << l->bits) + 1));
	assert_true(l->cold_off >= l->points_off + 4 * l->points);
	assert_true(l->owners_off >= l->cold_off + sizeof(struct ringlb_cold) * l->points);
	assert_true(l->length >= l->owners_off + 2 * owners);
	assert_true(l->length >= l->points_off + 4 * l->points + RINGLB_TABLES_SLACK);
}

/* The entry that the search finds says what the arcs say. */
static void assert_found(const struct table *t, const struct arcs *arcs, uint32_t position)
{
	const struct arc *arc = &arcs->arc[arcs_find(arcs, position)];
	const unsigned int bits = t->layout.bits;
	uint32_t found = table_search(&t->layout, t->base, position), point = points_of(t)[found];

	assert_in_range(found, index_of(t)[position >> (32 - bits)], index_of(t)[(position >> (32 - bits)) + 1] - 1);
	assert_int_equal(point & ((1u << (bits - 1)) - 1), arc->owner);
	assert_int_equal(point >> (bits - 1) & 1, arc->moved);
	assert_int_equal(cold_of(t)[found].previous, arc->previous);
	assert_int_equal(cold_of(t)[found].stamp, arc->stamp);
	assert_int_equal(cold_of(t)[found].reserved, 0);
}

static void assert_same_arcs(const struct arcs *a, const struct arcs *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_int_equal(a->arc[i].last, b->arc[i].last);
		assert_int_equal(a->arc[i].owner, b->arc[i].owner);
		assert_int_equal(a->arc[i].previous, b->arc[i].previous);
		assert_int_equal(a->arc[i].stamp, b->arc[i].stamp);
		assert_int_equal(a->arc[i].moved, b->arc[i].moved);
	}
}

/* Everything that must hold of the table of any arcs. */
static void assert_table(const struct arcs *arcs, size_t owners)
{
	struct table t = make_table(arcs, owners);
	struct arcs back;

	assert_layout(&t.layout, owners);
	for (size_t i = 0; i < arcs->count; i++)
		for (uint32_t d = 0; d < 3; d++)
			assert_found(&t, arcs, arcs->arc[i].last + d - 1);
	for (uint32_t bucket = 0; bucket < 1u << t.layout.bits; bucket++) {
		uint32_t first = bucket << (32 - t.layout.bits);

		assert_found(&t, arcs, first);
		assert_found(&t, arcs, first - 1);
		assert_int_equal(points_of(&t)[index_of(&t)[bucket + 1] - 1] >> t.layout.bits,
				 UINT32_MAX >> t.layout.bits);
	}
	for (unsigned int i = 0; i < 500; i++)
		assert_found(&t, arcs, (uint32_t)random_u64());
	assert_int_equal(table_decode(&t.layout, t.base, &back), 0);
	assert_same_arcs(arcs, &back);
	arcs_free(&back);
	free(t.base);
}

static void test_random_arcs(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 200; round++) {
		uint32_t owners = 1 + random_below(round % 10 ? 1 + round : 700);
		struct arcs arcs;

		random_arcs_make(&arcs, 1 + random_below(1 + 10 * round), owners);
		assert_table(&arcs, owners);
		arcs_free(&arcs);
	}
}

static void test_random_pools(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 20; round++) {
		struct random_pool pool;
		struct arcs arcs;

		random_pool_make(&pool, 1 + random_below(60), 1 + random_below(round % 2 ? 3 : 200));
		assert_int_equal(ring_build(pool.member, pool.members, &arcs), 0);
		assert_table(&arcs, pool.members);
		arcs_free(&arcs);
		random_pool_free(&pool);
	}
}

static size_t place_by_identity(const struct random_pool *pool, size_t member)
{
	size_t place = 0;

	for (size_t i = 0; i < pool->members; i++)
		place += strcmp(pool->member[i].identity, pool->member[member].identity) < 0;
	return place;
}

/* The table of a pool whose owners are numbered in the order of their identities. */
static struct table canonical_table(const struct random_pool *pool)
{
	uint16_t *place = calloc(pool->members, sizeof(*place));
	struct arcs arcs;
	struct table t;

	assert_non_null(place);
	for (size_t i = 0; i < pool->members; i++)
		place[i] = (uint16_t)place_by_identity(pool, i);
	assert_int_equal(ring_build(pool->member, pool->members, &arcs), 0);
	for (size_t i = 0; i < arcs.count; i++)
		arcs.arc[i].owner = arcs.arc[i].previous = place[arcs.arc[i].owner];
	t = make_table(&arcs, pool->members);
	arcs_free(&arcs);
	free(place);
	return t;
}

/* The same set in any order gives the same bytes; two members whose points collide are among them. */
static void test_order(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 10; round++) {
		struct random_pool pool;
		struct table t;

		random_pool_make(&pool, 3 + random_below(40), 1 + random_below(100));
		pool.member[0].identity = "t74256";
		pool.member[1].identity = "t112055";
		t = canonical_table(&pool);
		for (unsigned int order = 0; order < 4; order++) {
			struct table other;

			random_pool_shuffle(&pool);
			other = canonical_table(&pool);
			assert_memory_equal(&other.layout, &t.layout, sizeof(t.layout));
			assert_memory_equal(other.base, t.base, t.layout.length);
			free(other.base);
		}
		free(t.base);
		random_pool_free(&pool);
	}
}

static void test_one_owner(void **state)
{
	struct arc arc = { .last = UINT32_MAX };
	const struct arcs arcs = { &arc, 1 };
	struct table t = make_table(&arcs, 1);

	(void)state;
	assert_int_equal(t.layout.bits, 1);
	assert_int_equal(t.layout.points, 2);
	assert_int_equal(points_of(&t)[0], 0xfffffffe);
	assert_int_equal(points_of(&t)[1], 0xfffffffe);
	free(t.base);
	assert_table(&arcs, 1);
	arc = (struct arc){ .last = UINT32_MAX, .moved = true, .stamp = 77 };
	assert_table(&arcs, 1);
}

/* Byte by byte, K = 2: an arc inside a bucket, one that ends with its bucket, and one that passes a bucket's end. */
static void test_layout_by_hand(void **state)
{
	struct arc arc[] = {
		{ .last = 0x00000005, .owner = 1, .previous = 1 },
		{ .last = 0x3fffffff, .owner = 0, .previous = 1, .moved = true, .stamp = 9 },
		{ .last = 0x80000000, .owner = 1, .previous = 0, .moved = true, .stamp = 8 },
		{ .last = 0xffffffff, .owner = 0, .previous = 0 },
	};
	const struct arcs arcs = { arc, 4 };
	const uint32_t index[] = { 0, 2, 3, 5, 6 };
	const uint32_t point[] = {
		0x00000005 << 2 | 1, 0xfffffffc | 2, /* 00: the second is only the sentinel */
		0xfffffffc | 3,                      /* 01: passed by the third */
		0x00000000 << 2 | 3, 0xfffffffc,     /* 10 */
		0xfffffffc,                          /* 11 */
	};
	const struct ringlb_cold cold[] = {
		{ 1, 0, 0 }, { 1, 0, 9 }, { 0, 0, 8 }, { 0, 0, 8 }, { 0, 0, 0 }, { 0, 0, 0 }
	};
	struct table t = make_table(&arcs, 2);

	(void)state;
	assert_int_equal(t.layout.bits, 2);
	assert_int_equal(t.layout.points, 6);
	assert_memory_equal(index_of(&t), index, sizeof(index));
	assert_memory_equal(points_of(&t), point, sizeof(point));
	assert_memory_equal(cold_of(&t), cold, sizeof(cold));
	free(t.base);
	assert_table(&arcs, 2);
}

static void test_nobody(void **state)
{
	const struct arcs none = { 0 };
	struct table_layout layout = { .bits = 3, .length = 99 };
	struct arcs back = { (struct arc *)-1, 1 };

	(void)state;
	assert_int_equal(table_layout(&none, 0, &layout), 0);
	assert_int_equal(layout.bits, 0);
	assert_int_equal(layout.length, 0);
	table_encode(&none, NULL, 0, &layout, NULL);
	assert_int_equal(table_decode(&layout, NULL, &back), 0);
	assert_int_equal(back.count, 0);
	arcs_free(&back);
}

/*
 * Where a bucket's end has cut an arc, its pieces get stamps of their own: the later one is the arc's. Neighbours inside
 * a bucket that differ in nothing but the stamp are two arcs.
 */
static void test_stamps(void **state)
{
	struct arc arc[] = {
		{ .last = 0x12345678, .owner = 0, .previous = 0 },
		{ .last = 0x20000000, .owner = 1, .previous = 0, .moved = true, .stamp = 3 },
		{ .last = 0xefffffff, .owner = 1, .previous = 0, .moved = true, .stamp = 100 },
		{ .last = 0xffffffff, .owner = 0, .previous = 0 },
	};
	const struct arcs arcs = { arc, 4 };
	struct table t = make_table(&arcs, 2);
	struct arcs back;

	(void)state;
	assert_int_equal(t.layout.bits, 2);
	cold_of(&t)[table_search(&t.layout, t.base, 0x20000001)].stamp = 105;
	cold_of(&t)[table_search(&t.layout, t.base, 0x50000000)].stamp = 109;
	/* What stands beside a settled arc says nothing. */
	cold_of(&t)[table_search(&t.layout, t.base, 0)] = (struct ringlb_cold){ .previous = 7, .stamp = 5 };
	assert_int_equal(table_decode(&t.layout, t.base, &back), 0);
	arc[2].stamp = 109;
	assert_same_arcs(&arcs, &back);
	arcs_free(&back);
	free(t.base);
}

static void test_limits(void **state)
{
	const uint32_t limit = 4 * RINGLB_MAX_POINTS;
	struct table_layout layout;
	struct arcs arcs = { NULL, limit + 1 };

	(void)state;
	assert_int_equal(table_layout(&arcs, 1, &layout), -E2BIG);
	/* With their sentinels, these are too many; half of them are not, as a pool at its limit in a change has. */
	arcs.count = limit;
	arcs.arc = calloc(limit, sizeof(*arcs.arc));
	assert_non_null(arcs.arc);
	for (uint32_t i = 0; i < limit; i++)
		arcs.arc[i].last = i * 1000;
	assert_int_equal(table_layout(&arcs, 1, &layout), -E2BIG);
	assert_int_equal(layout.bits, 0);
	arcs.count = limit / 2;
	arcs.arc[arcs.count - 1].last = UINT32_MAX;
	assert_int_equal(table_layout(&arcs, 65534, &layout), 0);
	assert_int_equal(layout.bits, 19);
	assert_true(layout.length < RINGLB_MAX_TABLES_BYTES / 4);
	assert_layout(&layout, 65534);
	/* Few arcs of many owners: the owner's bits decide. */
	arcs.arc[0].last = UINT32_MAX;
	arcs.count = 1;
	assert_int_equal(table_layout(&arcs, 65534, &layout), 0);
	assert_int_equal(layout.bits, 17);
	assert_layout(&layout, 65534);
	arcs_free(&arcs);
}

/* About four points a bucket. */
static void test_bits(void **state)
{
	const struct {
		size_t arcs;
		unsigned int bits;
	} expected[] = {
		{ 1, 1 }, { 16, 2 }, { 23, 3 }, { 1024, 8 }, { 40000, 13 }, { 65536, 14 }, { 1 << 20, 18 },
	};
	struct arcs arcs = { calloc(1 << 20, sizeof(struct arc)), 0 };

	(void)state;
	assert_non_null(arcs.arc);
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		struct table_layout layout;

		arcs.count = expected[i].arcs;
		assert_int_equal(table_layout(&arcs, 1, &layout), 0);
		assert_int_equal(layout.bits, expected[i].bits);
	}
	arcs_free(&arcs);
}

/* A word of the table is changed, and changed back. */
static void assert_refused(const struct table *t, uint32_t *word, uint32_t value)
{
	const uint32_t kept = *word;
	struct arcs arcs;

	*word = value;
	assert_int_equal(table_decode(&t->layout, t->base, &arcs), -EINVAL);
	assert_int_equal(arcs.count, 0);
	*word = kept;
	assert_int_equal(table_decode(&t->layout, t->base, &arcs), 0);
	arcs_free(&arcs);
}

static void test_contradictions(void **state)
{
	struct arc arc[] = {
		{ .last = 0x10000000, .owner = 2, .previous = 2 },
		{ .last = 0x10000010, .owner = 1, .previous = 2, .moved = true },
		{ .last = 0xffffffff, .owner = 0, .previous = 0 },
	};
	const struct arcs arcs = { arc, 3 };
	struct table t = make_table(&arcs, 3);
	struct table_layout l = t.layout;
	uint32_t *index = index_of(&t), *point = points_of(&t);
	struct arcs back;

	(void)state;
	assert_int_equal(l.bits, 3);
	assert_int_equal(l.points, 10);
	assert_refused(&t, &index[0], 1);
	assert_refused(&t, &index[8], 9);
	assert_refused(&t, &index[8], UINT32_MAX);
	assert_refused(&t, &index[3], index[4]); /* an empty bucket */
	assert_refused(&t, &index[3], UINT32_MAX);
	assert_refused(&t, &index[1], 2);                         /* a bucket without its sentinel */
	assert_refused(&t, &point[0], point[1]);                  /* twice the same place */
	assert_refused(&t, &point[0], point[1] + (1u << l.bits)); /* out of order */
	assert_refused(&t, &point[2], point[1] + (1u << l.bits)); /* not the sentinel */
	assert_refused(&t, &point[1], point[2]);                  /* a sentinel too early */
	assert_refused(&t, &point[0], point[0] | 3);              /* no such owner */
	assert_refused(&t, (uint32_t *)&cold_of(&t)[1], 3);       /* no such previous owner */
	l.bits = 23;
	assert_int_equal(table_decode(&l, t.base, &back), -EINVAL);
	l = t.layout;
	l.points = 11;
	assert_int_equal(table_decode(&l, t.base, &back), -EINVAL);
	free(t.base);
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
		cmocka_unit_test(test_layout_by_hand), cmocka_unit_test(test_one_owner),
		cmocka_unit_test(test_nobody),         cmocka_unit_test(test_random_arcs),
		cmocka_unit_test(test_random_pools),   cmocka_unit_test(test_order),
		cmocka_unit_test(test_stamps),         cmocka_unit_test(test_bits),
		cmocka_unit_test(test_limits),         cmocka_unit_test(test_contradictions),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
