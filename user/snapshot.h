/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon knows at one moment, as one JSON document: made by the process that has the privileges, served by the
 * listener, which has none. GET /api/v1/status is this document with "rates" added. Its schema; keys in () may be
 * missing. Reading one takes about 15 us a backend, measured with 10,000; where they are that many, once a second is
 * too often.
 *
 *   "time"       RFC 3339, UTC, of the moment
 *   "timestamp"  the same in seconds since the epoch
 *   "clock_ms"   the same moment on a clock that never goes back, for rates
 *   "interval"   seconds until the next one should come, at the latest; it comes sooner when somebody asks
 *   "instance"   its name
 *   "build"      {"version", "abi"}: of the ringlb that serves; "program": of the ringlb whose program runs
 *   "attached"   false: nothing runs, and show, stats, rings, ready, memory and unresolved are missing
 *   ("show")     what `show --json` prints
 *   ("stats")    what `stats --json` prints
 *   "history"    what `history --json` prints
 *   ("health")   {"pools": [{"name", "checked": bool, "takers", "healthy", "all_down": bool, "panic": bool}],
 *                 "backends": [{"pool", "name", "identity", "address", "status": "up|down|unchecked", "waiting": bool,
 *                 "stale": bool, "since": seconds in this status, "checked": seconds since the last result or null,
 *                 "latency": seconds or null, "reason": of the last result, "ups", "downs": transitions ever,
 *                 "held": bool, "use": "used|waits|cut", "factor": of its points}]} of the pools with a check
 *   ("ready")    {SERVICE: {"ready": bool, "reason": why or why not, for people}}
 *   ("memory")   {"locked": bytes of all maps as the kernel accounts them, "tables": bytes of the map tables,
 *                 "flows": bytes of the map flows, "backends": bytes of the map backends}
 *   ("unresolved") [{"pool", "name", "address"}]: backends whose next hop is not known
 *   "commits"    {"bounds": [seconds], "counts": [in each bucket, one more than bounds, not added up], "sum": seconds,
 *                 "failed"}
 *   ("rings")    [{"pool", "owners": [index in the pool's backends in show, -1 for nobody], "moved": [0|1]}]: who owns
 *                 SNAPSHOT_RING_SLOTS evenly spaced positions; of at most SNAPSHOT_RINGS pools
 *   ("reload")   {"ok": bool, "time", "message"}: what became of the last SIGHUP
 *   "meanings"   {"verdicts": {NAME: {"meaning", ("remedy")}}, "flow_events": {NAME: {"meaning"}}}, for people
 *   ("rates")    {"seconds": between the two snapshots, "services": [{"name", "packets", "bytes"}],
 *                 "backends": [{"pool", "name", "address", "packets", "bytes"}], "verdicts": {NAME: packets}}: a second;
 *                 from the second snapshot on
 */
#ifndef RINGLB_SNAPSHOT_H
#define RINGLB_SNAPSHOT_H

#include <stdint.h>
#include <time.h>

#include "commit.h"
#include "drift.h"
#include "generation.h"
#include "health.h"
#include "totals.h"

#define SNAPSHOT_RING_SLOTS 720u
#define SNAPSHOT_RINGS 64u

/* What a snapshot is made of. */
struct snapshot_source {
	const struct instance *instance;
	const struct running *running; /* NULL: nothing is attached */
	const struct health *health;   /* NULL: nothing is checked */
	uint64_t health_now;           /* in health's clock */
	const struct totals *totals;   /* up to date with health; NULL with it */
	double interval;
	bool reloaded; /* there was a SIGHUP: */
	bool reload_ok;
	char reload_time[32];
	const char *reload_message; /* or NULL */
};

/* What stays from one to the next, so that files are read only when they have changed. All zeros at first. */
struct snapshot_cache {
	struct generation *history;
	size_t generations;
	struct timespec history_changed; /* its directory */
	bool has_drift;
	struct drift drift;
	uint64_t drift_revision;
	double drift_read;             /* seconds */
	struct timespec drift_changed; /* the file */
};

/* The document, owned by the caller; NULL with messages in d. */
char *snapshot_make(struct snapshot_cache *cache, const struct snapshot_source *source, struct diag *d);
void snapshot_cache_free(struct snapshot_cache *cache);

#endif
