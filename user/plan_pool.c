/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a change does to one pool, as operations. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"

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

/* A placement without points has 0: that is the pool's change, and no backend's. */
static bool points_changed(const struct state_backend *a, const struct state_backend *b)
{
	return a->points && b->points && a->points != b->points;
}

static void change_text(struct plan *p, const struct state_pool *next, size_t pool, const struct state_backend *was,
			size_t i)
{
	const struct state_backend *b = &next->backend[i];
	bool cuts = backend_alive(was) && (b->state == BACKEND_MAINT || b->cut);
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
	if (points_changed(was, b)) {
		text = xasprintf("%s, points %u -> %u", old, was->points, b->points);
		free(old);
		old = text;
	}
	if (was->id != b->id) {
		text = xasprintf("%s, id %u -> %u", old, was->id, b->id);
		free(old);
		old = text;
	}
	if (was->state != b->state) {
		text = xasprintf("%s, %s -> %s", old, backend_state_name(was->state), backend_state_name(b->state));
		free(old);
		old = text;
	}
	if (cuts) {
		text = xasprintf("%s, its flows are cut", old);
		free(old);
		old = text;
	}
	if (!same_text(was->zone, b->zone)) {
		text = xasprintf("%s, zone %s -> %s", old, was->zone ? was->zone : "none", b->zone ? b->zone : "none");
		free(old);
		old = text;
	}
	plan_add(p, PLAN_BACKEND_CHANGE, pool, i, NULL, "%s", old);
	p->operation[p->operations - 1].cuts = cuts;
	free(old);
}

static bool backend_changed(const struct state_backend *a, const struct state_backend *b)
{
	return strcmp(a->name, b->name) || a->weight != b->weight || points_changed(a, b) || a->state != b->state ||
	       a->cut != b->cut || a->id != b->id || !same_text(a->zone, b->zone);
}

static const char *health_does(const struct state_backend *was, const struct state_backend *b)
{
	bool took = backend_takes_flows(was), takes = backend_takes_flows(b);

	if (backend_alive(was) && !backend_alive(b))
		return took ? ", takes no new flows, its old ones are cut" : ", its flows are cut";
	if (took != takes)
		return takes ? ", takes flows" : ", takes no new flows";
	if (b->health == HEALTH_DOWN && b->use == HEALTH_USED)
		return ", takes flows all the same, as too few are healthy";
	return "";
}

/* Empty where it only follows from the configuration: a check that begins or ends, a state. */
static char *health_text(const struct state_pool *next, const struct state_backend *was, const struct state_backend *b)
{
	bool began = was->health == HEALTH_UNCHECKED, ended = b->health == HEALTH_UNCHECKED;
	char address[ADDRESS_TEXT], points[48] = "";

	if (was->state != b->state || ((began || ended) && was->use == b->use && was->withheld == b->withheld))
		return xstrdup("");
	if (backend_takes_flows(b) && (b->withheld || was->withheld))
		snprintf(points, sizeof(points), ", with %u of its %u points", backend_points(b), b->points);
	return xasprintf("pool %s: backend %s (%s): health %s%s%s%s%s", next->name, b->name,
			 address_text(&b->address, address), health_status_name(was->health),
			 was->health == b->health ? "" : " -> ",
			 was->health == b->health ? "" : health_status_name(b->health), health_does(was, b), points);
}

static void health_changed(struct plan *p, const struct state_pool *next, size_t pool, const struct state_backend *was,
			   size_t i)
{
	const struct state_backend *b = &next->backend[i];
	char *text;

	if (was->health == b->health && was->use == b->use && was->withheld == b->withheld)
		return;
	text = health_text(next, was, b);
	plan_add(p, PLAN_HEALTH, pool, i, NULL, "%s", text);
	p->operation[p->operations - 1].cuts = backend_alive(was) && !backend_alive(b);
	free(text);
}

/* cut: what is removed is not left to end its flows. in: may cut one that was leaving before. */
static void removed(struct plan *p, const struct plan_input *in, const struct state_pool *old,
		    const struct state_pool *next, size_t pool, bool cut)
{
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < old->backends; i++) {
		const struct state_backend *was = &old->backend[i], *is = plan_same(next, was);
		bool was_leaving = was->state == BACKEND_LEAVING;
		bool cuts = !is && backend_alive(was) && (was_leaving ? plan_cuts(in, old->name, was) : cut);

		if (is && (was_leaving || is->state != BACKEND_LEAVING))
			continue;
		address_text(&was->address, text);
		if (was_leaving)
			plan_add(p, PLAN_BACKEND_GONE, pool, i, old->name, "pool %s: backend %s (%s) has left%s",
				 old->name, was->name, text, cuts ? ": its flows are cut" : "");
		else
			plan_add(p, PLAN_BACKEND_REMOVE, pool, i, old->name, "pool %s: backend %s removed (%s)%s",
				 old->name, was->name, text,
				 is   ? ", leaving: no new flow, its old ones until they end" :
				 cuts ? ", its flows are cut" :
					", it has no flows");
		p->operation[p->operations - 1].cuts = cuts;
	}
}

static int added(struct plan *p, struct state_pool *next, size_t pool, size_t i, uint8_t *index_used, struct diag *d)
{
	struct state_backend *b = &next->backend[i];
	bool is_new = b->index == RINGLB_NO_BACKEND;
	int index = is_new ? index_take(index_used) : b->index;
	char text[ADDRESS_TEXT];

	if (index < 0) {
		diag_error(
			d, "too-many-backends", "",
			"no index is free for backend %s of pool %s: %u backends are the limit, those still leaving counted",
			b->name, next->name, RINGLB_MAX_BACKENDS);
		return -ENOSPC;
	}
	b->index = (uint16_t)index;
	plan_add(p, is_new ? PLAN_BACKEND_ADD : PLAN_BACKEND_CHANGE, pool, i, NULL,
		 "pool %s: backend %s added: %s, weight %u", next->name, b->name, address_text(&b->address, text),
		 b->weight);
	return 0;
}

int plan_pool_operations(struct plan *p, const struct plan_input *in, const struct state_pool *old, size_t pool,
			 bool cut, uint8_t *index_used, struct diag *d)
{
	struct state_pool *next = &p->next->pool[pool];
	int err = 0;

	if (!old)
		plan_add(p, PLAN_POOL_ADD, pool, 0, NULL, "pool %s: added, %zu backend%s", next->name, next->backends,
			 next->backends == 1 ? "" : "s");
	for (size_t i = 0; i < next->backends && !err; i++) {
		const struct state_backend *b = &next->backend[i], *was = plan_same(old, b);

		if (!was)
			err = added(p, next, pool, i, index_used, d);
		else if (b->state != BACKEND_LEAVING && backend_changed(was, b))
			change_text(p, next, pool, was, i);
		if (was && b->state != BACKEND_LEAVING)
			health_changed(p, next, pool, was, i);
	}
	if (old && !err)
		removed(p, in, old, next, pool, cut);
	return err;
}

void plan_pool_gone(struct plan *p, const struct state_pool *old, size_t pool)
{
	plan_add(p, PLAN_POOL_REMOVE, pool, 0, old->name, "pool %s: removed, %zu backend%s", old->name, old->backends,
		 old->backends == 1 ? "" : "s");
}
