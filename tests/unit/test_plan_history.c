// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The plan over long random histories: what holds whatever changes, in whatever order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "plan_case.h"
#include "quick.h"
#include "random_pool.h"

/* Which backend has an index: one, wherever it is listed. */
struct indices {
	const struct state_backend *of[RINGLB_MAX_BACKENDS];
};

static void take_indices(struct indices *out, const struct state *s)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; s && i < state_tables(s); i++) {
		const struct state_pool *p = state_table_at(s, i);

		for (size_t j = 0; j < p->backends; j++) {
			const struct state_backend *b = &p->backend[j], *other;

			assert_true(b->index < RINGLB_MAX_BACKENDS);
			other = out->of[b->index];
			if (other) { /* listed twice only in services' own tables */
				assert_true(i >= s->pools);
				assert_true(backend_same(other, b));
				assert_int_equal(other->incarnation, b->incarnation);
				assert_int_equal(backend_alive(other), backend_alive(b));
			}
			out->of[b->index] = b;
		}
	}
}

/* An index stays with its backend, and a new one gets none that was in use before, not even of one that goes now. */
static void assert_indices(const struct state *running, const struct state *next)
{
	static struct indices before, after;

	take_indices(&before, running);
	take_indices(&after, next);
	for (uint32_t i = 0; i < RINGLB_MAX_BACKENDS; i++) {
		const struct state_backend *was = before.of[i], *is = after.of[i];

		if (!was || !is)
			continue;
		assert_true(backend_same(was, is));
		/* What the flow table knows of a backend is void exactly when its flows are cut. */
		assert_int_equal(was->incarnation != is->incarnation, backend_alive(was) && !backend_alive(is));
	}
	for (size_t i = 0; running && i < next->pools; i++) {
		const struct state_pool *old = case_pool(running, next->pool[i].name);

		for (size_t j = 0; old && j < old->backends; j++)
			for (size_t k = 0; k < next->pool[i].backends; k++) {
				if (backend_same(&old->backend[j], &next->pool[i].backend[k]))
					assert_int_equal(old->backend[j].index, next->pool[i].backend[k].index);
			}
	}
}

static void assert_service_indices(const struct state *running, const struct state *next)
{
	for (size_t i = 0; i < next->config->services; i++) {
		const struct config_service *v = &next->config->service[i];

		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(next->service_index[i], next->service_index[j]);
		for (size_t j = 0; running && j < running->config->services; j++) {
			const struct config_service *w = &running->config->service[j];
			bool same = address_equal(&v->address, &w->address) && v->port == w->port &&
				    v->protocol == w->protocol;

			assert_true(same == (next->service_index[i] == running->service_index[j]));
		}
	}
}

static bool runs_at(const struct state *s, uint32_t region)
{
	for (size_t i = 0; s && i < state_tables(s); i++) {
		if (state_table_at(s, i)->region == region)
			return true;
	}
	return false;
}

/* A table is built exactly where there is none yet, and lies where it lay where nothing in it differs. */
static void assert_tables(const struct state *running, const struct plan *p)
{
	size_t builds = 0;

	for (size_t i = 0; i < state_tables(p->next); i++) {
		const struct state_pool *t = state_table_at(p->next, i);

		builds += !t->region && t->layout.bits;
		assert_true(!t->region || runs_at(running, t->region));
	}
	assert_int_equal(case_count(p, PLAN_TABLE_BUILD) + case_count(p, PLAN_OWN_BUILD), builds);
}

/* Owners take flows, as the ring says; previous ones are alive. */
static void assert_arcs(const struct state *s)
{
	for (size_t i = 0; i < state_tables(s); i++) {
		const struct state_pool *t = state_table_at(s, i);

		for (size_t j = 0; j < t->arcs.count; j++) {
			const struct arc *a = &t->arcs.arc[j];

			assert_true(a->owner == STATE_NOBODY(t) || backend_takes_flows(&t->backend[a->owner]));
			assert_true(a->owner < STATE_NOBODY(t) || !t->ring.count);
			if (a->moved && a->previous != a->owner)
				assert_true(a->previous < t->backends && backend_alive(&t->backend[a->previous]));
			if (t->ring.count)
				assert_int_equal(t->ring.arc[arcs_find(&t->ring, a->last)].owner, a->owner);
		}
	}
}

static void assert_no_change(const struct case_instance *i, const struct case_config *c)
{
	struct plan p;

	case_plan_good(i, c, true, &p);
	if (p.operations)
		fail_msg("still to do: %d %s", (int)p.operation[0].kind, p.operation[0].text);
	assert_false(p.generation);
	assert_int_equal(p.next->generation, i->running->generation);
	assert_string_equal(p.next->digest, i->running->digest);
	plan_free(&p);
}

/* After each change the same configuration, in any order, changes nothing, and does not make another digest. */
static void one_history(int commits)
{
	static const uint32_t pause[] = { 0, 1, 400, 900 };
	struct case_config c = case_random();
	struct case_instance i;

	case_instance_init(&i);
	while (commits--) {
		uint32_t generation = i.running ? i.running->generation : 0;
		struct plan p;

		case_plan_good(&i, &c, random_below(2), &p);
		assert_service_indices(i.running, p.next);
		assert_tables(i.running, &p);
		assert_arcs(p.next);
		assert_int_equal(p.next->generation, generation + p.generation);
		case_give_incarnations(&i, &p);
		assert_indices(i.running, p.next);
		case_commit(&i, &p);
		plan_free(&p);
		assert_no_change(&i, &c);
		i.now += pause[random_below(4)];
		if (random_below(4))
			case_change(&c);
	}
	case_instance_free(&i);
}

static void test_histories(void **state)
{
	LEAVE_IF_QUICK();
	(void)state;
	for (int round = 0; round < 25; round++)
		one_history(15);
}

/* Left alone for long enough, what runs is what a fresh attach would run. */
static void test_settles(void **state)
{
	(void)state;
	for (int round = 0; round < 15; round++) {
		struct case_config c = case_random();
		struct case_instance i, fresh;

		case_instance_init(&i);
		case_instance_init(&fresh);
		for (int commits = 0; commits < 6; commits++) {
			case_apply(&i, &c);
			case_change(&c);
		}
		case_apply(&i, &c);
		i.now += 901;
		case_apply(&i, &c);
		case_apply(&fresh, &c);
		assert_int_equal(i.running->owns, 0);
		assert_string_equal(i.running->digest, fresh.running->digest);
		for (size_t j = 0; j < i.running->pools; j++) {
			const struct state_pool *a = &i.running->pool[j], *b = &fresh.running->pool[j];

			assert_int_equal(a->backends, b->backends);
			/* Where nobody takes flows any more there is an arc that says so; where nobody ever did, none. */
			if (!b->arcs.count && a->arcs.count) {
				assert_int_equal(a->arcs.count, 1);
				assert_int_equal(a->arcs.arc[0].owner, STATE_NOBODY(a));
				continue;
			}
			assert_int_equal(a->arcs.count, b->arcs.count);
			for (size_t k = 0; k < a->arcs.count; k++)
				assert_memory_equal(&a->arcs.arc[k], &b->arcs.arc[k], sizeof(*a->arcs.arc));
		}
		case_instance_free(&i);
		case_instance_free(&fresh);
	}
}

/* Every move of a service is told, and so seen by max_move: also the one back, while the first has not settled. */
static void test_moves_of_services(void **state)
{
	struct case_config c = case_small();
	struct case_instance i;

	(void)state;
	case_instance_init(&i);
	case_apply(&i, &c);
	for (int move = 0; move < 4; move++) {
		struct plan p;

		c.service[0].pool ^= 1;
		case_plan_good(&i, &c, false, &p);
		assert_int_equal(p.services, 1);
		assert_string_equal(p.service[0].name, c.service[0].name);
		assert_true(p.service[0].moved == 1ull << 32);
		plan_free(&p);
		case_apply(&i, &c);
		/* What only happens to its pool is the pool's to tell. */
		c.pool[c.service[0].pool].vnodes += 10;
		case_plan_good(&i, &c, false, &p);
		assert_int_equal(p.services, 0);
		plan_free(&p);
		case_apply(&i, &c);
	}
	case_instance_free(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histories),
		cmocka_unit_test(test_settles),
		cmocka_unit_test(test_moves_of_services),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
