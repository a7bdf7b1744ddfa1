/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "balancer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED_AT_MOST 10 /* one packet of so many: flows that TABLE_FLOWS had no room for */

void balancer_table(struct balancer *b, enum table_state state)
{
	uint32_t buckets;
	struct ringlb_flow_bucket *bucket = datapath_flows(b->running.dp, &buckets);

	if (state != TABLE_EMPTY && state != TABLE_OPENINGS)
		return;
	memset(bucket, 0, buckets * sizeof(*bucket));
	if (state == TABLE_EMPTY)
		return;
	/* Of no packet's flow, and not expired before the stamps come round. */
	for (uint32_t i = 0; i < buckets; i++)
		bucket[i].flow[0] = (struct ringlb_flow){
			.fingerprint = (uint64_t)i << 32 | 2,
			.established = (uint64_t)INT32_MAX << 32,
			.opening = (uint64_t)1 << 16,
		};
}

static void read_counters(struct balancer *b, struct ringlb_counter *backend, struct ringlb_counter *service,
			  struct ringlb_verdict_counters *verdict, struct ringlb_flow_counters *events)
{
	struct datapath *dp = b->running.dp;
	int err = datapath_backend_counters(dp, backend, b->backends);

	if (!err)
		err = datapath_service_counters(dp, service, b->services);
	if (!err)
		err = datapath_verdicts(dp, verdict);
	if (!err)
		err = datapath_flow_counters(dp, events);
	if (err)
		bench_die(-err, "counters");
}

void balancer_mark(struct balancer *b)
{
	read_counters(b, b->backend, b->service, &b->verdict, &b->events);
}

static void check_verdicts(const struct balancer *b, const char *who, const struct stream *s,
			   const struct ringlb_verdict_counters *now)
{
	static const char *const name[] = {
#define X(id, text, meaning, remedy) text,
		RINGLB_VERDICTS(X)
#undef X
	};
	const enum ringlb_verdict wanted = s->service == BALANCER_OTHER ? RINGLB_VERDICT_PASSED_NO_SERVICE :
									  RINGLB_VERDICT_FORWARDED;

	for (unsigned int i = 0; i < RINGLB_VERDICT_COUNT; i++) {
		uint64_t rise = now->packets[i] - b->verdict.packets[i];

		if (rise != (i == wanted ? s->count : 0))
			bench_wrong(who, "verdict %s rose by %llu, %u packets were %s", name[i],
				    (unsigned long long)rise, s->count, name[wanted]);
	}
}

static void check_counter(const char *who, const char *what, size_t i, const struct ringlb_counter *was,
			  const struct ringlb_counter *now, uint64_t packets, uint64_t frame)
{
	uint64_t rise = now->packets - was->packets;

	if (rise != packets || now->bytes - was->bytes != packets * frame)
		bench_wrong(who, "%s %zu: %llu packets and %llu bytes where %llu and %llu are due", what, i,
			    (unsigned long long)rise, (unsigned long long)(now->bytes - was->bytes),
			    (unsigned long long)packets, (unsigned long long)(packets * frame));
}

/* Packets by service of the configuration: of each specification the addresses one after the other. */
static void services_due(const struct balancer *b, const struct stream *s, uint64_t *due)
{
	const struct service_spec *spec = b->spec->service;

	if (s->service == BALANCER_OTHER)
		return;
	for (unsigned int i = 0; i < s->service; i++)
		due += spec[i].addresses;
	for (uint32_t i = 0, flow = s->first; i < s->count; i++, flow = flow + 1 < s->flows ? flow + 1 : 0)
		due[flow & (spec[s->service].addresses - 1)]++;
}

static void check_events(const struct balancer *b, const char *who, const struct stream *s, enum table_state table,
			 const struct ringlb_flow_counters *due, const struct ringlb_flow_counters *now)
{
	static const char *const name[] = {
#define X(member, text, meaning) text,
		RINGLB_FLOW_EVENTS(X)
#undef X
	};
	const uint64_t *want = (const void *)due, *is = (const void *)now, *was = (const void *)&b->events;
	const size_t full = offsetof(struct ringlb_flow_counters, refused_full) / sizeof(*want);
	const size_t established = offsetof(struct ringlb_flow_counters, established) / sizeof(*want);

	for (size_t i = 0; i < sizeof(*due) / sizeof(*want); i++) {
		uint64_t rise = is[i] - was[i], refused = is[full] - was[full];
		bool may = table >= TABLE_FILLING && i == full && refused <= s->count / REFUSED_AT_MOST;

		if (table == TABLE_FILLING && i == established)
			may = rise + refused == s->count;

		if (rise != want[i] && !may)
			bench_wrong(who, "flow table: %s rose by %llu instead of %llu", name[i],
				    (unsigned long long)rise, (unsigned long long)want[i]);
	}
}

void balancer_check(struct balancer *b, const char *who, const struct stream *s, enum table_state table)
{
	const uint64_t frame = balancer_is_ipv6(b, s) ? BENCH_FRAME_IPV6 : BENCH_FRAME_IPV4;
	const struct state *state = b->running.state;
	struct ringlb_flow_counters events = { 0 }, events_now;
	uint64_t *service = xcalloc(state->config->services, sizeof(*service));
	uint32_t *due = xcalloc(b->backends, sizeof(*due));
	struct ringlb_verdict_counters verdict;

	read_counters(b, b->backend_now, b->service_now, &verdict, &events_now);
	balancer_due(b, s, table, due, &events);
	services_due(b, s, service);
	check_verdicts(b, who, s, &verdict);
	check_events(b, who, s, table, &events, &events_now);
	for (uint32_t i = 0; i < b->backends; i++)
		check_counter(who, "backend", i, &b->backend[i], &b->backend_now[i], due[i], frame);
	for (size_t i = 0; i < state->config->services; i++) {
		const uint16_t slot = state->service_index[i];

		check_counter(who, "service", i, &b->service[slot], &b->service_now[slot], service[i], frame);
	}
	free(service);
	free(due);
}

/* Swaps the first two and the last two: of a pool that changes, backends that drain and some that take flows. */
void balancer_plant(struct balancer *b, bool wrong)
{
	size_t bytes;
	char *t = (char *)datapath_tables(b->running.dp, &bytes);

	for (unsigned int i = 0; i < b->spec->pools; i++) {
		const struct state_pool *p = &b->running.state->pool[i];
		uint16_t *owners = (uint16_t *)(void *)(t + p->region + p->layout.owners_off);
		const size_t last = p->backends - 1;

		owners[0] = p->backend[wrong ? 1 : 0].index;
		owners[1] = p->backend[wrong ? 0 : 1].index;
		owners[last] = p->backend[wrong ? last - 1 : last].index;
		owners[last - 1] = p->backend[wrong ? last : last - 1].index;
	}
}
