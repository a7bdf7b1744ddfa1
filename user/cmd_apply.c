// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <getopt.h>
#include <stdlib.h>

#include "change.h"
#include "cmd.h"

/* The configuration of the file, handed over. */
static int want(struct cmd_change *x, struct change *c, struct config **wanted)
{
	struct config **config = x->arg;

	(void)c;
	*wanted = *config;
	*config = NULL;
	return EXIT_DONE;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = {
		CMD_APPLY_OPTIONS,
		{ 0 },
	};
	struct config *config;
	struct cmd_change x = { .cx = cx, .command = argv[0], .guard = GUARD_NONE, .arg = &config, .want = want };
	const char *file;
	int c, status;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1)
		if (cmd_change_option(&x, c))
			return EXIT_BAD;
	if (cmd_file(cx, argc, argv, &file))
		return EXIT_BAD;
	config = cmd_load(cx, file);
	if (!config)
		return EXIT_BAD;
	status = cmd_change(&x);
	config_free(config);
	return status;
}

const struct cmd cmd_apply = {
	.name = "apply",
	.usage = "[FILE] [OPTIONS]",
	.summary = "make what runs equal FILE, atomically for packets",
	.help = "Prints what \"ringlb plan\" prints and does exactly that, as one new generation: a packet meets\n"
		"either the old configuration or the new one. FILE: default " CMD_DEFAULT_FILE ".\n"
		"Attaches what is missing, an interface that was removed and made again too. Where nothing\n"
		"would change there is no new generation.\n\n" CMD_APPLY_HELP
		"\nExit status: 0 done; 1 failed, what was running still runs; 2 bad usage or configuration;\n"
		"3 refused: too much would move, another generation runs, a pool would be empty, or a live\n"
		"edit would be undone; nothing was changed.\n",
	.run = run,
};
