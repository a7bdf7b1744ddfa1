/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The balancer's program as a function of this process, with ASan and UBSan in the verifier's place: packets of any
 * bytes, several in a row, so that fragments and flows find what others left.
 *
 * An input is a row of struct header (little-endian), each with its frame behind it; the last may be cut short. Every
 * input starts from the same maps.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ringlb.bpf.c"

#include "kernel.h"

static bool has_ports(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

/* A quote's place is where its ports were read. */
static void check_quote(struct xdp_md *ctx, const struct packet *p)
{
	struct quote q = { .at = p->transport + ICMP_HEADER, .ipv6 = p->ipv6 };
	__be16 ports[2];

	if (p->transport > MAX_TRANSPORT || !read_quote(ctx, &q) || !q.protocol)
		return;
	check(has_ports(q.protocol) && q.at + sizeof(ports) <= ctx->data_end - ctx->data, "a quote behind the frame");
	memcpy(ports, (char *)(long)ctx->data + q.at, sizeof(ports));
	check(q.source_port == ports[0] && q.destination_port == ports[1], "ports from elsewhere in a quote");
}

static void check_quic(struct xdp_md *ctx, const struct packet *p)
{
	struct tracked f = { .transport = p->transport, .cid_length = 8, .server_offset = 1, .server_length = 2 };
	struct quic q = { .named = RINGLB_NO_BACKEND, .network = p->network, .ipv6 = p->ipv6 };

	quic_read(ctx, &f, &q);
	check(q.length <= QUIC_MAX_ID && (q.named < WORLD_BACKENDS || q.named == RINGLB_NO_BACKEND), "a QUIC id");
}

/* The steps that read a packet, each also where the program would not come to it. */
static void check_steps(struct xdp_md *ctx)
{
	const __u32 frame = bpf_xdp_get_buff_len(ctx), linear = ctx->data_end - ctx->data;
	struct closer closer = {};
	struct segment segment;
	struct packet p;

	if (parse(ctx, &p) != GO_ON)
		return;
	check(p.network <= MAX_NETWORK && p.network < linear && p.transport <= MAX_TRANSPORT, "offsets");
	if (p.fault == GO_ON) {
		check(p.network + p.length <= frame && p.frame <= frame, "a packet longer than its frame");
		check(has_ports(p.protocol) && p.transport + sizeof(struct udphdr) <= linear, "ports behind the frame");
	}
	parse_segment(ctx, p.transport, p.length, &segment);
	check_quote(ctx, &p);
	check_quic(ctx, &p);
	closer.packet = p;
	if (p.fault != RINGLB_VERDICT_DROPPED_MALFORMED && read_fragment(ctx, &closer) == GO_ON &&
	    closer.packet.fragment != FRAGMENT_EARLY && ports_behind(ctx, &closer.packet) == GO_ON)
		check(closer.packet.transport + 4 <= linear && has_ports(closer.packet.protocol),
		      "ports of a fragment");
	closer.packet = p;
	if (p.fault != RINGLB_VERDICT_DROPPED_MALFORMED && read_icmp(ctx, &closer.packet) == ICMP_ABOUT)
		check(closer.packet.related && same_address(closer.packet.service, p.service), "an error for another");
}

static enum ringlb_verdict counted(void)
{
	enum ringlb_verdict found = RINGLB_VERDICT_COUNT;

	for (int i = 0; i < RINGLB_VERDICT_COUNT; i++) {
		check(self.verdicts.packets[i] <= 1 && (!self.verdicts.packets[i] || found == RINGLB_VERDICT_COUNT),
		      "two verdicts");
		if (self.verdicts.packets[i])
			found = i;
	}
	check(found < RINGLB_VERDICT_COUNT, "no verdict");
	return found;
}

static void check_program(struct xdp_md *ctx, const __u8 *frame, __u32 length)
{
	enum ringlb_verdict verdict;
	int action;

	memset(&self.verdicts, 0, sizeof(self.verdicts));
	action = prog(ctx);
	verdict = counted();
	check(verdict != RINGLB_VERDICT_DROPPED_INTERNAL, "tables that contradict themselves");
	if (RINGLB_VERDICT_IS_DROP(verdict))
		check(action == XDP_DROP, "not dropped");
	else if (RINGLB_VERDICT_IS_ANSWER(verdict))
		check(action == XDP_TX, "not answered");
	else if (verdict == RINGLB_VERDICT_FORWARDED)
		check(action == XDP_TX || action == XDP_REDIRECT || action == XDP_PASS, "not forwarded");
	else
		check(action == XDP_PASS, "not passed");
	if (action == XDP_PASS) /* to the host, as it came */
		check(bpf_xdp_get_buff_len(ctx) == length &&
			      !memcmp((void *)(long)ctx->data, frame, ctx->data_end - ctx->data),
		      "changed on its way to the host");
}

static void take(const struct header *h, const __u8 *frame, __u32 length)
{
	struct xdp_md ctx;

	place(&ctx, h, frame, length);
	check_steps(&ctx);
	if (h->flags & LOOK_UP)
		lookup(&ctx);
	else
		check_program(&ctx, frame, length);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const __u8 *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	start();
	return 0;
}

int LLVMFuzzerTestOneInput(const __u8 *data, size_t size)
{
	struct header h;

	reset();
	while (size > sizeof(h)) {
		__u32 length;

		memcpy(&h, data, sizeof(h));
		data += sizeof(h);
		size -= sizeof(h);
		length = h.length < size ? h.length : size;
		if (length > FRAME_MAX)
			length = FRAME_MAX;
		if (length >= ETH_HLEN)
			take(&h, data, length);
		data += length;
		size -= length;
	}
	return 0;
}
