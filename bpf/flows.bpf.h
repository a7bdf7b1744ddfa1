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

/* What the steps below need, in a block of its own so that the ordinary path keeps its values in registers. */
struct tracked {
	const struct ringlb_tables *tables;
	const struct ringlb_service *service;
	__u64 fingerprint;
	__u32 position;
	__u32 at;      /* the arc's place in the table */
	__u32 owner;   /* indices of backends */
	__u32 previous;
	__u32 backend; /* the answer */
	__u32 now;
	__u32 sequence;
	__u8 protocol;
	__u8 tcp_flags;
	bool payload;
	bool moved;
	bool known; /* the flow table had the answer */
	bool writes;
};

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

	return track == RINGLB_TRACK_ALWAYS || (c->moved && track == RINGLB_TRACK_MOVED);
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

static __always_inline bool is_expired(const struct ringlb_flow *e, __u32 now)
{
	return (__s32)(now - (__u32)(read_word(&e->established) >> 32)) >= 0;
}

static __always_inline __u32 deadline(const struct tracked *f, bool closing)
{
	__u32 seconds = f->service->settle_after;

	return f->now + (closing && seconds > RINGLB_CLOSING_SECONDS ? RINGLB_CLOSING_SECONDS : seconds);
}

static __always_inline struct ringlb_flow *flow_find(struct ringlb_flow_bucket *bucket, __u64 fingerprint)
{
#pragma unroll
	for (__u32 i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++)
		if (read_word(&bucket->flow[i].fingerprint) == fingerprint)
			return &bucket->flow[i];
	return NULL;
}

/* A place for a new entry: free or expired. NULL when the bucket is full or, for an opening, their share is used up. */
static __always_inline struct ringlb_flow *flow_room(struct ringlb_flow_bucket *bucket, const struct tracked *f,
						     bool opening)
{
	struct ringlb_flow *room = NULL;
	__u32 openings = 0;

#pragma unroll
	for (__u32 i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++) {
		struct ringlb_flow *e = &bucket->flow[i];
		__u64 fingerprint = read_word(&e->fingerprint);

		if (fingerprint == RINGLB_FLOW_BUSY)
			continue;
		if (!fingerprint || is_expired(e, f->now))
			room = e;
		else
			openings += !(__u32)read_word(&e->established);
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

/* Takes the place; the caller fills it in and then gives it its fingerprint. */
static __always_inline bool flow_claim(struct ringlb_flow *e, const struct tracked *f)
{
	__u64 was = read_word(&e->fingerprint);

	if (was == RINGLB_FLOW_BUSY || (was && !is_expired(e, f->now)) ||
	    __sync_val_compare_and_swap(&e->fingerprint, was, RINGLB_FLOW_BUSY) != was)
		return false;
	if (was)
		COUNT_FLOW(reused);
	write_word(&e->place, (__u64)f->position << 32 | (__u32)f->service->index << 16);
	return true;
}

static __always_inline void flow_release(struct ringlb_flow *e, __u64 fingerprint)
{
	__sync_val_compare_and_swap(&e->fingerprint, RINGLB_FLOW_BUSY, fingerprint);
}

/* Where a flow goes that nothing is remembered of. */
static __always_inline __u32 unknown_flow(const struct tracked *f)
{
	return f->moved ? f->previous : f->owner;
}

static __always_inline void open_anew(struct ringlb_flow_bucket *bucket, struct tracked *f, __u64 opening)
{
	struct ringlb_flow *e = flow_room(bucket, f, true);

	if (!e || (f->writes && !flow_claim(e, f))) {
		f->backend = unknown_flow(f); /* where its later packets will go */
		return;
	}
	f->backend = f->owner;
	if (!f->writes)
		return;
	write_word(&e->established, (__u64)(f->now + RINGLB_OPENING_SECONDS) << 32);
	write_word(&e->opening, opening);
	flow_release(e, f->fingerprint);
	COUNT_FLOW(opened);
}

/* A packet that opens a flow. */
static __always_inline void open_flow(struct ringlb_flow_bucket *bucket, struct tracked *f)
{
	struct ringlb_flow *e = flow_find(bucket, f->fingerprint);
	__u64 opening = e ? read_word(&e->opening) : 0;

	if (f->owner >= RINGLB_NO_BACKEND) {
		f->backend = f->owner;
		return;
	}
	if (e && (__u32)(opening >> 32) == f->sequence && choice_counts(opening)) { /* sent again */
		f->backend = opening & 0xffff;
		f->known = true;
	} else {
		opening = (__u64)f->sequence << 32 | choice_of(f->owner);
		if (!e) {
			open_anew(bucket, f, opening);
			return;
		}
		f->backend = f->owner;
		if (f->writes)
			write_word(&e->opening, opening);
	}
	if (f->writes && !(__u32)read_word(&e->established))
		write_word(&e->established, (__u64)(f->now + RINGLB_OPENING_SECONDS) << 32);
}

/* Moves the entry's deadline on with the flow's packets. */
static __always_inline void flow_refresh(struct ringlb_flow *e, const struct tracked *f, __u64 established)
{
	__u64 place = read_word(&e->place), flagged = place;
	__u64 next;

	if (f->tcp_flags & (TCP_FIN | TCP_RST))
		flagged |= RINGLB_FLOW_CLOSING;
	else if (f->payload)
		flagged &= ~(__u64)RINGLB_FLOW_CLOSING;
	next = (__u64)deadline(f, flagged & RINGLB_FLOW_CLOSING) << 32 | (__u32)established;
	if (flagged != place)
		write_word(&e->place, flagged);
	if (next != established)
		__sync_val_compare_and_swap(&e->established, established, next);
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
	write_word(&e->established, (__u64)deadline(f, false) << 32 | choice);
	write_word(&e->opening, 0);
	flow_release(e, f->fingerprint);
	COUNT_FLOW(established);
	return true;
}

/* A packet of a flow that the table has an entry for. */
static __always_inline void known_flow(struct ringlb_flow *e, struct tracked *f)
{
	__u64 established = read_word(&e->established), opening = read_word(&e->opening);

	if ((__u32)opening && f->sequence - (__u32)(opening >> 32) - 1 < RINGLB_OPENING_WINDOW &&
	    choice_counts(opening)) {
		/* Its SYN was ours: the place is the established connection's from now on. */
		established = (__u64)deadline(f, false) << 32 | (__u32)opening;
		if (f->writes) {
			write_word(&e->established, established);
			write_word(&e->opening, 0);
			COUNT_FLOW(established);
		}
	}
	if (!(__u32)established) {
		f->backend = unknown_flow(f);
		return;
	}
	f->known = true;
	if (choice_counts(established)) {
		f->backend = established & 0xffff;
	} else {
		f->backend = f->owner;
		if (f->writes)
			COUNT_FLOW(lost_backend);
		if (f->protocol != IPPROTO_TCP) /* such a flow can go on with another backend: stay there then */
			established = choice_of(f->owner);
	}
	if (f->writes)
		flow_refresh(e, f, established);
}

/* Any other packet. */
static __always_inline void continue_flow(struct ringlb_flow_bucket *bucket, struct tracked *f)
{
	struct ringlb_flow *e = flow_find(bucket, f->fingerprint);
	bool tcp = f->protocol == IPPROTO_TCP;

	/* Nothing but silence ends a flow without handshake: after it the 5-tuple is another flow's. */
	if (e && (tcp || !is_expired(e, f->now))) {
		known_flow(e, f);
		return;
	}
	f->backend = unknown_flow(f);
	if (f->service->track != RINGLB_TRACK_ALWAYS)
		return;
	if (!tcp && f->owner < RINGLB_NO_BACKEND && remember(bucket, f, f->owner))
		f->backend = f->owner;
	else if (tcp)
		remember(bucket, f, f->backend);
}

/* What shows later that the arc can settle, and that the backend can be switched off. */
static __always_inline void stamp_old(const struct tracked *f)
{
	struct ringlb_backend *b = bpf_map_lookup_elem(&backends, &f->backend);
	struct ringlb_cold *cold = (void *)table_at(f->tables, f->service->cold_off + (__u64)f->at * sizeof(*cold));

	if (cold && f->moved && cold->stamp != f->now)
		cold->stamp = f->now;
	if (b && b->last_old != f->now)
		b->last_old = f->now;
}

static __noinline int tracked_flow(struct tracked *f)
{
	__u32 bucket_at;
	struct ringlb_flow_bucket *bucket;
	const struct ringlb_cold *cold;

	if (!f)
		return 0;
	bucket_at = (__u64)(__u32)f->fingerprint * sizes.flow_buckets >> 32;
	bucket = bpf_map_lookup_elem(&flows, &bucket_at);
	cold = table_at(f->tables, f->service->cold_off + (__u64)f->at * sizeof(*cold));
	if (!bucket || !cold)
		return 0;
	f->previous = f->moved ? table_backend(f->tables, f->service, cold->previous) : f->owner;
	f->now = bpf_jiffies64() / f->tables->hz;
	if (opens_flow(f)) {
		open_flow(bucket, f);
	} else {
		continue_flow(bucket, f);
		if (f->writes && f->backend != f->owner)
			stamp_old(f);
	}
	return 0;
}

/* Fills in backend and previous. */
static __always_inline void keep_flow(struct choice *c, const struct packet *p, __u32 at, bool writes)
{
	struct tracked f = {
		.tables = c->tables,
		.service = c->service,
		.fingerprint = c->service->affinity == RINGLB_AFFINITY_FLOW ? c->fingerprint :
									      flow_fingerprint(c->root, p),
		.position = c->position,
		.at = at,
		.owner = c->owner,
		.previous = c->owner,
		.backend = c->owner,
		.sequence = p->sequence,
		.protocol = p->protocol,
		.tcp_flags = p->tcp_flags,
		.payload = p->payload,
		.moved = c->moved,
		.writes = writes,
	};

	if (f.fingerprint <= RINGLB_FLOW_BUSY)
		f.fingerprint = RINGLB_FLOW_BUSY + 1;
	tracked_flow(&f);
	c->backend = f.backend;
	c->previous = f.previous;
	c->tracked = f.known;
}

#endif
