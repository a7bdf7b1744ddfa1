// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd.h"
#include "commit.h"
#include "generation.h"

static void print_one(struct out *o, const struct generation *g, bool active, bool recorded)
{
	out_object(o, NULL);
	out_integer(o, "generation", g->number);
	out_string(o, "time", *g->time ? g->time : NULL);
	out_string(o, "digest", *g->digest ? g->digest : NULL);
	out_string(o, "summary", g->summary);
	out_boolean(o, "active", active);
	out_boolean(o, "recorded", recorded && !g->damaged);
	out_end(o);
	out_cell(o, active ? OUT_GOOD : OUT_PLAIN, "%s", active ? "*" : "");
	out_cell(o, OUT_PLAIN, "%u", g->number);
	out_cell(o, OUT_PLAIN, "%s", g->time);
	out_cell(o, OUT_PLAIN, "%.12s", g->digest);
	out_cell(o, g->damaged ? OUT_BAD : OUT_PLAIN, "%s", g->damaged ? "damaged: can't be returned to" : g->summary);
	out_row(o);
}

static void print_list(struct out *o, const struct generation *list, size_t count, const struct state *running)
{
	static const char *const head[] = { "", "generation", "time", "digest", "summary" };
	struct generation own = { .summary = (char *)"not recorded: can't be returned to" };
	bool found = !running;

	out_array(o, NULL);
	out_table(o, "lrlll");
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		out_head(o, "%s", head[i]);
	for (size_t i = 0; i < count; i++) {
		bool active = running && list[i].number == running->generation;

		found |= active;
		print_one(o, &list[i], active, true);
	}
	if (!found) {
		own.number = running->generation;
		snprintf(own.digest, sizeof(own.digest), "%s", running->digest);
		print_one(o, &own, true, false);
	}
	out_table_end(o);
	out_end(o);
	if (!count && !running)
		out_text(o, "no generation is kept, and nothing runs\n");
}

static int history(struct cmd_context *cx)
{
	char *dir = xasprintf("%s/%s", cx->instance.state_dir, cx->instance.name);
	struct running running;
	struct generation *list;
	int err = running_open(&cx->instance, &running, &cx->diag), status = EXIT_FAILED;
	size_t count;

	if ((!err || err == -ENOENT) && !generation_list(dir, &list, &count, &cx->diag)) {
		print_list(cx->out, list, count, err ? NULL : running.state);
		generation_list_free(list, count);
		status = EXIT_DONE;
	}
	if (!err)
		running_close(&running);
	free(dir);
	return status;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { 0 } };

	if (cmd_getopt(cx, argc, argv, options) != -1)
		return EXIT_BAD;
	if (argc > optind)
		return cmd_usage(cx, argv[0], "it takes no arguments, and \"%s\" is one", argv[optind]);
	if (!cmd_privileged(cx, argv[0]))
		return EXIT_FAILED;
	return history(cx);
}

const struct cmd cmd_history = {
	.name = "history",
	.usage = "",
	.summary = "the generations that are kept",
	.help = "The last 50 configurations that were made to run, and which of them runs (*); \"rollback\" returns\n"
		"to one. They stay after detach.\n\n"
		"Exit status: 0 shown; 1 failed; 2 bad usage.\n",
	.run = run,
};
