// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The flow table's memory as user space reads and sweeps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "flows.h"

#define NOW 5000u
#define BUCKETS 3u

static struct ringlb_flow_bucket bucket[BUCKETS];
static const struct flows flows = { bucket, BUCKETS };

static void put(size_t i, uint64_t fingerprint, uint32_t deadline, uint32_t established, uint32_t opening)
{
	bucket[i / RINGLB_FLOWS_PER_BUCKET].flow[i % RINGLB_FLOWS_PER_BUCKET] = (struct ringlb_flow){
		.fingerprint = fingerprint,
		.established = (uint64_t)deadline << 32 | established,
		.opening = 77ull << 32 | opening,
		.place = (uint64_t)(i * 100) << 32 | i << 16 | RINGLB_FLOW_CLOSING,
	};
}

/* Backends 1 and 2; 2's incarnation is 5. */
static int fill(void **state)
{
	(void)state;
	memset(bucket, 0, sizeof(bucket));
	put(0, 10, NOW + 900, flow_choice(1, 1), 0);
	put(1, 11, NOW + 10, 0, flow_choice(2, 5));
	put(2, RINGLB_FLOW_BUSY, NOW + 900, flow_choice(1, 1), 0);
	put(5, 12, NOW + 60, flow_choice(1, 1), flow_choice(2, 5));
	put(6, 13, NOW + 30, flow_choice(2, 5), flow_choice(2, 5));
	put(7, 14, NOW, flow_choice(1, 1), flow_choice(2, 5)); /* has expired */
	put(8, 0, NOW + 900, flow_choice(1, 1), 0);            /* was freed */
	put(11, 15, NOW + 70, flow_choice(2, 4), 0);           /* void */
	return 0;
}

static void test_count(void **state)
{
	const uint16_t incarnation[] = { 0, 1, 5 };
	uint32_t count[3] = { 0 }, left[3] = { 0 };

	(void)state;
	flows_count(&flows, incarnation, 3, NOW, count, left);
	assert_int_equal(count[0], 0);
	assert_int_equal(count[1], 2);
	assert_int_equal(count[2], 3);
	assert_int_equal(left[1], 900);
	assert_int_equal(left[2], 60);
	memset(count, 0, sizeof(count));
	flows_count(&flows, incarnation, 2, NOW, count, NULL); /* an index beyond those that there are */
	assert_int_equal(count[1], 2);
}

static void test_use(void **state)
{
	uint32_t used, openings;

	(void)state;
	flows_use(&flows, NOW, &used, &openings);
	assert_int_equal(used, 5);
	assert_int_equal(openings, 1);
}

static bool all_but_one(const struct flow_view *v, void *arg)
{
	*(size_t *)arg += 1;
	assert_int_equal(v->position, v->service * 100);
	return v->service != 6;
}

static void test_sweep(void **state)
{
	size_t asked = 0;

	(void)state;
	assert_int_equal(flows_sweep(&flows, all_but_one, &asked), 1);
	assert_int_equal(asked, 6); /* expired ones too, and neither free nor busy ones */
	assert_int_equal(bucket[1].flow[2].fingerprint, 0);
	assert_int_equal(bucket[0].flow[2].fingerprint, RINGLB_FLOW_BUSY);
}

/* A packet gives the entry to another flow while it is looked at. */
static bool changes_hands(const struct flow_view *v, void *arg)
{
	(void)arg;
	if (v->service == 6)
		bucket[1].flow[2].fingerprint = RINGLB_FLOW_BUSY;
	return v->service != 6;
}

static void test_sweep_leaves_what_changes_hands(void **state)
{
	(void)state;
	assert_int_equal(flows_sweep(&flows, changes_hands, NULL), 0);
	assert_int_equal(bucket[1].flow[2].fingerprint, RINGLB_FLOW_BUSY);
}

static void test_choice(void **state)
{
	(void)state;
	assert_int_equal(flow_choice(0x1234, 0x5678), 0x56781234);
	assert_int_equal(flow_choice_backend(0x56781234), 0x1234);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_count, fill),
		cmocka_unit_test_setup(test_use, fill),
		cmocka_unit_test_setup(test_sweep, fill),
		cmocka_unit_test_setup(test_sweep_leaves_what_changes_hands, fill),
		cmocka_unit_test(test_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
