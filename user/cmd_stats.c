// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"

/* Entries of the flow table by backend: flows[index], of RINGLB_MAX_BACKENDS + 1. */
static void count_flows(struct datapath *dp, uint32_t *flows)
{
	uint32_t buckets = 0;
	const struct ringlb_flow_bucket *bucket = datapath_flows(dp, &buckets);

	for (uint32_t i = 0; bucket && i < buckets; i++)
		for (uint32_t j = 0; j < RINGLB_FLOWS_PER_BUCKET; j++)
			if (bucket[i].flow[j].fingerprint)
				flows[bucket[i].flow[j].established & 0xffff]++;
}

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

static int services(struct cmd_context *cx, const struct running *r)
{
	static const char *const head[] = { "service", "packets", "bytes", NULL };
	uint32_t count = datapath_services(r->dp);
	struct ringlb_counter *counter = xcalloc(count, sizeof(*counter));
	const struct config *c = r->state->config;
	int err = datapath_service_counters(r->dp, counter, count);

	print_heads(cx->out, "lrr", head);
	out_array(cx->out, "services");
	for (size_t i = 0; i < c->services && !err; i++) {
		if (r->state->service_index[i] >= count)
			continue;
		out_object(cx->out, NULL);
		out_string(cx->out, "name", c->service[i].name);
		out_cell(cx->out, OUT_PLAIN, "%s", c->service[i].name);
		counter_fields(cx->out, &counter[r->state->service_index[i]]);
		out_row(cx->out);
		out_end(cx->out);
	}
	out_end(cx->out);
	out_table_end(cx->out);
	free(counter);
	return err;
}

static void pool_backends(struct out *o, const struct state_pool *p, const struct ringlb_counter *counter,
			  uint32_t count, const uint32_t *flows)
{
	for (size_t i = 0; i < p->backends; i++) {
		const struct state_backend *b = &p->backend[i];

		if (b->index >= count)
			continue;
		out_object(o, NULL);
		out_string(o, "pool", p->name);
		out_string(o, "name", b->name);
		out_cell(o, OUT_PLAIN, "%s", p->name);
		out_cell(o, OUT_PLAIN, "%s", b->name);
		counter_fields(o, &counter[b->index]);
		out_integer(o, "flows", flows[b->index]);
		out_cell(o, OUT_PLAIN, "%u", flows[b->index]);
		out_row(o);
		out_end(o);
	}
}

static int backends(struct cmd_context *cx, const struct running *r)
{
	static const char *const head[] = { "pool", "backend", "packets", "bytes", "flows", NULL };
	uint32_t count = 0, *flows = xcalloc(RINGLB_MAX_BACKENDS + 1, sizeof(*flows));
	struct ringlb_counter *counter;
	int err;

	datapath_backends(r->dp, &count);
	counter = xcalloc(count, sizeof(*counter));
	err = datapath_backend_counters(r->dp, counter, count);
	count_flows(r->dp, flows);
	print_heads(cx->out, "llrrr", head);
	out_array(cx->out, "backends");
	for (size_t i = 0; i < r->state->pools && !err; i++)
		pool_backends(cx->out, &r->state->pool[i], counter, count, flows);
	out_end(cx->out);
	out_table_end(cx->out);
	free(counter);
	free(flows);
	return err;
}

static int verdicts(struct cmd_context *cx, const struct running *r)
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

	print_heads(cx->out, "lrl", head);
	out_object(cx->out, "verdicts");
	for (size_t i = 0; i < RINGLB_VERDICT_COUNT && !err; i++) {
		bool bad = counters.packets[i] && *verdict[i].remedy;

		out_integer(cx->out, verdict[i].name, (int64_t)counters.packets[i]);
		out_cell(cx->out, bad ? OUT_WARN : OUT_PLAIN, "%s", verdict[i].name);
		out_cell(cx->out, bad ? OUT_WARN : OUT_PLAIN, "%llu", (unsigned long long)counters.packets[i]);
		out_cell(cx->out, OUT_PLAIN, "%s%s%s", verdict[i].meaning, bad ? ": " : "",
			 bad ? verdict[i].remedy : "");
		out_row(cx->out);
	}
	out_end(cx->out);
	out_table_end(cx->out);
	return err;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { 0 } };
	struct running running;
	int status, err;

	if (cmd_getopt(cx, argc, argv, options) != -1)
		return EXIT_BAD;
	if (argc > optind)
		return cmd_usage(cx, argv[0], "it takes no arguments, and \"%s\" is one", argv[optind]);
	if (!cmd_privileged(cx, argv[0]))
		return EXIT_FAILED;
	status = cmd_running(cx, argv[0], &running);
	if (status)
		return status;
	err = services(cx, &running);
	out_text(cx->out, "\n");
	if (!err)
		err = backends(cx, &running);
	out_text(cx->out, "\n");
	if (!err)
		err = verdicts(cx, &running);
	running_close(&running);
	if (err)
		diag_error(&cx->diag, "counters", "", "the counters of instance %s cannot be read: %s",
			   cx->instance.name, strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

const struct cmd cmd_stats = {
	.name = "stats",
	.usage = "",
	.summary = "packets and bytes by service and backend, and every verdict",
	.help = "Counters since the attach; bytes are of frames as they came in. flows: entries of the flow table.\n"
		"Every packet is counted under exactly one verdict; what can be done about a bad one stands\n"
		"beside its counter.\n\n"
		"Exit status: 0 shown; 1 failed, or not attached; 2 bad usage.\n",
	.run = run,
};
