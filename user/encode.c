/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "encode.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../include/outer_header.h"
#include "diag.h"
#include "manifest.h"

/* By what the manifest can grow when it is written again with everything filled in: digits. */
#define MANIFEST_GROWTH 64
#define BACKEND_GROWTH 16 /* the incarnation, and an own table's copy */
#define TABLE_GROWTH 16   /* the region */
#define INTERFACE_GROWTH 16

static struct ringlb_tables *tables_of(const struct encoding *e, size_t *bytes)
{
	return datapath_tables(e->dp, bytes);
}

static uint32_t manifest_room(const struct state *s)
{
	char *manifest = manifest_write(s);
	size_t room = strlen(manifest) + MANIFEST_GROWTH + s->config->interfaces * INTERFACE_GROWTH;

	free(manifest);
	for (size_t i = 0; i < state_tables(s); i++)
		room += TABLE_GROWTH + state_table_at(s, i)->backends * BACKEND_GROWTH;
	return (uint32_t)room;
}

size_t encode_need(const struct state *s)
{
	struct service_table services;
	size_t need = RINGLB_TABLES_HEADER + RINGLB_TABLES_SLACK + manifest_room(s) + RINGLB_REGION_ALIGN;

	for (size_t i = 0; i < state_tables(s); i++)
		need += state_table_at(s, i)->layout.length;
	if (!service_table_layout(s, &services))
		need += services.length + RINGLB_REGION_ALIGN;
	return need;
}

static void regions_in_use(struct encoding *e, const struct state *running)
{
	size_t bytes;
	const struct ringlb_tables *t = tables_of(e, &bytes);
	const struct ringlb_root *root = &t->roots[t->state & 1];
	struct service_table old;

	regions_init(&e->regions, bytes);
	if (!running)
		return;
	for (size_t i = 0; i < state_tables(running); i++) {
		const struct state_pool *p = state_table_at(running, i);

		if (p->layout.bits)
			regions_add(&e->regions, p->region, p->layout.length);
	}
	if (!service_table_layout(running, &old))
		regions_add(&e->regions, root->services_slots, old.length);
	regions_add(&e->regions, root->manifest_off, root->manifest_len);
}

/* False where one finds no room; those before it have theirs. */
static bool place_all(struct encoding *e)
{
	for (size_t i = 0; i < state_tables(e->next); i++) {
		struct state_pool *p = state_table_at(e->next, i);

		if (p->region || !p->layout.bits)
			continue;
		p->region = regions_take(&e->regions, p->layout.length);
		if (!p->region)
			return false;
	}
	e->services_region = regions_take(&e->regions, e->services.length);
	e->manifest_room = manifest_room(e->next);
	e->manifest_region = regions_take(&e->regions, e->manifest_room);
	return e->services_region && e->manifest_region;
}

int encode_place(struct encoding *e, struct datapath *dp, const struct state *running, struct state *next)
{
	*e = (struct encoding){ .dp = dp, .next = next };
	if (service_table_layout(next, &e->services))
		return -EINVAL;
	e->were = xcalloc(state_tables(next) + 1, sizeof(*e->were));
	for (size_t i = 0; i < state_tables(next); i++)
		e->were[i] = state_table_at(next, i)->region;
	regions_in_use(e, running);
	if (place_all(e))
		return 0;
	encode_cancel(e);
	return -ENOSPC;
}

void encode_backend(struct encoding *e, struct state_backend *b)
{
	uint32_t count;
	struct ringlb_backend *entry = &datapath_backends(e->dp, &count)[b->index], fresh = { 0 };
	__be32 address;

	b->incarnation = (uint16_t)(entry->incarnation + 1);
	if (!b->incarnation)
		b->incarnation = 1;
	memcpy(&address, &b->address.byte[12], sizeof(address));
	fresh.incarnation = b->incarnation;
	memcpy(fresh.address, b->address.byte, sizeof(fresh.address));
	if (address_is_ipv4(&b->address))
		fresh.outer_sum = ringlb_outer_sum(address);
	fresh.flags = (uint8_t)(RINGLB_BACKEND_USED | (address_is_ipv4(&b->address) ? 0 : RINGLB_BACKEND_IPV6));
	/* Never less than it was, not even for a moment: a command that is killed here must not start again from 1. */
	__atomic_store_n(&entry->incarnation, fresh.incarnation, __ATOMIC_RELEASE);
	*entry = fresh;
	datapath_clear_backend_counter(e->dp, b->index);
}

void encode_table(struct encoding *e, const struct state_pool *p)
{
	size_t bytes;
	char *base = (char *)tables_of(e, &bytes) + p->region;
	uint16_t *owner = xcalloc(p->backends + 1, sizeof(*owner));

	for (size_t i = 0; i < p->backends; i++)
		owner[i] = p->backend[i].index;
	owner[STATE_NOBODY(p)] = RINGLB_NO_BACKEND;
	table_encode(&p->arcs, owner, p->backends + 1, &p->layout, base);
	free(owner);
}

int encode_root(struct encoding *e)
{
	size_t bytes;
	struct ringlb_tables *t = tables_of(e, &bytes);
	struct ringlb_root *root = &t->roots[~t->state & 1];
	const struct config *want = e->next->config;
	char *manifest;
	bool fits;

	memset(root, 0, sizeof(*root));
	memcpy(root->hash_key, want->hash_key, sizeof(root->hash_key));
	if (want->has_tunnel4)
		memcpy(&root->tunnel4, &want->tunnel4.byte[12], sizeof(root->tunnel4));
	if (want->has_tunnel6)
		memcpy(root->tunnel6, want->tunnel6.byte, sizeof(root->tunnel6));
	root->entropy4 = htonl((1u << want->tunnel4_free) - 1);
	root->entropy6 = htonl((1u << want->tunnel6_free) - 1);
	service_table_encode(e->next, &e->services, e->services_region, (char *)t + e->services_region, root);
	root->generation = e->next->generation;
	e->next->revision = (t->state >> 1) + 1;
	manifest = manifest_write(e->next);
	root->manifest_off = e->manifest_region;
	root->manifest_len = (uint32_t)strlen(manifest);
	/* An empty one is what could not be written: published, it would leave an instance that can't be read. */
	fits = root->manifest_len && root->manifest_len <= e->manifest_room;
	if (fits)
		memcpy((char *)t + root->manifest_off, manifest, root->manifest_len);
	free(manifest);
	return fits ? 0 : -ENOSPC;
}

void encode_publish(struct encoding *e)
{
	size_t bytes;
	struct ringlb_tables *t = tables_of(e, &bytes);

	__atomic_store_n(&t->state, e->next->revision << 1 | (~t->state & 1), __ATOMIC_SEQ_CST);
}

void encode_end(struct encoding *e)
{
	regions_free(&e->regions);
	free(e->were);
	memset(e, 0, sizeof(*e));
}

void encode_cancel(struct encoding *e)
{
	for (size_t i = 0; e->were && i < state_tables(e->next); i++)
		state_table_at(e->next, i)->region = e->were[i];
	encode_end(e);
}
