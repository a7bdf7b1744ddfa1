// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line: global options, wherever they stand, and the table of commands. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

#ifndef RINGLB_VERSION
#define RINGLB_VERSION "unknown"
#endif

static const struct cmd *const commands[] = {
	&cmd_check,   &cmd_attach,   &cmd_detach, &cmd_plan,    &cmd_apply,  &cmd_backend,
	&cmd_history, &cmd_rollback, &cmd_settle, &cmd_show,    &cmd_lookup, &cmd_ring,
	&cmd_tune,    &cmd_stats,    &cmd_trace,  &cmd_upgrade, &cmd_decap,  &cmd_run,
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static const char global_help[] = "Options, before or after the command:\n"
				  "  -i, --instance NAME   the instance (default: default)\n"
				  "  -j, --json            JSON on standard output, errors too\n"
				  "  -q, --quiet           only errors\n"
				  "  -v, --verbose         more detail\n"
				  "      --wait SECONDS    how long to wait for the instance's lock (default: 10)\n"
				  "      --bpffs DIR       in place of /sys/fs/bpf/ringlb (or RINGLB_BPFFS)\n"
				  "      --state-dir DIR   in place of /var/lib/ringlb (or RINGLB_STATE_DIR)\n"
				  "      --run-dir DIR     in place of /run/ringlb (or RINGLB_RUN_DIR)\n"
				  "  -V, --version         the version\n"
				  "  -h, --help            this help; after a command, that command's\n";

struct globals {
	const char *instance, *bpffs, *state_dir, *run_dir, *wait;
	bool json, quiet, verbose, version, help;
};

struct global_option {
	const char *name;
	char letter;  /* 0: none */
	size_t flag;  /* offset of a bool in struct globals, or 0 */
	size_t value; /* offset of a text */
	bool takes_value;
};

#define FLAG(name, letter, field)                                                                                      \
	{                                                                                                              \
		name, letter, offsetof(struct globals, field), 0, false                                                \
	}
#define VALUE(name, letter, field)                                                                                     \
	{                                                                                                              \
		name, letter, 0, offsetof(struct globals, field), true                                                 \
	}
static const struct global_option global_options[] = {
	VALUE("instance", 'i', instance), FLAG("json", 'j', json),       FLAG("quiet", 'q', quiet),
	FLAG("verbose", 'v', verbose),    FLAG("version", 'V', version), FLAG("help", 'h', help),
	VALUE("wait", 0, wait),           VALUE("bpffs", 0, bpffs),      VALUE("state-dir", 0, state_dir),
	VALUE("run-dir", 0, run_dir),
};

static const struct global_option *find_global(const char *name, size_t length, char letter)
{
	for (size_t i = 0; i < sizeof(global_options) / sizeof(*global_options); i++) {
		const struct global_option *g = &global_options[i];

		if (letter ? g->letter == letter : strlen(g->name) == length && !strncmp(g->name, name, length))
			return g;
	}
	return NULL;
}

static void set_global(struct globals *gl, const struct global_option *g, const char *value)
{
	if (g->takes_value)
		*(const char **)((char *)gl + g->value) = value;
	else
		*(bool *)((char *)gl + g->flag) = true;
}

/*
 * Takes "--name", "--name=value" or "-letters" of global options. Returns how many arguments it used; 0 where it is
 * none, which is then the command's to judge; -1 after adding an error.
 */
static int take_global(struct globals *gl, char **argv, struct diag *d)
{
	const char *arg = argv[0], *equals = strchr(arg, '=');
	const struct global_option *g;

	if (!strncmp(arg, "--", 2)) {
		g = find_global(arg + 2, equals ? (size_t)(equals - arg - 2) : strlen(arg + 2), 0);
		if (!g)
			return 0;
		if (!g->takes_value && equals) {
			diag_error(d, "usage", "", "--%s takes no value", g->name);
			return -1;
		}
		if (g->takes_value && !equals && !argv[1]) {
			diag_error(d, "usage", "", "--%s needs a value", g->name);
			return -1;
		}
		set_global(gl, g, equals ? equals + 1 : argv[1]);
		return g->takes_value && !equals ? 2 : 1;
	}
	for (const char *c = arg + 1; *c; c++) {
		g = find_global("", 0, *c);
		if (!g)
			return 0;
		if (!g->takes_value)
			continue;
		if (!c[1] && !argv[1]) {
			diag_error(d, "usage", "", "-%c needs a value", *c);
			return -1;
		}
		break;
	}
	for (const char *c = arg + 1; *c; c++) {
		g = find_global("", 0, *c);
		set_global(gl, g, c[1] ? c + 1 : argv[1]);
		if (g->takes_value)
			return c[1] ? 1 : 2;
	}
	return 1;
}

/* Moves what is not a global option to the front of argv and returns how much that is, or -1. */
static int split_globals(struct globals *gl, int argc, char **argv, struct diag *d)
{
	int kept = 1;

	for (int i = 1; i < argc;) {
		int used = 0;

		if (!strcmp(argv[i], "--")) {
			while (i < argc)
				argv[kept++] = argv[i++];
			break;
		}
		if (argv[i][0] == '-' && argv[i][1])
			used = take_global(gl, &argv[i], d);
		if (used < 0)
			return -1;
		if (!used)
			argv[kept++] = argv[i++];
		i += used;
	}
	argv[kept] = NULL;
	return kept;
}

/* Insertions, removals, replacements and swaps of neighbours between two short words. */
static unsigned int edit_distance(const char *a, const char *b)
{
	unsigned int row[3][32];
	size_t la = strlen(a), lb = strlen(b);

	if (la > 30 || lb > 30)
		return 99;
	for (size_t j = 0; j <= lb; j++)
		row[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned int *now = row[i % 3], *up = row[(i + 2) % 3], *upup = row[(i + 1) % 3];

		now[0] = (unsigned int)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned int best = up[j - 1] + (a[i - 1] != b[j - 1]);

			best = up[j] + 1 < best ? up[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && upup[j - 2] + 1 < best)
				best = upup[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[la % 3][lb];
}

static const struct cmd *find_command(const char *name, struct diag *d)
{
	const struct cmd *nearest = NULL;
	unsigned int distance = 3;

	for (size_t i = 0; i < COMMANDS; i++) {
		const char *other = commands[i]->name;
		unsigned int e = edit_distance(name, other);

		if (!e)
			return commands[i];
		if (*name && !strncmp(name, other, strlen(name)))
			e = 1;
		if (e < distance && e < strlen(other)) {
			distance = e;
			nearest = commands[i];
		}
	}
	if (nearest)
		diag_error(d, "unknown-command", "",
			   "unknown command \"%s\": did you mean \"%s\"? (\"ringlb help\" lists them)", name,
			   nearest->name);
	else
		diag_error(d, "unknown-command", "", "unknown command \"%s\": \"ringlb help\" lists them", name);
	return NULL;
}

static int help(struct out *o, const struct cmd *c)
{
	if (out_is_json(o)) {
		out_string(o, "usage", c ? c->usage : "[OPTIONS] COMMAND [ARGUMENTS]");
		out_array(o, "commands");
		for (size_t i = 0; i < COMMANDS; i++)
			if (!c || c == commands[i])
				out_string(o, NULL, commands[i]->name);
		out_end(o);
		return EXIT_DONE;
	}
	if (c) {
		out_text(o, "Usage: ringlb %s%s%s\n\n%s\n\n%s", c->name, *c->usage ? " " : "", c->usage, c->summary,
			 c->help);
		if (*c->help && c->help[strlen(c->help) - 1] != '\n')
			out_text(o, "\n");
		out_text(o, "\nOptions of every command (-i, -j, -q, ...): \"ringlb help\".\n");
		return EXIT_DONE;
	}
	out_text(
		o,
		"Usage: ringlb [OPTIONS] COMMAND [ARGUMENTS]\n\nAn L4 load balancer on XDP with a weighted consistent-hash ring.\n\n"
		"Commands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		out_text(o, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
	out_text(o, "  %-8s  %s\n\n%s\n", "help", "this list, or with a COMMAND what it does and takes", global_help);
	out_text(o, "Exit status: 0 done; 1 failed, what was running still runs; 2 bad usage or configuration;\n"
		    "3 refused by a guard; 4 \"plan --exit-code\": something would change.\n"
		    "Manual: ringlb(8), ringlb.yaml(5).\n");
	return EXIT_DONE;
}

static char *join(int argc, char **argv)
{
	char *line = xstrdup("ringlb");

	for (int i = 1; i < argc; i++) {
		char *longer = xasprintf("%s %s", line, argv[i]);

		free(line);
		line = longer;
	}
	return line;
}

static int run(struct cmd_context *cx, const struct globals *gl, int argc, char **argv)
{
	const struct cmd *c = NULL;
	bool asks = argc > 1 && !strcmp(argv[1], "help");
	char *end;

	if (gl->version) {
		out_string(cx->out, "version", RINGLB_VERSION);
		out_text(cx->out, "ringlb %s\n", RINGLB_VERSION);
		return EXIT_DONE;
	}
	if (argc > 1 + asks) {
		c = find_command(argv[1 + asks], &cx->diag);
		if (!c)
			return EXIT_BAD;
	}
	if (asks && argc > 3) {
		diag_error(&cx->diag, "usage", "", "help takes one COMMAND: \"%s\" is one too many", argv[3]);
		return EXIT_BAD;
	}
	if (asks || gl->help)
		return help(cx->out, c);
	if (!c) {
		diag_error(&cx->diag, "usage", "", "no command: \"ringlb help\" lists them");
		return EXIT_BAD;
	}
	cx->wait_seconds = gl->wait ? strtod(gl->wait, &end) : 10;
	if (gl->wait && (end == gl->wait || *end || !(cx->wait_seconds >= 0) || !isfinite(cx->wait_seconds))) {
		diag_error(&cx->diag, "usage", "", "--wait %s: a number of seconds, 0 or more", gl->wait);
		return EXIT_BAD;
	}
	if (instance_init(&cx->instance, gl->instance, gl->bpffs, gl->state_dir, gl->run_dir, &cx->diag))
		return EXIT_BAD;
	return c->run(cx, argc - 1, argv + 1);
}

/*
 * Without descriptors 0 to 2 the next file that is opened would be taken for one of them. Only for reading: what is
 * written to a closed descriptor is still an error.
 */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct cmd_context cx = { 0 };
	struct globals gl = { 0 };
	char *line = join(argc, argv);
	int kept, status;

	fill_standard_descriptors();
	/* A reader that goes away must not end a change half way: the write fails instead. */
	signal(SIGPIPE, SIG_IGN);
	kept = split_globals(&gl, argc, argv, &cx.diag);
	cx.json = gl.json;
	cx.quiet = gl.quiet;
	cx.verbose = gl.verbose;
	cx.command_line = line;
	cx.out = out_new(gl.json, gl.quiet && !gl.help && !gl.version);
	status = kept < 0 ? EXIT_BAD : run(&cx, &gl, kept, argv);
	if (!out_finish(cx.out, &cx.diag)) {
		if (cx.changed)
			fputs("ringlb: the change itself was made\n", stderr);
		else if (status == EXIT_DONE)
			status = EXIT_FAILED;
	}
	/* Last, as the reasons before it and the plan on standard output may look like what was done. */
	if (status == EXIT_REFUSED && !cx.changed && !gl.json)
		fputs("ringlb: refused: nothing was changed\n", stderr);
	out_free(cx.out);
	instance_free(&cx.instance);
	diag_free(&cx.diag);
	free(line);
	return status;
}
