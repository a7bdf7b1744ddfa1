// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Checks through the data plane: what the daemon's probes send to a service address leaves by a device of the daemon's
 * own, and goes from there to the one backend that its mark names, as the data plane would send it: same headers, same
 * next hop, from the same maps.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "ringlb_abi.h"

#include "forward.bpf.h"

/* How each backend is sent to, by its index: that of the service whose address is asked. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, RINGLB_MAX_BACKENDS + 1);
	__type(key, __u32);
	__type(value, struct ringlb_probe_way);
} probe_ways SEC(".maps");

/* What the outer header says of the inner packet. */
static __always_inline bool describe(struct __sk_buff *skb, struct packet *p)
{
	__u8 head[2];

	if (bpf_skb_load_bytes(skb, 0, head, sizeof(head)))
		return false;
	p->length = skb->len;
	p->ipv6 = head[0] >> 4 == 6;
	p->tos = p->ipv6 ? (__u8)(head[0] << 4 | head[1] >> 4) : head[1];
	return true;
}

static __always_inline bool write_frame(struct __sk_buff *skb, const struct packet *p, const struct choice *c,
					const struct ringlb_backend *b, const struct way *w)
{
	struct ethhdr *eth = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	if ((void *)(eth + 1) > end)
		return false;
	write_addresses(eth, w->next_hop, w->output);
	eth->h_proto = w->ethertype;
	return !w->outer || write_outer((__u32 *)(eth + 1), p, c, b, w, end);
}

static __always_inline bool prepare(struct __sk_buff *skb, struct choice *c, struct ringlb_backend *b, __u32 *link)
{
	struct way w = { .link = ETH_HLEN, .next_hop = *(volatile __u64 *)&b->next_hop };
	__u32 slot = slot_of(w.next_hop);
	struct packet p = {};

	asm volatile("" : "+r"(slot));
	if (!w.next_hop || slot >= RINGLB_MAX_OUTPUTS || !describe(skb, &p))
		return false;
	w.output = &c->tables->outputs[slot];
	*link = w.output->ifindex; /* a VLAN's interface puts its tag on itself */
	set_outer(&p, c, b, &w);
	if (bpf_skb_change_head(skb, ETH_HLEN + w.outer, 0))
		return false;
	return write_frame(skb, &p, c, b, &w);
}

SEC("tc")
int probe(struct __sk_buff *skb)
{
	__u32 index = skb->mark & RINGLB_PROBE_BACKEND, zero = 0, link = 0;
	const struct ringlb_probe_way *way = bpf_map_lookup_elem(&probe_ways, &index);
	struct ringlb_backend *b = bpf_map_lookup_elem(&backends, &index);
	struct choice c = { .tables = bpf_map_lookup_elem(&tables, &zero), .position = bpf_get_hash_recalc(skb) };
	struct ringlb_service service = {};

	if ((skb->mark & RINGLB_PROBE_FIXED) != RINGLB_PROBE_MARK || !way || !b || !c.tables)
		return TC_ACT_SHOT;
	service.forward = way->forward;
	service.gue_port = way->gue_port;
	c.service = &service;
	c.root = &c.tables->roots[*(const volatile __u64 *)&c.tables->state & 1];
	if (!(b->flags & RINGLB_BACKEND_USED) || !prepare(skb, &c, b, &link))
		return TC_ACT_SHOT;
	return bpf_redirect(link, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
