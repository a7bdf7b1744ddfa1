// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The manifest: what was written is read back, and what is damaged is refused or harmless, never a crash. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "manifest.h"
#include "plan_case.h"
#include "quick.h"
#include "random_pool.h"

/* An instance in the midst of changes: moved arcs, leaving backends, a service with a table of its own. */
static void start(struct case_instance *i, struct case_config *c)
{
	*c = case_small();
	case_service_add(c, 0);
	c->service[2].protocol = "tcp";
	case_instance_init(i);
	case_apply(i, c);
	i->now += 10;
	case_backend_add(&c->pool[0], 2);
	case_backend_remove(&c->pool[0], 0);
	c->service[2].pool = 1;
	case_apply(i, c);
	assert_int_equal(i->running->owns, 1);
}

/* case_commit compares what it wrote with what it reads; here is what a configuration alone does not bring about. */
static void test_round_trip(void **state)
{
	struct case_config c;
	struct case_instance i;
	struct diag d = { 0 };
	struct state *again;
	char *text;

	(void)state;
	start(&i, &c);
	i.running->config->hash_key_file = strdup("/etc/ringlb/hash \xc3\xa4 \"key\"");
	free(i.running->config->file);
	i.running->config->file = strdup("dir\\with: odd\tname.yaml");
	i.running->revision = 1ull << 40;
	i.running->pool[0].backend[0].zone = strdup("zone \xe2\x82\xac");
	i.running->pool[0].backend[0].cut = true;
	i.running->pool[0].backend[0].since = UINT32_MAX;
	i.running->pool[0].backend[0].incarnation = UINT16_MAX;
	i.running->ifindex[0] = INT32_MAX - 1;
	state_edit_add(i.running, EDIT_ROLLBACK, NULL, NULL, "3");
	state_edit_add(i.running, EDIT_WEIGHT, "web", "b \"1\"", "7");
	text = manifest_write(i.running);
	again = manifest_read(text, strlen(text), i.tables, i.bytes, &d);
	assert_non_null(again);
	case_assert_states_equal(i.running, again);
	assert_int_equal(again->edits, 2);
	assert_int_equal(again->edit[0].kind, EDIT_ROLLBACK);
	assert_null(again->edit[0].pool);
	assert_string_equal(again->edit[0].value, "3");
	assert_int_equal(again->edit[1].kind, EDIT_WEIGHT);
	assert_string_equal(again->edit[1].backend, "b \"1\"");
	state_free(again);
	free(text);
	case_instance_free(&i);
}

/* File names are bytes. A manifest that can't be written would leave an instance that can't be read. */
static void test_names_of_files(void **state)
{
	struct case_config c;
	struct case_instance i;
	struct diag d = { 0 };
	struct state *again;
	char *text;

	(void)state;
	start(&i, &c);
	free(i.running->config->file);
	i.running->config->file = strdup("latin-\xe9%41%.yaml");
	i.running->config->hash_key_file = strdup("/\xff\xfe/key");
	text = manifest_write(i.running);
	again = manifest_read(text, strlen(text), i.tables, i.bytes, &d);
	assert_non_null(again);
	assert_string_equal(again->config->file, i.running->config->file);
	assert_string_equal(again->config->hash_key_file, i.running->config->hash_key_file);
	state_free(again);
	free(text);
	case_instance_free(&i);
}

/* Reads memory that ends where the text and the tables end, so that the sanitizer sees what is read behind them. */
static struct state *read_exact(const char *text, size_t length, const char *tables, size_t bytes)
{
	char *copy = malloc(length ? length : 1);
	struct diag d = { 0 };
	struct state *s;

	assert_non_null(copy);
	memcpy(copy, text, length);
	s = manifest_read(copy, length, tables, bytes, &d);
	assert_int_equal(d.errors, s ? 0 : 1);
	diag_free(&d);
	free(copy);
	return s;
}

/* What was accepted must be fit for use: for the next plan, a look-up, the digest. */
static void use(const struct case_instance *i, struct state *s, const struct case_config *c)
{
	struct case_instance other = { .running = s, .now = i->now };
	struct diag d = { 0 };
	struct plan p;
	char *text;

	if (!case_plan(&other, case_parse(c, false), &p, &d)) {
		text = manifest_write(p.next);
		assert_true(*text);
		free(text);
		plan_free(&p);
	}
	diag_free(&d);
	state_free(s);
}

static void try(const struct case_instance *i, const struct case_config *c, const char *text, size_t length,
		unsigned int *taken)
{
	struct state *s = read_exact(text, length, i->tables, i->bytes);

	if (!s)
		return;
	++*taken;
	use(i, s, c);
}

static void test_damaged_bytes(void **state)
{
	struct case_config c;
	struct case_instance i;
	unsigned int taken = 0;
	size_t length;
	char *text;

	(void)state;
	start(&i, &c);
	length = strlen(i.manifest);
	text = strdup(i.manifest);
	try(&i, &c, text, length, &taken);
	assert_int_equal(taken, 1);
	for (int round = 0; round < 1500; round++) {
		memcpy(text, i.manifest, length);
		for (uint32_t n = 1 + random_below(3); n; n--)
			text[random_below((uint32_t)length)] = (char)random_u64();
		try(&i, &c, text, length, &taken);
	}
	taken = 0;
	for (size_t cut = 0; cut < length; cut += 1 + random_below(20))
		try(&i, &c, i.manifest, cut, &taken);
	assert_int_equal(taken, 0);
	free(text);
	case_instance_free(&i);
}

static const char *random_value(void)
{
	static const char *const value[] = { "0",
					     "-1",
					     "1",
					     "2",
					     "63",
					     "64",
					     "4095",
					     "4096",
					     "4160",
					     "32767",
					     "65534",
					     "65535",
					     "65536",
					     "1048575",
					     "1048576",
					     "2147483647",
					     "4294967295",
					     "4294967296",
					     "9223372036854775807",
					     "-9223372036854775808",
					     "1.5",
					     "null",
					     "true",
					     "[]",
					     "{}",
					     "\"\"",
					     "\"x\"",
					     "[0]" };

	return value[random_below(sizeof(value) / sizeof(*value))];
}

/* The text with its nth number replaced. */
static char *replace_number(const char *text, uint32_t n, const char *by)
{
	for (const char *p = text; *p; p++) {
		size_t digits = strspn(p, "0123456789");

		if ((p[-!!(p > text)] == ':' || p[-!!(p > text)] == '[' || p[-!!(p > text)] == ',') && digits && !n--) {
			char *out;

			assert_true(asprintf(&out, "%.*s%s%s", (int)(p - text), text, by, p + digits) > 0);
			return out;
		}
		p += digits ? digits - 1 : 0;
	}
	return NULL;
}

/* JSON that is well-formed, with numbers that contradict the rest. */
static void test_damaged_numbers(void **state)
{
	LEAVE_IF_QUICK();
	struct case_config c;
	struct case_instance i;
	unsigned int taken = 0, numbers = 0;
	char *text;

	(void)state;
	start(&i, &c);
	while ((text = replace_number(i.manifest, numbers, "0"))) {
		free(text);
		numbers++;
	}
	assert_true(numbers > 60);
	for (uint32_t n = 0; n < numbers; n++)
		for (int round = 0; round < 12; round++) {
			text = replace_number(i.manifest, n, random_value());
			try(&i, &c, text, strlen(text), &taken);
			free(text);
		}
	case_instance_free(&i);
}

/* Tables that are damaged while the text is whole, and tables shorter than the text says. */
static void test_damaged_tables(void **state)
{
	LEAVE_IF_QUICK();
	struct case_config c;
	struct case_instance i;
	unsigned int taken = 0;
	char *whole;

	(void)state;
	start(&i, &c);
	whole = malloc(i.bytes);
	assert_non_null(whole);
	memcpy(whole, i.tables, i.bytes);
	for (int round = 0; round < 400; round++) {
		const struct state_pool *p = state_table_at(i.running, random_below((uint32_t)state_tables(i.running)));
		uint32_t at = p->region + random_below(p->layout.length);

		i.tables[at] ^= (char)(1 << random_below(8));
		try(&i, &c, i.manifest, strlen(i.manifest), &taken);
		memcpy(i.tables, whole, i.bytes);
	}
	for (size_t bytes = 0; bytes < 32768; bytes += 64) {
		char *shorter = aligned_alloc(64, bytes + 64);

		memcpy(shorter, whole, bytes + 64);
		state_free(read_exact(i.manifest, strlen(i.manifest), shorter, bytes + 64));
		free(shorter);
	}
	free(whole);
	case_instance_free(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_names_of_files),
		cmocka_unit_test(test_damaged_bytes),  cmocka_unit_test(test_damaged_numbers),
		cmocka_unit_test(test_damaged_tables),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
