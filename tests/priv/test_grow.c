/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Larger maps and other programs take over: every connection and every counter goes on. */
#include <errno.h>
#include <unistd.h>

#include "datapath_private.h"
#include "grow_case.h"
#include "replace.h"

static struct datapath_sizes sizes(void)
{
	struct running r = grow_opened();
	struct datapath_sizes s;

	datapath_get_sizes(r.dp, &s);
	running_close(&r);
	return s;
}

static void grows(void **state)
{
	struct datapath_sizes before, after;
	unsigned int were;

	(void)state;
	grow_begin();
	before = sizes();
	were = grow_remembered();
	grow_applied(GROW_MANY, GROW_SMALL);
	after = sizes();
	assert_true(after.tables > before.tables && after.backends > before.backends);
	assert_int_equal(after.flow_buckets, before.flow_buckets);
	assert_int_equal(grow_remembered(), were);
	grow_is_whole();
	grow_go_on();
	grow_add_up();
}

static void changes_the_size_of_the_flow_table(void **state)
{
	struct datapath_sizes before, after;
	unsigned int were;

	(void)state;
	grow_begin();
	before = sizes();
	were = grow_remembered();
	grow_applied(4, GROW_LARGE);
	after = sizes();
	assert_int_equal(after.flow_buckets, 2 * before.flow_buckets);
	assert_int_equal(after.tables, before.tables);
	assert_int_equal(grow_remembered(), were);
	grow_is_whole();
	grow_go_on();
	grow_add_up();
	grow_applied(4, GROW_SMALL);
	grow_is_whole();
	grow_go_on();
	grow_add_up();
}

static void refuses_a_flow_table_that_is_too_small(void **state)
{
	struct diag d = { 0 };

	(void)state;
	grow_begin();
	assert_int_not_equal(grow_apply(GROW_MANY, "{established: 4, opening: 4}", &d), 0);
	assert_int_equal(d.errors, 1);
	assert_string_equal(d.entry[0].code, "flows");
	diag_free(&d);
	grow_is_whole();
	grow_go_on();
	grow_add_up();
}

static void another_program_shares_every_map_but_the_outputs(void **state)
{
	struct running r, then;
	struct diag d = { 0 };
	int prog;

	(void)state;
	grow_begin();
	prog = grow_attached(0);
	then = grow_opened();
	r = grow_opened();
	assert_int_equal(replace_program(&grow_instance, &r, &d), 0);
	grow_quiet(&d);
	for (enum datapath_map i = 0; i < DATAPATH_MAP_COUNT; i++)
		assert_int_equal(datapath_shares(r.dp, then.dp, i), i != DATAPATH_MAP_OUTPUTS);
	assert_int_equal(r.state->revision, then.state->revision);
	running_close(&r);
	running_close(&then);
	grow_is_whole();
	/* A packet that the former program still has is no other's. */
	grow_go_on_through(prog);
	close(prog);
	grow_go_on();
	grow_add_up();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(grows, grow_end),
		cmocka_unit_test_teardown(changes_the_size_of_the_flow_table, grow_end),
		cmocka_unit_test_teardown(refuses_a_flow_table_that_is_too_small, grow_end),
		cmocka_unit_test_teardown(another_program_shares_every_map_but_the_outputs, grow_end),
	};

	return cmocka_run_group_tests(tests, grow_enter, grow_leave);
}
