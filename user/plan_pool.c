/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The next state of one pool. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"

static int by_order(const void *a, const void *b)
{
	return backend_order(a, b);
}

static const struct state_backend *same_in(const struct state_pool *p, const struct state_backend *b)
{
	return p ? bsearch(b, p->backend, p->backends, sizeof(*b), by_order) : NULL;
}

static void backends_next(const struct state_pool *old, const struct config_pool *c, struct state_pool *next)
{
	static const enum backend_state state[] = {
		[CONFIG_UP] = BACKEND_UP,
		[CONFIG_DRAIN] = BACKEND_DRAIN,
		[CONFIG_MAINT] = BACKEND_MAINT,
	};

	next->backend = xcalloc(c->backends + 1, sizeof(*next->backend));
	next->backends = c->backends;
	for (size_t i = 0; i < c->backends; i++) {
		const struct config_backend *b = &c->backend[i];

		next->backend[i] = (struct state_backend){
			.name = xstrdup(b->name),
			.identity = xstrdup(b->identity),
			.zone = b->zone ? xstrdup(b->zone) : NULL,
			.address = b->address,
			.weight = b->weight,
			.points = (uint32_t)config_backend_points(c, b),
			.state = state[b->state],
			.index = RINGLB_NO_BACKEND,
		};
	}
	qsort(next->backend, next->backends, sizeof(*next->backend), by_order);
	for (size_t i = 0; i < next->backends; i++) {
		const struct state_backend *was = same_in(old, &next->backend[i]);

		if (was) {
			next->backend[i].index = was->index;
			next->backend[i].incarnation = was->incarnation;
		}
	}
}

static int arcs_next(struct state_pool *next, struct diag *d)
{
	struct ring_member *member = xcalloc(next->backends + 1, sizeof(*member));
	int err;

	for (size_t i = 0; i < next->backends; i++) {
		const struct state_backend *b = &next->backend[i];

		member[i] = (struct ring_member){b->identity, backend_takes_flows(b) ? b->points : 0};
	}
	err = ring_build(member, next->backends, &next->arcs);
	free(member);
	if (!err)
		err = table_layout(&next->arcs, next->backends, &next->layout);
	if (err)
		diag_error(d, "pool-too-large", "", "pool %s can't be built: %s", next->name,
			   err == -ENOMEM ? "out of memory" : "too many points: lower vnodes or weights");
	return err;
}

/* Nothing that is written in the pool's table would differ. */
static bool table_same(const struct state_pool *old, const struct state_pool *next)
{
	if (old->backends != next->backends || old->arcs.count != next->arcs.count)
		return false;
	for (size_t i = 0; i < next->backends; i++)
		if (!backend_same(&old->backend[i], &next->backend[i]))
			return false;
	for (size_t i = 0; i < next->arcs.count; i++) {
		const struct arc *a = &old->arcs.arc[i], *b = &next->arcs.arc[i];

		if (a->last != b->last || a->owner != b->owner || a->moved != b->moved || a->previous != b->previous)
			return false;
	}
	return true;
}

int plan_pool_next(const struct state_pool *old, const struct config_pool *c, struct state_pool *next, struct diag *d)
{
	int err;

	next->name = xstrdup(c->name);
	backends_next(old, c, next);
	err = arcs_next(next, d);
	if (err)
		return err;
	if (old && table_same(old, next)) {
		next->region = old->region;
		next->layout = old->layout;
	}
	return 0;
}

static int index_take(uint8_t *used)
{
	for (int i = 0; i < (int)RINGLB_MAX_BACKENDS; i++)
		if (!used[i]) {
			used[i] = 1;
			return i;
		}
	return -ENOSPC;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void change_text(struct plan *p, const struct state_pool *next, size_t pool, const struct state_backend *was,
			size_t i)
{
	const struct state_backend *b = &next->backend[i];
	char *text = xasprintf("pool %s: backend %s", next->name, was->name), *old = text;

	if (strcmp(was->name, b->name)) {
		text = xasprintf("%s renamed to %s", old, b->name);
		free(old);
		old = text;
	}
	if (was->weight != b->weight) {
		text = xasprintf("%s, weight %u -> %u", old, was->weight, b->weight);
		free(old);
		old = text;
	}
	if (was->points != b->points) {
		text = xasprintf("%s, points %u -> %u", old, was->points, b->points);
		free(old);
		old = text;
	}
	if (was->state != b->state) {
		text = xasprintf("%s, %s -> %s", old, backend_state_name(was->state), backend_state_name(b->state));
		free(old);
		old = text;
	}
	if (!same_text(was->zone, b->zone)) {
		text = xasprintf("%s, zone %s -> %s", old, was->zone ? was->zone : "none", b->zone ? b->zone : "none");
		free(old);
		old = text;
	}
	plan_add(p, PLAN_BACKEND_CHANGE, pool, i, NULL, "%s", old);
	free(old);
}

static bool backend_changed(const struct state_backend *a, const struct state_backend *b)
{
	return strcmp(a->name, b->name) || a->weight != b->weight || a->points != b->points || a->state != b->state ||
	       !same_text(a->zone, b->zone);
}

int plan_pool_operations(struct plan *p, const struct state_pool *old, size_t pool, uint8_t *index_used, struct diag *d)
{
	struct state_pool *next = &p->next->pool[pool];
	char text[ADDRESS_TEXT];
	int index;

	if (!old)
		plan_add(p, PLAN_POOL_ADD, pool, 0, NULL, "pool %s: added, %zu backend%s", next->name, next->backends,
			 next->backends == 1 ? "" : "s");
	for (size_t i = 0; i < next->backends; i++) {
		struct state_backend *b = &next->backend[i];
		const struct state_backend *was = same_in(old, b);

		if (was) {
			if (backend_changed(was, b))
				change_text(p, next, pool, was, i);
			continue;
		}
		index = index_take(index_used);
		if (index < 0) {
			diag_error(d, "too-many-backends", "",
				   "no index is free for backend %s of pool %s: %u backends are the limit, those still "
				   "leaving counted",
				   b->name, next->name, RINGLB_MAX_BACKENDS);
			return -ENOSPC;
		}
		b->index = (uint16_t)index;
		plan_add(p, PLAN_BACKEND_ADD, pool, i, NULL, "pool %s: backend %s added: %s, weight %u", next->name, b->name,
			 address_text(&b->address, text), b->weight);
	}
	for (size_t i = 0; old && i < old->backends; i++)
		if (!same_in(next, &old->backend[i]))
			plan_add(p, PLAN_BACKEND_REMOVE, pool, i, old->name, "pool %s: backend %s removed (%s)", old->name,
				 old->backend[i].name, address_text(&old->backend[i].address, text));
	return 0;
}

void plan_pool_gone(struct plan *p, const struct state_pool *old, size_t pool)
{
	plan_add(p, PLAN_POOL_REMOVE, pool, 0, old->name, "pool %s: removed, %zu backend%s", old->name, old->backends,
		 old->backends == 1 ? "" : "s");
}
