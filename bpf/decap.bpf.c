// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * On a backend: takes the outer header off packets that the balancers sent (IPv4 or IPv6 in IPv4 or IPv6, or in UDP in
 * these: GUE, variant 1), for hosts without a tunnel device. Whatever does not come from the given prefixes, or has
 * options, extension headers, a UDP checksum or is a fragment, which balancers don't send, stays as it is.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "outer_header.h"
#include "parse.bpf.h"
#include "ringlb_abi.h"

/* Where GUE goes to; user space sets it before the load. 0: nowhere. */
const volatile __be16 gue_port;

#define ECN_MASK 3
#define ECN_CE 3

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, RINGLB_DECAP_MAX_PREFIXES);
	__type(key, struct ringlb_decap_prefix);
	__type(value, __u32);
} decap_from SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ringlb_decap_counters);
} decap_stats SEC(".maps");

struct outer {
	__u64 source[2];
	__u32 frame;   /* bytes of it, as is_cut() has them */
	__u32 link;    /* bytes of it before the IP header */
	__u32 length;  /* of the header, UDP's too */
	__u32 payload; /* behind the IP header */
	__u8 protocol;
	__u8 ecn;
};

static __always_inline bool parse_outer_ipv4(struct xdp_md *ctx, struct outer *o, void *network, void *end)
{
	struct iphdr *ip = network;

	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl * 4u != sizeof(*ip) ||
	    ip->frag_off & bpf_htons(FRAGMENT_MASK) || is_cut(ctx, o->link, bpf_ntohs(ip->tot_len), &o->frame))
		return false;
	o->source[0] = 0;
	o->source[1] = mapped_ipv4(ip->saddr);
	o->length = sizeof(*ip);
	o->payload = bpf_ntohs(ip->tot_len) - sizeof(*ip);
	o->protocol = ip->protocol;
	o->ecn = ip->tos & ECN_MASK;
	return true;
}

static __always_inline bool parse_outer_ipv6(struct xdp_md *ctx, struct outer *o, void *network, void *end)
{
	struct ipv6hdr *ip = network;

	if ((void *)(ip + 1) > end || ip->version != 6 ||
	    is_cut(ctx, o->link, bpf_ntohs(ip->payload_len) + sizeof(*ip), &o->frame))
		return false;
	__builtin_memcpy(o->source, &ip->saddr, sizeof(o->source));
	o->length = sizeof(*ip);
	o->payload = bpf_ntohs(ip->payload_len);
	o->protocol = ip->nexthdr;
	o->ecn = bpf_ntohs(*(__be16 *)ip) >> 4 & ECN_MASK;
	return true;
}

/* Of a packet in UDP the protocol that the version of what is inside stands for; false where it is none of ours. */
static __always_inline bool parse_gue(struct outer *o, void *transport, void *end)
{
	struct udphdr *udp = transport;
	__u8 *version = (void *)(udp + 1);

	if ((void *)(version + 1) > end || !gue_port || udp->dest != gue_port || udp->check ||
	    bpf_ntohs(udp->len) != o->payload)
		return false;
	o->length += sizeof(*udp);
	o->protocol = *version >> 4 == 4 ? IPPROTO_IPIP : *version >> 4 == 6 ? IPPROTO_IPV6 : 0;
	return o->protocol;
}

static __always_inline bool is_from_balancer(const struct outer *o)
{
	struct ringlb_decap_prefix key = { .length = 128 };

	__builtin_memcpy(key.address, o->source, sizeof(key.address));
	return bpf_map_lookup_elem(&decap_from, &key);
}

/* A congestion mark that the outer header got on the way is the inner packet's (RFC 6040). False: it has to be dropped. */
static __always_inline bool carry_ecn_ipv4(struct iphdr *ip)
{
	__u32 before = (__u32)ip->tos << 8;

	if (!(ip->tos & ECN_MASK))
		return false;
	ip->tos |= ECN_CE;
	/* RFC 1624 */
	ip->check = ~ringlb_fold((__u16)~ip->check + (__u16)~before + ((__u32)ip->tos << 8));
	return true;
}

static __always_inline bool carry_ecn_ipv6(struct ipv6hdr *ip)
{
	__u8 *byte = (__u8 *)ip + 1; /* the traffic class's lower half, and the flow label's first bits */

	if (!(*byte & ECN_MASK << 4))
		return false;
	*byte |= ECN_CE << 4;
	return true;
}

/* The inner packet's ethertype, or 0 where it is not what the outer header says. *drop: ECN forbids to pass it on. */
static __always_inline __be16 parse_inner(const struct outer *o, void *inner, void *end, bool *drop)
{
	if (o->protocol == IPPROTO_IPIP) {
		struct iphdr *ip = inner;

		if ((void *)(ip + 1) > end || ip->version != 4)
			return 0;
		*drop = o->ecn == ECN_CE && !carry_ecn_ipv4(ip);
		return bpf_htons(ETH_P_IP);
	}
	if (o->protocol == IPPROTO_IPV6) {
		struct ipv6hdr *ip = inner;

		if ((void *)(ip + 1) > end || ip->version != 6)
			return 0;
		*drop = o->ecn == ECN_CE && !carry_ecn_ipv6(ip);
		return bpf_htons(ETH_P_IPV6);
	}
	return 0;
}

/* Moves the link-layer header, VLAN tags included, over the outer header. */
static __always_inline bool strip(struct xdp_md *ctx, __u32 link, __u32 outer, __be16 ethertype)
{
	void *data = (void *)(long)ctx->data;
	__u32 mac[3], tag[MAX_VLAN_TAGS];
	struct ethhdr *last; /* as if what is before the last tag were no part of the frame */

	if (data + ETH_HLEN + sizeof(tag) > (void *)(long)ctx->data_end)
		return false;
	__builtin_memcpy(mac, data, sizeof(mac));
	__builtin_memcpy(tag, data + sizeof(mac), sizeof(tag));
	if (bpf_xdp_adjust_head(ctx, outer))
		return false;
	data = (void *)(long)ctx->data;
	last = data + (link - ETH_HLEN);
	if (data + ETH_HLEN + sizeof(tag) > (void *)(long)ctx->data_end ||
	    (void *)(last + 1) > (void *)(long)ctx->data_end)
		return false;
	__builtin_memcpy(data, mac, sizeof(mac));
	if (link > ETH_HLEN)
		*(__u32 *)(data + sizeof(mac)) = tag[0];
	if (link > ETH_HLEN + VLAN_HEADER)
		*(__u32 *)(data + sizeof(mac) + VLAN_HEADER) = tag[1];
	last->h_proto = ethertype;
	return true;
}

SEC("xdp.frags")
int decap(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 link, zero = 0;
	struct ringlb_decap_counters *count = bpf_map_lookup_elem(&decap_stats, &zero);
	__be16 ethertype = parse_link(data, end, &link);
	struct outer o = { .link = link };
	__u64 frame = end - data;
	bool drop = false;

	if (!count)
		return XDP_ABORTED;
	asm volatile("" : "+r"(frame)); /* or clang subtracts halves of pointers: "32-bit pointer arithmetic" */
	o.frame = frame;
	if (ethertype == bpf_htons(ETH_P_IP) ?
		    !parse_outer_ipv4(ctx, &o, data + link, end) :
		    ethertype != bpf_htons(ETH_P_IPV6) || !parse_outer_ipv6(ctx, &o, data + link, end))
		goto pass;
	if (o.protocol == IPPROTO_UDP && !parse_gue(&o, data + link + o.length, end))
		goto pass;
	if ((o.protocol != IPPROTO_IPIP && o.protocol != IPPROTO_IPV6) || !is_from_balancer(&o))
		goto pass;
	ethertype = parse_inner(&o, data + link + o.length, end, &drop);
	if (!ethertype)
		goto pass;
	if (drop) {
		count->dropped_ecn++;
		return XDP_DROP;
	}
	if (!strip(ctx, link, o.length, ethertype))
		return XDP_ABORTED;
	count->decapsulated++;
	return XDP_PASS;
pass:
	count->passed++;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
