/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "room.h"

#include <errno.h>

#include "replace.h"

#define TABLES_ROOM (1u << 20)

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t power_above(uint32_t n, uint32_t least)
{
	while (least < n)
		least *= 2;
	return least;
}

/* Entries of the flow table lie in buckets of four, of which one may hold a mere opening. */
static uint32_t flow_buckets(const struct config *c)
{
	uint32_t by_established = (c->flows_established + 2) / 3;

	return by_established > c->flows_opening ? by_established : c->flows_opening;
}

void commit_sizes(const struct state *next, struct datapath_sizes *out)
{
	size_t need = 2 * encode_need(next) + TABLES_ROOM;
	uint32_t backends = 0, services = (uint32_t)next->config->services * 2;

	for (size_t i = 0; i < state_tables(next); i++)
		backends += (uint32_t)state_table_at(next, i)->backends;
	backends *= 2;
	/* numbers have gaps where others went */
	for (size_t i = 0; i < state_tables(next); i++)
		for (size_t j = 0; j < state_table_at(next, i)->backends; j++)
			backends = larger(backends, state_table_at(next, i)->backend[j].index + 1u);
	for (size_t i = 0; i < next->config->services; i++)
		services = larger(services, next->service_index[i] + 1u);
	*out = (struct datapath_sizes){
		.tables = need > RINGLB_MAX_TABLES_BYTES ? RINGLB_MAX_TABLES_BYTES : need,
		.backends = power_above(backends, 256),
		.services = power_above(services, 64),
		.flow_buckets = flow_buckets(next->config),
	};
	if (out->backends > RINGLB_MAX_BACKENDS)
		out->backends = RINGLB_MAX_BACKENDS;
	if (out->services > RINGLB_MAX_SERVICES)
		out->services = RINGLB_MAX_SERVICES;
}

/* That what the state refers to by number is in the maps that there are. */
static bool maps_suffice(struct datapath *dp, const struct state *s)
{
	uint32_t count;

	datapath_backends(dp, &count);
	for (size_t i = 0; i < state_tables(s); i++)
		for (size_t j = 0; j < state_table_at(s, i)->backends; j++)
			if (state_table_at(s, i)->backend[j].index >= count)
				return false;
	for (size_t i = 0; i < s->config->services; i++)
		if (s->service_index[i] >= datapath_services(dp))
			return false;
	datapath_flows(dp, &count);
	return count == flow_buckets(s->config);
}

/* Sizes that hold what runs and the next state side by side. tables: those that there are have no room. */
static void grown_sizes(const struct running *r, const struct state *next, bool tables, struct datapath_sizes *out)
{
	struct datapath_sizes now, was;
	size_t most;

	commit_sizes(next, out);
	commit_sizes(r->state, &was);
	datapath_get_sizes(r->dp, &now);
	out->backends = larger(larger(out->backends, was.backends), now.backends);
	out->services = larger(larger(out->services, was.services), now.services);
	most = out->tables > was.tables ? out->tables : was.tables;
	out->tables = now.tables;
	if (!tables)
		return;
	if (most < now.tables + now.tables / 2)
		most = now.tables + now.tables / 2; /* there is room, but in pieces: not soon again */
	if (most > RINGLB_MAX_TABLES_BYTES)
		most = RINGLB_MAX_TABLES_BYTES;
	if (most == now.tables) /* the largest, in pieces: another one, in which there is room at the end */
		most -= RINGLB_REGION_ALIGN;
	out->tables = most;
}

int room_make(const struct instance *i, struct running *r, struct datapath *dp, struct state *next,
	      struct encoding *out, struct diag *d)
{
	const struct state *were = r ? r->state : NULL;
	int err = encode_place(out, dp, were, next);
	struct datapath_sizes sizes;

	if (r && (err == -ENOSPC || (!err && !maps_suffice(dp, next)))) {
		encode_cancel(out);
		grown_sizes(r, next, err == -ENOSPC, &sizes);
		err = replace(i, r, next, &sizes, d);
		if (err)
			return err;
		err = encode_place(out, r->dp, were, next);
	}
	if (err == -ENOSPC)
		diag_error(d, "no-room", "",
			   "there is no room for the tables of this and of what runs: they have %u MiB at most: lower "
			   "vnodes, or change less at a time",
			   RINGLB_MAX_TABLES_BYTES >> 20);
	else if (err)
		diag_error(d, "services", "", "the services can't be arranged into a table: that is a bug, report it");
	return err;
}
