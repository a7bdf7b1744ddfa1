// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "totals.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPARE 1000u /* backends that are gone and still remembered, at least */

static char *path_of(const struct instance *i, const char *what)
{
	return xasprintf("%s/%s.%s", i->run_dir, i->name, what);
}

/* A new file takes the old one's place whole. */
static void save(const char *path, const json_t *value)
{
	char *beside = xasprintf("%s~", path);

	if (json_dump_file(value, beside, JSON_COMPACT) || rename(beside, path))
		unlink(beside);
	free(beside);
}

static json_t *load(const char *path)
{
	json_t *value = json_load_file(path, 0, NULL);

	if (json_is_object(value))
		return value;
	json_decref(value);
	return json_object();
}

void totals_commits_read(const struct instance *i, struct totals_commits *out)
{
	char *path = path_of(i, "commits");
	json_t *file = load(path), *counts = json_object_get(file, "counts");

	for (size_t b = 0; b < TOTALS_BUCKETS; b++)
		out->count[b] = (uint64_t)json_integer_value(json_array_get(counts, b));
	out->seconds = json_number_value(json_object_get(file, "seconds"));
	out->failed = (uint64_t)json_integer_value(json_object_get(file, "failed"));
	json_decref(file);
	free(path);
}

void totals_commit(const struct instance *i, double seconds, bool done)
{
	static const double bound[] = TOTALS_BOUNDS;
	char *path = path_of(i, "commits");
	json_t *file = json_object(), *counts = json_array();
	struct totals_commits c;
	size_t bucket = 0;

	totals_commits_read(i, &c);
	while (bucket < TOTALS_BUCKETS - 1 && seconds > bound[bucket])
		bucket++;
	c.count[bucket] += done;
	c.seconds += done ? seconds : 0;
	c.failed += !done;
	for (size_t b = 0; b < TOTALS_BUCKETS; b++)
		json_array_append_new(counts, json_integer((json_int_t)c.count[b]));
	json_object_set_new(file, "counts", counts);
	json_object_set_new(file, "seconds", json_real(c.seconds));
	json_object_set_new(file, "failed", json_integer((json_int_t)c.failed));
	save(path, file);
	json_decref(file);
	free(path);
}

void totals_open(struct totals *t, const struct instance *i)
{
	t->path = path_of(i, "health");
	t->kept = load(t->path);
	t->seen = json_object();
}

static char *key_of(const char *pool, const struct health_backend *b)
{
	char address[ADDRESS_TEXT];

	return xasprintf("%s\x1f%s\x1f%s\x1f%s", pool, b->name, b->identity, address_text(&b->address, address));
}

static uint64_t pair_get(const json_t *pair, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(pair, i));
}

static json_t *pair_new(uint64_t ups, uint64_t downs)
{
	return json_pack("[I, I]", (json_int_t)ups, (json_int_t)downs);
}

/* True where something was added. */
static bool update_one(struct totals *t, json_t *seen, const char *pool, const struct health_backend *b)
{
	char id[24], *key;
	const json_t *before, *sum;
	uint64_t ups, downs;

	snprintf(id, sizeof(id), "%llu", (unsigned long long)b->id);
	before = json_object_get(t->seen, id);
	ups = b->ups - pair_get(before, 0);
	downs = b->downs - pair_get(before, 1);
	json_object_set_new(seen, id, pair_new(b->ups, b->downs));
	if (!ups && !downs)
		return false;
	key = key_of(pool, b);
	sum = json_object_get(t->kept, key);
	json_object_set_new(t->kept, key, pair_new(pair_get(sum, 0) + ups, pair_get(sum, 1) + downs));
	free(key);
	return true;
}

/* Forgets those that are no longer there, once they are many. */
static void prune(struct totals *t, const struct health *h, size_t backends)
{
	json_t *kept;

	if (json_object_size(t->kept) <= 2 * backends + SPARE)
		return;
	kept = json_object();
	for (size_t i = 0; i < h->pools; i++)
		for (size_t j = 0; j < h->pool[i].backends; j++) {
			char *key = key_of(h->pool[i].name, &h->pool[i].backend[j]);
			json_t *pair = json_object_get(t->kept, key);

			if (pair)
				json_object_set(kept, key, pair);
			free(key);
		}
	json_decref(t->kept);
	t->kept = kept;
}

void totals_update(struct totals *t, const struct health *h)
{
	json_t *seen = json_object();
	bool changed = false;
	size_t backends = 0;

	for (size_t i = 0; i < h->pools; i++)
		for (size_t j = 0; j < h->pool[i].backends; j++, backends++)
			changed |= update_one(t, seen, h->pool[i].name, &h->pool[i].backend[j]);
	json_decref(t->seen);
	t->seen = seen;
	if (!changed)
		return;
	prune(t, h, backends);
	save(t->path, t->kept);
}

void totals_get(const struct totals *t, const char *pool, const struct health_backend *b, uint64_t *ups,
		uint64_t *downs)
{
	char *key = key_of(pool, b);
	const json_t *pair = json_object_get(t->kept, key);

	*ups = pair_get(pair, 0);
	*downs = pair_get(pair, 1);
	free(key);
}

void totals_close(struct totals *t)
{
	json_decref(t->kept);
	json_decref(t->seen);
	free(t->path);
	memset(t, 0, sizeof(*t));
}

void totals_remove(const struct instance *i)
{
	static const char *const what[] = { "commits", "health" };

	for (size_t j = 0; j < sizeof(what) / sizeof(*what); j++) {
		char *path = path_of(i, what[j]);

		unlink(path);
		free(path);
	}
}
