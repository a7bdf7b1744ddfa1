// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pictures of pools of any size, with names of any bytes: sound XML, small enough, and whole. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "random_pool.h"
#include "svg.h"

#define LIMIT 500000
#define DEPTH 16
#define NAME 64

/* The name of a tag that starts at `text`, behind the < and a /. */
static size_t name_length(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz");
}

/* Quotes of attributes are closed, and hold no < or lone &. Returns the > of the tag. */
static const char *check_tag(const char *p)
{
	bool quoted = false;

	for (; *p && (quoted || *p != '>'); p++) {
		assert_true(*p != '<');
		quoted ^= *p == '"';
	}
	assert_true(*p == '>');
	return p;
}

static void check_character(const char *p)
{
	static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;" };
	bool known = false;

	assert_true((unsigned char)*p >= ' ' || *p == '\n');
	for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++)
		known |= !strncmp(p, entities[i], strlen(entities[i]));
	assert_true(*p != '&' || known);
}

/* As much of XML as is used: every tag is closed in its turn. */
static void check_xml(const char *text)
{
	const char *open[DEPTH];
	size_t depth = 0, tags = 0;

	assert_int_equal(strncmp(text, "<svg ", 5), 0);
	for (const char *p = text; *p; p++) {
		const char *name = p + 1 + (p[1] == '/');
		size_t length = name_length(name);

		if (*p != '<') {
			check_character(p);
			continue;
		}
		assert_true(length > 0);
		if (p[1] == '/') {
			assert_true(depth > 0);
			depth--;
			assert_int_equal(strncmp(open[depth], name, length), 0);
			assert_false(isalpha((unsigned char)open[depth][length]));
		}
		p = check_tag(p + 1);
		if (name[-1] == '<' && p[-1] != '/') {
			assert_true(depth < DEPTH);
			open[depth++] = name;
		}
		tags++;
		assert_true(depth > 0 || !strcmp(p, ">\n"));
	}
	assert_int_equal(depth, 0);
	assert_true(tags > 10);
}

struct subject {
	struct svg_ring ring;
	struct arcs before, after;
	struct share_change change;
};

static void name_randomly(char *name)
{
	size_t length = 1 + random_below(NAME - 1);

	for (size_t i = 0; i < length; i++)
		name[i] = (char)(1 + random_below(255));
	name[length] = '\0';
}

/* A pool of plain rings, one of whose members is not there at first. */
static void subject_make(struct subject *x, struct random_pool *pool, const char **name, bool change)
{
	size_t n = pool->members;
	struct share *share = calloc(n, sizeof(*share)), *before = calloc(n, sizeof(*before));
	uint32_t *weight = calloc(n, sizeof(*weight)), points = pool->member[0].points;

	*x = (struct subject){ 0 };
	for (size_t i = 0; i < n; i++)
		weight[i] = 1 + random_below(3);
	pool->member[0].points = 0;
	assert_int_equal(ring_build(pool->member, n, &x->before), 0);
	pool->member[0].points = points;
	assert_int_equal(ring_build(pool->member, n, &x->after), 0);
	shares_measure(&x->before, weight, n, before);
	x->ring = (struct svg_ring){ .title = name[0], .subtitle = "placement ring", .name = name, .owners = n };
	x->ring.weight = weight;
	x->ring.balance = shares_measure(&x->after, weight, n, share);
	x->ring.share = share;
	x->ring.share_before = before;
	x->ring.arcs = &x->after;
	shares_change(&x->before, &x->after, n, &x->change);
	if (change) {
		x->ring.before = &x->before;
		x->ring.change = &x->change;
	} else {
		x->ring.share_before = NULL;
		free(before);
	}
}

static void subject_free(struct subject *x)
{
	arcs_free(&x->before);
	arcs_free(&x->after);
	share_change_free(&x->change);
	free((void *)x->ring.weight);
	free((void *)x->ring.share);
	free((void *)x->ring.share_before);
}

static void test_ring(void **state)
{
	static const struct {
		size_t members;
		uint32_t points;
	} size[] = { { 1, 1 },   { 2, 3 },     { 7, 100 },    { 40, 1000 },
		     { 41, 10 }, { 300, 300 }, { 4096, 250 }, { 65000, 16 } };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(size) / sizeof(*size); i++) {
		size_t n = size[i / 2].members;
		char(*text)[NAME] = calloc(n, sizeof(*text));
		const char **name = calloc(n, sizeof(*name));
		struct random_pool pool;
		struct subject x;
		char *svg;

		random_pool_make(&pool, n, size[i / 2].points);
		for (size_t k = 0; k < n; k++) {
			name_randomly(text[k]);
			name[k] = text[k];
		}
		subject_make(&x, &pool, name, i % 2);
		svg = svg_ring(&x.ring);
		printf("%zu backends, %zu arcs%s: %zu bytes\n", n, x.after.count, i % 2 ? ", changed" : "",
		       strlen(svg));
		assert_true(strlen(svg) < LIMIT);
		check_xml(svg);
		free(svg);
		subject_free(&x);
		random_pool_free(&pool);
		free(name);
		free(text);
	}
}

static void test_compare(void **state)
{
	(void)state;
	for (size_t round = 0; round < 50; round++) {
		struct svg_compared v[8] = { 0 };
		char text[8][NAME], *svg;

		for (size_t i = 0; i < 8; i++) {
			struct comparison *c = &v[i].figures;

			name_randomly(text[i]);
			v[i].name = text[i];
			v[i].chosen = i == round % 8;
			v[i].why = random_below(4) ? NULL : text[i];
			c->balance.max = 1 + random_below(3) * random_below(1000) / 1000.0;
			c->balance.min = random_below(1000) / 1000.0;
			c->remove.known = random_below(8);
			c->remove.excess = random_below(2) * random_below(1000) / 1000.0;
			c->add.known = random_below(2);
			c->table_bytes = random_below(1 << 28);
		}
		svg = svg_compare(text[0], text[1], v, 8);
		assert_true(strlen(svg) < LIMIT);
		check_xml(svg);
		free(svg);
	}
}

static void test_count(void **state)
{
	char buf[32];

	(void)state;
	assert_string_equal(svg_count(0, buf), "0");
	assert_string_equal(svg_count(999, buf), "999");
	assert_string_equal(svg_count(1000, buf), "1,000");
	assert_string_equal(svg_count(1048576, buf), "1,048,576");
	assert_string_equal(svg_count(UINT64_MAX, buf), "18,446,744,073,709,551,615");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_count),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
