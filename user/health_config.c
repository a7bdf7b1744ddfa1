/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which backends there are, and what those that stay keep. */
#include <stdlib.h>
#include <string.h>

#include "health_private.h"

static int compare(const char *identity_a, const struct address *a, const char *identity_b, const struct address *b)
{
	int order = strcmp(identity_a, identity_b);

	return order ? order : address_compare(a, b);
}

static int by_order(const void *a, const void *b)
{
	const struct health_backend *x = a, *y = b;

	return compare(x->identity, &x->address, y->identity, &y->address);
}

static struct health_pool *pool_named(struct health_pool *pool, size_t pools, const char *name, size_t hint)
{
	if (hint < pools && !strcmp(pool[hint].name, name))
		return &pool[hint];
	for (size_t i = 0; i < pools; i++) {
		if (!strcmp(pool[i].name, name))
			return &pool[i];
	}
	return NULL;
}

static struct health_backend *backend_in(const struct health_pool *p, const char *identity, const struct address *a)
{
	size_t low = 0, high = p->backends;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct health_backend *b = &p->backend[middle];
		int order = compare(identity, a, b->identity, &b->address);

		if (!order)
			return b;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

struct health_backend *health_find(const struct health *h, const char *pool, const char *identity,
				   const struct address *a)
{
	const struct health_pool *p = pool_named(h->pool, h->pools, pool, SIZE_MAX);

	return p ? backend_in(p, identity, a) : NULL;
}

struct health_backend *health_by_id(const struct health *h, uint64_t id)
{
	size_t low = 0, high = h->by_ids;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (h->by_id[middle]->id == id)
			return h->by_id[middle];
		if (h->by_id[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int by_id(const void *a, const void *b)
{
	const struct health_backend *x = *(struct health_backend *const *)a, *y = *(struct health_backend *const *)b;

	return (x->id > y->id) - (x->id < y->id);
}

static void index_ids(struct health *h)
{
	size_t count = 0;

	for (size_t i = 0; i < h->pools; i++)
		count += h->pool[i].backends;
	free(h->by_id);
	h->by_id = xcalloc(count + 1, sizeof(struct health_backend *));
	h->by_ids = 0;
	for (size_t i = 0; i < h->pools; i++) {
		for (size_t j = 0; j < h->pool[i].backends; j++) {
			h->pool[i].backend[j].pool = i;
			h->by_id[h->by_ids++] = &h->pool[i].backend[j];
		}
	}
	qsort(h->by_id, h->by_ids, sizeof(struct health_backend *), by_id);
}

static void pool_clear(struct health_pool *p)
{
	for (size_t i = 0; i < p->backends; i++) {
		free(p->backend[i].name);
		free(p->backend[i].identity);
	}
	free(p->backend);
	free(p->name);
	config_check_free(p->check);
}

/* A backend as it is to start: old is its pool as it was, or NULL for a pool that is new too. */
static void start_backend(struct health_backend *b, const struct health_pool *p, const struct health_pool *old,
			  uint64_t now)
{
	b->since = now;
	b->runs_factor = 1; /* as it is where nobody says otherwise with health_runs */
	b->runs_use = HEALTH_USED;
	if (!p->check || b->state == CONFIG_MAINT) {
		b->status = HEALTH_UNCHECKED;
	} else if (old) {
		b->status = HEALTH_DOWN;
		b->waiting = true;
	} else {
		b->status = HEALTH_UP;
	}
}

/* What a backend that stays becomes under the pool's check as it is now. */
static void continue_backend(struct health_backend *b, const struct health_pool *p, const struct health_pool *old,
			     enum config_state was, bool same_check, uint64_t now)
{
	bool checked = p->check && b->state != CONFIG_MAINT;

	if (!checked && b->status != HEALTH_UNCHECKED) {
		health_set(b, HEALTH_UNCHECKED, false, now);
		b->came_up = 0;
		b->flaps = 0;
	} else if (checked && b->status == HEALTH_UNCHECKED) {
		/* The check is new and it took flows so far; or it is back from maint. */
		bool served = was != CONFIG_MAINT && !old->check;

		health_set(b, served ? HEALTH_UP : HEALTH_DOWN, !served, now);
	} else if (!same_check) {
		b->successes = b->failures = 0;
		if (!p->check || !p->check->slow_start_ms)
			b->ramp = 0;
	}
	if (!checked) {
		b->checked = 0;
		b->reason[0] = '\0';
	}
}

static void make_backend(struct health *h, const struct config_backend *c, const struct health_pool *p,
			 struct health_pool *old, bool same_check, struct health_backend *out, uint64_t now)
{
	struct health_backend *was = old ? backend_in(old, c->identity, &c->address) : NULL;
	enum config_state state;

	if (!was) {
		*out = (struct health_backend){
			.id = ++h->last_id,
			.name = xstrdup(c->name),
			.identity = xstrdup(c->identity),
			.address = c->address,
			.state = c->state,
		};
		start_backend(out, p, old, now);
		return;
	}
	*out = *was;
	state = was->state;
	out->name = xstrdup(c->name);
	out->identity = xstrdup(c->identity);
	out->state = c->state;
	continue_backend(out, p, old, state, same_check, now);
}

static void make_pool(struct health *h, const struct config_pool *c, struct health_pool *old, struct health_pool *p,
		      uint64_t now)
{
	bool same_check = old && config_check_equal(old->check, c->check);

	*p = (struct health_pool){ .name = xstrdup(c->name), .backends = c->backends };
	p->check = c->check ? config_check_copy(c->check) : NULL;
	if (old) {
		p->all_down = old->all_down;
		p->panic = old->panic;
		if (old->check && !c->check)
			health_event(h, now, HEALTH_POOL, "pool %s: has no check any more; all its backends are used",
				     c->name);
	}
	if (!p->check)
		p->all_down = p->panic = false;
	p->backend = xcalloc(c->backends, sizeof(*p->backend));
	for (size_t i = 0; i < c->backends; i++)
		make_backend(h, &c->backend[i], p, old, same_check, &p->backend[i], now);
	qsort(p->backend, p->backends, sizeof(*p->backend), by_order);
}

void health_configure(struct health *h, const struct config *c, uint64_t now)
{
	struct health_pool *old = h->pool;
	size_t olds = h->pools;

	if (!h->started) {
		h->started = true;
		h->due = h->step = HEALTH_NEVER;
	}
	h->pool = xcalloc(c->pools, sizeof(*h->pool));
	h->pools = c->pools;
	for (size_t i = 0; i < c->pools; i++)
		make_pool(h, &c->pool[i], pool_named(old, olds, c->pool[i].name, i), &h->pool[i], now);
	for (size_t i = 0; i < olds; i++)
		pool_clear(&old[i]);
	free(old);
	index_ids(h);
	for (size_t i = 0; i < h->pools; i++)
		health_evaluate(h, &h->pool[i], now);
}

void health_free(struct health *h)
{
	for (size_t i = 0; i < h->pools; i++)
		pool_clear(&h->pool[i]);
	free(h->pool);
	free(h->by_id);
	health_events_clear(h);
	*h = (struct health){ 0 };
}
