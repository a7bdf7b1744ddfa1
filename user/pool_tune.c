// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pool_tune.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "moved.h"
#include "tune.h"

static bool is_only(const char *const *only, size_t onlies, const char *name)
{
	for (size_t i = 0; i < onlies; i++)
		if (!strcmp(only[i], name))
			return true;
	return false;
}

static int find_points(const struct config_pool *p, const char *const *only, size_t onlies, struct pool_trial *t)
{
	struct tune_member *member = xcalloc(p->backends, sizeof(*member));
	uint32_t *points = xcalloc(p->backends, sizeof(*points));
	int err;

	for (size_t i = 0; i < p->backends; i++) {
		const struct placement_member *m = &t->before[i];
		uint64_t usual = (uint64_t)p->vnodes * m->weight;
		bool fixed = !m->weight || (onlies && !is_only(only, onlies, t->name[i]));

		member[i] = (struct tune_member){ m->identity, m->weight, m->points, fixed };
		if (!fixed)
			member[i].points = usual < UINT32_MAX ? (uint32_t)usual : UINT32_MAX;
	}
	err = tune(member, p->backends, points);
	for (size_t i = 0; i < p->backends && !err; i++)
		if (t->before[i].weight)
			t->after[i].points = points[i];
	free(member);
	free(points);
	return err;
}

/* The member that a running backend is; or a new number, and its name. */
static uint16_t number_running(struct pool_tuned *t, const struct state_backend *b, size_t *next)
{
	const struct config_pool *p = t->trial.config;

	for (size_t i = 0; i < p->backends; i++)
		if (!strcmp(p->backend[i].identity, b->identity) && address_equal(&p->backend[i].address, &b->address))
			return (uint16_t)i;
	t->name[*next] = b->name;
	return (uint16_t)(*next)++;
}

static int change_of_running(const struct state_pool *running, struct pool_tuned *t)
{
	uint16_t *number = xcalloc(running->backends + 1, sizeof(*number));
	size_t next = t->trial.members;
	struct arcs before;
	int err = arcs_copy(&running->arcs, &before);

	t->name = xreallocarray(t->name, next + running->backends + 1, sizeof(*t->name));
	for (size_t i = 0; i < running->backends; i++)
		number[i] = number_running(t, &running->backend[i], &next);
	t->name[next] = "nobody";
	number[STATE_NOBODY(running)] = (uint16_t)next++;
	if (!err) {
		arcs_renumber(&before, number);
		shares_change(&before, &t->after.arcs, next, &t->change);
	}
	arcs_free(&before);
	free(number);
	return err;
}

/* How far the worst of those that were tuned is from its share. */
static double worst(const struct config_pool *p, const char *const *only, size_t onlies, const struct pool_shares *s)
{
	double most = 0;

	for (size_t i = 0; i < p->backends; i++)
		for (size_t j = 0; j < onlies; j++)
			if (!strcmp(p->backend[i].name, only[j]) && fabs(s->share[i].ratio - 1) > most)
				most = fabs(s->share[i].ratio - 1);
	return most;
}

/* A few among many that were tuned together may already be better than what can be found for them alone: they stay. */
static int keep_the_better(const struct config_pool *p, const char *const *only, size_t onlies, struct pool_tuned *t,
			   char **why)
{
	if (!onlies || worst(p, only, onlies, &t->after) < worst(p, only, onlies, &t->before))
		return 0;
	for (size_t i = 0; i < p->backends; i++)
		t->trial.after[i].points = t->trial.before[i].points;
	pool_shares_free(&t->after);
	return pool_shares_make(&t->trial, t->trial.after, placement_of(CONFIG_RING), &t->after, why);
}

int pool_tune(const struct config_pool *p, const struct state_pool *running, const char *const *only, size_t onlies,
	      struct pool_tuned *out)
{
	const struct placement *ring = placement_of(CONFIG_RING);
	struct pool_view view;
	char *why = NULL;
	int err;

	*out = (struct pool_tuned){ 0 };
	pool_view_make(p, NULL, &view);
	pool_trial_make(&view, &out->trial);
	pool_view_free(&view);
	err = find_points(p, only, onlies, &out->trial);
	if (!err)
		err = pool_shares_make(&out->trial, out->trial.before, ring, &out->before, &why);
	if (!err)
		err = pool_shares_make(&out->trial, out->trial.after, ring, &out->after, &why);
	if (!err)
		err = keep_the_better(p, only, onlies, out, &why);
	free(why);
	if (err)
		return err;
	out->name = xcalloc(p->backends, sizeof(*out->name));
	memcpy(out->name, out->trial.name, p->backends * sizeof(*out->name));
	out->against_running = running != NULL;
	if (running)
		return change_of_running(running, out);
	shares_change(&out->before.arcs, &out->after.arcs, p->backends, &out->change);
	return 0;
}

void pool_tuned_free(struct pool_tuned *t)
{
	share_change_free(&t->change);
	pool_shares_free(&t->before);
	pool_shares_free(&t->after);
	pool_trial_free(&t->trial);
	free(t->name);
	*t = (struct pool_tuned){ 0 };
}
