/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Step 1: what a frame is. Reads the packet only here; later steps work on struct packet, so that nothing has to be read
 * again after the packet's head has moved.
 */
#ifndef RINGLB_PARSE_BPF_H
#define RINGLB_PARSE_BPF_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "ringlb_abi.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* A step returns the verdict that ends the packet's way, or this. */
#define GO_ON RINGLB_VERDICT_FORWARDED

#define VLAN_HEADER 4
#define MAX_VLAN_TAGS 2
#define FRAGMENT_MASK 0x3fff /* "more fragments" and the offset */
#define FRAGMENT_OFFSET4 0x1fff
#define MAX_NETWORK 0x1fu /* offset of the IP header */
#define MAX_TRANSPORT 0x1ffu

/* The byte of the TCP header with its flags. */
#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10
#define TCP_FLAGS_OFFSET 13

enum fragment_kind {
	FRAGMENT_NONE, /* a whole packet */
	FRAGMENT_FIRST,
	FRAGMENT_FIRST_LED, /* for which one that came before it has chosen */
	FRAGMENT_LATER,     /* of which the first one, or an early one, is remembered */
	FRAGMENT_EARLY,     /* of which none is */
};

/* No pointers and no padding, so that global functions can take it. */
struct packet {
	__u64 client[2]; /* addresses, 16 bytes as loaded from memory, IPv4 mapped */
	__u64 service[2];
	__be16 client_port;
	__be16 service_port;
	__u8 protocol; /* TCP or UDP; 0, with ports 0, where they are not to be used, and `fault` says why */
	__u8 next;     /* what the IP header says that follows it */
	__u8 tos;      /* DSCP and ECN */
	bool ipv6;
	__u32 fault;     /* enum ringlb_verdict: GO_ON, or what becomes of the packet if nothing is to be seen closer */
	__u32 frame;     /* bytes; of several buffers those of the first, where the IP packet ends there */
	__u32 network;   /* offset of the IP header */
	__u32 transport; /* offset of what follows it, at most MAX_TRANSPORT */
	__u32 length;    /* of the IP packet, header included; the frame may be longer */
	bool related;    /* these are the addresses and ports that an ICMP error quotes: it opens and stamps nothing */
	__u8 ttl;        /* or hop limit */
	__u8 fragment;   /* enum fragment_kind */
	__u8 reserved;
};
_Static_assert(sizeof(struct packet) == 64, "packet");

static __always_inline __u64 mapped_ipv4(__be32 address)
{
	return (__u64)address << 32 | 0xffff0000;
}

static __always_inline bool is_mapped_ipv4(const __u64 address[2])
{
	return !address[0] && (__u32)address[1] == 0xffff0000;
}

static __always_inline __be32 unmapped_ipv4(__u64 low_half)
{
	return low_half >> 32;
}

/* 1 where a < b, else 0. In C the compiler makes a branch of it, and the verifier goes both ways. */
static __always_inline __u64 is_below(__u32 a, __u32 b)
{
	__u64 d = (__u64)a - (__u64)b;

#ifdef __bpf__
	asm volatile("%0 >>= 63" : "+r"(d));
#else /* the tests' build for user space */
	d >>= 63;
#endif
	return d;
}

static __always_inline bool is_vlan(__be16 ethertype)
{
	return ethertype == bpf_htons(ETH_P_8021Q) || ethertype == bpf_htons(ETH_P_8021AD);
}

/* Ports of TCP and UDP. `rest` is what the IP header says is left for them. Refuses what a receiver would drop, too. */
static __always_inline enum ringlb_verdict parse_ports(struct packet *p, void *transport, void *end, __u32 rest,
						       __u8 protocol)
{
	if (protocol == IPPROTO_TCP) {
		struct tcphdr *tcp = transport;

		if (rest < sizeof(*tcp) || (void *)(tcp + 1) > end || tcp->doff * 4u < sizeof(*tcp) ||
		    tcp->doff * 4u > rest)
			return RINGLB_VERDICT_DROPPED_MALFORMED;
		p->client_port = tcp->source;
		p->service_port = tcp->dest;
	} else if (protocol == IPPROTO_UDP) {
		struct udphdr *udp = transport;

		if (rest < sizeof(*udp) || (void *)(udp + 1) > end || bpf_ntohs(udp->len) < sizeof(*udp) ||
		    bpf_ntohs(udp->len) > rest)
			return RINGLB_VERDICT_DROPPED_MALFORMED;
		p->client_port = udp->source;
		p->service_port = udp->dest;
	} else {
		return RINGLB_VERDICT_PASSED_PROTOCOL;
	}
	p->protocol = protocol;
	return GO_ON;
}

/*
 * Whether the frame ends before a packet of so many bytes that starts at `network` does. *frame is what lies between data
 * and data_end: of a frame in several buffers the first one, which has all headers that are read. How long the whole is
 * costs a call, and is asked for only where that is shorter than the packet; *frame is corrected to it then.
 */
static __always_inline bool is_cut(struct xdp_md *ctx, __u32 network, __u32 length, __u32 *frame)
{
	if (likely(length <= *frame - network))
		return false;
	*frame = bpf_xdp_get_buff_len(ctx);
	return length > *frame - network;
}

/* A header too short to name a destination is left to the host: nobody can say that it is for a service. */
static __always_inline enum ringlb_verdict parse_ipv4(struct xdp_md *ctx, struct packet *p, void *network, void *end)
{
	struct iphdr *ip = network;
	__u32 header;

	if ((void *)(ip + 1) > end)
		return RINGLB_VERDICT_PASSED_NO_SERVICE;
	header = ip->ihl * 4u;
	p->ipv6 = false;
	p->next = ip->protocol;
	p->tos = ip->tos;
	p->ttl = ip->ttl;
	p->length = bpf_ntohs(ip->tot_len);
	p->transport = p->network + header;
	p->client[0] = 0;
	p->client[1] = mapped_ipv4(ip->saddr);
	p->service[0] = 0;
	p->service[1] = mapped_ipv4(ip->daddr);
	if (ip->version != 4 || header < sizeof(*ip) || p->length < header ||
	    is_cut(ctx, p->network, p->length, &p->frame))
		p->fault = RINGLB_VERDICT_DROPPED_MALFORMED;
	else if (ip->frag_off & bpf_htons(FRAGMENT_MASK))
		p->fault = RINGLB_VERDICT_DROPPED_FRAGMENT;
	else
		p->fault = parse_ports(p, network + header, end, p->length - header, ip->protocol);
	return GO_ON;
}

static __always_inline enum ringlb_verdict parse_ipv6(struct xdp_md *ctx, struct packet *p, void *network, void *end)
{
	struct ipv6hdr *ip = network;
	__u32 payload;

	if ((void *)(ip + 1) > end)
		return RINGLB_VERDICT_PASSED_NO_SERVICE;
	payload = bpf_ntohs(ip->payload_len);
	p->ipv6 = true;
	p->next = ip->nexthdr;
	p->transport = p->network + sizeof(*ip);
	p->tos = bpf_ntohs(*(__be16 *)ip) >> 4;
	p->ttl = ip->hop_limit;
	p->length = payload + sizeof(*ip);
	__builtin_memcpy(p->client, &ip->saddr, sizeof(p->client));
	__builtin_memcpy(p->service, &ip->daddr, sizeof(p->service));
	/* On the wire this form means nothing; here it would mean an IPv4 service. */
	if (unlikely(is_mapped_ipv4(p->service)))
		return RINGLB_VERDICT_PASSED_NO_SERVICE;
	if (ip->version != 6 || is_cut(ctx, p->network, p->length, &p->frame))
		p->fault = RINGLB_VERDICT_DROPPED_MALFORMED;
	else
		p->fault = parse_ports(p, ip + 1, end, payload, ip->nexthdr);
	return GO_ON;
}

/*
 * Behind the first VLAN tag. Whether there is a second one is computed and not branched on, so that the verifier has one
 * way to follow from here and not two.
 */
static __always_inline __be16 parse_tags(void *data, void *end, __u32 *network)
{
	struct ethhdr *eth = data + VLAN_HEADER;
	__u64 second;

	if ((void *)(eth + 1) > end)
		return 0;
	second = is_below(eth->h_proto ^ bpf_htons(ETH_P_8021Q), 1) |
		 is_below(eth->h_proto ^ bpf_htons(ETH_P_8021AD), 1);
	second *= VLAN_HEADER;
	asm volatile("" : "+r"(second)); /* kernel 6.1 has lost the bound: "unbounded min value" */
	second &= VLAN_HEADER;
	*network = sizeof(*eth) + VLAN_HEADER + second;
	eth = (void *)eth + second;
	return (void *)(eth + 1) > end ? 0 : eth->h_proto;
}

/* The ethertype behind up to two VLAN tags, and where its header starts; 0 where the frame ends before. */
static __always_inline __be16 parse_link(void *data, void *end, __u32 *network)
{
	struct ethhdr *eth = data;

	*network = sizeof(*eth);
	if ((void *)(eth + 1) > end)
		return 0;
	return unlikely(is_vlan(eth->h_proto)) ? parse_tags(data, end, network) : eth->h_proto;
}

static __always_inline enum ringlb_verdict parse(struct xdp_md *ctx, struct packet *p)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__be16 ethertype = parse_link(data, end, &p->network);

	p->frame = end - data;

	p->fault = GO_ON;
	p->related = false;
	p->fragment = FRAGMENT_NONE;
	p->protocol = 0;
	p->client_port = 0;
	p->service_port = 0;
	if (ethertype == bpf_htons(ETH_P_IP))
		return parse_ipv4(ctx, p, data + p->network, end);
	if (ethertype == bpf_htons(ETH_P_IPV6))
		return parse_ipv6(ctx, p, data + p->network, end);
	return RINGLB_VERDICT_PASSED_NOT_IP;
}

/* What a TCP segment means for its connection. */
struct segment {
	__u32 sequence;
	__u8 flags;   /* TCP_* */
	bool payload; /* it carries data */
};

/*
 * Reads the segment of a packet that parse() found to be one, where flows are kept: elsewhere nobody pays for it. False
 * only where the two disagree. `transport` is the packet's; `rest`, the bytes from there to its end.
 */
static __always_inline bool parse_segment(struct xdp_md *ctx, __u32 transport, __u32 rest, struct segment *s)
{
	void *end = (void *)(long)ctx->data_end;
	struct tcphdr *tcp = (void *)(long)ctx->data + (transport & MAX_TRANSPORT);

	if ((void *)(tcp + 1) > end)
		return false;
	s->sequence = bpf_ntohl(tcp->seq);
	s->flags = *((__u8 *)tcp + TCP_FLAGS_OFFSET);
	s->payload = rest > tcp->doff * 4u;
	return true;
}

#endif
