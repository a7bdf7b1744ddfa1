/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP that a service address sends itself, out of the link that the packet came in through, to whoever sent that: echo
 * replies, and errors about packets that are too big for the way to the backend (RFC 1191, RFC 8201) or came with their
 * last hop (RFC 1812, RFC 4443). Errors are limited; echo replies are no larger than what asks for them, and are not.
 *
 * All of it is rare, and in global functions: the verifier looks at each once.
 */
#ifndef RINGLB_ANSWER_BPF_H
#define RINGLB_ANSWER_BPF_H

#include <linux/icmpv6.h>

#include "extension.bpf.h"
#include "outer_header.h"
#include "parse.bpf.h"
#include "service.bpf.h"

#define ANSWER_TTL 64
#define ANSWER_TOS 0xc0u /* DSCP CS6, network control: RFC 1812, 4.3.2.5 */
#define ECN_BITS 3u

/* Of IPv4; <linux/icmp.h> is not for BPF. */
#define ICMP_ECHOREPLY 0
#define ICMP_DEST_UNREACH 3
#define ICMP_FRAG_NEEDED 4 /* its code */
#define ICMP_SOURCE_QUENCH 4
#define ICMP_ECHO 8
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETERPROB 12

/* Of both families: RFC 792, RFC 4443. */
struct icmp_header {
	__u8 type;
	__u8 code;
	__u16 checksum;
	__be16 rest[2]; /* the MTU is the second one, or both */
};
#define ICMP_HEADER sizeof(struct icmp_header)

#define MIN_MTU_IPV4 68u /* RFC 791 */
/* "As much as possible" of the packet that it is about, up to 576 bytes in all (RFC 1812, 4.3.2.3), or 1280 (RFC 4443). */
#define QUOTE_IPV4 (576u - sizeof(struct iphdr) - ICMP_HEADER)
#define QUOTE_IPV6 (1280u - sizeof(struct ipv6hdr) - ICMP_HEADER)

/* What is to be known of a packet in order to answer it. No pointers and no padding: for global functions. */
struct answer {
	__u32 verdict;
	__u32 mtu;    /* of a packet that is too big: what is not */
	__u32 length; /* of the IP packet */
	__u16 network;
	__u16 transport;
	__u8 next;
	bool ipv6;
	bool related;
	__u8 reserved;
};
_Static_assert(sizeof(struct answer) == 20, "answer");

static __always_inline struct answer answer_to(const struct packet *p, __u32 verdict, __u32 mtu)
{
	return (struct answer){
		.verdict = verdict,
		.mtu = mtu,
		.length = p->length,
		.network = p->network,
		.transport = p->transport,
		.next = p->next,
		.ipv6 = p->ipv6,
		.related = p->related,
	};
}

/* Whether an address is one host's, of those that are seen on a link: RFC 1122, 3.2.1.3; RFC 4443, 2.4 (e). */
static __always_inline bool is_host_ipv4(__be32 address)
{
	__u8 first = bpf_ntohl(address) >> 24;

	return first && first != 127 && first < 224;
}

/* Its halves as loaded. */
static __always_inline bool is_host_ipv6(__u64 high, __u64 low)
{
	return (__u8)high != 0xff && (high || low & ~bpf_cpu_to_be64(1)); /* no multicast, neither :: nor ::1 */
}

static __always_inline bool is_icmp(const struct packet *p)
{
	return p->next == (p->ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
}

static __always_inline bool is_echo_request(__u8 type, bool ipv6)
{
	return type == (ipv6 ? ICMPV6_ECHO_REQUEST : ICMP_ECHO);
}

static __always_inline bool is_link_broadcast(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;

	return (void *)(eth + 1) > (void *)(long)ctx->data_end || eth->h_dest[0] & 1;
}

static __always_inline bool is_answerable_ipv4(struct xdp_md *ctx, const struct answer *a)
{
	struct iphdr *ip = (void *)(long)ctx->data + (a->network & MAX_NETWORK);

	return (void *)(ip + 1) <= (void *)(long)ctx->data_end && is_host_ipv4(ip->saddr) &&
	       !(ip->frag_off & bpf_htons(FRAGMENT_OFFSET4));
}

static __always_inline bool is_answerable_ipv6(struct xdp_md *ctx, const struct answer *a)
{
	struct ipv6hdr *ip = (void *)(long)ctx->data + (a->network & MAX_NETWORK);
	struct extensions e = { .at = a->network + sizeof(*ip) };
	__u64 source[2];

	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return false;
	__builtin_memcpy(source, &ip->saddr, sizeof(source));
	e.next = ip->nexthdr;
	return is_host_ipv6(source[0], source[1]) && skip_extensions(ctx, &e) == GO_ON && !is_later_fragment(&e);
}

/* Of ICMP only echo requests are sure to be no errors. */
static __always_inline bool is_icmp_error(struct xdp_md *ctx, const struct answer *a)
{
	__u8 *type = (void *)(long)ctx->data + (a->transport & MAX_TRANSPORT);

	if (a->next != (a->ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return false;
	return (void *)(type + 1) > (void *)(long)ctx->data_end || !is_echo_request(*type, a->ipv6);
}

/* Whether its sender may be told that it does not go on: RFC 1122, 3.2.2; RFC 4443, 2.4 (e). */
static __always_inline bool may_be_told(struct xdp_md *ctx, const struct answer *a)
{
	if (a->related || is_link_broadcast(ctx) || is_icmp_error(ctx, a))
		return false;
	return a->ipv6 ? is_answerable_ipv6(ctx, a) : is_answerable_ipv4(ctx, a);
}

/*
 * Frames longer than the packets of their own link are several of those, put together by the host (GRO, or a sender's
 * TSO in a namespace): nothing tells how long each is.
 */
static __always_inline bool is_aggregate(struct xdp_md *ctx, __u32 length)
{
	__u32 mtu = 0;

	return bpf_check_mtu(ctx, 0, &mtu, 0, 0) >= 0 && mtu && length > mtu;
}

/*
 * What becomes of a packet that came with its last hop or is too big, as a->verdict says: that, where it may be answered,
 * or the verdict for where it may not; GO_ON for an aggregate. Corrects a->mtu to what can be told.
 */
__noinline int judge(struct xdp_md *ctx, struct answer *a)
{
	bool told;

	if (!a)
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	told = may_be_told(ctx, a);
	if (a->verdict == RINGLB_VERDICT_ANSWERED_TTL)
		return told ? RINGLB_VERDICT_ANSWERED_TTL : RINGLB_VERDICT_DROPPED_TTL;
	if (is_aggregate(ctx, a->length))
		return GO_ON;
	if (a->ipv6 && a->mtu < RINGLB_PATH_MTU_MIN6)
		a->mtu = RINGLB_PATH_MTU_MIN6; /* smaller ones need not be sent */
	if (!told || a->mtu < MIN_MTU_IPV4 || a->length <= a->mtu)
		return RINGLB_VERDICT_DROPPED_TOO_BIG;
	return RINGLB_VERDICT_ANSWERED_TOO_BIG;
}

static __always_inline enum ringlb_verdict refuse_packet(struct xdp_md *ctx, const struct packet *p, __u32 *mtu)
{
	struct answer a = answer_to(p, p->ttl > 1 ? RINGLB_VERDICT_ANSWERED_TOO_BIG : RINGLB_VERDICT_ANSWERED_TTL,
				    *mtu);
	enum ringlb_verdict verdict = judge(ctx, &a);

	*mtu = a.mtu;
	return verdict;
}

/* Whether an error is still within the limit of this second. */
static __always_inline bool may_answer(void)
{
	__u32 zero = 0;
	struct ringlb_answer_rate *rate = bpf_map_lookup_elem(&answer_rate, &zero);
	const struct ringlb_tables *t = tables_again();
	__u64 now = t && t->hz ? bpf_jiffies64() / t->hz : 0;

	if (!rate)
		return false;
	if (rate->second != now) {
		rate->second = now;
		rate->given = 0;
	}
	if (rate->given >= RINGLB_ANSWERS_A_SECOND)
		return false;
	rate->given++;
	return true;
}

/* Ones' complement sum of two, folded. */
static __always_inline __u32 sum_of(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	return ringlb_fold((__u32)(sum & 0xffff) + (__u32)(sum >> 16));
}

/* A checksum after one 16-bit word that it covers has changed: RFC 1624. */
static __always_inline __u16 checksum_after(__u16 check, __u16 before, __u16 after)
{
	return ~ringlb_fold((__u16)~check + (__u32)(__u16)~before + after);
}

#define SUM_CHUNK 32u
#define SUM_CHUNKS 40u
/*
 * Ones' complement sum (RFC 1071), folded, of the frame's bytes from an offset on, at most SUM_CHUNKS * SUM_CHUNK of
 * them; -1 where there are more, or the frame ends before.
 */
__noinline int sum_bytes(struct xdp_md *ctx, __u32 from, __u32 length)
{
	__u32 chunk[SUM_CHUNK / 4], last;
	__u64 sum = 0;

	if (length > SUM_CHUNKS * SUM_CHUNK)
		return -1;
	/* Whole ones apart from the rest, so that kernel 6.1 has one way to follow through the loop. */
	for (__u32 i = 0; i < SUM_CHUNKS && length >= SUM_CHUNK; i++) {
		if (bpf_xdp_load_bytes(ctx, from, chunk, SUM_CHUNK))
			return -1;
		sum = (__u32)bpf_csum_diff(NULL, 0, chunk, SUM_CHUNK, sum);
		from += SUM_CHUNK;
		length -= SUM_CHUNK;
	}
	if (length) {
		__builtin_memset(chunk, 0, sizeof(chunk));
		last = length - 1;
		/* It learns no lower bound from "not 0", and forgets bounds that clang takes from elsewhere. */
		asm volatile("" : "+r"(last));
		if (last >= SUM_CHUNK || bpf_xdp_load_bytes(ctx, from, chunk, last + 1))
			return -1;
		sum = (__u32)bpf_csum_diff(NULL, 0, chunk, SUM_CHUNK, sum);
	}
	return sum_of(sum);
}

static __always_inline void swap_link_addresses(void *to, const void *from)
{
	__u32 destination_low = *(__u32 *)from, source_high = *(__u32 *)(from + 8);
	__u16 destination_high = *(__u16 *)(from + 4), source_low = *(__u16 *)(from + 6);

	*(__u16 *)to = source_low;
	*(__u32 *)(to + 2) = source_high;
	*(__u32 *)(to + 6) = destination_low;
	*(__u16 *)(to + 10) = destination_high;
}

static __always_inline void reply_type(struct icmp_header *icmp, __u8 type)
{
	__u16 *word = (__u16 *)icmp, before = *word;

	icmp->type = type;
	icmp->checksum = checksum_after(icmp->checksum, before, *word);
}

/* Turns an echo request of IPv4, without options, into its reply. Wrong checksums stay wrong. */
static __always_inline bool reply_ipv4(void *network, void *end)
{
	struct iphdr *ip = network;
	struct icmp_header *icmp = (void *)(ip + 1);
	__u16 *word = network;
	__u16 with_tos, with_ttl;
	__be32 client;

	if ((void *)(icmp + 1) > end)
		return false;
	with_tos = word[0];
	with_ttl = word[4];
	ip->tos &= ~ECN_BITS;
	ip->ttl = ANSWER_TTL;
	ip->check = checksum_after(checksum_after(ip->check, with_tos, word[0]), with_ttl, word[4]);
	client = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = client;
	reply_type(icmp, ICMP_ECHOREPLY);
	return true;
}

/* The same for IPv6, without extension headers; the flow label stays. */
static __always_inline bool reply_ipv6(void *network, void *end)
{
	struct ipv6hdr *ip = network;
	struct icmp_header *icmp = (void *)(ip + 1);
	struct in6_addr client;

	if ((void *)(icmp + 1) > end)
		return false;
	*((__u8 *)network + 1) &= ~(ECN_BITS << 4);
	ip->hop_limit = ANSWER_TTL;
	client = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = client;
	reply_type(icmp, ICMPV6_ECHO_REPLY);
	return true;
}

static __always_inline enum ringlb_verdict answer_echo(struct xdp_md *ctx, const struct answer *a)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	void *network = data + (a->network & MAX_NETWORK);

	if (data + ETH_HLEN > end || !(a->ipv6 ? reply_ipv6(network, end) : reply_ipv4(network, end)))
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	swap_link_addresses(data, data);
	return RINGLB_VERDICT_ANSWERED_ECHO;
}

/*
 * The headers of an error, from the service's address to the sender of the packet that is quoted behind them: `quote`
 * bytes of it, whose sum is `sum`.
 */
static __always_inline bool write_error_ipv4(__u32 *word, void *end, const struct answer *a, __u32 quote, __u32 sum)
{
	const struct iphdr *about = (void *)word + sizeof(struct iphdr) + ICMP_HEADER;
	__be16 length = bpf_htons(sizeof(struct iphdr) + ICMP_HEADER + quote), mtu = 0;
	__u32 type = ICMP_TIME_EXCEEDED;

	if ((void *)(about + 1) > end)
		return false;
	if (a->verdict == RINGLB_VERDICT_ANSWERED_TOO_BIG) {
		type = ICMP_DEST_UNREACH | ICMP_FRAG_NEEDED << 8;
		mtu = bpf_htons(a->mtu);
	}
	word[0] = RINGLB_OUTER_VERSION_IHL | ANSWER_TOS << 8 | (__u32)length << 16;
	word[1] = RINGLB_OUTER_DF << 16;
	word[2] = RINGLB_OUTER_TTL | IPPROTO_ICMP << 8 |
		  (__u32)ringlb_outer_check(ringlb_outer_sum(about->saddr), about->daddr, ANSWER_TOS, length,
					    IPPROTO_ICMP)
			  << 16;
	word[3] = about->daddr;
	word[4] = about->saddr;
	word[5] = type | (__u32)(__u16)~ringlb_fold(sum + type + mtu) << 16;
	word[6] = (__u32)mtu << 16;
	return true;
}

static __always_inline bool write_error_ipv6(__u32 *word, void *end, const struct answer *a, __u32 quote, __u32 sum)
{
	const struct ipv6hdr *about = (void *)word + sizeof(struct ipv6hdr) + ICMP_HEADER;
	__be16 length = bpf_htons(ICMP_HEADER + quote);
	__u32 type = ICMPV6_TIME_EXCEED, *header = word + 10;
	__u64 whole = (__u64)sum + length + bpf_htons(IPPROTO_ICMPV6);
	__be32 mtu = 0;

	if ((void *)(about + 1) > end)
		return false;
	if (a->verdict == RINGLB_VERDICT_ANSWERED_TOO_BIG) {
		type = ICMPV6_PKT_TOOBIG;
		mtu = bpf_htonl(a->mtu);
	}
	word[0] = bpf_htonl(6u << 28 | ANSWER_TOS << 20);
	word[1] = length | IPPROTO_ICMPV6 << 16 | ANSWER_TTL << 24;
	__builtin_memcpy(word + 2, &about->daddr, sizeof(about->daddr));
	__builtin_memcpy(word + 6, &about->saddr, sizeof(about->saddr));
#pragma unroll
	for (int i = 2; i < 10; i++)
		whole += word[i];
	header[0] = type | (__u32)(__u16)~sum_of(whole + type + mtu) << 16;
	header[1] = mtu;
	return true;
}

/* Bytes of the packet that are quoted, of which all lie in the frame's first buffer; the rest of the frame is cut off. */
static __always_inline __u32 cut_quote(struct xdp_md *ctx, const struct answer *a)
{
	__u64 linear = (void *)(long)ctx->data_end - (void *)(long)ctx->data;
	__u32 quote = a->ipv6 ? QUOTE_IPV6 : QUOTE_IPV4;
	int surplus;

	asm volatile("" : "+r"(linear)); /* or clang subtracts halves of pointers: "32-bit pointer arithmetic" */
	linear -= a->network;
	if (quote > a->length)
		quote = a->length;
	if (quote > linear)
		quote = linear;
	surplus = bpf_xdp_get_buff_len(ctx) - a->network - quote;
	return surplus && bpf_xdp_adjust_tail(ctx, -surplus) ? 0 : quote;
}

static __always_inline enum ringlb_verdict answer_error(struct xdp_md *ctx, const struct answer *a)
{
	__u32 push = ICMP_HEADER + (a->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)), quote;
	void *data, *end, *network;
	int sum;

	if (!may_answer())
		return RINGLB_VERDICT_DROPPED_ANSWER_LIMIT;
	quote = cut_quote(ctx, a);
	if (!quote || bpf_xdp_adjust_head(ctx, -(int)push))
		return RINGLB_VERDICT_DROPPED_NO_HEADROOM;
	sum = sum_bytes(ctx, a->network + push, quote);
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	network = data + (a->network & MAX_NETWORK);
	if (sum < 0 || data + push + ETH_HLEN + MAX_VLAN_TAGS * VLAN_HEADER > end)
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	swap_link_addresses(data, data + push);
	__builtin_memcpy(data + 2 * ETH_ALEN, data + push + 2 * ETH_ALEN, 2 + MAX_VLAN_TAGS * VLAN_HEADER);
	if (!(a->ipv6 ? write_error_ipv6(network, end, a, quote, sum) : write_error_ipv4(network, end, a, quote, sum)))
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	return a->verdict;
}

/* Makes the packet the answer that a->verdict says. The verdict: that, or why there is none. */
__noinline int answer(struct xdp_md *ctx, struct answer *a)
{
	if (!a)
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	return a->verdict == RINGLB_VERDICT_ANSWERED_ECHO ? answer_echo(ctx, a) : answer_error(ctx, a);
}

static __always_inline enum ringlb_verdict answer_packet(struct xdp_md *ctx, const struct packet *p,
							 const struct choice *c, enum ringlb_verdict verdict)
{
	struct answer a = answer_to(p, verdict, c->mtu);

	return answer(ctx, &a);
}

#endif
