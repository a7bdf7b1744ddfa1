/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One flow table's entries into another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "diag.h"
#include "flows_copy.h"

#define NOW 5000u
#define LATER (NOW + 900)

static struct flows table(uint32_t buckets)
{
	return (struct flows){ xcalloc(buckets, sizeof(struct ringlb_flow_bucket)), buckets };
}

static uint64_t word(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

/* The bucket's share of the fingerprints, the lower 32 bits of which choose it. */
static uint64_t fingerprint(const struct flows *f, uint32_t bucket, uint32_t number)
{
	uint64_t low = (((uint64_t)bucket << 32) + f->buckets - 1) / f->buckets;

	return (uint64_t)number << 32 | (low + number * 1000);
}

static struct ringlb_flow *find(const struct flows *f, uint64_t print)
{
	for (uint32_t i = 0; i < f->buckets * RINGLB_FLOWS_PER_BUCKET; i++)
		if (f->bucket[i / RINGLB_FLOWS_PER_BUCKET].flow[i % RINGLB_FLOWS_PER_BUCKET].fingerprint == print)
			return &f->bucket[i / RINGLB_FLOWS_PER_BUCKET].flow[i % RINGLB_FLOWS_PER_BUCKET];
	return NULL;
}

static struct ringlb_flow entry(uint64_t print, uint32_t deadline, uint32_t choice)
{
	return (struct ringlb_flow){ .fingerprint = print,
				     .established = word(deadline, choice),
				     .opening = word(7, choice + 1),
				     .place = print << 16 };
}

static void same_size_and_twice_as_large_have_room(void **state)
{
	(void)state;
	for (uint32_t factor = 1; factor <= 4; factor *= 2) {
		struct flows from = table(33), to = table(33 * factor);

		for (uint32_t b = 0; b < from.buckets; b++)
			for (uint32_t i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++)
				from.bucket[b].flow[i] = entry(fingerprint(&from, b, i + 1), LATER, b + 1);
		assert_int_equal(flows_copy(&from, &to, NOW), 0);
		for (uint32_t b = 0; b < from.buckets; b++)
			for (uint32_t i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++) {
				const struct ringlb_flow *e = &from.bucket[b].flow[i],
							 *copy = find(&to, e->fingerprint);

				assert_non_null(copy);
				assert_memory_equal(copy, e, sizeof(*e));
				/* where packets look for it */
				assert_ptr_equal(&to.bucket[(uint64_t)(uint32_t)e->fingerprint * to.buckets >> 32],
						 &to.bucket[(copy - to.bucket->flow) / RINGLB_FLOWS_PER_BUCKET]);
			}
		free(from.bucket);
		free(to.bucket);
	}
}

static void counts_what_has_no_room(void **state)
{
	struct flows from = table(2), to = table(1);

	(void)state;
	for (uint32_t b = 0; b < 2; b++)
		for (uint32_t i = 0; i < 3; i++)
			from.bucket[b].flow[i] = entry(fingerprint(&from, b, i + 1), i ? LATER : NOW, 1);
	/* four live, two expired */
	assert_int_equal(flows_copy(&from, &to, NOW), 0);
	for (uint32_t i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++)
		assert_int_equal(to.bucket->flow[i].established, word(LATER, 1));
	from.bucket[1].flow[3] = entry(fingerprint(&from, 1, 9), LATER, 1);
	assert_int_equal(flows_copy(&from, &to, NOW), 1);
	free(from.bucket);
	free(to.bucket);
}

static void expired_ones_come_along_and_give_way(void **state)
{
	struct flows from = table(1), to = table(1);

	(void)state;
	from.bucket->flow[0] = entry(10, NOW, 1);
	from.bucket->flow[1] = entry(11, NOW + 1, 2);
	assert_int_equal(flows_copy(&from, &to, NOW), 0);
	assert_non_null(find(&to, 10));
	assert_non_null(find(&to, 11));
	from.bucket->flow[0] = entry(12, LATER, 3);
	from.bucket->flow[2] = entry(13, LATER, 4);
	from.bucket->flow[3] = entry(14, LATER, 5);
	assert_int_equal(flows_copy(&from, &to, NOW), 0);
	assert_null(find(&to, 10));
	for (uint64_t print = 11; print <= 14; print++)
		assert_non_null(find(&to, print));
	free(from.bucket);
	free(to.bucket);
}

/* What each of the two has, as (deadline, choice), and what the copy has then. */
static void the_later_word_stays(void **state)
{
	static const struct {
		uint32_t from_deadline, from_choice, to_deadline, to_choice;
		bool copied;
	} cases[] = {
		{ LATER, 5, LATER + 1, 5, false }, /* its packets came here */
		{ LATER + 1, 5, LATER, 5, true },   { LATER, 5, LATER, 5, false },
		{ NOW + 5, 5, NOW + 10, 0, true }, /* a mere opening, which became a connection there */
		{ NOW + 10, 0, LATER, 5, false },  /* and here */
		{ NOW + 10, 0, NOW + 9, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct flows from = table(1), to = table(1);
		struct ringlb_flow *e = &to.bucket->flow[2];

		from.bucket->flow[1] = entry(99, cases[i].from_deadline, cases[i].from_choice);
		*e = entry(99, cases[i].to_deadline, cases[i].to_choice);
		e->place = 1;
		assert_int_equal(flows_copy(&from, &to, NOW), 0);
		if (cases[i].copied)
			assert_memory_equal(e, &from.bucket->flow[1], sizeof(*e));
		else
			assert_int_equal(e->established, word(cases[i].to_deadline, cases[i].to_choice));
		assert_int_equal(to.bucket->flow[0].fingerprint, 0);
		free(from.bucket);
		free(to.bucket);
	}
}

static void entries_that_are_being_filled_in_are_left_alone(void **state)
{
	struct flows from = table(1), to = table(1);

	(void)state;
	from.bucket->flow[0] = entry(RINGLB_FLOW_BUSY, LATER, 1);
	from.bucket->flow[1] = entry(20, LATER, 2);
	for (uint32_t i = 0; i < 3; i++)
		to.bucket->flow[i] = entry(RINGLB_FLOW_BUSY, NOW, 3);
	assert_int_equal(flows_copy(&from, &to, NOW), 0);
	assert_int_equal(to.bucket->flow[3].fingerprint, 20);
	to.bucket->flow[3].fingerprint = RINGLB_FLOW_BUSY;
	assert_int_equal(flows_copy(&from, &to, NOW), 1);
	free(from.bucket);
	free(to.bucket);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_size_and_twice_as_large_have_room),
		cmocka_unit_test(counts_what_has_no_room),
		cmocka_unit_test(expired_ones_come_along_and_give_way),
		cmocka_unit_test(the_later_word_stays),
		cmocka_unit_test(entries_that_are_being_filled_in_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
