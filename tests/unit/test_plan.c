// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The plan: which operations a change of the configuration makes, and what stays as it is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "plan_case.h"
#include "random_pool.h"

/* An instance that runs c, and the plan to what change() makes of it. */
struct step {
	struct case_config c;
	struct case_instance i;
	struct plan p;
};

static void step_start(struct step *s)
{
	s->c = case_small();
	case_instance_init(&s->i);
	case_apply(&s->i, &s->c);
}

static void step_plan(struct step *s)
{
	case_plan_good(&s->i, &s->c, false, &s->p);
}

/* The plan, carried out, leaves nothing to do. */
static void step_end(struct step *s)
{
	struct plan again;

	case_commit(&s->i, &s->p);
	plan_free(&s->p);
	case_plan_good(&s->i, &s->c, true, &again);
	assert_int_equal(again.operations, 0);
	assert_false(again.generation);
	assert_int_equal(again.next->generation, s->i.running->generation);
	assert_string_equal(again.next->digest, s->i.running->digest);
	plan_free(&again);
	case_instance_free(&s->i);
}

static void assert_only(const struct plan *p, enum plan_kind kind, const char *text)
{
	for (size_t i = 0; i < p->operations; i++) {
		if (p->operation[i].kind < PLAN_TABLE_BUILD)
			assert_int_equal(p->operation[i].kind, kind);
	}
	assert_int_equal(case_count(p, kind), 1);
	assert_string_equal(case_find(p, kind, 0)->text, text);
}

static void test_from_nothing(void **state)
{
	struct step s = { .c = case_small() };

	(void)state;
	case_instance_init(&s.i);
	step_plan(&s);
	assert_int_equal(s.p.next->generation, 1);
	assert_int_equal(case_count(&s.p, PLAN_POOL_ADD), 2);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_ADD), 5);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 2);
	assert_int_equal(case_count(&s.p, PLAN_SERVICE_ADD), 2);
	assert_int_equal(case_count(&s.p, PLAN_INTERFACE_ATTACH), 2);
	assert_int_equal(s.p.operations, 13);
	for (size_t i = 0; i < s.p.operations; i++)
		assert_true((s.p.operation[i].kind == PLAN_TABLE_BUILD) == !*s.p.operation[i].text);
	assert_string_equal(case_find(&s.p, PLAN_INTERFACE_ATTACH, 1)->subject, "eth1");
	assert_int_equal(s.p.pools, 2);
	assert_true(s.p.pool[0].added && s.p.pool[1].added);
	assert_int_equal(s.p.pool[0].moved, 0);
	step_end(&s);
}

static void test_backend_added(void **state)
{
	struct step s;
	char text[128];

	(void)state;
	step_start(&s);
	case_backend_add(&s.c.pool[0], 3);
	s.c.pool[0].backend[3].address = 20; /* IPv4 */
	step_plan(&s);
	snprintf(text, sizeof(text), "pool web: backend %s added: 10.0.0.20, weight 3", s.c.pool[0].backend[3].name);
	assert_only(&s.p, PLAN_BACKEND_ADD, text);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 1);
	assert_int_equal(s.p.next->generation, 2);
	/* The other pool's table stays where it is. */
	assert_int_equal(case_pool(s.p.next, "dns")->region, case_pool(s.i.running, "dns")->region);
	assert_int_equal(case_pool(s.p.next, "web")->region, 0);
	step_end(&s);
}

static void test_backend_renamed(void **state)
{
	struct step s;
	struct case_backend *b;
	char text[128], old[CASE_NAME];

	(void)state;
	step_start(&s);
	b = &s.c.pool[0].backend[1];
	strcpy(old, b->name);
	strcpy(b->identity, b->name);
	strcpy(b->name, "renamed");
	step_plan(&s);
	snprintf(text, sizeof(text), "pool web: backend %s renamed to renamed", old);
	assert_only(&s.p, PLAN_BACKEND_CHANGE, text);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 0);
	assert_string_equal(s.p.next->digest, s.i.running->digest);
	assert_int_equal(s.p.next->generation, 2);
	step_end(&s);
}

static void test_backend_weight(void **state)
{
	struct step s;
	struct case_backend *b;
	char text[128];

	(void)state;
	step_start(&s);
	b = &s.c.pool[0].backend[1];
	b->weight = 5;
	step_plan(&s);
	snprintf(text, sizeof(text), "pool web: backend %s, weight 2 -> 5, points 200 -> 500", b->name);
	assert_only(&s.p, PLAN_BACKEND_CHANGE, text);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 1);
	step_end(&s);
}

/* A backend is an identity at an address: at another it is another backend. */
static void test_backend_moved(void **state)
{
	const struct state_backend *was, *is;
	struct step s;
	const char *name;

	(void)state;
	step_start(&s);
	name = s.c.pool[0].backend[0].name;
	was = state_pool_find(case_pool(s.i.running, "web"), name);
	s.c.pool[0].backend[0].address = 40;
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_ADD), 1);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_REMOVE), 1);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_CHANGE), 0);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 1);
	is = &case_pool(s.p.next, "web")->backend[case_find(&s.p, PLAN_BACKEND_ADD, 0)->backend];
	assert_string_equal(is->name, name);
	assert_int_not_equal(is->index, was->index);
	/* All that it owned moves, and needs to. */
	assert_true(case_plan_pool(&s.p, "web")->moved > 0);
	assert_int_equal(2 * case_plan_pool(&s.p, "web")->moved, case_plan_pool(&s.p, "web")->minimum_twice);
	assert_int_equal(case_plan_pool(&s.p, "web")->moves, 1);
	assert_string_not_equal(case_plan_pool(&s.p, "web")->move[0].from, case_plan_pool(&s.p, "web")->move[0].to);
	step_end(&s);
}

/* Where a service keeps its flows a backend leaves, and is gone when its flows are; else it is gone at once. */
static void test_backend_removed(void **state)
{
	const struct state_backend *leaving;
	char name[CASE_NAME], text[128];
	struct step s;
	uint16_t index;

	(void)state;
	step_start(&s);
	strcpy(name, s.c.pool[0].backend[1].name);
	index = state_pool_find(case_pool(s.i.running, "web"), name)->index;
	s.c.pool[0].backend[1].address = 50; /* IPv4 */
	case_apply(&s.i, &s.c);
	s.i.now += 1000;
	case_apply(&s.i, &s.c);
	case_backend_remove(&s.c.pool[0], 1);
	step_plan(&s);
	snprintf(text, sizeof(text),
		 "pool web: backend %s removed (10.0.0.50), leaving: no new flow, its old ones until they end", name);
	assert_only(&s.p, PLAN_BACKEND_REMOVE, text);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 1);
	leaving = state_pool_find(case_pool(s.p.next, "web"), name);
	assert_non_null(leaving);
	assert_int_equal(leaving->state, BACKEND_LEAVING);
	assert_int_equal(leaving->since, s.i.now);
	assert_int_not_equal(leaving->index, index);
	assert_int_equal(case_plan_pool(&s.p, "web")->moved, case_plan_pool(&s.p, "web")->settling);
	case_commit(&s.i, &s.p);
	plan_free(&s.p);
	/* A packet may have come at the very end of its second. */
	s.i.now += 900;
	step_plan(&s);
	assert_int_equal(s.p.operations, 0);
	plan_free(&s.p);
	s.i.now += 1;
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_SETTLE), 1);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_GONE), 1);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 1);
	assert_int_equal(s.p.operations, 3);
	assert_false(s.p.generation);
	assert_null(state_pool_find(case_pool(s.p.next, "web"), name));
	step_end(&s);
}

/* What runs promised a longer silence: the change that shortens it gives nothing up yet. */
static void test_settle_after_shortened(void **state)
{
	struct step s;

	(void)state;
	step_start(&s);
	case_backend_remove(&s.c.pool[0], 1);
	case_apply(&s.i, &s.c);
	s.i.now += 100;
	s.c.pool[0].settle_after = "2s";
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_SETTLE), 0);
	assert_true(case_plan_pool(&s.p, "web")->settling);
	case_commit(&s.i, &s.p);
	plan_free(&s.p);
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_SETTLE), 1);
	step_end(&s);
}

static void test_backend_removed_at_once(void **state)
{
	char name[CASE_NAME];
	struct step s;

	(void)state;
	step_start(&s);
	strcpy(name, s.c.pool[1].backend[0].name);
	case_backend_remove(&s.c.pool[1], 0);
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_REMOVE), 1);
	assert_non_null(strstr(case_find(&s.p, PLAN_BACKEND_REMOVE, 0)->text, ", its flows are cut"));
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 1);
	assert_int_equal(s.p.operations, 2);
	assert_null(state_pool_find(case_pool(s.p.next, "dns"), name));
	step_end(&s);
}

static void test_pools(void **state)
{
	struct step s;

	(void)state;
	step_start(&s);
	strcpy(case_pool_add(&s.c, 4)->name, "new");
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_POOL_ADD), 1);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_ADD), 4);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 1);
	assert_int_equal(s.p.operations, 6);
	assert_string_equal(case_find(&s.p, PLAN_POOL_ADD, 0)->text, "pool new: added, 4 backends");
	case_commit(&s.i, &s.p);
	plan_free(&s.p);

	s.c.pools--;
	step_plan(&s);
	assert_only(&s.p, PLAN_POOL_REMOVE, "pool new: removed, 4 backends");
	assert_int_equal(s.p.operations, 1);
	assert_true(case_plan_pool(&s.p, "new")->removed);
	assert_int_equal(s.p.next->generation, 3);
	step_end(&s);
}

/* A pool that keeps no flows has no table without a backend, and gets one with the first. */
static void test_empty_pool(void **state)
{
	struct step s;

	(void)state;
	step_start(&s);
	s.c.pool[1].backends = 0;
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_REMOVE), 2);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 0);
	assert_true(case_plan_pool(&s.p, "dns")->emptied);
	case_commit(&s.i, &s.p);
	plan_free(&s.p);
	case_backend_add(&s.c.pool[1], 2);
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_ADD), 1);
	assert_int_equal(case_count(&s.p, PLAN_TABLE_BUILD), 1);
	step_end(&s);
}

/* Where flows are kept, a pool whose last backend left still serves them. */
static void test_last_backend_leaves(void **state)
{
	const struct state_pool *web;
	struct step s;

	(void)state;
	step_start(&s);
	s.c.pool[0].backends = 0;
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_BACKEND_REMOVE), 3);
	assert_true(case_plan_pool(&s.p, "web")->emptied);
	assert_int_equal(case_plan_pool(&s.p, "web")->settling, 1ull << 32);
	web = case_pool(s.p.next, "web");
	for (size_t i = 0; i < web->arcs.count; i++) {
		assert_int_equal(web->arcs.arc[i].owner, STATE_NOBODY(web));
		assert_true(web->arcs.arc[i].previous < web->backends);
	}
	step_end(&s);
}

static uint16_t index_of(const struct state *s, const char *service)
{
	for (size_t i = 0; i < s->config->services; i++) {
		if (!strcmp(s->config->service[i].name, service))
			return s->service_index[i];
	}
	fail_msg("no service %s", service);
	return 0;
}

/* A service that stays keeps its counters, whatever else changes of it; a new one never gets a removed one's at once. */
static void test_services(void **state)
{
	struct step s;
	uint16_t kept, gone;
	char text[128];

	(void)state;
	step_start(&s);
	kept = index_of(s.i.running, s.c.service[1].name);
	gone = index_of(s.i.running, s.c.service[0].name);
	s.c.service[0] = s.c.service[1];
	s.c.services = 1;
	case_service_add(&s.c, 1);
	snprintf(text, sizeof(text), "service %s: name %s -> other, pool dns -> web", s.c.service[0].name,
		 s.c.service[0].name);
	strcpy(s.c.service[0].name, "other");
	s.c.service[0].pool = 0;
	step_plan(&s);
	assert_int_equal(s.p.operations, 3);
	assert_string_equal(case_find(&s.p, PLAN_SERVICE_CHANGE, 0)->text, text);
	assert_int_equal(case_count(&s.p, PLAN_SERVICE_ADD), 1);
	assert_int_equal(case_count(&s.p, PLAN_SERVICE_REMOVE), 1);
	assert_int_equal(index_of(s.p.next, "other"), kept);
	assert_int_not_equal(index_of(s.p.next, s.c.service[1].name), kept);
	assert_int_not_equal(index_of(s.p.next, s.c.service[1].name), gone);
	step_end(&s);
}

static void change_setting(const char *more, const char *text)
{
	struct step s;

	step_start(&s);
	s.c.more = more;
	step_plan(&s);
	assert_only(&s.p, PLAN_SETTING, text);
	assert_int_equal(s.p.operations, 1);
	assert_int_equal(s.p.next->generation, 2);
	step_end(&s);
}

/* QUIC has the hash of `flow`: nothing moves but what ids alone kept where it is. */
static void test_to_quic_and_back(void **state)
{
	struct step s;

	(void)state;
	step_start(&s);
	strcpy(s.c.service[1].name, "dns");
	s.c.service[1].protocol = "udp";
	case_apply(&s.i, &s.c);
	s.c.service[1].affinity = "quic, quic: {cid_length: 8}";
	step_plan(&s);
	assert_only(&s.p, PLAN_SERVICE_CHANGE,
		    "service dns: affinity flow -> quic, connection id length 0 -> 8, track none -> moved");
	assert_int_equal(s.p.services, 0);
	plan_free(&s.p);
	case_apply(&s.i, &s.c);
	s.c.service[1].affinity = "flow";
	step_plan(&s);
	assert_only(
		&s.p, PLAN_SERVICE_CHANGE,
		"service dns: affinity quic -> flow (connections whose client has another address than when they began "
		"break), connection id length 8 -> 0, track moved -> none");
	assert_int_equal(s.p.services, 0);
	plan_free(&s.p);
	s.c.service[1].affinity = "source";
	step_plan(&s);
	assert_int_equal(s.p.services, 1);
	assert_true(s.p.service[0].rehashed);
	step_end(&s);
}

static void test_settings(void **state)
{
	struct step s;

	(void)state;
	change_setting("xdp: native\n", "xdp: auto -> native");
	change_setting("flows: {established: 1310721}\n", "flows established: 131072 -> 1310721");
	change_setting("flows: {opening: 4}\n", "flows opening: 32768 -> 4");

	step_start(&s);
	s.c.key = '2';
	step_plan(&s);
	assert_only(&s.p, PLAN_SETTING, "hash_key: changed, every flow is hashed anew");
	assert_string_not_equal(s.p.next->digest, s.i.running->digest);
	step_end(&s);
}

/* The smallest differences are differences. */
static void test_settings_exact(void **state)
{
	struct step s;

	(void)state;
	step_start(&s);
	s.c.more = "flows: {established: 1310720}\n";
	case_apply(&s.i, &s.c);
	s.c.more = "flows: {established: 1310721}\n";
	s.c.pool[0].drain_max = "86400001ms";
	step_plan(&s);
	assert_int_equal(case_count(&s.p, PLAN_SETTING), 2);
	assert_int_equal(s.p.operations, 2);
	step_end(&s);
}

static int plan_with(struct step *s, const struct plan_interface *v, size_t count)
{
	const struct plan_input in = { .running = s->i.running,
				       .config = case_parse(&s->c, false),
				       .interface = v,
				       .interfaces = count,
				       .now = s->i.now };
	struct diag d = { 0 };

	return plan_make(&in, &s->p, &d);
}

static void test_interfaces(void **state)
{
	struct plan_interface v[] = { { "eth0", true, true, true, false, "" },
				      { "eth1", true, false, false, false, "" } };
	struct step s;

	(void)state;
	step_start(&s);
	/* Recreated: attached again, without a generation. */
	assert_int_equal(plan_with(&s, v, 2), 0);
	assert_only(&s.p, PLAN_INTERFACE_REATTACH, "interface eth1: attach again, it was recreated");
	assert_string_equal(s.p.operation[0].subject, "eth1");
	assert_int_equal(s.p.next->generation, 1);
	plan_free(&s.p);
	/* Its link is gone altogether. */
	v[1].attached = false;
	assert_int_equal(plan_with(&s, v, 2), 0);
	assert_only(&s.p, PLAN_INTERFACE_ATTACH, "interface eth1: attach");
	assert_int_equal(s.p.next->generation, 1);
	plan_free(&s.p);
	/* Another name, and then the file says so: it stays attached. */
	v[1] = (struct plan_interface){ "eth1", true, true, true, false, "wan0" };
	assert_int_equal(plan_with(&s, v, 2), 0);
	assert_int_equal(s.p.operations, 0);
	plan_free(&s.p);
	s.c.interfaces = "wan0, eth0";
	assert_int_equal(plan_with(&s, v, 2), 0);
	assert_only(&s.p, PLAN_SETTING, "interface eth1 is called wan0 now: it stays attached");
	assert_int_equal(s.p.next->generation, 2);
	plan_free(&s.p);
	/* Another one has the old name by now. */
	v[1].alive = false;
	s.c.interfaces = "eth1, eth0, wan0";
	assert_int_equal(plan_with(&s, v, 2), 0);
	assert_int_equal(s.p.operations, 2);
	assert_string_equal(case_find(&s.p, PLAN_INTERFACE_ATTACH, 0)->subject, "eth1");
	assert_string_equal(case_find(&s.p, PLAN_SETTING, 0)->text,
			    "interface eth1 is called wan0 now: it stays attached");
	plan_free(&s.p);
	s.c.interfaces = "eth0, eth1";
	assert_int_equal(plan_with(&s, v, 2), 0);
	assert_only(&s.p, PLAN_INTERFACE_REATTACH, "interface eth1: attach again, it was recreated");
	plan_free(&s.p);
	/* Another list of interfaces. */
	v[1] = (struct plan_interface){ "eth1", true, true, false, false, "" };
	s.c.interfaces = "eth2, eth0";
	assert_int_equal(plan_with(&s, v, 2), 0);
	assert_int_equal(s.p.operations, 2);
	assert_string_equal(case_find(&s.p, PLAN_INTERFACE_ATTACH, 0)->subject, "eth2");
	assert_string_equal(case_find(&s.p, PLAN_INTERFACE_DETACH, 0)->subject, "eth1");
	assert_int_equal(s.p.next->generation, 2);
	plan_free(&s.p);
	/* Generic where native is wanted. */
	s.c.interfaces = "eth0, eth1";
	s.c.more = "xdp: native\n";
	assert_int_equal(plan_with(&s, v, 2), 0);
	assert_string_equal(case_find(&s.p, PLAN_INTERFACE_REATTACH, 0)->subject, "eth1");
	assert_int_equal(s.p.operations, 2);
	plan_free(&s.p);
	case_instance_free(&s.i);
}

/* Indices of backends that leave are not free within the same commit: there may be too few of them. */
static void test_too_many_backends(void **state)
{
	struct case_config c = case_small();
	struct case_instance i = { 0 };
	struct config_pool pool = { .name = (char *)"old" };
	struct config config = { .max_move = -1, .pool = &pool, .pools = 1 };
	struct state_pool old = { .name = (char *)"old" };
	struct state running = { .config = &config, .pool = &old, .pools = 1 };
	struct diag d = { 0 };
	struct plan p;

	(void)state;
	old.backend = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*old.backend));
	for (; old.backends < RINGLB_MAX_BACKENDS - 5; old.backends++)
		old.backend[old.backends] = (struct state_backend){ .name = (char *)"b",
								    .identity = (char *)"b",
								    .index = (uint16_t)(RINGLB_MAX_BACKENDS - 1 -
											old.backends) };
	i.running = &running;
	case_plan_good(&i, &c, false, &p);
	for (size_t j = 0; j < p.next->pools; j++) {
		for (size_t k = 0; k < p.next->pool[j].backends; k++)
			assert_true(p.next->pool[j].backend[k].index < 5);
	}
	plan_free(&p);
	case_backend_add(&c.pool[0], 1);
	assert_true(case_plan(&i, case_parse(&c, false), &p, &d) < 0);
	assert_int_equal(d.errors, 1);
	assert_string_equal(d.entry[0].code, "too-many-backends");
	diag_free(&d);
	free(old.backend);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_nothing),
		cmocka_unit_test(test_backend_added),
		cmocka_unit_test(test_backend_renamed),
		cmocka_unit_test(test_backend_weight),
		cmocka_unit_test(test_backend_moved),
		cmocka_unit_test(test_backend_removed),
		cmocka_unit_test(test_settle_after_shortened),
		cmocka_unit_test(test_backend_removed_at_once),
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_empty_pool),
		cmocka_unit_test(test_last_backend_leaves),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_to_quic_and_back),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_settings_exact),
		cmocka_unit_test(test_interfaces),
		cmocka_unit_test(test_too_many_backends),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
