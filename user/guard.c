/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "guard.h"

#include <stdlib.h>
#include <string.h>

#define POSITIONS 4294967296.0

static void check_move(double limit, const char *what, const char *name, uint64_t moved, struct diag *d)
{
	double share = (double)moved / POSITIONS;

	if (share > limit)
		diag_error(
			d, "max-move", "",
			"%s %s: %.2f %% would move, and max_move is %.4g %%: change it in smaller steps, or allow this one with "
			"--max-move %.4g%%",
			what, name, 100 * share, 100 * limit, 100 * share + 0.005);
}

/* The stricter of what runs and what is wanted, so that neither a file nor a rollback lifts it by lacking it. */
static double limit_of(const struct guard *g, const struct state *running, const struct plan *plan)
{
	double was = running ? running->config->max_move : -1, is = plan->next->config->max_move;

	if (g->max_move >= 0)
		return g->max_move;
	return is < 0 || (was >= 0 && was < is) ? was : is;
}

static void check_moves(const struct guard *g, const struct state *running, const struct plan *plan, struct diag *d)
{
	double limit = limit_of(g, running, plan);

	if (limit < 0)
		return;
	for (size_t i = 0; i < plan->pools; i++)
		check_move(limit, "pool", plan->pool[i].name, plan->pool[i].moved, d);
	for (size_t i = 0; i < plan->services; i++)
		check_move(limit, plan->service[i].removed ? "removed service" : "service", plan->service[i].name,
			   plan->service[i].moved, d);
}

static void check_empty(const struct plan *plan, struct diag *d)
{
	for (size_t i = 0; i < plan->pools; i++)
		if (plan->pool[i].emptied)
			diag_error(
				d, "empty-pool", "",
				"pool %s would have no backend left that takes flows: its new flows would be dropped: "
				"--allow-empty if that is meant",
				plan->pool[i].name);
}

static const struct config_backend *find(const struct config *c, const struct state_edit *e)
{
	const struct config_pool *p = config_find_pool(c, e->pool);

	for (size_t i = 0; p && i < p->backends; i++)
		if (!strcmp(p->backend[i].name, e->backend))
			return &p->backend[i];
	return NULL;
}

/* Whether the wanted configuration has what the edit made. */
static bool agrees(const struct config *c, const struct state_edit *e)
{
	const struct config_backend *b = find(c, e);
	char text[ADDRESS_TEXT];

	switch (e->kind) {
	case EDIT_ADD:
		return b && !strcmp(address_text(&b->address, text), e->value);
	case EDIT_DELETE:
		return !b;
	case EDIT_WEIGHT:
		return b && b->weight == strtoul(e->value, NULL, 10);
	case EDIT_STATE:
		return b && !strcmp(config_state_name(b->state), e->value);
	case EDIT_ROLLBACK:
		break;
	}
	return false;
}

static void check_edits(const struct state *running, const struct plan *plan, struct diag *d)
{
	for (size_t i = 0; i < running->edits; i++) {
		const struct state_edit *e = &running->edit[i];
		bool kept = e->kind == EDIT_ROLLBACK ? !plan->generation : agrees(plan->next->config, e);
		char *text;

		if (kept)
			continue;
		text = state_edit_text(e);
		diag_error(
			d, "live-edit", "",
			"this would undo a change made live: %s: put it into the file, or give it up with --discard-live",
			text);
		free(text);
	}
}

bool guard_check(const struct guard *g, const struct state *running, const struct plan *plan, struct diag *d)
{
	size_t before = d->errors;

	if (g->generation >= 0 && (!running || running->generation != g->generation))
		diag_error(
			d, "generation", "",
			"generation %u runs, not %lld: look at the change since then (ringlb history), and plan anew",
			running ? running->generation : 0, (long long)g->generation);
	check_moves(g, running, plan, d);
	if (!g->allow_empty)
		check_empty(plan, d);
	if (running && !g->discard_live && !plan->keeps_edits)
		check_edits(running, plan, d);
	return d->errors == before;
}
