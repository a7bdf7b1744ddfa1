/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets whose transport header stands behind IPv6 extension headers, or is in another packet: fragments. The first one
 * has the ports, goes where its flow goes, and leaves them in the map `fragments`, with the backend, for the others,
 * which come in any order behind it. One that comes before the first can be told a backend only where the address has
 * but one service that it can be for (struct ringlb_service, of a mark): a client's, where that goes by the client's
 * address, else, of UDP, one for the datagram, which the first fragment then goes to as well. A TCP segment would not
 * be with its connection there: it is dropped, and sent again.
 *
 * Fragments open no flow, and keep none from ending.
 */
#ifndef RINGLB_FRAGMENT_BPF_H
#define RINGLB_FRAGMENT_BPF_H

#include "extension.bpf.h"
#include "service.bpf.h"

/* A packet that is looked at closer; no pointers and no padding: for global functions. */
struct closer {
	struct packet packet; /* in: as parse() left it; out: with what was found */
	__u32 side;
	__u32 number;   /* out: of the packet's service */
	__u32 fragment; /* out: as in struct choice; in: what to remember */
	__u32 id;       /* of what it is a fragment of */
};
_Static_assert(sizeof(struct closer) == 80, "closer");

/* The entry, a mark perhaps, that its address, port and protocol lead to now. */
static __always_inline const struct ringlb_service *find_entry(struct closer *r)
{
	const struct packet *p = &r->packet;
	const struct ringlb_tables *t = tables_again();

	r->number = service_wider(p->service[0], p->service[1], p->service_port | (__u32)p->protocol << 16, r->side) &
		    0xffff;
	return t && r->number ? service_at(t, &t->roots[r->side & 1], r->number) : NULL;
}

static __always_inline enum ringlb_verdict find_service_again(struct closer *r)
{
	const struct ringlb_service *s = find_entry(r);

	return s && !is_mark(s) ? GO_ON : RINGLB_VERDICT_PASSED_NO_SERVICE;
}

/* A service of any protocol asks for no ports. */
static __always_inline enum ringlb_verdict any_protocol(struct closer *r, enum ringlb_verdict otherwise)
{
	const struct ringlb_service *s;

	r->packet.protocol = 0;
	r->packet.service_port = 0;
	s = find_entry(r);
	return s && is_for_any_protocol(s) ? GO_ON : otherwise;
}

static __always_inline enum ringlb_verdict read_fragment_ipv4(struct xdp_md *ctx, struct closer *r)
{
	struct iphdr *ip = (void *)(long)ctx->data + (r->packet.network & MAX_NETWORK);

	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return RINGLB_VERDICT_DROPPED_MALFORMED;
	r->id = ip->id;
	r->packet.fragment = ip->frag_off & bpf_htons(FRAGMENT_OFFSET4) ? FRAGMENT_EARLY : FRAGMENT_FIRST;
	return GO_ON;
}

/* Goes over the extension headers, too. */
static __always_inline enum ringlb_verdict read_fragment_ipv6(struct xdp_md *ctx, struct closer *r)
{
	struct ipv6hdr *ip = (void *)(long)ctx->data + (r->packet.network & MAX_NETWORK);
	struct extensions e = { .at = r->packet.network + sizeof(*ip) };
	enum ringlb_verdict verdict;

	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return RINGLB_VERDICT_DROPPED_MALFORMED;
	e.next = ip->nexthdr;
	verdict = skip_extensions(ctx, &e);
	if (e.at > r->packet.network + r->packet.length)
		return RINGLB_VERDICT_DROPPED_MALFORMED;
	if (verdict != GO_ON)
		return verdict;
	r->id = e.id;
	r->packet.next = e.next;
	r->packet.transport = e.at;
	r->packet.fragment = is_later_fragment(&e) ? FRAGMENT_EARLY : e.fragment ? FRAGMENT_FIRST : FRAGMENT_NONE;
	return e.at > MAX_TRANSPORT ? RINGLB_VERDICT_DROPPED_EXTENSIONS : GO_ON;
}

/* Whether it is one, and of what. Unlike GO_ON: what becomes of it, because of its headers. */
static __always_inline enum ringlb_verdict read_fragment(struct xdp_md *ctx, struct closer *r)
{
	return r->packet.ipv6 ? read_fragment_ipv6(ctx, r) : read_fragment_ipv4(ctx, r);
}

/*
 * A first fragment has the whole header, as far as all such headers have it: what is smaller is made to get past who looks
 * at ports or flags (RFC 1858, RFC 7112). UDP's length is the datagram's.
 */
static __always_inline enum ringlb_verdict first_ports(struct packet *p, __be16 *ports, void *end, __u32 rest)
{
	if (p->next != IPPROTO_TCP && p->next != IPPROTO_UDP)
		return RINGLB_VERDICT_DROPPED_FRAGMENT;
	if (rest < (p->next == IPPROTO_TCP ? sizeof(struct tcphdr) : sizeof(struct udphdr)) ||
	    (void *)(ports + 2) > end)
		return RINGLB_VERDICT_DROPPED_MALFORMED;
	p->client_port = ports[0];
	p->service_port = ports[1];
	p->protocol = p->next;
	return GO_ON;
}

/* The ports of what is no later fragment. */
static __always_inline enum ringlb_verdict ports_behind(struct xdp_md *ctx, struct packet *p)
{
	void *transport = (void *)(long)ctx->data + (p->transport & MAX_TRANSPORT), *end = (void *)(long)ctx->data_end;
	__u32 to = p->network + p->length;

	if (p->fragment == FRAGMENT_FIRST)
		return first_ports(p, transport, end, to - p->transport);
	return parse_ports(p, transport, end, to - p->transport, p->next);
}

/* Of what the fragments are put together to: addresses and id, for IPv4 the protocol too. */
static __always_inline __u64 fragment_fingerprint(const struct ringlb_root *root, const struct closer *r)
{
	struct packet p = {
		.client = { r->packet.client[0], r->packet.client[1] },
		.service = { r->packet.service[0], r->packet.service[1] },
		.client_port = r->id,
		.service_port = r->id >> 16,
		.protocol = r->packet.ipv6 ? IPPROTO_FRAGMENT : r->packet.next,
		.ipv6 = r->packet.ipv6,
	};

	return flow_fingerprint(root, &p);
}

/* Fills in what is remembered of it: of a later one, the ports. Returns 0. */
__noinline int recall_fragment(struct closer *r)
{
	const struct ringlb_tables *t = tables_again();
	const struct ringlb_fragment *known;
	__u64 key;

	if (!r || !t || !t->hz)
		return 0;
	key = fragment_fingerprint(&t->roots[r->side & 1], r);
	r->fragment = r->packet.fragment == FRAGMENT_EARLY ? key >> 32 : 0;
	known = bpf_map_lookup_elem(&fragments, &key);
	if (!known || (__s32)((__u32)(bpf_jiffies64() / t->hz) - known->until) >= 0)
		return 0;
	r->fragment = known->choice;
	if (r->packet.fragment == FRAGMENT_FIRST) {
		r->packet.fragment = known->early ? FRAGMENT_FIRST_LED : FRAGMENT_FIRST;
		return 0;
	}
	r->packet.fragment = FRAGMENT_LATER;
	r->packet.client_port = known->client_port;
	r->packet.service_port = known->service_port;
	r->packet.protocol = known->early ? 0 : known->protocol;
	return 0;
}

/* A fragment of which nothing but its addresses is known. */
static __always_inline enum ringlb_verdict come_early(struct closer *r, const struct ringlb_service *s)
{
	if (!is_mark(s))
		return GO_ON; /* of any protocol: nothing more is asked for */
	r->number = r->packet.next == IPPROTO_UDP ? s->owners : r->packet.next == IPPROTO_TCP ? s->points : 0;
	return r->number ? GO_ON : RINGLB_VERDICT_DROPPED_FRAGMENT;
}

/*
 * Whether what came before the first fragment was taken for the service that this says it is for. A wider prefix may have a
 * service for ports that the address's own one is not for.
 */
static __always_inline bool is_led_rightly(const struct closer *r)
{
	const struct packet *p = &r->packet;
	const struct ringlb_tables *t = tables_again();
	__u32 number = service_wider(p->service[0], p->service[1], 0, r->side) & 0xffff;
	const struct ringlb_service *mark = t && number ? service_at(t, &t->roots[r->side & 1], number) : NULL;

	return mark && is_mark(mark) && mark->owners == r->number;
}

static __always_inline enum ringlb_verdict look_at_fragment(struct closer *r)
{
	const struct ringlb_service *s;

	recall_fragment(r);
	s = find_entry(r);
	if (s && !r->packet.protocol)
		return come_early(r, s);
	if (!s || is_mark(s))
		return RINGLB_VERDICT_PASSED_NO_SERVICE;
	if (s->fragments == RINGLB_FRAGMENTS_DROP && !is_for_any_protocol(s))
		return RINGLB_VERDICT_DROPPED_FRAGMENT;
	if (r->packet.fragment == FRAGMENT_FIRST_LED && !is_led_rightly(r))
		r->packet.fragment = FRAGMENT_FIRST;
	return GO_ON;
}

/* A packet to a service's address that has extension headers, or is a fragment. */
static __always_inline enum ringlb_verdict look_behind(struct xdp_md *ctx, struct closer *r)
{
	struct packet *p = &r->packet;
	enum ringlb_verdict verdict = read_fragment(ctx, r);

	if (verdict != GO_ON)
		return verdict;
	if (p->fragment != FRAGMENT_EARLY) {
		verdict = ports_behind(ctx, p);
		if (verdict != GO_ON)
			return verdict;
	}
	return p->fragment == FRAGMENT_NONE ? find_service_again(r) : look_at_fragment(r);
}

/* Remembers r->fragment for the others. Returns 0. */
__noinline int remember_fragment(struct xdp_md *ctx, struct closer *r)
{
	const struct ringlb_tables *t = tables_again();
	struct ringlb_fragment value = {};
	__u64 key;

	if (!r || !t || !t->hz || read_fragment(ctx, r) != GO_ON)
		return 0;
	key = fragment_fingerprint(&t->roots[r->side & 1], r);
	value.choice = r->fragment;
	value.until = bpf_jiffies64() / t->hz + RINGLB_FRAGMENT_SECONDS + 1;
	value.client_port = r->packet.client_port;
	value.service_port = r->packet.service_port;
	value.protocol = r->packet.protocol;
	value.early = r->packet.fragment == FRAGMENT_EARLY;
	bpf_map_update_elem(&fragments, &key, &value, BPF_ANY);
	return 0;
}

/* An early fragment's place is its datagram's own, unless it is the client's. */
static __always_inline void place_fragment(const struct packet *p, struct choice *c)
{
	if (p->fragment == FRAGMENT_EARLY && c->service->fragments == RINGLB_FRAGMENTS_TRACK &&
	    !is_for_any_protocol(c->service))
		c->position = c->fragment;
}

/* The backend that the fragment has with the others, and for the others. */
static __always_inline void follow_fragment(struct xdp_md *ctx, const struct packet *p, struct choice *c, bool writes)
{
	struct closer r = { .packet = *p, .side = c->side };
	__u32 backend = c->backend;

	if (is_for_any_protocol(c->service))
		return;
	if (p->fragment == FRAGMENT_LATER || (p->fragment == FRAGMENT_FIRST_LED && p->protocol == IPPROTO_UDP)) {
		if (choice_counts(c->fragment))
			c->backend = c->fragment & 0xffff;
		return;
	}
	if (!writes || backend >= RINGLB_NO_BACKEND)
		return;
	r.fragment = choice_of(backend);
	remember_fragment(ctx, &r);
}

#endif
