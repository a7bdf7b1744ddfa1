// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pool_trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void pool_trial_make(const struct pool_view *v, struct pool_trial *out)
{
	size_t n = v->config->backends;

	*out = (struct pool_trial){ .config = v->config, .members = n };
	out->name = xcalloc(n, sizeof(*out->name));
	out->before = xcalloc(n, sizeof(*out->before));
	out->after = xcalloc(n, sizeof(*out->after));
	for (size_t i = 0; i < n; i++) {
		out->name[i] = v->config->backend[i].name;
		out->before[i] = out->after[i] = v->member[i];
	}
}

static size_t find(const struct pool_trial *t, const char *name)
{
	size_t i = 0;

	while (i < t->members && strcmp(t->name[i], name))
		i++;
	return i;
}

static uint32_t limited(uint64_t points)
{
	return points < UINT32_MAX ? (uint32_t)points : UINT32_MAX;
}

/* Behind the others; takes no part before. */
static void add(struct pool_trial *t, const char *name)
{
	size_t n = t->members++;
	struct placement_member m = { .identity = name };

	t->name = xreallocarray(t->name, n + 1, sizeof(*t->name));
	t->before = xreallocarray(t->before, n + 1, sizeof(*t->before));
	t->after = xreallocarray(t->after, n + 1, sizeof(*t->after));
	t->name[n] = name;
	t->before[n] = m;
	t->after[n] = m;
	placement_number(t->after, t->members);
}

void pool_trial_with(struct pool_trial *t, const char *name, uint32_t weight)
{
	size_t i = find(t, name);
	uint64_t points = (uint64_t)t->config->vnodes * weight;

	t->changed = true;
	if (i == t->members)
		add(t, name);
	if (i < t->config->backends && t->config->backend[i].points) {
		const struct config_backend *b = &t->config->backend[i];

		/* As a live change of the weight scales an exact count. */
		points = ((uint64_t)b->points * weight + b->weight / 2) / b->weight;
		points += !points;
	}
	t->after[i].weight = weight;
	t->after[i].points = limited(points);
}

int pool_trial_without(struct pool_trial *t, const char *name)
{
	size_t i = find(t, name);

	if (i == t->members)
		return -ENOENT;
	t->changed = true;
	t->after[i].weight = 0;
	return 0;
}

void pool_trial_free(struct pool_trial *t)
{
	free(t->name);
	free(t->before);
	free(t->after);
	*t = (struct pool_trial){ 0 };
}

int pool_shares_make(const struct pool_trial *t, const struct placement_member *member, const struct placement *p,
		     struct pool_shares *out, char **why)
{
	const struct placement_pool pool = { member, t->members, t->config->maglev_size };
	int err;

	*out = (struct pool_shares){ 0 };
	out->weight = xcalloc(t->members, sizeof(*out->weight));
	out->points = xcalloc(t->members, sizeof(*out->points));
	out->share = xcalloc(t->members, sizeof(*out->share));
	err = placement_build(p, &pool, &out->arcs, out->points, why);
	if (err)
		return err;
	for (size_t i = 0; i < t->members; i++) {
		out->weight[i] = member[i].weight;
		out->all_points += out->points[i];
	}
	out->balance = shares_measure(&out->arcs, out->weight, t->members, out->share);
	return 0;
}

void pool_shares_free(struct pool_shares *s)
{
	arcs_free(&s->arcs);
	free(s->weight);
	free(s->points);
	free(s->share);
	*s = (struct pool_shares){ 0 };
}
