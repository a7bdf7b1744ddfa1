/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "commit.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "advise.h"
#include "aftermath.h"
#include "nexthop.h"
#include "release.h"
#include "room.h"
#include "totals.h"

#define WAIT_FOR_NEIGHBOURS_MS 1000

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

static size_t interface_number(const struct config *c, const char *name)
{
	size_t i = 0;

	while (i < c->interfaces && strcmp(c->interface[i], name))
		i++;
	return i;
}

/* Where the program sits that runs for the interface of this name: under a name that it has had, too. */
static unsigned int former_ifindex(const struct commit *c, const char *name)
{
	const struct state *was = c->running->state;
	size_t number = interface_number(was->config, name);

	return number < was->config->interfaces ? was->ifindex[number] :
						  c->next->ifindex[interface_number(c->next->config, name)];
}

/* An interface that runs and is gone must not keep the operator from changing anything else. */
static bool keeps_place(struct commit *c, size_t interface)
{
	const struct state *was = c->running ? c->running->state : NULL;
	size_t number = was ? interface_number(was->config, c->next->config->interface[interface]) : 0;

	if (!was || number == was->config->interfaces)
		return false;
	c->next->ifindex[interface] = was->ifindex[number];
	return true;
}

static void warn_of_absence(struct commit *c, size_t interface)
{
	const char *name = c->next->config->interface[interface];
	char now[IF_NAMESIZE];

	if (if_indextoname(c->next->ifindex[interface], now))
		diag_warning(
			c->d, "renamed", "",
			"interface %s is called %s now: packets still come through it, and it stays attached; name it "
			"so in the file",
			name, now);
	else
		diag_warning(
			c->d, "no-interface", "",
			"interface %s is gone: packets no longer come through it; apply attaches it again when it is "
			"back",
			name);
}

static int find_interfaces(struct commit *c)
{
	const struct config *want = c->next->config;
	int err = 0;

	for (size_t i = 0; i < want->interfaces; i++) {
		struct link_info link;
		int one = link_by_name(c->nl, want->interface[i], &link);

		c->next->ifindex[i] = one ? 0 : link.ifindex;
		if (one == -ENODEV && keeps_place(c, i)) {
			warn_of_absence(c, i);
			continue;
		}
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
		err = room_make(c->instance, c->running, c->dp, c->next, &c->encoding, c->d);
	if (c->running)
		c->dp = c->running->dp; /* another one where it has grown */
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

static int attach_failed(struct commit *c, const char *name, unsigned int ifindex, enum datapath_mode mode, int err)
{
	char who[128] = "", *other;
	bool by_link;

	if (err == -EBUSY || err == -EEXIST) {
		by_link = datapath_describe(ifindex, who, sizeof(who));
		other = by_link ? datapath_holder(c->instance->bpffs, ifindex) : NULL;
		if (other)
			diag_error(
				c->d, "busy", "",
				"interface %s: instance %s of ringlb is attached there: \"ringlb -i %s detach\" takes it "
				"off",
				name, other, other);
		else if (by_link)
			diag_error(
				c->d, "busy", "",
				"interface %s already has an XDP program%s%s, which a BPF link holds there: the program that "
				"put it there takes it off, or \"bpftool link detach id ID\" (bpftool link shows the ID)",
				name, who[0] ? ": " : "", who);
		else
			diag_error(
				c->d, "busy", "",
				"interface %s already has an XDP program%s%s: take it off first (ip link set dev %s xdp off)",
				name, who[0] ? ": " : "", who, name);
		free(other);
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
		was = running_link_on(c->running, former_ifindex(c, o->subject));
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

		if (o->kind == PLAN_INTERFACE_REATTACH)
			datapath_detach(c->instance->pins, former_ifindex(c, o->subject));
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
		int err;

		if (o->kind != PLAN_INTERFACE_DETACH)
			continue;
		err = datapath_detach(c->instance->pins, was->ifindex[interface_number(was->config, o->subject)]);
		if (err)
			diag_warning(c->d, "detach", "",
				     "interface %s: can't be detached: %s: the next command tries again", o->subject,
				     strerror(-err));
	}
	aftermath_of(c->dp, was, c->next);
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
	if (!err)
		totals_remove(i);
	return err;
}
