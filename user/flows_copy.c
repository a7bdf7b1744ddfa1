/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "flows_copy.h"

#include <stddef.h>

#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define STORE(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELEASE)

static bool swap(__u64 *word, __u64 old, __u64 value)
{
	return __atomic_compare_exchange_n(word, &old, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static bool expired(__u64 established, uint32_t now)
{
	return (int32_t)(now - (uint32_t)(established >> 32)) >= 0;
}

static struct ringlb_flow_bucket *bucket_of(const struct flows *f, __u64 fingerprint)
{
	return &f->bucket[(__u64)(uint32_t)fingerprint * f->buckets >> 32];
}

static struct ringlb_flow *find(struct ringlb_flow_bucket *b, __u64 fingerprint)
{
	for (size_t i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++)
		if (LOAD(b->flow[i].fingerprint) == fingerprint)
			return &b->flow[i];
	return NULL;
}

/* Words of the entry `from` that are later than to's. */
static void update(const struct ringlb_flow *from, struct ringlb_flow *to)
{
	__u64 theirs = LOAD(from->established), mine = LOAD(to->established);

	do {
		bool later = (int32_t)((uint32_t)(theirs >> 32) - (uint32_t)(mine >> 32)) > 0;

		/* an opening that became a connection there, or a connection that went on there */
		if (!(uint32_t)theirs || ((uint32_t)mine && !later))
			return;
	} while (!__atomic_compare_exchange_n(&to->established, &mine, theirs, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	STORE(to->opening, LOAD(from->opening));
	STORE(to->place, LOAD(from->place));
}

/* Takes a place that is free, else one that is expired, as a packet does: whoever swaps a word first has it. */
static bool claim(struct ringlb_flow *e, uint32_t now, bool if_expired)
{
	__u64 was = LOAD(e->fingerprint), established = LOAD(e->established);

	if (was == RINGLB_FLOW_BUSY || (was && !(if_expired && expired(established, now))))
		return false;
	if (was && !swap(&e->established, established, (__u64)(now + RINGLB_OPENING_SECONDS) << 32))
		return false;
	return swap(&e->fingerprint, was, RINGLB_FLOW_BUSY);
}

static struct ringlb_flow *room(struct ringlb_flow_bucket *b, uint32_t now)
{
	for (int if_expired = 0; if_expired < 2; if_expired++)
		for (size_t i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++)
			if (claim(&b->flow[i], now, if_expired))
				return &b->flow[i];
	return NULL;
}

static bool insert(const struct ringlb_flow *from, struct ringlb_flow_bucket *b, __u64 fingerprint, uint32_t now)
{
	struct ringlb_flow *e = room(b, now);

	if (!e)
		return false;
	STORE(e->established, LOAD(from->established));
	STORE(e->opening, LOAD(from->opening));
	STORE(e->place, LOAD(from->place));
	STORE(e->fingerprint, fingerprint);
	return true;
}

/* Those that are in this condition. Returns how many found no room. */
static uint32_t copy(const struct flows *from, const struct flows *to, uint32_t now, bool if_expired)
{
	uint32_t lost = 0;

	for (uint32_t i = 0; i < from->buckets; i++)
		for (size_t j = 0; j < RINGLB_FLOWS_PER_BUCKET; j++) {
			const struct ringlb_flow *e = &from->bucket[i].flow[j];
			__u64 fingerprint = LOAD(e->fingerprint);
			struct ringlb_flow_bucket *b = bucket_of(to, fingerprint);
			struct ringlb_flow *known;

			if (fingerprint <= RINGLB_FLOW_BUSY || expired(LOAD(e->established), now) != if_expired)
				continue;
			known = find(b, fingerprint);
			if (known)
				update(e, known);
			else
				lost += !insert(e, b, fingerprint, now);
		}
	return lost;
}

uint32_t flows_copy(const struct flows *from, const struct flows *to, uint32_t now)
{
	uint32_t lost = copy(from, to, now, false);

	copy(from, to, now, true);
	return lost;
}
