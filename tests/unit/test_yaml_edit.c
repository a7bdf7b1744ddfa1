// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Edits of a configuration's text, each case whole: the text before, the edits, the text after. Then files: their
 * owner, mode and links. Random texts are test_yaml_edit_random.c's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "yaml_edit.h"

#define HEAD "interfaces: [eth0]\nhash_key: 00112233445566778899aabbccddeeff\nservices: []\n"

#define SET(b, k, v)                                                                                                   \
	{                                                                                                              \
		.kind = YAML_EDIT_SET, .pool = "p", .backend = b, .key = YAML_EDIT_##k, .value = v                     \
	}
#define UNSET(b, k)                                                                                                    \
	{                                                                                                              \
		.kind = YAML_EDIT_UNSET, .pool = "p", .backend = b, .key = YAML_EDIT_##k                               \
	}
#define DELETE(b)                                                                                                      \
	{                                                                                                              \
		.kind = YAML_EDIT_DELETE, .pool = "p", .backend = b                                                    \
	}
#define ADD(b)                                                                                                         \
	{                                                                                                              \
		.kind = YAML_EDIT_ADD, .pool = "p", .backend = "w", .add = b                                           \
	}

static struct config_backend plain = { .name = "w", .identity = "w", .weight = 1 };
static struct config_backend full = { .name = "w", .identity = "a\"b", .zone = "1", .weight = 7, .points = 9, .id = 3 };

static int setup(void **state)
{
	(void)state;
	return address_parse("10.0.0.9", &plain.address) || address_parse("fd00::9", &full.address);
}

struct edit_case {
	const char *name, *before;
	struct yaml_edit edit[3];
	const char *after; /* NULL: refused */
};

static const struct edit_case cases[] = {
	{ "flow item: value replaced",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - {name: a, address: 10.0.0.1, weight: 1 }   # c\n",
	  { SET("a", WEIGHT, 20) },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - {name: a, address: 10.0.0.1, weight: 20 }   # c\n" },
	{ "flow item: keys added",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - { name: a, address: 10.0.0.1 } # }\n",
	  { SET("a", WEIGHT, 2), SET("a", POINTS, 77) },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - { name: a, address: 10.0.0.1, weight: 2, points: 77 } # }\n" },
	{ "flow item: a comma at its end",
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1 , }]}]\n",
	  { SET("a", WEIGHT, 2) },
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1, weight: 2 , }]}]\n" },
	{ "block item: a line added, none at the end",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  -   name: a\n"
	  "      address: 10.0.0.1 # c",
	  { SET("a", WEIGHT, 2), SET("a", POINTS, 77) },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  -   name: a\n"
	  "      address: 10.0.0.1 # c\n"
	  "      weight: 2\n"
	  "      points: 77" },
	{ "block item: behind quotes of several lines",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - name: a\n"
	  "    address: 10.0.0.1\n"
	  "    identity: \"x\n"
	  "      # y\" # c\n"
	  "\n"
	  "  - {name: b, address: 10.0.0.2}\n",
	  { SET("a", WEIGHT, 2) },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - name: a\n"
	  "    address: 10.0.0.1\n"
	  "    identity: \"x\n"
	  "      # y\" # c\n"
	  "    weight: 2\n"
	  "\n"
	  "  - {name: b, address: 10.0.0.2}\n" },
	{ "block item: not into text under |",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - name: a\n"
	  "    address: 10.0.0.1\n"
	  "    identity: |-\n"
	  "      x\n"
	  "\n"
	  "    # c\n",
	  { SET("a", WEIGHT, 2) },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - name: a\n"
	  "    address: 10.0.0.1\n"
	  "    weight: 2\n"
	  "    identity: |-\n"
	  "      x\n"
	  "\n"
	  "    # c\n" },
	{ "CR LF and a mark at the start, letters of several bytes",
	  "\xef\xbb\xbfpools: # \xc3\xa9\xf0\x9f\x90\xa7\r\n"
	  "- name: p\r\n"
	  "  backends:\r\n"
	  "  - name: a # \xc3\xa9\r\n"
	  "    address: 10.0.0.1\r\n",
	  { SET("a", WEIGHT, 2), ADD(&plain) },
	  "\xef\xbb\xbfpools: # \xc3\xa9\xf0\x9f\x90\xa7\r\n"
	  "- name: p\r\n"
	  "  backends:\r\n"
	  "  - name: a # \xc3\xa9\r\n"
	  "    address: 10.0.0.1\r\n"
	  "    weight: 2\r\n"
	  "  - name: w\r\n"
	  "    address: 10.0.0.9\r\n"
	  "    weight: 1\r\n" },
	{ "JSON stays JSON",
	  "{\"pools\": [{\"name\": \"p\", \"backends\": [\n"
	  "\t{\"name\": \"a\", \"address\": \"10.0.0.1\"}\n"
	  "]}],\n",
	  { SET("a", WEIGHT, 2), ADD(&plain) },
	  "{\"pools\": [{\"name\": \"p\", \"backends\": [\n"
	  "\t{\"name\": \"a\", \"address\": \"10.0.0.1\", \"weight\": 2},\n"
	  "\t{\"name\": \"w\", \"address\": \"10.0.0.9\", \"weight\": 1}\n"
	  "]}],\n" },
	{ "what the file says already is no edit",
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}]}]\n",
	  { SET("a", WEIGHT, 1), UNSET("a", POINTS), DELETE("z") },
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}]}]\n" },
	{ "flow item: keys taken out",
	  "pools: [{name: p, backends: [{weight: 2, name: a, address: 10.0.0.1, points: 3}]}]\n",
	  { UNSET("a", WEIGHT), UNSET("a", POINTS) },
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}]}]\n" },
	{ "flow item on lines: a key taken out with its own",
	  "pools: [{name: p, backends: [{name: a, # n\n"
	  "  weight: 2, # w\n"
	  "  address: 10.0.0.1 # a\n"
	  "  , points: 3 # p\n"
	  " }]}]\n",
	  { UNSET("a", WEIGHT), UNSET("a", POINTS) },
	  "pools: [{name: p, backends: [{name: a, # n\n"
	  "  address: 10.0.0.1 # a\n"
	  " }]}]\n" },
	{ "block item: keys taken out, the first and the last",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - weight: 2 # w\n"
	  "    # n\n"
	  "    name: a\n"
	  "    address: 10.0.0.1\n"
	  "    points: 3",
	  { UNSET("a", WEIGHT), UNSET("a", POINTS) },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - # n\n"
	  "    name: a\n"
	  "    address: 10.0.0.1" },
	{ "block list: a backend added like the last",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "    # first\n"
	  "    -  { name: a, address: 10.0.0.1, weight: 1 }   # c\n"
	  "    # last\n"
	  "  quorum: 1\n",
	  { ADD(&plain) },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "    # first\n"
	  "    -  { name: a, address: 10.0.0.1, weight: 1 }   # c\n"
	  "    -  { name: w, address: 10.0.0.9, weight: 1 }\n"
	  "    # last\n"
	  "  quorum: 1\n" },
	{ "block list: every key, blank lines between, no line end",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  -\n"
	  "    name: a\n"
	  "    address: fd00::1\n"
	  "\n"
	  "  - name: b\n"
	  "    address: fd00::2",
	  { ADD(&full) },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  -\n"
	  "    name: a\n"
	  "    address: fd00::1\n"
	  "\n"
	  "  - name: b\n"
	  "    address: fd00::2\n"
	  "\n"
	  "  - name: w\n"
	  "    address: \"fd00::9\"\n"
	  "    weight: 7\n"
	  "    zone: \"1\"\n"
	  "    identity: \"a\\\"b\"\n"
	  "    points: 9\n"
	  "    id: 3" },
	{ "flow list: one line",
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}]}]\n",
	  { ADD(&plain) },
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}, {name: w, address: 10.0.0.9}]}]\n" },
	{ "flow list: lines with comments",
	  "pools: [{name: p, backends: [\n"
	  "  {name: a, address: 10.0.0.1} # a\n"
	  "]}]\n",
	  { ADD(&plain) },
	  "pools: [{name: p, backends: [\n"
	  "  {name: a, address: 10.0.0.1}, # a\n"
	  "  {name: w, address: 10.0.0.9}\n"
	  "]}]\n" },
	{ "flow list: lines with a comma at the end",
	  "pools: [{name: p, backends: [\n"
	  "  {name: a, address: 10.0.0.1}, # a\n"
	  "  # z\n"
	  "]}]\n",
	  { ADD(&plain) },
	  "pools: [{name: p, backends: [\n"
	  "  {name: a, address: 10.0.0.1}, # a\n"
	  "  {name: w, address: 10.0.0.9},\n"
	  "  # z\n"
	  "]}]\n" },
	{ "flow list: the bracket behind the last",
	  "pools: [{name: p, backends: [\n"
	  "  {name: a, address: 10.0.0.1}]}]\n",
	  { ADD(&plain) },
	  "pools: [{name: p, backends: [\n"
	  "  {name: a, address: 10.0.0.1},\n"
	  "  {name: w, address: 10.0.0.9}]}]\n" },
	{ "nothing there yet",
	  "pools:\n"
	  "  - name: p\n"
	  "    backends: []   # none\n"
	  "    quorum: 1\n",
	  { ADD(&plain) },
	  "pools:\n"
	  "  - name: p\n"
	  "    backends:   # none\n"
	  "      - {name: w, address: 10.0.0.9}\n"
	  "    quorum: 1\n" },
	{ "nothing there yet, and another pool as a model",
	  "pools:\n"
	  "  - backends: []\n"
	  "    name: p\n"
	  "  - name: q\n"
	  "    backends:\n"
	  "    - name: a\n"
	  "      address: 10.0.0.1",
	  { ADD(&plain) },
	  "pools:\n"
	  "  - backends:\n"
	  "    - name: w\n"
	  "      address: 10.0.0.9\n"
	  "    name: p\n"
	  "  - name: q\n"
	  "    backends:\n"
	  "    - name: a\n"
	  "      address: 10.0.0.1" },
	{ "nothing there yet, in brackets",
	  "pools: [{name: p, backends: [ ]}]\n",
	  { ADD(&plain) },
	  "pools: [{name: p, backends: [{name: w, address: 10.0.0.9}]}]\n" },
	{ "nothing there yet but a comment",
	  "pools: [{name: p, backends: [ # none\n"
	  "  ]}]\n",
	  { ADD(&plain) },
	  "pools: [{name: p, backends: [{name: w, address: 10.0.0.9} # none\n"
	  "  ]}]\n" },
	{ "block list: the first deleted, and what belongs to it",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  # head\n"
	  "  - name: a # a\n"
	  "    # a\n"
	  "    address: 10.0.0.1\n"
	  "    # a too\n"
	  "  # b\n"
	  "  - {name: b, address: 10.0.0.2} # b\n",
	  { DELETE("a") },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  # head\n"
	  "  # b\n"
	  "  - {name: b, address: 10.0.0.2} # b\n" },
	{ "block list: the last deleted, no line end",
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - {name: a, address: 10.0.0.1}\n"
	  "  # b\n"
	  "  -\n"
	  "    name: b\n"
	  "    address: 10.0.0.2",
	  { DELETE("b") },
	  "pools:\n"
	  "- name: p\n"
	  "  backends:\n"
	  "  - {name: a, address: 10.0.0.1}\n"
	  "  # b" },
	{ "block list: the only one deleted, and one put in again",
	  "pools:\n"
	  "- name: p\n"
	  "  backends: # all\n"
	  "    # head\n"
	  "    - {name: a, address: 10.0.0.1}\n",
	  { DELETE("a"), ADD(&plain) },
	  "pools:\n"
	  "- name: p\n"
	  "  backends: # all\n"
	  "    - {name: w, address: 10.0.0.9}\n"
	  "    # head\n" },
	{ "flow list: deleted in one line",
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}, "
	  "{name: c, address: 10.0.0.3}]}]\n",
	  { DELETE("a"), DELETE("c") },
	  "pools: [{name: p, backends: [{name: b, address: 10.0.0.2}]}]\n" },
	{ "flow list: deleted with its line",
	  "pools: [{name: p, backends: [ # head\n"
	  "  {name: a, address: 10.0.0.1}, # a\n"
	  "  # b\n"
	  "  {name: b,\n"
	  "   address: 10.0.0.2}, # b\n"
	  "  {name: c, address: 10.0.0.3} # c\n"
	  "]}]\n",
	  { DELETE("b"), DELETE("c") },
	  "pools: [{name: p, backends: [ # head\n"
	  "  {name: a, address: 10.0.0.1} # a\n"
	  "  # b\n"
	  "]}]\n" },
	{ "flow list: commas at the start of lines",
	  "pools: [{name: p, backends:\n"
	  "  [ {name: a, address: 10.0.0.1}\n"
	  "  , {name: b, address: 10.0.0.2}\n"
	  "  , {name: c, address: 10.0.0.3}\n"
	  "  ]}]\n",
	  { DELETE("b"), DELETE("a") },
	  "pools: [{name: p, backends:\n"
	  "  [ \n"
	  "   {name: c, address: 10.0.0.3}\n"
	  "  ]}]\n" },
	{ "flow list: the only one deleted",
	  "pools: [{name: p, backends: [\n"
	  " {name: a, address: 10.0.0.1}\n"
	  "]}]\n",
	  { DELETE("a") },
	  "pools: [{name: p, backends: []}]\n" },
	{ "numbers by place, as HAProxy gives them",
	  "pools: [{name: p, placement: haproxy, backends: [{name: a, address: 10.0.0.1}, {name: b, "
	  "address: 10.0.0.2}, {name: c, address: 10.0.0.3, id: 7}, {name: d, address: 10.0.0.4}]}]\n",
	  { DELETE("a"), ADD(&plain) },
	  "pools: [{name: p, placement: haproxy, backends: [{name: b, address: 10.0.0.2}, {name: c, "
	  "address: 10.0.0.3, id: 7}, {name: d, address: 10.0.0.4}, {name: w, address: 10.0.0.9}]}]\n" },
	{ "anchors",
	  "pools: [{name: p, backends: [&x {name: a, address: 10.0.0.1}]}]\n",
	  { SET("a", WEIGHT, 2) },
	  NULL },
	{ "merge keys",
	  "pools: [{name: p, backends: [{<<: {name: a}, address: 10.0.0.1}]}]\n",
	  { SET("a", WEIGHT, 2) },
	  NULL },
	{ "old line ends",
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}]}]\r",
	  { SET("a", WEIGHT, 2) },
	  NULL },
	{ "line separators",
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}]}] #\xe2\x80\xa8\n",
	  { SET("a", WEIGHT, 2) },
	  NULL },
	{ "no such pool",
	  "pools: [{name: q, backends: [{name: a, address: 10.0.0.1}]}]\n",
	  { SET("a", WEIGHT, 2) },
	  NULL },
	{ "no such backend",
	  "pools: [{name: p, backends: [{name: b, address: 10.0.0.1}]}]\n",
	  { SET("a", WEIGHT, 2) },
	  NULL },
	{ "there already", "pools: [{name: p, backends: [{name: w, address: 10.0.0.1}]}]\n", { ADD(&plain) }, NULL },
	{ "out of range",
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}]}]\n",
	  { SET("a", WEIGHT, 70000) },
	  NULL },
	{ "twice in a row",
	  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1, weight: 3}]}]\n",
	  { SET("a", WEIGHT, 2), SET("a", WEIGHT, 4) },
	  NULL },
	{ "a list behind the sign of a value",
	  "pools:\n"
	  "- name: p\n"
	  "  ? backends\n"
	  "  : - {name: a, address: 10.0.0.1}\n",
	  { DELETE("a") },
	  NULL },
};

/* The edits of a case: those with a pool. */
static size_t edits_of(const struct edit_case *c)
{
	size_t n = 0;

	while (n < 3 && c->edit[n].pool)
		n++;
	return n;
}

/* What every text needs besides its pools, in its own manner. */
static char *whole(const char *pools)
{
	if (*pools == '{')
		return xasprintf("%s\"interfaces\": [\"eth0\"], \"hash_key\": \"00112233445566778899aabbccddeeff\", "
				 "\"services\": []}",
				 pools);
	if (!strncmp(pools, "\xef\xbb\xbf", 3))
		return xasprintf("\xef\xbb\xbf%s%s", HEAD, pools + 3);
	return xasprintf("%s%s", HEAD, pools);
}

static bool run_case(const struct edit_case *c)
{
	char *before = whole(c->before), *after = c->after ? whole(c->after) : NULL, *found;
	struct diag d = { 0 };
	size_t length = 0;
	bool right;

	found = yaml_edit_text("t.yaml", before, strlen(before), c->edit, edits_of(c), &length, &d);
	right = !found == !after && (!found || (!strcmp(found, after) && length == strlen(found)));
	right &= !found == (d.errors > 0);
	if (!right) {
		print_error("%s:\n%s--- became ---\n%s--- not ---\n%s---\n", c->name, before,
			    found ? found : "nothing\n", after ? after : "nothing\n");
		for (size_t i = 0; i < d.count; i++)
			print_error("%s: %s\n", d.entry[i].where, d.entry[i].message);
	}
	diag_free(&d);
	free(found);
	free(after);
	free(before);
	return right;
}

static void test_cases(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		wrong += !run_case(&cases[i]);
	assert_int_equal(wrong, 0);
}

static void test_states(void **state)
{
	static const struct edit_case of_states[] = {
		{ "quotes kept",
		  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1, state: 'up'}]}]\n",
		  { SET("a", STATE, CONFIG_DRAIN) },
		  "pools: [{name: p, backends: [{name: a, address: 10.0.0.1, state: 'drain'}]}]\n" },
		{ "added, in a block",
		  "pools:\n"
		  "- name: p\n"
		  "  backends:\n"
		  "  - name: a\n"
		  "    address: 10.0.0.1\n",
		  { SET("a", STATE, CONFIG_MAINT) },
		  "pools:\n"
		  "- name: p\n"
		  "  backends:\n"
		  "  - name: a\n"
		  "    address: 10.0.0.1\n"
		  "    state: maint\n" },
		{ "added, in JSON",
		  "{\"pools\": [{\"name\": \"p\", \"backends\": [{\"name\": \"a\", \"address\": \"10.0.0.1\"}]}], ",
		  { SET("a", STATE, CONFIG_MAINT) },
		  "{\"pools\": [{\"name\": \"p\", \"backends\": [{\"name\": \"a\", \"address\": "
		  "\"10.0.0.1\", \"state\": \"maint\"}]}], " },
		{ "as text under |",
		  "pools:\n"
		  "- name: p\n"
		  "  backends:\n"
		  "  - name: a\n"
		  "    state: |-\n"
		  "      drain\n"
		  "    address: 10.0.0.1\n",
		  { SET("a", STATE, CONFIG_UP) },
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of_states) / sizeof(*of_states); i++)
		assert_true(run_case(&of_states[i]));
}

static char start[4096];

static int enter_scratch(void **state)
{
	char *directory = xasprintf("%s/ringlb-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");

	*state = directory;
	return getcwd(start, sizeof(start)) && mkdtemp(directory) && !chdir(directory) ? 0 : -1;
}

static int leave_scratch(void **state)
{
	int err = chmod(*state, 0700);

	unlink("c.yaml");
	unlink("link");
	err |= chdir(start) || rmdir(*state); /* so nothing else is left */
	free(*state);
	return err;
}

#define FILE_BEFORE HEAD "pools: [{name: p, backends: [{name: a, address: 10.0.0.1}]}]\n"
#define FILE_AFTER HEAD "pools: [{name: p, backends: [{name: a, address: 10.0.0.1, weight: 2}]}]\n"
static const struct yaml_edit to_two = SET("a", WEIGHT, 2);

static void write_file(mode_t mode)
{
	FILE *f = fopen("c.yaml", "w");

	assert_non_null(f);
	assert_int_equal(fputs(FILE_BEFORE, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod("c.yaml", mode), 0);
}

static void assert_file(const char *wanted)
{
	char text[4096] = "";
	int fd = open("c.yaml", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(wanted));
	close(fd);
	assert_string_equal(text, wanted);
}

static void test_file(void **state)
{
	struct diag d = { 0 };
	struct stat st;

	(void)state;
	write_file(0640);
	if (!geteuid())
		assert_int_equal(chown("c.yaml", 1234, 5678), 0);
	assert_int_equal(symlink("c.yaml", "link"), 0);
	assert_int_equal(yaml_edit_file("link", &to_two, 1, &d), 0);
	assert_int_equal(d.count, 0);
	assert_file(FILE_AFTER);
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat("c.yaml", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_uid, geteuid() ? geteuid() : 1234);
	assert_int_equal(st.st_gid, geteuid() ? getegid() : 5678);
}

static void test_file_unchanged(void **state)
{
	static const struct yaml_edit to_one = SET("a", WEIGHT, 1), to_much = SET("a", WEIGHT, 70000);
	struct stat before, after;
	struct diag d = { 0 };

	(void)state;
	write_file(0600);
	assert_int_equal(stat("c.yaml", &before), 0);
	assert_int_equal(yaml_edit_file("c.yaml", &to_one, 1, &d), 0);
	assert_int_equal(d.count, 0);
	assert_int_equal(yaml_edit_file("c.yaml", &to_much, 1, &d), -EINVAL);
	assert_int_equal(d.errors, 1);
	assert_int_equal(stat("c.yaml", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(yaml_edit_rehearse("c.yaml", &to_two, 1, &d), 0);
	assert_int_equal(yaml_edit_rehearse("c.yaml", &to_much, 1, &d), -EINVAL);
	assert_file(FILE_BEFORE);
	assert_int_equal(yaml_edit_file("-", &to_two, 1, &d), -EINVAL);
	assert_int_equal(yaml_edit_file("missing", &to_two, 1, &d), -ENOENT);
	assert_int_equal(yaml_edit_file(".", &to_two, 1, &d), -EINVAL);
	diag_free(&d);
}

/* No room for the new text: the old one stays, and nothing beside it (see leave_scratch). */
static void test_file_no_room(void **state)
{
	struct rlimit all, some = { .rlim_cur = 10 };
	struct diag d = { 0 };
	int err;

	(void)state;
	write_file(0600);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	some.rlim_max = all.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &some), 0);
	err = yaml_edit_file("c.yaml", &to_two, 1, &d);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(err, -EFBIG);
	assert_int_equal(d.errors, 1);
	diag_free(&d);
	assert_file(FILE_BEFORE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_states),
		cmocka_unit_test_setup_teardown(test_file, enter_scratch, leave_scratch),
		cmocka_unit_test_setup_teardown(test_file_unchanged, enter_scratch, leave_scratch),
		cmocka_unit_test_setup_teardown(test_file_no_room, enter_scratch, leave_scratch),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
