// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pool_view.h"

#include <stdlib.h>

static int by_order(const void *a, const void *b)
{
	return backend_order(a, b);
}

/* The running backend that a configured one is, or NULL. */
static const struct state_backend *running_backend(const struct state_pool *p, const struct config_backend *b)
{
	const struct state_backend key = { .identity = b->identity, .address = b->address };

	return bsearch(&key, p->backend, p->backends, sizeof(key), by_order);
}

void pool_view_make(const struct config_pool *c, const struct state_pool *running, struct pool_view *out)
{
	*out = (struct pool_view){ .config = c };
	out->member = xcalloc(c->backends, sizeof(*out->member));
	out->zone = xcalloc(c->backends, sizeof(*out->zone));
	placement_members(c, out->member);
	for (size_t i = 0; i < c->backends; i++) {
		const struct state_backend *is = running ? running_backend(running, &c->backend[i]) : NULL;

		out->zone[i] = c->backend[i].zone;
		if (running && (!is || !backend_takes_flows(is)))
			out->member[i].weight = 0;
	}
}

int pool_view_build(const struct pool_view *v, const struct placement *p, struct arcs *out, uint32_t *points,
		    char **why)
{
	const struct placement_pool pool = { v->member, v->config->backends, v->config->maglev_size };

	return placement_build(p, &pool, out, points, why);
}

void pool_view_free(struct pool_view *v)
{
	free(v->member);
	free(v->zone);
	*v = (struct pool_view){ 0 };
}
