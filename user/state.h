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
#include "health.h"
#include "ring.h"
#include "table.h"

enum backend_state { BACKEND_UP, BACKEND_DRAIN, BACKEND_MAINT, BACKEND_LEAVING };

/* A backend of a pool: in the kernel an (identity, address), with an index and an incarnation. Immutable while it lives, but for state, weight and points. */
struct state_backend {
	char *name, *identity, *zone; /* zone may be NULL */
	struct address address;
	uint32_t weight;
	uint32_t points; /* on the ring when it takes flows */
	uint32_t id;     /* what placement `haproxy` hashes; 0: none */
	enum backend_state state;
	bool cut; /* drain: its flows were given up, by --cut or drain_max */
	/* What its health makes of it: not configuration. All zeros: unchecked, or nothing is known. */
	enum health_status health;
	enum health_use use;
	char *reason;         /* what took it down, for people; NULL: it is not down, or nobody said */
	uint32_t withheld;    /* millionths of its points that slow start holds back */
	uint32_t since;       /* drain, leaving: stamp of when it began; else 0 */
	uint16_t index;       /* in the map backends; RINGLB_NO_BACKEND: not given yet */
	uint16_t incarnation; /* from 1 */
};

/* A pool, or what a service that has been given another pool uses until its old flows have ended: a table of its own. */
struct state_pool {
	char *name;
	struct state_backend *backend; /* sorted by identity, then address; arcs' owners are indices in it */
	size_t backends;
	struct arcs arcs;  /* as they run; the owner STATE_NOBODY(p) is nobody: no backend takes flows */
	struct arcs ring;  /* who is to own: the backends that take flows; empty when read back from the kernel */
	struct arcs whole; /* likewise, were all healthy: every backend that the configuration has up; empty: as ring */
	struct table_layout layout;
	uint32_t region; /* offset of its table in tables; 0: not written yet */
};

#define STATE_NOBODY(p) ((p)->backends)

struct state_own {
	size_t service; /* in config->service */
	struct state_pool table;
};

/* A change that was made to what runs, and that the configuration file may not know of. */
enum state_edit_kind { EDIT_ADD, EDIT_DELETE, EDIT_WEIGHT, EDIT_STATE, EDIT_ROLLBACK };

struct state_edit {
	enum state_edit_kind kind;
	char *pool, *backend; /* NULL for a rollback */
	char *value;          /* address, weight, state, or the generation returned to */
};

struct state {
	struct config *config; /* owned */
	uint32_t generation;   /* 0: nothing runs */
	uint64_t revision;
	char digest[33];           /* hex, see state_digest */
	char effective_digest[33]; /* the same with health */
	struct state_pool *pool;   /* pool[i] is config->pool[i]'s */
	size_t pools;
	struct state_own *own;
	size_t owns;
	struct state_edit *edit; /* since the last apply of a file */
	size_t edits;
	uint32_t *ifindex;       /* of config->interface[i], as attached; 0: not yet */
	uint16_t *service_index; /* of config->service[i], in service_stats */
};

void state_free(struct state *s);
void state_pool_clear(struct state_pool *p); /* frees what it holds */
const char *backend_state_name(enum backend_state s);
const char *state_edit_kind_name(enum state_edit_kind k);
/* Adds one (strings copied); edits that it makes void go: a later value, a deletion of what was added, a rollback. */
void state_edit_add(struct state *s, enum state_edit_kind kind, const char *pool, const char *backend,
		    const char *value);
/* Forgets one; a rollback has neither pool nor backend. */
void state_edit_drop(struct state *s, enum state_edit_kind kind, const char *pool, const char *backend);
/* In words; owned by the caller. */
char *state_edit_text(const struct state_edit *e);
/* Every table there is: the pools', then the services' own; i < state_tables(s). */
size_t state_tables(const struct state *s);
struct state_pool *state_table_at(const struct state *s, size_t i);
/* What a service steers by: its own table or its pool's. */
const struct state_pool *state_table(const struct state *s, size_t service);
/* Its flows may still be served: up, draining or leaving, not cut, and not down. */
bool backend_alive(const struct state_backend *b);
/* Copies, strings too. */
struct state_backend backend_copy(const struct state_backend *b);
/* As one that nobody checks. */
void backend_forget_health(struct state_backend *b);
void backend_clear(struct state_backend *b);
/* Takes part in the ring: gets new flows. And with how many points: 0 where it does not. */
bool backend_takes_flows(const struct state_backend *b);
uint32_t backend_points(const struct state_backend *b);
#define BACKEND_WHOLE 1000000u /* millionths */
/* Backends that are up, and healthy or unchecked: a pool is ready by them. */
size_t state_pool_healthy(const struct state_pool *p);
/* The same backend for the kernel and for flows: one identity at one address. And the order of a pool's backends. */
bool backend_same(const struct state_backend *a, const struct state_backend *b);
int backend_order(const struct state_backend *a, const struct state_backend *b);
struct state_backend *state_pool_find(const struct state_pool *p, const char *name);

/*
 * The digest of a configuration: XXH3-128 over the hash key's fingerprint, the services and each pool's arcs, with every
 * backend that the configuration has up. Equal on two balancers exactly when they choose alike for new flows.
 */
void state_digest(const struct state *s, char out[33]);
/* The same as things are: by each backend's health, too. */
void state_effective_digest(const struct state *s, char out[33]);

#endif
