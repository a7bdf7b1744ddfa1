// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a change does or would do, for plan and for every command that changes something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"
#include "moved.h"

#define POSITIONS 4294967296.0
#define MOVES_SHOWN 10 /* of a pool, in text without --verbose */

static double share(uint64_t length)
{
	return (double)length / POSITIONS;
}

static double minimum(const struct plan_pool *p)
{
	return (double)p->minimum_twice / 2 / POSITIONS;
}

/* A pool's place in the next state is that in the plan; those that are removed come behind. */
static uint32_t settles_in(const struct plan_input *in, const struct plan *plan, size_t i)
{
	const struct state *s = plan->next;

	if (i >= s->pools)
		return 0;
	return arcs_settled_in(&s->pool[i].arcs, in->now,
			       (uint32_t)((s->config->pool[i].settle_after_ms + 999) / 1000));
}

static void pool_fields(struct out *o, const struct plan_input *in, const struct plan *plan, size_t i)
{
	const struct plan_pool *p = &plan->pool[i];

	out_object(o, NULL);
	out_string(o, "name", p->name);
	out_real(o, "moved", share(p->moved));
	out_real(o, "minimum", minimum(p));
	out_array(o, "moves");
	for (size_t j = 0; j < p->moves; j++) {
		out_object(o, NULL);
		out_string(o, "from", p->move[j].from);
		out_string(o, "to", p->move[j].to);
		out_real(o, "share", share(p->move[j].length));
		out_end(o);
	}
	out_end(o);
	out_object(o, "services_by_track");
	for (unsigned int t = 0; t < sizeof(p->tracked) / sizeof(*p->tracked); t++)
		out_integer(o, config_track_name((enum ringlb_track)t), p->tracked[t]);
	out_end(o);
	out_boolean(o, "emptied", p->emptied);
	out_real(o, "settled", p->settled);
	out_real(o, "settling", share(p->settling));
	out_integer(o, "settles_in", settles_in(in, plan, i));
	out_end(o);
}

void cmd_report_plan_fields(struct out *o, const struct plan_input *in, const struct plan *plan)
{
	out_object(o, "generation");
	out_integer(o, "from", in->running ? in->running->generation : 0);
	out_integer(o, "to", plan->next->generation);
	out_end(o);
	out_string(o, "digest", plan->next->digest);
	out_array(o, "pools");
	for (size_t i = 0; i < plan->pools; i++)
		pool_fields(o, in, plan, i);
	out_end(o);
	out_array(o, "services");
	for (size_t i = 0; i < plan->services; i++) {
		const struct plan_service *v = &plan->service[i];

		out_object(o, NULL);
		out_string(o, "name", v->name);
		out_real(o, "moved", share(v->moved));
		out_boolean(o, "rehashed", v->rehashed);
		out_boolean(o, "removed", v->removed);
		out_boolean(o, "takes", v->takes);
		out_boolean(o, "dropped", v->dropped);
		out_string(o, "track", config_track_name(v->track));
		out_end(o);
	}
	out_end(o);
	out_array(o, "changes");
	for (size_t i = 0; i < plan->operations; i++)
		if (*plan->operation[i].text)
			out_string(o, NULL, plan->operation[i].text);
	out_end(o);
}

static void moves_text(struct cmd_context *cx, const struct plan_pool *p)
{
	size_t shown = cx->verbose || p->moves <= MOVES_SHOWN ? p->moves : MOVES_SHOWN;

	out_text(cx->out, "pool %s: %.2f %% of its hash space moves (the minimum is %.2f %%)\n", p->name,
		 100 * share(p->moved), 100 * minimum(p));
	out_table(cx->out, "llr");
	out_head(cx->out, "from");
	out_head(cx->out, "to");
	out_head(cx->out, "share");
	for (size_t i = 0; i < shown; i++) {
		out_cell(cx->out, OUT_PLAIN, "%s", p->move[i].from);
		out_cell(cx->out, OUT_PLAIN, "%s", p->move[i].to);
		out_cell(cx->out, OUT_PLAIN, "%.2f %%", 100 * share(p->move[i].length));
		out_row(cx->out);
	}
	out_table_end(cx->out);
	if (shown < p->moves)
		out_text(cx->out, "  and %zu smaller ones (-v shows them)\n", p->moves - shown);
}

/* What happens to the established flows of a pool of which something moves. */
static void pool_flows_text(struct cmd_context *cx, const struct config_pool *c, const struct plan_pool *p)
{
	unsigned int none = p->tracked[RINGLB_TRACK_NONE],
		     kept = p->tracked[RINGLB_TRACK_MOVED] + p->tracked[RINGLB_TRACK_ALWAYS];
	char silent[OUT_SECONDS_TEXT];

	out_seconds_text((uint32_t)((c->settle_after_ms + 999) / 1000), silent);
	if (kept)
		out_text(
			cx->out,
			"  established flows stay where they are until they end, or send nothing for %s (settle_after)%s\n",
			silent, none ? ", where the service tracks them" : "");
	if (none)
		out_text(
			cx->out,
			"  established flows of %u service%s with track: none: those in the %.2f %% that move go to their new "
			"backend at once, and break\n",
			none, none == 1 ? "" : "s", 100 * share(p->moved));
	if (!kept && !none)
		out_text(cx->out, "  no service uses it: no flow is concerned\n");
}

static void removed_text(struct cmd_context *cx, const struct plan_service *v)
{
	if (v->heir)
		out_text(
			cx->out,
			"service %s: removed: what is sent to %s is for service %s from then on; established flows break "
			"where that chooses another backend\n",
			v->name, v->where, v->heir);
	else
		out_text(
			cx->out,
			"service %s: removed: its established flows break; what is sent to %s is the host's from then on\n",
			v->name, v->where);
}

static void service_text(struct cmd_context *cx, const struct plan_service *v)
{
	if (v->removed)
		removed_text(cx, v);
	else if (v->takes)
		out_text(
			cx->out,
			"service %s: what is sent to %s was for service %s until now: established flows break where this "
			"one chooses another backend\n",
			v->name, v->where, v->former);
	else if (v->dropped)
		out_text(
			cx->out,
			"service %s: track: none from now on: established flows in the %.2f %% that is still moving go to "
			"their new backend at once, and break\n",
			v->name, 100 * share(v->moved));
	else if (v->rehashed)
		out_text(cx->out,
			 "service %s: every flow is hashed anew: nearly all go to another backend at once, and break\n",
			 v->name);
	else
		out_text(cx->out,
			 "service %s: %.2f %% of its hash space moves, to another pool: established flows %s\n",
			 v->name, 100 * share(v->moved),
			 v->track == RINGLB_TRACK_NONE ? "there go with it at once, and break (track: none)" :
							 "stay where they are until they end");
}

/* Established flows are given up, whatever moves. */
static bool cuts(const struct plan *plan)
{
	for (size_t i = 0; i < plan->operations; i++)
		if (plan->operation[i].cuts)
			return true;
	return false;
}

static bool ends_something(const struct plan *plan)
{
	for (size_t i = 0; i < plan->operations; i++)
		if (plan->operation[i].kind == PLAN_SERVICE_REMOVE ||
		    plan->operation[i].kind == PLAN_INTERFACE_DETACH ||
		    plan->operation[i].kind == PLAN_INTERFACE_REATTACH)
			return true;
	return false;
}

static void flows_text(struct cmd_context *cx, const struct plan_input *in, const struct plan *plan)
{
	bool moves = plan->services > 0;

	for (size_t i = 0; i < plan->pools; i++) {
		const struct plan_pool *p = &plan->pool[i];

		if (p->emptied)
			out_text(cx->out, "pool %s: no backend takes flows any more: new flows are dropped\n", p->name);
		if (!p->moved)
			continue;
		moves = true;
		moves_text(cx, p);
		if (i < plan->next->pools)
			pool_flows_text(cx, &plan->next->config->pool[i], p);
	}
	for (size_t i = 0; i < plan->services; i++)
		service_text(cx, &plan->service[i]);
	if (cuts(plan))
		out_text(cx->out, "established flows of the backends that are cut break\n");
	else if (!moves && in->running && !ends_something(plan))
		out_text(cx->out, "established flows: all stay where they are\n");
}

/* The line of a new pool counts its backends; and building tables is no change by itself. */
static bool goes_without_saying(const struct plan *plan, const struct plan_operation *op)
{
	return !*op->text || (op->kind == PLAN_BACKEND_ADD && plan->pool[op->pool].added);
}

void cmd_report_plan(struct cmd_context *cx, const struct plan_input *in, const struct plan *plan)
{
	const struct state *was = in->running;
	struct out *o = cx->out;
	size_t said = 0;

	cmd_report_plan_fields(o, in, plan);
	if (!plan->operations) {
		out_text(o, "no change: generation %u runs already what is wanted\n", plan->next->generation);
		return;
	}
	if (!was)
		out_text(o, "instance %s is not attached; attach would make generation %u:\n", cx->instance.name,
			 plan->next->generation);
	else if (was->generation == plan->next->generation)
		out_text(o, "generation %u stays\n", was->generation);
	else
		out_text(o, "generation %u -> %u\n", was->generation, plan->next->generation);
	for (size_t i = 0; i < plan->operations; i++)
		if ((cx->verbose && *plan->operation[i].text) || !goes_without_saying(plan, &plan->operation[i])) {
			out_text(o, "  %s\n", plan->operation[i].text);
			said++;
		}
	if (!said && was && was->edits && !plan->keeps_edits)
		out_text(o, "  what was changed live is no longer kept apart from the file, which says the same\n");
	else if (!said)
		out_text(o, "  nothing changes but the name of the file: %s\n", plan->next->config->file);
	flows_text(cx, in, plan);
}
