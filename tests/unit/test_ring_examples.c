// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The small rings of tests/vectors/ring_examples.json, on a circle of 100 hashes: hash h stands for the positions from
 * h/100 to (h + 1)/100 of the circle. Read from the directory of the sources, where the tests run, or RINGLB_VECTORS.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "ring.h"
#include "table.h"

#define SPACE 100
#define MAX_POINTS 16
#define CIRCLE (1ull << 32)

static json_t *examples;

static int load(void **state)
{
	const char *directory = getenv("RINGLB_VECTORS");
	char path[4096];
	json_error_t error;

	(void)state;
	snprintf(path, sizeof(path), "%s/ring_examples.json", directory ? directory : "tests/vectors");
	examples = json_load_file(path, 0, &error);
	if (!examples)
		fprintf(stderr, "%s: %s\n", path, error.text);
	return examples ? 0 : -1;
}

static int unload(void **state)
{
	(void)state;
	json_decref(examples);
	return 0;
}

static json_t *get(const char *ring, const char *key)
{
	json_t *value = json_object_get(json_object_get(examples, ring), key);

	assert_non_null(value);
	return value;
}

static uint32_t first_position(unsigned int hash)
{
	return (uint32_t)((hash * CIRCLE + SPACE - 1) / SPACE);
}

static uint32_t last_position(unsigned int hash)
{
	return (uint32_t)(((hash + 1) * CIRCLE + SPACE - 1) / SPACE - 1);
}

static uint16_t owner_index(const json_t *name)
{
	return (uint16_t)(json_string_value(name)[0] - 'A');
}

static void build(const json_t *points, struct arcs *arcs)
{
	uint64_t point[MAX_POINTS];
	size_t n = json_array_size(points);

	assert_in_range(n, 1, MAX_POINTS);
	for (size_t i = 0; i < n; i++) {
		const json_t *pair = json_array_get(points, i);
		unsigned int hash = (unsigned int)json_integer_value(json_array_get(pair, 0));

		point[i] = (uint64_t)last_position(hash) << 32 | owner_index(json_array_get(pair, 1));
	}
	assert_int_equal(arcs_from_points(point, n, arcs), 0);
}

static char owner_name(const struct arcs *arcs, unsigned int hash)
{
	char first = (char)('A' + arcs->arc[arcs_find(arcs, first_position(hash))].owner);
	char last = (char)('A' + arcs->arc[arcs_find(arcs, last_position(hash))].owner);

	assert_int_equal(first, last);
	return first;
}

/* All 100 hashes, by the arcs and by the kernel's table of them. */
static void assert_exhaustive(const char *ring, const struct arcs *arcs)
{
	const char *expected = json_string_value(get(ring, "exhaustive"));
	const uint16_t owner[] = { 0, 1, 2, 3 };
	struct table_layout layout;
	void *base;

	assert_int_equal(strlen(expected), SPACE);
	assert_int_equal(table_layout(arcs, 4, &layout), 0);
	base = aligned_alloc(64, layout.length);
	assert_non_null(base);
	table_encode(arcs, owner, 4, &layout, base);
	for (unsigned int hash = 0; hash < SPACE; hash++) {
		const uint32_t *point = (const uint32_t *)((const char *)base + layout.points_off);
		uint32_t found = point[table_search(&layout, base, first_position(hash))];

		assert_int_equal(owner_name(arcs, hash), expected[hash]);
		assert_int_equal('A' + (found & ((1u << (layout.bits - 1)) - 1)), expected[hash]);
	}
	free(base);
}

static void test_small_ring(void **state)
{
	const json_t *sizes = get("small_ring", "arcs");
	const json_t *pair;
	uint64_t share[3];
	struct arcs arcs;
	size_t i;

	(void)state;
	build(get("small_ring", "points"), &arcs);
	assert_exhaustive("small_ring", &arcs);
	json_array_foreach(get("small_ring", "lookups"), i, pair)
		assert_int_equal(owner_name(&arcs, (unsigned int)json_integer_value(json_array_get(pair, 0))),
				 json_string_value(json_array_get(pair, 1))[0]);
	json_array_foreach(get("small_ring", "boundaries"), i, pair)
		assert_int_equal(owner_name(&arcs, (unsigned int)json_integer_value(json_array_get(pair, 0))),
				 json_string_value(json_array_get(pair, 1))[0]);
	arcs_shares(&arcs, share, 3);
	assert_int_equal((share[0] * SPACE + CIRCLE / 2) / CIRCLE, json_integer_value(json_object_get(sizes, "A")));
	assert_int_equal((share[1] * SPACE + CIRCLE / 2) / CIRCLE, json_integer_value(json_object_get(sizes, "B")));
	assert_int_equal((share[2] * SPACE + CIRCLE / 2) / CIRCLE, json_integer_value(json_object_get(sizes, "C")));
	arcs_free(&arcs);
}

/* Exactly the hashes from moved_first to moved_last change hands, from `from` to `to`. */
static void assert_change(const char *ring, char from, char to)
{
	const json_int_t first = json_integer_value(get(ring, "moved_first"));
	const json_int_t last = json_integer_value(get(ring, "moved_last"));
	struct arcs before, after;

	build(get("small_ring", "points"), &before);
	build(get(ring, "points"), &after);
	assert_exhaustive(ring, &after);
	for (unsigned int hash = 0; hash < SPACE; hash++) {
		char old = owner_name(&before, hash), new = owner_name(&after, hash);

		assert_int_equal(old != new, hash >= first && hash <= last);
		if (old != new) {
			assert_int_equal(old, from);
			assert_int_equal(new, to);
		}
	}
	assert_int_equal(last - first + 1, json_integer_value(get(ring, "moved_count")));
	arcs_free(&before);
	arcs_free(&after);
}

static void test_add(void **state)
{
	(void)state;
	assert_change("add_D_60", 'C', 'D');
}

static void test_remove(void **state)
{
	(void)state;
	assert_change("remove_B", 'B', 'C');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_ring),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_remove),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
