/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP that comes in. To a service's address: errors about packets of a service go where the packets go that they are
 * about; pings are answered. To the address that outer headers come from: what routers say of their size is learnt.
 *
 * Checksums of errors are not verified here. The backend that an error is sent on to does that, of the same bytes: a
 * damaged one does no more than go to a wrong backend. And what is learnt from one is kept within bounds and for ten
 * minutes, as it has to be anyway, since nothing in these messages can't be forged.
 */
#ifndef RINGLB_ICMP_BPF_H
#define RINGLB_ICMP_BPF_H

#include "answer.bpf.h"
#include "fragment.bpf.h"

#define MAX_QUOTE_AT 0x3ffu

enum icmp_kind {
	ICMP_OTHER,
	ICMP_TRUNCATED,
	ICMP_ASKS,  /* an echo request that can be answered */
	ICMP_LINK,  /* neighbour discovery and the like: a matter of the link, and never for a backend */
	ICMP_ABOUT, /* an error that quotes a packet */
};

/* What an error quotes of a packet. No pointers and no padding. */
struct quote {
	__u64 source[2];
	__u64 destination[2];
	__be16 source_port; /* of TCP and UDP, else 0 */
	__be16 destination_port;
	__u16 at; /* offset in the frame of the IP header; afterwards, of what follows it */
	bool ipv6;
	__u8 next;     /* what the headers say that follows them */
	__u8 protocol; /* TCP or UDP; 0: another */
	__u8 reserved[7];
};
_Static_assert(sizeof(struct quote) == 48, "quote");

static __always_inline bool read_quote_ipv4(void *data, void *end, struct quote *q)
{
	struct iphdr *ip = data + (q->at & MAX_QUOTE_AT);

	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl * 4u < sizeof(*ip) ||
	    ip->frag_off & bpf_htons(FRAGMENT_OFFSET4))
		return false;
	q->source[0] = 0;
	q->source[1] = mapped_ipv4(ip->saddr);
	q->destination[0] = 0;
	q->destination[1] = mapped_ipv4(ip->daddr);
	q->next = ip->protocol;
	q->at += ip->ihl * 4u;
	return true;
}

static __always_inline bool read_quote_ipv6(struct xdp_md *ctx, void *data, void *end, struct quote *q)
{
	struct ipv6hdr *ip = data + (q->at & MAX_QUOTE_AT);
	struct extensions e = { .at = q->at + sizeof(*ip) };

	if ((void *)(ip + 1) > end || ip->version != 6)
		return false;
	__builtin_memcpy(q->source, &ip->saddr, sizeof(q->source));
	__builtin_memcpy(q->destination, &ip->daddr, sizeof(q->destination));
	e.next = ip->nexthdr;
	if (skip_extensions(ctx, &e) != GO_ON || is_later_fragment(&e))
		return false;
	q->next = e.next;
	q->at = e.at;
	return true;
}

/*
 * Reads it from q->at on. 0 where it can't be told what flow it was of: too short, a fragment without the ports, or ports
 * that stand behind MAX_QUOTE_AT.
 */
__noinline int read_quote(struct xdp_md *ctx, struct quote *q)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__be16 *port;
	__u32 at;

	if (!q || !(q->ipv6 ? read_quote_ipv6(ctx, data, end, q) : read_quote_ipv4(data, end, q)))
		return 0;
	q->protocol = 0;
	q->source_port = 0;
	q->destination_port = 0;
	if (q->next != IPPROTO_TCP && q->next != IPPROTO_UDP)
		return 1;
	at = q->at;
	if (at > MAX_QUOTE_AT)
		return 0;
	asm volatile("" : "+r"(at)); /* or clang leaves out the mask, which kernel 6.1 wants to see */
	port = (void *)(long)ctx->data + (at & MAX_QUOTE_AT);
	if ((void *)(port + 2) > (void *)(long)ctx->data_end)
		return 0;
	q->protocol = q->next;
	q->source_port = port[0];
	q->destination_port = port[1];
	return 1;
}

static __always_inline bool is_error(__u8 type, bool ipv6)
{
	if (ipv6)
		return type >= ICMPV6_DEST_UNREACH && type <= ICMPV6_PARAMPROB;
	return type == ICMP_DEST_UNREACH || type == ICMP_SOURCE_QUENCH || type == ICMP_TIME_EXCEEDED ||
	       type == ICMP_PARAMETERPROB;
}

/* Types 133 to 137 are between neighbours: RFC 4861. */
static __always_inline bool is_neighbour_discovery(__u8 type, bool ipv6)
{
	return ipv6 && type >= 133 && type <= 137;
}

/* IP options, which a reply would have to turn round, and extension headers keep an echo request from being answered. */
static __always_inline bool can_reply(const struct packet *p)
{
	if (p->ipv6)
		return p->transport == p->network + sizeof(struct ipv6hdr) && is_host_ipv6(p->client[0], p->client[1]);
	return p->transport == p->network + sizeof(struct iphdr) && is_host_ipv4(unmapped_ipv4(p->client[1]));
}

static __always_inline bool same_address(const __u64 a[2], const __u64 b[2])
{
	return !((a[0] ^ b[0]) | (a[1] ^ b[1]));
}

/*
 * What an ICMP message to a service's address is. Of an error about a packet from that very address p becomes, but for
 * its headers, a packet of the same flow from the client.
 */
__noinline int read_icmp(struct xdp_md *ctx, struct packet *p)
{
	struct quote q = {};
	struct icmp_header *icmp;

	if (!p)
		return ICMP_OTHER;
	icmp = (void *)(long)ctx->data + (p->transport & MAX_TRANSPORT);
	if ((void *)(icmp + 1) > (void *)(long)ctx->data_end || p->network + p->length < p->transport + sizeof(*icmp))
		return ICMP_TRUNCATED;
	if (is_neighbour_discovery(icmp->type, p->ipv6))
		return ICMP_LINK;
	if (is_echo_request(icmp->type, p->ipv6))
		return can_reply(p) ? ICMP_ASKS : ICMP_OTHER;
	if (!is_error(icmp->type, p->ipv6))
		return ICMP_OTHER;
	q.at = p->transport + sizeof(*icmp);
	q.ipv6 = p->ipv6;
	if (!read_quote(ctx, &q) || !same_address(q.source, p->service))
		return ICMP_OTHER;
	p->client[0] = q.destination[0];
	p->client[1] = q.destination[1];
	p->client_port = q.destination_port;
	p->service_port = q.source_port;
	p->protocol = q.protocol;
	p->related = true;
	return ICMP_ABOUT;
}

/* Whether outer headers come from the address. */
static __always_inline bool is_tunnel_source(const struct ringlb_root *root, const __u64 address[2], bool ipv6)
{
	__u64 tunnel[2], free = (__u64)root->entropy6 << 32;

	if (!ipv6)
		return root->tunnel4 && !((unmapped_ipv4(address[1]) ^ root->tunnel4) & ~root->entropy4);
	__builtin_memcpy(tunnel, root->tunnel6, sizeof(tunnel));
	return (tunnel[0] | tunnel[1]) && !((tunnel[0] ^ address[0]) | ((tunnel[1] ^ address[1]) & ~free));
}

/* Of a "packet too big", the MTU that it tells of, as far as it is believed; else 0. */
static __always_inline __u32 told_mtu(const struct icmp_header *icmp, bool ipv6)
{
	__u32 mtu;

	if (ipv6) {
		mtu = (__u32)bpf_ntohs(icmp->rest[0]) << 16 | bpf_ntohs(icmp->rest[1]);
		return icmp->type == ICMPV6_PKT_TOOBIG && mtu >= RINGLB_PATH_MTU_MIN6 && mtu <= 0xffff ? mtu : 0;
	}
	mtu = bpf_ntohs(icmp->rest[1]);
	if (icmp->type != ICMP_DEST_UNREACH || icmp->code != ICMP_FRAG_NEEDED || !mtu)
		return 0;
	return mtu < RINGLB_PATH_MTU_MIN4 ? RINGLB_PATH_MTU_MIN4 : mtu;
}

/* A path MTU is only ever lowered, and what was told is told again before its time is over, where it still holds. */
static __always_inline void remember_path_mtu(const struct ringlb_tables *t, const __u64 backend[2], __u32 mtu)
{
	__u32 now = bpf_jiffies64() / t->hz;
	struct ringlb_path_mtu new = { .mtu = mtu, .until = now + RINGLB_PATH_MTU_SECONDS };
	__u64 key[2] = { backend[0], backend[1] };
	const struct ringlb_path_mtu *known = bpf_map_lookup_elem(&path_mtus, key);

	if (known && (__s32)(known->until - now) > 0 && known->mtu < mtu)
		return;
	bpf_map_update_elem(&path_mtus, key, &new, BPF_ANY);
}

/*
 * Where a router says of an outer packet of ours that it is too big, that counts from the next look-up of the backend's
 * next hop on. The message itself goes on to the host, which may want to know it too. Reads the frame anew, so that
 * nobody has to keep anything for it.
 */
__noinline int learn_from(struct xdp_md *ctx, struct closer *r)
{
	const struct ringlb_tables *t = tables_again();
	struct icmp_header *icmp;
	struct quote q = {};
	__u32 mtu;

	if (!r || !t || !is_tunnel_source(&t->roots[r->side & 1], r->packet.service, r->packet.ipv6))
		return 0;
	icmp = (void *)(long)ctx->data + (r->packet.transport & MAX_TRANSPORT);
	if ((void *)(icmp + 1) > (void *)(long)ctx->data_end)
		return 0;
	mtu = told_mtu(icmp, r->packet.ipv6);
	q.at = r->packet.transport + sizeof(*icmp);
	q.ipv6 = r->packet.ipv6;
	if (!mtu || !read_quote(ctx, &q) || !same_address(q.source, r->packet.service) ||
	    (q.next != IPPROTO_IPIP && q.next != IPPROTO_IPV6 && q.next != IPPROTO_UDP))
		return 0;
	remember_path_mtu(t, q.destination, mtu);
	return 0;
}

/* Of a packet that is the host's. */
static __always_inline void learn_path_mtu(struct xdp_md *ctx, const struct packet *p, const struct choice *c)
{
	struct closer r = { .packet = *p, .side = c->side };

	if (is_icmp(p))
		learn_from(ctx, &r);
}

/* An ICMP message to a service's address. GO_ON: it goes to a backend. */
static __always_inline enum ringlb_verdict look_at_icmp(struct xdp_md *ctx, struct closer *r)
{
	int kind = read_icmp(ctx, &r->packet);

	if (kind == ICMP_TRUNCATED)
		return RINGLB_VERDICT_DROPPED_MALFORMED;
	if (kind == ICMP_LINK)
		return RINGLB_VERDICT_PASSED_ICMP;
	if (kind == ICMP_ABOUT)
		return find_service_again(r) == GO_ON ? GO_ON : RINGLB_VERDICT_PASSED_ICMP;
	return any_protocol(r, kind == ICMP_ASKS ? RINGLB_VERDICT_ANSWERED_ECHO : RINGLB_VERDICT_PASSED_ICMP);
}

#endif
