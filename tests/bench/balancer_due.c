/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the names and numbers of the specification, not from the kernel's tables. */
#include "balancer.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "../../include/flow_hash.h"

#define KEPT 1000000u /* flows whose backends are computed once only */

static void build(const struct pool_spec *p, uint32_t from, uint32_t to, struct arcs *out)
{
	struct ring_member *member = xcalloc(to, sizeof(*member));

	for (uint32_t i = from; i < to; i++)
		member[i] = (struct ring_member){ .identity = xasprintf("b%u", i), .points = p->vnodes };
	for (uint32_t i = 0; i < from; i++)
		member[i].identity = xstrdup("");
	if (ring_build(member, to, out))
		bench_die(0, "the ring can't be built");
	for (uint32_t i = 0; i < to; i++)
		free((char *)member[i].identity);
	free(member);
}

static void find_indices(const struct state_pool *p, uint32_t backends, uint16_t *index)
{
	for (uint32_t i = 0; i < backends; i++) {
		char *name = xasprintf("b%u", i);
		const struct state_backend *b = state_pool_find(p, name);

		if (!b)
			bench_die(0, "%s does not run", name);
		index[i] = b->index;
		free(name);
	}
}

static const struct ring_due *ring_of(struct balancer *b, unsigned int pool)
{
	const struct pool_spec *p = &b->spec->pool[pool];
	struct ring_due *r;

	if (!b->ring)
		b->ring = xcalloc(b->spec->pools, sizeof(*b->ring));
	r = &b->ring[pool];
	if (r->index)
		return r;
	build(p, 0, p->backends, &r->before);
	build(p, p->drained, p->backends + p->added, &r->after);
	r->index = xcalloc(p->backends + p->added, sizeof(*r->index));
	find_indices(&b->running.state->pool[pool], p->backends + p->added, r->index);
	return r;
}

/* The whole hash of a flow. */
static uint64_t fingerprint(const struct balancer *b, const struct stream *s, uint32_t flow)
{
	static const uint8_t clients[] = { 0x20, 1, 0xd, 0xb8, 0, 1 }; /* CLIENTS_IPV6 */
	const __u64 *key = (const void *)b->running.state->config->hash_key;
	const uint32_t client = htonl(bench_client(flow));
	const uint8_t protocol = s->kind == PACKET_UDP ? IPPROTO_UDP : IPPROTO_TCP;
	struct address to;
	struct flow_key4 four = {
		.client = client,
		.client_port = htons(bench_port(flow)),
		.service_port = htons(SERVICE_PORT),
		.protocol = protocol,
	};
	struct flow_key6 six = {
		.client_port = four.client_port,
		.service_port = four.service_port,
		.protocol = protocol,
	};

	balancer_service_address(b, s, flow, &to);
	if (!balancer_is_ipv6(b, s)) {
		memcpy(&four.service, to.byte + 12, 4);
		return flow_fingerprint4(key, &four);
	}
	memcpy(six.client, clients, sizeof(clients));
	memcpy(&six.client[12], &client, sizeof(client));
	memcpy(six.service, to.byte, 16);
	return flow_fingerprint6(key, &six);
}

static uint32_t owner(const struct arcs *arcs, uint32_t position)
{
	return arcs->arc[arcs_find(arcs, position)].owner;
}

/* Numbers of backends. A flow that nothing is remembered of stays with the arc's former owner, where flows are kept. */
struct due {
	uint32_t before, after;
	uint64_t fingerprint;
};

static struct due due_of(struct balancer *b, const struct stream *s, uint32_t flow)
{
	const struct ring_due *r = ring_of(b, b->spec->service[s->service].pool);
	const uint64_t f = fingerprint(b, s, flow);

	return (struct due){
		.before = owner(&r->before, (uint32_t)(f >> 32)),
		.after = owner(&r->after, (uint32_t)(f >> 32)),
		.fingerprint = f,
	};
}

static uint32_t of_unknown(const struct balancer *b, const struct stream *s, const struct due *d)
{
	return b->spec->service[s->service].track == RINGLB_TRACK_NONE ? d->after : d->before;
}

/* `track: always` is measured where no arc moves: there the table says what the ring says. */
static uint32_t number_due(const struct balancer *b, const struct stream *s, enum table_state table,
			   const struct due *d)
{
	return s->kind == PACKET_SYN && table == TABLE_EMPTY ? d->after : of_unknown(b, s, d);
}

void balancer_backend(struct balancer *b, const struct stream *s, enum table_state table, uint32_t flow,
		      struct address *address)
{
	const struct due d = due_of(b, s, flow);

	balancer_backend_address(b, balancer_is_ipv6(b, s), number_due(b, s, table, &d), address);
}

/* Indices of the backends of the stream's flows, computed once. */
static const uint16_t *known_of(struct balancer *b, const struct stream *s)
{
	const uint16_t *index = ring_of(b, b->spec->service[s->service].pool)->index;

	if (!b->known) {
		b->known = xcalloc(b->spec->services, sizeof(*b->known));
		b->knowns = xcalloc(b->spec->services, sizeof(*b->knowns));
	}
	if (s->flows > b->knowns[s->service])
		b->known[s->service] = xreallocarray(b->known[s->service], s->flows, sizeof(uint16_t));
	for (uint32_t *i = &b->knowns[s->service]; *i < s->flows; (*i)++) {
		const struct due d = due_of(b, s, *i);

		b->known[s->service][*i] = index[of_unknown(b, s, &d)];
	}
	return b->known[s->service];
}

/*
 * SYNs in moved arcs, each of a flow of its own: remembered, and so with the new owner, where their bucket of the table
 * has no opening yet.
 */
static void due_of_openings(struct balancer *b, const struct stream *s, enum table_state table, uint32_t *packets,
			    struct ringlb_flow_counters *events)
{
	const uint16_t *index = ring_of(b, b->spec->service[s->service].pool)->index;
	uint32_t buckets;
	bool *taken;

	datapath_flows(b->running.dp, &buckets);
	taken = xcalloc(buckets, sizeof(*taken));
	for (uint32_t i = 0, flow = s->first; i < s->count; i++, flow = flow + 1 < s->flows ? flow + 1 : 0) {
		const struct due d = due_of(b, s, flow);
		bool *mine = &taken[(uint64_t)(uint32_t)d.fingerprint * buckets >> 32];
		bool refused = d.before != d.after && (table != TABLE_EMPTY || *mine);

		packets[index[refused ? d.before : d.after]]++;
		if (d.before == d.after)
			continue;
		events->refused_quota += refused;
		events->opened += !refused;
		*mine = true;
	}
	free(taken);
}

void balancer_due(struct balancer *b, const struct stream *s, enum table_state table, uint32_t *packets,
		  struct ringlb_flow_counters *events)
{
	const uint16_t *known;

	if (s->service == BALANCER_OTHER)
		return;
	if (s->kind == PACKET_SYN && table != TABLE_ANY) {
		due_of_openings(b, s, table, packets, events);
		return;
	}
	if (s->flows > KEPT) { /* each comes once */
		const uint16_t *index = ring_of(b, b->spec->service[s->service].pool)->index;

		for (uint32_t i = 0; i < s->count; i++) {
			const struct due d = due_of(b, s, (uint32_t)(((uint64_t)s->first + i) % s->flows));

			packets[index[of_unknown(b, s, &d)]]++;
		}
		return;
	}
	known = known_of(b, s);
	for (uint32_t i = 0, flow = s->first; i < s->count; i++, flow = flow + 1 < s->flows ? flow + 1 : 0)
		packets[known[flow]]++;
}

void balancer_due_free(struct balancer *b)
{
	for (unsigned int i = 0; b->known && i < b->spec->services; i++)
		free(b->known[i]);
	for (unsigned int i = 0; b->ring && i < b->spec->pools; i++) {
		arcs_free(&b->ring[i].before);
		arcs_free(&b->ring[i].after);
		free(b->ring[i].index);
	}
	free(b->known);
	free(b->knowns);
	free(b->ring);
}
