// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ready.h"
#include "report.h"
#include "snapshot_private.h"

#ifndef RINGLB_VERSION
#define RINGLB_VERSION "unknown"
#endif

#define DRIFT_SECONDS 30.0 /* a file that the configuration refers to may have changed, or a drain ended */

static double clock_seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct timespec changed(const char *path)
{
	struct stat st = { 0 };

	stat(path, &st); /* a file that is not there has the time 0 */
	return st.st_mtim;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static int read_history(struct snapshot_cache *cache, const struct instance *i, struct diag *d)
{
	char *dir = xasprintf("%s/%s", i->state_dir, i->name);
	struct timespec then = changed(dir);
	int err = 0;

	if (!cache->history || !same_time(&then, &cache->history_changed)) {
		generation_list_free(cache->history, cache->generations);
		cache->history = NULL;
		cache->generations = 0;
		err = generation_list(dir, &cache->history, &cache->generations, d);
		cache->history_changed = then;
	}
	free(dir);
	return err;
}

static int read_drift(struct snapshot_cache *cache, const struct running *r, struct diag *d)
{
	struct timespec then = changed(r->state->config->file);
	double seconds = clock_seconds(CLOCK_MONOTONIC);
	uint32_t now;
	int err;

	if (cache->has_drift && cache->drift_revision == r->state->revision &&
	    same_time(&then, &cache->drift_changed) && seconds - cache->drift_read < DRIFT_SECONDS)
		return 0;
	err = running_now(r->dp, &now);
	if (err) {
		diag_error(d, "clock", "", "the program lookup can't be run: %s", strerror(-err));
		return err;
	}
	drift_free(&cache->drift);
	memset(&cache->drift, 0, sizeof(cache->drift));
	report_drift_read(r, now, &cache->drift);
	cache->has_drift = true;
	cache->drift_revision = r->state->revision;
	cache->drift_changed = then;
	cache->drift_read = seconds;
	return 0;
}

static void head(struct out *o, const struct snapshot_source *s)
{
	time_t now = time(NULL);
	char text[32], version[DATAPATH_VERSION];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	out_string(o, "time", text);
	out_real(o, "timestamp", clock_seconds(CLOCK_REALTIME));
	out_integer(o, "clock_ms", (int64_t)(1000 * clock_seconds(CLOCK_MONOTONIC)));
	out_real(o, "interval", s->interval);
	out_string(o, "instance", s->instance->name);
	out_object(o, "build");
	out_string(o, "version", RINGLB_VERSION);
	out_integer(o, "abi", RINGLB_ABI_VERSION);
	if (s->running) {
		datapath_version(s->running->dp, version);
		out_string(o, "program", version);
	}
	out_end(o);
	out_boolean(o, "attached", s->running != NULL);
	if (!s->reloaded)
		return;
	out_object(o, "reload");
	out_boolean(o, "ok", s->reload_ok);
	out_string(o, "time", s->reload_time);
	out_string(o, "message", s->reload_message);
	out_end(o);
}

static void commits(struct out *o, const struct instance *i)
{
	static const double bound[] = TOTALS_BOUNDS;
	struct totals_commits c;

	totals_commits_read(i, &c);
	out_object(o, "commits");
	out_array(o, "bounds");
	for (size_t b = 0; b < TOTALS_BUCKETS - 1; b++)
		out_real(o, NULL, bound[b]);
	out_end(o);
	out_array(o, "counts");
	for (size_t b = 0; b < TOTALS_BUCKETS; b++)
		out_integer(o, NULL, (int64_t)c.count[b]);
	out_end(o);
	out_real(o, "sum", c.seconds);
	out_integer(o, "failed", (int64_t)c.failed);
	out_end(o);
}

static void readiness(struct out *o, const struct snapshot_source *s)
{
	const struct config *c = s->running->state->config;
	size_t interfaces;
	struct plan_interface *v = running_interfaces(s->running, &interfaces);

	out_object(o, "ready");
	for (size_t i = 0; i < c->services; i++) {
		char reason[READY_REASON];
		bool ready = service_ready(s->running->state, i, v, interfaces, s->health, reason);

		out_object(o, c->service[i].name);
		out_boolean(o, "ready", ready);
		out_string(o, "reason", reason);
		out_end(o);
	}
	out_end(o);
	free(v);
}

static void memory(struct out *o, const struct running *r)
{
	struct datapath_sizes sizes;

	datapath_get_sizes(r->dp, &sizes);
	out_object(o, "memory");
	out_integer(o, "locked", (int64_t)datapath_locked_bytes(r->dp));
	out_integer(o, "tables", (int64_t)sizes.tables);
	out_integer(o, "flows", (int64_t)sizes.flow_buckets * (int64_t)sizeof(struct ringlb_flow_bucket));
	out_integer(o, "backends", (int64_t)sizes.backends * (int64_t)sizeof(struct ringlb_backend));
	out_end(o);
}

static void unresolved(struct out *o, const struct running *r)
{
	uint32_t count;
	const struct ringlb_backend *entry = datapath_backends(r->dp, &count);
	char text[ADDRESS_TEXT];

	out_array(o, "unresolved");
	for (size_t i = 0; i < state_tables(r->state); i++) {
		const struct state_pool *p = state_table_at(r->state, i);

		for (size_t j = 0; j < p->backends; j++) {
			const struct state_backend *b = &p->backend[j];

			/* A service's own table names those of its pool again. */
			if (b->index >= count || entry[b->index].next_hop || !backend_alive(b) ||
			    (i >= r->state->pools && b->state != BACKEND_LEAVING))
				continue;
			out_object(o, NULL);
			out_string(o, "pool", p->name);
			out_string(o, "name", b->name);
			out_string(o, "address", address_text(&b->address, text));
			out_end(o);
		}
	}
	out_end(o);
}

static int running_parts(struct snapshot_cache *cache, struct out *o, const struct snapshot_source *s, struct diag *d)
{
	const struct report_options options = { .instance = s->instance->name,
						.drift = &cache->drift,
						.health = s->health };
	int err = read_drift(cache, s->running, d);

	if (err)
		return err;
	out_object(o, "show");
	err = report_running(o, s->running, &options, d);
	out_end(o);
	if (err)
		return err;
	out_object(o, "stats");
	err = report_stats(o, s->running, d);
	out_end(o);
	if (err)
		return err;
	readiness(o, s);
	memory(o, s->running);
	unresolved(o, s->running);
	snapshot_rings(o, s->running->state);
	return 0;
}

char *snapshot_make(struct snapshot_cache *cache, const struct snapshot_source *s, struct diag *d)
{
	struct out *o = out_new(true, true);
	char *text = NULL;
	int err = 0;

	head(o, s);
	if (s->running)
		err = running_parts(cache, o, s, d);
	if (!err)
		err = read_history(cache, s->instance, d);
	if (!err) {
		report_history(o, "history", cache->history, cache->generations, s->running ? s->running->state : NULL);
		if (s->health)
			snapshot_health(o, s);
		commits(o, s->instance);
		snapshot_meanings(o);
		text = out_take(o);
	}
	out_free(o);
	return text;
}

void snapshot_cache_free(struct snapshot_cache *cache)
{
	generation_list_free(cache->history, cache->generations);
	drift_free(&cache->drift);
	memset(cache, 0, sizeof(*cache));
}
