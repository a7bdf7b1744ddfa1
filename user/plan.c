/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"

void plan_add(struct plan *p, enum plan_kind kind, size_t pool, size_t backend, const char *subject, const char *text, ...)
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

static int pools_next(struct plan *p, const struct state *running, struct diag *d)
{
	struct state *next = p->next;
	int err = 0;

	next->pools = next->config->pools;
	next->pool = xcalloc(next->pools + 1, sizeof(*next->pool));
	for (size_t i = 0; i < next->pools; i++) {
		const struct config_pool *c = &next->config->pool[i];
		int one = plan_pool_next(pool_named(running, c->name), c, &next->pool[i], d);

		err = err ? err : one;
	}
	return err;
}

static int pool_operations(struct plan *p, const struct state *running, struct diag *d)
{
	uint8_t *used = xcalloc(RINGLB_MAX_BACKENDS + 1, 1);
	struct state *next = p->next;
	int err = 0;

	for (size_t i = 0; running && i < running->pools; i++)
		for (size_t j = 0; j < running->pool[i].backends; j++)
			used[running->pool[i].backend[j].index] = 1;
	for (size_t i = 0; i < next->pools && !err; i++)
		err = plan_pool_operations(p, pool_named(running, next->pool[i].name), i, used, d);
	for (size_t i = 0; i < next->pools && !err; i++)
		if (!next->pool[i].region && next->pool[i].layout.bits)
			plan_add(p, PLAN_TABLE_BUILD, i, 0, NULL, "%s", "");
	for (size_t i = 0; running && i < running->pools && !err; i++)
		if (!pool_named(next, running->pool[i].name))
			plan_pool_gone(p, &running->pool[i], i);
	free(used);
	return err;
}

static void pool_summaries(struct plan *p, const struct state *running)
{
	size_t before = running ? running->pools : 0;

	p->pool = xcalloc(p->next->pools + before + 1, sizeof(*p->pool));
	for (size_t i = 0; i < p->next->pools; i++) {
		const struct state_pool *old = pool_named(running, p->next->pool[i].name);
		struct plan_pool *out = &p->pool[p->pools++];

		out->name = xstrdup(p->next->pool[i].name);
		out->added = !old;
		if (old)
			plan_diff(old, &p->next->pool[i], out);
	}
	for (size_t i = 0; i < before; i++)
		if (!pool_named(p->next, running->pool[i].name))
			p->pool[p->pools++] = (struct plan_pool){.name = xstrdup(running->pool[i].name), .removed = true};
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

static void setting_number(struct plan *p, const char *what, double from, double to)
{
	char a[32], b[32];

	snprintf(a, sizeof(a), "%g", from);
	snprintf(b, sizeof(b), "%g", to);
	setting(p, what, a, b);
}

static void setting_address(struct plan *p, const char *what, bool has_from, const struct address *from, bool has_to,
			    const struct address *to)
{
	char a[ADDRESS_TEXT], b[ADDRESS_TEXT];

	setting(p, what, has_from ? address_text(from, a) : "none", has_to ? address_text(to, b) : "none");
}

static void pool_settings(struct plan *p, const struct config_pool *was, const struct config_pool *is)
{
	char label[96];

	snprintf(label, sizeof(label), "pool %s: vnodes", is->name);
	setting_number(p, label, was->vnodes, is->vnodes);
	snprintf(label, sizeof(label), "pool %s: placement", is->name);
	setting(p, label, config_placement_name(was->placement), config_placement_name(is->placement));
	snprintf(label, sizeof(label), "pool %s: settle_after (ms)", is->name);
	setting_number(p, label, (double)was->settle_after_ms, (double)is->settle_after_ms);
	snprintf(label, sizeof(label), "pool %s: drain_max (ms)", is->name);
	setting_number(p, label, (double)was->drain_max_ms, (double)is->drain_max_ms);
	snprintf(label, sizeof(label), "pool %s: quorum", is->name);
	setting_number(p, label, was->quorum, is->quorum);
}

static void settings(struct plan *p, const struct config *was)
{
	static const char *const xdp[] = {"auto", "native", "generic"};
	const struct config *is = p->next->config;

	if (memcmp(was->hash_key, is->hash_key, sizeof(was->hash_key)))
		plan_add(p, PLAN_SETTING, 0, 0, "hash_key", "hash_key: changed, every flow is hashed anew");
	setting(p, "hash_key file", or_none(was->hash_key_file), or_none(is->hash_key_file));
	setting(p, "xdp", xdp[was->xdp], xdp[is->xdp]);
	setting_address(p, "tunnel_source ipv4", was->has_tunnel4, &was->tunnel4, is->has_tunnel4, &is->tunnel4);
	setting_address(p, "tunnel_source ipv6", was->has_tunnel6, &was->tunnel6, is->has_tunnel6, &is->tunnel6);
	setting(p, "status_listen", or_none(was->status_listen), or_none(is->status_listen));
	setting_number(p, "max_move", was->max_move, is->max_move);
	setting_number(p, "flows established", was->flows_established, is->flows_established);
	setting_number(p, "flows opening", was->flows_opening, is->flows_opening);
	for (size_t i = 0; i < is->pools; i++) {
		const struct config_pool *old = config_find_pool(was, is->pool[i].name);

		if (old)
			pool_settings(p, old, &is->pool[i]);
	}
}

static const struct plan_interface *interface_named(const struct plan_interface *v, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (v[i].attached && !strcmp(v[i].name, name))
			return &v[i];
	return NULL;
}

static void interface_operations(struct plan *p, const struct plan_interface *v, size_t count)
{
	const struct config *c = p->next->config;

	for (size_t i = 0; i < c->interfaces; i++) {
		const struct plan_interface *is = interface_named(v, count, c->interface[i]);

		if (!is)
			plan_add(p, PLAN_INTERFACE_ATTACH, 0, 0, c->interface[i], "interface %s: attach", c->interface[i]);
		else if (!is->alive)
			plan_add(p, PLAN_INTERFACE_REATTACH, 0, 0, is->name, "interface %s: attach again, it was recreated",
				 is->name);
		else if (c->xdp != CONFIG_XDP_AUTO && is->native != (c->xdp == CONFIG_XDP_NATIVE))
			plan_add(p, PLAN_INTERFACE_REATTACH, 0, 0, is->name,
				 "interface %s: attach again in %s mode; packets in between go to the host", is->name,
				 is->native ? "generic" : "native");
	}
	for (size_t i = 0; i < count; i++) {
		bool wanted = false;

		for (size_t j = 0; j < c->interfaces; j++)
			wanted |= !strcmp(c->interface[j], v[i].name);
		if (v[i].attached && !wanted)
			plan_add(p, PLAN_INTERFACE_DETACH, 0, 0, v[i].name, "interface %s: detach", v[i].name);
	}
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

		if (o->kind != PLAN_INTERFACE_REATTACH && o->kind != PLAN_INTERFACE_ATTACH)
			return true;
		if (!running || !lists(running->config, o->subject))
			return true;
	}
	return false;
}

int plan_make(const struct state *running, struct config *config, const struct plan_interface *interface, size_t interfaces,
	      struct plan *out, struct diag *d)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->next = xcalloc(1, sizeof(*out->next));
	out->next->config = config;
	out->next->ifindex = xcalloc(config->interfaces + 1, sizeof(*out->next->ifindex));
	out->next->generation = running ? running->generation : 0;
	out->next->revision = running ? running->revision : 0;
	err = pools_next(out, running, d);
	if (!err)
		err = pool_operations(out, running, d);
	if (!err)
		err = plan_services(out, running, d);
	if (!err) {
		if (running)
			settings(out, running->config);
		interface_operations(out, interface, interfaces);
		pool_summaries(out, running);
		state_digest(out->next, out->next->digest);
		if (changes_configuration(out, running))
			out->next->generation++;
		return 0;
	}
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
	free(p->operation);
	free(p->pool);
	state_free(p->next);
	memset(p, 0, sizeof(*p));
}
