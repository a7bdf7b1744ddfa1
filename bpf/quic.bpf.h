/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Step 4 for services with `affinity: quic`. A connection of QUIC goes on when its client's address changes, known by the
 * id that the server gave it, which the client's packets carry: in the clear, but in short headers without its length.
 *
 * The flow table remembers the backend of a 4-tuple, and that of an id. The 4-tuple is asked first, and teaches ids; an id
 * that is known, else one that names its server, teaches a 4-tuple. Whatever is new enters as an opening, within their
 * share; a second packet, of a kind that a client sends when it has got an answer, establishes it. Initials never do.
 *
 * The client makes up the id of its first Initial; later ones carry the server's, and nothing tells them apart. So an
 * Initial opens a flow only where neither its 4-tuple nor its id is known, and when a moved arc's new flow could not be
 * remembered, Initials there go the same way, to the previous owner, until that handshake is over.
 */
#ifndef RINGLB_QUIC_BPF_H
#define RINGLB_QUIC_BPF_H

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
	__u64 service[2]; /* its address */
	__u64 id;         /* fingerprint of the connection id; 0: there is none, or none that can be read */
	__u32 servers;    /* struct ringlb_service.servers_off */
	__u32 named;      /* the backend that the id, if the server made it, names, or RINGLB_NO_BACKEND */
	__be16 service_port;
	__u16 transport; /* offset of the UDP header */
	__u8 cid_length; /* these as in struct ringlb_service */
	__u8 server_offset;
	__u8 server_length;
	__u8 side;
	__u8 kind;   /* enum quic_kind */
	__u8 length; /* of the id */
	__u8 reserved[6];
};
_Static_assert(sizeof(struct quic) == 48, "quic");

/* The rest of the UDP header, and what is the same in all versions of QUIC (RFC 8999). */
struct quic_head {
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

static __always_inline void read_server(struct xdp_md *ctx, struct quic *q, __u32 id_at)
{
	const struct ringlb_tables *t = tables_again();
	__be32 number = 0;

	if (!t || !q->servers || q->length != q->cid_length ||
	    !read_bytes(ctx, id_at + q->server_offset, &number, q->server_length, QUIC_MAX_SERVER_ID))
		return;
	q->named = server_find(t, q->servers, bpf_ntohl(number) >> (8 * (QUIC_MAX_SERVER_ID - q->server_length) & 31));
}

/* Fills in what the packet says: kind, length, id and named. Returns 0. */
__noinline int quic_read(struct xdp_md *ctx, struct quic *q)
{
	const struct ringlb_tables *t = tables_again();
	struct flow_key_id key = {};
	struct quic_head head;
	__u32 at, end, length;

	if (!q || !t || bpf_xdp_load_bytes(ctx, q->transport + sizeof(struct udphdr) - 4, &head, sizeof(head)))
		return 0;
	at = q->transport + sizeof(struct udphdr) + 1;
	end = q->transport + bpf_ntohs(head.udp_length);
	length = q->cid_length;
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
	__builtin_memcpy(key.service, q->service, sizeof(key.service));
	key.service_port = q->service_port;
	key.length = length;
	q->id = flow_fingerprint_id(t->roots[q->side & 1].hash_key, &key);
	if (q->id <= RINGLB_FLOW_BUSY)
		q->id = RINGLB_FLOW_BUSY + 1;
	read_server(ctx, q, at);
	return 0;
}

/* What the flow table has of a 4-tuple or an id. For global functions, which the verifier looks at once, too. */
struct remembered {
	__u64 fingerprint;
	__u64 established; /* the entry's word */
	__u32 choice;      /* that counts, or 0 */
	__u32 tag;         /* of the Initial that opened it; 0: none did, or it is established */
	__u32 slot;        /* of the entry in its bucket, where it was found */
	bool found;
	bool opening;
	bool rebound;
	bool lost; /* what was chosen went down */
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
 * Remembers it as an opening: in a new entry, or in one whose choice does not count any more. Returns whether there was
 * room. `opening` is the entry's word.
 */
__noinline int quic_note(const struct tracked *f, const struct remembered *r, __u64 opening, __u32 flags)
{
	struct ringlb_flow_bucket *bucket;
	struct ringlb_flow *e;

	if (!f || !r || f->frozen)
		return 0;
	bucket = bucket_of(r->fingerprint);
	if (!bucket)
		return 0;
	e = r->found ? &bucket->flow[r->slot % RINGLB_FLOWS_PER_BUCKET] : flow_room(bucket, f, true);
	if (!f->writes || !e)
		return e != NULL;
	if (r->found ? !swap_word(&e->established, r->established, deadline(f, RINGLB_OPENING_SECONDS)) :
		       !flow_claim(e, f))
		return 0;
	if (!r->found)
		write_word(&e->established, deadline(f, RINGLB_OPENING_SECONDS));
	write_word(&e->opening, opening);
	write_word(&e->place, (r->fingerprint >> 32) << 32 | (__u32)f->service << 16 | flags);
	if (!r->found)
		flow_show(e, r->fingerprint);
	COUNT_FLOW(opened);
	return 1;
}

/* A packet of this kind (enum quic_kind) came that agrees. Returns whether that establishes it. */
__noinline int quic_confirm(const struct tracked *f, const struct remembered *r, __u32 kind)
{
	struct ringlb_flow_bucket *bucket;
	struct ringlb_flow *e;

	if (!f || !r || !f->writes)
		return 0;
	bucket = bucket_of(r->fingerprint);
	if (!bucket)
		return 0;
	e = &bucket->flow[r->slot % RINGLB_FLOWS_PER_BUCKET];
	if (!r->opening || kind == QUIC_LONG || kind == QUIC_SHORT) {
		flow_refresh(e, f, r->established, r->choice);
		if (r->opening)
			write_word(&e->opening, 0);
		return r->opening;
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

/* Remembers the 4-tuple; where a flow that opens can't be, it goes where its later packets will go. rebound: its id said where. */
static __always_inline void learn_tuple(struct tracked *f, const struct quic *q, const struct remembered *tuple,
					__u32 choice, bool opens, bool rebound)
{
	__u64 opening = choice;

	if (opens)
		opening |= (__u64)((__u32)q->id ? (__u32)q->id : 1) << 32;
	if (!quic_note(f, tuple, opening, rebound ? RINGLB_FLOW_REBOUND : 0) && !rebound && opens_quic(q) && f->moved)
		refuse_quic(f);
}

/* Ids of the server that name one are not learned: they say it themselves, or contradict what is known. */
static __always_inline void learn_id(const struct tracked *f, const struct quic *q, const struct remembered *id,
				     bool from_server)
{
	__u32 choice = choice_of(f->backend);

	if (!q->id || !choice || (from_server && q->named < RINGLB_NO_BACKEND))
		return;
	if (!id->choice)
		quic_note(f, id, choice, RINGLB_FLOW_REBOUND);
	else if (id->choice == choice)
		quic_confirm(f, id, q->kind);
}

/* Fills in backend and known. Returns 0. */
__noinline int keep_quic_in_table(struct tracked *f, struct quic *q)
{
	struct remembered tuple = {}, id = {};
	bool rebound, established = false, of_another, opens = false, from_server;
	__u32 choice;

	if (!f || !q)
		return 0;
	if (f->track == RINGLB_TRACK_NONE) {
		f->backend = q->kind != QUIC_BEGINS && q->named < RINGLB_NO_BACKEND ? q->named : f->owner;
		return 0;
	}
	tuple.fingerprint = f->fingerprint;
	quic_recall(&tuple, f->now);
	id.fingerprint = q->id;
	if (q->id)
		quic_recall(&id, f->now);
	/* Its connection has no answer yet: an Initial that somebody forged diverts no connection from before. */
	of_another = tuple.tag && q->kind == QUIC_SHORT && id.choice != tuple.choice;
	choice = tuple.choice && !of_another ? tuple.choice : id.choice;
	f->known = choice;
	if (!choice && q->kind != QUIC_BEGINS && q->named < RINGLB_NO_BACKEND)
		choice = choice_of(q->named);
	rebound = choice && (of_another || !tuple.choice);
	if (choice) {
		f->backend = choice & 0xffff;
	} else {
		opens = opens_quic(q) && !was_refused(f);
		f->backend = opens || tuple.lost ? f->owner : unknown_flow(f);
		choice = f->backend < RINGLB_NO_BACKEND ? choice_of(f->backend) : 0;
	}
	if (tuple.lost && f->writes)
		COUNT_FLOW(lost_backend);
	if (tuple.choice && !of_another) {
		rebound = tuple.rebound;
		established = quic_confirm(f, &tuple, q->kind);
	} else if (!of_another && choice && q->kind != QUIC_OTHER) {
		learn_tuple(f, q, &tuple, choice, opens, rebound);
	}
	from_server = q->kind != QUIC_BEGINS || (tuple.choice && q->named == f->backend);
	learn_id(f, q, &id, from_server);
	if (established && tuple.tag)
		forget_made_up(tuple.tag);
	stamp_quic(f, q, rebound);
	return 0;
}

static __always_inline void keep_quic(struct xdp_md *ctx, const struct choice *c, const struct packet *p,
				      struct tracked *f)
{
	const struct ringlb_service *s = c->service;
	struct quic q = {
		.service = { p->service[0], p->service[1] },
		.servers = s->servers_off,
		.named = RINGLB_NO_BACKEND,
		.service_port = p->service_port,
		.transport = p->transport,
		.cid_length = s->cid_length,
		.server_offset = s->server_offset,
		.server_length = s->server_length,
		.side = c->side,
	};

	if (p->related) /* what an ICMP error quotes was the server's: nothing in it is the client's id */
		f->writes = false;
	else
		quic_read(ctx, &q);
	keep_quic_in_table(f, &q);
}

#endif
