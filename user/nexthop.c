/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nexthop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_MS 10

static int hop_order(const void *a, const void *b)
{
	return address_compare(&((const struct nexthop *)a)->address, &((const struct nexthop *)b)->address);
}

/* Every backend's address once. */
static void collect(const struct state *s, struct nexthops *out)
{
	size_t all = 0, n = 0;

	for (size_t i = 0; i < state_tables(s); i++)
		all += state_table_at(s, i)->backends;
	out->hop = xcalloc(all + 1, sizeof(*out->hop));
	for (size_t i = 0; i < state_tables(s); i++) {
		const struct state_pool *p = state_table_at(s, i);

		for (size_t j = 0; j < p->backends; j++)
			out->hop[n++] = (struct nexthop){ .address = p->backend[j].address,
							  .name = p->backend[j].name };
	}
	qsort(out->hop, all, sizeof(*out->hop), hop_order);
	for (size_t i = 0; i < all; i++)
		if (!out->count || hop_order(&out->hop[out->count - 1], &out->hop[i]))
			out->hop[out->count++] = out->hop[i];
	for (size_t i = 0; i < out->count; i++)
		out->hop[i].name = xstrdup(out->hop[i].name);
}

/* True while there is hope. */
static bool ask(struct netlink *nl, struct nexthop *h)
{
	if (h->has_route && !h->route.local)
		h->error = neighbour_get(nl, h->route.ifindex, &h->route.gateway, h->mac);
	return h->error == -EAGAIN || h->error == -ENOENT;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int nexthops_resolve(struct netlink *nl, const struct state *s, int wait_ms, struct nexthops *out)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	int64_t end = now_ms() + wait_ms; /* asking thousands takes its time, too */
	size_t waiting = 0;

	memset(out, 0, sizeof(*out));
	collect(s, out);
	for (size_t i = 0; i < out->count; i++) {
		struct nexthop *h = &out->hop[i];

		h->error = route_get(nl, &h->address, &h->route);
		h->has_route = !h->error;
		if (h->has_route && !h->route.local)
			h->error = neighbour_manage(nl, h->route.ifindex, &h->route.gateway);
		if (!h->error)
			waiting += ask(nl, h);
	}
	/* the kernel answers within a millisecond or two where the neighbour lives; netlink has no "tell me when" for one */
	while (waiting && wait_ms > 0 && now_ms() < end) {
		nanosleep(&pause, NULL);
		waiting = 0;
		for (size_t i = 0; i < out->count; i++)
			if (out->hop[i].error == -EAGAIN || out->hop[i].error == -ENOENT)
				waiting += ask(nl, &out->hop[i]);
	}
	return 0;
}

/* Backends that were reached through it must not be sent to the interface that gets it next. */
static void forget_slot(struct datapath *dp, uint16_t slot)
{
	uint32_t count;
	struct ringlb_backend *backend = datapath_backends(dp, &count);

	for (uint32_t i = 0; i < count; i++) {
		__u64 next_hop = __atomic_load_n(&backend[i].next_hop, __ATOMIC_ACQUIRE);

		if (next_hop && (uint16_t)next_hop == slot)
			__atomic_compare_exchange_n(&backend[i].next_hop, &next_hop, 0, false, __ATOMIC_ACQ_REL,
						    __ATOMIC_ACQUIRE);
	}
}

/* The slot of an interface: its own, else a free one, else one whose interface is gone. */
static int slot_for(struct netlink *nl, struct datapath *dp, struct ringlb_tables *t, unsigned int ifindex)
{
	struct link_info gone;

	for (int i = 0; i < (int)RINGLB_MAX_OUTPUTS; i++)
		if (t->outputs[i].ifindex == ifindex)
			return i;
	for (int i = 0; i < (int)RINGLB_MAX_OUTPUTS; i++)
		if (!t->outputs[i].ifindex)
			return i;
	for (int i = 0; i < (int)RINGLB_MAX_OUTPUTS; i++)
		if (link_by_index(nl, t->outputs[i].ifindex, &gone) == -ENODEV) {
			forget_slot(dp, (uint16_t)i);
			return i;
		}
	return -ENOSPC;
}

int nexthops_outputs(struct netlink *nl, struct datapath *dp, struct nexthops *hops, struct diag *d)
{
	size_t bytes;
	struct ringlb_tables *t = datapath_tables(dp, &bytes);

	for (size_t i = 0; i < hops->count; i++) {
		struct nexthop *h = &hops->hop[i];
		struct link_info link;
		unsigned int through;
		int slot, err;

		if (!h->has_route || h->route.local || link_by_index(nl, h->route.ifindex, &link))
			continue;
		slot = slot_for(nl, dp, t, link.ifindex);
		if (slot < 0) {
			diag_error(
				d, "too-many-outputs", "",
				"backends are reached through more than %u interfaces, the most there can be: route some of "
				"them through a common one",
				RINGLB_MAX_OUTPUTS);
			return slot;
		}
		h->slot = (uint8_t)slot;
		t->outputs[slot].mtu = link.mtu > UINT16_MAX ? UINT16_MAX : (uint16_t)link.mtu;
		memcpy(t->outputs[slot].mac, link.mac, sizeof(link.mac));
		through = link.below ? link.below : link.ifindex;
		t->outputs[slot].vlan_protocol = htons(link.vlan_protocol);
		t->outputs[slot].vlan_tag = htons(link.vlan_id);
		__atomic_store_n(&t->outputs[slot].link, through, __ATOMIC_RELEASE);
		err = t->outputs[slot].ifindex == link.ifindex ? 0 : datapath_set_output(dp, h->slot, through);
		if (err) {
			diag_error(d, "output", "", "interface %s can't be a redirect target: %s", link.name,
				   strerror(-err));
			return err;
		}
		__atomic_store_n(&t->outputs[slot].ifindex, link.ifindex, __ATOMIC_RELEASE);
	}
	return 0;
}

static uint64_t next_hop_word(const struct nexthop *h)
{
	uint64_t mac = 0;

	for (int i = 0; i < 6; i++)
		mac = mac << 8 | h->mac[i];
	return mac << 16 | h->slot;
}

/* What a router has told of stays while it is the smaller one: the data plane knows for how long. */
static void write_mtu(struct ringlb_backend *b, uint32_t route)
{
	uint16_t mtu = route > UINT16_MAX ? UINT16_MAX : (uint16_t)route;

	b->route_mtu = mtu;
	b->mtu = b->path_mtu && b->path_mtu < mtu ? b->path_mtu : mtu;
}

void nexthops_write(struct datapath *dp, const struct state *s, const struct nexthops *hops)
{
	uint32_t count;
	struct ringlb_backend *backend = datapath_backends(dp, &count);

	for (size_t i = 0; i < state_tables(s); i++)
		for (size_t j = 0; j < state_table_at(s, i)->backends; j++) {
			const struct state_backend *b = &state_table_at(s, i)->backend[j];
			const struct nexthop *h = nexthops_find(hops, &b->address);

			if (!h || !h->has_route || b->index >= count)
				continue;
			write_mtu(&backend[b->index], h->route.mtu);
			if (!h->error) /* else what was known stays: better than nothing */
				__atomic_store_n(&backend[b->index].next_hop,
						 h->route.local ? RINGLB_OUTPUT_LOCAL : next_hop_word(h),
						 __ATOMIC_RELEASE);
		}
}

static bool goes_through(const struct nexthops *hops, const struct route *r)
{
	for (size_t i = 0; i < hops->count; i++)
		if (hops->hop[i].has_route && hops->hop[i].route.ifindex == r->ifindex &&
		    address_equal(&hops->hop[i].route.gateway, &r->gateway))
			return true;
	return false;
}

void nexthops_release(struct netlink *nl, const struct state *old, const struct nexthops *keep, size_t keeps)
{
	struct nexthops were = { 0 };

	collect(old, &were);
	for (size_t i = 0; i < were.count; i++) {
		struct nexthop *h = &were.hop[i];
		bool needed = route_get(nl, &h->address, &h->route) || h->route.local;

		for (size_t j = 0; j < keeps && !needed; j++)
			needed = nexthops_find(&keep[j], &h->address) || goes_through(&keep[j], &h->route);
		if (!needed)
			neighbour_unmanage(nl, h->route.ifindex, &h->route.gateway);
	}
	nexthops_free(&were);
}

const struct nexthop *nexthops_find(const struct nexthops *hops, const struct address *address)
{
	const struct nexthop key = { .address = *address };

	return bsearch(&key, hops->hop, hops->count, sizeof(key), hop_order);
}

bool nexthops_covered(const struct state *s, const struct state *by)
{
	struct nexthops mine = { 0 }, theirs = { 0 };
	bool covered = true;

	collect(s, &mine);
	collect(by, &theirs);
	for (size_t i = 0; i < mine.count && covered; i++)
		covered = nexthops_find(&theirs, &mine.hop[i].address) != NULL;
	nexthops_free(&mine);
	nexthops_free(&theirs);
	return covered;
}

void nexthops_free(struct nexthops *hops)
{
	for (size_t i = 0; i < hops->count; i++)
		free(hops->hop[i].name);
	free(hops->hop);
	memset(hops, 0, sizeof(*hops));
}
