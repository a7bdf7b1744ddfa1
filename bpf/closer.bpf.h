/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between steps 2 and 3: what came to a service's address and is not plainly TCP or UDP to a port of one. The ordinary
 * path pays one comparison for all of it.
 */
#ifndef RINGLB_CLOSER_BPF_H
#define RINGLB_CLOSER_BPF_H

#include "icmp.bpf.h"
#include "service.bpf.h"

/* What is malformed is for nobody; the rest is for a service of any protocol, which does not ask for ports. */
static __always_inline enum ringlb_verdict look_closer(struct xdp_md *ctx, struct packet *p, struct choice *c,
						       bool writes)
{
	if (p->fault == RINGLB_VERDICT_DROPPED_MALFORMED)
		return p->fault;
	if (p->fault == RINGLB_VERDICT_PASSED_PROTOCOL && is_icmp(p))
		return look_at_icmp(ctx, p, c, writes);
	if (!is_for_any_protocol(c->service))
		return p->fault;
	return GO_ON;
}

#endif
