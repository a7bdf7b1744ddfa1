/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command table: one command a file; help and dispatch come from the table in main.c. */
#ifndef RINGLB_CMD_H
#define RINGLB_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "diag.h"
#include "guard.h"
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

extern const struct cmd cmd_check, cmd_attach, cmd_detach, cmd_plan, cmd_apply, cmd_backend, cmd_history, cmd_rollback,
	cmd_settle, cmd_show, cmd_lookup, cmd_ring, cmd_tune, cmd_stats, cmd_trace, cmd_upgrade, cmd_decap, cmd_run;

/* What commands share: cmd_common.c. */

struct option;
struct running;
struct change;
struct plan;
struct pool_view;
struct pool_trial;
struct pool_shares;
struct share_change;
struct placement_member;
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
/* The configuration in FILE, which it names absolutely from then on, as other commands run elsewhere; NULL with errors. */
struct config *cmd_load(struct cmd_context *cx, const char *file);
/* True when this process may use BPF and change interfaces; else adds an error that says what is missing. */
bool cmd_privileged(struct cmd_context *cx, const char *command);
/* running_open with an error also where nothing is attached. EXIT_DONE, or EXIT_FAILED with an error. */
int cmd_running(struct cmd_context *cx, const char *command, struct running *out);
/* The error for what running_open or change_open gave, unless there is one (errors: how many before); EXIT_FAILED. */
int cmd_open_failed(struct cmd_context *cx, const char *command, int err, size_t errors);

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
/* ring --compare, of a pool from `source`, with a picture unless svg is NULL; the latter's writer: cmd_ring_compare.c. */
int cmd_ring_compare(struct cmd_context *cx, const struct pool_view *view, const char *source, const char *svg);
int cmd_write_svg(struct cmd_context *cx, const char *file, char *svg); /* "-": standard output; frees svg */
/* What the members of a trial have, the configured ones alone or new ones too; and what moves: cmd_shares.c. */
void cmd_shares_fields(struct cmd_context *cx, const struct pool_trial *t, const struct placement_member *member,
		       const struct pool_shares *s, bool new_too);
void cmd_moves_fields(struct cmd_context *cx, const struct share_change *c, const char *const *name);
void cmd_moves_text(struct cmd_context *cx, const char *when, const struct share_change *c, const char *const *name);
/* config_load for a question: its warnings are check's to tell. NULL after adding its errors. */
struct config *cmd_config(struct cmd_context *cx, const char *file);

/* stats --watch, every so many seconds, so many times (0: until interrupted): cmd_stats_watch.c. */
int cmd_stats_watch(struct cmd_context *cx, double seconds, uint64_t count);
/*
 * One reading of it for people, in at most `rows` lines (0: as many as it takes, all rows in the order of the file; where
 * lines are few, the busiest). stats: `stats --json` with "rates", once there are some: cmd_stats_text.c.
 */
void cmd_stats_text(struct out *o, const json_t *stats, size_t rows);

/* decap --show: cmd_decap_show.c. */
int cmd_decap_show(struct cmd_context *cx);

/* What commands that change what runs have in common: cmd_change.c. */
struct cmd_change {
	struct cmd_context *cx;
	const char *command;
	struct guard guard;
	bool cut, no_record, save;
	const char *summary; /* for the history; NULL: made from the plan */
	void *arg;           /* the command's own */
	/* Makes the wanted configuration, and may set c->in; an exit status. */
	int (*want)(struct cmd_change *x, struct change *c, struct config **wanted);
	void (*planned)(struct cmd_change *x, struct change *c); /* completes the plan; or NULL */
	void (*report)(struct cmd_change *x, struct change *c);  /* says it before it is done; NULL: cmd_report_plan */
	int (*done)(struct cmd_change *x, struct change *c);     /* what is to follow; an exit status; or NULL */
};
/* Values of options, beyond those of letters. */
enum { CMD_MAX_MOVE = 1000, CMD_IF_GENERATION, CMD_ALLOW_EMPTY, CMD_NO_RECORD, CMD_CUT, CMD_SAVE, CMD_DISCARD_LIVE };
#define CMD_CHANGE_OPTIONS                                                                                             \
	{ "max-move", required_argument, NULL, CMD_MAX_MOVE },                                                         \
		{ "if-generation", required_argument, NULL, CMD_IF_GENERATION },                                       \
		{ "allow-empty", no_argument, NULL, CMD_ALLOW_EMPTY },                                                 \
	{                                                                                                              \
		"no-record", no_argument, NULL, CMD_NO_RECORD                                                          \
	}
#define CMD_CHANGE_HELP                                                                                                \
	"  --max-move PCT       allow so much of a pool or service to move, whatever max_move says\n"                  \
	"  --if-generation N    only if generation N runs\n"                                                           \
	"  --allow-empty        also if a pool is left without a backend that takes flows\n"                           \
	"  --no-record          leave this generation out of the history\n"
/* Of commands that take a whole configuration: apply, and upgrade FILE. */
#define CMD_APPLY_OPTIONS                                                                                              \
	CMD_CHANGE_OPTIONS, { "cut", no_argument, NULL, CMD_CUT },                                                     \
	{                                                                                                              \
		"discard-live", no_argument, NULL, CMD_DISCARD_LIVE                                                    \
	}
#define CMD_APPLY_HELP                                                                                                 \
	CMD_CHANGE_HELP "  --cut                what leaves the file, or starts to drain, loses its flows at once\n"   \
			"  --discard-live       also if that undoes what \"backend\" or \"rollback\" changed\n"
/* Takes one of them, read by cmd_getopt: EXIT_DONE, or EXIT_BAD with an error. */
int cmd_change_option(struct cmd_change *x, int option);
/* Lock, read, plan, report, guards, commit. An exit status, after an error where it is not EXIT_DONE. */
int cmd_change(struct cmd_change *x);
int cmd_change_locked(struct cmd_change *x); /* with the lock held */
/*
 * Once FILE says the same: makes the running list of live edits what is left after forget. EXIT_DONE, or EXIT_FAILED
 * with an error.
 */
int cmd_change_saved(struct cmd_change *x, void (*forget)(struct cmd_change *x, struct state *next));
/* EXIT_DONE where --save can be done to the file of what runs, as far as can be told beforehand; else an error. */
int cmd_change_savable(struct cmd_change *x, const struct state *running);

/* Says what a plan would do or did, for plan and every change: cmd_report.c. */
void cmd_report_plan(struct cmd_context *cx, const struct plan_input *in, const struct plan *plan);
/* Its fields in JSON alone. */
void cmd_report_plan_fields(struct out *o, const struct plan_input *in, const struct plan *plan);
/* report_running, with its errors told, for show and attach: an exit status. cmd_show.c. */
int cmd_report_running(struct cmd_context *cx, const struct running *running, const char *pool);

#endif
