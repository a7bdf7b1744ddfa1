/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "service_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "../include/flow_hash.h"
#include "placement.h"
#include "service_table_private.h"

#define SLOTS 4u
#define BITS_MAX 20u

static uint32_t entry_hash(const struct service_entry *e)
{
	__u64 half[2];

	memcpy(half, e->address, sizeof(half));
	return ringlb_service_hash(half[0], half[1], htons(e->port), e->protocol);
}

static uint32_t bucket_of(uint32_t hash, unsigned int bits)
{
	return bits ? hash >> (32 - bits) : 0;
}

static bool overflows(const struct service_entries *e, unsigned int bits)
{
	uint8_t *used = xcalloc((size_t)1 << bits, 1);
	bool over = false;

	for (uint32_t i = 0; i < e->hashed && !over; i++)
		over = ++used[bucket_of(entry_hash(&e->entry[i]), bits)] > SLOTS;
	free(used);
	return over;
}

/* The next part of the region; returns its offset. */
static uint32_t part(struct service_table *t, uint32_t align, size_t bytes)
{
	uint32_t at = (t->length + align - 1) & ~(align - 1);

	t->length = at + (uint32_t)bytes;
	return at;
}

static size_t servers_bytes(const struct state *s, size_t service)
{
	uint32_t servers = service_servers(s, service);

	return servers ? sizeof(struct ringlb_servers) + servers * sizeof(struct ringlb_server) : 0;
}

int service_table_layout(const struct state *s, struct service_table *out)
{
	struct service_prefixes p;
	struct service_entries e;
	size_t servers = 0;
	int err = 0;

	service_prefixes_make(s->config, &p);
	service_entries_make(s->config, &p, &e);
	*out = (struct service_table){
		.entries = e.count, .hashed = e.hashed, .blocks = p.blocks, .prefixes = p.count
	};
	while (!err && overflows(&e, out->bits))
		if (++out->bits > BITS_MAX)
			err = -ENOSPC;
	for (size_t i = 0; i < s->config->services; i++)
		servers += servers_bytes(s, i);
	part(out, 1, sizeof(uint32_t) * SLOTS << out->bits);
	out->services_off = part(out, RINGLB_REGION_ALIGN, e.count * sizeof(struct ringlb_service));
	out->ranges_off = part(out, 8, (e.count - e.hashed) * sizeof(struct ringlb_range));
	out->blocks_off = part(out, 8, p.blocks * sizeof(struct ringlb_block));
	out->prefixes_off = part(out, 8, p.count * sizeof(uint32_t));
	out->servers_off = part(out, 8, servers);
	service_entries_free(&e);
	service_prefixes_free(&p);
	return err;
}

static void service_encode(const struct state *s, size_t number, struct ringlb_service *out)
{
	const struct config_service *v = &s->config->service[number];
	const struct config_pool *c = &s->config->pool[v->pool];
	const struct state_pool *p = state_table(s, number);
	const struct table_layout *l = &p->layout;

	out->forward = (uint8_t)v->forward;
	out->affinity = (uint8_t)placement_affinity(c, v);
	out->track = (uint8_t)v->track;
	out->fragments = (uint8_t)v->fragments;
	out->source_prefix = address_is_ipv4(&v->address) ? v->source_prefix4 : v->source_prefix6;
	out->index = s->service_index[number];
	out->gue_port = htons(v->gue_port);
	out->settle_after = (uint32_t)((c->settle_after_ms + 999) / 1000);
	out->cid_length = v->cid_length;
	out->server_offset = v->server_offset;
	out->server_length = v->server_length;
	out->bits = p->arcs.count ? (uint8_t)l->bits : 0;
	if (!out->bits)
		return;
	out->index_off = p->region + l->index_off;
	out->points_off = p->region + l->points_off;
	out->cold_off = p->region + l->cold_off;
	out->owners_off = p->region + l->owners_off;
	out->points = l->points;
	out->owners = l->owners;
}

/* Where a table is being written. */
struct writing {
	const struct state *state;
	const struct service_table *table;
	struct service_entries entries;
	char *base;
	uint32_t region;
	uint32_t servers; /* where the next list of servers goes */
};

static void entry_encode(struct writing *w, uint32_t i, struct ringlb_service *out)
{
	const struct service_entry *e = &w->entries.entry[i];

	memcpy(out->address, e->address, sizeof(out->address));
	out->port = htons(e->port);
	out->protocol = e->protocol;
	out->index = RINGLB_NO_BACKEND;
	if (e->ranges) {
		out->index_off = w->region + w->table->ranges_off +
				 (e->first - w->table->hashed) * (uint32_t)sizeof(struct ringlb_range);
		out->points = e->ranges;
	} else if (!e->service) {
		out->points = e->early_tcp;
		out->owners = e->early_udp;
	}
	if (!e->service)
		return;
	service_encode(w->state, e->number, out);
	if (!servers_bytes(w->state, e->number))
		return;
	out->servers_off = w->region + w->servers;
	service_servers_encode(w->state, e->number, (struct ringlb_servers *)(w->base + w->servers));
	w->servers += (uint32_t)servers_bytes(w->state, e->number);
}

static uint32_t flags_of(const struct config *c)
{
	uint32_t flags = 0;

	for (size_t i = 0; i < c->services; i++) {
		const struct config_service *s = &c->service[i];

		flags |= (s->port || !s->protocol ? 0 : RINGLB_ROOT_ANY_PORT) | (s->port_to ? RINGLB_ROOT_RANGES : 0) |
			 (s->protocol ? 0 : RINGLB_ROOT_ANY_PROTOCOL) | (s->free_bits ? RINGLB_ROOT_PREFIXES : 0);
	}
	return flags;
}

static void prefixes_encode(const struct writing *w, struct ringlb_root *root)
{
	const struct service_table *t = w->table;
	struct service_prefixes p;

	service_prefixes_make(w->state->config, &p);
	memcpy(w->base + t->blocks_off, p.block, p.blocks * sizeof(*p.block));
	memcpy(w->base + t->prefixes_off, p.wider, p.count * sizeof(*p.wider));
	root->blocks_off = w->region + t->blocks_off;
	root->blocks = p.blocks;
	root->prefixes_off = w->region + t->prefixes_off;
	root->prefixes = p.count;
	service_prefixes_free(&p);
}

void service_table_encode(const struct state *s, const struct service_table *t, uint32_t region, void *base,
			  struct ringlb_root *root)
{
	struct ringlb_service *service = (struct ringlb_service *)((char *)base + t->services_off);
	struct ringlb_range *range = (struct ringlb_range *)((char *)base + t->ranges_off);
	struct writing w = { .state = s, .table = t, .base = base, .region = region, .servers = t->servers_off };
	struct service_prefixes p;
	uint32_t *slot = base;

	service_prefixes_make(s->config, &p);
	service_entries_make(s->config, &p, &w.entries);
	service_prefixes_free(&p);
	memset(base, 0, t->length);
	root->services_slots = region;
	root->services_off = region + t->services_off;
	root->services_bits = t->bits;
	root->flags = flags_of(s->config);
	prefixes_encode(&w, root);
	for (uint32_t i = 0; i < w.entries.count; i++) {
		const struct service_entry *e = &w.entries.entry[i];
		uint32_t hash = entry_hash(e), *place = &slot[bucket_of(hash, t->bits) * SLOTS];

		entry_encode(&w, i, &service[i]);
		if (i >= t->hashed) {
			*range++ = (struct ringlb_range){ e->port, e->port_to, i + 1 };
			continue;
		}
		while (*place)
			place++;
		*place = (hash & 0xffff) << 16 | (i + 1);
	}
	service_entries_free(&w.entries);
}
