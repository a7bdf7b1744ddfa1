// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Free space: first fit, held against a map of cells of RINGLB_REGION_ALIGN bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../include/ringlb_abi.h"
#include "random_pool.h"
#include "region.h"

#define CELL RINGLB_REGION_ALIGN
#define CELLS 512u
#define HEADER_CELLS (RINGLB_TABLES_HEADER / CELL)

/* tables of CELLS cells behind the header and the slack behind them. */
static size_t tables_bytes(uint32_t cells)
{
	return RINGLB_TABLES_HEADER + cells * CELL + RINGLB_TABLES_SLACK;
}

static uint32_t cells_of(uint32_t length)
{
	return length / CELL + !!(length % CELL);
}

/* The offset of the first run of free cells that is long enough; 0: none. */
static uint32_t first_fit(const uint8_t used[CELLS], uint32_t cells)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < CELLS; i++) {
		run = used[i] ? 0 : run + 1;
		if (run == cells)
			return RINGLB_TABLES_HEADER + (i + 1 - cells) * CELL;
	}
	return 0;
}

static void mark(uint8_t used[CELLS], uint32_t offset, uint32_t length)
{
	for (uint32_t i = 0; i < cells_of(length); i++)
		used[(offset / CELL) - HEADER_CELLS + i]++;
}

static void assert_sound(const struct regions *r)
{
	for (size_t i = 0; i < r->count; i++) {
		assert_int_equal(r->used[i].offset % CELL, 0);
		assert_true(r->used[i].offset >= RINGLB_TABLES_HEADER);
		assert_true(r->used[i].offset + r->used[i].length <= r->end);
		if (i)
			assert_true(r->used[i - 1].offset + r->used[i - 1].length <= r->used[i].offset);
	}
}

static void test_edges(void **state)
{
	struct regions r;

	(void)state;
	regions_init(&r, tables_bytes(4));
	assert_int_equal(regions_take(&r, 5 * CELL), 0);
	assert_int_equal(regions_take(&r, 1), RINGLB_TABLES_HEADER);
	assert_int_equal(regions_take(&r, 3 * CELL + 1), 0);
	assert_int_equal(regions_take(&r, 3 * CELL), RINGLB_TABLES_HEADER + CELL);
	assert_int_equal(regions_take(&r, 1), 0);
	assert_sound(&r);
	regions_free(&r);
	assert_int_equal(r.count, 0);

	/* No cell is left. */
	regions_init(&r, tables_bytes(0));
	assert_int_equal(regions_take(&r, 1), 0);
	regions_free(&r);

	/* What is not whole cells at the end belongs to nobody. */
	regions_init(&r, tables_bytes(1) + CELL - 1);
	assert_int_equal(regions_take(&r, CELL + 1), 0);
	assert_int_equal(regions_take(&r, CELL), RINGLB_TABLES_HEADER);
	assert_int_equal(regions_take(&r, CELL), 0);
	regions_free(&r);
}

/* A length that nothing can hold is refused, not rounded up to nothing. */
static void test_huge(void **state)
{
	struct regions r;

	(void)state;
	regions_init(&r, RINGLB_MAX_TABLES_BYTES);
	assert_int_equal(regions_take(&r, UINT32_MAX), 0);
	assert_int_equal(regions_take(&r, UINT32_MAX - CELL + 1), 0);
	assert_int_equal(regions_take(&r, RINGLB_MAX_TABLES_BYTES - RINGLB_TABLES_HEADER - RINGLB_TABLES_SLACK),
			 RINGLB_TABLES_HEADER);
	assert_int_equal(regions_take(&r, 1), 0);
	regions_free(&r);
}

/* Nothing takes no place: a caller that has nothing to write must not be told that there is room for it. */
static void test_nothing(void **state)
{
	struct regions r;

	(void)state;
	regions_init(&r, tables_bytes(4));
	regions_add(&r, RINGLB_TABLES_HEADER, 0);
	assert_int_equal(r.count, 0);
	assert_int_equal(regions_take(&r, 0), 0);
	regions_free(&r);
}

/* Marks in any order what is in use, then fills up. */
static void one_round(void)
{
	uint8_t used[CELLS] = { 0 };
	struct regions r;
	uint32_t tries = 0;

	regions_init(&r, tables_bytes(CELLS));
	for (uint32_t i = random_below(20); i; i--) {
		uint32_t length = 1 + random_below(40 * CELL), cell = random_below(CELLS - cells_of(length));
		bool is_free = true;

		for (uint32_t j = 0; j < cells_of(length); j++)
			is_free &= !used[cell + j];
		if (!is_free)
			continue;
		regions_add(&r, RINGLB_TABLES_HEADER + cell * CELL, length);
		mark(used, RINGLB_TABLES_HEADER + cell * CELL, length);
	}
	while (tries < 5) {
		uint32_t length = 1 + random_below(30 * CELL);
		uint32_t expected = first_fit(used, cells_of(length)), offset = regions_take(&r, length);

		assert_int_equal(offset, expected);
		if (offset)
			mark(used, offset, length);
		else
			tries++;
		assert_sound(&r);
	}
	for (uint32_t i = 0; i < CELLS; i++)
		assert_true(used[i] <= 1);
	regions_free(&r);
}

static void test_random(void **state)
{
	(void)state;
	for (int i = 0; i < 500; i++)
		one_round();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_huge),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_random),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
