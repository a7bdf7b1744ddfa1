/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the table of services has to hold: services, marks of their addresses, lists of ranges. And their servers. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "service_table_private.h"

/* By address, then protocol, ranges behind the rest, then port. */
static int entry_order(const void *a, const void *b)
{
	const struct service_entry *x = a, *y = b;
	int order = memcmp(x->address, y->address, sizeof(x->address));

	if (!order)
		order = (x->protocol & RINGLB_KEY_PREFIX) - (y->protocol & RINGLB_KEY_PREFIX);
	if (!order)
		order = x->protocol - y->protocol;
	if (!order)
		order = (x->port_to != 0) - (y->port_to != 0);
	return order ? order : x->port - y->port;
}

static bool same_address(const struct service_entry *a, const struct service_entry *b)
{
	return !memcmp(a->address, b->address, sizeof(a->address)) &&
	       !((a->protocol ^ b->protocol) & RINGLB_KEY_PREFIX);
}

static struct service_entry *services_sorted(const struct config *c, const struct service_prefixes *p)
{
	struct service_entry *e = xcalloc(c->services + 1, sizeof(*e));

	for (size_t i = 0; i < c->services; i++) {
		const struct config_service *s = &c->service[i];
		__u64 key[2] = { 0 };

		e[i] = (struct service_entry){ .port = s->port, .port_to = s->port_to, .service = s, .number = i };
		e[i].protocol = s->protocol;
		if (s->free_bits) {
			key[1] = service_prefixes_find(p, s);
			e[i].protocol |= RINGLB_KEY_PREFIX;
			memcpy(e[i].address, key, sizeof(key));
		} else {
			memcpy(e[i].address, s->address.byte, sizeof(e[i].address));
		}
	}
	qsort(e, c->services, sizeof(*e), entry_order);
	return e;
}

static struct service_entry *add(struct service_entries *out, const struct service_entry *like)
{
	struct service_entry *e = &out->entry[out->count++];

	*e = *like;
	return e;
}

/*
 * Of the services of one address and protocol that begin at e, `left` entries from the end, the one that a fragment is
 * for whose ports are not known: one that goes by the client's address, where all do alike; of UDP, the only one. 0:
 * none; else its number in the configuration + 1.
 */
static uint32_t early_service(const struct service_entry *e, size_t left)
{
	size_t i = 0;

	for (; i < left && same_address(&e[i], e) && e[i].protocol == e->protocol; i++)
		if (e[i].service->fragments == RINGLB_FRAGMENTS_SOURCE)
			return (uint32_t)e[i].number + 1;
	return i == 1 && e->service->protocol == IPPROTO_UDP && e->service->fragments == RINGLB_FRAGMENTS_TRACK ?
		       (uint32_t)e->number + 1 :
		       0;
}

/* The services, and a mark for each address that has none of any protocol. */
static void add_services(struct service_entries *out, const struct service_entry *e, size_t services)
{
	struct service_entry *mark = NULL;

	for (size_t i = 0; i < services; i++) {
		bool begins = !i || !same_address(&e[i - 1], &e[i]);

		if (begins)
			mark = NULL;
		if (begins && (e[i].protocol & RINGLB_KEY_PROTOCOL)) {
			mark = add(out, &e[i]);
			mark->service = NULL;
			mark->port = mark->port_to = 0;
			mark->protocol &= RINGLB_KEY_PREFIX;
		}
		if (mark && (begins || e[i - 1].protocol != e[i].protocol))
			*(e[i].service->protocol == IPPROTO_TCP ?
				  &mark->early_tcp :
				  &mark->early_udp) = early_service(&e[i], services - i);
		if (!e[i].port_to)
			add(out, &e[i]);
	}
}

/* A list of ranges for each address and protocol; what it lists comes behind all that is hashed. */
static void add_ranges(struct service_entries *out, const struct service_entry *e, size_t services)
{
	struct service_entry *list = NULL;
	uint32_t ranges = 0;

	for (size_t i = 0; i < services; i++) {
		if (!e[i].port_to)
			continue;
		if (!ranges || !same_address(&e[i - 1], &e[i]) || e[i - 1].protocol != e[i].protocol ||
		    !e[i - 1].port_to) {
			list = add(out, &e[i]);
			list->service = NULL;
			list->port = list->port_to = 0;
			list->protocol |= RINGLB_KEY_RANGES;
			list->first = ranges;
		}
		list->ranges++;
		ranges++;
	}
	out->hashed = out->count;
	for (size_t i = 0; i < services; i++)
		if (e[i].port_to)
			add(out, &e[i]);
	for (uint32_t i = 0; i < out->hashed; i++)
		if (out->entry[i].ranges)
			out->entry[i].first += out->hashed;
}

/* Where each service's entry is, in place of its number in the configuration + 1. */
static void number_early(struct service_entries *out, size_t services)
{
	uint32_t *entry = xcalloc(services + 1, sizeof(*entry));

	for (uint32_t i = 0; i < out->count; i++)
		if (out->entry[i].service)
			entry[out->entry[i].number + 1] = i + 1;
	for (uint32_t i = 0; i < out->hashed; i++) {
		out->entry[i].early_tcp = entry[out->entry[i].early_tcp];
		out->entry[i].early_udp = entry[out->entry[i].early_udp];
	}
	free(entry);
}

void service_entries_make(const struct config *c, const struct service_prefixes *p, struct service_entries *out)
{
	struct service_entry *e = services_sorted(c, p);

	*out = (struct service_entries){ .entry = xcalloc(3 * c->services + 1, sizeof(*out->entry)) };
	add_services(out, e, c->services);
	add_ranges(out, e, c->services);
	number_early(out, c->services);
	free(e);
}

void service_entries_free(struct service_entries *e)
{
	free(e->entry);
	memset(e, 0, sizeof(*e));
}

uint32_t service_servers(const struct state *s, size_t service)
{
	const struct state_pool *p = state_table(s, service);
	uint32_t servers = 0;

	if (s->config->service[service].server_length)
		for (size_t i = 0; i < p->backends; i++)
			servers += p->backend[i].id != 0;
	return servers;
}

/* By id; of two with one id, which can be while one is leaving, the other comes first. */
static int server_order(const void *a, const void *b)
{
	const struct state_backend *x = *(const struct state_backend *const *)a;
	const struct state_backend *y = *(const struct state_backend *const *)b;

	if (x->id != y->id)
		return x->id > y->id ? 1 : -1;
	return (x->state == BACKEND_LEAVING) - (y->state == BACKEND_LEAVING);
}

void service_servers_encode(const struct state *s, size_t service, struct ringlb_servers *out)
{
	const struct state_pool *p = state_table(s, service);
	const struct state_backend **b = xcalloc(p->backends + 1, sizeof(*b));
	size_t n = 0;

	for (size_t i = 0; i < p->backends; i++)
		if (p->backend[i].id && backend_alive(&p->backend[i]))
			b[n++] = &p->backend[i];
	qsort(b, n, sizeof(*b), server_order);
	for (size_t i = 0; i < n; i++)
		if (!i || b[i]->id != b[i - 1]->id)
			out->server[out->count++] = (struct ringlb_server){ b[i]->id, b[i]->index };
	free(b);
}
