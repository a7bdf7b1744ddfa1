/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pool tuned: counts of points, the shares before and with them, and what would move. Pure. */
#ifndef RINGLB_POOL_TUNE_H
#define RINGLB_POOL_TUNE_H

#include "pool_trial.h"
#include "state.h"

struct pool_tuned {
	struct pool_trial trial; /* before: the points that the configuration has; after: those that were found */
	struct pool_shares before, after;
	bool against_running;
	struct share_change change; /* from what runs, or from before, to after */
	const char **name;          /* of its owners: the trial's members, then those that run besides, and nobody */
};

/*
 * Tunes a pool of placement ring, from vnodes and weights alone; with onlies only those of these names, the others
 * keeping their points. Backends that are not up are left alone. running NULL: nothing runs to be compared with.
 * 0, or -errno as tune; to be freed with pool_tuned_free in any case. Names are borrowed from both.
 */
int pool_tune(const struct config_pool *p, const struct state_pool *running, const char *const *only, size_t onlies,
	      struct pool_tuned *out);
void pool_tuned_free(struct pool_tuned *t);

#endif
