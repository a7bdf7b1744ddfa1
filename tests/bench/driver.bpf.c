// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BPF_PROG_TEST_RUN with a repeat count gives each round what the one before left: an encapsulating program would meet
 * its own output. So the driver comes first in every round: it takes off what was put on, writes the headers of the
 * next flow's packet over all that the program under test may have touched, and tail-calls it. It moves the head in
 * every round, by nothing too, so that it costs every program the same.
 *
 * The rest are floors: what a program that does less than any balancer costs behind the same driver.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bench_abi.h"

#define FIRST_WORD ((unsigned int)ETH_HLEN % 8)

struct bench_drive drive;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} under_test SEC(".maps");

/* The verifier refuses a length that is not a constant, hence a driver for each family. */
/* What stands at byte `at` of the frame, as part of the word that starts at byte `start`. */
static __always_inline __u64 part(__u64 value, __u32 at, __u32 start)
{
	return at >= start && at < start + 8 ? value << (at - start) * 8 : 0;
}

/*
 * In whole words that start where the IP header does, or a multiple of 8 bytes from it: no field that a program loads is
 * then put together from two stores, which would make it wait as no frame from a network card does.
 */
static __always_inline int write_frame(struct xdp_md *ctx, __u32 flow, __u32 length, __u32 client_at, __u32 port_at,
				       __u32 service_at)
{
	const __u64 client = bpf_htonl(bench_client(flow)), port = bpf_htons(bench_port(flow));
	const __u64 service = bpf_htons(drive.service + (flow & drive.service_mask));
	void *to = (void *)(long)ctx->data, *from = drive.frame;

	if (to + length > (void *)(long)ctx->data_end)
		return -1;
	*(__u64 *)to = *(__u64 *)from;
#pragma unroll
	for (__u32 at = FIRST_WORD; at + 8 <= length; at += 8)
		*(__u64 *)(to + at) = *(__u64 *)(from + at) | part(client, client_at, at) | part(port, port_at, at) |
				      part(service, service_at, at);
	*(__u16 *)(to + length - 2) = *(__u16 *)(from + length - 2);
	flow++;
	drive.flow = flow < drive.flows ? flow : 0;
	return 0;
}

static __always_inline int drive_frame(struct xdp_md *ctx, __u32 length, __u32 client_at, __u32 port_at,
				       __u32 service_at)
{
	__u32 size = ctx->data_end - ctx->data, flow = drive.flow;

	if (size != drive.left)
		drive.wrong++;
	if (drive.keep_frame && flow & 1) {
		drive.flow = flow + 1;
		bpf_tail_call(ctx, &under_test, 0);
		return XDP_ABORTED;
	}
	if (bpf_xdp_adjust_head(ctx, (int)(size - length)))
		return XDP_ABORTED;
	if (write_frame(ctx, flow, length, client_at, port_at, service_at))
		return XDP_ABORTED;
	bpf_tail_call(ctx, &under_test, 0);
	return XDP_ABORTED;
}

SEC("xdp")
int drive_ipv4(struct xdp_md *ctx)
{
	return drive_frame(ctx, BENCH_FRAME_IPV4, BENCH_CLIENT_AT_IPV4, BENCH_PORT_AT_IPV4, BENCH_SERVICE_AT_IPV4);
}

SEC("xdp")
int drive_ipv6(struct xdp_md *ctx)
{
	return drive_frame(ctx, BENCH_FRAME_IPV6, BENCH_CLIENT_AT_IPV6, BENCH_PORT_AT_IPV6, BENCH_SERVICE_AT_IPV6);
}

/* Of live frames, which travel: one end sends them, and counts what comes back. */
SEC("xdp")
int send_ipv4(struct xdp_md *ctx)
{
	return write_frame(ctx, drive.flow, BENCH_FRAME_IPV4, BENCH_CLIENT_AT_IPV4, BENCH_PORT_AT_IPV4,
			   BENCH_SERVICE_AT_IPV4) ?
		       XDP_ABORTED :
		       XDP_TX;
}

/* All that is sent is IPv4; what the host's own IPv6 says now and then is not. */
SEC("xdp")
int receive(struct xdp_md *ctx)
{
	__u32 size = ctx->data_end - ctx->data;
	struct ethhdr *eth = (void *)(long)ctx->data;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end || eth->h_proto != bpf_htons(ETH_P_IP))
		return XDP_DROP;
	if (size != drive.left)
		drive.wrong++;
	drive.received++;
	return XDP_DROP;
}

SEC("xdp")
int floor_drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}

SEC("xdp")
int floor_empty(struct xdp_md *ctx)
{
	return XDP_TX;
}

/* The least that finds a TCP flow: true, and bounds the verifier knows. */
static __always_inline bool is_tcp(struct ethhdr *eth, void *end)
{
	struct iphdr *ip = (void *)(eth + 1);
	struct ipv6hdr *ip6 = (void *)(eth + 1);

	if ((void *)(ip + 1) > end)
		return false;
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		return ip->version == 4 && ip->protocol == IPPROTO_TCP &&
		       (void *)ip + ip->ihl * 4u + sizeof(struct tcphdr) <= end;
	return eth->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) + sizeof(struct tcphdr) <= end &&
	       ip6->nexthdr == IPPROTO_TCP;
}

SEC("xdp")
int floor_swap(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	__u8 mac[ETH_ALEN];

	if (!is_tcp(eth, (void *)(long)ctx->data_end))
		return XDP_DROP;
	__builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, mac, ETH_ALEN);
	return XDP_TX;
}

/* Constant bytes, checksum included: a balancer with one backend and packets of one length. */
struct outer {
	struct ethhdr eth;
	struct iphdr ip;
} __attribute__((packed));

static const volatile struct outer outer = {
	.eth = { .h_dest = { 2, 0, 0, 0, 0, 1 }, .h_source = { 2, 0, 0, 0, 0, 2 }, .h_proto = bpf_htons(ETH_P_IP) },
	.ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_IPIP, .saddr = 0x0100000a, .daddr = 0x0200000a },
};

SEC("xdp")
int floor_outer(struct xdp_md *ctx)
{
	struct outer *out;

	if (!is_tcp((void *)(long)ctx->data, (void *)(long)ctx->data_end))
		return XDP_DROP;
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct iphdr)))
		return XDP_DROP;
	out = (void *)(long)ctx->data;
	if ((void *)(out + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	__builtin_memcpy(out, (const void *)&outer, sizeof(*out));
	return XDP_TX;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
