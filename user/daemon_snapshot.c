// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Snapshots for the worker: made where the privileges are, served where there are none. One is made when something was
 * committed and when somebody asks; of an instance that nobody looks at a few a minute will do, as each costs about 2 us
 * a backend.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon_private.h"
#include "snapshot.h"
#include "totals.h"

struct daemon_snapshots {
	struct snapshot_cache cache;
	struct totals totals;
	uint64_t made;
};

#define INTERVAL_SECONDS 5
#define ASKED_MS 500u

void daemon_snapshot_open(struct daemon *d)
{
	d->snapshots = xcalloc(1, sizeof(*d->snapshots));
	totals_open(&d->snapshots->totals, d->instance);
}

void daemon_snapshot_close(struct daemon *d)
{
	if (!d->snapshots)
		return;
	snapshot_cache_free(&d->snapshots->cache);
	totals_close(&d->snapshots->totals);
	free(d->snapshots);
	d->snapshots = NULL;
}

void daemon_snapshot(struct daemon *d)
{
	struct diag diag = { 0 };
	struct snapshot_source source = {
		.instance = d->instance,
		.running = d->running.dp ? &d->running : NULL,
		.health = d->running.dp ? &d->health : NULL,
		.health_now = d->now,
		.totals = &d->snapshots->totals,
		.interval = INTERVAL_SECONDS,
		.reloaded = d->reloaded,
		.reload_ok = d->reload_ok,
		.reload_message = d->reload_message,
	};
	char *text;

	totals_update(&d->snapshots->totals, &d->health);
	/* A worker that does not keep up gets the next one; and nobody asks where nothing listens. */
	if (d->worker.listener < 0 || wire_waiting(&d->worker.stream))
		return;
	if (d->running.dp)
		running_refresh(&d->running);
	memcpy(source.reload_time, d->reload_time, sizeof(source.reload_time));
	d->snapshots->made = d->now;
	text = snapshot_make(&d->snapshots->cache, &source, &diag);
	if (text)
		worker_say(d, WIRE_SNAPSHOT, text);
	free(text);
	diag_free(&diag);
}

void daemon_snapshot_tick(struct daemon *d)
{
	totals_update(&d->snapshots->totals, &d->health);
	if (d->now - d->snapshots->made >= INTERVAL_SECONDS * 1000u)
		daemon_snapshot(d);
}

void daemon_snapshot_asked(struct daemon *d)
{
	if (d->now - d->snapshots->made >= ASKED_MS)
		daemon_snapshot(d);
}
