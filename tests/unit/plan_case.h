/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Configurations as plain values that tests change at will, and an instance in ordinary memory that runs what is
 * planned from them: what commit.c does, without a kernel. Every commit passes through the manifest and the encoded
 * tables, as every command does.
 */
#ifndef RINGLB_TESTS_PLAN_CASE_H
#define RINGLB_TESTS_PLAN_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan.h"
#include "region.h"

#define CASE_BACKENDS 24u
#define CASE_POOLS 6u
#define CASE_SERVICES 8u
#define CASE_NAME 24u

struct case_backend {
	char name[CASE_NAME];
	char identity[CASE_NAME]; /* empty: the name */
	uint32_t address;         /* odd ones are IPv6 */
	uint32_t weight, points;  /* points 0: by weight */
	const char *state;
};

struct case_pool {
	char name[CASE_NAME];
	uint32_t vnodes;
	const char *drain_max;
	const char *check;        /* YAML, or NULL */
	const char *settle_after; /* or NULL: the default, 15 minutes */
	struct case_backend backend[CASE_BACKENDS];
	size_t backends;
};

struct case_service {
	char name[CASE_NAME];
	uint32_t address;
	uint16_t port;
	const char *protocol, *affinity; /* tcp keeps its flows on a change, udp does not */
	size_t pool;
};

struct case_config {
	char key; /* a hex digit, 32 times */
	struct case_pool pool[CASE_POOLS];
	size_t pools;
	struct case_service service[CASE_SERVICES];
	size_t services;
	const char *interfaces; /* "eth0, eth1" */
	const char *more;       /* lines of YAML */
};

/* Pools web (3 backends of weights 1, 2, 1), whose service is for tcp, and dns (2), whose service is for udp. */
struct case_config case_small(void);
struct case_config case_random(void);
/* Some random change of backends, pools and services; new names never repeat an old one. */
void case_change(struct case_config *c);
void case_backend_add(struct case_pool *p, uint32_t weight);
void case_backend_remove(struct case_pool *p, size_t i);
struct case_pool *case_pool_add(struct case_config *c, size_t backends);
void case_service_add(struct case_config *c, size_t pool);
/* Through config_parse, which must accept it; shuffled: pools, backends and services in random order. */
struct config *case_parse(const struct case_config *c, bool shuffled);

struct case_instance {
	struct state *running; /* NULL: nothing yet */
	uint32_t now;
	char *tables;
	size_t bytes;
	uint16_t *incarnation; /* by index */
	char *manifest;
	const struct health *health; /* what plans are told of it; NULL: nothing */
	bool watched;
};

void case_instance_init(struct case_instance *i);
void case_instance_free(struct case_instance *i);
/* The plan from what runs, every interface attached and well. */
int case_plan(const struct case_instance *i, struct config *config, struct plan *out, struct diag *d);
/* The same where a plan must be. */
void case_plan_good(const struct case_instance *i, const struct case_config *c, bool shuffled, struct plan *out);
/* The incarnations that a commit gives to what is new: the first part of case_commit, which may follow. */
void case_give_incarnations(struct case_instance *i, const struct plan *p);
/* Carries it out. What then runs was read back from the memory; it is also compared with what the plan wanted. */
void case_commit(struct case_instance *i, const struct plan *p);
void case_apply(struct case_instance *i, const struct case_config *c);
size_t case_count(const struct plan *p, enum plan_kind kind);
const struct plan_operation *case_find(const struct plan *p, enum plan_kind kind, size_t n);
void case_assert_states_equal(const struct state *a, const struct state *b);
struct state_pool *case_pool(const struct state *s, const char *name);
const struct plan_pool *case_plan_pool(const struct plan *p, const char *name);

#endif
