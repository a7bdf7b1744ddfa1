/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <getopt.h>

#include "cmd.h"
#include "config.h"

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { "strict", no_argument, NULL, 's' }, { 0 } };
	struct config *c;
	bool strict = false;
	const char *file;
	int option;

	while ((option = cmd_getopt(cx, argc, argv, options)) != -1) {
		if (option == '?')
			return EXIT_BAD;
		strict = true;
	}
	if (cmd_file(cx, argc, argv, &file))
		return EXIT_BAD;
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
