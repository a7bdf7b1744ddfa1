/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Step 4 for services with `affinity: quic`. A connection of QUIC goes on when its client's address changes, known by the
 * id that the server gave it, which the client's packets carry: in the clear, but in short headers without its length.
 *
 * The flow table remembers the backend of a 4-tuple, and that of an id. The 4-tuple is asked first, and teaches ids; an id
 * that is known, else one that names its server, teaches a 4-tuple. What is new enters as an opening, within their share,
 * unless the one or the other is established and vouches for it; a second packet, of a kind that a client sends when it has
 * got an answer, establishes an opening. Initials never establish anything.
 *
 * The client makes up the id of its first Initial; later ones carry the server's, and nothing tells them apart. So an
 * Initial opens a flow only where neither its 4-tuple nor its id is known, and when a moved arc's new flow could not be
 * remembered, Initials there go the same way, to the previous owner, until that handshake is over.
 */
#ifndef RINGLB_QUIC_BPF_H
#define RINGLB_QUIC_BPF_H

#include <stddef.h>

#include "flows.bpf.h"

#define QUIC_VERSION_1 1u          /* RFC 9000 */
#define QUIC_VERSION_2 0x6b3343cfu /* RFC 9369 */
#define QUIC_LONG_HEADER 0x80u
#define QUIC_MAX_ID 20u        /* in these versions */
#define QUIC_MIN_CLIENT_ID 8u  /* of those that a client makes up: RFC 9000, 7.2 */
#define QUIC_MAX_SERVER_ID 4u  /* bytes */
#define QUIC_SERVERS_ROUNDS 17 /* less than 2^17 servers */
#define QUIC_REFUSED_BITS 9    /* RINGLB_QUIC_REFUSED is 2^this */
_Static_assert(1u << QUIC_REFUSED_BITS == RINGLB_QUIC_REFUSED, "refused");

enum quic_kind {
	QUIC_OTHER,  /* by its 4-tuple alone: version negotiation, Retry, other versions, what is not QUIC */
	QUIC_BEGINS, /* Initial, 0-RTT: the id may be of the client's making */
	QUIC_LONG,   /* Handshake: the id is of the server's making */
	QUIC_SHORT,  /* 1-RTT, likewise */
};

/* No pointers and no padding: for global functions. */
struct quic {
	__u64 id;      /* fingerprint of the connection id; 0: there is none, or none that can be read */
	__u16 named;   /* the backend that the id, if the server made it, names, or RINGLB_NO_BACKEND */
	__u16 network; /* offset of the IP header */
	bool ipv6;
	__u8 side;
	__u8 kind;   /* enum quic_kind */
	__u8 length; /* of the id */
};
_Static_assert(sizeof(struct quic) == 16, "quic");

/* The rest of the UDP header, and what is the same in all versions of QUIC (RFC 8999). */
struct quic_head {
	__be16 service_port;
	__be16 udp_length;
	__be16 udp_check;
	__u8 first;
	__be32 version; /* this and the next of long headers only */
	__u8 id_length;
} __attribute__((packed));

static __always_inline enum quic_kind long_kind(__u32 version, __u8 first)
{
	__u32 type = first >> 4 & 3;

	if (version == QUIC_VERSION_2)
		type = (type - 1) & 3;
	else if (version != QUIC_VERSION_1)
		return QUIC_OTHER;
	return type < 2 ? QUIC_BEGINS : type == 2 ? QUIC_LONG : QUIC_OTHER;
}

/* The backend of the server with this id, or RINGLB_NO_BACKEND. */
static __always_inline __u32 server_find(const struct ringlb_tables *t, __u32 servers, __u32 id)
{
	const struct ringlb_servers *list = table_at(t, servers);
	const struct ringlb_server *s;
	__u32 from = 0, to;

	if (!list)
		return RINGLB_NO_BACKEND;
	to = list->count;
	for (int i = 0; i < QUIC_SERVERS_ROUNDS && from < to; i++) {
		__u32 middle = from + (to - from) / 2;

		s = table_at(t, servers + sizeof(*list) + (__u64)middle * sizeof(*s));
		if (!s)
			return RINGLB_NO_BACKEND;
		if (s->id == id)
			return s->backend;
		if (s->id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return RINGLB_NO_BACKEND;
}

/* Reads up to max bytes, at most 31. The verifier of kernel 6.1 learns no lower bound from "not 0". */
static __always_inline bool read_bytes(struct xdp_md *ctx, __u32 at, void *out, __u32 length, const __u32 max)
{
	__u32 more = length - 1;

	asm volatile("" : "+r"(more));
	return more < max && !bpf_xdp_load_bytes(ctx, at, out, more + 1);
}

static __always_inline void read_server(struct xdp_md *ctx, const struct tracked *f, struct quic *q, __u32 id_at)
{
	const struct ringlb_tables *t = tables_again();
	__be32 number = 0;

	if (!t || !f->servers || q->length != f->cid_length ||
	    !read_bytes(ctx, id_at + f->server_offset, &number, f->server_length, QUIC_MAX_SERVER_ID))
		return;
	q->named = server_find(t, f->servers, bpf_ntohl(number) >> (8 * (QUIC_MAX_SERVER_ID - f->server_length) & 31));
}

/* The packet's destination, IPv4 mapped. */
static __always_inline bool read_service(struct xdp_md *ctx, const struct quic *q, __u8 *address)
{
	if (q->ipv6)
		return !bpf_xdp_load_bytes(ctx, q->network + offsetof(struct ipv6hdr, daddr), address, 16);
	address[10] = address[11] = 0xff;
	return !bpf_xdp_load_bytes(ctx, q->network + offsetof(struct iphdr, daddr), address + 12, 4);
}

/* Fills in what the packet says: kind, length, id and named. Returns 0. */
__noinline int quic_read(struct xdp_md *ctx, const struct tracked *f, struct quic *q)
{
	const struct ringlb_tables *t = tables_again();
	struct flow_key_id key = {};
	struct quic_head head;
	__u32 at, end, length;

	if (!f || !q || !t || bpf_xdp_load_bytes(ctx, f->transport + sizeof(struct udphdr) - 6, &head, sizeof(head)))
		return 0;
	at = f->transport + sizeof(struct udphdr) + 1;
	end = f->transport + bpf_ntohs(head.udp_length);
	length = f->cid_length;
	q->kind = QUIC_SHORT;
	if (head.first & QUIC_LONG_HEADER) {
		q->kind = long_kind(bpf_ntohl(head.version), head.first);
		length = head.id_length;
		at += sizeof(head.version) + sizeof(head.id_length);
	}
	if (at + length > end || length > QUIC_MAX_ID)
		q->kind = QUIC_OTHER;
	if (q->kind == QUIC_OTHER || !read_bytes(ctx, at, key.id, length, QUIC_MAX_ID))
		return 0;
	q->length = length;
	if (!read_service(ctx, q, key.service))
		return 0;
	key.service_port = head.service_port;
	key.length = length;
	q->id = flow_fingerprint_id(t->roots[q->side & 1].hash_key, &key);
	if (q->id <= RINGLB_FLOW_BUSY)
		q->id = RINGLB_FLOW_BUSY + 1;
	read_server(ctx, f, q, at);
	return 0;
}

/* What the flow table has of a 4-tuple or an id. For global functions, which the verifier looks at once, too. */
struct remembered {
	__u64 fingerprint;
	__u64 established; /* the entry's word */
	__u32 choice;      /* that counts, or 0 */
	__u32 tag;         /* of the Initial that opened it; 0: none did, or it is established */
	__u8 slot;         /* of the entry in its bucket, where it was found */
	bool found;
	bool opening;
	bool rebound;
	bool lost; /* what was chosen went down */
	__u8 reserved[3];
};
_Static_assert(sizeof(struct remembered) == 32, "remembered");

static __always_inline struct ringlb_flow_bucket *bucket_of(__u32 fingerprint)
{
	__u32 at = (__u64)fingerprint * sizes.flow_buckets >> 32;

	return bpf_map_lookup_elem(&flows, &at);
}

/* Fills in all but the fingerprint. Returns 0. */
__noinline int quic_recall(struct remembered *r, __u32 now)
{
	struct ringlb_flow_bucket *bucket;
	struct ringlb_flow *e;
	__u64 opening;

	if (!r)
		return 0;
	bucket = bucket_of(r->fingerprint);
	if (!bucket)
		return 0;
	for (__u32 i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++)
		if (read_word(&bucket->flow[i].fingerprint) == r->fingerprint) {
			r->found = true;
			r->slot = i;
		}
	if (!r->found)
		return 0;
	e = &bucket->flow[r->slot % RINGLB_FLOWS_PER_BUCKET];
	r->established = read_word(&e->established);
	opening = read_word(&e->opening);
	r->opening = !(__u32)r->established;
	r->rebound = read_word(&e->place) & RINGLB_FLOW_REBOUND;
	if (is_expired(r->established, now))
		return 0;
	r->choice = r->opening ? opening : r->established;
	r->lost = !choice_counts(r->choice);
	if (r->lost)
		r->choice = 0;
	else if (r->opening)
		r->tag = opening >> 32;
	return 0;
}

/*
 * What quic_renew() and quic_insert() write: established with QUIC_VOUCHED, else an opening. `opening` is the entry's word
 * then, and has the choice in its lower half; flags: RINGLB_FLOW_* and that.
 */
#define QUIC_VOUCHED 0x10000u

static __always_inline __u64 noted_established(const struct tracked *f, __u64 opening, __u32 flags)
{
	return flags & QUIC_VOUCHED ? deadline(f, f->settle_after) | (__u32)opening :
				      deadline(f, RINGLB_OPENING_SECONDS);
}

static __always_inline void write_noted(struct ringlb_flow *e, const struct tracked *f, const struct remembered *r,
					__u64 opening, __u32 flags)
{
	write_word(&e->opening, flags & QUIC_VOUCHED ? 0 : opening);
	write_word(&e->place, (r->fingerprint >> 32) << 32 | (__u32)f->service << 16 | (flags & 0xffff));
	if (flags & QUIC_VOUCHED)
		COUNT_FLOW(established);
	else
		COUNT_FLOW(opened);
}

/* In an entry of its own whose choice does not count any more. Returns whether another packet was not faster. */
__noinline int quic_renew(const struct tracked *f, const struct remembered *r, __u64 opening, __u32 flags)
{
	struct ringlb_flow_bucket *bucket;
	struct ringlb_flow *e;

	if (!f || !r || f->frozen)
		return 0;
	bucket = bucket_of(r->fingerprint);
	if (!bucket || !f->writes)
		return bucket != NULL;
	e = &bucket->flow[r->slot % RINGLB_FLOWS_PER_BUCKET];
	if (!swap_word(&e->established, r->established, noted_established(f, opening, flags)))
		return 0;
	write_noted(e, f, r, opening, flags);
	return 1;
}

/* In a new entry. Returns whether there is room. */
__noinline int quic_insert(const struct tracked *f, const struct remembered *r, __u64 opening, __u32 flags)
{
	struct ringlb_flow_bucket *bucket;
	struct ringlb_flow *e;

	if (!f || !r)
		return 0;
	bucket = bucket_of(r->fingerprint);
	if (!bucket)
		return 0;
	e = flow_room(bucket, f, !(flags & QUIC_VOUCHED));
	if (!e || !f->writes)
		return e != NULL;
	if (!flow_claim(e, f))
		return 0;
	write_word(&e->established, noted_established(f, opening, flags));
	write_noted(e, f, r, opening, flags);
	flow_show(e, r->fingerprint);
	return 1;
}

static __always_inline bool note(const struct tracked *f, const struct remembered *r, __u64 opening, __u32 flags)
{
	return r->found ? quic_renew(f, r, opening, flags) : quic_insert(f, r, opening, flags);
}

/*
 * A packet of this kind (enum quic_kind) came that agrees. An opening becomes established by the right kind, where
 * `vouched`. Returns whether it is established, and so vouches for what else the packet shows; not for an Initial's.
 */
__noinline int quic_confirm(const struct tracked *f, const struct remembered *r, __u32 kind, bool vouched)
{
	struct ringlb_flow_bucket *bucket;
	struct ringlb_flow *e;

	if (!f || !r || !f->writes)
		return 0;
	bucket = bucket_of(r->fingerprint);
	if (!bucket)
		return 0;
	e = &bucket->flow[r->slot % RINGLB_FLOWS_PER_BUCKET];
	if (!r->opening || (vouched && (kind == QUIC_LONG || kind == QUIC_SHORT))) {
		flow_refresh(e, f, r->established, r->choice);
		if (r->opening)
			write_word(&e->opening, 0);
		return kind != QUIC_BEGINS;
	}
	if (is_expired(r->established, f->now + RINGLB_OPENING_SECONDS))
		swap_word(&e->established, r->established, deadline(f, RINGLB_OPENING_SECONDS));
	return 0;
}

/* The client has the server's id now: the one that it made up makes room for other openings. */
static __always_inline void forget_made_up(__u32 tag)
{
	struct ringlb_flow_bucket *bucket = bucket_of(tag);

	if (!bucket)
		return;
	for (__u32 i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++) {
		struct ringlb_flow *e = &bucket->flow[i];
		__u64 fingerprint = read_word(&e->fingerprint);

		if ((__u32)fingerprint == tag && fingerprint > RINGLB_FLOW_BUSY &&
		    read_word(&e->place) & RINGLB_FLOW_REBOUND && !(__u32)read_word(&e->established))
			swap_word(&e->fingerprint, fingerprint, 0);
	}
}

static __always_inline __u16 *refusals_of(const struct tracked *f)
{
	__u32 zero = 0;
	struct ringlb_tables *t = bpf_map_lookup_elem(&tables, &zero);

	return t ? &t->quic_refused[f->position >> (32 - QUIC_REFUSED_BITS)] : NULL;
}

static __always_inline bool was_refused(const struct tracked *f)
{
	const __u16 *refused = refusals_of(f);

	return refused && (__u16)((__u16)f->now - *refused) <= RINGLB_OPENING_SECONDS;
}

static __always_inline void refuse_quic(struct tracked *f)
{
	__u16 *refused = refusals_of(f);

	f->backend = unknown_flow(f);
	if (f->writes && refused && *refused != (__u16)f->now)
		*refused = f->now;
}

static __always_inline bool opens_quic(const struct quic *q)
{
	return q->kind == QUIC_BEGINS && q->length >= QUIC_MIN_CLIENT_ID;
}

/* How it shows that the arc can't settle, and its backend not be switched off. An Initial holds up neither for long. */
static __always_inline void stamp_quic(const struct tracked *f, const struct quic *q, bool rebound)
{
	__u32 ago = f->settle_after > RINGLB_OPENING_SECONDS ? f->settle_after - RINGLB_OPENING_SECONDS : 0;
	struct tracked elsewhere = { .now = f->now, .backend = f->backend, .moved = f->moved && !rebound };

	elsewhere.cold = f->cold;
	if (!f->writes || f->backend == f->owner)
		return;
	if (q->kind == QUIC_BEGINS)
		stamp_arc(&elsewhere, f->now - ago);
	else
		stamp_old(&elsewhere);
}

/*
 * Remembers the 4-tuple; where a flow that opens can't be, it goes where its later packets will go. rebound: its id said
 * where; vouched: an id that is established did.
 */
static __always_inline void learn_tuple(struct tracked *f, const struct quic *q, const struct remembered *tuple,
					bool opens, bool rebound, bool vouched)
{
	__u64 opening = f->backend < RINGLB_NO_BACKEND ? choice_of(f->backend) : 0;
	__u32 flags;

	if (!opening || q->kind == QUIC_OTHER)
		return;
	if (opens)
		opening |= (__u64)((__u32)q->id ? (__u32)q->id : 1) << 32;
	flags = (rebound ? RINGLB_FLOW_REBOUND : 0) | (vouched ? QUIC_VOUCHED : 0);
	if (!note(f, tuple, opening, flags) && !rebound && opens_quic(q))
		refuse_quic(f);
}

/*
 * Remembers the id; returns whether it can vouch for the 4-tuple. Ids of the server that name one are not learned: they
 * say it themselves, or contradict what is known.
 */
static __always_inline bool learn_id(const struct tracked *f, const struct quic *q, const struct remembered *id,
				     bool from_server, bool vouched)
{
	__u32 choice = choice_of(f->backend);

	if (!q->id || !choice || (from_server && q->named < RINGLB_NO_BACKEND))
		return false;
	if (!id->choice)
		note(f, id, choice, RINGLB_FLOW_REBOUND | (vouched && q->kind != QUIC_BEGINS ? QUIC_VOUCHED : 0));
	else if (id->choice == choice)
		return quic_confirm(f, id, q->kind, vouched);
	return false;
}

/*
 * Whether a 4-tuple's entry is not of the connection that the packet is of: nothing has confirmed it yet, and the id is
 * another backend's, or the entry is an Initial's, which nobody has answered. Whoever forges a packet diverts none so.
 */
static __always_inline bool is_of_another(const struct quic *q, const struct remembered *tuple,
					  const struct remembered *id)
{
	if (!tuple->choice || !tuple->opening || id->choice == tuple->choice)
		return false;
	return (id->choice && !id->opening) || (tuple->tag && q->kind == QUIC_SHORT);
}

/* Where a packet goes that the flow table knows nothing of; returns whether it opens a flow. */
static __always_inline bool choose_anew(struct tracked *f, const struct quic *q, bool lost)
{
	bool opens = opens_quic(q) && !was_refused(f);

	f->backend = opens || lost ? f->owner : unknown_flow(f);
	return opens;
}

/* Fills in backend and known. Returns 0. */
__noinline int keep_quic_in_table(struct tracked *f, struct quic *q)
{
	bool by_tuple, of_another, named, opens = false, rebound, vouches;
	struct remembered tuple = {}, id = {};

	if (!f || !q)
		return 0;
	named = q->kind != QUIC_BEGINS && q->named < RINGLB_NO_BACKEND;
	f->backend = named ? q->named : f->owner;
	if (f->track == RINGLB_TRACK_NONE)
		return 0;
	tuple.fingerprint = f->fingerprint;
	quic_recall(&tuple, f->now);
	id.fingerprint = q->id;
	if (q->id)
		quic_recall(&id, f->now);
	of_another = is_of_another(q, &tuple, &id);
	by_tuple = tuple.choice && !of_another;
	of_another &= tuple.tag != 0; /* else it is a stray's, and given to this one */
	rebound = by_tuple ? tuple.rebound : id.choice || named;
	f->known = by_tuple || id.choice;
	if (f->known)
		f->backend = (by_tuple ? tuple.choice : id.choice) & 0xffff;
	else if (!named)
		opens = choose_anew(f, q, tuple.lost);
	if (tuple.lost && f->writes)
		COUNT_FLOW(lost_backend);
	if (by_tuple) {
		vouches = quic_confirm(f, &tuple, q->kind, true);
		learn_id(f, q, &id, q->kind != QUIC_BEGINS || q->named == f->backend, vouches);
		if (vouches && tuple.tag)
			forget_made_up(tuple.tag);
	} else {
		vouches = id.choice && learn_id(f, q, &id, q->kind != QUIC_BEGINS, false);
		if (!of_another)
			learn_tuple(f, q, &tuple, opens, rebound, vouches);
		if (!id.choice)
			learn_id(f, q, &id, q->kind != QUIC_BEGINS, false);
	}
	stamp_quic(f, q, rebound);
	return 0;
}

static __always_inline void keep_quic(struct xdp_md *ctx, const struct choice *c, const struct packet *p,
				      struct tracked *f)
{
	const struct ringlb_service *s = c->service;
	struct quic q = { .named = RINGLB_NO_BACKEND, .network = p->network, .ipv6 = p->ipv6, .side = c->side };

	f->servers = s->servers_off;
	f->cid_length = s->cid_length;
	f->server_offset = s->server_offset;
	f->server_length = s->server_length;
	if (f->related) /* what an ICMP error quotes was the server's: nothing in it is the client's id */
		f->writes = false;
	else
		quic_read(ctx, f, &q);
	keep_quic_in_table(f, &q);
}

#endif
