// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every pair of tests/vectors/nginx.json, haproxy_source.json and ketama.json, which were observed on the real systems.
 * Read from the directory of the sources, where the tests run, or RINGLB_VECTORS.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <jansson.h>

#include "../../include/source_hash.h"
#include "placement.h"

struct set {
	struct placement_member *member;
	const char **server; /* what the vectors call it */
	uint32_t *points;
	size_t members;
	struct arcs arcs;
};

static json_t *load(const char *file)
{
	const char *directory = getenv("RINGLB_VECTORS");
	json_error_t error;
	char path[4096];
	json_t *vectors;

	snprintf(path, sizeof(path), "%s/%s", directory ? directory : "tests/vectors", file);
	vectors = json_load_file(path, 0, &error);
	if (!vectors)
		fail_msg("%s: %s", path, error.text);
	return vectors;
}

static void set_build(const struct placement *p, const json_t *json, struct set *set)
{
	const json_t *servers = json_object_get(json, "servers"), *s;
	struct placement_pool pool;
	size_t i;
	char *why;

	set->members = json_array_size(servers);
	set->member = calloc(set->members, sizeof(*set->member));
	set->server = calloc(set->members, sizeof(*set->server));
	set->points = calloc(set->members, sizeof(*set->points));
	json_array_foreach(servers, i, s)
	{
		const char *identity = json_string_value(json_object_get(s, "identity"));

		set->server[i] = identity ? identity : json_string_value(json_object_get(s, "name"));
		set->member[i].identity = set->server[i];
		set->member[i].weight = (uint32_t)json_integer_value(json_object_get(s, "weight"));
		set->member[i].id = (uint32_t)json_integer_value(json_object_get(s, "id"));
	}
	pool = (struct placement_pool){ .member = set->member, .members = set->members };
	assert_int_equal(placement_build(p, &pool, &set->arcs, set->points, &why), 0);
}

static void set_free(struct set *set)
{
	arcs_free(&set->arcs);
	free(set->member);
	free(set->server);
	free(set->points);
}

static const char *server_at(const struct set *set, uint32_t position)
{
	return set->server[set->arcs.arc[arcs_find(&set->arcs, position)].owner];
}

static size_t check_keys(const struct placement *p, const struct set *set, const json_t *pairs)
{
	struct placement_key key;
	const json_t *pair;
	char *why;
	size_t i;

	json_array_foreach(pairs, i, pair)
	{
		const json_t *text = json_array_get(pair, 0);

		assert_int_equal(placement_key_hash(p, json_string_value(text), json_string_length(text), &key, &why),
				 0);
		assert_string_equal(server_at(set, key.position), json_string_value(json_array_get(pair, 1)));
	}
	return json_array_size(pairs);
}

/* Both by the data plane's hash and, the address being the key, by the placement's. */
static size_t check_sources(const struct placement *p, const struct set *set, const json_t *pairs)
{
	const json_t *pair;
	size_t i;

	json_array_foreach(pairs, i, pair)
	{
		const char *text = json_string_value(json_array_get(pair, 0));
		struct placement_key key;
		struct in_addr source;
		const void *bytes = &source;
		size_t length = sizeof(source);
		uint32_t position;
		char *why;

		assert_int_equal(inet_pton(AF_INET, text, &source), 1);
		position = p->affinity == RINGLB_AFFINITY_CRC32 ? ringlb_crc32_ipv4(source.s_addr) :
								  ringlb_avalanche_ipv4(source.s_addr);
		assert_string_equal(server_at(set, position), json_string_value(json_array_get(pair, 1)));
		if (p->affinity == RINGLB_AFFINITY_AVALANCHE) {
			bytes = text;
			length = strlen(text);
		}
		assert_int_equal(placement_key_hash(p, bytes, length, &key, &why), 0);
		assert_int_equal(key.position, position);
	}
	return json_array_size(pairs);
}

/* `points` of the vectors is a sum, or a list. */
static void check_points(const struct set *set, const json_t *points)
{
	json_int_t sum = 0;

	for (size_t i = 0; i < set->members; i++) {
		sum += set->points[i];
		if (json_is_array(points))
			assert_int_equal(set->points[i], json_integer_value(json_array_get(points, i)));
	}
	if (json_is_integer(points))
		assert_int_equal(sum, json_integer_value(points));
}

static void check_file(const char *placement, const char *file, size_t sets_wanted, size_t pairs_wanted)
{
	const struct placement *p = placement_find(placement);
	json_t *vectors = load(file), *json;
	const char *name;
	size_t sets = 0, pairs = 0;

	json_object_foreach(json_object_get(vectors, "sets"), name, json)
	{
		struct set set;

		set_build(p, json, &set);
		check_points(&set, json_object_get(json, "points"));
		pairs += check_keys(p, &set, json_object_get(json, "key_to_server"));
		pairs += check_sources(p, &set, json_object_get(json, "source_to_server"));
		set_free(&set);
		sets++;
	}
	assert_int_equal(sets, sets_wanted);
	assert_int_equal(pairs, pairs_wanted);
	json_decref(vectors);
}

static void test_nginx(void **state)
{
	(void)state;
	check_file("nginx", "nginx.json", 8, 6 * 75 + 2 * 60);
}

static void test_haproxy(void **state)
{
	(void)state;
	check_file("haproxy", "haproxy_source.json", 2, 2 * 60);
}

static void test_ketama(void **state)
{
	(void)state;
	check_file("ketama", "ketama.json", 5, 5 * 75);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nginx),
		cmocka_unit_test(test_haproxy),
		cmocka_unit_test(test_ketama),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
