/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pool as the commands that ask about it see it, from a configuration alone or from what runs: who takes part in the
 * placement of new flows. Pure.
 */
#ifndef RINGLB_POOL_VIEW_H
#define RINGLB_POOL_VIEW_H

#include "placement.h"
#include "state.h"

struct pool_view {
	const struct config_pool *config; /* borrowed; member[i] is config->backend[i] */
	struct placement_member *member;  /* weight 0: takes no new flow now */
	const char **zone;                /* NULL where it has none */
};

/* running NULL: as the configuration says. To be freed with pool_view_free. */
void pool_view_make(const struct config_pool *c, const struct state_pool *running, struct pool_view *out);
/* As placement_build. */
int pool_view_build(const struct pool_view *v, const struct placement *p, struct arcs *out, uint32_t *points,
		    char **why);
void pool_view_free(struct pool_view *v);

#endif
