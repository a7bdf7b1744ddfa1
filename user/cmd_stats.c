// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <getopt.h>

#include "cmd.h"
#include "report.h"

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { 0 } };
	struct running running;
	int status, err;

	if (cmd_getopt(cx, argc, argv, options) != -1)
		return EXIT_BAD;
	if (argc > optind)
		return cmd_usage(cx, argv[0], "it takes no arguments, and \"%s\" is one", argv[optind]);
	if (!cmd_privileged(cx, argv[0]))
		return EXIT_FAILED;
	status = cmd_running(cx, argv[0], &running);
	if (status)
		return status;
	err = report_stats(cx->out, &running, &cx->diag);
	running_close(&running);
	return err ? EXIT_FAILED : EXIT_DONE;
}

const struct cmd cmd_stats = {
	.name = "stats",
	.usage = "",
	.summary = "packets, bytes and flows by service and backend, and every verdict",
	.help = "Counters since the attach; bytes are of frames as they came in. flows: entries of the flow table\n"
		"that are alive. How full that table is, and what happened in it.\n"
		"Every packet is counted under exactly one verdict; what can be done about a bad one stands\n"
		"beside its counter.\n\n"
		"Exit status: 0 shown; 1 failed, or not attached; 2 bad usage.\n",
	.run = run,
};
