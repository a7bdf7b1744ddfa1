// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Properties of the placements, over random pools: what moves on a change, order, shares; and what each refuses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "../../include/source_hash.h"
#include "placement.h"
#include "placement_rendezvous.h"
#include "random_pool.h"
#include "sort.h"

#define ROUNDS 25
#define SLOW_ROUNDS 1 /* of rendezvous, which hashes a million and a half times for a pool */
#define MEMBERS 24
#define CIRCLE 4294967296.0

/* A pool of MEMBERS, of which those with weight 0 are not there. */
struct pool {
	struct placement_member member[MEMBERS];
	char identity[MEMBERS][32];
};

static const char *const for_services[] = { "ring", "maglev", "rendezvous", "nginx", "haproxy" };
/* Those in which a change moves no more than it must. */
static const char *const minimal[] = { "ring", "nginx", "haproxy", "rendezvous" };
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void give_weight(struct placement_member *m, uint32_t weight)
{
	m->weight = weight;
	m->points = weight * 40;
}

static void pool_random(struct pool *pool)
{
	uint32_t id = 0;

	for (size_t i = 0; i < MEMBERS; i++) {
		struct placement_member *m = &pool->member[i];

		snprintf(pool->identity[i], sizeof(pool->identity[i]), "10.%u.%u.%zu:%u", random_below(256),
			 random_below(256), i, 1 + random_below(65535));
		id += 1 + random_below(1000);
		*m = (struct placement_member){ .identity = pool->identity[i], .id = id };
		give_weight(m, random_below(4) ? 1 + random_below(5) : 0);
	}
	give_weight(&pool->member[0], 1); /* never without any */
}

static void build(const struct placement *p, const struct placement_member *member, size_t members, struct arcs *arcs)
{
	struct placement_pool pool = { member, members, 4099 };
	char *why;
	int err = placement_build(p, &pool, arcs, NULL, &why);

	if (err)
		fail_msg("%s: %s", p->name, why ? why : strerror(-err));
}

static bool too_slow(const struct placement *p, unsigned int round)
{
	return round >= SLOW_ROUNDS && !strcmp(p->name, "rendezvous");
}

/* Positions whose owner differs; *strangers those of them that `who` neither had nor has. */
static uint64_t moved(const struct arcs *a, const struct arcs *b, uint16_t who, uint64_t *strangers)
{
	uint64_t sum = 0, start = 0;
	size_t i = 0, j = 0;

	*strangers = 0;
	while (i < a->count && j < b->count) {
		const struct arc *x = &a->arc[i], *y = &b->arc[j];
		uint64_t end = (x->last < y->last ? x->last : y->last) + 1ull;

		if (x->owner != y->owner)
			sum += end - start;
		if (x->owner != y->owner && x->owner != who && y->owner != who)
			*strangers += end - start;
		start = end;
		i += x->last + 1ull == end;
		j += y->last + 1ull == end;
	}
	return sum;
}

static uint64_t distance(const struct arcs *a, const struct arcs *b)
{
	uint64_t before[MEMBERS], after[MEMBERS], sum = 0;

	arcs_shares(a, before, MEMBERS);
	arcs_shares(b, after, MEMBERS);
	for (size_t i = 0; i < MEMBERS; i++)
		sum += before[i] > after[i] ? before[i] - after[i] : after[i] - before[i];
	return sum;
}

static void check_change(const struct placement *p, const struct pool *pool, size_t who, uint32_t weight)
{
	struct pool changed = *pool;
	uint64_t strangers, sum;
	struct arcs before, after;

	for (size_t i = 0; i < MEMBERS; i++)
		changed.member[i].identity = changed.identity[i];
	give_weight(&changed.member[who], weight);
	build(p, pool->member, MEMBERS, &before);
	build(p, changed.member, MEMBERS, &after);
	sum = moved(&before, &after, (uint16_t)who, &strangers);
	assert_int_equal(strangers, 0);
	/* Nothing but what the shares ask for; so it went one way only, to the newcomer or from the leaver. */
	assert_int_equal(2 * sum, distance(&before, &after));
	arcs_free(&before);
	arcs_free(&after);
}

static void test_minimal_movement(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct pool pool;

		pool_random(&pool);
		for (size_t i = 0; i < COUNT(minimal); i++) {
			const struct placement *p = placement_find(minimal[i]);
			size_t who = 1 + random_below(MEMBERS - 1);

			if (too_slow(p, round))
				continue;
			give_weight(&pool.member[who], 0);
			check_change(p, &pool, who, 1 + random_below(5)); /* comes */
			give_weight(&pool.member[who], 1 + random_below(5));
			check_change(p, &pool, who, 0);                   /* goes */
			check_change(p, &pool, who, 1 + random_below(9)); /* has another weight */
		}
	}
}

/* Whatever the order of the members, the same identities own the same arcs. */
static void test_order(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct placement_member turned[MEMBERS];
		struct pool pool;

		pool_random(&pool);
		memcpy(turned, pool.member, sizeof(turned));
		for (size_t i = MEMBERS; i > 1; i--) {
			size_t j = random_below((uint32_t)i);
			struct placement_member swap = turned[i - 1];

			turned[i - 1] = turned[j];
			turned[j] = swap;
		}
		for (size_t i = 0; i < COUNT(for_services); i++) {
			const struct placement *p = placement_find(for_services[i]);
			struct arcs a, b;

			if (too_slow(p, round))
				continue;
			build(p, pool.member, MEMBERS, &a);
			build(p, turned, MEMBERS, &b);
			assert_int_equal(a.count, b.count);
			for (size_t k = 0; k < a.count; k++) {
				assert_int_equal(a.arc[k].last, b.arc[k].last);
				assert_ptr_equal(pool.member[a.arc[k].owner].identity, turned[b.arc[k].owner].identity);
			}
			arcs_free(&a);
			arcs_free(&b);
		}
	}
}

static double deviation(unsigned int members, unsigned int points)
{
	return sqrt((members - 1.0) / (members * (double)points + 1));
}

/*
 * The share of a member among N with V random points each has the relative standard deviation
 * sqrt((N - 1) / (N * V + 1)). One share in some 10,000 may lie beyond 4 of them: of the 400 here 3 or more do so in
 * one run of ten thousand at most. Beyond 7 lies none.
 */
static void test_shares(void **state)
{
	const unsigned int members = 20, points = 400;
	unsigned int far = 0;

	(void)state;
	assert_true(fabs(deviation(10, 1) - 0.9045340337332909) < 1e-12);
	assert_true(fabs(deviation(10, 1000) - 0.029998500112490625) < 1e-12);
	for (unsigned int round = 0; round < 20; round++) {
		struct pool pool;
		uint64_t length[MEMBERS];
		struct arcs arcs;

		pool_random(&pool);
		for (size_t i = 0; i < MEMBERS; i++) {
			pool.member[i].weight = i < members;
			pool.member[i].points = points;
		}
		build(placement_find("ring"), pool.member, MEMBERS, &arcs);
		arcs_shares(&arcs, length, MEMBERS);
		for (size_t i = 0; i < members; i++) {
			double off = fabs((double)length[i] * members / CIRCLE - 1) / deviation(members, points);

			far += off > 4;
			assert_true(off < 7);
		}
		arcs_free(&arcs);
	}
	assert_in_range(far, 0, 2);
}

#define NODES (16 * MEMBERS)

/* HAProxy's rule as it says it itself: the nearer of the nodes before and behind, on a tie the one before. */
static size_t nearest(const uint64_t *node, size_t n, uint32_t position)
{
	size_t next = 0, before;

	while (next < n && (uint32_t)(node[next] >> 32) < position)
		next++;
	next = next < n ? next : 0;
	before = next ? next - 1 : n - 1;
	if ((uint32_t)(position - (uint32_t)(node[before] >> 32)) <=
	    (uint32_t)((uint32_t)(node[next] >> 32) - position))
		return (uint16_t)node[before];
	return (uint16_t)node[next];
}

/* At each node, in the middle between two, and beside these. */
static void test_haproxy_nearest(void **state)
{
	uint64_t node[2 * NODES], *sorted;
	struct pool pool;
	struct arcs arcs;
	size_t n = 0;

	(void)state;
	pool_random(&pool);
	for (size_t i = 0; i < MEMBERS; i++) {
		pool.member[i].weight = 1;
		for (uint32_t j = 0; j < 16; j++)
			node[n++] = (uint64_t)ringlb_avalanche(pool.member[i].id * 4096 + j) << 32 | i;
	}
	sorted = sort_by_upper32(node, node + NODES, n);
	build(placement_find("haproxy"), pool.member, MEMBERS, &arcs);
	for (size_t i = 0; i < n; i++) {
		uint32_t at = (uint32_t)(sorted[i] >> 32), next = (uint32_t)(sorted[(i + 1) % n] >> 32);

		for (uint32_t off = 0; off < 5; off++) {
			uint32_t middle = at + (next - at) / 2 + off - 2, beside = at + off - 2;

			assert_int_equal(arcs.arc[arcs_find(&arcs, middle)].owner, nearest(sorted, n, middle));
			assert_int_equal(arcs.arc[arcs_find(&arcs, beside)].owner, nearest(sorted, n, beside));
		}
	}
	arcs_free(&arcs);
}

/* Weighted shares of the table-like placements are those of the weights, as nearly as their slots allow. */
static void test_turns(void **state)
{
	const struct placement_member member[] = { { "a", 1, 0, 0 }, { "b", 2, 0, 0 }, { "c", 4, 0, 0 } };
	const struct placement_pool pool = { member, 3, 65537 };
	uint32_t points[3];
	struct arcs arcs;
	char *why;

	(void)state;
	assert_int_equal(placement_build(placement_find("maglev"), &pool, &arcs, points, &why), 0);
	assert_int_equal(points[0] + points[1] + points[2], 65537);
	for (size_t i = 0; i < 3; i++)
		assert_true(fabs(points[i] - 65537.0 * member[i].weight / 7) <= 2);
	arcs_free(&arcs);
	assert_int_equal(placement_build(placement_find("rendezvous"), &pool, &arcs, points, &why), 0);
	assert_int_equal(points[0] + points[1] + points[2], 65536);
	/* Each slot a draw: five deviations of the binomial. */
	for (size_t i = 0; i < 3; i++)
		assert_true(fabs(points[i] - 65536.0 * member[i].weight / 7) < 5 * sqrt(65536 * 0.25));
	arcs_free(&arcs);
}

/* Against libm, whose logarithm is good to a unit in the last place of a double. */
static void test_logarithm(void **state)
{
	struct rendezvous_logs *logs = rendezvous_logs_new();

	(void)state;
	assert_non_null(logs);
	for (unsigned int i = 0; i < 100000; i++) {
		uint64_t hash = random_u64() >> random_below(64);
		double wanted = 64 - (double)log2l((long double)(hash ? hash : 1));

		assert_true(fabs((double)rendezvous_distance(logs, hash) / (double)(1ull << 40) - wanted) <
			    1.0 / (1 << 24));
	}
	assert_true(rendezvous_distance(logs, 0) == 64ull << 40);
	assert_true(rendezvous_distance(logs, UINT64_MAX) > 0);
	free(logs);
}

static void assert_refused(const char *placement, const struct placement_pool *pool, const char *reason)
{
	struct arcs arcs;
	char *why;

	assert_int_equal(placement_build(placement_find(placement), pool, &arcs, NULL, &why), -EINVAL);
	assert_non_null(why);
	if (!strstr(why, reason))
		fail_msg("%s refuses with \"%s\", which doesn't say \"%s\"", placement, why, reason);
	free(why);
}

static void test_refusals(void **state)
{
	struct placement_member member[200];
	struct placement_pool pool = { member, 101, 65537 };
	static char identity[200][16];
	struct arcs arcs;
	char *why;

	(void)state;
	for (unsigned int i = 0; i < 200; i++) {
		snprintf(identity[i], sizeof(identity[i]), "b%u:80", i);
		member[i] = (struct placement_member){ identity[i], 1, 1, i + 1 };
	}
	assert_refused("ketama", &pool, "101 servers: libmemcached takes 100");
	member[100].weight = 0;
	assert_int_equal(placement_build(placement_find("ketama"), &pool, &arcs, NULL, &why), 0);
	arcs_free(&arcs);
	pool.members = 2;
	pool.maglev_size = 100;
	assert_refused("maglev", &pool, "prime, such as 97 or 101");
	pool.maglev_size = RINGLB_MAX_POINTS - 2;
	assert_refused("maglev", &pool, "1048573");
	member[1].weight = 257;
	assert_refused("haproxy", &pool, "256");
	member[1].weight = 1;
	member[1].id = 0;
	assert_refused("haproxy", &pool, "no id");
	member[1].id = 1 + (1 << 20);
	assert_refused("haproxy", &pool, "same nodes");
	member[1].weight = 65535;
	assert_refused("nginx", &pool, "lower the weights");
	assert_refused("slots",
		       &(struct placement_pool){ (const struct placement_member[]){
							 { "a", 65535, 0, 0 }, { "b", 1, 0, 0 }, { "c", 1, 0, 0 } },
						 3, 0 },
		       "no slot is left");
	member[1].identity = member[0].identity;
	assert_refused("ring", &pool, "two backends have the identity");
}

static void test_nobody(void **state)
{
	const struct placement_member none = { "a", 0, 5, 0 };
	const struct placement_pool pool = { &none, 1, 65537 };

	(void)state;
	for (size_t i = 0; i < placements_count; i++) {
		uint32_t points = 7;
		struct arcs arcs;
		char *why;

		assert_int_equal(placement_build(placements[i], &pool, &arcs, &points, &why), 0);
		assert_int_equal(arcs.count, 0);
		assert_int_equal(points, 0);
	}
}

/* One backend gets everything, in every placement. */
static void test_one(void **state)
{
	const struct placement_member one = { "10.0.0.1:80", 3, 5, 7 };
	const struct placement_pool pool = { &one, 1, 7 };

	(void)state;
	for (size_t i = 0; i < placements_count; i++) {
		struct arcs arcs;
		char *why;

		assert_int_equal(placement_build(placements[i], &pool, &arcs, NULL, &why), 0);
		assert_int_equal(arcs.count, 1);
		assert_int_equal(arcs.arc[0].last, UINT32_MAX);
		arcs_free(&arcs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_minimal_movement),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_haproxy_nearest),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_logarithm),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_one),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
