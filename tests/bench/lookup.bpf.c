// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ring's search alone, as the data plane has it, beside the flat table of slots that other balancers index. Many
 * look-ups in one run, so that the run itself does not count; what the loop costs is measured by one that looks nothing
 * up.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bench_abi.h"
#include "ring.bpf.h"

struct bench_look look;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BENCH_FLAT_SLOTS);
	__type(key, __u32);
	__type(value, __u32);
} flat SEC(".maps");

static __always_inline __u32 in_nothing(__u32 position)
{
	return position & 63;
}

static __always_inline __u32 in_flat(__u32 position)
{
	__u32 slot = position % BENCH_FLAT_SLOTS;
	__u32 *owner = bpf_map_lookup_elem(&flat, &slot);

	return owner ? *owner : RINGLB_NO_BACKEND;
}

static __always_inline __u32 in_ring(__u32 position)
{
	__u32 zero = 0, at, which = look.which;
	struct choice c = { .tables = bpf_map_lookup_elem(&tables, &zero), .position = position };

	if (!c.tables || which >= BENCH_RINGS)
		return RINGLB_NO_BACKEND;
	c.service = &look.ring[which];
	find_owner(&c, &at, false);
	return c.owner;
}

/*
 * Look-ups between two returns. With some mitigations a processor does not look beyond a return, and nothing would
 * overlap.
 */
#define STEP 16

struct work {
	__u32 key;
	__u64 sum;
};

/* answer & mask: with 0 the next key does not wait for the answer. */
#define LOOKUP_PROGRAM(name, in, mask)                                                                                 \
	static long step_##name(__u32 round, struct work *w)                                                           \
	{                                                                                                              \
		__u32 key = w->key;                                                                                    \
		__u64 sum = 0;                                                                                         \
                                                                                                                       \
		for (int i = 0; i < STEP; i++) {                                                                       \
			__u32 answer = in(bench_position(key));                                                        \
                                                                                                                       \
			sum += answer;                                                                                 \
			key = bench_next_key(key, answer & (mask));                                                    \
		}                                                                                                      \
		w->sum += sum;                                                                                         \
		w->key = key;                                                                                          \
		return 0;                                                                                              \
	}                                                                                                              \
                                                                                                                       \
	SEC("xdp") int look_##name(struct xdp_md *ctx)                                                                 \
	{                                                                                                              \
		struct work w = { .key = look.key };                                                                   \
                                                                                                                       \
		if (bpf_loop(BENCH_KEYS / STEP, step_##name, &w, 0) != BENCH_KEYS / STEP)                              \
			return XDP_ABORTED;                                                                            \
		look.key = w.key;                                                                                      \
		look.sum += w.sum;                                                                                     \
		return XDP_PASS;                                                                                       \
	}

LOOKUP_PROGRAM(nothing, in_nothing, 0)
LOOKUP_PROGRAM(nothing_chained, in_nothing, ~0u)
LOOKUP_PROGRAM(flat, in_flat, 0)
LOOKUP_PROGRAM(flat_chained, in_flat, ~0u)
LOOKUP_PROGRAM(ring, in_ring, 0)
LOOKUP_PROGRAM(ring_chained, in_ring, ~0u)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
