// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What runs: its interfaces, pools and services, and how that differs from the file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "drift.h"
#include "moved.h"
#include "old_flows.h"
#include "ready.h"
#include "report.h"

#define POSITIONS 4294967296.0

struct report {
	struct out *out;
	const struct running *running;
	const struct health *health; /* or NULL */
	struct old_flows old;
	const struct ringlb_backend *kernel;
	bool watched;    /* a daemon checks health */
	uint32_t silent; /* seconds since it last did */
};

static double share(uint64_t length)
{
	return (double)length / POSITIONS;
}

static uint32_t settle_after(const struct config_pool *c)
{
	return (uint32_t)((c->settle_after_ms + 999) / 1000);
}

static const char *interface_mode(const struct plan_interface *i)
{
	return !i->attached || !i->alive ? "missing" : i->native ? "native" : "generic";
}

static void report_interfaces(struct out *o, const struct plan_interface *v, size_t count)
{
	out_array(o, "interfaces");
	out_text(o, "interfaces:\n");
	out_table(o, "lll");
	for (size_t i = 0; i < count; i++) {
		const char *mode = interface_mode(&v[i]);

		out_object(o, NULL);
		out_string(o, "name", v[i].name);
		out_string(o, "mode", mode);
		if (*v[i].now && v[i].alive)
			out_string(o, "now", v[i].now);
		out_end(o);
		out_cell(o, OUT_PLAIN, "%s", v[i].name);
		if (*mode == 'm')
			out_cell(o, OUT_BAD, "missing: \"ringlb apply\" attaches it again once it exists");
		else
			out_cell(o, *mode == 'g' ? OUT_WARN : OUT_GOOD, "%s", mode);
		if (*v[i].now && v[i].alive)
			out_cell(o, OUT_WARN, "called %s now: name it so in the file", v[i].now);
		out_row(o);
	}
	out_table_end(o);
	out_end(o);
}

static void last_old_packet(struct report *r, const struct state_backend *b)
{
	uint32_t last = r->old.last[b->index];

	if (last)
		out_integer(r->out, "last_old_packet", (int32_t)(r->old.now - last) > 0 ? r->old.now - last : 0);
	else
		out_string(r->out, "last_old_packet", NULL);
}

/* What is known is what a daemon found out; when there is none any more it says how things were. */
static bool stale(const struct report *r, const struct state_backend *b)
{
	return b->health != HEALTH_UNCHECKED && !r->watched;
}

static void report_health(struct report *r, const struct state_backend *b)
{
	static const char *const use[] = { [HEALTH_USED] = "used", [HEALTH_WAITS] = "waits", [HEALTH_CUT] = "cut" };
	struct out *o = r->out;

	out_string(o, "health", health_status_name(b->health));
	out_string(o, "reason", b->reason);
	out_string(o, "use", use[b->use]);
	out_boolean(o, "stale", stale(r, b));
	if (stale(r, b) && r->silent != UINT32_MAX)
		out_integer(o, "health_age", r->silent);
	else
		out_string(o, "health_age", NULL);
	out_boolean(o, "resolved", __atomic_load_n(&r->kernel[b->index].next_hop, __ATOMIC_RELAXED) != 0);
}

static void cell_health(struct report *r, const struct state_backend *b)
{
	const char *name = b->use == HEALTH_WAITS ? "waits" : health_status_name(b->health);
	bool resolved = __atomic_load_n(&r->kernel[b->index].next_hop, __ATOMIC_RELAXED) != 0;
	enum out_style style = b->health == HEALTH_DOWN ? OUT_BAD : b->health == HEALTH_UP ? OUT_GOOD : OUT_PLAIN;
	const char *hop = resolved ? "" : ", no next hop";
	char age[OUT_SECONDS_TEXT];

	if (stale(r, b))
		style = OUT_WARN;
	if (!resolved)
		style = OUT_BAD;
	if (!stale(r, b))
		out_cell(r->out, style, "%s%s", name, hop);
	else if (r->silent == UINT32_MAX)
		out_cell(r->out, style, "%s, never checked%s", name, hop);
	else
		out_cell(r->out, style, "%s %s ago%s", name, out_seconds_text(r->silent, age), hop);
}

/* Of packets to the backend, the outer header included: what counts, and what of that a router on the way told. */
static void report_mtu(struct report *r, const struct state_backend *b)
{
	const struct ringlb_backend *k = &r->kernel[b->index];

	if (k->mtu)
		out_integer(r->out, "mtu", k->mtu);
	else
		out_string(r->out, "mtu", NULL);
	if (k->path_mtu)
		out_integer(r->out, "path_mtu", k->path_mtu);
	else
		out_string(r->out, "path_mtu", NULL);
}

static void report_backend(struct report *r, const struct state_backend *b, uint64_t length)
{
	bool up = b->state == BACKEND_UP, takes = backend_takes_flows(b);
	struct out *o = r->out;
	char text[ADDRESS_TEXT];

	out_object(o, NULL);
	out_string(o, "name", b->name);
	out_string(o, "identity", b->identity);
	out_string(o, "address", address_text(&b->address, text));
	out_integer(o, "weight", b->weight);
	out_string(o, "zone", b->zone);
	out_string(o, "state", backend_state_name(b->state));
	report_health(r, b);
	out_integer(o, "points", backend_points(b));
	out_real(o, "share", share(length));
	last_old_packet(r, b);
	report_mtu(r, b);
	if (up)
		out_string(o, "safe_to_remove_in", NULL);
	else
		out_integer(o, "safe_to_remove_in", old_flows_safe_in(&r->old, b));
	out_boolean(o, "cut", b->cut);
	out_end(o);
	out_cell(o, OUT_PLAIN, "%s", b->name);
	out_cell(o, OUT_PLAIN, "%s", address_text(&b->address, text));
	out_cell(o, OUT_PLAIN, "%u", b->weight);
	out_cell(o, OUT_PLAIN, "%s", b->zone ? b->zone : "");
	out_cell(o, up ? OUT_GOOD : OUT_WARN, "%s%s", backend_state_name(b->state), b->cut ? ", cut" : "");
	cell_health(r, b);
	out_cell(o, takes || !up ? OUT_PLAIN : OUT_WARN, "%u", backend_points(b));
	out_cell(o, OUT_PLAIN, "%.2f %%", 100 * share(length));
	out_cell(o, OUT_BAD, "%s", b->reason ? b->reason : "");
	out_row(o);
}

/* "3.12 % of web still moving; web-2: last old packet 4 m ago, safe to remove in 11 m" */
static void report_moving(struct report *r, const struct state_pool *p, uint64_t moved, uint64_t can_settle)
{
	struct out *o = r->out;
	char text[OUT_SECONDS_TEXT];
	size_t said = 0;

	if (moved) {
		out_text(o, "  %s%.2f %% of %s still moving", share(moved) < 0.0001 ? "less than " : "",
			 share(moved) < 0.0001 ? 0.01 : 100 * share(moved), p->name);
		said++;
	}
	if (can_settle) {
		out_text(
			o,
			"%s%.2f %% of %s has been silent for settle_after: the next change, or \"ringlb settle\", ends that",
			said ? "; " : "  ", 100 * share(can_settle), p->name);
		said++;
	}
	for (size_t i = 0; i < p->backends; i++) {
		const struct state_backend *b = &p->backend[i];
		uint32_t last = r->old.last[b->index], wait = old_flows_safe_in(&r->old, b);

		if (b->state == BACKEND_UP)
			continue;
		out_text(o, "%s%s: ", said++ ? "; " : "  ", b->name);
		if (wait && last)
			out_text(o, "last old packet %s ago, ", out_seconds_text(r->old.now - last, text));
		else if (wait)
			out_text(o, "no old packet yet, ");
		out_text(o, "safe to remove %s%s", wait ? "in " : "now", wait ? out_seconds_text(wait, text) : "");
	}
	if (said)
		out_text(o, "\n");
}

static void report_path_mtus(struct report *r, const struct state_pool *p)
{
	for (size_t i = 0; i < p->backends; i++) {
		const struct ringlb_backend *k = &r->kernel[p->backend[i].index];

		if (k->path_mtu && k->path_mtu < k->route_mtu)
			out_text(
				r->out,
				"  %s: a router on the way takes packets of %u bytes, outer header included, where the route says "
				"%u\n",
				p->backend[i].name, k->path_mtu, k->route_mtu);
	}
}

/* Positions of moved arcs that no command has settled yet, though nothing keeps it from doing so. */
static uint64_t settles_now(const struct report *r, const struct config_pool *c, const struct state_pool *p)
{
	struct arcs now;
	uint64_t moved = arcs_moved(&p->arcs);

	if (!moved || arcs_copy(&p->arcs, &now))
		return 0;
	arcs_settle(&now, r->old.now, settle_after(c), false);
	moved -= arcs_moved(&now);
	arcs_free(&now);
	return moved;
}

static void report_pool(struct report *r, const struct config_pool *c, const struct state_pool *p)
{
	static const char *const head[] = { "backend", "address", "weight", "zone", "state",
					    "health",  "points",  "share",  "why" };
	uint64_t *length = xcalloc(p->backends + 1, sizeof(*length)), points = 0;
	uint64_t can_settle = settles_now(r, c, p), moved = arcs_moved(&p->arcs) - can_settle;
	struct out *o = r->out;

	arcs_shares(&p->arcs, length, p->backends + 1);
	for (size_t i = 0; i < p->backends; i++)
		points += backend_points(&p->backend[i]);
	out_object(o, NULL);
	out_string(o, "name", p->name);
	out_string(o, "placement", config_placement_name(c->placement));
	out_integer(o, "vnodes", c->vnodes);
	out_integer(o, "points", (int64_t)points);
	out_real(o, "moved", share(moved));
	out_real(o, "can_settle", share(can_settle));
	out_integer(o, "settle_after", settle_after(c));
	out_integer(o, "settles_in", arcs_settled_in(&p->arcs, r->old.now, settle_after(c)));
	out_text(o, "pool %s: %s", p->name, config_placement_name(c->placement));
	if (c->placement == CONFIG_RING) /* of others a point is no more than a unit of weight */
		out_text(o, ", %u vnodes, %llu points", c->vnodes, (unsigned long long)points);
	out_text(o, "%s\n", points ? "" : " (no backend takes flows: packets are dropped)");
	out_array(o, "backends");
	out_table(o, "llrlllrrl");
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		out_head(o, "%s", head[i]);
	/* In the file's order; those that have left it come last. */
	for (size_t i = 0; i < c->backends; i++)
		for (size_t j = 0; j < p->backends; j++)
			if (p->backend[j].state != BACKEND_LEAVING &&
			    !strcmp(p->backend[j].identity, c->backend[i].identity))
				report_backend(r, &p->backend[j], length[j]);
	for (size_t j = 0; j < p->backends; j++)
		if (p->backend[j].state == BACKEND_LEAVING)
			report_backend(r, &p->backend[j], length[j]);
	out_table_end(o);
	report_moving(r, p, moved, can_settle);
	report_path_mtus(r, p);
	out_end(o);
	out_end(o);
	free(length);
}

/* Backends of a service's own table that its pool does not have: those of the pool it had before. */
static void report_moving_from(struct report *r, const struct state_pool *own, const struct state_pool *pool)
{
	struct out *o = r->out;
	char text[ADDRESS_TEXT];

	out_array(o, "moving_from");
	for (size_t i = 0; i < own->backends; i++) {
		const struct state_backend *b = &own->backend[i];
		bool of_pool = false;

		for (size_t j = 0; j < pool->backends; j++)
			of_pool |= pool->backend[j].index == b->index;
		if (of_pool)
			continue;
		out_object(o, NULL);
		out_string(o, "name", b->name);
		out_string(o, "address", address_text(&b->address, text));
		last_old_packet(r, b);
		out_integer(o, "safe_to_remove_in", old_flows_safe_in(&r->old, b));
		out_end(o);
	}
	out_end(o);
}

static void report_service(struct report *r, size_t i, bool ready)
{
	const struct state *state = r->running->state;
	const struct config_service *s = &state->config->service[i];
	const struct state_pool *pool = &state->pool[s->pool], *table = state_table(state, i);
	double moved = share(arcs_moved(&table->arcs));
	char text[CONFIG_ADDRESS_TEXT], port[CONFIG_PORT_TEXT];
	struct out *o = r->out;

	config_service_port(s, port);
	out_object(o, NULL);
	out_string(o, "name", s->name);
	out_string(o, "address", config_service_address(s, text));
	if (s->port && !s->port_to)
		out_integer(o, "port", s->port);
	else
		out_string(o, "port", port);
	out_string(o, "protocol", config_protocol_name(s->protocol));
	out_string(o, "pool", pool->name);
	out_string(o, "forward", config_forward_name(s->forward));
	out_string(o, "affinity", config_affinity_name(s->affinity));
	out_string(o, "track", config_track_name(s->track));
	out_string(o, "fragments", config_fragments_name(s->fragments));
	out_boolean(o, "ready", ready);
	out_real(o, "moved", s->track == RINGLB_TRACK_NONE ? 0 : moved);
	report_moving_from(r, table, pool);
	out_end(o);
	out_cell(o, OUT_PLAIN, "%s", s->name);
	out_cell(o, OUT_PLAIN, "%s", text);
	out_cell(o, OUT_PLAIN, "%s", port);
	out_cell(o, OUT_PLAIN, "%s", config_protocol_name(s->protocol));
	out_cell(o, OUT_PLAIN, "%s", pool->name);
	out_cell(o, OUT_PLAIN, "%s", config_forward_name(s->forward));
	out_cell(o, OUT_PLAIN, "%s", config_affinity_name(s->affinity));
	out_cell(o, OUT_PLAIN, "%s", config_track_name(s->track));
	out_cell(o, ready ? OUT_GOOD : OUT_BAD, "%s", ready ? "yes" : "no");
	if (table != pool)
		out_cell(o, OUT_WARN, "%.2f %%, from the pool it had", 100 * moved);
	out_row(o);
}

static void report_services(struct report *r, const char *pool, const struct plan_interface *v, size_t count)
{
	static const char *const head[] = { "service", "address",  "port",  "protocol", "pool",
					    "forward", "affinity", "track", "ready",    "still moving" };
	const struct state *s = r->running->state;
	struct out *o = r->out;

	out_array(o, "services");
	out_text(o, "services:\n");
	out_table(o, "llrlllllll");
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		out_head(o, "%s", head[i]);
	for (size_t i = 0; i < s->config->services; i++) {
		if (!pool || !strcmp(s->pool[s->config->service[i].pool].name, pool))
			report_service(r, i, service_ready(s, i, v, count, r->health, NULL));
	}
	out_table_end(o);
	out_end(o);
}

/* What the file says now, where it can be told at all; else why not, NULL where there is no file. */
static struct config *read_file(const char *name, char **unknown)
{
	struct diag d = { 0 };
	struct config *c = NULL;
	struct stat st;

	*unknown = NULL;
	if (*name != '/')
		return NULL;
	if (!stat(name, &st) && !S_ISREG(st.st_mode))
		return NULL;
	c = config_load(name, &d);
	for (size_t i = 0; i < d.count && !c && !*unknown; i++)
		if (d.entry[i].level == DIAG_ERROR)
			*unknown = xasprintf("can't be applied: %s%s%s", d.entry[i].where,
					     *d.entry[i].where ? ": " : "", d.entry[i].message);
	diag_free(&d);
	return c;
}

void report_drift_read(const struct running *running, uint32_t now, struct drift *out)
{
	char *unknown;
	struct config *file = read_file(running->state->config->file, &unknown);

	drift_find(running->state, file, unknown, now, out);
	free(unknown);
}

static void report_drift(struct report *r, const struct drift *drift)
{
	const struct state *s = r->running->state;
	struct out *o = r->out;

	out_string(o, "file", *s->config->file == '/' ? s->config->file : NULL);
	out_array(o, "drift");
	for (size_t i = 0; i < drift->lines; i++)
		out_string(o, NULL, drift->line[i]);
	out_end(o);
	if (drift->lines)
		out_text(o, "drift between what runs and %s (live: changed by a command; file: what apply would do):\n",
			 *s->config->file ? s->config->file : "its file");
	for (size_t i = 0; i < drift->lines; i++)
		out_text(o, "  %s\n", drift->line[i]);
}

static void report_head(struct report *r, const struct report_options *options)
{
	const struct state *s = r->running->state;
	struct out *o = r->out;

	out_string(o, "instance", options->instance);
	out_integer(o, "generation", s->generation);
	out_integer(o, "revision", (int64_t)s->revision);
	out_string(o, "digest", s->digest);
	out_string(o, "effective_digest", s->effective_digest);
	out_text(o, "instance %s: generation %u, revision %llu, digest %s\n", options->instance, s->generation,
		 (unsigned long long)s->revision, s->digest);
	if (options->verbose)
		out_text(o, "memory locked: %.1f MiB\n", (double)datapath_locked_bytes(r->running->dp) / (1 << 20));
}

int report_running(struct out *o, const struct running *running, const struct report_options *options, struct diag *d)
{
	struct report r = { .out = o, .running = running, .health = options->health };
	const struct state *s = running->state;
	struct plan_interface *interface;
	const char *pool = options->pool;
	struct drift own = { 0 };
	uint32_t backends;
	size_t interfaces;
	int err;

	if (pool && !config_find_pool(s->config, pool)) {
		diag_error(d, "unknown-pool", "", "no pool \"%s\": \"ringlb show\" lists them", pool);
		return -EINVAL;
	}
	err = old_flows_read(running, &r.old);
	if (err) {
		diag_error(d, "clock", "", "the program lookup can't be run: %s", strerror(-err));
		old_flows_free(&r.old);
		return err;
	}
	if (!options->drift)
		report_drift_read(running, r.old.now, &own);
	r.kernel = datapath_backends(running->dp, &backends);
	r.watched = running_watched(running, r.old.now, &r.silent);
	interface = running_interfaces(running, &interfaces);
	report_head(&r, options);
	report_drift(&r, options->drift ? options->drift : &own);
	report_interfaces(o, interface, interfaces);
	out_array(o, "pools");
	for (size_t i = 0; i < s->pools; i++)
		if (!pool || !strcmp(s->pool[i].name, pool))
			report_pool(&r, &s->config->pool[i], &s->pool[i]);
	out_end(o);
	report_services(&r, pool, interface, interfaces);
	free(interface);
	drift_free(&own);
	old_flows_free(&r.old);
	return 0;
}
