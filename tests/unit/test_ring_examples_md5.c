// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What tests/vectors/ring_examples.json says of rings whose points are MD5 hashes, of replicas, modulo, slots and
 * rendezvous, by its own rules: the hash of a text is the first 8 bytes of its MD5, and a position their upper half.
 * Each arc then is off by at most one position at each end.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <md5.h>
#include <cmocka.h>
#include <jansson.h>

#include "placement.h"
#include "placement_rendezvous.h"
#include "replicas.h"
#include "ring.h"
#include "sort.h"

#define CIRCLE 4294967296.0
#define KEYS 100000u
#define MEMBERS 10u

static json_t *examples;

static int load(void **state)
{
	const char *directory = getenv("RINGLB_VECTORS");
	char path[4096];
	json_error_t error;

	(void)state;
	snprintf(path, sizeof(path), "%s/ring_examples.json", directory ? directory : "tests/vectors");
	examples = json_load_file(path, 0, &error);
	if (!examples)
		fprintf(stderr, "%s: %s\n", path, error.text);
	return examples ? 0 : -1;
}

static int unload(void **state)
{
	(void)state;
	json_decref(examples);
	return 0;
}

static const json_t *get(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_non_null(value);
	return value;
}

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(get(object, key));
}

static double real(const json_t *object, const char *key)
{
	return json_number_value(get(object, key));
}

static uint64_t md5_be64(const char *text)
{
	uint8_t digest[MD5_DIGEST_LENGTH];
	uint64_t hash = 0;
	MD5_CTX context;

	MD5Init(&context);
	MD5Update(&context, (const uint8_t *)text, strlen(text));
	MD5Final(digest, &context);
	for (unsigned int i = 0; i < 8; i++)
		hash = hash << 8 | digest[i];
	return hash;
}

static uint32_t position_of(const char *text)
{
	return (uint32_t)(md5_be64(text) >> 32);
}

/* The ring of `members` names, which have points[i] points each, "NAME#0" and so on. */
static void build(const char *const *name, const uint32_t *points, size_t members, struct arcs *arcs)
{
	uint64_t *point;
	size_t n = 0;

	for (size_t i = 0; i < members; i++)
		n += points[i];
	point = calloc(2 * n, sizeof(*point));
	n = 0;
	for (size_t i = 0; i < members; i++) {
		for (uint32_t j = 0; j < points[i]; j++) {
			char text[64];

			snprintf(text, sizeof(text), "%s#%u", name[i], j);
			point[n++] = (uint64_t)position_of(text) << 32 | i;
		}
	}
	assert_int_equal(arcs_from_points(sort_by_upper32(point, point + n, n), n, arcs), 0);
	free(point);
}

static uint16_t owner_at(const struct arcs *arcs, uint32_t position)
{
	return arcs->arc[arcs_find(arcs, position)].owner;
}

static double share(const struct arcs *arcs, size_t owner)
{
	uint64_t length[MEMBERS];

	arcs_shares(arcs, length, MEMBERS);
	return (double)length[owner] / CIRCLE;
}

static void assert_near(double is, double wanted, double off)
{
	if (fabs(is - wanted) > off)
		fail_msg("%.12f is not within %g of %.12f", is, off, wanted);
}

static void test_vnode_points(void **state)
{
	const json_t *v;
	size_t i;

	(void)state;
	json_array_foreach(get(examples, "vnode_points"), i, v)
	{
		uint64_t hash = md5_be64(json_string_value(get(v, "name")));
		struct placement_key key;
		char text[32], *why;

		snprintf(text, sizeof(text), "%llu", (unsigned long long)hash);
		assert_string_equal(text, json_string_value(get(v, "be64")));
		snprintf(text, sizeof(text), "%016llx", (unsigned long long)hash);
		assert_memory_equal(text, json_string_value(get(v, "md5")), 16);
		assert_int_equal(hash >> 32, number(v, "be32"));
		/* ketama's key hash is the other end of the same bytes. */
		assert_int_equal(placement_key_hash(placement_find("ketama"), json_string_value(get(v, "name")),
						    strlen(json_string_value(get(v, "name"))), &key, &why),
				 0);
		assert_int_equal(key.hash, number(v, "le32"));
	}
	assert_int_equal(i, 16);
}

static void check_row(const json_t *row)
{
	const uint32_t v = (uint32_t)number(row, "v");
	char names[MEMBERS][16];
	const char *name[MEMBERS];
	uint32_t points[MEMBERS];
	uint64_t length[MEMBERS];
	double most = 0, least = INFINITY, off = 2.0 * v;
	struct arcs arcs;

	for (size_t i = 0; i < MEMBERS; i++) {
		snprintf(names[i], sizeof(names[i]), "node%zu", i);
		name[i] = names[i];
		points[i] = v;
	}
	build(name, points, MEMBERS, &arcs);
	arcs_shares(&arcs, length, MEMBERS);
	for (size_t i = 0; i < MEMBERS; i++) {
		double ratio = (double)length[i] * MEMBERS / CIRCLE;

		assert_near((double)length[i],
			    strtod(json_string_value(json_array_get(get(row, "arcs"), i)), NULL) / CIRCLE, off);
		assert_near(ratio, json_number_value(json_array_get(get(row, "ratios"), i)), off * MEMBERS / CIRCLE);
		most = fmax(most, ratio);
		least = fmin(least, ratio);
	}
	assert_near(round(most * 100) / 100, real(row, "max_2dp"), 1e-9);
	assert_near(round(least * 100) / 100, real(row, "min_2dp"), 1e-9);
	assert_int_equal(owner_at(&arcs, 0), json_integer_value(json_array_get(get(row, "first_point"), 1)));
	assert_int_equal(owner_at(&arcs, UINT32_MAX), json_integer_value(json_array_get(get(row, "first_point"), 1)));
	arcs_free(&arcs);
}

static void test_balance_table(void **state)
{
	const json_t *row;
	size_t i;

	(void)state;
	json_array_foreach(get(get(examples, "balance_table_md5_node_i"), "rows"), i, row) check_row(row);
	assert_int_equal(i, 4);
}

static void test_three_nodes(void **state)
{
	const char *const name[] = { "S1", "S2", "S3" };
	const uint32_t points[] = { 150, 150, 150 };
	const json_t *json = get(examples, "three_nodes_150"), *wanted;
	struct arcs arcs;
	const char *key;

	(void)state;
	build(name, points, 3, &arcs);
	for (size_t i = 0; i < 3; i++)
		assert_near(share(&arcs, i), real(get(json, "share"), name[i]), 300 / CIRCLE);
	json_object_foreach((json_t *)get(json, "owner"), key, wanted)
		assert_string_equal(name[owner_at(&arcs, position_of(key))], json_string_value(wanted));
	arcs_free(&arcs);
}

/* Of keys k0, k1, ...: how many change hands; in counts, who had and who has them. */
static size_t moved(const struct arcs *before, const struct arcs *after, size_t had[4], size_t has[4])
{
	size_t n = 0;

	memset(had, 0, 4 * sizeof(*had));
	memset(has, 0, 4 * sizeof(*has));
	for (unsigned int i = 0; i < KEYS; i++) {
		char text[16];
		uint16_t old, new;

		snprintf(text, sizeof(text), "k%u", i);
		old = owner_at(before, position_of(text));
		new = owner_at(after, position_of(text));
		if (old == new)
			continue;
		had[old]++;
		has[new]++;
		n++;
	}
	return n;
}

static void test_add_and_remove(void **state)
{
	const char *const name[] = { "S1", "S2", "S3", "S4" };
	const uint32_t points[] = { 150, 150, 150, 150 };
	const json_t *add = get(examples, "three_to_four_150"), *remove = get(examples, "three_remove_S3_150");
	struct arcs two, three, four;
	size_t had[4], has[4];

	(void)state;
	build(name, points, 2, &two);
	build(name, points, 3, &three);
	build(name, points, 4, &four);
	assert_int_equal(moved(&three, &four, had, has), number(add, "moved"));
	assert_int_equal(has[0] + has[1] + has[2], number(add, "moved_not_to_S4"));
	assert_near(share(&four, 3), real(add, "ring_share_S4"), 300 / CIRCLE);
	assert_int_equal(moved(&three, &two, had, has), number(remove, "moved"));
	assert_int_equal(had[2], number(remove, "owned_by_S3_before"));
	assert_int_equal(had[0] + had[1], number(remove, "moved_not_from_S3"));
	assert_int_equal(has[0], number(get(remove, "to"), "S1"));
	assert_int_equal(has[1], number(get(remove, "to"), "S2"));
	arcs_free(&two);
	arcs_free(&three);
	arcs_free(&four);
}

static void check_two(const json_t *json, const char *const name[2], const uint32_t points[2])
{
	struct arcs arcs;

	build(name, points, 2, &arcs);
	for (size_t i = 0; i < 2; i++)
		assert_near(share(&arcs, i), real(get(json, "share"), name[i]), 600 / CIRCLE);
	assert_near(share(&arcs, 0) / share(&arcs, 1), real(json, "ratio"), 1e-5);
	arcs_free(&arcs);
}

static void test_weights(void **state)
{
	(void)state;
	check_two(get(examples, "weights_300_100"), (const char *const[]){ "server-large", "server-small" },
		  (const uint32_t[]){ 300, 100 });
	check_two(get(examples, "memory_64_256"), (const char *const[]){ "m256", "m64" },
		  (const uint32_t[]){ 256, 64 });
}

/* The placement's arcs of so many members of weight 1, named A, B, C ... as far as that goes. */
static void build_placement(const char *placement, size_t members, struct arcs *arcs)
{
	struct placement_member *member = calloc(members, sizeof(*member));
	struct placement_pool pool = { .member = member, .members = members };
	char(*name)[16] = calloc(members, sizeof(*name)), *why;

	for (size_t i = 0; i < members; i++) {
		snprintf(name[i], sizeof(name[i]), i < 26 ? "%c" : "Z%d", i < 26 ? (int)('A' + i) : (int)i);
		member[i] = (struct placement_member){ .identity = name[i], .weight = 1 };
	}
	assert_int_equal(placement_build(placement_find(placement), &pool, arcs, NULL, &why), 0);
	free(name);
	free(member);
}

/* Of a hash of 20 bits, as `modulo` has them. */
static uint16_t owner_of_number(const struct arcs *arcs, unsigned int hash)
{
	return owner_at(arcs, hash << 12);
}

static void check_modulo_owners(const json_t *owners, size_t members)
{
	const json_t *hashes, *hash;
	struct arcs arcs;
	const char *name;
	size_t i;

	build_placement("modulo", members, &arcs);
	json_object_foreach((json_t *)owners, name, hashes) json_array_foreach(hashes, i, hash)
		assert_int_equal('A' + owner_of_number(&arcs, (unsigned int)json_integer_value(hash)), *name);
	arcs_free(&arcs);
}

static void check_modulo_change(size_t from, size_t to, json_int_t period, json_int_t moves)
{
	struct arcs before, after;
	json_int_t n = 0;

	build_placement("modulo", from, &before);
	build_placement("modulo", to, &after);
	for (unsigned int hash = 0; hash < (unsigned int)period; hash++)
		n += owner_of_number(&before, hash) != owner_of_number(&after, hash);
	assert_int_equal(n, moves);
	arcs_free(&before);
	arcs_free(&after);
}

static void test_modulo(void **state)
{
	const json_t *json = get(examples, "mod_n"), *user = get(examples, "user_1001"), *change;
	uint64_t hash = md5_be64("user:1001");
	char text[32];
	size_t i;

	(void)state;
	check_modulo_owners(get(json, "owner_before"), (size_t)number(json, "from"));
	check_modulo_owners(get(json, "owner_after"), (size_t)number(json, "to"));
	check_modulo_change((size_t)number(json, "from"), (size_t)number(json, "to"), 12, number(json, "moved_count"));
	json_array_foreach(get(examples, "mod_n_general"), i, change)
		check_modulo_change((size_t)number(change, "from"), (size_t)number(change, "to"),
				    number(change, "period"), number(change, "moved"));
	assert_int_equal(i, 5);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)hash);
	assert_string_equal(text, json_string_value(get(user, "md5_be64")));
	assert_int_equal(hash % 3, number(user, "mod3"));
	assert_int_equal(hash % 4, number(user, "mod4"));
}

static void test_redis(void **state)
{
	const json_t *json = get(examples, "redis"), *ranges = get(json, "ranges"), *k;
	const struct placement *slots = placement_find("slots");
	struct placement_key key;
	struct arcs arcs;
	char node[2] = "", *why;
	size_t i;

	(void)state;
	build_placement("slots", 3, &arcs);
	for (unsigned int slot = 0; slot < 16384; slot++) {
		const json_t *range;

		node[0] = (char)('A' + owner_at(&arcs, slot << 18));
		assert_int_equal(owner_at(&arcs, (slot << 18) + (1 << 18) - 1), node[0] - 'A');
		range = get(ranges, node);
		assert_in_range(slot, json_integer_value(json_array_get(range, 0)),
				json_integer_value(json_array_get(range, 1)));
	}
	json_array_foreach(get(json, "keys"), i, k)
	{
		const char *text = json_string_value(get(k, "key"));

		assert_int_equal(placement_key_hash(slots, text, strlen(text), &key, &why), 0);
		assert_int_equal(key.slot, number(k, "slot"));
		assert_int_equal('A' + owner_at(&arcs, key.position), json_string_value(get(k, "node"))[0]);
	}
	assert_int_equal(i, 14);
	assert_int_equal(placement_key_hash(slots, "123456789", 9, &key, &why), 0);
	assert_int_equal(key.hash, number(json, "check_123456789"));
	arcs_free(&arcs);
}

/* Hash h of a circle of 100 is the positions from h/100 to (h + 1)/100 of ours. */
static uint32_t first_of_hundred(json_int_t hash)
{
	return (uint32_t)((((uint64_t)hash << 32) + 99) / 100);
}

static void hundred(const json_t *points, struct arcs *arcs)
{
	const json_t *p;
	uint64_t point[16];
	size_t i;

	json_array_foreach(points, i, p)
		point[i] = (uint64_t)(first_of_hundred(json_integer_value(json_array_get(p, 0)) + 1) - 1) << 32 |
			   (uint64_t)(json_string_value(json_array_get(p, 1))[0] - 'A');
	assert_int_equal(arcs_from_points(point, json_array_size(points), arcs), 0);
}

static void assert_replicas(const struct arcs *arcs, uint32_t position, size_t wanted, const json_t *names)
{
	struct replicas r;
	uint16_t found[8];
	size_t i;
	const json_t *name;

	assert_int_equal(replicas_init(&r, arcs, 4, NULL, UINT16_MAX), 0);
	assert_int_equal(replicas_find(&r, position, wanted, found), json_array_size(names));
	json_array_foreach(names, i, name) assert_int_equal('A' + found[i], json_string_value(name)[0]);
	replicas_free(&r);
}

static void test_replicas(void **state)
{
	const json_t *json = get(examples, "replicas"), *skip = get(json, "skip_same_owner"), *pair;
	uint32_t at = first_of_hundred(number(skip, "hash"));
	struct arcs arcs;
	size_t i;

	(void)state;
	hundred(get(json, "ring_used_here"), &arcs);
	assert_replicas(&arcs, first_of_hundred(number(json, "hash")), 2, get(json, "r2"));
	arcs_free(&arcs);
	hundred(get(skip, "ring"), &arcs);
	assert_replicas(&arcs, at, 2, get(skip, "r2"));
	assert_replicas(&arcs, at, 3, get(skip, "r3"));
	assert_replicas(&arcs, at, 5, get(skip, "r5_only_three_exist"));
	arcs_free(&arcs);
	hundred(get(get(examples, "small_ring"), "points"), &arcs);
	json_array_foreach(get(json, "basic_ring_10_45_80"), i, pair)
		assert_replicas(&arcs, first_of_hundred(json_integer_value(json_array_get(pair, 0))), 2,
				json_array_get(pair, 1));
	assert_int_equal(i, 6);
	arcs_free(&arcs);
}

static void test_three_by_three(void **state)
{
	const json_t *json = get(examples, "three_by_three_md5"), *pair;
	struct arcs arcs;
	size_t i;

	(void)state;
	build((const char *const[]){ "A", "B", "C" }, (const uint32_t[]){ 3, 3, 3 }, 3, &arcs);
	json_array_foreach(get(json, "points_sorted"), i, pair)
	{
		uint32_t at = (uint32_t)(strtoull(json_string_value(json_array_get(pair, 0)), NULL, 10) >> 32);

		assert_int_equal('A' + owner_at(&arcs, at), json_string_value(json_array_get(pair, 1))[0]);
	}
	json_array_foreach(get(json, "replicas"), i, pair)
		assert_replicas(&arcs, position_of(json_string_value(json_array_get(pair, 0))), 3,
				json_array_get(pair, 1));
	assert_int_equal(i, 4);
	arcs_free(&arcs);
}

/* The best of the nodes whose letters are in `nodes`, and of equal weight, for a key. */
static char winner(const struct rendezvous_logs *logs, const char *nodes, const char *key)
{
	uint64_t best = 0;
	char who = 0;

	for (; *nodes; nodes++) {
		char text[64];
		uint64_t distance;

		snprintf(text, sizeof(text), "%c:%s", *nodes, key);
		distance = rendezvous_distance(logs, md5_be64(text));
		if (who && !rendezvous_beats(distance, 1, best, 1))
			continue;
		best = distance;
		who = *nodes;
	}
	return who;
}

static void check_order(const struct rendezvous_logs *logs, const json_t *order, const char *key)
{
	char left[8] = "ABCD";
	const json_t *node;
	size_t i;

	json_array_foreach(order, i, node)
	{
		char first = winner(logs, left, key), *at = strchr(left, first);

		assert_int_equal(first, json_string_value(node)[0]);
		memmove(at, at + 1, strlen(at));
	}
	assert_int_equal(i, 4);
}

static void test_rendezvous(void **state)
{
	const json_t *json = get(examples, "rendezvous"), *many = get(json, "k0..k99999"), *row;
	struct rendezvous_logs *logs = rendezvous_logs_new();
	size_t load_of[4] = { 0 }, moves = 0, elsewhere = 0, i;

	(void)state;
	assert_non_null(logs);
	json_array_foreach(get(json, "table"), i, row)
	{
		const char *key = json_string_value(get(row, "key"));

		assert_int_equal(winner(logs, "ABC", key), json_string_value(get(row, "ABC"))[0]);
		assert_int_equal(winner(logs, "ABCD", key), json_string_value(get(row, "ABCD"))[0]);
		assert_int_equal(winner(logs, "AC", key), json_string_value(get(row, "AC"))[0]);
		check_order(logs, get(row, "order_ABCD"), key);
	}
	assert_int_equal(i, 20);
	for (unsigned int k = 0; k < KEYS; k++) {
		char key[16], three, four;

		snprintf(key, sizeof(key), "k%u", k);
		three = winner(logs, "ABC", key);
		four = winner(logs, "ABCD", key);
		load_of[three - 'A']++;
		moves += three != four;
		elsewhere += three != four && four != 'D';
	}
	assert_int_equal(moves, number(many, "moved_3_to_4"));
	assert_int_equal(elsewhere, number(many, "moved_not_to_D"));
	for (i = 0; i < 3; i++)
		assert_int_equal(load_of[i], number(get(many, "load_ABC"), (const char *const[]){ "A", "B", "C" }[i]));
	free(logs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vnode_points),   cmocka_unit_test(test_balance_table),
		cmocka_unit_test(test_three_nodes),    cmocka_unit_test(test_add_and_remove),
		cmocka_unit_test(test_weights),        cmocka_unit_test(test_modulo),
		cmocka_unit_test(test_redis),          cmocka_unit_test(test_replicas),
		cmocka_unit_test(test_three_by_three), cmocka_unit_test(test_rendezvous),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
