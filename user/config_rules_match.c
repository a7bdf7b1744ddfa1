/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What must hold for services of more than one address, port or protocol, and for those of QUIC. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "config_parse.h"

struct ref {
	const struct config_service *service;
	size_t index;
};

static const struct node *service_node(const struct parse *p, size_t i, const char *key)
{
	const struct node *n = node_find(p->services->child[i], key);

	return n ? n : p->services->child[i];
}

/* By address, the wider prefix first, then protocol and port. */
static int ref_order(const void *a, const void *b)
{
	const struct config_service *x = ((const struct ref *)a)->service, *y = ((const struct ref *)b)->service;
	int order = address_compare(&x->address, &y->address);

	if (!order)
		order = (y->free_bits > x->free_bits) - (y->free_bits < x->free_bits);
	if (!order)
		order = (x->protocol > y->protocol) - (x->protocol < y->protocol);
	return order ? order : (x->port > y->port) - (x->port < y->port);
}

/* Those that could be read. */
static struct ref *sorted(const struct config *c, size_t *count)
{
	struct ref *ref = xcalloc(c->services + 1, sizeof(*ref));

	*count = 0;
	for (size_t i = 0; i < c->services; i++)
		if (c->service[i].protocol != PROTOCOL_UNKNOWN)
			ref[(*count)++] = (struct ref){ &c->service[i], i };
	qsort(ref, *count, sizeof(*ref), ref_order);
	return ref;
}

static bool same_place(const struct config_service *a, const struct config_service *b)
{
	return address_equal(&a->address, &b->address) && a->free_bits == b->free_bits && a->protocol == b->protocol;
}

/* A port belongs to one range at most. The same range twice is a duplicate, which is said elsewhere. */
static void ranges_apart(struct parse *p, const struct ref *ref, size_t count)
{
	const struct config_service *last = NULL; /* the range that reaches farthest */

	for (size_t i = 0; i < count; i++) {
		const struct config_service *s = ref[i].service;

		if (last && !same_place(last, s))
			last = NULL;
		if (!s->port_to)
			continue;
		if (last && s->port <= last->port_to && config_service_order(last, s))
			fault(&p->f, service_node(p, ref[i].index, "port"), "overlapping-ranges",
			      "has ports that the range %u-%u in line %u has too; of ranges a port can be in one",
			      last->port, last->port_to, last->place.line);
		if (!last || s->port_to > last->port_to)
			last = s;
	}
}

/* The search goes through what contains each other, one after the other. */
static void prefixes_shallow(struct parse *p, const struct ref *ref, size_t count)
{
	const struct config_service *around[RINGLB_MAX_NESTED];
	size_t depth = 0;

	for (size_t i = 0; i < count; i++) {
		const struct config_service *s = ref[i].service;

		if (!s->free_bits)
			continue;
		while (depth && !config_service_has(around[depth - 1], &s->address))
			depth--;
		if (depth && around[depth - 1]->free_bits == s->free_bits)
			continue;
		if (depth < RINGLB_MAX_NESTED)
			around[depth++] = s;
		else
			fault(&p->f, service_node(p, ref[i].index, "address"), "nested-prefixes",
			      "lies within %u other prefixes; the limit is %u within each other", RINGLB_MAX_NESTED,
			      RINGLB_MAX_NESTED);
	}
}

static int backend_order(const void *a, const void *b)
{
	return address_compare(&(*(const struct config_backend *const *)a)->address,
			       &(*(const struct config_backend *const *)b)->address);
}

/* Backends by their address; as apart_from_backends has it for services of one address. */
static const struct config_backend **sorted_backends(const struct config *c, size_t *count)
{
	const struct config_backend **b;

	*count = 0;
	for (size_t i = 0; i < c->pools; i++)
		*count += c->pool[i].backends;
	b = xcalloc(*count + 1, sizeof(*b));
	*count = 0;
	for (size_t i = 0; i < c->pools; i++)
		for (size_t j = 0; j < c->pool[i].backends; j++)
			if (address_given(&c->pool[i].backend[j].address))
				b[(*count)++] = &c->pool[i].backend[j];
	qsort(b, *count, sizeof(*b), backend_order);
	return b;
}

static void prefixes_apart_from_backends(struct parse *p, const struct ref *ref, size_t count)
{
	size_t backends;
	const struct config_backend **b = sorted_backends(p->c, &backends);

	for (size_t i = 0; i < count; i++) {
		const struct config_service *s = ref[i].service;
		size_t low = 0, high = backends;
		char text[ADDRESS_TEXT];

		while (s->free_bits && low < high) {
			size_t middle = low + (high - low) / 2;

			if (address_compare(&b[middle]->address, &s->address) < 0)
				low = middle + 1;
			else
				high = middle;
		}
		if (!s->free_bits || low == backends || !config_service_has(s, &b[low]->address))
			continue;
		fault(&p->f, service_node(p, ref[i].index, "address"), "service-is-backend",
		      "has %s, the address of the backend in line %u; a service needs addresses of its own, which the backends "
		      "have beside theirs",
		      address_text(&b[low]->address, text), b[low]->place.line);
	}
	free(b);
}

static void check_protocol(struct parse *p, size_t i)
{
	const struct config_service *s = &p->c->service[i];
	const struct node *quic = node_find(p->services->child[i], "quic");

	if (!s->protocol && s->port)
		fault(&p->f, service_node(p, i, "port"), "bad-value",
		      "not every protocol has ports: with protocol: any write port: any");
	if (s->affinity == RINGLB_AFFINITY_QUIC && s->protocol != IPPROTO_UDP)
		fault(&p->f, service_node(p, i, "protocol"), "bad-value", "QUIC runs over UDP: write protocol: udp");
	if (quic && s->affinity != RINGLB_AFFINITY_QUIC)
		fault_key(&p->f, quic, "bad-value", "only affinity: quic looks at connection ids");
}

/*
 * A fragment without ports, which comes before the first one, goes where all services do that it may be for: they must
 * agree. ref is sorted.
 */
static void fragments_agree(struct parse *p, const struct ref *ref, size_t count)
{
	const struct config_service *first = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct config_service *s = ref[i].service;

		if (s->fragments != RINGLB_FRAGMENTS_SOURCE || s->pool == POOL_UNKNOWN)
			continue;
		if (s->affinity != RINGLB_AFFINITY_SOURCE) {
			fault(&p->f, service_node(p, ref[i].index, "fragments"), "bad-value",
			      "only with affinity: source the client's address says where a fragment goes; use track");
			continue;
		}
		if (!first || !same_place(first, s)) {
			first = s;
			continue;
		}
		if (first->pool != s->pool || first->forward != s->forward || first->gue_port != s->gue_port ||
		    first->source_prefix4 != s->source_prefix4 || first->source_prefix6 != s->source_prefix6)
			fault(&p->f, service_node(p, ref[i].index, "fragments"), "fragments-differ",
			      "a fragment without ports could be for this service or for the one in line %u, of the same "
			      "address and protocol; give both the same pool, forward and affinity, or use track",
			      first->place.line);
	}
}

/* Servers are told by their ids: one without has no connection that its ids could lead back to it. */
static void check_server_ids(struct parse *p, size_t i)
{
	const struct config_service *s = &p->c->service[i];
	const struct config_pool *pool = &p->c->pool[s->pool];
	uint64_t limit = 1ull << 8 * s->server_length;

	for (size_t j = 0; j < pool->backends; j++) {
		const struct config_backend *b = &pool->backend[j];

		if (!b->name || (b->id && b->id < limit))
			continue;
		if (!b->id)
			fault(&p->f, node_find(node_find(p->services->child[i], "quic"), "server_id"), "no-id",
			      "backend %s of pool %s has no id; give each backend the id that its server writes into "
			      "connection ids",
			      b->name, pool->name ? pool->name : "");
		else
			fault(&p->f, node_find(node_find(p->services->child[i], "quic"), "server_id"), "out-of-range",
			      "backend %s of pool %s has the id %u, which %u bytes can't hold", b->name,
			      pool->name ? pool->name : "", b->id, s->server_length);
		return;
	}
}

void check_matches(struct parse *p)
{
	size_t count, ranges = 0;
	struct ref *ref = sorted(p->c, &count);

	ranges_apart(p, ref, count);
	prefixes_shallow(p, ref, count);
	prefixes_apart_from_backends(p, ref, count);
	fragments_agree(p, ref, count);
	for (size_t i = 0; i < count; i++)
		check_protocol(p, ref[i].index);
	for (size_t i = 0; i < p->c->services; i++) {
		ranges += p->c->service[i].port_to != 0;
		if (p->c->service[i].server_length && p->c->service[i].pool != POOL_UNKNOWN)
			check_server_ids(p, i);
	}
	if (p->c->services <= RINGLB_MAX_SERVICES && p->c->services + ranges > RINGLB_MAX_SERVICES)
		fault(&p->f, p->services, "too-many-services",
		      "%zu services, %zu of them ranges, which count twice; the limit is %u", p->c->services, ranges,
		      RINGLB_MAX_SERVICES);
	free(ref);
}
