/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pool and what it would be with some backends added, removed, or of another weight. Pure. */
#ifndef RINGLB_POOL_TRIAL_H
#define RINGLB_POOL_TRIAL_H

#include "placement.h"
#include "pool_view.h"
#include "shares.h"

struct pool_trial {
	const struct config_pool *config; /* borrowed, as are all names */
	size_t members;                   /* the configured ones in their order, then those that are new */
	const char **name;
	struct placement_member *before, *after; /* weight 0: takes no part */
	bool changed;
};

/* What the members make of the hash space. */
struct pool_shares {
	struct arcs arcs;
	uint32_t *weight, *points;
	struct share *share;
	uint64_t all_points;
	struct balance balance;
};

void pool_trial_make(const struct pool_view *v, struct pool_trial *out);
/* With a backend of that weight: one that there is, which takes part then, its points scaled; or a new one. */
void pool_trial_with(struct pool_trial *t, const char *name, uint32_t weight);
/* Without a backend that there is: 0, or -ENOENT. */
int pool_trial_without(struct pool_trial *t, const char *name);
void pool_trial_free(struct pool_trial *t);

/* As placement_build. To be freed with pool_shares_free, also on failure. */
int pool_shares_make(const struct pool_trial *t, const struct placement_member *member, const struct placement *p,
		     struct pool_shares *out, char **why);
void pool_shares_free(struct pool_shares *s);

#endif
