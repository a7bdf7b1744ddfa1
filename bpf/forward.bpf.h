/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steps 5 and 6: the next hop on the way to a backend, whether the packet fits that way, and the frame as it leaves. */
#ifndef RINGLB_FORWARD_BPF_H
#define RINGLB_FORWARD_BPF_H

#include "answer.bpf.h"
#include "maps.bpf.h"
#include "outer_header.h"
#include "parse.bpf.h"
#include "service.bpf.h"

#define FAMILY_IPV4 2 /* AF_INET and AF_INET6; <sys/socket.h> is not for BPF */
#define FAMILY_IPV6 10

#define FLOW_LABEL_MASK 0xfffffu

static __always_inline __u32 slot_of(__u64 next_hop)
{
	return next_hop & 0xffff;
}

static __always_inline void fib_request(struct bpf_fib_lookup *fib, const struct ringlb_backend *b,
					const __u64 source[2])
{
	if (b->flags & RINGLB_BACKEND_IPV6) {
		fib->family = FAMILY_IPV6;
		__builtin_memcpy(fib->ipv6_src, source, sizeof(fib->ipv6_src));
		__builtin_memcpy(fib->ipv6_dst, b->address, sizeof(fib->ipv6_dst));
	} else {
		fib->family = FAMILY_IPV4;
		fib->ipv4_src = unmapped_ipv4(source[1]);
		fib->ipv4_dst = *(__be32 *)(b->address + 12);
	}
}

/* What a backend's next hop is looked up with. No pointers and no padding: for a global function. */
struct hop_query {
	__u64 client[2];
	__u32 backend;
	__u16 side;
	__u16 forward; /* enum ringlb_forward */
};

/*
 * Asks the kernel; where it has no answer the entry keeps what it has. The source matters to rules: it is the client's
 * address where the packet stays as it is, else the tunnel's.
 */
static __always_inline void refresh_route(struct xdp_md *ctx, const struct ringlb_tables *t, const struct hop_query *q,
					  struct ringlb_backend *b)
{
	const struct ringlb_root *root = &t->roots[q->side & 1];
	struct bpf_fib_lookup fib = { .ifindex = ctx->ingress_ifindex };
	__u64 source[2] = { q->client[0], q->client[1] };

	if (q->forward != RINGLB_FORWARD_L2 && b->flags & RINGLB_BACKEND_IPV6)
		__builtin_memcpy(source, root->tunnel6, sizeof(source));
	else if (q->forward != RINGLB_FORWARD_L2)
		source[1] = mapped_ipv4(root->tunnel4);
	fib_request(&fib, b, source);
	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0))
		return;
	for (__u32 slot = 0; slot < RINGLB_MAX_OUTPUTS; slot++) {
		__u64 mac = 0;

		if (t->outputs[slot].ifindex != fib.ifindex)
			continue;
		__builtin_memcpy(&mac, fib.dmac, sizeof(fib.dmac));
		*(volatile __u64 *)&b->next_hop = bpf_be64_to_cpu(mac) | slot;
		b->route_mtu = fib.mtu_result;
		return;
	}
}

/* What the route allows, and while it counts what a router behind it has told of. */
static __always_inline void refresh_mtu(const struct ringlb_tables *t, struct ringlb_backend *b)
{
	const struct ringlb_path_mtu *path;
	__u16 mtu = b->route_mtu;
	__u64 key[2];

	__builtin_memcpy(key, b->address, sizeof(key));
	path = bpf_map_lookup_elem(&path_mtus, key);
	if (path && t->hz && (__s32)(path->until - (__u32)(bpf_jiffies64() / t->hz)) > 0) {
		b->path_mtu = path->mtu;
		mtu = mtu && mtu < path->mtu ? mtu : path->mtu;
	} else if (b->path_mtu) {
		b->path_mtu = 0;
	}
	b->mtu = mtu;
}

__noinline int refresh_next_hop(struct xdp_md *ctx, struct hop_query *q)
{
	const struct ringlb_tables *t = tables_again();
	struct ringlb_backend *b;
	__u32 backend;

	if (!q || !t)
		return 0;
	backend = q->backend; /* kernel 6.1 takes a key from the stack only */
	b = bpf_map_lookup_elem(&backends, &backend);
	if (!b)
		return 0;
	refresh_route(ctx, t, q, b);
	refresh_mtu(t, b);
	return 0;
}

/*
 * Struct ringlb_backend.next_hop, looked up again when it is older than a second, or, while unresolved, a tick; by
 * whoever changes the stamp first.
 */
static __always_inline __u64 next_hop(struct xdp_md *ctx, const struct packet *p, const struct choice *c,
				      struct ringlb_backend *b)
{
	__u64 known = *(volatile __u64 *)&b->next_hop;
	__u32 now = bpf_jiffies64(), stamp = *(volatile __u32 *)&b->next_hop_stamp;
	struct hop_query q;

	if (likely(now - stamp < (known ? c->tables->hz : 1)) ||
	    __sync_val_compare_and_swap(&b->next_hop_stamp, stamp, now) != stamp)
		return known;
	q = (struct hop_query){
		.client = { p->client[0], p->client[1] },
		.backend = c->backend,
		.side = c->side,
		.forward = c->service->forward,
	};
	refresh_next_hop(ctx, &q);
	return *(volatile __u64 *)&b->next_hop;
}

/*
 * What a flow has of its own in the outer header, so that routers and receivers that spread by it keep a flow's packets
 * together: the UDP source port, from the range that no service listens in, or bits of the source address.
 */
#define ENTROPY_PORT_BASE 0xc000u
#define ENTROPY_PORT_MASK 0x3fffu

static __always_inline __be32 outer_source(const struct choice *c)
{
	return c->root->tunnel4 | (bpf_htonl(c->position) & c->root->entropy4);
}

static __always_inline __u8 outer_protocol(const struct packet *p, const struct choice *c)
{
	if (c->service->forward == RINGLB_FORWARD_GUE)
		return IPPROTO_UDP;
	return p->ipv6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
}

/*
 * DSCP and ECN are the inner packet's (RFC 2983, RFC 6040). DF is set whatever the inner packet says: what is too long
 * was answered before, and fragments of outer packets would cost the backend more than that answer costs the client.
 * Bytes behind the inner packet's end stay behind the outer one's. `length` is the whole's.
 */
static __always_inline void write_outer_ipv4(__u32 *word, const struct packet *p, const struct choice *c,
					     const struct ringlb_backend *b, __u32 length)
{
	__u8 protocol = outer_protocol(p, c);
	__be32 source = outer_source(c);

	word[0] = RINGLB_OUTER_VERSION_IHL | (__u32)p->tos << 8 | (__u32)bpf_htons(length) << 16;
	word[1] = RINGLB_OUTER_DF << 16;
	word[2] = RINGLB_OUTER_TTL | (__u32)protocol << 8 |
		  (__u32)ringlb_outer_check(b->outer_sum, source, p->tos, bpf_htons(length), protocol) << 16;
	word[3] = source;
	word[4] = *(__be32 *)(b->address + 12);
}

/* The flow label is the flow's (RFC 6438). */
static __always_inline void write_outer_ipv6(__u32 *word, const struct packet *p, const struct choice *c,
					     const struct ringlb_backend *b, __u32 length)
{
	word[0] = bpf_htonl(6u << 28 | (__u32)p->tos << 20 | (c->position & FLOW_LABEL_MASK));
	word[1] = bpf_htons(length - sizeof(struct ipv6hdr)) | (__u32)outer_protocol(p, c) << 16 |
		  (__u32)RINGLB_OUTER_TTL << 24;
	__builtin_memcpy(word + 2, c->root->tunnel6, sizeof(c->root->tunnel6));
	word[5] |= bpf_htonl(c->position) & c->root->entropy6;
	__builtin_memcpy(word + 6, b->address, sizeof(b->address));
}

/*
 * GUE, variant 1: the inner packet stands behind the UDP header at once, and its version tells it apart. No checksum:
 * IPv4 needs none (RFC 768), and over IPv6 tunnels may do without (RFC 6935, RFC 6936), since the inner packet has its
 * own and the receiver checks the addresses. Summing the payload would cost more than all the rest.
 */
static __always_inline void write_outer_udp(__u32 *word, const struct packet *p, const struct choice *c)
{
	__be16 source = bpf_htons(ENTROPY_PORT_BASE | (c->position & ENTROPY_PORT_MASK));

	word[0] = source | (__u32)c->service->gue_port << 16;
	word[1] = bpf_htons(p->length + sizeof(struct udphdr));
}

static __always_inline void write_addresses(struct ethhdr *eth, __u64 hop, const struct ringlb_output *out)
{
	__u64 be = bpf_cpu_to_be64(hop);

	*(__u32 *)eth->h_dest = be;
	*(__u16 *)(eth->h_dest + 4) = be >> 32;
	*(__u16 *)eth->h_source = *(const __u16 *)out->mac;
	*(__u32 *)(eth->h_source + 2) = *(const __u32 *)(out->mac + 2);
}

struct way {
	const struct ringlb_output *output;
	__u64 next_hop;
	__u32 link;  /* bytes of the frame's link-layer header: with VLAN tags or without */
	__u32 outer; /* bytes of the outer header, with UDP's */
	__be16 ethertype;
	bool keeps_tags; /* those it came with */
};

/* The one place where the packet's head moves. `tags`: what stood behind the MAC addresses. */
static __always_inline struct ethhdr *move_head(struct xdp_md *ctx, const struct packet *p, const struct way *w,
						__u64 *tags)
{
	int delta = (int)p->network - (int)(w->link + w->outer);
	void *data = (void *)(long)ctx->data;

	if (w->keeps_tags && w->link > ETH_HLEN) {
		if (data + ETH_HLEN + MAX_VLAN_TAGS * VLAN_HEADER > (void *)(long)ctx->data_end)
			return NULL;
		*tags = *(__u64 *)(data + 2 * ETH_ALEN);
	}
	if (delta && bpf_xdp_adjust_head(ctx, delta))
		return NULL;
	return (void *)(long)ctx->data;
}

static __always_inline bool write_outer(__u32 *word, const struct packet *p, const struct choice *c,
					const struct ringlb_backend *b, const struct way *w, const void *end)
{
	if (w->ethertype == bpf_htons(ETH_P_IPV6)) {
		if ((void *)word + sizeof(struct ipv6hdr) > end)
			return false;
		write_outer_ipv6(word, p, c, b, p->length + w->outer);
		word += sizeof(struct ipv6hdr) / sizeof(*word);
	} else {
		if ((void *)word + sizeof(struct iphdr) > end)
			return false;
		write_outer_ipv4(word, p, c, b, p->length + w->outer);
		word += sizeof(struct iphdr) / sizeof(*word);
	}
	if (c->service->forward != RINGLB_FORWARD_GUE)
		return true;
	if ((void *)word + sizeof(struct udphdr) > end)
		return false;
	write_outer_udp(word, p, c);
	return true;
}

/* The checksum as RFC 1141 has it. */
static __always_inline bool decrement_ttl(struct xdp_md *ctx, const struct packet *p)
{
	void *network = (void *)(long)ctx->data + (p->network & MAX_NETWORK), *end = (void *)(long)ctx->data_end;

	if (p->ipv6) {
		struct ipv6hdr *ip = network;

		if ((void *)(ip + 1) > end)
			return false;
		ip->hop_limit--;
	} else {
		struct iphdr *ip = network;
		__u32 check;

		if ((void *)(ip + 1) > end)
			return false;
		ip->ttl--;
		check = ip->check + bpf_htons(0x0100);
		ip->check = check + (check >= 0xffff);
	}
	return true;
}

static __always_inline bool write_tags(struct ethhdr *eth, void *end, const struct way *w, __u64 tags)
{
	__u32 *tag = (void *)eth + 2 * ETH_ALEN;

	if ((void *)(tag + MAX_VLAN_TAGS) > end)
		return false;
	tag[0] = tags;
	if (w->link > ETH_HLEN + VLAN_HEADER)
		tag[1] = tags >> 32;
	return true;
}

static __always_inline enum ringlb_verdict rewrite(struct xdp_md *ctx, const struct packet *p, const struct choice *c,
						   const struct ringlb_backend *b, const struct way *w)
{
	__u64 tags = w->output->vlan_protocol | (__u32)w->output->vlan_tag << 16;
	struct ethhdr *eth = move_head(ctx, p, w, &tags);
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *last; /* as if what is before the last tag were no part of the frame */

	if (!eth)
		return RINGLB_VERDICT_DROPPED_NO_HEADROOM;
	last = (void *)eth + (w->link - ETH_HLEN);
	if ((void *)(eth + 1) > end || (void *)(last + 1) > end)
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	write_addresses(eth, w->next_hop, w->output);
	if (unlikely(w->link > ETH_HLEN) && !write_tags(eth, end, w, tags))
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	last->h_proto = w->ethertype;
	if (w->outer && !write_outer((__u32 *)(last + 1), p, c, b, w, end))
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	return GO_ON;
}

/* Frames go out of the link that they came in through with the tags that they came with, unless the route says others. */
static __always_inline void set_link(const struct packet *p, bool same_link, struct way *w)
{
	w->link = ETH_HLEN;
	if (unlikely(w->output->vlan_protocol)) {
		w->link += VLAN_HEADER;
	} else if (same_link) {
		w->link = p->network;
		w->keeps_tags = true;
	}
}

static __always_inline void set_outer(const struct packet *p, const struct choice *c, const struct ringlb_backend *b,
				      struct way *w)
{
	bool ipv6 = p->ipv6;

	if (c->service->forward != RINGLB_FORWARD_L2) {
		ipv6 = b->flags & RINGLB_BACKEND_IPV6;
		w->outer = ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
		if (c->service->forward == RINGLB_FORWARD_GUE)
			w->outer += sizeof(struct udphdr);
	}
	w->ethertype = ipv6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
}

/*
 * Bytes that a packet may have on this way, outer header included; nothing is too long for one that is not known. What
 * routers told of outer packets says nothing of those that have none: these go to a host on the link.
 */
static __always_inline __u32 way_mtu(const struct ringlb_backend *b, const struct ringlb_output *out, bool tunnel)
{
	const volatile __u16 *known = tunnel ? &b->mtu : &b->route_mtu;
	__u16 way = *known - 1, output = out->mtu - 1;

	return (way < output ? way : output) + 1u;
}

/* GO_ON, or what becomes of a packet that can't go this way; c->mtu is what can. */
static __always_inline enum ringlb_verdict check_way(struct xdp_md *ctx, const struct packet *p, struct choice *c,
						     const struct ringlb_backend *b, const struct way *w)
{
	__u32 mtu = way_mtu(b, w->output, w->outer);

	if (likely(p->ttl > 1 && p->length + w->outer <= mtu))
		return GO_ON;
	c->mtu = mtu > w->outer ? mtu - w->outer : 0;
	return refuse_packet(ctx, p, &c->mtu);
}

/* Sends the packet to the backend. *action is set where the verdict is GO_ON. */
static __always_inline enum ringlb_verdict forward(struct xdp_md *ctx, const struct packet *p, struct choice *c,
						   struct ringlb_backend *b, int *action)
{
	struct way w = { .next_hop = next_hop(ctx, p, c, b) };
	__u32 slot = slot_of(w.next_hop);
	enum ringlb_verdict verdict;
	bool same_link;

	if (!w.next_hop)
		return RINGLB_VERDICT_DROPPED_NO_NEIGHBOUR;
	if (slot == RINGLB_OUTPUT_LOCAL) { /* the host has the service's address too, and takes the packet as it is */
		*action = XDP_PASS;
		return GO_ON;
	}
	asm volatile("" : "+r"(slot)); /* kernel 6.1 forgets the bound of a value that clang spilled and loads again */
	if (slot >= RINGLB_MAX_OUTPUTS)
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	w.output = &c->tables->outputs[slot];
	same_link = w.output->link == ctx->ingress_ifindex;
	set_link(p, same_link, &w);
	set_outer(p, c, b, &w);
	verdict = check_way(ctx, p, c, b, &w);
	if (unlikely(verdict != GO_ON))
		return verdict;
	if (!decrement_ttl(ctx, p))
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	verdict = rewrite(ctx, p, c, b, &w);
	if (verdict != GO_ON)
		return verdict;
	*action = same_link ? XDP_TX : bpf_redirect_map(&outputs, slot, XDP_ABORTED);
	return *action == XDP_ABORTED ? RINGLB_VERDICT_DROPPED_INTERNAL : GO_ON;
}

/* What forward() would say of the packet's size and hops, by the next hop as it is known; changes nothing. */
static __always_inline enum ringlb_verdict foresee(struct xdp_md *ctx, const struct packet *p, struct choice *c)
{
	__u32 backend = c->backend, slot;
	const struct ringlb_backend *b = bpf_map_lookup_elem(&backends, &backend);
	struct way w = {};

	if (!b)
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	w.next_hop = *(const volatile __u64 *)&b->next_hop;
	slot = slot_of(w.next_hop);
	asm volatile("" : "+r"(slot));
	if (!w.next_hop || slot >= RINGLB_MAX_OUTPUTS)
		return GO_ON;
	w.output = &c->tables->outputs[slot];
	set_outer(p, c, b, &w);
	return check_way(ctx, p, c, b, &w);
}

#endif
