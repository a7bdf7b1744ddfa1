// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The path of a packet: parse, service, hash, owner, next hop, forward, count. Each step is a header of its own; this
 * file is their order. A step returns GO_ON, or the verdict that ends the packet's way.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "ringlb_abi.h"

#include "maps.bpf.h"
#include "parse.bpf.h"
#include "service.bpf.h"
#include "ring.bpf.h"
#include "flows.bpf.h"
#include "closer.bpf.h"
#include "quic.bpf.h"
#include "forward.bpf.h"
#include "count.bpf.h"
#include "trace.bpf.h"

/*
 * Parse, service, hash, owner: what both programs do. In an ordinary arc nothing is read or written besides; `writes`,
 * a constant, says whether what happens in a moved one is to be remembered.
 */
static __always_inline enum ringlb_verdict choose(struct xdp_md *ctx, struct packet *p, struct choice *c, bool writes)
{
	enum ringlb_verdict verdict = parse(ctx, p);
	__u32 at = 0;

	if (verdict != GO_ON)
		return verdict;
	if (!find_service(c, p)) {
		if (unlikely(p->fault == RINGLB_VERDICT_PASSED_PROTOCOL) && writes)
			learn_path_mtu(ctx, p, c);
		return RINGLB_VERDICT_PASSED_NO_SERVICE;
	}
	if (unlikely(p->fault != GO_ON))
		verdict = look_closer(ctx, p, c);
	if (unlikely(verdict == RINGLB_VERDICT_PASSED_ICMP) && writes)
		learn_path_mtu(ctx, p, c);
	if (unlikely(verdict != GO_ON))
		return verdict;
	if (!c->service->bits)
		return RINGLB_VERDICT_DROPPED_NO_BACKEND;
	find_position(c, p);
	if (unlikely(p->fragment))
		place_fragment(p, c);
	find_owner(c, &at, true);
	c->backend = c->owner;
	c->previous = c->owner;
	if (unlikely(keeps_flows(c)))
		keep_flow(ctx, c, p, at, writes);
	if (unlikely(p->fragment))
		follow_fragment(ctx, p, c, writes);
	if (likely(c->backend < RINGLB_NO_BACKEND))
		return GO_ON;
	return c->backend == RINGLB_NO_BACKEND ? RINGLB_VERDICT_DROPPED_NO_BACKEND : RINGLB_VERDICT_DROPPED_INTERNAL;
}

/* The whole way of a packet. *action is what to do with it where the verdict is "forwarded". */
static __always_inline enum ringlb_verdict steer(struct xdp_md *ctx, struct packet *p, struct choice *c, int *action)
{
	enum ringlb_verdict verdict = choose(ctx, p, c, true);
	struct ringlb_backend *b;
	__u32 backend;

	if (verdict != GO_ON)
		return verdict;
	backend = c->backend; /* a pointer to c would keep all of it in memory */
	b = bpf_map_lookup_elem(&backends, &backend);
	if (!b)
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	verdict = forward(ctx, p, c, b, action);
	if (verdict != GO_ON)
		return verdict;
	count_frame(&service_stats, c->service->index, p->frame);
	count_frame(&backend_stats, c->backend, p->frame);
	return RINGLB_VERDICT_FORWARDED;
}

/* Reads the state word, once for each packet: everything else follows from it. */
static __always_inline bool begin(struct choice *c, __u64 *state)
{
	__u32 zero = 0;

	*c = (struct choice){ .tables = bpf_map_lookup_elem(&tables, &zero),
			      .backend = RINGLB_NO_BACKEND,
			      .owner = RINGLB_NO_BACKEND };
	if (!c->tables)
		return false;
	*state = *(const volatile __u64 *)&c->tables->state;
	c->side = *state & 1;
	c->root = &c->tables->roots[c->side];
	return true;
}

SEC("xdp.frags")
int prog(struct xdp_md *ctx)
{
	enum ringlb_verdict verdict;
	int action = XDP_ABORTED;
	struct packet p;
	struct choice c;
	__u64 state;

	if (!begin(&c, &state))
		return XDP_ABORTED;
	verdict = steer(ctx, &p, &c, &action);
	if (unlikely(RINGLB_VERDICT_IS_ANSWER(verdict)))
		verdict = answer_packet(ctx, &p, &c, verdict);
	count_verdict(verdict);
	if (is_traced(&c, verdict))
		trace(ctx, &p, &c, verdict);
	if (verdict == RINGLB_VERDICT_FORWARDED)
		return action;
	if (RINGLB_VERDICT_IS_ANSWER(verdict))
		return XDP_TX;
	return RINGLB_VERDICT_IS_DROP(verdict) ? XDP_DROP : XDP_PASS;
}

/* Never attached: answers where a packet would go, over the packet itself, and changes nothing. */
SEC("xdp.frags")
int lookup(struct xdp_md *ctx)
{
	enum ringlb_verdict verdict;
	struct ringlb_lookup *out;
	struct packet p;
	struct choice c;
	__u64 state;

	if (!begin(&c, &state))
		return XDP_ABORTED;
	verdict = choose(ctx, &p, &c, false);
	if (verdict == GO_ON)
		verdict = foresee(ctx, &p, &c);
	out = (void *)(long)ctx->data;
	if ((void *)(out + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	*out = (struct ringlb_lookup){
		.verdict = verdict,
		.position = c.position,
		.service = c.service ? c.service->index : RINGLB_NO_BACKEND,
		.backend = c.backend,
		.owner = c.owner,
		.previous = c.previous,
		.moved = c.moved,
		.tracked = c.tracked,
		.revision = state >> 1,
		.jiffies = bpf_jiffies64(),
	};
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
