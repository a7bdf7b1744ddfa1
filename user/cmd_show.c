// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd.h"
#include "report.h"

int cmd_report_running(struct cmd_context *cx, const struct running *running, const char *pool)
{
	const struct report_options options = { .instance = cx->instance.name, .pool = pool, .verbose = cx->verbose };
	int err = report_running(cx->out, running, &options, &cx->diag);

	return err == -EINVAL ? EXIT_BAD : err ? EXIT_FAILED : EXIT_DONE;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { "config", no_argument, NULL, 'c' }, { 0 } };
	struct running running;
	bool config = false;
	int c, status;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1) {
		if (c == '?')
			return EXIT_BAD;
		config = true;
	}
	if (argc - optind > !config)
		return cmd_usage(cx, argv[0], config ? "--config takes no POOL" : "one POOL at most");
	if (!cmd_privileged(cx, argv[0]))
		return EXIT_FAILED;
	status = cmd_running(cx, argv[0], &running);
	if (status)
		return status;
	if (config) {
		char *text = config_emit(running.state->config, !geteuid());

		out_string(cx->out, "config", text);
		out_text(cx->out, "%s", text);
		free(text);
	} else {
		status = cmd_report_running(cx, &running, argv[optind]);
	}
	running_close(&running);
	return status;
}

const struct cmd cmd_show = {
	.name = "show",
	.usage = "[POOL] [--config]",
	.summary = "what is running",
	.help = "Interfaces with their mode, pools with each backend's exact share of the hash space, services;\n"
		"with POOL only that pool and its services. A service is ready when every interface is attached\n"
		"and at least \"quorum\" of its pool's backends take flows.\n\n"
		"  --config   as a configuration file that apply takes back unchanged; hash_key only for root\n"
		"  -v         the memory that is locked, too\n\n"
		"Exit status: 0 shown; 1 failed, or not attached; 2 bad usage.\n",
	.run = run,
};
