/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Step 4 where flows are kept: in moved arcs, and everywhere for a service with `track: always`. What a packet does there
 * is "Changing backends without breaking connections": one that opens a flow follows the ring and is remembered, so that
 * the rest of its flow is told from flows that were there before the arc moved, which stay with its previous owner.
 *
 * A table that is full, or refuses, costs a new flow its place on the new ring, never an old one its backend.
 */
#ifndef RINGLB_FLOWS_BPF_H
#define RINGLB_FLOWS_BPF_H

#include "ring.bpf.h"

/*
 * What the steps below need, in a block of its own so that the ordinary path keeps its values in registers. No pointers
 * and no padding: keep_flow_in_table() is a global function, which the verifier looks at once and not for every way that
 * leads to it.
 */
struct tracked {
	__u64 fingerprint;
	__u64 cold; /* offset of the arc's struct ringlb_cold in `tables` */
	__u32 position;
	__u32 owner; /* indices of backends */
	__u32 previous;
	__u32 backend; /* the answer */
	__u32 now;     /* stamp */
	__u32 settle_after;
	union {
		__u32 sequence; /* of TCP */
		__u32 servers;  /* this and the next three for QUIC, as in struct ringlb_service */
	};
	__u16 transport; /* offset of the transport header */
	__u16 rest;      /* bytes from there to the end of the packet */
	__u16 service;   /* index */
	__u8 track;
	__u8 protocol;
	__u8 tcp_flags; /* TCP_*; 0 for other protocols */
	bool payload;
	bool moved;
	bool known; /* the flow table had the answer */
	bool writes;
	bool frozen;  /* nothing new is remembered */
	bool related; /* not a packet of the flow, but an ICMP error about one, or a part of one */
	__u8 cid_length;
	__u8 server_offset;
	__u8 server_length;
	__u8 reserved[2];
};
_Static_assert(sizeof(struct tracked) == 64, "tracked");

#define COUNT_FLOW(member)                                                                                             \
	do {                                                                                                           \
		__u32 zero_ = 0;                                                                                       \
		struct ringlb_flow_counters *counters_ = bpf_map_lookup_elem(&flow_stats, &zero_);                     \
		if (counters_)                                                                                         \
			counters_->member++;                                                                           \
	} while (0)

static __always_inline bool keeps_flows(const struct choice *c)
{
	__u8 track = c->service->track;

	return track == RINGLB_TRACK_ALWAYS || c->service->affinity == RINGLB_AFFINITY_QUIC ||
	       (c->moved && track == RINGLB_TRACK_MOVED);
}

/* The one place that answers: does this packet open a flow? A protocol without a handshake never says so. */
static __always_inline bool opens_flow(const struct tracked *f)
{
	return f->protocol == IPPROTO_TCP && (f->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) == TCP_SYN;
}

/* incarnation << 16 | index of a backend; 0 for none. */
static __always_inline __u32 choice_of(__u32 backend)
{
	const struct ringlb_backend *b = bpf_map_lookup_elem(&backends, &backend);

	return b ? (__u32)b->incarnation << 16 | backend : 0;
}

static __always_inline bool choice_counts(__u32 choice)
{
	return choice && choice_of(choice & 0xffff) == choice;
}

static __always_inline __u64 read_word(const __u64 *word)
{
	return *(const volatile __u64 *)word;
}

static __always_inline void write_word(__u64 *word, __u64 value)
{
	*(volatile __u64 *)word = value;
}

static __always_inline bool swap_word(__u64 *word, __u64 old, __u64 value)
{
	return __sync_val_compare_and_swap(word, old, value) == old;
}

static __always_inline bool is_expired(__u64 established, __u32 now)
{
	return (__s32)(now - (__u32)(established >> 32)) >= 0;
}

/* Upper half of `established`. The second that has begun does not count: that many whole ones are to pass. */
static __always_inline __u64 deadline(const struct tracked *f, __u32 seconds)
{
	return (__u64)(f->now + seconds + 1) << 32;
}

static __always_inline struct ringlb_flow *flow_find(struct ringlb_flow_bucket *bucket, __u64 fingerprint)
{
#pragma unroll
	for (__u32 i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++)
		if (read_word(&bucket->flow[i].fingerprint) == fingerprint)
			return &bucket->flow[i];
	return NULL;
}

/* A place for a new entry: free, else expired. NULL when the bucket is full or, for an opening, their share is used up. */
static __always_inline struct ringlb_flow *flow_room(struct ringlb_flow_bucket *bucket, const struct tracked *f,
						     bool opening)
{
	struct ringlb_flow *room = NULL;
	bool is_free = false;
	__u32 openings = 0;

	if (f->frozen)
		return NULL;
#pragma unroll
	for (__u32 i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++) {
		struct ringlb_flow *e = &bucket->flow[i];
		__u64 fingerprint = read_word(&e->fingerprint), established = read_word(&e->established);

		if (fingerprint == RINGLB_FLOW_BUSY)
			continue;
		if (!fingerprint) {
			room = e;
			is_free = true;
		} else if (is_expired(established, f->now)) {
			room = is_free ? room : e;
		} else {
			openings += !(__u32)established;
		}
	}
	if (opening && openings >= RINGLB_OPENINGS_PER_BUCKET) {
		if (f->writes)
			COUNT_FLOW(refused_quota);
		return NULL;
	}
	if (!room && f->writes)
		COUNT_FLOW(refused_full);
	return room;
}

/*
 * Takes the place; the caller fills it in and then gives it its fingerprint. An expired entry may see a packet of its own
 * flow at this moment: whoever swaps `established` first has it.
 */
static __always_inline bool flow_claim(struct ringlb_flow *e, const struct tracked *f)
{
	__u64 was = read_word(&e->fingerprint), established = read_word(&e->established);

	if (was == RINGLB_FLOW_BUSY)
		return false;
	if (was && (!is_expired(established, f->now) ||
		    !swap_word(&e->established, established, deadline(f, RINGLB_OPENING_SECONDS))))
		return false;
	if (!swap_word(&e->fingerprint, was, RINGLB_FLOW_BUSY))
		return false;
	if (was)
		COUNT_FLOW(reused);
	write_word(&e->place, (__u64)f->position << 32 | (__u32)f->service << 16);
	return true;
}

/* The entry's words are in place: packets may find it. A swap, for its barrier. */
static __always_inline void flow_show(struct ringlb_flow *e, __u64 fingerprint)
{
	swap_word(&e->fingerprint, RINGLB_FLOW_BUSY, fingerprint);
}

/* Where a flow goes that nothing is remembered of. */
static __always_inline __u32 unknown_flow(const struct tracked *f)
{
	return f->moved ? f->previous : f->owner;
}

/* The arc can't settle before settle_after has passed since then. */
static __always_inline void stamp_arc(const struct tracked *f, __u32 stamp)
{
	__u32 zero = 0;
	const struct ringlb_tables *t = bpf_map_lookup_elem(&tables, &zero);
	struct ringlb_cold *cold = t && f->moved ? (void *)table_at(t, f->cold) : NULL;

	if (cold && (__s32)(stamp - cold->stamp) > 0)
		cold->stamp = stamp;
}

/*
 * A packet that opens a flow and can't be remembered goes where the flow's later packets will go. The arc stays moved
 * until they come, and not longer: a flood is not to keep it so.
 */
static __always_inline void refuse(struct tracked *f)
{
	__u32 ago = f->settle_after > RINGLB_OPENING_SECONDS ? f->settle_after - RINGLB_OPENING_SECONDS : 0;

	f->backend = unknown_flow(f);
	if (f->writes && f->backend != f->owner)
		stamp_arc(f, f->now - ago);
}

static __always_inline void open_anew(struct ringlb_flow_bucket *bucket, struct tracked *f, __u64 opening)
{
	struct ringlb_flow *e = flow_room(bucket, f, true);

	if (!e || (f->writes && !flow_claim(e, f))) {
		refuse(f);
		return;
	}
	f->backend = f->owner;
	if (!f->writes)
		return;
	write_word(&e->established, deadline(f, RINGLB_OPENING_SECONDS));
	write_word(&e->opening, opening);
	flow_show(e, f->fingerprint);
	COUNT_FLOW(opened);
}

/* Sets or clears RINGLB_FLOW_CLOSING. A swap, for the entry may have been given to another flow. */
static __always_inline bool flow_flag(struct ringlb_flow *e, bool set)
{
	__u64 place = read_word(&e->place);
	__u64 flagged = set ? place | RINGLB_FLOW_CLOSING : place & ~(__u64)RINGLB_FLOW_CLOSING;

	if (flagged != place)
		swap_word(&e->place, place, flagged);
	return set;
}

/* A packet that opens a flow. */
static __always_inline void open_flow(struct ringlb_flow_bucket *bucket, struct tracked *f)
{
	__u64 opening = (__u64)f->sequence << 32 | choice_of(f->owner), was, established;
	struct ringlb_flow *e = flow_find(bucket, f->fingerprint);

	f->backend = f->owner;
	if (f->owner >= RINGLB_NO_BACKEND)
		return;
	if (!e) {
		open_anew(bucket, f, opening);
		return;
	}
	was = read_word(&e->opening);
	established = read_word(&e->established);
	if (was >> 32 == f->sequence && choice_counts(was)) { /* sent again */
		f->backend = was & 0xffff;
		f->known = true;
	} else if (f->frozen) { /* where its later packets will go */
		if (choice_counts(established))
			f->backend = established & 0xffff;
		else if (!(__u32)established)
			f->backend = unknown_flow(f);
		return;
	} else if (f->writes && !swap_word(&e->opening, was, opening)) {
		refuse(f); /* the entry is being given to another flow */
		return;
	} else if (f->writes) {
		flow_flag(e, false);
	}
	if (f->writes && is_expired(established, f->now + RINGLB_OPENING_SECONDS))
		swap_word(&e->established, established, deadline(f, RINGLB_OPENING_SECONDS) | (__u32)established);
}

/* Moves the entry's deadline on with the flow's packets, and keeps its choice. A swap lost is another packet's won. */
static __always_inline void flow_refresh(struct ringlb_flow *e, const struct tracked *f, __u64 established,
					 __u32 choice)
{
	__u32 seconds = f->settle_after;
	bool closing;
	__u64 next;

	if (f->tcp_flags & (TCP_FIN | TCP_RST))
		closing = flow_flag(e, true);
	else if (f->payload)
		closing = flow_flag(e, false);
	else
		closing = read_word(&e->place) & RINGLB_FLOW_CLOSING;
	if (closing && seconds > RINGLB_CLOSING_SECONDS)
		seconds = RINGLB_CLOSING_SECONDS;
	next = deadline(f, seconds) | choice;
	if (next != established && swap_word(&e->established, established, next) && choice != (__u32)established)
		COUNT_FLOW(established);
}

/* Remembers a flow in the middle, for `track: always`: where there is room. */
static __always_inline bool remember(struct ringlb_flow_bucket *bucket, const struct tracked *f, __u32 backend)
{
	struct ringlb_flow *e = flow_room(bucket, f, false);
	__u32 choice = choice_of(backend);

	if (!e || !choice || (f->writes && !flow_claim(e, f)))
		return false;
	if (!f->writes)
		return true;
	write_word(&e->established, deadline(f, f->settle_after) | choice);
	write_word(&e->opening, 0);
	flow_show(e, f->fingerprint);
	COUNT_FLOW(established);
	return true;
}

/*
 * Whether the packet belongs to the SYN that the entry remembers. Data that does not is a living connection's: that SYN
 * was a stray, and forgotten before the connection's sequence numbers come by its own. It is not forgotten when its
 * connection is established, for it may still be sent again.
 */
static __always_inline bool follows_opening(struct ringlb_flow *e, const struct tracked *f, __u64 opening)
{
	if (!(__u32)opening)
		return false;
	if (f->sequence - (__u32)(opening >> 32) - 1 < RINGLB_OPENING_WINDOW)
		return choice_counts(opening);
	if (f->payload && f->writes)
		swap_word(&e->opening, opening, 0);
	return false;
}

/* A packet of a TCP connection that the table has an entry for. */
static __always_inline void known_connection(struct ringlb_flow *e, struct tracked *f)
{
	__u64 established = read_word(&e->established), opening = read_word(&e->opening);
	bool begins = follows_opening(e, f, opening) && (__u32)opening != (__u32)established;
	__u32 choice = begins ? opening : established;

	if (!choice) {
		f->backend = unknown_flow(f);
		return;
	}
	f->known = true;
	f->backend = choice & 0xffff;
	if (!begins && !choice_counts(choice)) {
		f->backend = f->owner;
		if (f->writes)
			COUNT_FLOW(lost_backend);
	}
	/* Whom a SYN was forged for answers with RST: no connection begins. */
	if (f->writes && !(begins && f->tcp_flags & TCP_RST))
		flow_refresh(e, f, established, choice);
}

/* The same where there is no handshake: nothing but silence ends a flow, and with another backend it can go on. */
static __always_inline void known_exchange(struct ringlb_flow *e, struct tracked *f)
{
	__u64 established = read_word(&e->established);
	__u32 choice = established;

	f->known = !is_expired(established, f->now) && choice_counts(choice);
	if (!f->known)
		choice = choice_of(f->owner);
	f->backend = f->known ? choice & 0xffff : f->owner;
	if (f->writes)
		flow_refresh(e, f, established, choice);
}

/* Any other packet. */
static __always_inline void continue_flow(struct ringlb_flow_bucket *bucket, struct tracked *f)
{
	struct ringlb_flow *e = flow_find(bucket, f->fingerprint);

	if (e && f->protocol == IPPROTO_TCP) {
		known_connection(e, f);
		return;
	}
	if (e) {
		known_exchange(e, f);
		return;
	}
	f->backend = unknown_flow(f);
	if (f->track != RINGLB_TRACK_ALWAYS || f->tcp_flags & (TCP_FIN | TCP_RST))
		return;
	if (f->protocol == IPPROTO_TCP)
		remember(bucket, f, f->backend);
	else if (f->owner < RINGLB_NO_BACKEND && remember(bucket, f, f->owner))
		f->backend = f->owner;
}

/* What is only about a flow goes where its packets go, and leaves everything as it is. */
static __always_inline void follow_flow(struct ringlb_flow_bucket *bucket, struct tracked *f)
{
	struct ringlb_flow *e = flow_find(bucket, f->fingerprint);
	__u64 established = e ? read_word(&e->established) : 0, opening = e ? read_word(&e->opening) : 0;
	bool lives = f->protocol == IPPROTO_TCP || !is_expired(established, f->now);

	f->backend = unknown_flow(f);
	f->known = true;
	if (lives && choice_counts(established))
		f->backend = established & 0xffff;
	else if (choice_counts(opening))
		f->backend = opening & 0xffff;
	else
		f->known = false;
	if (!f->known && (__u32)established)
		f->backend = f->owner; /* the flow, or its backend, is gone: as its packets do */
}

/* What shows later that the arc can settle, and that the backend can be switched off. */
static __always_inline void stamp_old(const struct tracked *f)
{
	__u32 backend = f->backend; /* kernel 6.1 takes a key from the stack only */
	struct ringlb_backend *b = bpf_map_lookup_elem(&backends, &backend);

	stamp_arc(f, f->now);
	if (b && b->last_old != f->now)
		b->last_old = f->now;
}

/* Fills in backend and known. Returns 0. */
__noinline int keep_flow_in_table(struct xdp_md *ctx, struct tracked *f)
{
	struct segment segment = {};
	struct ringlb_flow_bucket *bucket;
	__u32 at;

	if (!f)
		return 0;
	if (f->protocol == IPPROTO_TCP && !f->related && !parse_segment(ctx, f->transport, f->rest, &segment))
		return 0;
	f->sequence = segment.sequence;
	f->tcp_flags = segment.flags;
	f->payload = segment.payload;
	at = (__u64)(__u32)f->fingerprint * sizes.flow_buckets >> 32;
	bucket = bpf_map_lookup_elem(&flows, &at);
	if (!bucket)
		return 0;
	if (f->related) {
		follow_flow(bucket, f);
	} else if (opens_flow(f)) {
		open_flow(bucket, f);
	} else {
		continue_flow(bucket, f);
		if (f->writes && f->backend != f->owner)
			stamp_old(f);
	}
	return 0;
}

/* For a service of QUIC, in the place of keep_flow_in_table(): quic.bpf.h. */
static __always_inline void keep_quic(struct xdp_md *ctx, const struct choice *c, const struct packet *p,
				      struct tracked *f);

static __always_inline __u32 previous_owner(const struct choice *c, __u64 cold_off)
{
	const struct ringlb_cold *cold = table_at(c->tables, cold_off);

	return cold ? table_backend(c->tables, c->service, cold->previous) : TABLE_FAULT;
}

/* Fills in backend, previous and tracked. `at` is the arc's place in the table. */
static __always_inline void keep_flow(struct xdp_md *ctx, struct choice *c, const struct packet *p, __u32 at,
				      bool writes)
{
	const struct ringlb_service *s = c->service;
	struct tracked f = {
		.fingerprint = c->fingerprint ? c->fingerprint : flow_fingerprint(c->root, p),
		.cold = s->cold_off + (__u64)at * sizeof(struct ringlb_cold),
		.position = c->position,
		.owner = c->owner,
		.backend = c->owner,
		.now = bpf_jiffies64() / c->tables->hz,
		.settle_after = s->settle_after,
		.transport = p->transport,
		.rest = p->network + p->length - p->transport,
		.service = s->index,
		.track = s->track,
		.protocol = p->protocol,
		.moved = c->moved,
		.writes = writes,
		.frozen = c->tables->frozen,
		.related = p->related || p->fragment,
	};

	if (f.fingerprint <= RINGLB_FLOW_BUSY)
		f.fingerprint = RINGLB_FLOW_BUSY + 1;
	f.previous = c->moved ? previous_owner(c, f.cold) : c->owner;
	if (s->affinity == RINGLB_AFFINITY_QUIC)
		keep_quic(ctx, c, p, &f);
	else
		keep_flow_in_table(ctx, &f);
	c->backend = f.backend;
	c->previous = f.previous;
	c->tracked = f.known;
}

#endif
