// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "report.h"

#define PERIOD_MIN 0.1
#define PERIOD_MAX 86400

static int set_period(struct cmd_context *cx, const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	if (end == text || *end || !isfinite(*seconds) || *seconds < PERIOD_MIN || *seconds > PERIOD_MAX)
		return cmd_usage(cx, "stats", "--watch %s: seconds are wanted, %g to %d", text, PERIOD_MIN, PERIOD_MAX);
	return EXIT_DONE;
}

static int set_count(struct cmd_context *cx, const char *text, uint64_t *count)
{
	char *end;

	*count = strtoul(text, &end, 10);
	if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 9 || !*count)
		return cmd_usage(cx, "stats", "--count %s: a number is wanted, 1 to 999999999", text);
	return EXIT_DONE;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = {
		{ "watch", required_argument, NULL, 'w' },
		{ "count", required_argument, NULL, 'c' },
		{ 0 },
	};
	struct running running;
	double seconds = 0;
	uint64_t count = 0;
	int c, status = EXIT_DONE, err;

	while (!status && (c = cmd_getopt(cx, argc, argv, options)) != -1)
		status = c == '?' ? EXIT_BAD :
			 c == 'w' ? set_period(cx, optarg, &seconds) :
				    set_count(cx, optarg, &count);
	if (status)
		return status;
	if (count && !seconds)
		return cmd_usage(cx, argv[0], "--count goes with --watch");
	if (argc > optind)
		return cmd_usage(cx, argv[0], "it takes no arguments, and \"%s\" is one", argv[optind]);
	if (!cmd_privileged(cx, argv[0]))
		return EXIT_FAILED;
	if (seconds)
		return cmd_stats_watch(cx, seconds, count);
	status = cmd_running(cx, argv[0], &running);
	if (status)
		return status;
	err = report_stats(cx->out, &running, &cx->diag);
	running_close(&running);
	return err ? EXIT_FAILED : EXIT_DONE;
}

const struct cmd cmd_stats = {
	.name = "stats",
	.usage = "[--watch SECONDS [--count N]]",
	.summary = "packets, bytes and flows by service and backend, and every verdict",
	.help = "Counters since the attach; bytes are of frames as they came in. flows: entries of the flow table\n"
		"that are alive. How full that table is, and what happened in it.\n"
		"Every packet is counted under exactly one verdict; what can be done about a bad one stands\n"
		"beside its counter.\n\n"
		"  --watch SECONDS  again and again, and how fast the counters grow: in one place on a terminal, else\n"
		"                   one block after the other, with --json one value a line (its \"rates\" are a\n"
		"                   second's, from the second one on). What becomes of the instance meanwhile does not\n"
		"                   end it; Ctrl-C does\n"
		"  --count N        so many times\n\n"
		"Exit status: 0 shown; 1 failed, or not attached; 2 bad usage.\n",
	.run = run,
};
