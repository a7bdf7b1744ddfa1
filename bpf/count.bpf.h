/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Step 7: counters, and the action that a verdict stands for. */
#ifndef RINGLB_COUNT_BPF_H
#define RINGLB_COUNT_BPF_H

#include "maps.bpf.h"
#include "parse.bpf.h"

static __always_inline void count_frame(void *map, __u32 index, __u32 bytes)
{
	struct ringlb_counter *c = bpf_map_lookup_elem(map, &index);

	if (c) {
		c->packets++;
		c->bytes += bytes;
	}
}

static __always_inline void count_verdict(enum ringlb_verdict verdict)
{
	__u32 zero = 0;
	struct ringlb_verdict_counters *v = bpf_map_lookup_elem(&verdicts, &zero);

	if (v && verdict < RINGLB_VERDICT_COUNT)
		v->packets[verdict]++;
}

#endif
