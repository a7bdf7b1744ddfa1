/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "commit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../include/outer_header.h"
#include "advise.h"
#include "aftermath.h"
#include "manifest.h"
#include "nexthop.h"
#include "region.h"
#include "release.h"
#include "service_table.h"

#define WAIT_FOR_NEIGHBOURS_MS 1000
#define TABLES_ROOM (1u << 20)

/* One commit under way. */
struct commit {
	const struct instance *instance;
	struct datapath *dp;
	const struct running *running; /* NULL at attach */
	struct plan *plan;
	struct state *next; /* the plan's */
	struct netlink *nl;
	struct nexthops hops;
	struct regions regions;
	struct service_table services;
	uint32_t services_region;
	unsigned int *attached; /* interfaces attached by this commit, to be taken back when it fails */
	size_t attached_count;
	struct diag *d;
};

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
	struct service_table services;
	char *manifest = manifest_write(next);
	size_t need = RINGLB_TABLES_HEADER + RINGLB_TABLES_SLACK + strlen(manifest);
	uint32_t backends = 0;

	free(manifest);
	for (size_t i = 0; i < state_tables(next); i++) {
		need += state_table_at(next, i)->layout.length;
		backends += (uint32_t)state_table_at(next, i)->backends;
	}
	if (!service_table_layout(next->config, &services))
		need += services.length;
	need = 2 * need + TABLES_ROOM;
	*out = (struct datapath_sizes){
		.tables = need > RINGLB_MAX_TABLES_BYTES ? RINGLB_MAX_TABLES_BYTES : need,
		.backends = power_above(backends * 2, 256),
		.services = power_above((uint32_t)next->config->services * 2, 64),
		.flow_buckets = flow_buckets(next->config),
	};
	if (out->backends > RINGLB_MAX_BACKENDS)
		out->backends = RINGLB_MAX_BACKENDS;
	if (out->services > RINGLB_MAX_SERVICES)
		out->services = RINGLB_MAX_SERVICES;
}

static struct ringlb_tables *tables_of(struct commit *c, size_t *bytes)
{
	return datapath_tables(c->dp, bytes);
}

static int no_room(struct commit *c, const char *what)
{
	diag_error(
		c->d, "no-room", "",
		"the running instance has no room for %s: it was made for a smaller configuration: detach and attach again",
		what);
	return -ENOSPC;
}

/* That what the plan needs fits the maps that there are. */
static int check_capacity(struct commit *c)
{
	uint32_t count;

	datapath_backends(c->dp, &count);
	for (size_t i = 0; i < c->next->pools; i++)
		for (size_t j = 0; j < c->next->pool[i].backends; j++)
			if (c->next->pool[i].backend[j].index >= count)
				return no_room(c, "so many backends");
	for (size_t i = 0; i < c->next->config->services; i++)
		if (c->next->service_index[i] >= datapath_services(c->dp))
			return no_room(c, "so many services");
	datapath_flows(c->dp, &count);
	if (count != flow_buckets(c->next->config)) {
		diag_error(c->d, "flows", "",
			   "flows: the flow table's size can't be changed while attached: detach and attach again");
		return -EINVAL;
	}
	return 0;
}

static void regions_in_use(struct commit *c)
{
	size_t bytes;
	const struct ringlb_tables *t = tables_of(c, &bytes);
	const struct ringlb_root *root = &t->roots[t->state & 1];
	struct service_table old;

	regions_init(&c->regions, bytes);
	if (!c->running)
		return;
	for (size_t i = 0; i < state_tables(c->running->state); i++) {
		const struct state_pool *p = state_table_at(c->running->state, i);

		if (p->layout.bits)
			regions_add(&c->regions, p->region, p->layout.length);
	}
	if (!service_table_layout(c->running->state->config, &old))
		regions_add(&c->regions, root->services_slots, old.length);
	regions_add(&c->regions, root->manifest_off, root->manifest_len);
}

static int place_tables(struct commit *c)
{
	int err = service_table_layout(c->next->config, &c->services);

	if (err) {
		diag_error(c->d, "services", "",
			   "the services can't be arranged into a table: that is a bug, report it");
		return err;
	}
	regions_in_use(c);
	for (size_t i = 0; i < state_tables(c->next); i++) {
		struct state_pool *p = state_table_at(c->next, i);

		if (p->region || !p->layout.bits)
			continue;
		p->region = regions_take(&c->regions, p->layout.length);
		if (!p->region)
			return no_room(c, "the tables");
	}
	c->services_region = regions_take(&c->regions, c->services.length);
	return c->services_region ? 0 : no_room(c, "the services");
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

static void write_backend(struct commit *c, struct state_backend *b)
{
	uint32_t count;
	struct ringlb_backend *entry = &datapath_backends(c->dp, &count)[b->index];
	__be32 address;

	b->incarnation = (uint16_t)(entry->incarnation + 1);
	if (!b->incarnation)
		b->incarnation = 1;
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->address, b->address.byte, sizeof(entry->address));
	memcpy(&address, &b->address.byte[12], sizeof(address));
	entry->incarnation = b->incarnation;
	if (address_is_ipv4(&b->address))
		entry->outer_sum = ringlb_outer_sum(address);
	entry->flags = (uint8_t)(RINGLB_BACKEND_USED | (address_is_ipv4(&b->address) ? 0 : RINGLB_BACKEND_IPV6));
	datapath_clear_backend_counter(c->dp, b->index);
}

static void write_table(struct commit *c, const struct state_pool *p)
{
	size_t bytes;
	char *base = (char *)tables_of(c, &bytes) + p->region;
	uint16_t *owner = xcalloc(p->backends + 1, sizeof(*owner));

	for (size_t i = 0; i < p->backends; i++)
		owner[i] = p->backend[i].index;
	owner[STATE_NOBODY(p)] = RINGLB_NO_BACKEND;
	table_encode(&p->arcs, owner, p->backends + 1, &p->layout, base);
	free(owner);
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
			write_backend(c, &c->next->pool[o->pool].backend[o->backend]);
		else if (o->kind == PLAN_TABLE_BUILD)
			write_table(c, &c->next->pool[o->pool]);
		else if (o->kind == PLAN_OWN_BUILD)
			write_table(c, &c->next->own[o->pool].table);
	}
	complete_owns(c);
}

/* Fills in the side that is not in use. */
static int write_root(struct commit *c)
{
	size_t bytes;
	struct ringlb_tables *t = tables_of(c, &bytes);
	struct ringlb_root *root = &t->roots[~t->state & 1];
	const struct config *want = c->next->config;
	uint32_t region;
	char *manifest;

	memset(root, 0, sizeof(*root));
	memcpy(root->hash_key, want->hash_key, sizeof(root->hash_key));
	if (want->has_tunnel4)
		memcpy(&root->tunnel4, &want->tunnel4.byte[12], sizeof(root->tunnel4));
	if (want->has_tunnel6)
		memcpy(root->tunnel6, want->tunnel6.byte, sizeof(root->tunnel6));
	service_table_encode(c->next, &c->services, c->services_region, (char *)t + c->services_region, root);
	root->generation = c->next->generation;
	c->next->revision = (t->state >> 1) + 1;
	manifest = manifest_write(c->next);
	root->manifest_len = (uint32_t)strlen(manifest);
	region = regions_take(&c->regions, root->manifest_len);
	if (region) {
		memcpy((char *)t + region, manifest, root->manifest_len);
		root->manifest_off = region;
	}
	free(manifest);
	return region ? 0 : no_room(c, "the manifest");
}

static void publish(struct commit *c)
{
	size_t bytes;
	struct ringlb_tables *t = tables_of(c, &bytes);

	__atomic_store_n(&t->state, c->next->revision << 1 | (~t->state & 1), __ATOMIC_SEQ_CST);
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
		err = place_tables(c);
	if (!err)
		err = nexthops_resolve(c->nl, c->next, adds_backends(c->plan) ? WAIT_FOR_NEIGHBOURS_MS : 0, &c->hops);
	if (!err)
		err = nexthops_outputs(c->nl, c->dp, &c->hops, c->d);
	if (err)
		return err;
	execute_before(c);
	nexthops_write(c->dp, c->next, &c->hops);
	return write_root(c);
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

/* Before the switch: a failure takes back what this commit attached. */
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
			for (size_t j = 0; j < c->attached_count; j++)
				datapath_detach(c->instance->pins, c->attached[j]);
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
	regions_free(&c->regions);
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
		publish(&c);
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
	err = check_capacity(&c);
	if (!err)
		err = prepare(&c);
	if (!err)
		err = attach_interfaces(&c);
	if (!err) {
		size_t bytes;

		__atomic_store_n(&tables_of(&c, &bytes)->pending, 1, __ATOMIC_SEQ_CST);
		publish(&c);
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
