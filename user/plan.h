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
	/* of the configuration: they make a generation */
	PLAN_BACKEND_ADD,    /* takes a free index, before the switch */
	PLAN_BACKEND_CHANGE, /* weight, points, name, zone or state */
	PLAN_BACKEND_REMOVE, /* left the configuration: leaving from now on, or gone at once */
	PLAN_POOL_ADD,
	PLAN_POOL_REMOVE,
	PLAN_SERVICE_ADD,
	PLAN_SERVICE_CHANGE,
	PLAN_SERVICE_REMOVE,
	PLAN_SETTING, /* anything else that the configuration says, hash_key among it */
	/* of the interfaces; a generation only where the configuration's list changed */
	PLAN_INTERFACE_ATTACH,   /* before the switch */
	PLAN_INTERFACE_REATTACH, /* was attached to an interface that is gone, or in another mode */
	PLAN_INTERFACE_DETACH,   /* after the switch */
	/* what follows, or has become possible */
	PLAN_TABLE_BUILD, /* writes a pool's table into free space, before the switch */
	PLAN_OWN_BUILD,   /* the same for a service's own table; pool is its place in next->own */
	PLAN_SETTLE,      /* moved arcs of a pool became ordinary ones */
	PLAN_HEALTH,      /* a backend's health, and what follows from it */
	PLAN_RECORD,      /* the list of live edits ends, or the name of the file changes */
	PLAN_BACKEND_GONE, /* a leaving backend's flows have ended, or were given up: its index is free after the switch */
};

struct plan_operation {
	enum plan_kind kind;
	size_t pool;    /* in next->pool, or in running->pool for a removal */
	size_t backend; /* likewise */
	char *subject;  /* interface or service name, or NULL */
	bool cuts;      /* established flows of the backend are given up */
	char *text; /* empty where it follows from others; one line for people: "pool web: backend web-4 added: 10.0.0.14, weight 1" */
};

struct plan_move {
	char *from, *to; /* names of backends */
	uint64_t length; /* positions, of 2^32 */
};

struct plan_pool {
	char *name;
	bool added, removed;
	uint64_t moved;         /* positions whose owner changes, of 2^32 */
	uint64_t minimum_twice; /* L1 distance of the shares before and after; half of it must move in any placement */
	struct plan_move *move; /* largest first */
	size_t moves;
	bool emptied;            /* had a backend that takes flows, and has none */
	unsigned int tracked[3]; /* services that use it, by enum ringlb_track: what happens to established flows */
	uint64_t settling;       /* positions in moved arcs after the change */
	double settled;          /* fraction that was moved before it and is ordinary after it */
};

/* A service that gets another pool, or another hash: its own share, as for a pool. */
struct plan_service {
	char *name;
	uint64_t moved;
	bool rehashed; /* hash_key or affinity changed: every flow is hashed anew, none is kept */
	bool removed;  /* or at another address or port from now on: moved is everything */
	bool takes;    /* a new one, whose packets were another's until now: moved is everything */
	bool dropped;  /* no longer tracked: what is still moving goes to its new backend at once */
	char *where;   /* of a removed or taking one: its address, port and protocol */
	char *heir;   /* of a removed one: the service that takes its packets from then on; NULL: they are the host's */
	char *former; /* of a taking one: the service that had them */
	enum ringlb_track track;
};

#define PLAN_INTERFACE_NAME 16 /* IFNAMSIZ */

/* An interface as it is now. */
struct plan_interface {
	const char *name;
	bool attached, alive, native;
	bool gone; /* there is no interface of this name: it keeps its place in what runs, and is attached when it is back */
	char now[PLAN_INTERFACE_NAME]; /* what the one with the program is called since it was renamed; else empty */
};

struct plan {
	struct state *next; /* owned; config moved into it */
	struct plan_operation *operation;
	size_t operations;            /* 0: no change */
	bool keeps_edits;             /* see struct plan_input */
	bool generation;              /* the configuration changes: next has a new number */
	struct plan_service *service; /* those of which something moves though their pool's ring does not say so */
	size_t services;
	struct plan_pool *pool; /* every pool of before and after, in next's order, removed ones last */
	size_t pools;
};

struct plan_input {
	const struct state *running; /* NULL: nothing runs (attach) */
	struct config *config;       /* wanted; plan_make takes ownership, also on failure */
	const struct plan_interface *interface;
	size_t interfaces;
	uint32_t
		generation; /* the last one in the history, 0 for none: a new one is above it, and above the running one */
	uint32_t now;       /* stamp */
	const uint32_t
		*flows; /* flow-table entries that name each backend index, RINGLB_MAX_BACKENDS of them; NULL: none */
	/* What is known of the backends' health; NULL, and for those that it doesn't know: they keep what they have. */
	const struct health *health;
	bool watched; /* a daemon checks health: a backend that is new to a running pool with a check waits for it */
	bool cut;     /* what leaves or starts to drain now is cut */
	const char *cut_pool, *cut_backend; /* this one is cut where it drains or leaves, since whenever; or NULL */
	bool keep_edits;                    /* the running state's live edits stay: not an apply of a file */
	bool settle_force;                  /* settles every moved arc of settle_pool, whatever its stamp */
	const char *settle_pool;            /* NULL: of every pool */
};

/* -EINVAL and others with errors in d for what can't be made, else 0. */
int plan_make(const struct plan_input *in, struct plan *out, struct diag *d);
void plan_free(struct plan *p);

#endif
