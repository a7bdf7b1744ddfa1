// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replicas over random rings, held against a walk that is written from the definition. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "random_pool.h"
#include "replicas.h"

#define ROUNDS 40
#define LOOK_UPS 50
#define OWNERS 24

static const char *const zones[] = { "a", "b", "c", "d", NULL };

static bool contains(const uint16_t *list, size_t count, uint16_t owner)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == owner)
			return true;
	return false;
}

static size_t clockwise(const struct arcs *arcs, uint32_t position, uint16_t nobody, uint16_t *out)
{
	size_t start = arcs_find(arcs, position), n = 0;

	for (size_t i = 0; i < arcs->count; i++) {
		uint16_t owner = arcs->arc[(start + i) % arcs->count].owner;

		if (owner != nobody && !contains(out, n, owner))
			out[n++] = owner;
	}
	return n;
}

static bool zone_taken(const char *const *zone, const uint16_t *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(zone[list[i]] ? zone[list[i]] : "", name ? name : ""))
			return true;
	return false;
}

/* In order: each of another zone, then those left over. */
static void by_zone(const char *const *zone, const uint16_t *all, size_t count, uint16_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (!zone_taken(zone, out, n, zone[all[i]]))
			out[n++] = all[i];
	for (size_t i = 0; i < count; i++)
		if (!contains(out, n, all[i]))
			out[n++] = all[i];
}

static void check(const struct arcs *arcs, const char *const *zone, uint16_t nobody)
{
	struct replicas r;

	assert_int_equal(replicas_init(&r, arcs, OWNERS, zone, nobody), 0);
	for (unsigned int i = 0; i < LOOK_UPS; i++) {
		uint16_t all[OWNERS], wanted[OWNERS], found[OWNERS + 8];
		uint32_t position = (uint32_t)random_u64();
		size_t count = clockwise(arcs, position, nobody, all), ask = random_below(OWNERS + 8), got;

		if (zone)
			by_zone(zone, all, count, wanted);
		else
			memcpy(wanted, all, sizeof(wanted));
		got = replicas_find(&r, position, ask, found);
		assert_int_equal(got, ask < count ? ask : count);
		for (size_t k = 0; k < got; k++)
			assert_int_equal(found[k], wanted[k]);
	}
	replicas_free(&r);
}

static void test_random(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		const char *zone[OWNERS];
		struct arcs arcs;

		random_arcs_make(&arcs, 1 + random_below(200), 1 + random_below(OWNERS));
		for (size_t i = 0; i < OWNERS; i++)
			zone[i] = zones[random_below(5)];
		check(&arcs, NULL, UINT16_MAX);
		check(&arcs, zone, UINT16_MAX);
		check(&arcs, NULL, arcs.arc[0].owner);
		check(&arcs, zone, arcs.arc[0].owner);
		arcs_free(&arcs);
	}
}

static void test_nobody(void **state)
{
	const uint64_t nobody = (uint64_t)UINT32_MAX << 32 | 3;
	struct arcs arcs, none = { 0 };
	struct replicas r;
	uint16_t found[1];

	(void)state;
	assert_int_equal(arcs_from_points(&nobody, 1, &arcs), 0);
	assert_int_equal(replicas_init(&r, &arcs, 4, NULL, 3), 0);
	assert_int_equal(replicas_find(&r, 77, 1, found), 0);
	replicas_free(&r);
	assert_int_equal(replicas_init(&r, &none, 0, NULL, UINT16_MAX), 0);
	assert_int_equal(replicas_find(&r, 77, 1, found), 0);
	replicas_free(&r);
	arcs_free(&arcs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_nobody),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
