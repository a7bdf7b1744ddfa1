/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between plan.c, plan_pool.c, plan_service.c and plan_diff.c only. */
#ifndef RINGLB_PLAN_INTERNAL_H
#define RINGLB_PLAN_INTERNAL_H

#include "plan.h"

/* Adds an operation; subject (copied) may be NULL; text as printf. */
__attribute__((format(printf, 6, 7))) void plan_add(struct plan *p, enum plan_kind kind, size_t pool, size_t backend,
						    const char *subject, const char *text, ...);

/*
 * The next state of config pool i: its backends with the indices that the same ones have in old (NULL: a new pool), and
 * its arcs. The table's region is kept where nothing in it would change. 0, or -errno with a message.
 */
int plan_pool_next(const struct state_pool *old, const struct config_pool *c, struct state_pool *next, struct diag *d);
/* The operations between the two, pool being the index in next; index_used has a byte for each index and is updated. */
int plan_pool_operations(struct plan *p, const struct state_pool *old, size_t pool, uint8_t *index_used, struct diag *d);
/* For a pool that is no longer configured; pool is the index in running. */
void plan_pool_gone(struct plan *p, const struct state_pool *old, size_t pool);

/* Numbers the services and adds their operations. */
int plan_services(struct plan *p, const struct state *running, struct diag *d);

/* Fills in moved, minimum and moves. */
void plan_diff(const struct state_pool *old, const struct state_pool *new, struct plan_pool *out);

#endif
