/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command table: one command a file; help and dispatch come from the table in main.c. */
#ifndef RINGLB_CMD_H
#define RINGLB_CMD_H

#include <stdbool.h>

#include "diag.h"
#include "instance.h"
#include "out.h"

#define EXIT_DONE 0
#define EXIT_FAILED 1
#define EXIT_BAD 2	/* bad usage or bad configuration */
#define EXIT_REFUSED 3	/* by a guard */
#define EXIT_CHANGES 4	/* plan --exit-code */

#define CMD_DEFAULT_FILE "/etc/ringlb/ringlb.yaml"

struct cmd_context {
	struct instance instance;
	struct out *out;
	struct diag diag;
	double wait_seconds;
	bool json, quiet, verbose;
	const char *command_line;	/* for the lock's holder line */
};

struct cmd {
	const char *name;
	const char *usage;	/* arguments, one line: "[FILE] [--exit-code]" */
	const char *summary;	/* one line, for the list */
	const char *help;	/* what it does, its options and exit codes, for ringlb NAME --help */
	/* argv[0] is the command's name. Adds complaints to cx->diag, returns an exit status; main prints the diagnostics. */
	int (*run)(struct cmd_context *cx, int argc, char **argv);
};

extern const struct cmd cmd_check, cmd_attach, cmd_detach, cmd_plan, cmd_apply, cmd_show, cmd_lookup, cmd_stats, cmd_decap;

#endif
