/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which backends are healthy, and what of that the data plane should know. Pure: results and the time (milliseconds of
 * a clock that never goes back, from 1) are passed in. The rules:
 *
 * - A backend goes down after `fall` failures in a row, and up after `rise` successes in a row.
 * - At first all count as up. One that is added to a running pool with a check, or comes back from `maint`, waits: it
 *   takes flows from its first success on; flows that it has still from before it keeps.
 * - No backend of a pool is healthy: all are used, those that wait too. Fewer than `panic` of those that don't wait are
 *   healthy: those that don't wait are all used. A pool is ready by how many are healthy, not by how many are used.
 * - One that comes up (not at first) ramps from one point to all of them over `slow_start`, in at most 20 steps.
 * - One that goes down within HEALTH_STEADY_MS of coming up flaps: before it comes up again its check must succeed for
 *   HEALTH_HOLD_MS, twice as long each further time up to HEALTH_HOLD_MAX_MS. Up for HEALTH_STEADY_MS and as long as
 *   it was held before, and this is forgotten.
 * - What changes within HEALTH_BATCH_MS is one commit.
 * - Without a check a pool's backends are unchecked, and all used. Draining ones are checked: when one goes down its
 *   flows are cut. Those in `maint` are not.
 */
#ifndef RINGLB_HEALTH_H
#define RINGLB_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

#define HEALTH_BATCH_MS 100u
#define HEALTH_RETRY_MS 1000u
#define HEALTH_STEADY_MS 60000u
#define HEALTH_HOLD_MS 5000u
#define HEALTH_HOLD_MAX_MS 300000u
#define HEALTH_SLOW_STEPS 20u
#define HEALTH_SLOW_STEP_MS 1000u /* a step is at least as long */
#define HEALTH_REASON 128u
#define HEALTH_NEVER UINT64_MAX

enum health_status { HEALTH_UNCHECKED, HEALTH_UP, HEALTH_DOWN };

/* What the data plane does with a backend that the configuration would use. */
enum health_use {
	HEALTH_USED,
	HEALTH_WAITS, /* takes no new flow, keeps those that it has */
	HEALTH_CUT,
};

/* What others may read of a backend. */
struct health_backend {
	uint64_t id; /* of this backend as long as it stays; never given out again */
	char *name, *identity;
	struct address address;
	enum config_state state;
	enum health_status status;
	bool waiting;     /* down, because it is new: neither a success nor `fall` failures yet */
	uint64_t since;   /* of the status */
	uint64_t checked; /* the last result; 0: none */
	uint32_t latency_us;
	char reason[HEALTH_REASON]; /* of the last result; "" for none */
	uint64_t unasked;           /* when it was last said that this host can't check it; the caller's; 0: never */
	uint64_t ups, downs;        /* transitions, ever */
	enum health_use use;
	double factor; /* of its points, at least one of them; in twentieths or larger steps */
	/* private */
	size_t pool;
	uint32_t successes, failures; /* in a row */
	uint64_t streak;              /* when the first of these successes was */
	uint64_t ramp;                /* since when slow start goes on; 0: it is over */
	uint64_t ramped;              /* and how much of it was done by then */
	uint64_t came_up;             /* 0: was up at first */
	unsigned int flaps;
	bool held;
	enum health_use runs_use; /* what the last commit said */
	double runs_factor;
};

struct health_pool {
	char *name;
	struct config_check *check;     /* NULL: none */
	struct health_backend *backend; /* sorted by identity */
	size_t backends;
	size_t takers;  /* up in the configuration and not waiting */
	size_t healthy; /* up in the configuration, and by their check or without one */
	bool all_down, panic;
};

enum health_event_kind { HEALTH_WENT_UP, HEALTH_WENT_DOWN, HEALTH_HELD, HEALTH_POOL };

/* Something to log. */
struct health_event {
	uint64_t time;
	enum health_event_kind kind;
	char *text; /* "pool web: backend web-1 (10.0.0.11) is down: connection refused; 3 checks in a row failed" */
};

struct health {
	struct health_pool *pool; /* in the order of the configuration */
	size_t pools;
	struct health_event *event; /* not yet cleared */
	size_t events;
	/* private */
	struct health_backend **by_id;
	size_t by_ids;
	uint64_t last_id;
	bool started;
	uint64_t due;  /* of a commit */
	uint64_t step; /* of a slow start */
};

struct health_result {
	uint64_t id;
	bool ok;
	uint32_t latency_us;
	const char *reason;
};

/*
 * The configuration that runs, at first and whenever it has changed. Backends that stay (same pool, identity and
 * address) keep what is known of them, whatever else of them changed. Pointers into h are void after it.
 */
void health_configure(struct health *h, const struct config *c, uint64_t now);
void health_free(struct health *h); /* what it holds; h itself is the caller's, all zeros at first */

/* NULL: no such backend (any more). */
struct health_backend *health_by_id(const struct health *h, uint64_t id);
struct health_backend *health_find(const struct health *h, const char *pool, const char *identity,
				   const struct address *a);

/*
 * What runs, as someone else left it: health_tick, which must follow, asks for a commit where that is not what should.
 * Where it is never called, what is new is taken to run as used. restore: to begin with, as nothing better is known: a
 * backend that was cut is down, one that waited waits, and a slow start goes on.
 */
void health_runs(struct health *h, struct health_backend *b, enum health_use use, double factor, bool restore,
		 uint64_t now);

/* Results of backends that are unknown, unchecked or in maint do nothing. */
void health_result(struct health *h, const struct health_result *r, uint64_t now);

/* When health_tick has something to do; HEALTH_NEVER: only after other calls. */
uint64_t health_next(const struct health *h);
/* True when a commit is due: use and factor of every backend are what it should say. */
bool health_tick(struct health *h, uint64_t now);
/* After the commit; or where it failed: it is due again in a second. */
void health_committed(struct health *h);
void health_failed(struct health *h, uint64_t now);

void health_events_clear(struct health *h);

/* Since the last result, or where there was none since it is what it is. */
uint64_t health_age(const struct health_backend *b, uint64_t now);
/* No result for so long that nothing checks it any more, though something should. */
bool health_stale(const struct health_pool *p, const struct health_backend *b, uint64_t now);
const char *health_status_name(enum health_status s); /* "up", "down", "unchecked" */

#endif
