// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters that no map keeps go on across processes; and whether a service is ready. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ready.h"
#include "totals.h"

struct place {
	char dir[64];
	struct instance instance;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	const char *tmp = getenv("TMPDIR");

	snprintf(p->dir, sizeof(p->dir), "%.40s/totals-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	assert_non_null(mkdtemp(p->dir));
	p->instance = (struct instance){ .name = (char *)"x", .run_dir = p->dir };
	*state = p;
	return 0;
}

/* Nothing may be left in the directory. */
static int teardown(void **state)
{
	struct place *p = *state;

	totals_remove(&p->instance);
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

static void test_commits(void **state)
{
	struct place *p = *state;
	struct totals_commits c;

	totals_commits_read(&p->instance, &c);
	for (size_t i = 0; i < TOTALS_BUCKETS; i++)
		assert_int_equal(c.count[i], 0);
	totals_commit(&p->instance, 0.005, true);
	totals_commit(&p->instance, 0.006, true);
	totals_commit(&p->instance, 60, true);
	totals_commit(&p->instance, 60, false);
	totals_commits_read(&p->instance, &c);
	assert_int_equal(c.count[0], 1);
	assert_int_equal(c.count[1], 1);
	assert_int_equal(c.count[TOTALS_BUCKETS - 1], 1);
	assert_int_equal(c.failed, 1);
	assert_true(c.seconds > 60.0109 && c.seconds < 60.0111);
}

static void expect(const struct totals *t, const struct health_backend *b, uint64_t ups, uint64_t downs)
{
	uint64_t up, down;

	totals_get(t, "web", b, &up, &down);
	assert_int_equal(up, ups);
	assert_int_equal(down, downs);
}

static void test_health(void **state)
{
	struct place *p = *state;
	struct health_backend b = { .id = 1, .name = (char *)"a", .identity = (char *)"a", .ups = 2, .downs = 3 };
	struct health_pool pool = { .name = (char *)"web", .backend = &b, .backends = 1 };
	struct health h = { .pool = &pool, .pools = 1 };
	struct totals t;

	totals_open(&t, &p->instance);
	totals_update(&t, &h);
	totals_update(&t, &h);
	expect(&t, &b, 2, 3);
	b.downs = 4;
	totals_update(&t, &h);
	expect(&t, &b, 2, 4);
	/* gone, and back as another one */
	pool.backends = 0;
	totals_update(&t, &h);
	pool.backends = 1;
	b = (struct health_backend){ .id = 2, .name = b.name, .identity = b.identity, .downs = 1 };
	totals_update(&t, &h);
	expect(&t, &b, 2, 5);
	/* killed: what was told is kept */
	totals_close(&t);
	totals_open(&t, &p->instance);
	b = (struct health_backend){ .id = 1, .name = b.name, .identity = b.identity };
	totals_update(&t, &h);
	expect(&t, &b, 2, 5);
	b.ups = 1;
	totals_update(&t, &h);
	expect(&t, &b, 3, 5);
	totals_close(&t);
}

/* A file that somebody else wrote, or half of one, is none. */
static void test_damaged(void **state)
{
	struct place *p = *state;
	char path[80];
	struct totals_commits c;
	FILE *f;

	snprintf(path, sizeof(path), "%s/x.commits", p->dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("{\"counts\": [1, \"x\"", f);
	fclose(f);
	totals_commit(&p->instance, 2, true);
	totals_commits_read(&p->instance, &c);
	assert_int_equal(c.count[0], 0);
	assert_int_equal(c.count[8], 1);
}

static void test_ready(void **state)
{
	struct config_pool cp = { .name = (char *)"web", .quorum = 2 };
	struct config_service cs = { .name = (char *)"www", .pool = 0 };
	struct config c = { .pool = &cp, .pools = 1, .service = &cs, .services = 1 };
	struct state_backend b[] = { { .state = BACKEND_UP }, { .state = BACKEND_UP }, { .state = BACKEND_MAINT } };
	struct state_pool sp = { .name = cp.name, .backend = b, .backends = 3 };
	struct state s = { .config = &c, .pool = &sp, .pools = 1 };
	struct config_check check = { 0 };
	struct health_pool hp = { .name = cp.name, .check = &check, .takers = 2, .healthy = 1 };
	struct health h = { .pool = &hp, .pools = 1 };
	struct plan_interface v = { .name = "eth0", .attached = true, .alive = true };
	char reason[READY_REASON];

	(void)state;
	assert_true(service_ready(&s, 0, &v, 1, NULL, reason));
	assert_string_equal(reason, "2 of 2 backends of web are up, quorum 2");
	assert_false(service_ready(&s, 0, &v, 1, &h, reason));
	assert_string_equal(reason, "1 of 2 backends of web is healthy, quorum 2");
	hp.healthy = 2;
	assert_true(service_ready(&s, 0, &v, 1, &h, NULL));
	/* none healthy is never enough, whatever the quorum */
	cp.quorum = 0;
	hp.healthy = 0;
	assert_false(service_ready(&s, 0, &v, 1, &h, NULL));
	cp.quorum = 2;
	b[0].state = BACKEND_DRAIN;
	assert_false(service_ready(&s, 0, &v, 1, NULL, reason));
	assert_string_equal(reason, "1 of 1 backend of web is up, quorum 2");
	b[1].state = BACKEND_DRAIN;
	assert_false(service_ready(&s, 0, &v, 1, NULL, reason));
	assert_string_equal(reason, "no backend of web takes flows");
	v.alive = false;
	assert_false(service_ready(&s, 0, &v, 1, NULL, reason));
	assert_string_equal(reason, "interface eth0 is missing");
	assert_false(service_ready(&s, 0, NULL, 0, NULL, reason));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_commits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_health, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test(test_ready),
	};

	return cmocka_run_group_tests_name("totals", tests, NULL, NULL);
}
