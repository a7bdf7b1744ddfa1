// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Health as the plan's second input: which arcs follow, what stays, and that configuration knows nothing of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "moved.h"
#include "plan_case.h"
#include "random_pool.h"

#define CHECK "{type: tcp, port: 80}"

/* A pool "web" of three backends with a check, a service that keeps flows, and health that starts with all up. */
struct fixture {
	struct case_config c;
	struct case_instance i;
	struct health health;
};

static void learn(struct fixture *f)
{
	health_configure(&f->health, f->i.running->config, 1000);
}

static void start(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->c = case_small();
	f->c.pool[0].check = CHECK;
	case_instance_init(&f->i);
	case_apply(&f->i, &f->c);
	learn(f);
	f->i.health = &f->health;
	f->i.watched = true;
}

static void end(struct fixture *f)
{
	health_free(&f->health);
	case_instance_free(&f->i);
}

static struct state_backend *backend(const struct fixture *f, const char *name)
{
	struct state_backend *b = state_pool_find(case_pool(f->i.running, "web"), name);

	assert_non_null(b);
	return b;
}

/* What health says of backend n of the configuration's first pool from now on. */
static void say(struct fixture *f, size_t n, enum health_status status, enum health_use use, double factor)
{
	for (size_t i = 0; i < f->health.pool[0].backends; i++) {
		struct health_backend *b = &f->health.pool[0].backend[i];

		if (strcmp(b->name, f->c.pool[0].backend[n].name))
			continue;
		b->status = status;
		b->use = use;
		b->factor = factor;
	}
}

static uint64_t share(const struct fixture *f, size_t n)
{
	const struct state_pool *p = case_pool(f->i.running, "web");
	uint64_t *length = xcalloc(p->backends + 1, sizeof(*length)), own;

	arcs_shares(&p->arcs, length, p->backends + 1);
	own = length[backend(f, f->c.pool[0].backend[n].name) - p->backend];
	free(length);
	return own;
}

static struct arcs arcs_of(const struct fixture *f)
{
	struct arcs copy;

	assert_int_equal(arcs_copy(&case_pool(f->i.running, "web")->arcs, &copy), 0);
	return copy;
}

/* A commit that is health's alone: no generation, no digest, but a revision. Says what it plans. */
static void commit(struct fixture *f, size_t operations)
{
	uint32_t generation = f->i.running->generation;
	uint64_t revision = f->i.running->revision;
	char digest[33];
	struct plan p;

	strcpy(digest, f->i.running->digest);
	case_plan_good(&f->i, &f->c, true, &p);
	assert_int_equal(case_count(&p, PLAN_HEALTH), operations);
	assert_false(p.generation);
	case_commit(&f->i, &p);
	plan_free(&p);
	assert_int_equal(f->i.running->generation, generation);
	assert_int_equal(f->i.running->revision, revision + 1);
	assert_string_equal(f->i.running->digest, digest);
	case_plan_good(&f->i, &f->c, true, &p);
	assert_int_equal(p.operations, 0);
	plan_free(&p);
}

static void test_down_and_up(void **state)
{
	struct fixture f;
	struct arcs before, after;
	uint16_t incarnation;
	const char *name;

	(void)state;
	start(&f);
	name = f.c.pool[0].backend[1].name;
	before = arcs_of(&f);
	incarnation = backend(&f, name)->incarnation;
	say(&f, 1, HEALTH_DOWN, HEALTH_CUT, 1);
	commit(&f, 1);
	assert_int_equal(share(&f, 1), 0);
	assert_int_equal(backend(&f, name)->incarnation, incarnation + 1); /* its flows are void */
	assert_false(backend_alive(backend(&f, name)));
	assert_int_equal(backend(&f, name)->state, BACKEND_UP);
	assert_int_equal(arcs_moved(&case_pool(f.i.running, "web")->arcs), 0); /* nothing is kept of what is lost */
	assert_string_not_equal(f.i.running->digest, f.i.running->effective_digest);
	say(&f, 1, HEALTH_UP, HEALTH_USED, 1);
	commit(&f, 1);
	assert_string_equal(f.i.running->digest, f.i.running->effective_digest);
	assert_int_equal(backend(&f, name)->incarnation, incarnation + 1);
	/* The same owners; flows that others got meanwhile stay with them. */
	after = arcs_of(&f);
	for (size_t i = 0; i < after.count; i++) {
		const struct arc *a = &after.arc[i], *b = &before.arc[arcs_find(&before, a->last)];

		assert_int_equal(a->owner, b->owner);
		assert_int_equal(a->moved, !strcmp(case_pool(f.i.running, "web")->backend[a->owner].name, name));
	}
	arcs_free(&before);
	arcs_free(&after);
	end(&f);
}

/* What others may change meanwhile, without knowing of health, leaves it as it is. */
static void test_stays(void **state)
{
	struct fixture f;
	struct case_config older;
	char digest[33];

	(void)state;
	start(&f);
	older = f.c;
	say(&f, 0, HEALTH_DOWN, HEALTH_CUT, 1);
	say(&f, 2, HEALTH_UP, HEALTH_USED, 0.25);
	commit(&f, 2);
	f.i.health = NULL;
	f.i.watched = false;
	f.c.pool[0].backend[1].weight = 5;
	case_apply(&f.i, &f.c);
	assert_int_equal(backend(&f, f.c.pool[0].backend[0].name)->use, HEALTH_CUT);
	assert_int_equal(backend_points(backend(&f, f.c.pool[0].backend[2].name)), 25);
	strcpy(digest, f.i.running->digest);
	case_apply(&f.i, &older); /* a rollback */
	assert_string_not_equal(f.i.running->digest, digest);
	assert_int_equal(backend(&f, f.c.pool[0].backend[0].name)->use, HEALTH_CUT);
	/* Without a check nobody is ill. */
	f.c.pool[0].check = NULL;
	case_apply(&f.i, &f.c);
	for (size_t i = 0; i < 3; i++) {
		const struct state_backend *b = backend(&f, f.c.pool[0].backend[i].name);

		assert_int_equal(b->health, HEALTH_UNCHECKED);
		assert_int_equal(b->use, HEALTH_USED);
		assert_int_equal(b->withheld, 0);
	}
	assert_string_equal(f.i.running->digest, f.i.running->effective_digest);
	end(&f);
}

static void test_slow_start(void **state)
{
	struct fixture f;
	uint64_t all, last = 0;

	(void)state;
	start(&f);
	all = share(&f, 1);
	say(&f, 1, HEALTH_DOWN, HEALTH_CUT, 1);
	commit(&f, 1);
	say(&f, 1, HEALTH_UP, HEALTH_USED, 0);
	commit(&f, 1);
	assert_int_equal(backend_points(backend(&f, f.c.pool[0].backend[1].name)), 1);
	for (int twentieth = 1; twentieth <= 20; twentieth++) {
		say(&f, 1, HEALTH_UP, HEALTH_USED, twentieth / 20.0);
		commit(&f, 1);
		assert_int_equal(backend_points(backend(&f, f.c.pool[0].backend[1].name)), 200 * twentieth / 20);
		assert_true(share(&f, 1) > last);
		last = share(&f, 1);
	}
	assert_int_equal(last, all);
	end(&f);
}

/* Only where someone checks it does a new backend wait, and only where others are there. */
static void test_new_ones_wait(void **state)
{
	struct fixture f;
	const struct state_backend *b;

	(void)state;
	start(&f);
	case_backend_add(&f.c.pool[0], 1);
	case_apply(&f.i, &f.c);
	b = backend(&f, f.c.pool[0].backend[3].name);
	assert_int_equal(b->use, HEALTH_WAITS);
	assert_int_equal(b->health, HEALTH_DOWN);
	assert_true(backend_alive(b));
	assert_int_equal(share(&f, 3), 0);
	learn(&f);
	say(&f, 3, HEALTH_UP, HEALTH_USED, 1);
	commit(&f, 1);
	assert_true(share(&f, 3) > 0);
	/* Back from maint it waits, too. */
	f.c.pool[0].backend[0].state = "maint";
	case_apply(&f.i, &f.c);
	assert_int_equal(backend(&f, f.c.pool[0].backend[0].name)->health, HEALTH_UNCHECKED);
	learn(&f);
	f.c.pool[0].backend[0].state = "up";
	case_apply(&f.i, &f.c);
	assert_int_equal(backend(&f, f.c.pool[0].backend[0].name)->use, HEALTH_WAITS);
	/* All are new: better one that nobody has checked than none. */
	f.c.pool[0].backends = 0;
	case_backend_add(&f.c.pool[0], 1);
	case_apply(&f.i, &f.c);
	assert_int_equal(backend(&f, f.c.pool[0].backend[0].name)->use, HEALTH_USED);
	/* Nobody checks. */
	f.i.watched = false;
	case_backend_add(&f.c.pool[0], 1);
	case_apply(&f.i, &f.c);
	assert_int_equal(backend(&f, f.c.pool[0].backend[1].name)->use, HEALTH_USED);
	end(&f);
}

/* A service's own table follows its pool's health. */
static void test_own_table(void **state)
{
	struct fixture f;
	const struct state_pool *own;

	(void)state;
	start(&f);
	f.c.service[0].pool = 1;
	case_apply(&f.i, &f.c);
	f.c.service[0].pool = 0;
	case_apply(&f.i, &f.c);
	assert_int_equal(f.i.running->owns, 1);
	learn(&f);
	say(&f, 1, HEALTH_DOWN, HEALTH_CUT, 1);
	commit(&f, 1);
	own = &f.i.running->own[0].table;
	for (size_t i = 0; i < own->arcs.count; i++) {
		const struct arc *a = &own->arcs.arc[i];

		assert_string_not_equal(own->backend[a->owner].name, f.c.pool[0].backend[1].name);
		assert_string_not_equal(own->backend[a->previous].name, f.c.pool[0].backend[1].name);
	}
	end(&f);
}

/* All are down and used all the same: said, without a table built anew. */
static void test_only_said(void **state)
{
	struct fixture f;
	struct plan p;

	(void)state;
	start(&f);
	for (size_t i = 0; i < 3; i++)
		say(&f, i, HEALTH_DOWN, HEALTH_USED, 1);
	case_plan_good(&f.i, &f.c, false, &p);
	assert_int_equal(case_count(&p, PLAN_HEALTH), 3);
	assert_int_equal(case_count(&p, PLAN_TABLE_BUILD), 0);
	plan_free(&p);
	commit(&f, 3);
	assert_int_equal(state_pool_healthy(case_pool(f.i.running, "web")), 0);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_down_and_up), cmocka_unit_test(test_stays),
		cmocka_unit_test(test_slow_start),  cmocka_unit_test(test_new_ones_wait),
		cmocka_unit_test(test_own_table),   cmocka_unit_test(test_only_said),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
