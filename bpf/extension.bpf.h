/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* IPv6 extension headers (RFC 8200), in a packet or in what an ICMP error quotes of one. */
#ifndef RINGLB_EXTENSION_BPF_H
#define RINGLB_EXTENSION_BPF_H

#include "parse.bpf.h"

#define MAX_EXTENSIONS 6
#define MAX_EXTENSION_AT 0x3ffu /* where in the frame the last one may end */
#define FRAGMENT_OFFSET6 0xfff8
#define FRAGMENT_MORE6 0x0001

/* A walk along them; no pointers and no padding. `at` and `next` are where it starts, and afterwards where it ended. */
struct extensions {
	__u16 at;      /* offset in the frame */
	__u8 next;     /* what stands there */
	bool fragment; /* a fragment header was among them that is not that of a whole packet (RFC 6946) */
	__be16 offset; /* of the last fragment header, with its flags; 0 where there is none */
	__u16 reserved;
	__be32 id; /* of what it is a fragment of */
};

static __always_inline bool is_extension(__u8 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS ||
	       next == IPPROTO_FRAGMENT || next == IPPROTO_AH;
}

static __always_inline bool is_later_fragment(const struct extensions *e)
{
	return e->offset & bpf_htons(FRAGMENT_OFFSET6);
}

/*
 * Goes on to the header behind them; behind a later fragment's header there is none. Returns enum ringlb_verdict: GO_ON, or
 * what becomes of a packet that has more than MAX_EXTENSIONS, or in which one ends behind the frame. Unrolled, for clang's
 * loop falls through to its beginning, which kernel 6.1 refuses: "back-edge from insn".
 */
__noinline int skip_extensions(struct xdp_md *ctx, struct extensions *e)
{
	if (!e)
		return RINGLB_VERDICT_DROPPED_INTERNAL;
#pragma unroll
	for (int i = 0; i <= MAX_EXTENSIONS; i++) {
		__u8 *header = (void *)(long)ctx->data + (e->at & MAX_EXTENSION_AT);

		if (!is_extension(e->next) || is_later_fragment(e))
			return GO_ON;
		if (i == MAX_EXTENSIONS || e->at > MAX_EXTENSION_AT)
			return RINGLB_VERDICT_DROPPED_EXTENSIONS;
		if ((void *)(header + 8) > (void *)(long)ctx->data_end)
			return RINGLB_VERDICT_DROPPED_MALFORMED;
		if (e->next == IPPROTO_FRAGMENT) {
			e->offset = *(__be16 *)(header + 2) & bpf_htons(FRAGMENT_OFFSET6 | FRAGMENT_MORE6);
			if (!e->fragment)
				e->id = *(__be32 *)(header + 4);
			e->fragment |= !!e->offset;
			e->at += 8;
		} else if (e->next == IPPROTO_AH) {
			e->at += (header[1] + 2u) * 4; /* RFC 4302 */
		} else {
			e->at += (header[1] + 1u) * 8;
		}
		e->next = header[0];
	}
	return RINGLB_VERDICT_DROPPED_EXTENSIONS;
}

#endif
