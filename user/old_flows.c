/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "old_flows.h"

#include <stdlib.h>
#include <string.h>

#include "moved.h"

/* Arcs that may still send to their previous owner, and for how long. */
static void wait_for_arcs(struct old_flows *o, const struct state_pool *p, const struct config_pool *c)
{
	uint32_t settle = (uint32_t)((c->settle_after_ms + 999) / 1000);

	for (size_t i = 0; i < p->arcs.count; i++) {
		const struct arc *a = &p->arcs.arc[i];
		uint32_t in = arc_settles_in(a, o->now, settle), *wait;

		if (!a->moved || a->previous >= p->backends)
			continue;
		if (in > settle && settle)
			in = settle; /* stamps are whole seconds: no longer than what was configured is promised */
		wait = &o->wait[p->backend[a->previous].index];
		*wait = in > *wait ? in : *wait;
	}
}

static void wait_for_flows(struct old_flows *o, const struct running *r)
{
	uint32_t *count = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*count));
	uint32_t *left = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*left));

	running_flows(r, o->now, count, left);
	for (size_t i = 0; i < RINGLB_MAX_BACKENDS; i++)
		if (left[i] > o->wait[i])
			o->wait[i] = left[i];
	free(count);
	free(left);
}

int old_flows_read(const struct running *r, struct old_flows *out)
{
	const struct state *s = r->state;
	const struct ringlb_backend *b;
	uint32_t count;
	int err;

	memset(out, 0, sizeof(*out));
	err = running_now(r->dp, &out->now);
	if (err)
		return err;
	out->last = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*out->last));
	out->wait = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*out->wait));
	b = datapath_backends(r->dp, &count);
	for (uint32_t i = 0; i < count && i < RINGLB_MAX_BACKENDS; i++)
		out->last[i] = b[i].last_old;
	for (size_t i = 0; i < s->pools; i++)
		wait_for_arcs(out, &s->pool[i], &s->config->pool[i]);
	for (size_t i = 0; i < s->owns; i++)
		wait_for_arcs(out, &s->own[i].table, &s->config->pool[s->config->service[s->own[i].service].pool]);
	wait_for_flows(out, r);
	return 0;
}

void old_flows_free(struct old_flows *o)
{
	free(o->last);
	free(o->wait);
	memset(o, 0, sizeof(*o));
}

uint32_t old_flows_safe_in(const struct old_flows *o, const struct state_backend *b)
{
	return backend_alive(b) ? o->wait[b->index] : 0;
}
