// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Golden files: tests/conf/good/X.yaml is accepted, with the warnings of X.err where there is one, and means what X.out
 * says; tests/conf/bad/X.yaml is refused with exactly the lines of X.err. RINGLB_GOLDEN=write writes what comes out
 * now, to be read before it is committed. Then what a file in the tree can't show: keys in files, sizes, hostile text.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "config.h"

static char start[4096]; /* where the tests were started: the directory of the sources */

static char *file_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;

	if (!f)
		return NULL;
	if (getdelim(&text, &room, EOF, f) < 0) {
		free(text);
		text = xstrdup("");
	}
	fclose(f);
	return text;
}

static void write_text(const char *path, const char *text, size_t length, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, length, f), length);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static char *replace(char *text, const char *from, const char *to)
{
	char *found, *out;

	while ((found = strstr(text, from))) {
		out = xasprintf("%.*s%s%s", (int)(found - text), text, to, found + strlen(from));
		free(text);
		text = out;
	}
	return text;
}

/* What depends on the machine or on chance, out of the lines: the directory, and the fresh key. */
static char *steady(char *text)
{
	static const char fresh[] = "to paste: hash_key: ";
	char directory[4096], *key = strstr(text, fresh);

	assert_non_null(getcwd(directory, sizeof(directory)));
	if (key) {
		key += strlen(fresh);
		assert_int_equal(strspn(key, "0123456789abcdef"), 32);
		memset(key, '?', 32);
	}
	return replace(text, directory, "DIRECTORY");
}

static char *lines_of(struct diag *d)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < d->count; i++) {
		char *more = xasprintf("%s%s: %s [%s] %s\n", text, d->entry[i].where,
				       d->entry[i].level == DIAG_ERROR ? "error" : "warning", d->entry[i].code,
				       d->entry[i].message);

		free(text);
		text = more;
	}
	diag_free(d);
	return steady(text);
}

/* True when the golden file says the same; a missing one is an empty one. */
static bool same_as_golden(const char *path, const char *text)
{
	const char *mode = getenv("RINGLB_GOLDEN");
	char *wanted = file_text(path);
	bool same = !strcmp(wanted ? wanted : "", text);

	if (!same && mode && !strcmp(mode, "write")) {
		write_text(path, text, strlen(text), 0644);
		same = true;
	}
	if (!same)
		print_error("%s says\n%s\nbut now it is\n%s\n", path, wanted ? wanted : "nothing", text);
	free(wanted);
	return same;
}

static char *beside(const char *file, const char *suffix)
{
	return xasprintf("%.*s%s", (int)(strlen(file) - strlen(".yaml")), file, suffix);
}

/* One file of a directory, which is the current one. */
static bool check_golden(const char *file, bool good)
{
	struct diag d = { 0 };
	struct config *c = config_load(file, &d);
	char *err = beside(file, ".err"), *out = beside(file, ".out"), *lines = lines_of(&d);
	char *emitted = c ? config_emit(c, true) : xstrdup("");
	bool right = !c == !good;

	if (!right)
		print_error("%s was %s\n%s", file, c ? "accepted" : "refused", lines);
	right &= same_as_golden(err, lines);
	if (good)
		right &= same_as_golden(out, emitted);
	free(emitted);
	free(lines);
	free(out);
	free(err);
	config_free(c);
	return right;
}

static void check_directory(const char *name, bool good)
{
	const char *conf = getenv("RINGLB_CONF");
	char *directory = conf ? xasprintf("%s/%s", conf, name) : xasprintf("%s/tests/conf/%s", start, name);
	size_t wrong = 0;
	glob_t files;

	assert_int_equal(chdir(directory), 0);
	assert_int_equal(glob("*.yaml", 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++)
		wrong += !check_golden(files.gl_pathv[i], good);
	globfree(&files);
	free(directory);
	assert_int_equal(chdir(start), 0);
	assert_int_equal(wrong, 0);
}

static void test_good(void **state)
{
	(void)state;
	check_directory("good", true);
}

static void test_bad(void **state)
{
	(void)state;
	check_directory("bad", false);
}

static struct config *parse(const char *text, struct diag *d)
{
	return config_parse("test.yaml", text, strlen(text), d);
}

#define POOLS "pools: [{name: p, backends: [{name: b, address: 10.0.0.11}]}]\n"
#define SERVICES "services: [{address: 192.0.2.10, port: 80, protocol: tcp, pool: p, forward: l2}]\n"
#define KEY "hash_key: 00112233445566778899aabbccddeeff\n"

static void test_defaults(void **state)
{
	struct diag d = { 0 };
	struct config *c = parse("interfaces: [eth0]\n" KEY POOLS "services:\n"
				 "- {address: 192.0.2.10, port: 80, protocol: tcp, pool: p, forward: l2}\n"
				 "- {address: 192.0.2.10, port: any, protocol: udp, pool: p, forward: l2}\n",
				 &d);

	(void)state;
	assert_non_null(c);
	assert_int_equal(d.count, 0);
	assert_int_equal(c->xdp, CONFIG_XDP_AUTO);
	assert_true(c->max_move < 0);
	assert_false(c->has_tunnel4 || c->has_tunnel6 || c->status_listen || c->hash_key_file);
	assert_int_equal(c->hash_key[1], 0x11);
	assert_int_equal(c->flows_established, 131072);
	assert_int_equal(c->flows_opening, 32768);
	assert_int_equal(c->pool[0].vnodes, 400);
	assert_int_equal(c->pool[0].settle_after_ms, 900000);
	assert_int_equal(c->pool[0].drain_max_ms, 86400000);
	assert_int_equal(c->pool[0].quorum, 1);
	assert_string_equal(c->pool[0].backend[0].identity, "b");
	assert_int_equal(c->pool[0].backend[0].weight, 1);
	assert_int_equal(config_backend_points(&c->pool[0], &c->pool[0].backend[0]), 400);
	assert_ptr_equal(config_find_pool(c, "p"), &c->pool[0]);
	assert_null(config_find_pool(c, "q"));
	assert_string_equal(c->service[0].name, "192.0.2.10:80/tcp");
	assert_string_equal(c->service[1].name, "192.0.2.10:any/udp");
	assert_int_equal(c->service[0].track, RINGLB_TRACK_MOVED);
	assert_int_equal(c->service[1].track, RINGLB_TRACK_NONE);
	assert_int_equal(c->service[0].affinity, RINGLB_AFFINITY_FLOW);
	assert_int_equal(c->service[0].fragments, RINGLB_FRAGMENTS_TRACK);
	assert_int_equal(c->service[1].place.line, 6);
	assert_int_equal(c->service[1].place.column, 3);
	config_free(c);
}

/* In a directory of its own, which is then the current one. */
static int enter_scratch(void **state)
{
	char *directory = xasprintf("%s/ringlb-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");

	*state = directory;
	return mkdtemp(directory) && !chdir(directory) ? 0 : -1;
}

static int leave_scratch(void **state)
{
	static const char *const files[] = { "key", "pipe", "c.yaml", "sub/c.yaml", "sub" };
	int err = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		err |= remove(files[i]) && errno != ENOENT;
	err |= chdir(start) || rmdir(*state);
	free(*state);
	return err;
}

/* Loads c.yaml beside a key file of these contents; lines are what was said. */
static struct config *with_key_file(const char *contents, size_t length, mode_t mode, char **lines)
{
	static const char text[] = "interfaces: [eth0]\nhash_key: {file: key}\n" POOLS SERVICES;
	struct diag d = { 0 };
	struct config *c;

	write_text("key", contents, length, mode);
	write_text("c.yaml", text, strlen(text), 0600);
	c = config_load("c.yaml", &d);
	*lines = lines_of(&d);
	return c;
}

static void test_key_file(void **state)
{
	static const char digits[] = "00112233445566778899aabbccddeeff\n";
	static const struct {
		const char *contents;
		size_t length;
		bool good;
	} row[] = {
		{ digits, 33, true },
		{ digits, 32, true },
		{ "", 0, false },
		{ digits, 31, false },
		{ "00112233445566778899aabbccddeeff\n\n", 34, false },
		{ "00112233445566778899aabbccddeeff ", 33, false },
		{ "00112233445566778899aabbccddee\0f\n", 33, false },
		{ "00112233445566778899aabbccddeeff\n#", 34, false },
	};
	char *lines, *emitted;
	struct config *c;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		c = with_key_file(row[i].contents, row[i].length, 0640, &lines);
		assert_int_equal(!!c, row[i].good);
		assert_string_equal(
			lines,
			c ? "" :
			    "c.yaml:2:18: error [bad-value] hash_key.file: DIRECTORY/key:1:1: the file "
			    "must hold 32 hexadecimal digits, the same on every balancer of a fleet, and nothing else\n");
		free(lines);
		config_free(c);
	}
	c = with_key_file(digits, 33, 0644, &lines);
	assert_non_null(c);
	assert_non_null(
		strstr(lines,
		       "c.yaml:2:18: warning [readable-key] hash_key.file: DIRECTORY/key can be read by everyone"));
	free(lines);
	assert_int_equal(c->hash_key[15], 0xff);
	emitted = config_emit(c, true);
	assert_non_null(strstr(emitted, "\nhash_key: \"00112233445566778899aabbccddeeff\"\n"));
	free(emitted);
	emitted = steady(config_emit(c, false));
	assert_non_null(strstr(emitted, "\nhash_key: {file: \"DIRECTORY/key\"}\n"));
	assert_null(strstr(emitted, "001122"));
	free(emitted);
	config_free(c);
}

static void test_key_file_places(void **state)
{
	static const char text[] = "interfaces: [eth0]\nhash_key: {file: ../key}\n" POOLS SERVICES;
	static const char pipe_text[] = "interfaces: [eth0]\nhash_key: {file: pipe}\n" POOLS SERVICES;
	struct diag d = { 0 };
	struct config *c;
	char *lines;

	(void)state;
	write_text("key", "ffeeddccbbaa99887766554433221100", 32, 0600);
	assert_int_equal(mkdir("sub", 0700), 0);
	write_text("sub/c.yaml", text, strlen(text), 0600);
	c = config_load("sub/c.yaml", &d); /* relative to the file, not to where we are */
	assert_non_null(c);
	assert_int_equal(d.count, 0);
	assert_int_equal(c->hash_key[0], 0xff);
	assert_int_equal(c->hash_key_file[0], '/');
	config_free(c);

	assert_int_equal(mkfifo("pipe", 0600), 0); /* opening it must not wait */
	assert_null(parse(pipe_text, &d));
	lines = lines_of(&d);
	assert_non_null(strstr(lines, "[unreadable] hash_key.file: DIRECTORY/pipe: Not a regular file"));
	free(lines);
}

static void test_unreadable(void **state)
{
	static const struct {
		const char *file, *lines;
	} row[] = {
		{ "none.yaml",
		  "none.yaml: error [unreadable] the configuration can't be read: No such file or directory; write it, "
		  "or name another file\n" },
		{ ".", ".: error [unreadable] the configuration can't be read: Is a directory\n" },
		{ "/dev/zero",
		  "/dev/zero: error [too-large] the file is larger than 32 MiB; no configuration within the limits "
		  "is\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct diag d = { 0 };
		char *lines;

		assert_null(config_load(row[i].file, &d));
		lines = lines_of(&d);
		assert_string_equal(lines, row[i].lines);
		free(lines);
	}
}

static void test_key_stays_secret(void **state)
{
	struct diag d = { 0 };
	struct config *c = parse("interfaces: [eth0]\n" KEY POOLS SERVICES, &d);
	char *emitted, *lines;

	(void)state;
	assert_non_null(c);
	emitted = config_emit(c, false);
	assert_non_null(strstr(emitted, "\n# hash_key: (only shown to root)\n"));
	assert_null(strstr(emitted, "001122"));
	free(emitted);
	config_free(c);
	/* Nor does a key with a slip show in a message. */
	assert_null(parse("interfaces: [eth0]\nhash_key: 00112233445566778899aabbccddeef\n" POOLS SERVICES, &d));
	lines = lines_of(&d);
	assert_null(strstr(lines, "001122"));
	free(lines);
}

static void test_fresh_keys_differ(void **state)
{
	char key[2][33] = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct diag d = { 0 };
		const char *found;

		assert_null(parse("interfaces: [eth0]\n" POOLS SERVICES, &d));
		assert_int_equal(d.count, 1);
		found = strstr(d.entry[0].message, "to paste: hash_key: ");
		assert_non_null(found);
		memcpy(key[i], found + 20, 32);
		diag_free(&d);
	}
	assert_string_not_equal(key[0], key[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test_setup_teardown(test_key_file, enter_scratch, leave_scratch),
		cmocka_unit_test_setup_teardown(test_key_file_places, enter_scratch, leave_scratch),
		cmocka_unit_test_setup_teardown(test_unreadable, enter_scratch, leave_scratch),
		cmocka_unit_test(test_key_stays_secret),
		cmocka_unit_test(test_fresh_keys_differ),
	};

	if (!getcwd(start, sizeof(start)))
		return 1;
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
