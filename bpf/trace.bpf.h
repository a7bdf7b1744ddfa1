/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets with their verdicts for `ringlb trace`, while it runs: so many a second, the rest is counted. */
#ifndef RINGLB_TRACE_BPF_H
#define RINGLB_TRACE_BPF_H

#include "parse.bpf.h"
#include "service.bpf.h"

/* What a record is to say that cannot be read from the frame any more. No pointers: for a global function. */
struct traced {
	__u32 verdict;
	__u32 position;
	__u32 frame; /* bytes of it, as it came */
	__u32 network;
	__u16 service;
	__u16 backend;
	__u8 ip;
	__u8 reserved[3];
};

static __always_inline bool is_traced(const struct choice *c, enum ringlb_verdict verdict)
{
	return unlikely(c->tables->trace >> (verdict & 63) & 1);
}

/* Whether somebody reads them, and this one is within the limit. */
static __always_inline bool may_trace(const struct ringlb_tables *t)
{
	__u32 zero = 0;
	struct ringlb_trace_rate *rate = bpf_map_lookup_elem(&trace_rate, &zero);
	__u64 now = t->hz ? bpf_jiffies64() / t->hz : 0;

	if (!rate || (__s32)((__u32)now - t->trace_until) >= 0)
		return false;
	if (rate->second != now) {
		rate->second = now;
		rate->taken = 0;
	}
	if (rate->taken >= RINGLB_TRACES_A_SECOND) {
		rate->left_out++;
		return false;
	}
	rate->taken++;
	return true;
}

static __always_inline void count_left_out(void)
{
	__u32 zero = 0;
	struct ringlb_trace_rate *rate = bpf_map_lookup_elem(&trace_rate, &zero);

	if (rate)
		rate->left_out++;
}

__noinline int trace_packet(struct xdp_md *ctx, struct traced *traced)
{
	const struct ringlb_tables *t = tables_again();
	__u64 frame = bpf_xdp_get_buff_len(ctx);
	__u32 captured = frame < RINGLB_TRACE_BYTES ? frame : RINGLB_TRACE_BYTES, last;
	struct ringlb_trace *r;

	if (!traced || !t || !may_trace(t))
		return 0;
	r = bpf_ringbuf_reserve(&traces, sizeof(*r), 0);
	if (!r) {
		count_left_out();
		return 0;
	}
	r->time = bpf_ktime_get_ns();
	r->ifindex = ctx->ingress_ifindex;
	r->position = traced->position;
	r->verdict = traced->verdict;
	r->frame = frame;
	r->service = traced->service;
	r->backend = traced->backend;
	/* What is in front of the packet is longer or shorter than it was. */
	r->network = !traced->ip                                 ? 0 :
		     traced->verdict != RINGLB_VERDICT_FORWARDED ? traced->network :
								   traced->network + frame - traced->frame;
	/* Kernel 6.1 learns no lower bound from "not 0": what it is to see is one less, and then the 1. */
	last = captured - 1;
	asm volatile("" : "+r"(last));
	if (last >= RINGLB_TRACE_BYTES || bpf_xdp_load_bytes(ctx, 0, r->data, last + 1))
		captured = 0;
	r->captured = captured;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

static __always_inline void trace(struct xdp_md *ctx, const struct packet *p, const struct choice *c,
				  enum ringlb_verdict verdict)
{
	struct traced traced = {
		.verdict = verdict,
		.position = c->position,
		.frame = p->frame,
		.network = p->network,
		.service = c->service ? c->service->index : RINGLB_NO_BACKEND,
		.backend = c->backend < RINGLB_NO_BACKEND ? c->backend : RINGLB_NO_BACKEND,
		.ip = verdict != RINGLB_VERDICT_PASSED_NOT_IP,
	};

	trace_packet(ctx, &traced);
}

#endif
