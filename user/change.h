/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one way in which what runs is changed, from whichever command: what runs -> the wanted configuration -> plan ->
 * guards -> history -> commit. Prints nothing. The caller holds the instance's lock.
 */
#ifndef RINGLB_CHANGE_H
#define RINGLB_CHANGE_H

#include "commit.h"
#include "guard.h"

struct change {
	const struct instance *instance;
	struct running running;
	struct plan_input in; /* running, interfaces, flows and now are filled in; the rest is the caller's to set */
	struct plan plan;     /* after change_plan */
	char *history;        /* directory */
};

/*
 * Opens what runs and completes what an interrupted command left undone, saying so with warnings. 0; -ENOENT when nothing
 * is attached (then also in.generation is set, for an attach); else -errno with a message. End with change_close always.
 */
int change_open(const struct instance *i, struct change *c, struct diag *d);
/* Plans for the wanted configuration, of which it takes ownership. 0, or -errno with a message. */
int change_plan(struct change *c, struct config *wanted, struct diag *d);
/*
 * Carries the plan out: a new generation is written to the history first, unless record is false; an empty plan does
 * nothing. With nothing running it attaches. summary: one line for the history; NULL: made from the plan. 0, or -errno
 * with a message, and what ran still runs unchanged.
 */
int change_commit(struct change *c, const char *summary, bool record, struct diag *d);
void change_close(struct change *c);
/* A copy of what runs as a configuration to be changed and given to change_plan. NULL with a message only for a bug. */
struct config *change_config(const struct change *c, struct diag *d);

#endif
