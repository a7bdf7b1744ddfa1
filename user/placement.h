/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Placements: rules by which backends share the hash space. Each compiles into arcs, so that whatever comes after knows
 * one structure. Pure, deterministic and the same on every machine; each rule stands in its own file.
 */
#ifndef RINGLB_PLACEMENT_H
#define RINGLB_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "ring.h"

struct placement_member {
	const char *identity;
	uint32_t weight; /* 0: takes no part, and may share its identity */
	uint32_t points; /* `ring` only: how many */
	uint32_t id;     /* `haproxy` only */
};

struct placement_pool {
	const struct placement_member *member; /* an arc's owner is an index in it */
	size_t members;
	uint32_t maglev_size; /* `maglev` only: a prime */
};

struct placement_key {
	uint64_t hash;     /* as the placement's own system computes it, for people */
	unsigned int bits; /* of hash */
	uint32_t position; /* where that lies */
	int slot;          /* `slots` only, else -1 */
};

/* What a service may hash whose pool has the placement. */
enum placement_use {
	PLACEMENT_KEYS,    /* no service can use it */
	PLACEMENT_FLOWS,   /* whatever its affinity says */
	PLACEMENT_SOURCES, /* `affinity: source` alone, of whole IPv4 addresses, by the placement's own hash */
};

struct placement_input;

struct placement {
	const char *name;
	const char *summary; /* for people, a few words */
	enum placement_use use;
	enum ringlb_affinity affinity; /* of PLACEMENT_SOURCES: what the data plane is told */
	/* Use placement_check, placement_build and placement_key_hash instead. */
	int (*check)(const struct placement_input *in, char **why);
	int (*build)(const struct placement_input *in, struct arcs *out, uint32_t *points);
	int (*key)(const void *key, size_t length, struct placement_key *out, char **why);
};

/* Every placement, in the order in which people are shown them. */
extern const struct placement *const placements[];
extern const size_t placements_count;

/* NULL: no such placement. */
const struct placement *placement_find(const char *name);
const struct placement *placement_of(enum config_placement p);
/*
 * The arcs of the pool's members, to be freed with arcs_free; without any that takes part there are none. points, where
 * it is not NULL, gets each member's number of points (slots, turns) before neighbours are joined. The order of the
 * members matters to `ketama`, `slots` and `modulo` alone.
 * 0; -EINVAL with the reason in *why, to be freed, for what the placement can't express; -ENOMEM.
 */
int placement_build(const struct placement *p, const struct placement_pool *pool, struct arcs *out, uint32_t *points,
		    char **why);
/*
 * placement_build for a pool of which member `gone`, whose weight is 0 now, has left: before are the arcs with it. The
 * same, and quicker where the rule allows it.
 */
int placement_build_without(const struct placement *p, const struct placement_pool *pool, const struct arcs *before,
			    uint16_t gone, struct arcs *out, char **why);
/*
 * Whether the placement can express the pool, without the work of building it: 0, -EINVAL or -ENOMEM likewise. Does not
 * look for identities that are there twice.
 */
int placement_check(const struct placement *p, const struct placement_pool *pool, char **why);
/* The position of a key. 0, or -EINVAL with the reason in *why, to be freed. */
int placement_key_hash(const struct placement *p, const void *key, size_t length, struct placement_key *out,
		       char **why);
/* Gives ids to members that have none, as HAProxy does: see placement_haproxy.c. */
void placement_number(struct placement_member *member, size_t members);
/*
 * Fills in member, of c->backends, from a configuration, for any placement: those that are not up have weight 0.
 * Identities stay c's.
 */
void placement_members(const struct config_pool *c, struct placement_member *member);
/* What the data plane is told of a service's affinity, its pool's placement considered. */
enum ringlb_affinity placement_affinity(const struct config_pool *c, const struct config_service *s);

#endif
