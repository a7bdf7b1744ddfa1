/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plan: from what runs and a wanted configuration to the next state, the operations that lead there, and what they
 * mean for flows. Pure: `plan` prints it, `apply` executes the same list.
 */
#ifndef RINGLB_PLAN_H
#define RINGLB_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "state.h"

enum plan_kind {
	PLAN_BACKEND_ADD,	/* takes a free index, before the switch */
	PLAN_BACKEND_CHANGE,	/* weight, points, name, zone or state */
	PLAN_BACKEND_REMOVE,	/* gives its index back, after the switch */
	PLAN_TABLE_BUILD,	/* writes a pool's table into free space, before the switch */
	PLAN_POOL_ADD,
	PLAN_POOL_REMOVE,
	PLAN_SERVICE_ADD,
	PLAN_SERVICE_CHANGE,
	PLAN_SERVICE_REMOVE,
	PLAN_SETTING,		/* anything else that the configuration says, hash_key among it */
	PLAN_INTERFACE_ATTACH,	/* before the switch at attach, after it in a running instance */
	PLAN_INTERFACE_REATTACH, /* was attached to an interface that is gone, or in another mode */
	PLAN_INTERFACE_DETACH,	/* after the switch */
};

struct plan_operation {
	enum plan_kind kind;
	size_t pool;		/* in next->pool, or in running->pool for a removal */
	size_t backend;		/* likewise */
	char *subject;		/* interface or service name, or NULL */
	char *text;		/* empty where it follows from others; one line for people: "pool web: backend web-4 added: 10.0.0.14, weight 1" */
};

struct plan_move {
	char *from, *to;	/* names of backends */
	uint64_t length;	/* positions, of 2^32 */
};

struct plan_pool {
	char *name;
	bool added, removed;
	uint64_t moved;		/* positions whose owner changes, of 2^32 */
	uint64_t minimum_twice;	/* L1 distance of the shares before and after; half of it must move in any placement */
	struct plan_move *move;	/* largest first */
	size_t moves;
};

/* An interface as it is now. */
struct plan_interface {
	const char *name;
	bool attached, alive, native;
};

struct plan {
	struct state *next;	/* owned; config moved into it */
	struct plan_operation *operation;
	size_t operations;	/* 0: no change */
	struct plan_pool *pool;	/* every pool of before and after, in next's order, removed ones last */
	size_t pools;
};

/*
 * running NULL: nothing runs (attach). Takes ownership of config, also on failure. -EINVAL with errors in d for what
 * can't be made (limits), else 0.
 */
int plan_make(const struct state *running, struct config *config, const struct plan_interface *interface, size_t interfaces, struct plan *out, struct diag *d);
void plan_free(struct plan *p);

#endif
