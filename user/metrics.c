// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "metrics_family.h"

#define SAFE(text) ((text) ? (text) : "")

/* Where a family's values are: a place in the snapshot, and what each value there is labelled with. */
enum place { SERVICES, SERVICE_STATS, POOLS, POOL_HEALTH, BACKENDS, BACKEND_STATS, BACKEND_HEALTH };

struct family {
	enum place place;
	const char *key; /* of the value */
	const char *name;
	enum metrics_type type;
	const char *unit, *help;
};

static const struct family families[] = {
	{ SERVICE_STATS, "packets", "ringlb_service_packets", METRICS_COUNTER, NULL,
	  "Packets of the service that were sent to a backend." },
	{ SERVICE_STATS, "bytes", "ringlb_service_bytes", METRICS_COUNTER, "bytes",
	  "Bytes of these packets, as frames that came in." },
	{ SERVICE_STATS, "flows", "ringlb_service_flows", METRICS_GAUGE, NULL,
	  "Flows of the service in the flow table." },
	{ SERVICES, "ready", "ringlb_service_ready", METRICS_GAUGE, NULL,
	  "1: every interface is attached, and a quorum of the pool's backends is healthy." },
	{ SERVICES, "moved", "ringlb_service_moved_ratio", METRICS_GAUGE, "ratio",
	  "Share of the service's hash space where established flows may still go to a former owner." },
	{ POOLS, "moved", "ringlb_pool_moved_ratio", METRICS_GAUGE, "ratio",
	  "Share of the pool's hash space where established flows may still go to a former owner." },
	{ POOLS, "settles_in", "ringlb_pool_settles_in_seconds", METRICS_GAUGE, "seconds",
	  "Time until the last moved arc can settle, at the earliest." },
	{ POOLS, "points", "ringlb_pool_points", METRICS_GAUGE, NULL, "Points of the pool's ring." },
	{ POOL_HEALTH, "takers", "ringlb_pool_backends", METRICS_GAUGE, NULL,
	  "Backends of the pool that the configuration has up." },
	{ POOL_HEALTH, "healthy", "ringlb_pool_healthy_backends", METRICS_GAUGE, NULL,
	  "Those of them that are healthy, or unchecked." },
	{ POOL_HEALTH, "all_down", "ringlb_pool_all_down", METRICS_GAUGE, NULL,
	  "1: no backend of the pool is healthy, so all are used." },
	{ POOL_HEALTH, "panic", "ringlb_pool_panic", METRICS_GAUGE, NULL,
	  "1: so few backends of the pool are healthy that the others are used too." },
	{ BACKEND_STATS, "packets", "ringlb_backend_packets", METRICS_COUNTER, NULL, "Packets sent to the backend." },
	{ BACKEND_STATS, "bytes", "ringlb_backend_bytes", METRICS_COUNTER, "bytes",
	  "Bytes of these packets, as frames that came in." },
	{ BACKEND_STATS, "flows", "ringlb_backend_flows", METRICS_GAUGE, NULL,
	  "Flows of the backend in the flow table: those in moved arcs, or all where the service tracks always." },
	{ BACKENDS, "weight", "ringlb_backend_weight", METRICS_GAUGE, NULL, "Configured weight." },
	{ BACKENDS, "points", "ringlb_backend_points", METRICS_GAUGE, NULL,
	  "Points on the ring; 0 where it takes no new flow." },
	{ BACKENDS, "share", "ringlb_backend_share_ratio", METRICS_GAUGE, "ratio",
	  "Share of the hash space, exactly: of new flows." },
	{ BACKENDS, "last_old_packet", "ringlb_backend_last_old_packet_age_seconds", METRICS_GAUGE, "seconds",
	  "Time since the last packet that came to the backend though another one owned its arc." },
	{ BACKENDS, "safe_to_remove_in", "ringlb_backend_safe_to_remove_in_seconds", METRICS_GAUGE, "seconds",
	  "Where it takes no new flow: time until it can be switched off, should its old flows stay silent." },
	{ BACKEND_HEALTH, "since", "ringlb_backend_health_age_seconds", METRICS_GAUGE, "seconds",
	  "Time since its health changed last." },
	{ BACKEND_HEALTH, "checked", "ringlb_backend_check_age_seconds", METRICS_GAUGE, "seconds",
	  "Time since the last result of its check." },
	{ BACKEND_HEALTH, "latency", "ringlb_backend_check_duration_seconds", METRICS_GAUGE, "seconds",
	  "How long the last check took." },
	{ BACKEND_HEALTH, "factor", "ringlb_backend_slow_start_ratio", METRICS_GAUGE, "ratio",
	  "Share of its points that slow start has put on the ring." },
};

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

/* The identity is told where it is not the name: two backends of one name can be there then, while one leaves. */
static void backend_sample(struct metrics_writer *w, const json_t *value, const char *pool, const json_t *b)
{
	const char *name = text_of(b, "name"), *identity = text_of(b, "identity");

	metrics_sample(w, value, "pool", pool, "backend", SAFE(name), "address", SAFE(text_of(b, "address")),
		       "identity", identity && strcmp(identity, SAFE(name)) != 0 ? identity : NULL, NULL);
}

typedef void (*backend_visit)(struct metrics_writer *w, const char *pool, const json_t *backend, const void *arg);

static void each_shown(struct metrics_writer *w, const json_t *snapshot, backend_visit visit, const void *arg)
{
	json_t *pools = json_object_get(json_object_get(snapshot, "show"), "pools"), *pool, *backend;
	size_t i, j;

	json_array_foreach(pools, i, pool)
	{
		json_t *backends = json_object_get(pool, "backends");

		json_array_foreach(backends, j, backend) visit(w, SAFE(text_of(pool, "name")), backend, arg);
	}
}

static void each_listed(struct metrics_writer *w, const json_t *list, backend_visit visit, const void *arg)
{
	json_t *backend;
	size_t i;

	json_array_foreach(list, i, backend) visit(w, SAFE(text_of(backend, "pool")), backend, arg);
}

static void visit_key(struct metrics_writer *w, const char *pool, const json_t *backend, const void *key)
{
	backend_sample(w, json_object_get(backend, key), pool, backend);
}

static void each_named(struct metrics_writer *w, const json_t *list, const char *label, const char *key)
{
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		metrics_sample(w, json_object_get(one, key), label, SAFE(text_of(one, "name")), NULL);
}

static void write_family(struct metrics_writer *w, const json_t *snapshot, const struct family *f)
{
	const json_t *show = json_object_get(snapshot, "show"), *stats = json_object_get(snapshot, "stats"),
		     *health = json_object_get(snapshot, "health");

	metrics_begin(w, f->name, f->type, f->unit, f->help);
	switch (f->place) {
	case SERVICES:
		each_named(w, json_object_get(show, "services"), "service", f->key);
		break;
	case SERVICE_STATS:
		each_named(w, json_object_get(stats, "services"), "service", f->key);
		break;
	case POOLS:
		each_named(w, json_object_get(show, "pools"), "pool", f->key);
		break;
	case POOL_HEALTH:
		each_named(w, json_object_get(health, "pools"), "pool", f->key);
		break;
	case BACKENDS:
		each_shown(w, snapshot, visit_key, f->key);
		break;
	case BACKEND_STATS:
		each_listed(w, json_object_get(stats, "backends"), visit_key, f->key);
		break;
	case BACKEND_HEALTH:
		each_listed(w, json_object_get(health, "backends"), visit_key, f->key);
		break;
	}
	metrics_end(w);
}

static void visit_state(struct metrics_writer *w, const char *pool, const json_t *b, const void *arg)
{
	const char *name = SAFE(text_of(b, "name")), *identity = text_of(b, "identity");

	(void)arg;
	metrics_integer(w, 1, "pool", pool, "backend", name, "address", SAFE(text_of(b, "address")), "identity",
			identity && strcmp(identity, name) != 0 ? identity : NULL, "state", SAFE(text_of(b, "state")),
			NULL);
}

static void visit_up(struct metrics_writer *w, const char *pool, const json_t *b, const void *arg)
{
	const char *health = SAFE(text_of(b, arg));
	json_t *value = strcmp(health, "down") != 0 ? json_true() : json_false();

	backend_sample(w, *health ? value : NULL, pool, b);
	json_decref(value);
}

static bool takes_flows(const json_t *backend)
{
	return json_integer_value(json_object_get(backend, "points")) > 0;
}

static void write_expected(struct metrics_writer *w, const json_t *pool)
{
	const json_t *list = json_object_get(pool, "backends");
	json_t *b;
	double sum = 0;
	size_t i;

	json_array_foreach(list, i, b) sum += takes_flows(b) ? json_number_value(json_object_get(b, "weight")) : 0;
	json_array_foreach(list, i, b)
	{
		double weight = json_number_value(json_object_get(b, "weight"));
		json_t *value = json_real(takes_flows(b) && sum > 0 ? weight / sum : 0);

		backend_sample(w, value, SAFE(text_of(pool, "name")), b);
		json_decref(value);
	}
}

static void visit_transitions(struct metrics_writer *w, const char *pool, const json_t *b, const void *arg)
{
	const char *name = SAFE(text_of(b, "name")), *address = SAFE(text_of(b, "address")),
		   *identity = text_of(b, "identity");

	(void)arg;
	if (identity && !strcmp(identity, name))
		identity = NULL;
	metrics_sample(w, json_object_get(b, "ups"), "pool", pool, "backend", name, "address", address, "identity",
		       identity, "to", "up", NULL);
	metrics_sample(w, json_object_get(b, "downs"), "pool", pool, "backend", name, "address", address, "identity",
		       identity, "to", "down", NULL);
}

static void write_backends(struct metrics_writer *w, const json_t *snapshot)
{
	const json_t *health = json_object_get(json_object_get(snapshot, "health"), "backends");
	const json_t *pools = json_object_get(json_object_get(snapshot, "show"), "pools");
	json_t *pool;
	size_t i;

	metrics_begin(w, "ringlb_backend_expected_share_ratio", METRICS_GAUGE, "ratio",
		      "Share of the weights of the backends that take new flows: what share should be.");
	json_array_foreach(pools, i, pool) write_expected(w, pool);
	metrics_end(w);
	metrics_begin(w, "ringlb_backend_state", METRICS_GAUGE, NULL, "1, with the state that it is in as a label.");
	each_shown(w, snapshot, visit_state, NULL);
	metrics_end(w);
	metrics_begin(w, "ringlb_backend_up", METRICS_GAUGE, NULL, "0: its health is down; 1: it is up, or unchecked.");
	each_shown(w, snapshot, visit_up, "health");
	metrics_end(w);
	metrics_begin(w, "ringlb_backend_health_transitions", METRICS_COUNTER, NULL,
		      "How often its health changed, by what it became.");
	each_listed(w, health, visit_transitions, NULL);
	metrics_end(w);
	metrics_begin(w, "ringlb_backends_unresolved", METRICS_GAUGE, NULL,
		      "Backends whose next hop has no link-layer address.");
	if (json_is_array(json_object_get(snapshot, "unresolved")))
		metrics_integer(w, (json_int_t)json_array_size(json_object_get(snapshot, "unresolved")), NULL);
	metrics_end(w);
}

/* One value for each key of an object. */
static void write_keys(struct metrics_writer *w, const char *name, enum metrics_type type, const char *unit,
		       const char *help, const char *label, json_t *o)
{
	const char *key;
	json_t *value;

	metrics_begin(w, name, type, unit, help);
	json_object_foreach(o, key, value) metrics_sample(w, value, label, key, NULL);
	metrics_end(w);
}

static void write_one(struct metrics_writer *w, const char *name, const char *unit, const char *help,
		      const json_t *value)
{
	metrics_begin(w, name, METRICS_GAUGE, unit, help);
	metrics_sample(w, value, NULL);
	metrics_end(w);
}

static void write_flow_table(struct metrics_writer *w, const json_t *stats)
{
	const json_t *table = json_object_get(stats, "flow_table");

	write_one(w, "ringlb_flow_table_entries", NULL, "Entries of living flows in the flow table.",
		  json_object_get(table, "used"));
	write_one(w, "ringlb_flow_table_openings", NULL, "Those of them that are mere openings.",
		  json_object_get(table, "openings"));
	write_one(w, "ringlb_flow_table_capacity", NULL, "Entries that there are.", json_object_get(table, "capacity"));
	write_one(w, "ringlb_flow_table_opening_capacity", NULL, "Of these, at most so many for mere openings.",
		  json_object_get(table, "opening_capacity"));
	write_keys(w, "ringlb_flow_events", METRICS_COUNTER, NULL, "What happened in the flow table.", "event",
		   json_object_get(stats, "flow_events"));
	write_keys(w, "ringlb_packets", METRICS_COUNTER, NULL,
		   "Packets by what became of them; every packet is counted once.", "verdict",
		   json_object_get(stats, "verdicts"));
}

static void write_interfaces(struct metrics_writer *w, const json_t *show)
{
	json_t *list = json_object_get(show, "interfaces"), *one;
	size_t i;

	metrics_begin(w, "ringlb_interface_attached", METRICS_GAUGE, NULL,
		      "1: the program sits on the interface; 0: the interface is missing.");
	json_array_foreach(list, i, one) metrics_integer(w, strcmp(SAFE(text_of(one, "mode")), "missing") != 0,
							 "interface", SAFE(text_of(one, "name")), NULL);
	metrics_end(w);
}

static void write_instance(struct metrics_writer *w, const json_t *snapshot)
{
	const json_t *show = json_object_get(snapshot, "show"), *build = json_object_get(snapshot, "build");

	metrics_begin(w, "ringlb_build", METRICS_INFO, NULL, "Which ringlb this is, and whose program runs.");
	metrics_integer(w, 1, "version", SAFE(text_of(build, "version")), "program", text_of(build, "program"), NULL);
	metrics_end(w);
	write_one(w, "ringlb_attached", NULL, "1: the instance runs; 0: nothing is attached.",
		  json_object_get(snapshot, "attached"));
	metrics_begin(w, "ringlb_configuration", METRICS_INFO, NULL,
		      "Digests: equal on two balancers exactly when they choose alike; effective with health.");
	if (text_of(show, "digest"))
		metrics_integer(w, 1, "name", SAFE(text_of(show, "instance")), "digest", text_of(show, "digest"),
				"effective_digest", SAFE(text_of(show, "effective_digest")), NULL);
	metrics_end(w);
	write_one(w, "ringlb_generation", NULL, "Number of the configuration that runs.",
		  json_object_get(show, "generation"));
	write_one(w, "ringlb_revision", NULL, "Number of the tables that run: health and settling count too.",
		  json_object_get(show, "revision"));
	metrics_begin(w, "ringlb_drift_lines", METRICS_GAUGE, NULL,
		      "Differences between what runs and its configuration file.");
	if (json_is_array(json_object_get(show, "drift")))
		metrics_integer(w, (json_int_t)json_array_size(json_object_get(show, "drift")), NULL);
	metrics_end(w);
	write_one(w, "ringlb_reload_successful", NULL, "1: the last reload was done; 0: it failed.",
		  json_object_get(json_object_get(snapshot, "reload"), "ok"));
}

static void write_commits(struct metrics_writer *w, const json_t *snapshot)
{
	const json_t *commits = json_object_get(snapshot, "commits"), *memory = json_object_get(snapshot, "memory");
	json_t *map;
	const char *name;

	metrics_begin(w, "ringlb_commit_duration_seconds", METRICS_HISTOGRAM, "seconds",
		      "How long changes of what runs took.");
	if (json_is_array(json_object_get(commits, "counts")))
		metrics_histogram(w, json_object_get(commits, "bounds"), json_object_get(commits, "counts"),
				  json_number_value(json_object_get(commits, "sum")));
	metrics_end(w);
	metrics_begin(w, "ringlb_commit_failures", METRICS_COUNTER, NULL, "Changes that failed and changed nothing.");
	metrics_sample(w, json_object_get(commits, "failed"), NULL);
	metrics_end(w);
	write_one(w, "ringlb_maps_memory_bytes", "bytes", "Memory of all maps, as the kernel accounts it.",
		  json_object_get(memory, "locked"));
	metrics_begin(w, "ringlb_map_memory_bytes", METRICS_GAUGE, "bytes", "Memory of the larger maps.");
	json_object_foreach((json_t *)memory, name, map) if (strcmp(name, "locked") != 0)
		metrics_sample(w, map, "map", name, NULL);
	metrics_end(w);
	metrics_begin(w, "ringlb_snapshot_timestamp_seconds", METRICS_GAUGE, "seconds",
		      "When these values were read: the time since the epoch.");
	metrics_sample(w, json_object_get(snapshot, "timestamp"), NULL);
	metrics_end(w);
}

char *metrics_text(const json_t *snapshot, enum metrics_format format)
{
	char *text = NULL;
	size_t size;
	struct metrics_writer w = { .to = open_memstream(&text, &size), .format = format };

	if (!w.to)
		return NULL;
	write_instance(&w, snapshot);
	write_interfaces(&w, json_object_get(snapshot, "show"));
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		write_family(&w, snapshot, &families[i]);
	write_backends(&w, snapshot);
	write_flow_table(&w, json_object_get(snapshot, "stats"));
	write_commits(&w, snapshot);
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", w.to);
	if (ferror(w.to) | fclose(w.to)) {
		free(text);
		return NULL;
	}
	return text;
}
