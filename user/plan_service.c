/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Services: which stay, and so keep their counters, which change, come and go. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"

struct service_ref {
	const struct config_service *service;
	size_t place; /* in its configuration */
};

static int ref_order(const void *a, const void *b)
{
	return config_service_order(((const struct service_ref *)a)->service, ((const struct service_ref *)b)->service);
}

/* A service is its address, port and protocol; its name is a label. */
static struct service_ref *sorted(const struct config *c)
{
	struct service_ref *r = xcalloc(c->services + 1, sizeof(*r));

	for (size_t i = 0; i < c->services; i++)
		r[i] = (struct service_ref){ &c->service[i], i };
	qsort(r, c->services, sizeof(*r), ref_order);
	return r;
}

static void add(char **text, const char *what, const char *from, const char *to)
{
	char *old = *text;

	if (!strcmp(from, to))
		return;
	*text = old ? xasprintf("%s, %s %s -> %s", old, what, from, to) : xasprintf("%s %s -> %s", what, from, to);
	free(old);
}

static void add_words(char **text, const char *words)
{
	char *old = *text;

	*text = xasprintf("%s%s", old, words);
	free(old);
}

static void add_number(char **text, const char *what, unsigned int from, unsigned int to)
{
	char was[16], is[16];

	snprintf(was, sizeof(was), "%u", from);
	snprintf(is, sizeof(is), "%u", to);
	add(text, what, was, is);
}

/* What differs, in words; NULL when nothing does. Owned by the caller. */
static char *difference(const struct config *was_in, const struct config_service *was, const struct config *is_in,
			const struct config_service *is)
{
	char *text = NULL, *was_prefix, *is_prefix;

	add(&text, "name", was->name, is->name);
	add(&text, "pool", was_in->pool[was->pool].name, is_in->pool[is->pool].name);
	add(&text, "forward", config_forward_name(was->forward), config_forward_name(is->forward));
	if (was->forward == RINGLB_FORWARD_GUE && is->forward == RINGLB_FORWARD_GUE)
		add_number(&text, "gue port", was->gue_port, is->gue_port);
	add(&text, "affinity", config_affinity_name(was->affinity), config_affinity_name(is->affinity));
	if (was->affinity == RINGLB_AFFINITY_QUIC && is->affinity == RINGLB_AFFINITY_FLOW)
		add_words(&text, " (connections whose client has another address than when they began break)");
	if (was->affinity == RINGLB_AFFINITY_SOURCE && is->affinity == RINGLB_AFFINITY_SOURCE) {
		was_prefix = xasprintf("/%u, /%u", was->source_prefix4, was->source_prefix6);
		is_prefix = xasprintf("/%u, /%u", is->source_prefix4, is->source_prefix6);
		add(&text, "source prefixes", was_prefix, is_prefix);
		free(was_prefix);
		free(is_prefix);
	}
	add_number(&text, "connection id length", was->cid_length, is->cid_length);
	add_number(&text, "server id offset", was->server_offset, is->server_offset);
	add_number(&text, "server id length", was->server_length, is->server_length);
	add(&text, "fragments", config_fragments_name(was->fragments), config_fragments_name(is->fragments));
	add(&text, "track", config_track_name(was->track), config_track_name(is->track));
	return text;
}

static const char *location(const struct config_service *v, char *buf, size_t size)
{
	char *text = config_service_default_name(v);

	strncpy(buf, text, size - 1);
	buf[size - 1] = '\0';
	free(text);
	return buf;
}

static int index_free(const uint8_t *used)
{
	for (int i = 0; i < (int)RINGLB_MAX_SERVICES; i++)
		if (!used[i])
			return i;
	return -ENOSPC;
}

/* Flows that another service has until now are chosen for anew. */
static void note_taken(struct plan *p, const struct config *was, const struct config_service *v)
{
	const struct config_service *former = config_service_for(was, &v->address, v->port, v->protocol);

	if (!former)
		return;
	p->service = xreallocarray(p->service, p->services + 1, sizeof(*p->service));
	p->service[p->services++] = (struct plan_service){
		.name = xstrdup(v->name),
		.moved = 1ull << 32,
		.takes = true,
		.where = config_service_default_name(v),
		.former = xstrdup(former->name),
		.track = v->track,
	};
}

static void service_added(struct plan *p, const struct config *was, const struct config_service *v)
{
	char where[80];

	plan_add(p, PLAN_SERVICE_ADD, 0, 0, v->name, "service %s: added, %s to pool %s, forward %s", v->name,
		 location(v, where, sizeof(where)), p->next->config->pool[v->pool].name,
		 config_forward_name(v->forward));
	note_taken(p, was, v);
}

/* Its flows lose their service, and with it their backends. */
static void service_removed(struct plan *p, const struct config_service *v)
{
	const struct config_service *heir = config_service_for(p->next->config, &v->address, v->port, v->protocol);
	char *where = config_service_default_name(v);

	plan_add(p, PLAN_SERVICE_REMOVE, 0, 0, v->name, "service %s: removed (%s)", v->name, where);
	p->service = xreallocarray(p->service, p->services + 1, sizeof(*p->service));
	p->service[p->services++] = (struct plan_service){
		.name = xstrdup(v->name),
		.moved = 1ull << 32,
		.removed = true,
		.where = where,
		.heir = heir ? xstrdup(heir->name) : NULL,
		.track = v->track,
	};
}

size_t plan_service_was(const struct state *running, const struct config_service *v)
{
	for (size_t i = 0; i < running->config->services; i++)
		if (!config_service_order(&running->config->service[i], v))
			return i;
	return SIZE_MAX;
}

int plan_services(struct plan *p, const struct plan_input *in, struct diag *d)
{
	const struct state *running = in->running;
	static const struct config nothing;
	const struct config *was = running ? running->config : &nothing, *is = p->next->config;
	struct service_ref *old = sorted(was), *new = sorted(is);
	uint8_t *used = xcalloc(RINGLB_MAX_SERVICES + 1, 1);
	size_t i = 0, j = 0;
	int err = 0;

	p->next->service_index = xcalloc(is->services + 1, sizeof(*p->next->service_index));
	for (size_t k = 0; k < was->services; k++)
		used[running->service_index[k]] = 1;
	while (i < was->services || j < is->services) {
		int order = i == was->services ? 1 : j == is->services ? -1 : ref_order(&old[i], &new[j]);
		char *text;

		if (order < 0) {
			service_removed(p, old[i++].service);
		} else if (order > 0) {
			int index = index_free(used);

			if (index < 0) {
				diag_error(d, "too-many-services", "", "no counter is free for service %s",
					   new[j].service->name);
				err = index;
				break;
			}
			used[index] = 1;
			p->next->service_index[new[j].place] = (uint16_t)index;
			service_added(p, was, new[j++].service);
		} else {
			p->next->service_index[new[j].place] = running->service_index[old[i].place];
			text = difference(was, old[i].service, is, new[j].service);
			if (text)
				plan_add(p, PLAN_SERVICE_CHANGE, 0, 0, new[j].service->name, "service %s: %s",
					 old[i].service->name, text);
			free(text);
			i++;
			j++;
		}
	}
	free(used);
	free(old);
	free(new);
	return err;
}
