/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From results to status, and from status to what the data plane does. */
#include "health_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void health_event(struct health *h, uint64_t now, enum health_event_kind kind, const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		diag_fatal("out of memory");
	va_end(args);
	h->event = xreallocarray(h->event, h->events + 1, sizeof(*h->event));
	h->event[h->events++] = (struct health_event){ now, kind, text };
}

void health_events_clear(struct health *h)
{
	for (size_t i = 0; i < h->events; i++)
		free(h->event[i].text);
	free(h->event);
	h->event = NULL;
	h->events = 0;
}

void health_set(struct health_backend *b, enum health_status status, bool waiting, uint64_t now)
{
	if (b->status != status)
		b->since = now;
	b->status = status;
	b->waiting = waiting;
	b->successes = b->failures = 0;
	b->ramp = b->ramped = 0;
	b->held = false;
}

/* Slow start goes in steps of this length, at multiples of it, so that backends that ramp together commit together. */
static uint64_t step_length(const struct config_check *c)
{
	uint64_t step = c->slow_start_ms / HEALTH_SLOW_STEPS;

	return step > HEALTH_SLOW_STEP_MS ? step : HEALTH_SLOW_STEP_MS;
}

/* How far it is, and when it is further. */
static double ramp_factor(struct health *h, const struct health_pool *p, struct health_backend *b, uint64_t now)
{
	uint64_t step, done;

	if (!b->ramp)
		return 1;
	step = step_length(p->check);
	done = b->ramped + (now / step - b->ramp / step) * step;
	if (done >= p->check->slow_start_ms) {
		b->ramp = 0;
		return 1;
	}
	if (h->step > (now / step + 1) * step)
		h->step = (now / step + 1) * step;
	return (double)done / (double)p->check->slow_start_ms;
}

static void count(struct health *h, struct health_pool *p, uint64_t now)
{
	bool was_down = p->all_down, was_panic = p->panic;
	size_t up = 0;

	p->takers = p->healthy = 0;
	for (size_t i = 0; i < p->backends; i++) {
		const struct health_backend *b = &p->backend[i];

		if (b->state != CONFIG_UP)
			continue;
		up++;
		p->takers += !b->waiting;
		p->healthy += b->status != HEALTH_DOWN;
	}
	p->all_down = p->check && up && !p->healthy;
	p->panic = p->check && p->healthy && (double)p->healthy < p->check->panic * (double)p->takers;
	if (p->all_down && !was_down)
		health_event(h, now, HEALTH_POOL, "pool %s: no backend is healthy; not ready, flows go to all %zu",
			     p->name, up);
	else if (p->panic && !was_panic)
		health_event(h, now, HEALTH_POOL,
			     "pool %s: %zu of %zu backends healthy, less than %.4g%%: flows go to all of them", p->name,
			     p->healthy, p->takers, 100 * p->check->panic);
	else if (!p->all_down && !p->panic && (was_down || was_panic))
		health_event(h, now, HEALTH_POOL, "pool %s: %zu of %zu backends healthy: flows go to these only",
			     p->name, p->healthy, p->takers);
}

static void commit_at(struct health *h, uint64_t time)
{
	if (h->due > time)
		h->due = time;
}

void health_evaluate(struct health *h, struct health_pool *p, uint64_t now)
{
	count(h, p, now);
	for (size_t i = 0; i < p->backends; i++) {
		struct health_backend *b = &p->backend[i];
		bool all = p->all_down || (p->panic && !b->waiting);

		b->factor = ramp_factor(h, p, b, now);
		if (all)
			b->factor = 1;
		b->use = b->status != HEALTH_DOWN || all ? HEALTH_USED : b->waiting ? HEALTH_WAITS : HEALTH_CUT;
		if (b->use != b->runs_use || b->factor != b->runs_factor)
			commit_at(h, now + HEALTH_BATCH_MS);
	}
}

static uint64_t hold_length(const struct health_backend *b)
{
	if (!b->flaps)
		return 0;
	if (b->flaps > 6)
		return HEALTH_HOLD_MAX_MS;
	return (uint64_t)HEALTH_HOLD_MS << (b->flaps - 1);
}

static void go_down(struct health *h, const struct health_pool *p, struct health_backend *b, uint64_t now)
{
	char text[ADDRESS_TEXT];
	uint32_t failures = b->failures;
	bool waited = b->waiting;

	if (!waited && b->came_up && now - b->came_up < HEALTH_STEADY_MS + hold_length(b))
		b->flaps++;
	else
		b->flaps = 0;
	health_set(b, HEALTH_DOWN, false, now);
	b->downs += !waited;
	health_event(h, now, HEALTH_WENT_DOWN, "pool %s: backend %s (%s) %s: %s; %u check%s failed", p->name, b->name,
		     address_text(&b->address, text), waited ? "is new and stays out" : "is down", b->reason,
		     (unsigned int)failures, failures == 1 ? "" : "s in a row");
}

static void go_up(struct health *h, const struct health_pool *p, struct health_backend *b, uint64_t now)
{
	uint64_t down = (now - b->since) / 1000;
	char text[ADDRESS_TEXT];
	bool waited = b->waiting;

	health_set(b, HEALTH_UP, false, now);
	b->came_up = now;
	b->ups++;
	if (p->check->slow_start_ms)
		b->ramp = now;
	if (waited)
		health_event(h, now, HEALTH_WENT_UP, "pool %s: backend %s (%s) takes flows: %s", p->name, b->name,
			     address_text(&b->address, text), b->reason);
	else
		health_event(h, now, HEALTH_WENT_UP, "pool %s: backend %s (%s) is up: %s; was down for %llus", p->name,
			     b->name, address_text(&b->address, text), b->reason, (unsigned long long)down);
}

static void succeed(struct health *h, const struct health_pool *p, struct health_backend *b, uint64_t now)
{
	uint64_t hold = hold_length(b);
	char text[ADDRESS_TEXT];

	if (!b->successes++)
		b->streak = now;
	b->failures = 0;
	if (b->status != HEALTH_DOWN || (b->successes < p->check->rise && !b->waiting))
		return;
	if (now - b->streak >= hold) {
		go_up(h, p, b, now);
	} else if (!b->held) {
		b->held = true;
		health_event(h, now, HEALTH_HELD,
			     "pool %s: backend %s (%s) flaps: it comes up when its check has succeeded for %llus",
			     p->name, b->name, address_text(&b->address, text), (unsigned long long)(hold / 1000));
	}
}

void health_result(struct health *h, const struct health_result *r, uint64_t now)
{
	struct health_backend *b = health_by_id(h, r->id);
	struct health_pool *p = b ? &h->pool[b->pool] : NULL;
	enum health_status was;
	bool waited;

	if (!p || !p->check || b->status == HEALTH_UNCHECKED)
		return;
	was = b->status;
	waited = b->waiting;
	b->checked = now;
	b->latency_us = r->latency_us;
	snprintf(b->reason, sizeof(b->reason), "%s", r->reason);
	if (r->ok) {
		succeed(h, p, b, now);
	} else {
		b->successes = 0;
		b->failures++;
		if (b->failures >= p->check->fall && (b->status == HEALTH_UP || b->waiting))
			go_down(h, p, b, now);
	}
	if (b->status != was || b->waiting != waited)
		health_evaluate(h, p, now);
}

uint64_t health_next(const struct health *h)
{
	return h->due < h->step ? h->due : h->step;
}

static bool differs(const struct health *h)
{
	for (size_t i = 0; i < h->by_ids; i++) {
		const struct health_backend *b = h->by_id[i];

		if (b->use != b->runs_use || b->factor != b->runs_factor)
			return true;
	}
	return false;
}

bool health_tick(struct health *h, uint64_t now)
{
	if (now >= h->step) {
		h->step = HEALTH_NEVER;
		for (size_t i = 0; i < h->pools; i++)
			health_evaluate(h, &h->pool[i], now);
	}
	if (now < h->due)
		return false;
	if (differs(h))
		return true;
	h->due = HEALTH_NEVER;
	return false;
}

void health_committed(struct health *h)
{
	for (size_t i = 0; i < h->by_ids; i++) {
		h->by_id[i]->runs_use = h->by_id[i]->use;
		h->by_id[i]->runs_factor = h->by_id[i]->factor;
	}
	h->due = HEALTH_NEVER;
}

void health_failed(struct health *h, uint64_t now)
{
	h->due = now + HEALTH_RETRY_MS;
}

void health_runs(struct health *h, struct health_backend *b, enum health_use use, double factor, bool restore,
		 uint64_t now)
{
	const struct config_check *check = h->pool[b->pool].check;

	b->runs_use = use;
	b->runs_factor = factor;
	if (restore && b->status == HEALTH_UP && use != HEALTH_USED) {
		health_set(b, HEALTH_DOWN, use == HEALTH_WAITS, now);
	} else if (restore && b->status == HEALTH_UP && factor < 1 && check->slow_start_ms) {
		b->ramp = now;
		b->ramped = (uint64_t)(factor * (double)check->slow_start_ms + 0.5);
	}
	h->step = now;
	commit_at(h, now + HEALTH_BATCH_MS);
}

uint64_t health_age(const struct health_backend *b, uint64_t now)
{
	return now - (b->checked ? b->checked : b->since);
}

bool health_stale(const struct health_pool *p, const struct health_backend *b, uint64_t now)
{
	if (!p->check || b->status == HEALTH_UNCHECKED)
		return false;
	return health_age(b, now) > 3 * p->check->interval_ms + p->check->timeout_ms + 1000;
}

const char *health_status_name(enum health_status s)
{
	static const char *const name[] = {
		[HEALTH_UNCHECKED] = "unchecked", [HEALTH_UP] = "up", [HEALTH_DOWN] = "down"
	};

	return name[s];
}
