/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "flows.h"

#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)

uint32_t flow_choice(uint16_t backend, uint16_t incarnation)
{
	return (uint32_t)incarnation << 16 | backend;
}

uint16_t flow_choice_backend(uint32_t choice)
{
	return (uint16_t)choice;
}

static bool in_use(uint64_t fingerprint)
{
	return fingerprint && fingerprint != RINGLB_FLOW_BUSY;
}

static struct flow_view view(const struct ringlb_flow *flow)
{
	uint64_t established = LOAD(flow->established), place = LOAD(flow->place);

	return (struct flow_view){
		.position = (uint32_t)(place >> 32),
		.service = (uint16_t)(place >> 16),
		.established = (uint32_t)established,
		.opening = (uint32_t)LOAD(flow->opening),
		.stamp = (uint32_t)(established >> 32),
	};
}

uint32_t flows_sweep(const struct flows *f, bool (*keep)(const struct flow_view *v, void *arg), void *arg)
{
	uint32_t freed = 0;

	for (uint32_t i = 0; i < f->buckets; i++)
		for (uint32_t j = 0; j < RINGLB_FLOWS_PER_BUCKET; j++) {
			struct ringlb_flow *flow = &f->bucket[i].flow[j];
			__u64 fingerprint = LOAD(flow->fingerprint);
			struct flow_view v;

			if (!in_use(fingerprint))
				continue;
			v = view(flow);
			/* not when a packet has given it to another flow meanwhile */
			if (!keep(&v, arg) && __atomic_compare_exchange_n(&flow->fingerprint, &fingerprint, 0, false,
									  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				freed++;
		}
	return freed;
}

/* Seconds until it expires; 0: it has. */
static uint32_t seconds_left(uint32_t deadline, uint32_t now)
{
	int32_t left = (int32_t)(deadline - now);

	return left > 0 ? (uint32_t)left : 0;
}

static void count_choice(uint32_t choice, const uint16_t *incarnation, uint32_t backends, uint32_t seconds,
			 uint32_t *count, uint32_t *left)
{
	uint16_t b = flow_choice_backend(choice);

	if (!choice || b >= backends || choice >> 16 != incarnation[b])
		return;
	count[b]++;
	if (left && left[b] < seconds)
		left[b] = seconds;
}

void flows_count(const struct flows *f, const uint16_t *incarnation, uint32_t backends, uint32_t now, uint32_t *count,
		 uint32_t *left)
{
	for (uint32_t i = 0; i < f->buckets; i++)
		for (uint32_t j = 0; j < RINGLB_FLOWS_PER_BUCKET; j++) {
			const struct ringlb_flow *flow = &f->bucket[i].flow[j];
			struct flow_view v;
			uint32_t seconds;

			if (!in_use(LOAD(flow->fingerprint)))
				continue;
			v = view(flow);
			seconds = seconds_left(v.stamp, now);
			if (!seconds)
				continue;
			count_choice(v.established, incarnation, backends, seconds, count, left);
			if (v.opening != v.established)
				count_choice(v.opening, incarnation, backends, seconds, count, left);
		}
}

void flows_count_services(const struct flows *f, uint32_t now, uint32_t *count, uint32_t services)
{
	for (uint32_t i = 0; i < f->buckets; i++)
		for (uint32_t j = 0; j < RINGLB_FLOWS_PER_BUCKET; j++) {
			const struct ringlb_flow *flow = &f->bucket[i].flow[j];
			struct flow_view v;

			if (!in_use(LOAD(flow->fingerprint)))
				continue;
			v = view(flow);
			if (v.service < services && seconds_left(v.stamp, now))
				count[v.service]++;
		}
}

void flows_use(const struct flows *f, uint32_t now, uint32_t *used, uint32_t *openings)
{
	*used = *openings = 0;
	for (uint32_t i = 0; i < f->buckets; i++)
		for (uint32_t j = 0; j < RINGLB_FLOWS_PER_BUCKET; j++) {
			const struct ringlb_flow *flow = &f->bucket[i].flow[j];
			struct flow_view v;

			if (!in_use(LOAD(flow->fingerprint)))
				continue;
			v = view(flow);
			if (!seconds_left(v.stamp, now))
				continue;
			++*used;
			*openings += !v.established;
		}
}
