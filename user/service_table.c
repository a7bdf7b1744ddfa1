/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "service_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../include/flow_hash.h"
#include "placement.h"

#define SLOTS 4u
#define BITS_MAX 20u

/* An entry is a service, or the mark that says only "a service address": the service is NULL then. */
struct entry {
	const struct address *address;
	const struct config_service *service;
	size_t number; /* of the service in the configuration */
};

static int entry_order(const void *a, const void *b)
{
	return address_compare(((const struct entry *)a)->address, ((const struct entry *)b)->address);
}

static struct entry *entries(const struct config *c, uint32_t *count)
{
	struct entry *e = xcalloc(c->services * 2 + 1, sizeof(*e));
	size_t n = 0;

	for (size_t i = 0; i < c->services; i++)
		e[i] = (struct entry){ &c->service[i].address, &c->service[i], i };
	qsort(e, c->services, sizeof(*e), entry_order);
	for (size_t i = 0; i < c->services; i++)
		if (!i || !address_equal(e[i].address, e[i - 1].address))
			e[c->services + n++] = (struct entry){ .address = e[i].address };
	*count = (uint32_t)(c->services + n);
	return e;
}

static uint32_t entry_hash(const struct entry *e)
{
	__u64 half[2];

	memcpy(half, e->address->byte, sizeof(half));
	return ringlb_service_hash(half[0], half[1], e->service ? htons(e->service->port) : 0,
				   e->service ? e->service->protocol : 0);
}

static uint32_t bucket_of(uint32_t hash, unsigned int bits)
{
	return bits ? hash >> (32 - bits) : 0;
}

static bool overflows(const struct entry *e, uint32_t count, unsigned int bits)
{
	uint8_t *used = xcalloc((size_t)1 << bits, 1);
	bool over = false;

	for (uint32_t i = 0; i < count && !over; i++)
		over = ++used[bucket_of(entry_hash(&e[i]), bits)] > SLOTS;
	free(used);
	return over;
}

int service_table_layout(const struct config *c, struct service_table *out)
{
	uint32_t slots;
	struct entry *e = entries(c, &out->entries);
	int err = 0;

	out->bits = 0;
	while (!err && overflows(e, out->entries, out->bits))
		if (++out->bits > BITS_MAX)
			err = -ENOSPC;
	free(e);
	slots = (uint32_t)sizeof(uint32_t) * SLOTS << out->bits;
	out->services_off = (slots + RINGLB_REGION_ALIGN - 1) & ~(RINGLB_REGION_ALIGN - 1);
	out->length = out->services_off + out->entries * (uint32_t)sizeof(struct ringlb_service);
	return err;
}

static void service_encode(const struct state *s, size_t number, struct ringlb_service *out)
{
	const struct config_service *v = &s->config->service[number];
	const struct config_pool *c = &s->config->pool[v->pool];
	const struct state_pool *p = state_table(s, number);
	const struct table_layout *l = &p->layout;

	out->port = htons(v->port);
	out->protocol = v->protocol;
	out->forward = (uint8_t)v->forward;
	out->affinity = (uint8_t)placement_affinity(c, v);
	out->track = (uint8_t)v->track;
	out->source_prefix = address_is_ipv4(&v->address) ? v->source_prefix4 : v->source_prefix6;
	out->index = s->service_index[number];
	out->settle_after = (uint32_t)((c->settle_after_ms + 999) / 1000);
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

void service_table_encode(const struct state *s, const struct service_table *t, uint32_t region, void *base,
			  struct ringlb_root *root)
{
	struct ringlb_service *service = (struct ringlb_service *)((char *)base + t->services_off);
	uint32_t count, *slot = base;
	struct entry *e = entries(s->config, &count);

	memset(base, 0, t->length);
	root->services_slots = region;
	root->services_off = region + t->services_off;
	root->services_bits = t->bits;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t hash = entry_hash(&e[i]), *place = &slot[bucket_of(hash, t->bits) * SLOTS];

		memcpy(service[i].address, e[i].address->byte, sizeof(service[i].address));
		if (e[i].service) {
			service_encode(s, e[i].number, &service[i]);
			if (!e[i].service->port)
				root->flags |= RINGLB_ROOT_ANY_PORT;
		} else {
			service[i].index = RINGLB_NO_BACKEND;
		}
		while (*place)
			place++;
		*place = (hash & 0xffff) << 16 | (i + 1);
	}
	free(e);
}
