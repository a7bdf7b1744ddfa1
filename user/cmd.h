/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command table: one command a file; help and dispatch come from the table in main.c. */
#ifndef RINGLB_CMD_H
#define RINGLB_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "diag.h"
#include "instance.h"
#include "out.h"

#define EXIT_DONE 0
#define EXIT_FAILED 1
#define EXIT_BAD 2     /* bad usage or bad configuration */
#define EXIT_REFUSED 3 /* by a guard */
#define EXIT_CHANGES 4 /* plan --exit-code */

#define CMD_DEFAULT_FILE "/etc/ringlb/ringlb.yaml"

struct cmd_context {
	struct instance instance;
	struct out *out;
	struct diag diag;
	double wait_seconds;
	bool json, quiet, verbose;
	bool changed;             /* what runs was changed: no later failure may claim the contrary */
	const char *command_line; /* for the lock's holder line */
};

struct cmd {
	const char *name;
	const char *usage;   /* arguments, one line: "[FILE] [--exit-code]" */
	const char *summary; /* one line, for the list */
	const char *help;    /* what it does, its options and exit codes, for ringlb NAME --help */
	/*
	 * argv[0] is the command's name, global options are taken out. Adds complaints to cx->diag, which main prints,
	 * and returns an exit status.
	 */
	int (*run)(struct cmd_context *cx, int argc, char **argv);
};

extern const struct cmd cmd_check, cmd_attach, cmd_detach, cmd_plan, cmd_apply, cmd_show, cmd_lookup, cmd_stats,
	cmd_decap;

/* What commands share: cmd_common.c. */

struct option;
struct running;
struct plan;
struct config;

/*
 * getopt_long of long options, saying nothing itself: '?' after adding a "usage" error. Arguments are left behind
 * optind, in order.
 */
int cmd_getopt(struct cmd_context *cx, int argc, char **argv, const struct option *options);
/* Adds a "usage" error that ends with how to get help; returns EXIT_BAD. */
__attribute__((format(printf, 3, 4))) int cmd_usage(struct cmd_context *cx, const char *command, const char *format,
						    ...);
/* The one optional FILE of a command that takes nothing else: EXIT_DONE, or EXIT_BAD with an error. */
int cmd_file(struct cmd_context *cx, int argc, char **argv, const char **file);
/* True when this process may use BPF and change interfaces; else adds an error that says what is missing. */
bool cmd_privileged(struct cmd_context *cx, const char *command);
/* running_open with an error also where nothing is attached. EXIT_DONE, or EXIT_FAILED with an error. */
int cmd_running(struct cmd_context *cx, const char *command, struct running *out);

/*
 * --from LIST: calls answer for each line of a file, "-" for standard input, its line end taken off. A line that is not
 * answered does not stop the rest, but for EXIT_FAILED. Returns the last status that was not EXIT_DONE. cmd_from.c.
 */
typedef int (*cmd_answer)(void *data, char *line, size_t length, const char *where);
int cmd_from(struct cmd_context *cx, const char *list, cmd_answer answer, void *data);

/* What lookup is asked for. */
struct cmd_lookup_options {
	const char *file, *list, *pool, *key, *placement; /* NULL: not given */
	size_t replicas;
	bool distinct_zones, established;
};
/* lookup SERVICE, of a packet from source (NULL with a list): cmd_lookup_service.c. lookup --pool: cmd_lookup_key.c. */
int cmd_lookup_service(struct cmd_context *cx, const struct cmd_lookup_options *o, const char *service,
		       const char *source);
int cmd_lookup_key(struct cmd_context *cx, const struct cmd_lookup_options *o);
/* config_load for a question: its warnings are check's to tell. NULL after adding its errors. */
struct config *cmd_config(struct cmd_context *cx, const char *file);

/* Says what a plan would do or did, for plan and apply: cmd_report.c. */
void cmd_report_plan(struct cmd_context *cx, const struct running *running, const struct plan *plan);
/* Says what runs, for show and attach; pool NULL: every pool. EXIT_DONE, or EXIT_FAILED with an error. */
int cmd_report_running(struct cmd_context *cx, const struct running *running, const char *pool);

#endif
