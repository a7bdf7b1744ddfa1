/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <getopt.h>

#include "cmd.h"
#include "config.h"

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { "strict", no_argument, NULL, 's' }, { NULL, 0, NULL, 0 } };
	const char *file = CMD_DEFAULT_FILE;
	struct config *c;
	bool strict = false;
	int option;

	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option != 's') {
			diag_error(&cx->diag, "usage", "", "check has no option %s; see ringlb check --help", argv[optind - 1]);
			return EXIT_BAD;
		}
		strict = true;
	}
	if (argc - optind > 1) {
		diag_error(&cx->diag, "usage", "", "check takes one FILE; %s is one too many", argv[optind + 1]);
		return EXIT_BAD;
	}
	if (optind < argc)
		file = argv[optind];
	c = config_load(file, &cx->diag);
	config_free(c);
	return c && !(strict && cx->diag.count) ? EXIT_DONE : EXIT_BAD;
}

const struct cmd cmd_check = {
	.name = "check",
	.usage = "[FILE] [--strict]",
	.summary = "validate a configuration file",
	.help = "Reads FILE (default " CMD_DEFAULT_FILE ", - for standard input) and prints nothing when it is\n"
		"sound, else every fault with its line and column. Nothing that runs is looked at or changed.\n"
		"\n"
		"  --strict    warnings count as errors\n"
		"\n"
		"Exit status: 0 sound (there may be warnings), 2 faults, or warnings with --strict.\n",
	.run = run,
};
