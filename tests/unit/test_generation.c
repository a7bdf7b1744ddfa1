// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The history of generations, in a directory of the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "generation.h"

#define DIGEST "0123456789abcdef0123456789abcdef"
#define MAY_2024 1714564800 /* 2024-05-01T12:00:00Z */

struct fixture {
	char *scratch, *dir;
	struct config *c;
	struct diag d;
};

#define KEY "00112233445566778899aabbccddeeff"

static struct config *config_of(const char *hash_key, uint32_t weight)
{
	static const char service[] = "{address: 192.0.2.1, port: 80, protocol: tcp, pool: p, forward: l2}";
	char *text = xasprintf("interfaces: [eth0]\nhash_key: %s\nservices: [%s]\n"
			       "pools: [{name: p, backends: [{name: a, address: 10.0.0.1, weight: %u}]}]\n",
			       hash_key, service, weight);
	struct diag d = { 0 };
	struct config *c = config_parse("t.yaml", text, strlen(text), &d);

	assert_int_equal(d.count, 0);
	free(text);
	return c;
}

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	/* In memory where possible: on a busy disk every fsync waits for what others write. */
	const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";

	f->scratch = xasprintf("%s/ringlb-test-XXXXXX", base);
	if (!mkdtemp(f->scratch))
		return -1;
	f->dir = xasprintf("%s/ringlb/default", f->scratch);
	f->c = config_of(KEY, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char *command = xasprintf("rm -rf '%s'", f->scratch);
	int err = system(command);

	diag_free(&f->d);
	config_free(f->c);
	free(command);
	free(f->dir);
	free(f->scratch);
	free(f);
	return err;
}

static void write_one(struct fixture *f, uint32_t number)
{
	assert_int_equal(generation_write(f->dir, number, MAY_2024, DIGEST, "one", f->c, &f->d), 0);
	assert_int_equal(f->d.count, 0);
}

/* The numbers that are kept, as text. */
static char *kept(struct fixture *f)
{
	char *text = xstrdup("");
	struct generation *list;
	size_t count;

	assert_int_equal(generation_list(f->dir, &list, &count, &f->d), 0);
	for (size_t i = 0; i < count; i++) {
		char *longer = xasprintf("%s%s%u%s", text, i ? " " : "", list[i].number, list[i].damaged ? "!" : "");

		free(text);
		text = longer;
	}
	generation_list_free(list, count);
	return text;
}

static void assert_kept(struct fixture *f, const char *wanted)
{
	char *text = kept(f);

	assert_string_equal(text, wanted);
	free(text);
}

/* Names in the directory, whatever they are. */
static size_t names(const char *dir)
{
	DIR *d = opendir(dir);
	size_t count = 0;

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count - 2;
}

static char *contents(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;

	assert_non_null(f);
	assert_true(getdelim(&text, &room, EOF, f) > 0);
	fclose(f);
	return text;
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_write_and_load(void **state)
{
	struct fixture *f = *state;
	char *path = generation_path(f->dir, 8), *body = config_emit(f->c, true), *text, *again;
	struct config *c;
	struct stat st;

	assert_int_equal(generation_last(f->dir), 0);
	assert_kept(f, "");
	assert_int_equal(generation_write(f->dir, 8, MAY_2024, DIGEST, "a\nb: \xc3\xa9", f->c, &f->d), 0);
	text = contents(path);
	assert_true(strstr(path, "/000008.yaml"));
	assert_memory_equal(text,
			    "# ringlb generation 8\n# time: 2024-05-01T12:00:00Z\n# digest: " DIGEST
			    "\n# summary: a?b: ??\ninterfaces: [eth0]\n",
			    118);
	assert_non_null(strstr(text, body));
	assert_int_equal(names(f->dir), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(f->dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);

	c = generation_load(f->dir, 8, &f->d);
	assert_non_null(c);
	again = config_emit(c, true);
	assert_string_equal(again, body);
	assert_null(c->hash_key_file);
	assert_int_equal(f->d.count, 0);
	config_free(c);
	c = config_load(path, &f->d); /* it is a configuration file, too */
	assert_non_null(c);
	config_free(c);
	free(again);
	free(body);
	free(text);
	free(path);
}

static void test_list(void **state)
{
	struct fixture *f = *state;
	struct generation *list;
	size_t count;
	char *path;

	write_one(f, 10);
	write_one(f, 9);
	write_one(f, 1234567);
	assert_int_equal(generation_list(f->dir, &list, &count, &f->d), 0);
	assert_int_equal(count, 3);
	assert_int_equal(list[0].number, 9);
	assert_int_equal(list[2].number, 1234567);
	assert_string_equal(list[0].time, "2024-05-01T12:00:00Z");
	assert_string_equal(list[0].digest, DIGEST);
	assert_string_equal(list[0].summary, "one");
	assert_false(list[0].damaged);
	assert_true(list[0].bytes > 100);
	generation_list_free(list, count);
	assert_int_equal(generation_last(f->dir), 1234567);

	/* What is not ours is left alone. */
	for (const char *const *name = (const char *const[]){ "8.yaml", "0000011.yaml", "000000.yaml", "notes",
							      "-00001.yaml", "000012.yaml~", "99999999999.yaml", NULL };
	     *name; name++) {
		path = xasprintf("%s/%s", f->dir, *name);
		put(path, "x");
		free(path);
	}
	path = xasprintf("%s/000013.yaml", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	free(path);
	assert_kept(f, "9 10 1234567");
	assert_int_equal(generation_repair(f->dir, 10, &f->d), 1);
	assert_int_equal(generation_prune(f->dir, 0, 10), 1);
	assert_int_equal(names(f->dir), 9);
}

static void test_remove(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(generation_remove(f->dir, 1), 0);
	write_one(f, 1);
	write_one(f, 2);
	assert_int_equal(generation_remove(f->dir, 1), 0);
	assert_int_equal(generation_remove(f->dir, 1), 0);
	assert_kept(f, "2");
}

/* One byte changed, or cut off, anywhere: never loaded as what ran. */
static void test_damaged(void **state)
{
	struct fixture *f = *state;
	char *path = generation_path(f->dir, 3), *whole;
	size_t length;

	write_one(f, 3);
	whole = contents(path);
	length = strlen(whole);
	for (size_t i = 0; i < 2 * length; i++) {
		char *text = xstrdup(whole);
		struct config *c;

		if (i < length)
			text[i] = (char)(text[i] ^ 1);
		else
			text[i - length] = '\0';
		put(path, text);
		assert_kept(f, "3!");
		c = generation_load(f->dir, 3, &f->d);
		assert_null(c);
		assert_int_equal(f->d.errors, 1);
		assert_string_equal(f->d.entry[0].code, "damaged-generation");
		diag_free(&f->d);
		free(text);
	}
	put(path, whole);
	assert_kept(f, "3");
	assert_null(generation_load(f->dir, 4, &f->d));
	assert_string_equal(f->d.entry[0].code, "no-generation");
	diag_free(&f->d);
	/* The right text under another number is damaged, too. */
	free(path);
	path = generation_path(f->dir, 5);
	put(path, whole);
	assert_kept(f, "3 5!");
	free(whole);
	free(path);
}

static void test_key_file(void **state)
{
	struct fixture *f = *state;
	char *key = xasprintf("%s/key", f->scratch), *wanted = xasprintf("{file: %s}", key);
	struct config *c, *back;

	put(key, KEY "\n");
	assert_int_equal(chmod(key, 0600), 0);
	c = config_of(wanted, 1);
	assert_int_equal(generation_write(f->dir, 1, MAY_2024, DIGEST, "one", c, &f->d), 0);
	back = generation_load(f->dir, 1, &f->d);
	assert_non_null(back);
	assert_string_equal(back->hash_key_file, key);
	config_free(back);
	/* Another key there now, or none: what ran had this one. */
	for (int i = 0; i < 2; i++) {
		if (i)
			assert_int_equal(unlink(key), 0);
		else
			put(key, "ffffffffffffffffffffffffffffffff\n");
		back = generation_load(f->dir, 1, &f->d);
		assert_non_null(back);
		assert_null(back->hash_key_file);
		assert_memory_equal(back->hash_key, c->hash_key, 16);
		config_free(back);
	}
	assert_int_equal(f->d.count, 0);
	config_free(c);
	free(wanted);
	free(key);
}

static void test_prune(void **state)
{
	struct fixture *f = *state;
	char *path = generation_path(f->dir, 4);

	assert_int_equal(generation_prune(f->dir, 50, 1), 0);
	for (uint32_t n = 1; n <= 6; n++)
		write_one(f, n);
	put(path, "damaged");
	assert_int_equal(generation_prune(f->dir, 6, 6), 0);
	assert_int_equal(generation_prune(f->dir, 4, 2), 2);
	assert_kept(f, "2 4! 5 6");
	assert_int_equal(generation_prune(f->dir, 2, 6), 2);
	assert_kept(f, "5 6");
	assert_int_equal(generation_prune(f->dir, 0, 5), 1);
	assert_kept(f, "5");
	free(path);
}

static void test_repair(void **state)
{
	struct fixture *f = *state;
	char *temporary = xasprintf("%s/.000009.yaml.tmp", f->dir);

	assert_int_equal(generation_repair(f->dir, 7, &f->d), 0);
	for (uint32_t n = 7; n <= 8; n++)
		write_one(f, n);
	put(temporary, "half");
	assert_int_equal(generation_repair(f->dir, 8, &f->d), 0);
	assert_int_equal(names(f->dir), 2);
	assert_int_equal(f->d.count, 0);
	/* Nothing runs: nobody can tell what was published. */
	assert_int_equal(generation_repair(f->dir, 0, &f->d), 0);
	assert_int_equal(generation_repair(f->dir, 7, &f->d), 1);
	assert_int_equal(f->d.count, 1);
	assert_int_equal(f->d.errors, 0);
	assert_non_null(strstr(f->d.entry[0].message, "generation 8 was prepared and never published"));
	assert_kept(f, "7");
	/* A crash leaves one file: more are another life's history. */
	diag_free(&f->d);
	write_one(f, 8);
	write_one(f, 9);
	assert_int_equal(generation_repair(f->dir, 7, &f->d), 0);
	assert_kept(f, "7 8 9");
	free(temporary);
}

/* Writes with room for so many bytes only, as on a full disk. */
static int write_within(struct fixture *f, uint32_t number, rlim_t bytes)
{
	struct rlimit all, some;
	int err;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	some = (struct rlimit){ bytes, all.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &some), 0);
	err = generation_write(f->dir, number, MAY_2024, DIGEST, "none", f->c, &f->d);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	signal(SIGXFSZ, SIG_DFL);
	return err;
}

static void test_no_room(void **state)
{
	struct fixture *f = *state;
	char *path = generation_path(f->dir, 1), *before, *after;

	write_one(f, 1);
	before = contents(path);
	for (rlim_t bytes = 0; bytes < strlen(before); bytes += 7) {
		assert_int_equal(write_within(f, 1, bytes), -EFBIG);
		assert_int_equal(write_within(f, 2, bytes), -EFBIG);
		assert_int_equal(f->d.errors, 2);
		assert_non_null(strstr(f->d.entry[0].message, path));
		assert_non_null(strstr(f->d.entry[0].message, "free some space"));
		assert_non_null(strstr(f->d.entry[0].message, "--no-record"));
		diag_free(&f->d);
		after = contents(path);
		assert_string_equal(before, after);
		assert_int_equal(names(f->dir), 1);
		free(after);
	}
	free(before);
	free(path);
}

static void test_no_directory(void **state)
{
	struct fixture *f = *state;
	char *file = xasprintf("%s/file", f->scratch), *below = xasprintf("%s/x", file);
	char *far = xasprintf("%s/no/such/place", f->scratch);

	put(file, "x");
	assert_int_equal(generation_write(below, 1, MAY_2024, DIGEST, "one", f->c, &f->d), -ENOTDIR);
	assert_int_equal(generation_write(far, 1, MAY_2024, DIGEST, "one", f->c, &f->d), -ENOENT);
	assert_int_equal(f->d.errors, 2);
	assert_non_null(strstr(f->d.entry[1].message, "--state-dir"));
	free(far);
	free(below);
	free(file);
}

/* Killed at any moment: each file is one of those that were written, whole. */
static void test_killed(void **state)
{
	struct fixture *f = *state;
	struct config *other = config_of(KEY, 2), *c;
	unsigned int seen[3] = { 0 };

	write_one(f, 1);
	for (unsigned int i = 0; i < 60; i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child) {
			for (uint32_t n = 0;; n++)
				generation_write(f->dir, 1, MAY_2024, DIGEST, "one", n % 2 ? f->c : other, &f->d);
		}
		usleep(i * 50);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		c = generation_load(f->dir, 1, &f->d);
		assert_non_null(c);
		seen[c->pool[0].backend[0].weight]++;
		config_free(c);
		assert_int_equal(generation_repair(f->dir, 1, &f->d), 0);
		assert_int_equal(names(f->dir), 1);
	}
	assert_true(seen[1] && seen[2]);
	config_free(other);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_write_and_load), TEST(test_list),   TEST(test_remove), TEST(test_damaged),
		TEST(test_key_file),       TEST(test_prune),  TEST(test_repair), TEST(test_no_room),
		TEST(test_no_directory),   TEST(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
