/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between steps 2 and 3: what came to a service's address and is not plainly TCP or UDP to a port of one. The ordinary
 * path pays one comparison for all of it.
 */
#ifndef RINGLB_CLOSER_BPF_H
#define RINGLB_CLOSER_BPF_H

#include "fragment.bpf.h"
#include "icmp.bpf.h"
#include "service.bpf.h"

/*
 * packet.fault says why the packet is looked at; afterwards it is what it is, and what becomes of it is returned, enum
 * ringlb_verdict. One way in and one out: what follows is verified for this once.
 */
__noinline int identify(struct xdp_md *ctx, struct closer *r)
{
	enum ringlb_verdict verdict;

	if (!r)
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	verdict = r->packet.fault;
	if (verdict == RINGLB_VERDICT_DROPPED_FRAGMENT || (r->packet.ipv6 && is_extension(r->packet.next)))
		verdict = look_behind(ctx, r);
	if (verdict == RINGLB_VERDICT_PASSED_PROTOCOL && is_icmp(&r->packet))
		return look_at_icmp(ctx, r);
	/* A fragment of a known protocol is dropped for the service that it is for. */
	if (verdict == RINGLB_VERDICT_PASSED_PROTOCOL ||
	    (verdict == RINGLB_VERDICT_DROPPED_FRAGMENT && !r->packet.protocol))
		return any_protocol(r, verdict);
	return verdict;
}

static __always_inline enum ringlb_verdict look_closer(struct xdp_md *ctx, struct packet *p, struct choice *c)
{
	struct closer r = { .packet = *p, .side = c->side };
	enum ringlb_verdict verdict;

	if (p->fault == RINGLB_VERDICT_DROPPED_MALFORMED)
		return p->fault;
	verdict = identify(ctx, &r);
	/* Not the whole: the verifier knows more of what is left out here than a global function's argument tells it. */
	__builtin_memcpy(p->client, r.packet.client, sizeof(p->client));
	p->client_port = r.packet.client_port;
	p->service_port = r.packet.service_port;
	p->protocol = r.packet.protocol;
	p->next = r.packet.next;
	p->transport = r.packet.transport;
	p->related = r.packet.related;
	p->fragment = r.packet.fragment;
	c->fragment = r.fragment;
	if (verdict != GO_ON)
		return verdict;
	c->service = r.number ? service_at(c->tables, c->root, r.number) : NULL;
	if (!c->service || is_mark(c->service))
		return RINGLB_VERDICT_DROPPED_INTERNAL;
	forget_transport(c->service, p);
	return GO_ON;
}

#endif
