/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which backends a pool has after a change, those that are leaving among them. */
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"

static int by_order(const void *a, const void *b)
{
	return backend_order(a, b);
}

struct state_backend *plan_same(const struct state_pool *p, const struct state_backend *b)
{
	return p ? bsearch(b, p->backend, p->backends, sizeof(*b), by_order) : NULL;
}

static struct state_backend configured(const struct config_pool *c, const struct config_backend *b)
{
	static const enum backend_state state[] = {
		[CONFIG_UP] = BACKEND_UP,
		[CONFIG_DRAIN] = BACKEND_DRAIN,
		[CONFIG_MAINT] = BACKEND_MAINT,
	};
	uint64_t points = config_backend_points(c, b);

	return (struct state_backend){
		.name = xstrdup(b->name),
		.identity = xstrdup(b->identity),
		.zone = b->zone ? xstrdup(b->zone) : NULL,
		.address = b->address,
		.weight = b->weight,
		.points = points > UINT32_MAX ? UINT32_MAX : (uint32_t)points,
		.id = b->id,
		.state = state[b->state],
		.index = RINGLB_NO_BACKEND,
	};
}

/* What is known of its health. was: as it runs, or NULL. True where it is new and must wait for a check. */
static bool take_health(const struct plan_input *in, const struct state_pool *old, const struct config_pool *c,
			const struct state_backend *was, struct state_backend *b)
{
	const struct health_backend *h = NULL;
	const char *reason = NULL;

	if (!c->check || b->state == BACKEND_MAINT)
		return false;
	if (in->health)
		h = health_find(in->health, c->name, b->identity, &b->address);
	b->health = HEALTH_UP;
	if (h && h->status != HEALTH_UNCHECKED) {
		b->health = h->status;
		b->use = h->use;
		b->withheld = BACKEND_WHOLE - (uint32_t)(h->factor * BACKEND_WHOLE + 0.5);
		/* Later failures may be others: what took it down stays. */
		reason = was && was->health == HEALTH_DOWN && was->reason ? was->reason : h->reason;
	} else if (was && was->state != BACKEND_MAINT && was->state != BACKEND_LEAVING) {
		b->health = was->health == HEALTH_UNCHECKED ? HEALTH_UP : was->health;
		b->use = was->use;
		b->withheld = was->withheld;
		reason = was->reason;
	} else if (old && in->watched) {
		b->health = HEALTH_DOWN;
		b->use = HEALTH_WAITS;
		return true;
	}
	if (b->health == HEALTH_DOWN && reason && *reason)
		b->reason = xstrdup(reason);
	return false;
}

/* Better one that nobody has checked yet than none. */
static void end_waiting(struct state_pool *next)
{
	for (size_t i = 0; i < next->backends; i++)
		if (backend_takes_flows(&next->backend[i]))
			return;
	for (size_t i = 0; i < next->backends; i++)
		if (next->backend[i].use == HEALTH_WAITS)
			next->backend[i].use = HEALTH_USED;
}

/* since 0: attached as draining, and so without flows. */
static bool overdue(const struct plan_input *in, const struct config_pool *c, uint32_t since)
{
	return since && c->drain_max_ms && (uint64_t)(in->now - since) * 1000 >= c->drain_max_ms;
}

bool plan_cuts(const struct plan_input *in, const char *pool, const struct state_backend *b)
{
	return in->cut_backend && !strcmp(in->cut_pool, pool) && !strcmp(in->cut_backend, b->name);
}

/* What the backend keeps of what it was. */
static void continue_from(const struct plan_input *in, const struct config_pool *c, const struct state_backend *was,
			  struct state_backend *b)
{
	bool drained = was->state == BACKEND_DRAIN || was->state == BACKEND_LEAVING;

	b->index = was->index;
	b->incarnation = was->incarnation;
	if (b->state == BACKEND_DRAIN || b->state == BACKEND_LEAVING) {
		b->since = drained ? was->since : in->now;
		b->cut = (drained && was->cut) || (!drained && in->cut) || plan_cuts(in, c->name, b) ||
			 overdue(in, c, b->since);
	}
	if (backend_alive(was) && !backend_alive(b) && !++b->incarnation) /* what the flow table knows of it is void */
		b->incarnation = 1;
}

static bool has_index(const struct state_pool *p, uint16_t index)
{
	for (size_t i = 0; i < p->backends; i++)
		if (p->backend[i].index == index)
			return true;
	return false;
}

/* Some pool goes on with it: one that ran and is still configured, or one that has been planned already. */
static bool is_taken(const struct state *running, const struct state *next, uint16_t index)
{
	for (size_t i = 0; i < running->pools; i++)
		if (config_find_pool(next->config, running->pool[i].name) && has_index(&running->pool[i], index))
			return true;
	for (size_t i = 0; i < next->pools; i++)
		if (has_index(&next->pool[i], index))
			return true;
	return false;
}

/*
 * The same backend where its pool has it no longer, but flows may: in a table of a service's own, or in a pool that goes.
 * It goes on here with its index, by which the flow table knows it.
 */
static const struct state_backend *left_elsewhere(const struct state *running, const struct state *next,
						  const struct state_backend *b)
{
	for (size_t i = state_tables(running); i--;) {
		const struct state_backend *was = plan_same(state_table_at(running, i), b);

		if (was && backend_alive(was) && !is_taken(running, next, was->index))
			return was;
	}
	return NULL;
}

void plan_backends(const struct plan_input *in, const struct state *planned, const struct state_pool *old,
		   const struct config_pool *c, bool keep, struct state_pool *next)
{
	size_t configured_count = c->backends;
	bool waiting = false;

	next->backend = xcalloc(configured_count + (old ? old->backends : 0) + 1, sizeof(*next->backend));
	next->backends = configured_count;
	for (size_t i = 0; i < configured_count; i++)
		next->backend[i] = configured(c, &c->backend[i]);
	qsort(next->backend, next->backends, sizeof(*next->backend), by_order);
	for (size_t i = 0; i < configured_count; i++) {
		const struct state_backend *was = plan_same(old, &next->backend[i]);

		waiting |= take_health(in, old, c, was, &next->backend[i]);
		if (!was && in->running)
			was = left_elsewhere(in->running, planned, &next->backend[i]);
		if (was)
			continue_from(in, c, was, &next->backend[i]);
		else if (next->backend[i].state == BACKEND_DRAIN)
			next->backend[i].since = in->now;
	}
	if (waiting)
		end_waiting(next);
	for (size_t i = 0; old && keep && i < old->backends; i++) {
		struct state_pool of_configuration = { .backend = next->backend, .backends = configured_count };
		struct state_backend leaving;

		if (!backend_alive(&old->backend[i]) || plan_same(&of_configuration, &old->backend[i]))
			continue;
		leaving = backend_copy(&old->backend[i]);
		leaving.state = BACKEND_LEAVING;
		backend_forget_health(&leaving);
		continue_from(in, c, &old->backend[i], &leaving);
		if (leaving.cut || (in->cut && old->backend[i].state != BACKEND_LEAVING))
			backend_clear(&leaving);
		else
			next->backend[next->backends++] = leaving;
	}
	qsort(next->backend, next->backends, sizeof(*next->backend), by_order);
}
