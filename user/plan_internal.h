/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between plan.c and plan_*.c only. */
#ifndef RINGLB_PLAN_INTERNAL_H
#define RINGLB_PLAN_INTERNAL_H

#include "plan.h"

/* Adds an operation; subject (copied) may be NULL; text as printf. */
__attribute__((format(printf, 6, 7))) void plan_add(struct plan *p, enum plan_kind kind, size_t pool, size_t backend,
						    const char *subject, const char *text, ...);

/*
 * The backends of a pool after the change: those of its configuration, and those of old (NULL: a new pool) that are
 * leaving. keep: some service keeps flows, so there is something to leave for. planned: the next state, with the pools
 * before this one.
 */
void plan_backends(const struct plan_input *in, const struct state *planned, const struct state_pool *old,
		   const struct config_pool *c, bool keep, struct state_pool *next);
/* Whether the input says to cut this backend of the pool by its name. */
bool plan_cuts(const struct plan_input *in, const char *pool, const struct state_backend *b);
/* The backend of p that is the same one as b, or NULL. */
struct state_backend *plan_same(const struct state_pool *p, const struct state_backend *b);

/* The ring of those that take flows, as next->ring, and next->whole. 0, or -errno with a message. */
int plan_ring(const struct config_pool *c, struct state_pool *next, struct diag *d);
/*
 * next->arcs and layout from next->ring, the backends and the arcs of old (NULL: none), settled ones being ordinary
 * first; leaving backends that nothing needs any more are dropped; keeps the region where nothing in the table would
 * differ. keep false: no flow is kept, the ring is all. settled, if not NULL, gets the positions that settled.
 */
int plan_arcs(const struct plan_input *in, const struct state_pool *old, const struct config_pool *c, bool keep,
	      struct state_pool *next, uint64_t *settled, struct diag *d);

/*
 * The operations between the two, pool being the index in next; index_used has a byte for each index and is updated.
 * cut: what is removed is not left to end its flows.
 */
int plan_pool_operations(struct plan *p, const struct plan_input *in, const struct state_pool *old, size_t pool,
			 bool cut, uint8_t *index_used, struct diag *d);
/* For a pool that is no longer configured; pool is the index in running. */
void plan_pool_gone(struct plan *p, const struct state_pool *old, size_t pool);

/* Numbers the services and adds their operations. */
int plan_services(struct plan *p, const struct plan_input *in, struct diag *d);
/* Tables of their own for services that were given another pool, until their old flows have ended. */
int plan_owns(struct plan *p, const struct plan_input *in, struct diag *d);
/* The running configuration's service with this address, port and protocol; its number, or SIZE_MAX. */
size_t plan_service_was(const struct state *running, const struct config_service *v);

/* Fills in moved, minimum and moves. */
void plan_diff(const struct state_pool *old, const struct state_pool *new, struct plan_pool *out);

#endif
