/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "moved.h"
#include "plan_internal.h"

void plan_add(struct plan *p, enum plan_kind kind, size_t pool, size_t backend, const char *subject, const char *text,
	      ...)
{
	struct plan_operation *o;
	va_list ap;
	char line[1024];

	va_start(ap, text);
	vsnprintf(line, sizeof(line), text, ap);
	va_end(ap);
	p->operation = xreallocarray(p->operation, p->operations + 1, sizeof(*p->operation));
	o = &p->operation[p->operations++];
	*o = (struct plan_operation){
		.kind = kind,
		.pool = pool,
		.backend = backend,
		.subject = subject ? xstrdup(subject) : NULL,
		.text = xstrdup(line),
	};
}

static const struct state_pool *pool_named(const struct state *s, const char *name)
{
	for (size_t i = 0; s && i < s->pools; i++)
		if (!strcmp(s->pool[i].name, name))
			return &s->pool[i];
	return NULL;
}

/* Some service of the pool keeps flows where they are. */
static bool keeps_flows(const struct config *c, const char *pool)
{
	for (size_t i = 0; i < c->services; i++)
		if (!strcmp(c->pool[c->service[i].pool].name, pool) && c->service[i].track != RINGLB_TRACK_NONE)
			return true;
	return false;
}

static int pool_next(struct plan *p, const struct plan_input *in, size_t i, struct diag *d)
{
	const struct config_pool *c = &p->next->config->pool[i];
	const struct state_pool *old = pool_named(in->running, c->name);
	bool keep = keeps_flows(p->next->config, c->name);
	struct state_pool *next = &p->next->pool[i];
	uint64_t settled = 0;
	int err;

	next->name = xstrdup(c->name);
	plan_backends(in, p->next, old, c, keep, next);
	err = plan_ring(c, next, d);
	if (!err)
		err = plan_arcs(in, old, c, keep, next, &settled, d);
	p->pool[i].settled = (double)settled / 4294967296.0;
	return err;
}

static int pools_next(struct plan *p, const struct plan_input *in, struct diag *d)
{
	struct state *next = p->next;
	int err = 0;

	next->pools = next->config->pools;
	next->pool = xcalloc(next->pools + 1, sizeof(*next->pool));
	p->pool = xcalloc(next->pools + (in->running ? in->running->pools : 0) + 1, sizeof(*p->pool));
	for (size_t i = 0; i < next->pools; i++) {
		int one = pool_next(p, in, i, d);

		err = err ? err : one;
	}
	return err;
}

static void mark_used(const struct state_pool *pool, uint8_t *used)
{
	for (size_t i = 0; i < pool->backends; i++)
		used[pool->backend[i].index] = 1;
}

static int pool_operations(struct plan *p, const struct plan_input *in, struct diag *d)
{
	const struct state *running = in->running;
	uint8_t *used = xcalloc(RINGLB_MAX_BACKENDS + 1, 1);
	struct state *next = p->next;
	int err = 0;

	for (size_t i = 0; running && i < running->pools; i++)
		mark_used(&running->pool[i], used);
	for (size_t i = 0; running && i < running->owns; i++)
		mark_used(&running->own[i].table, used);
	for (size_t i = 0; i < next->pools && !err; i++)
		err = plan_pool_operations(p, in, pool_named(running, next->pool[i].name), i,
					   in->cut || !keeps_flows(next->config, next->pool[i].name), used, d);
	for (size_t i = 0; i < next->pools && !err; i++)
		if (!next->pool[i].region && next->pool[i].layout.bits)
			plan_add(p, PLAN_TABLE_BUILD, i, 0, NULL, "%s", "");
	for (size_t i = 0; i < next->pools && !err; i++)
		if (p->pool[i].settled > 0)
			plan_add(p, PLAN_SETTLE, i, 0, NULL, "pool %s: %.2f %% of its hash space has settled",
				 next->pool[i].name, 100 * p->pool[i].settled);
	for (size_t i = 0; running && i < running->pools && !err; i++)
		if (!pool_named(next, running->pool[i].name))
			plan_pool_gone(p, &running->pool[i], i);
	free(used);
	return err;
}

static bool has_takers(const struct state_pool *pool)
{
	for (size_t i = 0; pool && i < pool->backends; i++)
		if (backend_takes_flows(&pool->backend[i]))
			return true;
	return false;
}

static void pool_summaries(struct plan *p, const struct state *running)
{
	const struct config *c = p->next->config;

	for (size_t i = 0; i < p->next->pools; i++) {
		const struct state_pool *old = pool_named(running, p->next->pool[i].name), *next = &p->next->pool[i];
		struct plan_pool *out = &p->pool[p->pools++];

		out->name = xstrdup(next->name);
		out->added = !old;
		out->emptied = has_takers(old) && !has_takers(next);
		out->settling = arcs_moved(&next->arcs);
		if (old)
			plan_diff(old, next, out);
	}
	for (size_t i = 0; i < c->services; i++)
		p->pool[c->service[i].pool].tracked[c->service[i].track]++;
	for (size_t i = 0; running && i < running->pools; i++)
		if (!pool_named(p->next, running->pool[i].name))
			p->pool[p->pools++] = (struct plan_pool){ .name = xstrdup(running->pool[i].name),
								  .removed = true };
}

static const char *or_none(const char *text)
{
	return text ? text : "none";
}

static void setting(struct plan *p, const char *what, const char *from, const char *to)
{
	if (strcmp(from, to))
		plan_add(p, PLAN_SETTING, 0, 0, what, "%s: %s -> %s", what, from, to);
}

static void setting_number(struct plan *p, const char *what, uint64_t from, uint64_t to)
{
	char a[32], b[32];

	snprintf(a, sizeof(a), "%llu", (unsigned long long)from);
	snprintf(b, sizeof(b), "%llu", (unsigned long long)to);
	setting(p, what, a, b);
}

/* As configured: in the largest unit of which it is a whole number. */
static void setting_duration(struct plan *p, const char *what, uint64_t from, uint64_t to, const char *zero)
{
	static const struct {
		uint64_t ms;
		const char *name;
	} units[] = { { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" } };
	const uint64_t value[] = { from, to };
	char text[2][32];

	for (size_t i = 0; i < 2; i++) {
		size_t u = 0;

		while (value[i] % units[u].ms)
			u++;
		if (!value[i])
			snprintf(text[i], sizeof(text[i]), "%s", zero);
		else
			snprintf(text[i], sizeof(text[i]), "%llu %s", (unsigned long long)(value[i] / units[u].ms),
				 units[u].name);
	}
	setting(p, what, text[0], text[1]);
}

/* As configured: a percentage of up to six decimal places, 100 at most. */
static const char *limit_text(double fraction, char buf[32])
{
	if (fraction < 0)
		return "none";
	snprintf(buf, 32, "%.9g%%", 100 * fraction);
	return buf;
}

static void setting_limit(struct plan *p, const char *what, double from, double to)
{
	char a[32], b[32];

	setting(p, what, limit_text(from, a), limit_text(to, b));
}

static void setting_tunnel(struct plan *p, const char *name, const struct address *from, const struct address *to,
			   uint8_t from_free, uint8_t to_free)
{
	char was[CONFIG_ADDRESS_TEXT], is[CONFIG_ADDRESS_TEXT];

	setting(p, name, from ? config_prefix_text(from, from_free, was) : "none",
		to ? config_prefix_text(to, to_free, is) : "none");
}

static void setting_check(struct plan *p, const char *what, const struct config_check *from,
			  const struct config_check *to)
{
	char *a = from ? config_check_text(from) : xstrdup("none"), *b = to ? config_check_text(to) : xstrdup("none");

	setting(p, what, a, b);
	free(a);
	free(b);
}

static void pool_settings(struct plan *p, const struct config_pool *was, const struct config_pool *is)
{
	char label[96];

	snprintf(label, sizeof(label), "pool %s: vnodes", is->name);
	setting_number(p, label, was->vnodes, is->vnodes);
	snprintf(label, sizeof(label), "pool %s: maglev_size", is->name);
	setting_number(p, label, was->maglev_size, is->maglev_size);
	snprintf(label, sizeof(label), "pool %s: placement", is->name);
	setting(p, label, config_placement_name(was->placement), config_placement_name(is->placement));
	snprintf(label, sizeof(label), "pool %s: settle_after", is->name);
	setting_duration(p, label, was->settle_after_ms, is->settle_after_ms, "0 s");
	snprintf(label, sizeof(label), "pool %s: drain_max", is->name);
	setting_duration(p, label, was->drain_max_ms, is->drain_max_ms, "never");
	snprintf(label, sizeof(label), "pool %s: quorum", is->name);
	setting_number(p, label, was->quorum, is->quorum);
	snprintf(label, sizeof(label), "pool %s: check", is->name);
	setting_check(p, label, was->check, is->check);
}

static void settings(struct plan *p, const struct config *was)
{
	static const char *const xdp[] = { "auto", "native", "generic" };
	const struct config *is = p->next->config;

	if (memcmp(was->hash_key, is->hash_key, sizeof(was->hash_key)))
		plan_add(p, PLAN_SETTING, 0, 0, "hash_key", "hash_key: changed, every flow is hashed anew");
	setting(p, "hash_key file", or_none(was->hash_key_file), or_none(is->hash_key_file));
	setting(p, "xdp", xdp[was->xdp], xdp[is->xdp]);
	setting_tunnel(p, "tunnel_source ipv4", was->has_tunnel4 ? &was->tunnel4 : NULL,
		       is->has_tunnel4 ? &is->tunnel4 : NULL, was->tunnel4_free, is->tunnel4_free);
	setting_tunnel(p, "tunnel_source ipv6", was->has_tunnel6 ? &was->tunnel6 : NULL,
		       is->has_tunnel6 ? &is->tunnel6 : NULL, was->tunnel6_free, is->tunnel6_free);
	setting(p, "status_listen", or_none(was->status_listen), or_none(is->status_listen));
	setting_limit(p, "max_move", was->max_move, is->max_move);
	setting_number(p, "flows established", was->flows_established, is->flows_established);
	setting_number(p, "flows opening", was->flows_opening, is->flows_opening);
	for (size_t i = 0; i < is->pools; i++) {
		const struct config_pool *old = config_find_pool(was, is->pool[i].name);

		if (old)
			pool_settings(p, old, &is->pool[i]);
	}
}

/* The place in v of each that is wanted, count: none. What it is called now comes before what it was called. */
static void find_interfaces(const struct config *c, const struct plan_interface *v, size_t count, size_t *place,
			    bool *taken)
{
	for (size_t i = 0; i < c->interfaces; i++) {
		place[i] = count;
		for (size_t j = 0; j < count; j++)
			if (*v[j].now && !strcmp(v[j].now, c->interface[i]))
				place[i] = j;
		taken[place[i]] = true;
	}
	for (size_t i = 0; i < c->interfaces; i++) {
		for (size_t j = 0; j < count && place[i] == count; j++)
			if (!taken[j] && (v[j].attached || v[j].gone) && !strcmp(v[j].name, c->interface[i]))
				place[i] = j;
		taken[place[i]] = true;
	}
}

static void keep_interface(struct plan *p, const struct plan_interface *is, const char *name)
{
	const struct config *c = p->next->config;
	bool renamed = strcmp(is->name, name) != 0;

	if (is->gone)
		return;
	if (renamed)
		plan_add(p, PLAN_SETTING, 0, 0, "interfaces", "interface %s is called %s now: it stays attached",
			 is->name, name);
	if (!is->alive && !renamed)
		plan_add(p, PLAN_INTERFACE_REATTACH, 0, 0, is->name, "interface %s: attach again, it was recreated",
			 is->name);
	else if (c->xdp != CONFIG_XDP_AUTO && is->native != (c->xdp == CONFIG_XDP_NATIVE))
		plan_add(p, PLAN_INTERFACE_REATTACH, 0, 0, name,
			 "interface %s: attach again in %s mode; packets in between go to the host", name,
			 is->native ? "generic" : "native");
}

static void interface_operations(struct plan *p, const struct plan_interface *v, size_t count)
{
	const struct config *c = p->next->config;
	bool *taken = xcalloc(count + 1, sizeof(*taken));
	size_t *place = xcalloc(c->interfaces + 1, sizeof(*place));

	find_interfaces(c, v, count, place, taken);
	for (size_t i = 0; i < c->interfaces; i++) {
		if (place[i] < count)
			keep_interface(p, &v[place[i]], c->interface[i]);
		else
			plan_add(p, PLAN_INTERFACE_ATTACH, 0, 0, c->interface[i], "interface %s: attach",
				 c->interface[i]);
	}
	for (size_t i = 0; i < count; i++)
		if (v[i].attached && !taken[i])
			plan_add(p, PLAN_INTERFACE_DETACH, 0, 0, v[i].name, "interface %s: detach", v[i].name);
	free(taken);
	free(place);
}

static bool lists(const struct config *c, const char *interface)
{
	for (size_t i = 0; i < c->interfaces; i++)
		if (!strcmp(c->interface[i], interface))
			return true;
	return false;
}

/* Whether the configuration itself changes, or only what of it could not be kept up (an interface was recreated). */
static bool changes_configuration(const struct plan *p, const struct state *running)
{
	for (size_t i = 0; i < p->operations; i++) {
		const struct plan_operation *o = &p->operation[i];

		if (o->kind < PLAN_INTERFACE_ATTACH || o->kind == PLAN_INTERFACE_DETACH)
			return true;
		if (o->kind == PLAN_INTERFACE_ATTACH && (!running || !lists(running->config, o->subject)))
			return true;
	}
	return false;
}

static void live_edits(struct plan *p, const struct plan_input *in)
{
	const struct state *running = in->running;
	const char *was, *is = p->next->config->file;

	if (!running)
		return;
	was = running->config->file;
	if (!in->keep_edits) {
		/* Another file is the one that drift is told against from now on. */
		if (running->edits || (was && is && strcmp(was, is) != 0))
			plan_add(p, PLAN_RECORD, 0, 0, NULL, "%s", "");
		return;
	}
	for (size_t i = 0; i < running->edits; i++)
		state_edit_add(p->next, running->edit[i].kind, running->edit[i].pool, running->edit[i].backend,
			       running->edit[i].value);
}

static int make(struct plan *p, const struct plan_input *in, struct diag *d)
{
	int err = pools_next(p, in, d);

	if (!err)
		err = pool_operations(p, in, d);
	if (!err)
		err = plan_services(p, in, d);
	if (!err)
		err = plan_owns(p, in, d);
	if (err)
		return err;
	if (in->running)
		settings(p, in->running->config);
	interface_operations(p, in->interface, in->interfaces);
	pool_summaries(p, in->running);
	live_edits(p, in);
	state_digest(p->next, p->next->digest);
	state_effective_digest(p->next, p->next->effective_digest);
	p->generation = changes_configuration(p, in->running);
	if (p->generation && in->generation > p->next->generation)
		p->next->generation = in->generation;
	p->next->generation += p->generation;
	return 0;
}

int plan_make(const struct plan_input *in, struct plan *out, struct diag *d)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->keeps_edits = in->keep_edits;
	out->next = xcalloc(1, sizeof(*out->next));
	out->next->config = in->config;
	out->next->ifindex = xcalloc(in->config->interfaces + 1, sizeof(*out->next->ifindex));
	out->next->generation = in->running ? in->running->generation : 0;
	out->next->revision = in->running ? in->running->revision : 0;
	err = make(out, in, d);
	if (err)
		plan_free(out);
	return err;
}

void plan_free(struct plan *p)
{
	for (size_t i = 0; i < p->operations; i++) {
		free(p->operation[i].subject);
		free(p->operation[i].text);
	}
	for (size_t i = 0; i < p->pools; i++) {
		for (size_t j = 0; j < p->pool[i].moves; j++) {
			free(p->pool[i].move[j].from);
			free(p->pool[i].move[j].to);
		}
		free(p->pool[i].move);
		free(p->pool[i].name);
	}
	for (size_t i = 0; i < p->services; i++) {
		free(p->service[i].name);
		free(p->service[i].where);
		free(p->service[i].heir);
		free(p->service[i].former);
	}
	free(p->service);
	free(p->operation);
	free(p->pool);
	state_free(p->next);
	memset(p, 0, sizeof(*p));
}
