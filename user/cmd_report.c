// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What several commands print: a plan, and what runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"

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

static void plan_fields(struct out *o, const struct state *running, const struct plan *plan)
{
	out_object(o, "generation");
	out_integer(o, "from", running ? running->generation : 0);
	out_integer(o, "to", plan->next->generation);
	out_end(o);
	out_string(o, "digest", plan->next->digest);
	out_array(o, "pools");
	for (size_t i = 0; i < plan->pools; i++) {
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
		out_end(o);
	}
	out_end(o);
	out_array(o, "changes");
	for (size_t i = 0; i < plan->operations; i++)
		if (*plan->operation[i].text)
			out_string(o, NULL, plan->operation[i].text);
	out_end(o);
}

static void plan_pool_text(struct cmd_context *cx, const struct plan_pool *p)
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

/* hash_key decides about every flow of every pool, which no arc shows. */
static bool hashes_anew(const struct state *running, const struct plan *plan)
{
	return running &&
	       memcmp(running->config->hash_key, plan->next->config->hash_key, sizeof(plan->next->config->hash_key));
}

/* The line of a new pool counts its backends; and building tables is no change by itself. */
static bool goes_without_saying(const struct plan *plan, const struct plan_operation *op)
{
	return !*op->text || (op->kind == PLAN_BACKEND_ADD && plan->pool[op->pool].added);
}

void cmd_report_plan(struct cmd_context *cx, const struct running *running, const struct plan *plan)
{
	const struct state *was = running ? running->state : NULL;
	struct out *o = cx->out;
	bool moves = false;

	plan_fields(o, was, plan);
	if (!plan->operations) {
		out_text(o, "no change: generation %u runs already what the file says\n", plan->next->generation);
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
		if ((cx->verbose && *plan->operation[i].text) || !goes_without_saying(plan, &plan->operation[i]))
			out_text(o, "  %s\n", plan->operation[i].text);
	for (size_t i = 0; i < plan->pools; i++)
		if (plan->pool[i].moved) {
			moves = true;
			plan_pool_text(cx, &plan->pool[i]);
		}
	if (hashes_anew(was, plan))
		out_text(
			o,
			"established flows: every flow is hashed anew; nearly all go to another backend at once and break\n");
	else if (moves)
		out_text(
			o,
			"established flows: those in what moves go to their new backend at once, as new flows do, and break; "
			"all others stay where they are\n");
	else if (was)
		out_text(o, "established flows: all stay where they are\n");
}

static const char *interface_mode(const struct plan_interface *i)
{
	return !i->attached || !i->alive ? "missing" : i->native ? "native" : "generic";
}

static bool all_attached(const struct plan_interface *v, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!v[i].attached || !v[i].alive)
			return false;
	return count > 0;
}

static size_t pool_takers(const struct state_pool *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->backends; i++)
		n += backend_takes_flows(&p->backend[i]);
	return n;
}

static void report_interfaces(struct cmd_context *cx, const struct plan_interface *v, size_t count)
{
	struct out *o = cx->out;

	out_array(o, "interfaces");
	out_text(o, "interfaces:\n");
	out_table(o, "ll");
	for (size_t i = 0; i < count; i++) {
		const char *mode = interface_mode(&v[i]);

		out_object(o, NULL);
		out_string(o, "name", v[i].name);
		out_string(o, "mode", mode);
		out_end(o);
		out_cell(o, OUT_PLAIN, "%s", v[i].name);
		if (*mode == 'm')
			out_cell(o, OUT_BAD, "missing: \"ringlb apply\" attaches it again once it exists");
		else
			out_cell(o, *mode == 'g' ? OUT_WARN : OUT_GOOD, "%s", mode);
		out_row(o);
	}
	out_table_end(o);
	out_end(o);
}

static void report_backend(struct out *o, const struct state_backend *b, uint64_t length)
{
	bool up = backend_takes_flows(b);
	char text[ADDRESS_TEXT];

	out_object(o, NULL);
	out_string(o, "name", b->name);
	out_string(o, "address", address_text(&b->address, text));
	out_integer(o, "weight", b->weight);
	out_string(o, "zone", b->zone);
	out_string(o, "state", backend_state_name(b->state));
	out_string(o, "health", "unchecked");
	out_integer(o, "points", up ? b->points : 0);
	out_real(o, "share", share(length));
	out_string(o, "last_old_packet", NULL);
	out_end(o);
	out_cell(o, OUT_PLAIN, "%s", b->name);
	out_cell(o, OUT_PLAIN, "%s", address_text(&b->address, text));
	out_cell(o, OUT_PLAIN, "%u", b->weight);
	out_cell(o, OUT_PLAIN, "%s", b->zone ? b->zone : "");
	out_cell(o, up ? OUT_GOOD : OUT_WARN, "%s", backend_state_name(b->state));
	out_cell(o, OUT_PLAIN, "%u", up ? b->points : 0);
	out_cell(o, OUT_PLAIN, "%.2f %%", 100 * share(length));
	out_row(o);
}

static uint64_t pool_moved(const struct state_pool *p)
{
	uint64_t moved = 0;

	for (size_t i = 0; i < p->arcs.count; i++)
		if (p->arcs.arc[i].moved)
			moved += arcs_length(&p->arcs, i);
	return moved;
}

static void report_pool(struct out *o, const struct config_pool *c, const struct state_pool *p)
{
	static const char *const head[] = { "backend", "address", "weight", "zone", "state", "points", "share" };
	uint64_t *length = xcalloc(p->backends + 1, sizeof(*length)), points = 0;

	arcs_shares(&p->arcs, length, p->backends + 1);
	for (size_t i = 0; i < p->backends; i++)
		points += backend_takes_flows(&p->backend[i]) ? p->backend[i].points : 0;
	out_object(o, NULL);
	out_string(o, "name", p->name);
	out_string(o, "placement", config_placement_name(c->placement));
	out_integer(o, "vnodes", c->vnodes);
	out_integer(o, "points", (int64_t)points);
	out_real(o, "moved", share(pool_moved(p)));
	out_text(o, "pool %s: %s, %u vnodes, %llu points%s\n", p->name, config_placement_name(c->placement), c->vnodes,
		 (unsigned long long)points, points ? "" : " (no backend takes flows: packets are dropped)");
	out_array(o, "backends");
	out_table(o, "llrllrr");
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		out_head(o, "%s", head[i]);
	/* In the file's order; those that have left it come last. */
	for (size_t i = 0; i < c->backends; i++)
		for (size_t j = 0; j < p->backends; j++)
			if (p->backend[j].state != BACKEND_LEAVING &&
			    !strcmp(p->backend[j].identity, c->backend[i].identity))
				report_backend(o, &p->backend[j], length[j]);
	for (size_t j = 0; j < p->backends; j++)
		if (p->backend[j].state == BACKEND_LEAVING)
			report_backend(o, &p->backend[j], length[j]);
	out_table_end(o);
	out_end(o);
	out_end(o);
	free(length);
}

static void report_service(struct out *o, const struct config_service *s, const struct config_pool *p, bool ready)
{
	char text[ADDRESS_TEXT], port[8];

	snprintf(port, sizeof(port), s->port ? "%u" : "any", s->port);
	out_object(o, NULL);
	out_string(o, "name", s->name);
	out_string(o, "address", address_text(&s->address, text));
	if (s->port)
		out_integer(o, "port", s->port);
	else
		out_string(o, "port", "any");
	out_string(o, "protocol", config_protocol_name(s->protocol));
	out_string(o, "pool", p->name);
	out_string(o, "forward", config_forward_name(s->forward));
	out_string(o, "affinity", config_affinity_name(s->affinity));
	out_string(o, "track", config_track_name(s->track));
	out_boolean(o, "ready", ready);
	out_end(o);
	out_cell(o, OUT_PLAIN, "%s", s->name);
	out_cell(o, OUT_PLAIN, "%s", text);
	out_cell(o, OUT_PLAIN, "%s", port);
	out_cell(o, OUT_PLAIN, "%s", config_protocol_name(s->protocol));
	out_cell(o, OUT_PLAIN, "%s", p->name);
	out_cell(o, OUT_PLAIN, "%s", config_forward_name(s->forward));
	out_cell(o, OUT_PLAIN, "%s", config_affinity_name(s->affinity));
	out_cell(o, OUT_PLAIN, "%s", config_track_name(s->track));
	out_cell(o, ready ? OUT_GOOD : OUT_BAD, "%s", ready ? "yes" : "no");
	out_row(o);
}

static void report_services(struct out *o, const struct state *s, const char *pool, bool attached)
{
	static const char *const head[] = { "service", "address",  "port",  "protocol", "pool",
					    "forward", "affinity", "track", "ready" };

	out_array(o, "services");
	out_text(o, "services:\n");
	out_table(o, "llrllllll");
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		out_head(o, "%s", head[i]);
	for (size_t i = 0; i < s->config->services; i++) {
		const struct config_service *v = &s->config->service[i];
		const struct config_pool *p = &s->config->pool[v->pool];
		size_t takers = pool_takers(&s->pool[v->pool]);

		if (!pool || !strcmp(p->name, pool))
			report_service(o, v, p, attached && takers && takers >= p->quorum);
	}
	out_table_end(o);
	out_end(o);
}

int cmd_report_running(struct cmd_context *cx, const struct running *running, const char *pool)
{
	const struct state *s = running->state;
	struct plan_interface *interface;
	struct out *o = cx->out;
	size_t interfaces;

	if (pool && !config_find_pool(s->config, pool)) {
		diag_error(&cx->diag, "unknown-pool", "", "no pool \"%s\": \"ringlb show\" lists them", pool);
		return EXIT_BAD;
	}
	interface = running_interfaces(running, &interfaces);
	out_string(o, "instance", cx->instance.name);
	out_integer(o, "generation", s->generation);
	out_integer(o, "revision", (int64_t)s->revision);
	out_string(o, "digest", s->digest);
	out_string(o, "effective_digest", s->digest);
	out_array(o, "drift");
	out_end(o);
	out_text(o, "instance %s: generation %u, revision %llu, digest %s\n", cx->instance.name, s->generation,
		 (unsigned long long)s->revision, s->digest);
	if (cx->verbose)
		out_text(o, "memory locked: %.1f MiB\n", (double)datapath_locked_bytes(running->dp) / (1 << 20));
	report_interfaces(cx, interface, interfaces);
	out_array(o, "pools");
	for (size_t i = 0; i < s->pools; i++)
		if (!pool || !strcmp(s->pool[i].name, pool))
			report_pool(o, &s->config->pool[i], &s->pool[i]);
	out_end(o);
	report_services(o, s, pool, all_attached(interface, interfaces));
	free(interface);
	return EXIT_DONE;
}
