// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What was counted. */
#include <stdlib.h>
#include <string.h>

#include "flows.h"
#include "report.h"

static void counter_fields(struct out *o, const struct ringlb_counter *c)
{
	out_integer(o, "packets", (int64_t)c->packets);
	out_integer(o, "bytes", (int64_t)c->bytes);
	out_cell(o, OUT_PLAIN, "%llu", (unsigned long long)c->packets);
	out_cell(o, OUT_PLAIN, "%llu", (unsigned long long)c->bytes);
}

static void print_heads(struct out *o, const char *aligns, const char *const *head)
{
	out_table(o, aligns);
	for (; *head; head++)
		out_head(o, "%s", *head);
}

static int services(struct out *o, const struct running *r, uint32_t now)
{
	static const char *const head[] = { "service", "packets", "bytes", "flows", NULL };
	uint32_t count = datapath_services(r->dp);
	struct ringlb_counter *counter = xcalloc(count, sizeof(*counter));
	uint32_t *flows = xcalloc(count, sizeof(*flows));
	const struct config *c = r->state->config;
	int err = datapath_service_counters(r->dp, counter, count);
	struct flows table;

	table.bucket = datapath_flows(r->dp, &table.buckets);
	flows_count_services(&table, now, flows, count);
	print_heads(o, "lrrr", head);
	out_array(o, "services");
	for (size_t i = 0; i < c->services && !err; i++) {
		uint16_t index = r->state->service_index[i];

		if (index >= count)
			continue;
		out_object(o, NULL);
		out_string(o, "name", c->service[i].name);
		out_cell(o, OUT_PLAIN, "%s", c->service[i].name);
		counter_fields(o, &counter[index]);
		out_integer(o, "flows", flows[index]);
		out_cell(o, OUT_PLAIN, "%u", flows[index]);
		out_row(o);
		out_end(o);
	}
	out_end(o);
	out_table_end(o);
	free(counter);
	free(flows);
	return err;
}

struct backend_stats {
	struct ringlb_counter *counter;
	uint32_t count; /* of counters */
	uint32_t *flows;
	bool *done; /* by index: a service's own table has backends of its pool */
};

static void pool_backends(struct out *o, const struct state_pool *p, struct backend_stats *stats)
{
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < p->backends; i++) {
		const struct state_backend *b = &p->backend[i];

		if (b->index >= stats->count || stats->done[b->index])
			continue;
		stats->done[b->index] = true;
		out_object(o, NULL);
		out_string(o, "pool", p->name);
		out_string(o, "name", b->name);
		out_string(o, "identity", b->identity);
		out_string(o, "address", address_text(&b->address, text));
		out_cell(o, OUT_PLAIN, "%s", p->name);
		out_cell(o, OUT_PLAIN, "%s", b->name);
		counter_fields(o, &stats->counter[b->index]);
		out_integer(o, "flows", stats->flows[b->index]);
		out_string(o, "state", backend_state_name(b->state));
		out_string(o, "health", health_status_name(b->health));
		out_cell(o, OUT_PLAIN, "%u", stats->flows[b->index]);
		if (b->state == BACKEND_UP && b->health == HEALTH_DOWN)
			out_cell(o, OUT_BAD, "down");
		else
			out_cell(o, OUT_PLAIN, "%s", b->state == BACKEND_UP ? "" : backend_state_name(b->state));
		out_row(o);
		out_end(o);
	}
}

static int backends(struct out *o, const struct running *r, uint32_t now)
{
	static const char *const head[] = { "pool", "backend", "packets", "bytes", "flows", "state", NULL };
	struct backend_stats stats = { .flows = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*stats.flows)) };
	int err;

	datapath_backends(r->dp, &stats.count);
	stats.counter = xcalloc(stats.count, sizeof(*stats.counter));
	stats.done = xcalloc(stats.count, sizeof(*stats.done));
	err = datapath_backend_counters(r->dp, stats.counter, stats.count);
	running_flows(r, now, stats.flows, NULL);
	print_heads(o, "llrrrl", head);
	out_array(o, "backends");
	for (size_t i = 0; i < state_tables(r->state) && !err; i++)
		pool_backends(o, state_table_at(r->state, i), &stats);
	out_end(o);
	out_table_end(o);
	free(stats.counter);
	free(stats.flows);
	free(stats.done);
	return err;
}

static void flow_row(struct out *o, const char *name, uint64_t count, const char *meaning)
{
	out_integer(o, name, (int64_t)count);
	out_cell(o, OUT_PLAIN, "%s", name);
	out_cell(o, OUT_PLAIN, "%llu", (unsigned long long)count);
	out_cell(o, OUT_PLAIN, "%s", meaning);
	out_row(o);
}

static int flow_table(struct out *o, const struct running *r, uint32_t now)
{
	static const char *const head[] = { "flow table", "flows", "meaning", NULL };
	static const char *const heads_of_events[] = { "flow table", "packets", "meaning", NULL };
	struct ringlb_flow_counters counters;
	int err = datapath_flow_counters(r->dp, &counters);
	uint32_t used, openings;
	struct flows table;

	if (err)
		return err;
	table.bucket = datapath_flows(r->dp, &table.buckets);
	flows_use(&table, now, &used, &openings);
	print_heads(o, "lrl", head);
	out_object(o, "flow_table");
	flow_row(o, "used", used, "entries of flows that are alive");
	flow_row(o, "openings", openings, "of these, opened and not yet established");
	flow_row(o, "capacity", (uint64_t)table.buckets * RINGLB_FLOWS_PER_BUCKET, "entries that there are");
	flow_row(o, "opening_capacity", (uint64_t)table.buckets * RINGLB_OPENINGS_PER_BUCKET,
		 "of these, at most so many for mere openings");
	out_end(o);
	out_table_end(o);
	out_text(o, "\n");
	print_heads(o, "lrl", heads_of_events);
	out_object(o, "flow_events");
#define X(member, name, meaning) flow_row(o, name, counters.member, meaning);
	RINGLB_FLOW_EVENTS(X)
#undef X
	out_end(o);
	out_table_end(o);
	return 0;
}

static int verdicts(struct out *o, const struct running *r)
{
	static const struct {
		const char *name, *meaning, *remedy;
	} verdict[] = {
#define X(id, name, meaning, remedy) { name, meaning, remedy },
		RINGLB_VERDICTS(X)
#undef X
	};
	static const char *const head[] = { "verdict", "packets", "meaning", NULL };
	struct ringlb_verdict_counters counters;
	int err = datapath_verdicts(r->dp, &counters);

	print_heads(o, "lrl", head);
	out_object(o, "verdicts");
	for (size_t i = 0; i < RINGLB_VERDICT_COUNT && !err; i++) {
		bool bad = counters.packets[i] && *verdict[i].remedy;

		out_integer(o, verdict[i].name, (int64_t)counters.packets[i]);
		out_cell(o, bad ? OUT_WARN : OUT_PLAIN, "%s", verdict[i].name);
		out_cell(o, bad ? OUT_WARN : OUT_PLAIN, "%llu", (unsigned long long)counters.packets[i]);
		out_cell(o, OUT_PLAIN, "%s%s%s", verdict[i].meaning, bad ? ": " : "", bad ? verdict[i].remedy : "");
		out_row(o);
	}
	out_end(o);
	out_table_end(o);
	return err;
}

int report_stats(struct out *o, const struct running *r, struct diag *d)
{
	uint32_t now;
	int err = running_now(r->dp, &now);

	if (!err)
		err = services(o, r, now);
	out_text(o, "\n");
	if (!err)
		err = backends(o, r, now);
	out_text(o, "\n");
	if (!err)
		err = flow_table(o, r, now);
	out_text(o, "\n");
	if (!err)
		err = verdicts(o, r);
	if (err)
		diag_error(d, "counters", "", "the counters cannot be read: %s", strerror(-err));
	return err;
}
