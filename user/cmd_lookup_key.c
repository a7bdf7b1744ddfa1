// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lookup --pool: where a key would go. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"
#include "pool_view.h"
#include "replicas.h"

struct key_lookup {
	struct cmd_context *cx;
	const struct cmd_lookup_options *options;
	const struct placement *placement;
	struct pool_view pool;
	struct arcs arcs;
	struct replicas ring;
};

static int find_pool(struct key_lookup *l, const struct config *c, const struct state *running)
{
	const struct config_pool *p = config_find_pool(c, l->options->pool);

	if (!p) {
		char *list = xstrdup(""), *longer;

		for (size_t i = 0; i < c->pools; i++, list = longer) {
			longer = xasprintf("%s%s%s", list, i ? ", " : "", c->pool[i].name);
			free(list);
		}
		diag_error(&l->cx->diag, "unknown-pool", "", "no pool \"%s\": there %s %s", l->options->pool,
			   c->pools == 1 ? "is" : "are", *list ? list : "none");
		free(list);
		return EXIT_BAD;
	}
	pool_view_make(p, running ? &running->pool[p - c->pool] : NULL, &l->pool);
	return EXIT_DONE;
}

static int find_placement(struct key_lookup *l)
{
	const char *name = l->options->placement;
	char *list;

	l->placement = name ? placement_find(name) : placement_of(l->pool.config->placement);
	if (l->placement)
		return EXIT_DONE;
	list = xstrdup("");
	for (size_t i = 0; i < placements_count; i++) {
		char *longer = xasprintf("%s%s%s", list, i ? ", " : "", placements[i]->name);

		free(list);
		list = longer;
	}
	diag_error(&l->cx->diag, "unknown-placement", "", "no placement \"%s\"; there are %s", name, list);
	free(list);
	return EXIT_BAD;
}

static int build(struct key_lookup *l)
{
	const char *const *zone = l->options->distinct_zones ? l->pool.zone : NULL;
	char *why;
	int err = pool_view_build(&l->pool, l->placement, &l->arcs, NULL, &why);

	if (!err)
		err = replicas_init(&l->ring, &l->arcs, l->pool.config->backends, zone, UINT16_MAX);
	if (!err)
		return EXIT_DONE;
	diag_error(&l->cx->diag, "placement", "", "pool %s can't have placement %s: %s", l->pool.config->name,
		   l->placement->name, why ? why : strerror(-err));
	free(why);
	return err == -ENOMEM ? EXIT_FAILED : EXIT_BAD;
}

struct key_answer {
	const char *key;
	struct placement_key place;
	char hash[20];
	uint16_t *owner;
	size_t owners;
	const struct config_backend *backend; /* the first; NULL without any */
};

/* The whole array of backends, of which owners are indices. */
static const struct config_backend *backend_at(const struct key_lookup *l, uint16_t owner)
{
	return &l->pool.config->backend[owner];
}

static void print_json(const struct key_lookup *l, const struct key_answer *a)
{
	struct out *o = l->cx->out;
	char text[ADDRESS_TEXT];

	out_object(o, NULL);
	out_string(o, "pool", l->pool.config->name);
	out_string(o, "placement", l->placement->name);
	out_string(o, "key", a->key);
	out_string(o, "hash", a->hash);
	out_string(o, "backend", a->backend ? a->backend->name : NULL);
	out_string(o, "address", a->backend ? address_text(&a->backend->address, text) : NULL);
	out_string(o, "identity", a->backend ? a->backend->identity : NULL);
	out_array(o, "replicas");
	for (size_t i = 0; i < a->owners; i++)
		out_string(o, NULL, backend_at(l, a->owner[i])->name);
	out_end(o);
	if (a->place.slot >= 0)
		out_integer(o, "slot", a->place.slot);
	out_end(o);
}

static void print_one(const struct key_lookup *l, const struct key_answer *a)
{
	struct out *o = l->cx->out;
	char text[ADDRESS_TEXT];

	if (a->backend)
		out_text(o, "backend   %s (%s)\nidentity  %s\n", a->backend->name,
			 address_text(&a->backend->address, text), a->backend->identity);
	else
		out_text(o, "backend   none\n");
	out_text(o, "pool      %s, placement %s\nhash      %s\n", l->pool.config->name, l->placement->name, a->hash);
	if (a->place.slot >= 0)
		out_text(o, "slot      %d\n", a->place.slot);
	for (size_t i = 0; l->options->replicas > 1 && i < a->owners; i++)
		out_text(o, "replica   %zu %s\n", i + 1, backend_at(l, a->owner[i])->name);
}

static void print_line(const struct key_lookup *l, const struct key_answer *a)
{
	struct out *o = l->cx->out;

	out_text(o, "%s %s %s %s", a->key, a->backend ? a->backend->name : "-", a->backend ? a->backend->identity : "-",
		 a->hash);
	if (a->place.slot >= 0)
		out_text(o, " %d", a->place.slot);
	for (size_t i = 0; l->options->replicas > 1 && i < a->owners; i++)
		out_text(o, "%c%s", i ? ',' : ' ', backend_at(l, a->owner[i])->name);
	out_text(o, "\n");
	out_flush_line(o);
}

static int answer(void *data, char *key, size_t length, const char *where)
{
	struct key_lookup *l = data;
	size_t wanted = l->options->replicas < l->ring.distinct ? l->options->replicas : l->ring.distinct;
	struct key_answer a = { .key = key };
	char *why;

	if (placement_key_hash(l->placement, key, length, &a.place, &why)) {
		diag_error(&l->cx->diag, "bad-key", where, "\"%s\": %s", key, why);
		free(why);
		return EXIT_BAD;
	}
	snprintf(a.hash, sizeof(a.hash), "0x%0*" PRIx64, (int)(a.place.bits / 4), a.place.hash);
	a.owner = xcalloc(wanted, sizeof(*a.owner));
	a.owners = replicas_find(&l->ring, a.place.position, wanted, a.owner);
	if (a.owners)
		a.backend = backend_at(l, a.owner[0]);
	print_json(l, &a);
	if (l->options->list)
		print_line(l, &a);
	else
		print_one(l, &a);
	free(a.owner);
	return EXIT_DONE;
}

static int answer_all(struct key_lookup *l)
{
	char *key;
	int status = find_placement(l);

	if (!status)
		status = build(l);
	if (status)
		return status;
	if (l->options->list)
		return cmd_from(l->cx, l->options->list, answer, l);
	key = xstrdup(l->options->key);
	status = answer(l, key, strlen(key), "");
	free(key);
	return status;
}

static int from_file(struct key_lookup *l)
{
	struct config *c = cmd_config(l->cx, l->options->file);
	int status = c ? find_pool(l, c, NULL) : EXIT_BAD;

	if (!status)
		status = answer_all(l);
	config_free(c);
	return status;
}

static int from_running(struct key_lookup *l)
{
	struct running running;
	int status;

	if (!cmd_privileged(l->cx, "lookup"))
		return EXIT_FAILED;
	status = cmd_running(l->cx, "lookup", &running);
	if (status)
		return status;
	status = find_pool(l, running.state->config, running.state);
	if (!status)
		status = answer_all(l);
	running_close(&running);
	return status;
}

int cmd_lookup_key(struct cmd_context *cx, const struct cmd_lookup_options *o)
{
	struct key_lookup l = { .cx = cx, .options = o };
	int status = o->file ? from_file(&l) : from_running(&l);

	replicas_free(&l.ring);
	arcs_free(&l.arcs);
	pool_view_free(&l.pool);
	return status;
}
