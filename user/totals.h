/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters that no map keeps: how long commits took, and how often the health of backends changed. In files beside the
 * instance's lock, so that a restart of the daemon does not set them back, and that commands count too. They are gone
 * after a reboot or a detach, as are the maps. Nothing depends on them: what can't be read or written is not told.
 */
#ifndef RINGLB_TOTALS_H
#define RINGLB_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "health.h"
#include "instance.h"

/* Upper bounds in seconds of all buckets but the last. */
#define TOTALS_BOUNDS                                                                                                  \
	{                                                                                                              \
		0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5                                                    \
	}
#define TOTALS_BUCKETS 11

struct totals_commits {
	uint64_t count[TOTALS_BUCKETS]; /* not added up */
	double seconds;                 /* of all */
	uint64_t failed;                /* and not in count */
};

/* Counts one. The caller holds the instance's lock. */
void totals_commit(const struct instance *i, double seconds, bool done);
void totals_commits_read(const struct instance *i, struct totals_commits *out);

/* Transitions of health, as the daemon counts them; one process at a time. */
struct totals {
	char *path;
	struct json_t *kept; /* key of a backend -> [ups, downs], ever */
	struct json_t *seen; /* id in health -> [ups, downs], of this process */
};

/* Goes on where the last process ended. To be freed with totals_close. */
void totals_open(struct totals *t, const struct instance *i);
/* Adds what health has counted since the last call. Saved before it returns, so that nothing told is ever taken back. */
void totals_update(struct totals *t, const struct health *h);
void totals_get(const struct totals *t, const char *pool, const struct health_backend *b, uint64_t *ups,
		uint64_t *downs);
void totals_close(struct totals *t);

/* After a detach. */
void totals_remove(const struct instance *i);

#endif
