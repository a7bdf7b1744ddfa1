/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random numbers with a printed seed, and random pools and arcs made of them, for the tests of properties. */
#ifndef RINGLB_TESTS_RANDOM_POOL_H
#define RINGLB_TESTS_RANDOM_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "ring.h"

/* Starts from RINGLB_SEED where it is set, else from the clock; prints the seed, so that a failure can be repeated. */
void random_start(void);
uint64_t random_u64(void);
/* 0 to below - 1. */
uint32_t random_below(uint32_t below);

#define RANDOM_IDENTITY 32

struct random_pool {
	struct ring_member *member;
	char (*identity)[RANDOM_IDENTITY]; /* what member[i].identity points to, at first */
	size_t members;
};

/* members members of distinct identities in no order, with 1 to max_points points; freed with random_pool_free. */
void random_pool_make(struct random_pool *pool, size_t members, uint32_t max_points);
void random_pool_shuffle(struct random_pool *pool);
void random_pool_free(struct random_pool *pool);

/*
 * Arcs as in the midst of a change, up to count of them: some are moved, many end at or beside the end of a table's
 * bucket, and neighbours differ in more than the stamp. Freed with arcs_free.
 */
void random_arcs_make(struct arcs *out, size_t count, uint32_t owners);

#endif
