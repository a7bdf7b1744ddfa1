/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "commit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "advise.h"
#include "aftermath.h"
#include "encode.h"
#include "nexthop.h"
#include "release.h"
#include "replace.h"

#define WAIT_FOR_NEIGHBOURS_MS 1000
#define TABLES_ROOM (1u << 20)

/* One commit under way. */
struct commit {
	const struct instance *instance;
	struct datapath *dp;
	struct running *running; /* NULL at attach */
	struct plan *plan;
	struct state *next; /* the plan's */
	struct netlink *nl;
	struct nexthops hops;
	struct encoding encoding;
	unsigned int *attached; /* interfaces attached by this commit, to be taken back when it fails */
	size_t attached_count;
	struct diag *d;
};

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

/* That what the next state refers to by number is in the maps that there are. */
static bool maps_suffice(struct commit *c)
{
	uint32_t count;

	datapath_backends(c->dp, &count);
	for (size_t i = 0; i < state_tables(c->next); i++)
		for (size_t j = 0; j < state_table_at(c->next, i)->backends; j++)
			if (state_table_at(c->next, i)->backend[j].index >= count)
				return false;
	for (size_t i = 0; i < c->next->config->services; i++)
		if (c->next->service_index[i] >= datapath_services(c->dp))
			return false;
	datapath_flows(c->dp, &count);
	return count == flow_buckets(c->next->config);
}

/* Sizes that hold what runs and the next state side by side; other tables than there are where those have no room. */
static void grown_sizes(struct commit *c, bool tables, struct datapath_sizes *out)
{
	struct datapath_sizes now, was;
	size_t most;

	commit_sizes(c->next, out);
	commit_sizes(c->running->state, &was);
	datapath_get_sizes(c->dp, &now);
	out->backends = larger(larger(out->backends, was.backends), now.backends);
	out->services = larger(larger(out->services, was.services), now.services);
	most = out->tables > was.tables ? out->tables : was.tables;
	if (tables && most < now.tables + now.tables / 2)
		most = now.tables + now.tables / 2; /* there is room, but in pieces: not soon again */
	out->tables = most > now.tables ? most : now.tables;
	if (out->tables > RINGLB_MAX_TABLES_BYTES)
		out->tables = RINGLB_MAX_TABLES_BYTES;
	if (tables && out->tables == now.tables) /* the largest, in pieces: once more as large, but another */
		out->tables -= RINGLB_REGION_ALIGN;
}

/* Larger maps take over under traffic, with what runs in them. */
static int grow(struct commit *c, bool tables)
{
	struct datapath_sizes sizes;
	int err;

	grown_sizes(c, tables, &sizes);
	err = replace(c->instance, c->running, c->next, &sizes, c->d);
	c->dp = c->running->dp;
	return err;
}

/* A place for everything: in the maps that there are, else in larger ones. */
static int make_room(struct commit *c)
{
	const struct state *were = c->running ? c->running->state : NULL;
	int err = were && !maps_suffice(c) ? grow(c, false) : 0;

	if (err)
		return err;
	err = encode_place(&c->encoding, c->dp, were, c->next);
	if (err == -ENOSPC && were) {
		encode_end(&c->encoding);
		err = grow(c, true);
		if (err)
			return err;
		err = encode_place(&c->encoding, c->dp, were, c->next);
	}
	if (err == -ENOSPC)
		diag_error(c->d, "no-room", "",
			   "there is no room for the tables of this and of what runs: they have %u MiB at most: lower "
			   "vnodes, or change less at a time",
			   RINGLB_MAX_TABLES_BYTES >> 20);
	else if (err)
		diag_error(c->d, "services", "",
			   "the services can't be arranged into a table: that is a bug, report it");
	return err;
}

static int find_interfaces(struct commit *c)
{
	const struct config *want = c->next->config;
	int err = 0;

	for (size_t i = 0; i < want->interfaces; i++) {
		struct link_info link;
		int one = link_by_name(c->nl, want->interface[i], &link);

		c->next->ifindex[i] = one ? 0 : link.ifindex;
		if (one)
			diag_error(c->d, "no-interface", "", "interface %s: %s: ip link shows those that there are",
				   want->interface[i], one == -ENODEV ? "there is none of this name" : strerror(-one));
		err = err ? err : one;
	}
	return err;
}

/* A service's own table holds copies of its pool's backends: those that were new have their incarnation now. */
static void complete_owns(struct commit *c)
{
	for (size_t i = 0; i < c->next->owns; i++)
		for (size_t j = 0; j < c->next->own[i].table.backends; j++) {
			struct state_backend *b = &c->next->own[i].table.backend[j];
			uint32_t count;

			if (!b->incarnation)
				b->incarnation = datapath_backends(c->dp, &count)[b->index].incarnation;
		}
}

/* What must be in place before the switch, in the plan's order. */
static void execute_before(struct commit *c)
{
	for (size_t i = 0; i < c->plan->operations; i++) {
		const struct plan_operation *o = &c->plan->operation[i];

		if (o->kind == PLAN_BACKEND_ADD)
			encode_backend(&c->encoding, &c->next->pool[o->pool].backend[o->backend]);
		else if (o->kind == PLAN_TABLE_BUILD)
			encode_table(&c->encoding, &c->next->pool[o->pool]);
		else if (o->kind == PLAN_OWN_BUILD)
			encode_table(&c->encoding, &c->next->own[o->pool].table);
	}
	complete_owns(c);
}

static bool adds_backends(const struct plan *p)
{
	for (size_t i = 0; i < p->operations; i++)
		if (p->operation[i].kind == PLAN_BACKEND_ADD)
			return true;
	return false;
}

/* Everything up to the switch, built aside. */
static int prepare(struct commit *c)
{
	int err = find_interfaces(c);

	if (!err)
		err = make_room(c);
	if (!err)
		err = nexthops_resolve(c->nl, c->next, adds_backends(c->plan) ? WAIT_FOR_NEIGHBOURS_MS : 0, &c->hops);
	if (!err)
		err = nexthops_outputs(c->nl, c->dp, &c->hops, c->d);
	if (err)
		return err;
	execute_before(c);
	nexthops_write(c->dp, c->next, &c->hops);
	return encode_root(&c->encoding);
}

static size_t interface_number(const struct config *c, const char *name)
{
	size_t i = 0;

	while (i < c->interfaces && strcmp(c->interface[i], name))
		i++;
	return i;
}

static int attach_failed(struct commit *c, const char *name, unsigned int ifindex, enum datapath_mode mode, int err)
{
	char who[128] = "";

	if (err == -EBUSY || err == -EEXIST) {
		datapath_describe(ifindex, who, sizeof(who));
		diag_error(
			c->d, "busy", "",
			"interface %s already has an XDP program%s%s: take it off first (ip link set dev %s xdp off)",
			name, who[0] ? ": " : "", who, name);
	} else {
		diag_error(c->d, "attach", "", "interface %s: can't attach in %s mode: %s%s", name,
			   mode == DATAPATH_NATIVE ? "native" : "generic", strerror(-err),
			   mode == DATAPATH_NATIVE ?
				   ": its driver may lack XDP, or its MTU is too large for it: xdp: generic works "
				   "everywhere, more slowly" :
				   "");
	}
	return err;
}

/* Attaches in the mode that is wanted; auto takes native where it can be had, and says so where not. */
static int attach_interface(struct commit *c, const char *name)
{
	unsigned int ifindex = c->next->ifindex[interface_number(c->next->config, name)];
	enum config_xdp want = c->next->config->xdp;
	enum datapath_mode mode = want == CONFIG_XDP_GENERIC ? DATAPATH_GENERIC : DATAPATH_NATIVE;
	int err = datapath_attach(c->dp, c->instance->pins, ifindex, mode), native = err;

	if (err && want == CONFIG_XDP_AUTO && err != -EBUSY && err != -EEXIST && err != -EPERM) {
		mode = DATAPATH_GENERIC;
		err = datapath_attach(c->dp, c->instance->pins, ifindex, mode);
		if (!err)
			diag_warning(
				c->d, "generic-mode", "",
				"interface %s: attached in generic mode, which is several times slower, because native XDP was "
				"refused: %s: its driver may lack it, or its MTU is too large for it",
				name, strerror(-native));
	}
	if (err)
		return attach_failed(c, name, ifindex, mode, err);
	c->attached = xreallocarray(c->attached, c->attached_count + 1, sizeof(*c->attached));
	c->attached[c->attached_count++] = ifindex;
	return 0;
}

/* Takes back what this commit attached, and puts back what the first so many operations took off to attach it anew. */
static void attach_back(struct commit *c, size_t operations)
{
	for (size_t i = 0; i < c->attached_count; i++)
		datapath_detach(c->instance->pins, c->attached[i]);
	for (size_t i = 0; i < operations; i++) {
		const struct plan_operation *o = &c->plan->operation[i];
		const struct datapath_link *was;
		int err = 0;

		if (o->kind != PLAN_INTERFACE_REATTACH)
			continue;
		was = running_link(c->running, interface_number(c->running->state->config, o->subject));
		if (was && was->alive)
			err = datapath_attach(c->dp, c->instance->pins, was->ifindex, was->mode);
		if (err)
			diag_error(c->d, "attach", "", "interface %s: can't be attached again as it was: %s",
				   o->subject, strerror(-err));
	}
}

/* Before the switch; on failure everything is attached as before. */
static int attach_interfaces(struct commit *c)
{
	for (size_t i = 0; i < c->plan->operations; i++) {
		const struct plan_operation *o = &c->plan->operation[i];
		int err = 0;

		if (o->kind == PLAN_INTERFACE_REATTACH) {
			const struct config *was = c->running->state->config;

			datapath_detach(c->instance->pins,
					c->running->state->ifindex[interface_number(was, o->subject)]);
		}
		if (o->kind == PLAN_INTERFACE_ATTACH || o->kind == PLAN_INTERFACE_REATTACH)
			err = attach_interface(c, o->subject);
		if (err) {
			attach_back(c, i + 1);
			return err;
		}
	}
	return 0;
}

/* After the switch and the grace period: nothing that is undone here can be in use. */
static void execute_after(struct commit *c)
{
	const struct state *was = c->running->state;

	for (size_t i = 0; i < c->plan->operations; i++) {
		const struct plan_operation *o = &c->plan->operation[i];

		if (o->kind == PLAN_INTERFACE_DETACH)
			datapath_detach(c->instance->pins, was->ifindex[interface_number(was->config, o->subject)]);
	}
	aftermath(c->dp, c->next);
	release_neighbours(c->instance, c->nl, was, c->next);
}

static void commit_end(struct commit *c)
{
	nexthops_free(&c->hops);
	encode_end(&c->encoding);
	netlink_close(c->nl);
	free(c->attached);
}

static int open_netlink(struct commit *c)
{
	int err = netlink_open(&c->nl);

	if (err)
		diag_error(c->d, "netlink", "", "can't talk to the kernel's routing tables: %s", strerror(-err));
	return err;
}

int commit_attach(const struct instance *i, struct plan *plan, struct diag *d)
{
	struct commit c = { .instance = i, .plan = plan, .next = plan->next, .d = d };
	struct datapath_sizes sizes;
	bool pinned = false;
	int err = open_netlink(&c);

	if (err)
		return err;
	commit_sizes(c.next, &sizes);
	err = datapath_create(&sizes, &c.dp, d);
	if (!err)
		err = prepare(&c);
	if (!err) {
		encode_publish(&c.encoding);
		err = datapath_pin(c.dp, i->pins, d);
		pinned = !err;
	}
	if (!err)
		err = attach_interfaces(&c);
	if (!err)
		advise(c.nl, c.next, &c.hops, d);
	if (err)
		release_neighbours(i, c.nl, c.next, NULL);
	if (err && pinned)
		datapath_unpin(i->pins, d);
	datapath_free(c.dp);
	commit_end(&c);
	return err;
}

int commit_apply(const struct instance *i, struct running *r, struct plan *plan, struct diag *d)
{
	struct commit c = { .instance = i, .dp = r->dp, .running = r, .plan = plan, .next = plan->next, .d = d };
	int err = open_netlink(&c);

	if (err)
		return err;
	err = prepare(&c);
	if (!err)
		err = attach_interfaces(&c);
	if (!err) {
		size_t bytes;

		__atomic_fetch_or(&datapath_tables(c.dp, &bytes)->pending, RINGLB_PENDING_AFTERMATH, __ATOMIC_SEQ_CST);
		encode_publish(&c.encoding);
		err = datapath_wait(c.dp);
		if (err) /* published all the same; what is left is only not freed */
			diag_warning(d, "grace", "", "can't wait for packets under way: %s", strerror(-err));
		else
			execute_after(&c);
		advise(c.nl, c.next, &c.hops, d);
		err = 0;
	} else {
		release_neighbours(i, c.nl, c.next, r->state);
	}
	commit_end(&c);
	return err;
}

int commit_detach(const struct instance *i, struct running *r, struct diag *d)
{
	struct netlink *nl;
	int err = datapath_unpin(i->pins, d);

	if (!err && r && !netlink_open(&nl)) {
		release_neighbours(i, nl, r->state, NULL);
		netlink_close(nl);
	}
	return err;
}
