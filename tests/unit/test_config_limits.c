// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Configurations as large as they may be, larger, and built to hurt: answered rightly, and soon. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "config.h"
#include "quick.h"

#define START "interfaces: [eth0]\nhash_key: 00112233445566778899aabbccddeeff\n"
#define MAX_BACKENDS (RINGLB_MAX_BACKENDS - 1)
#define SOON_SECONDS 20 /* under the sanitizers, on a busy machine; what this guards against takes hours */

/* Text that grows. */
struct text {
	FILE *f;
	char *bytes;
	size_t length;
};

static void text_start(struct text *t, const char *start)
{
	t->f = open_memstream(&t->bytes, &t->length);
	assert_non_null(t->f);
	fputs(start, t->f);
}

static void text_repeat(struct text *t, const char *piece, size_t times)
{
	while (times--)
		fputs(piece, t->f);
}

/* Parses and frees the text; the configuration, or NULL, and what was said in d. Fails where it takes too long. */
static struct config *text_parse(struct text *t, struct diag *d)
{
	struct timespec before, after;
	struct config *c;

	assert_int_equal(fclose(t->f), 0);
	*d = (struct diag){ 0 };
	clock_gettime(CLOCK_MONOTONIC, &before);
	c = config_parse("large.yaml", t->bytes, t->length, d);
	clock_gettime(CLOCK_MONOTONIC, &after);
	free(t->bytes);
	assert_true(after.tv_sec - before.tv_sec <= SOON_SECONDS);
	return c;
}

/* backends in pools of 40, and services for each pool in turn, all different where same is false. */
static void text_fleet(struct text *t, size_t backends, size_t services, bool same)
{
	text_start(t, START "pools:\n");
	for (size_t i = 0; i < backends; i++) {
		if (i % 40 == 0)
			fprintf(t->f, "- name: p%zu\n  vnodes: 1\n  backends:\n", same ? 0 : i / 40);
		fprintf(t->f, "  - {name: b%zu, address: 10.%zu.%zu.%zu}\n", same ? 0 : i, i >> 16, i >> 8 & 255,
			i & 255);
	}
	fputs("services:\n", t->f);
	for (size_t i = 0; i < services; i++)
		fprintf(t->f, "- {address: 192.0.2.10, port: %zu, protocol: tcp, pool: p%zu, forward: l2}\n",
			same ? 80 : i + 1, same ? 0 : i % (backends / 40));
}

static void test_largest(void **state)
{
	LEAVE_IF_QUICK();
	struct text t;
	struct config *c;
	struct diag d;

	(void)state;
	text_fleet(&t, MAX_BACKENDS, RINGLB_MAX_SERVICES, false);
	/* 10.0.0.0 is a host like any other here; the last pool, of fewer than 40, is used by no service. */
	c = text_parse(&t, &d);
	assert_non_null(c);
	assert_int_equal(d.count, 1);
	assert_string_equal(d.entry[0].code, "unused-pool");
	diag_free(&d);
	assert_int_equal(c->services, RINGLB_MAX_SERVICES);
	config_free(c);
}

static void assert_says(struct diag *d, const char *code, const char *message)
{
	bool found = false;

	for (size_t i = 0; i < d->count; i++)
		found |= !strcmp(d->entry[i].code, code) && strstr(d->entry[i].message, message);
	if (!found && d->count)
		print_error("first of %zu: [%s] %s\n", d->count, d->entry[0].code, d->entry[0].message);
	assert_true(found);
	diag_free(d);
}

static void test_too_many(void **state)
{
	LEAVE_IF_QUICK();
	struct text t;
	struct diag d;

	(void)state;
	text_fleet(&t, MAX_BACKENDS + 1, 40, false);
	assert_null(text_parse(&t, &d));
	assert_int_equal(d.errors, 1);
	assert_says(&d, "too-many-backends", "pools: 65,535 backends in all pools together; the limit is 65,534");
	text_start(&t, START "pools: [{name: p, backends: [{name: b, address: 10.0.0.1}]}]\nservices:\n");
	for (size_t i = 0; i < RINGLB_MAX_SERVICES + 1; i++)
		fprintf(t.f, "- {address: 192.0.2.10, port: %zu, protocol: tcp, pool: p, forward: l2}\n", i + 1);
	assert_null(text_parse(&t, &d));
	assert_int_equal(d.errors, 1);
	assert_says(&d, "too-many-services", "services: 32,768 services; the limit is 32,767");
}

/* Each of many is wrong, and guesses at what was meant would have many to choose from. */
static void test_all_wrong(void **state)
{
	LEAVE_IF_QUICK();
	struct text t;
	struct diag d;

	(void)state;
	text_fleet(&t, 20000, 9000, true);
	assert_null(text_parse(&t, &d));
	assert_int_equal(d.count, 10001);
	assert_says(&d, "too-many-faults", "more faults are not listed");
	text_start(&t, START "pools:\n");
	for (size_t i = 0; i < 20000; i++)
		fprintf(t.f, "- {name: p%zu, backends: []}\n", i);
	fputs("services:\n", t.f);
	for (size_t i = 0; i < 9000; i++)
		fprintf(t.f, "- {address: 192.0.2.10, port: %zu, protocol: tcp, pool: q%zu, forward: l2}\n", i + 1, i);
	assert_null(text_parse(&t, &d));
	assert_int_equal(d.errors, 9000 + 1);
	assert_says(&d, "unknown-pool", "there is no pool \"q8999\"");
}

static void test_bombs(void **state)
{
	LEAVE_IF_QUICK();
	struct diag d;
	struct text t;

	(void)state;
	text_start(&t, "a: &a [x, x, x, x, x, x, x, x, x]\n");
	for (char name = 'b'; name <= 'z'; name++)
		fprintf(t.f, "%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", name, name, name - 1, name - 1,
			name - 1, name - 1, name - 1, name - 1, name - 1, name - 1);
	assert_null(text_parse(&t, &d));
	assert_says(&d, "anchor", "*y: anchors and aliases are not read");

	text_start(&t, "");
	text_repeat(&t, "[", 1000000);
	assert_null(text_parse(&t, &d));
	assert_says(&d, "too-deep", "more than 16 deep");
	text_start(&t, "");
	text_repeat(&t, "- ", 1000000);
	assert_null(text_parse(&t, &d));
	assert_says(&d, "too-deep", "more than 16 deep");
	text_start(&t, "? ");
	text_repeat(&t, "{a: ", 100000);
	assert_null(text_parse(&t, &d));
	assert_says(&d, "too-deep", "more than 16 deep");

	text_start(&t, "interfaces: [");
	text_repeat(&t, "a,", 2100000);
	assert_null(text_parse(&t, &d));
	assert_says(&d, "too-large", "more than 2097152 values");
	text_start(&t, "");
	text_repeat(&t, "0123456789abcdef", (32u << 20) / 16 + 1);
	assert_null(text_parse(&t, &d));
	assert_says(&d, "too-large", "larger than 32 MiB");
}

static void test_long(void **state)
{
	struct diag d;
	struct text t;

	(void)state;
	/* Long text is clipped in messages, between characters. */
	text_start(&t, START "pools: []\nservices: []\nxdp: ");
	text_repeat(&t, "\xc3\xa9", 100000);
	assert_null(text_parse(&t, &d));
	assert_true(strlen(d.entry[0].message) < 200);
	assert_says(&d, "bad-value", "\xc3\xa9...\" is not one of auto, native and generic");
	text_start(&t, START "pools: []\nservices: []\n");
	for (unsigned int i = 0; i < 5000; i++)
		fprintf(t.f, "interface%u: x\n", i);
	assert_null(text_parse(&t, &d));
	assert_says(&d, "unknown-key", "interface4999: unknown key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_largest), cmocka_unit_test(test_too_many), cmocka_unit_test(test_all_wrong),
		cmocka_unit_test(test_bombs),   cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests_name("config_limits", tests, NULL, NULL);
}
