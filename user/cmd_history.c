// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "cmd.h"
#include "report.h"

static int history(struct cmd_context *cx)
{
	char *dir = xasprintf("%s/%s", cx->instance.state_dir, cx->instance.name);
	struct running running;
	struct generation *list;
	int err = running_open(&cx->instance, &running, &cx->diag), status = EXIT_FAILED;
	size_t count;

	if ((!err || err == -ENOENT) && !generation_list(dir, &list, &count, &cx->diag)) {
		report_history(cx->out, NULL, list, count, err ? NULL : running.state);
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
