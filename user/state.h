/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What runs, or should run: a configuration together with what the kernel keeps for it - each backend's index, each
 * pool's arcs and where their table lies. Made by plan.c from the running one, read back by manifest.c. Pure.
 */
#ifndef RINGLB_STATE_H
#define RINGLB_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "ring.h"
#include "table.h"

enum backend_state { BACKEND_UP, BACKEND_DRAIN, BACKEND_MAINT, BACKEND_LEAVING };

/* A backend of a pool: in the kernel an (identity, address), with an index and an incarnation. Immutable while it lives, but for state, weight and points. */
struct state_backend {
	char *name, *identity, *zone;	/* zone may be NULL */
	struct address address;
	uint32_t weight;
	uint32_t points;		/* on the ring when it takes flows */
	enum backend_state state;
	uint16_t index;			/* in the map backends; RINGLB_NO_BACKEND: not given yet */
	uint16_t incarnation;		/* from 1 */
};

struct state_pool {
	char *name;
	struct state_backend *backend;	/* sorted by identity, then address; arcs' owners are indices in it */
	size_t backends;
	struct arcs arcs;
	struct table_layout layout;
	uint32_t region;		/* offset of its table in tables; 0: not written yet */
};

struct state {
	struct config *config;		/* owned */
	uint32_t generation;		/* 0: nothing runs */
	uint64_t revision;
	char digest[33];		/* hex, see state_digest */
	struct state_pool *pool;	/* pool[i] is config->pool[i]'s */
	size_t pools;
	uint32_t *ifindex;	/* of config->interface[i], as attached; 0: not yet */
	uint16_t *service_index;	/* of config->service[i], in service_stats */
};

void state_free(struct state *s);
void state_pool_clear(struct state_pool *p);	/* frees what it holds */
const char *backend_state_name(enum backend_state s);
/* Takes part in the ring: gets new flows. */
bool backend_takes_flows(const struct state_backend *b);
/* The same backend for the kernel and for flows: one identity at one address. And the order of a pool's backends. */
bool backend_same(const struct state_backend *a, const struct state_backend *b);
int backend_order(const struct state_backend *a, const struct state_backend *b);
struct state_backend *state_pool_find(const struct state_pool *p, const char *name);

/*
 * The digest of a configuration: XXH3-128 over the hash key's fingerprint, the services and each pool's arcs, with every
 * backend that the configuration has up. Equal on two balancers exactly when they choose alike for new flows.
 */
void state_digest(const struct state *s, char out[33]);

#endif
