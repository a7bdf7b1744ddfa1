/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A service that is given another pool moves as a whole, by the rule for arcs: what its table said is the past, the new
 * pool's ring the present. As the pool's table knows nothing of that past, the service gets a table of its own until it
 * has settled.
 */
#include <stdlib.h>
#include <string.h>

#include "moved.h"
#include "placement.h"
#include "plan_internal.h"

static const struct state_own *own_of(const struct state *s, size_t service)
{
	for (size_t i = 0; i < s->owns; i++)
		if (s->own[i].service == service)
			return &s->own[i];
	return NULL;
}

static int by_order(const void *a, const void *b)
{
	return backend_order(a, b);
}

/* By index, the backends whose flows the pools cut: a table of a service's own has the same word for them. */
static uint8_t *cut_by_pools(const struct state *s)
{
	uint8_t *cut = xcalloc(RINGLB_MAX_BACKENDS + 1, 1);

	for (size_t i = 0; i < s->pools; i++)
		for (size_t j = 0; j < s->pool[i].backends; j++)
			cut[s->pool[i].backend[j].index] = !backend_alive(&s->pool[i].backend[j]);
	return cut;
}

/* Cut by its name in the pool that it left: by index, as that is another pool than the table's. */
static bool cut_by_name(const struct plan_input *in, const struct state_backend *b)
{
	for (size_t i = 0; in->cut_backend && i < in->running->pools; i++)
		for (size_t j = 0; j < in->running->pool[i].backends; j++) {
			const struct state_backend *of_pool = &in->running->pool[i].backend[j];

			if (of_pool->index == b->index && plan_cuts(in, in->running->pool[i].name, of_pool))
				return true;
		}
	return false;
}

/* The pool's backends, and those of old that its own do not include and that may still have flows, as leaving. */
static void join_backends(const struct plan *p, const struct plan_input *in, const struct state_pool *old,
			  const struct config_pool *c, const struct state_pool *pool, struct state_pool *next)
{
	uint8_t *cut = cut_by_pools(p->next);

	next->backend = xcalloc(pool->backends + old->backends + 1, sizeof(*next->backend));
	for (size_t i = 0; i < pool->backends; i++)
		next->backend[next->backends++] = backend_copy(&pool->backend[i]);
	for (size_t i = 0; i < old->backends; i++) {
		const struct state_backend *was = &old->backend[i];
		uint32_t since = was->state == BACKEND_LEAVING || was->state == BACKEND_DRAIN ? was->since : in->now;
		struct state_backend *b;

		if (plan_same(pool, was) || !backend_alive(was) || cut[was->index])
			continue;
		if (cut_by_name(in, was) || (in->cut && was->state != BACKEND_LEAVING))
			continue;
		if (c->drain_max_ms && (uint64_t)(in->now - since) * 1000 >= c->drain_max_ms)
			continue;
		b = &next->backend[next->backends++];
		*b = backend_copy(was);
		b->state = BACKEND_LEAVING;
		backend_forget_health(b);
		b->since = since;
	}
	free(cut);
	qsort(next->backend, next->backends, sizeof(*next->backend), by_order);
}

/* The pool's ring with the owners numbered as in next. */
static int join_ring(const struct state_pool *pool, struct state_pool *next)
{
	uint16_t *number = xcalloc(pool->backends + 1, sizeof(*number));
	int err = arcs_copy(&pool->ring, &next->ring);

	for (size_t i = 0; i < pool->backends; i++)
		number[i] = (uint16_t)(plan_same(next, &pool->backend[i]) - next->backend);
	number[STATE_NOBODY(pool)] = (uint16_t)STATE_NOBODY(next);
	if (!err)
		arcs_renumber(&next->ring, number);
	free(number);
	return err;
}

static uint64_t moved_between(const struct state_pool *old, const struct state_pool *next)
{
	struct plan_pool sum = { 0 };

	plan_diff(old, next, &sum);
	for (size_t i = 0; i < sum.moves; i++) {
		free(sum.move[i].from);
		free(sum.move[i].to);
	}
	free(sum.move);
	return sum.moved;
}

static void note_move(struct plan *p, const struct config_service *v, uint64_t moved, bool rehashed)
{
	if (!moved)
		return;
	p->service = xreallocarray(p->service, p->services + 1, sizeof(*p->service));
	p->service[p->services++] = (struct plan_service){
		.name = xstrdup(v->name),
		.moved = moved,
		.rehashed = rehashed,
		.track = v->track,
	};
}

/* A service that is tracked no longer forgets which of its flows are not with their owners. */
static void note_dropped(struct plan *p, const struct config_service *v, uint64_t moving)
{
	size_t before = p->services;

	note_move(p, v, moving, false);
	if (p->services > before)
		p->service[before].dropped = true;
}

/* The service's own table after the change, if it needs one. elsewhere: this change gives it another pool. */
static int own_next(struct plan *p, const struct plan_input *in, size_t service, const struct state_pool *old,
		    bool elsewhere, struct diag *d)
{
	const struct config_service *v = &p->next->config->service[service];
	const struct config_pool *c = &p->next->config->pool[v->pool];
	const struct state_pool *pool = &p->next->pool[v->pool];
	struct state_pool table = { .name = xstrdup(pool->name) };
	struct state_own *own;
	int err;

	join_backends(p, in, old, c, pool, &table);
	err = join_ring(pool, &table);
	if (!err)
		err = plan_arcs(in, old, c, true, &table, NULL, d);
	if (!err && elsewhere)
		note_move(p, v, moved_between(old, &table), false);
	if (err || (!arcs_moved(&table.arcs) && !arcs_moved(&pool->arcs))) {
		if (!err && own_of(in->running, plan_service_was(in->running, v)))
			plan_add(p, PLAN_SETTLE, v->pool, 0, v->name, "service %s: its move to pool %s has settled",
				 v->name, pool->name);
		state_pool_clear(&table);
		return err;
	}
	p->next->own = xreallocarray(p->next->own, p->next->owns + 1, sizeof(*p->next->own));
	own = &p->next->own[p->next->owns++];
	*own = (struct state_own){ service, table };
	if (!table.region && table.layout.bits)
		plan_add(p, PLAN_OWN_BUILD, p->next->owns - 1, 0, NULL, "%s", "");
	return 0;
}

/* The hash that positions come from: `flow` and `quic` have the same. */
static enum ringlb_affinity hash_of(const struct config *c, const struct config_service *s)
{
	enum ringlb_affinity affinity = placement_affinity(&c->pool[s->pool], s);

	return affinity == RINGLB_AFFINITY_QUIC ? RINGLB_AFFINITY_FLOW : affinity;
}

static bool hash_differs(const struct config *a, const struct config_service *was, const struct config *b,
			 const struct config_service *is)
{
	return memcmp(a->hash_key, b->hash_key, sizeof(a->hash_key)) || hash_of(a, was) != hash_of(b, is) ||
	       (is->affinity == RINGLB_AFFINITY_SOURCE &&
		(was->source_prefix4 != is->source_prefix4 || was->source_prefix6 != is->source_prefix6));
}

int plan_owns(struct plan *p, const struct plan_input *in, struct diag *d)
{
	const struct config *c = p->next->config;
	int err = 0;

	for (size_t i = 0; in->running && i < c->services && !err; i++) {
		const struct config_service *v = &c->service[i], *before;
		size_t was = plan_service_was(in->running, v);
		bool elsewhere;

		if (was == SIZE_MAX)
			continue;
		before = &in->running->config->service[was];
		elsewhere = strcmp(in->running->config->pool[before->pool].name, c->pool[v->pool].name);
		if (hash_differs(in->running->config, before, c, v)) {
			note_move(p, v, 1ull << 32, true); /* no arc keeps its flows: nothing to be gentle about */
			continue;
		}
		if (v->track == RINGLB_TRACK_NONE) {
			if (before->track != RINGLB_TRACK_NONE)
				note_dropped(p, v, arcs_moved(&state_table(in->running, was)->arcs));
			if (elsewhere)
				note_move(p, v, moved_between(state_table(in->running, was), &p->next->pool[v->pool]),
					  false);
			continue;
		}
		if (elsewhere || own_of(in->running, was))
			err = own_next(p, in, i, state_table(in->running, was), elsewhere, d);
	}
	return err;
}
