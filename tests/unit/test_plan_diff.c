// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What moves, from whom to whom, and what must: held against sums made in another way. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "plan_case.h"
#include "quick.h"
#include "random_pool.h"

#define NOBODY 0xffffu

/* A backend as a number: those of the old pool, then those of the new that the old has not. */
static uint16_t who(const struct state_pool *old, const struct state_pool *next, uint16_t owner)
{
	if (owner >= next->backends)
		return NOBODY;
	for (size_t i = 0; i < old->backends; i++) {
		if (backend_same(&old->backend[i], &next->backend[owner]))
			return (uint16_t)i;
	}
	return (uint16_t)(old->backends + owner);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

#define WHO_MAX (4 * CASE_BACKENDS)

struct sums {
	uint64_t moved, pair[WHO_MAX][WHO_MAX], before[WHO_MAX], after[WHO_MAX];
};

/* Asks for the owner at every position where either ring may change it. */
static void sum_up(const struct state_pool *old, const struct state_pool *next, struct sums *s)
{
	size_t count = old->arcs.count + next->arcs.count;
	uint32_t *end = xcalloc(count, sizeof(*end));
	uint64_t start = 0;

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < old->arcs.count; i++)
		end[i] = old->arcs.arc[i].last;
	for (size_t i = 0; i < next->arcs.count; i++)
		end[old->arcs.count + i] = next->arcs.arc[i].last;
	qsort(end, count, sizeof(*end), by_value);
	for (size_t i = 0; i < count; i++) {
		uint64_t length = end[i] + 1ull - start;
		uint16_t from = old->arcs.arc[arcs_find(&old->arcs, end[i])].owner;
		uint16_t to = who(old, next, next->arcs.arc[arcs_find(&next->arcs, end[i])].owner);

		from = from >= old->backends ? WHO_MAX - 1 : from;
		to = to == NOBODY ? WHO_MAX - 1 : to;
		s->before[from] += length;
		s->after[to] += length;
		if (from != to) {
			s->moved += length;
			s->pair[from][to] += length;
		}
		start = end[i] + 1ull;
	}
	assert_int_equal(start, 1ull << 32);
	free(end);
}

static uint64_t distance(const struct sums *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < WHO_MAX; i++)
		sum += s->before[i] > s->after[i] ? s->before[i] - s->after[i] : s->after[i] - s->before[i];
	return sum;
}

static int by_length(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

/* The lengths of the moves, largest first, are those of the pairs. */
static void assert_moves(const struct plan_pool *p, const struct sums *s)
{
	static uint64_t length[WHO_MAX * WHO_MAX];
	uint64_t sum = 0;

	memcpy(length, s->pair, sizeof(length));
	qsort(length, WHO_MAX * WHO_MAX, sizeof(*length), by_length);
	assert_int_equal(length[p->moves], 0);
	for (size_t i = 0; i < p->moves; i++) {
		assert_int_equal(p->move[i].length, length[i]);
		assert_string_not_equal(p->move[i].from, p->move[i].to);
		for (size_t j = 0; j < i; j++)
			assert_false(!strcmp(p->move[i].from, p->move[j].from) &&
				     !strcmp(p->move[i].to, p->move[j].to));
		sum += p->move[i].length;
	}
	assert_int_equal(sum, p->moved);
}

static void assert_diff(const struct state *running, const struct plan *p, bool exact)
{
	static struct sums s;

	for (size_t i = 0; i < p->next->pools; i++) {
		const struct state_pool *next = &p->next->pool[i], *old = case_pool(running, next->name);
		const struct plan_pool *out = case_plan_pool(p, next->name);

		if (!old || !old->arcs.count || !next->arcs.count) {
			assert_int_equal(out->moved, 0);
			continue;
		}
		sum_up(old, next, &s);
		assert_int_equal(out->moved, s.moved);
		assert_int_equal(out->minimum_twice, distance(&s));
		assert_true(2 * out->moved >= out->minimum_twice);
		if (exact)
			assert_int_equal(2 * out->moved, out->minimum_twice);
		assert_moves(out, &s);
	}
}

static void one_change(struct case_pool *p)
{
	size_t i = random_below((uint32_t)p->backends);

	switch (random_below(4)) {
	case 0:
		if (p->backends < CASE_BACKENDS)
			case_backend_add(p, 1 + random_below(9));
		break;
	case 1:
		case_backend_remove(p, i);
		break;
	case 2:
		p->backend[i].weight = 1 + random_below(9);
		break;
	default:
		p->backend[i].points = 1 + random_below(400);
	}
}

/* A change of one backend moves what must move, to the position, and only to or from it. */
static void test_minimum(void **state)
{
	LEAVE_IF_QUICK();
	(void)state;
	for (int round = 0; round < 120; round++) {
		struct case_config c = { .key = '1', .interfaces = "eth0", .more = "" };
		struct case_pool *pool = case_pool_add(&c, 2 + random_below(CASE_BACKENDS - 2));
		struct case_instance i;
		struct plan p;

		pool->vnodes = 1 + random_below(150);
		if (random_below(2)) {
			case_service_add(&c, 0);
			c.service[0].protocol = random_below(2) ? "tcp" : "udp";
		}
		case_instance_init(&i);
		case_apply(&i, &c);
		one_change(pool);
		case_plan_good(&i, &c, true, &p);
		assert_diff(i.running, &p, true);
		plan_free(&p);
		case_instance_free(&i);
	}
}

/* Whatever changes, also while earlier changes have not settled. */
static void test_sums(void **state)
{
	(void)state;
	for (int round = 0; round < 25; round++) {
		struct case_config c = case_random();
		struct case_instance i;

		case_instance_init(&i);
		for (int commits = 0; commits < 8; commits++) {
			struct plan p;

			case_plan_good(&i, &c, true, &p);
			if (i.running)
				assert_diff(i.running, &p, false);
			case_commit(&i, &p);
			plan_free(&p);
			i.now += random_below(1000);
			case_change(&c);
		}
		case_instance_free(&i);
	}
}

/* Two backends of a point each: what the shares are can be told from the points. */
static void test_by_hand(void **state)
{
	struct case_config c = { .key = '1', .interfaces = "eth0", .more = "" };
	struct case_pool *pool = case_pool_add(&c, 0);
	const struct plan_pool *out;
	uint32_t web, new;
	struct case_instance i;
	struct plan p;

	(void)state;
	pool->vnodes = 1;
	case_backend_add(pool, 1);
	strcpy(pool->backend[0].name, "web-1");
	case_instance_init(&i);
	case_apply(&i, &c);
	case_backend_add(pool, 1);
	strcpy(pool->backend[1].name, "web-2");
	case_plan_good(&i, &c, false, &p);
	web = ring_point("web-1", 0);
	new = ring_point("web-2", 0);
	out = &p.pool[0];
	/* The new one's positions are those from behind the old one's point up to its own. */
	assert_int_equal(out->moved, (uint32_t)(new - web));
	assert_int_equal(out->minimum_twice, 2 * out->moved);
	assert_int_equal(out->moves, 1);
	assert_string_equal(out->move[0].from, "web-1");
	assert_string_equal(out->move[0].to, "web-2");
	plan_free(&p);
	case_instance_free(&i);
}

/* Both names alike: the addresses tell the two apart. */
static void test_names(void **state)
{
	struct case_config c = { .key = '1', .interfaces = "eth0", .more = "" };
	struct case_pool *pool = case_pool_add(&c, 1);
	struct case_instance i;
	struct plan p;

	(void)state;
	strcpy(pool->backend[0].name, "web");
	pool->backend[0].address = 2;
	case_instance_init(&i);
	case_apply(&i, &c);
	pool->backend[0].address = 3;
	case_plan_good(&i, &c, false, &p);
	assert_int_equal(p.pool[0].moved, 1ull << 32);
	assert_int_equal(p.pool[0].minimum_twice, 2ull << 32);
	assert_int_equal(p.pool[0].moves, 1);
	assert_string_equal(p.pool[0].move[0].from, "web (10.0.0.2)");
	assert_string_equal(p.pool[0].move[0].to, "web (fd00::3)");
	plan_free(&p);
	case_instance_free(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_minimum),
		cmocka_unit_test(test_sums),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
