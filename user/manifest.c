/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "manifest.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *backend_write(const struct state_backend *b)
{
	char address[ADDRESS_TEXT];
	json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:b, s:I, s:i, s:i}", "name", b->name, "identity",
			      b->identity, "address", address_text(&b->address, address), "weight",
			      (json_int_t)b->weight, "points", (json_int_t)b->points, "state",
			      backend_state_name(b->state), "cut", (int)b->cut, "since", (json_int_t)b->since, "index",
			      (int)b->index, "incarnation", (int)b->incarnation);

	if (o && b->id)
		json_object_set_new(o, "id", json_integer(b->id));
	if (o && b->zone)
		json_object_set_new(o, "zone", json_string(b->zone));
	return o;
}

static json_t *pool_write(const struct state_pool *p)
{
	const struct table_layout *l = &p->layout;
	json_t *backends = json_array();

	for (size_t i = 0; i < p->backends; i++)
		json_array_append_new(backends, backend_write(&p->backend[i]));
	return json_pack("{s:s, s:I, s:{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:o}", "name", p->name, "region",
			 (json_int_t)p->region, "layout", "bits", (int)l->bits, "points", (json_int_t)l->points,
			 "owners", (json_int_t)l->owners, "index_off", (json_int_t)l->index_off, "points_off",
			 (json_int_t)l->points_off, "cold_off", (json_int_t)l->cold_off, "owners_off",
			 (json_int_t)l->owners_off, "length", (json_int_t)l->length, "backends", backends);
}

static json_t *owns_write(const struct state *s)
{
	json_t *owns = json_array();

	for (size_t i = 0; i < s->owns; i++) {
		json_t *o = pool_write(&s->own[i].table);

		json_object_set_new(o, "service", json_integer((json_int_t)s->own[i].service));
		json_array_append_new(owns, o);
	}
	return owns;
}

static json_t *edits_write(const struct state *s)
{
	json_t *edits = json_array();

	for (size_t i = 0; i < s->edits; i++) {
		const struct state_edit *e = &s->edit[i];

		json_array_append_new(edits, json_pack("{s:s, s:s*, s:s*, s:s*}", "kind", state_edit_kind_name(e->kind),
						       "pool", e->pool, "backend", e->backend, "value", e->value));
	}
	return edits;
}

char *manifest_write(const struct state *s)
{
	struct config self_contained = *s->config;
	json_t *pools = json_array(), *services = json_array(), *interfaces = json_array(), *root;
	char *config, *text = NULL;

	self_contained.hash_key_file = NULL; /* what runs must not depend on a file that may change */
	config = config_emit(&self_contained, true);

	for (size_t i = 0; i < s->pools; i++)
		json_array_append_new(pools, pool_write(&s->pool[i]));
	for (size_t i = 0; i < s->config->services; i++)
		json_array_append_new(services, json_integer(s->service_index[i]));
	for (size_t i = 0; i < s->config->interfaces; i++)
		json_array_append_new(interfaces, json_integer(s->ifindex[i]));
	root = json_pack("{s:I, s:I, s:s, s:s, s:s*, s:s, s:o, s:o, s:o, s:o, s:o}", "generation",
			 (json_int_t)s->generation, "revision", (json_int_t)s->revision, "digest", s->digest, "file",
			 s->config->file ? s->config->file : "", "key_file", s->config->hash_key_file, "config", config,
			 "interfaces", interfaces, "services", services, "pools", pools, "owns", owns_write(s), "edits",
			 edits_write(s));
	if (root)
		text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	free(config);
	return text ? text : xstrdup(""); /* without memory; manifest_read refuses it */
}

static int backend_read(json_t *o, struct state_backend *b)
{
	const char *name, *identity, *address, *state, *zone = NULL;
	json_int_t weight, points, since;
	int cut, index, incarnation;

	if (json_unpack(o, "{s:s, s:s, s:s, s:I, s:I, s:s, s:b, s:I, s:i, s:i, s?s}", "name", &name, "identity",
			&identity, "address", &address, "weight", &weight, "points", &points, "state", &state, "cut",
			&cut, "since", &since, "index", &index, "incarnation", &incarnation, "zone", &zone))
		return -EINVAL;
	if (address_parse(address, &b->address) || index < 0 || index >= (int)RINGLB_MAX_BACKENDS)
		return -EINVAL;
	for (b->state = BACKEND_UP; strcmp(backend_state_name(b->state), state); b->state++)
		if (b->state == BACKEND_LEAVING)
			return -EINVAL;
	b->name = xstrdup(name);
	b->identity = xstrdup(identity);
	b->zone = zone ? xstrdup(zone) : NULL;
	b->weight = (uint32_t)weight;
	b->points = (uint32_t)points;
	b->id = (uint32_t)json_integer_value(json_object_get(o, "id"));
	b->cut = cut;
	b->since = (uint32_t)since;
	b->index = (uint16_t)index;
	b->incarnation = (uint16_t)incarnation;
	return 0;
}

static int layout_read(json_t *o, struct table_layout *l)
{
	json_int_t v[7];
	int bits;

	if (json_unpack(o, "{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "bits", &bits, "points", &v[0], "owners", &v[1],
			"index_off", &v[2], "points_off", &v[3], "cold_off", &v[4], "owners_off", &v[5], "length",
			&v[6]))
		return -EINVAL;
	for (int i = 0; i < 7; i++)
		if (v[i] < 0 || v[i] > (json_int_t)RINGLB_MAX_TABLES_BYTES)
			return -EINVAL;
	*l = (struct table_layout){
		.bits = (unsigned int)bits,
		.points = (uint32_t)v[0],
		.owners = (uint32_t)v[1],
		.index_off = (uint32_t)v[2],
		.points_off = (uint32_t)v[3],
		.cold_off = (uint32_t)v[4],
		.owners_off = (uint32_t)v[5],
		.length = (uint32_t)v[6],
	};
	return 0;
}

/* The parts lie inside the region, and the region inside the map. */
static bool layout_fits(const struct state_pool *p, size_t tables_bytes)
{
	const struct table_layout *l = &p->layout;

	if (!l->bits)
		return true;
	return l->bits <= 22 && p->region >= RINGLB_TABLES_HEADER && p->region % RINGLB_REGION_ALIGN == 0 &&
	       (uint64_t)p->region + l->length <= tables_bytes &&
	       l->index_off + (((uint64_t)1 << l->bits) + 1) * sizeof(uint32_t) <= l->length &&
	       l->points_off + (uint64_t)l->points * sizeof(uint32_t) <= l->length &&
	       l->cold_off + (uint64_t)l->points * sizeof(struct ringlb_cold) <= l->length &&
	       l->owners_off + (uint64_t)l->owners * sizeof(uint16_t) <= l->length && l->owners == p->backends + 1;
}

static int pool_read(json_t *o, const void *tables, size_t tables_bytes, struct state_pool *p)
{
	json_t *layout, *backends;
	json_int_t region;
	const char *name;
	int err;

	if (json_unpack(o, "{s:s, s:I, s:o, s:o}", "name", &name, "region", &region, "layout", &layout, "backends",
			&backends))
		return -EINVAL;
	p->name = xstrdup(name);
	p->region = (uint32_t)region;
	p->backend = xcalloc(json_array_size(backends) + 1, sizeof(*p->backend));
	for (size_t i = 0; i < json_array_size(backends); i++) {
		err = backend_read(json_array_get(backends, i), &p->backend[p->backends++]);
		if (err)
			return err;
	}
	err = layout_read(layout, &p->layout);
	if (err)
		return err;
	if (region < 0 || !layout_fits(p, tables_bytes))
		return -EINVAL;
	if (!p->layout.bits)
		return 0;
	return table_decode(&p->layout, (const char *)tables + p->region, &p->arcs);
}

static int owns_read(json_t *owns, const void *tables, size_t tables_bytes, struct state *s)
{
	s->own = xcalloc(json_array_size(owns) + 1, sizeof(*s->own));
	while (s->owns < json_array_size(owns)) {
		json_t *o = json_array_get(owns, s->owns);
		struct state_own *own = &s->own[s->owns++]; /* also a half-read one is to be freed */
		json_int_t service;
		int err;

		if (json_unpack(o, "{s:I}", "service", &service) || service < 0 ||
		    service >= (json_int_t)s->config->services)
			return -EINVAL;
		own->service = (size_t)service;
		err = pool_read(o, tables, tables_bytes, &own->table);
		if (err)
			return err;
	}
	return 0;
}

static int edits_read(json_t *edits, struct state *s)
{
	for (size_t i = 0; i < json_array_size(edits); i++) {
		const char *kind, *pool = NULL, *backend = NULL, *value = NULL;
		enum state_edit_kind k = EDIT_ADD;

		if (json_unpack(json_array_get(edits, i), "{s:s, s?s, s?s, s?s}", "kind", &kind, "pool", &pool,
				"backend", &backend, "value", &value))
			return -EINVAL;
		while (strcmp(state_edit_kind_name(k), kind))
			if (k++ == EDIT_ROLLBACK)
				return -EINVAL;
		state_edit_add(s, k, pool, backend, value);
	}
	return 0;
}

static int state_read(json_t *root, const void *tables, size_t tables_bytes, struct state *s, struct diag *d)
{
	const char *digest, *file, *config, *key_file = NULL;
	json_int_t generation, revision;
	json_t *interfaces, *services, *pools, *owns, *edits;
	int err;

	if (json_unpack(root, "{s:I, s:I, s:s, s:s, s?s, s:s, s:o, s:o, s:o, s:o, s:o}", "generation", &generation,
			"revision", &revision, "digest", &digest, "file", &file, "key_file", &key_file, "config",
			&config, "interfaces", &interfaces, "services", &services, "pools", &pools, "owns", &owns,
			"edits", &edits))
		return -EINVAL;
	s->generation = (uint32_t)generation;
	s->revision = (uint64_t)revision;
	if (strlen(digest) >= sizeof(s->digest))
		return -EINVAL;
	strcpy(s->digest, digest);
	s->config = config_parse(file, config, strlen(config), d);
	if (!s->config || json_array_size(services) != s->config->services ||
	    json_array_size(pools) != s->config->pools || json_array_size(interfaces) != s->config->interfaces)
		return -EINVAL;
	s->config->hash_key_file = key_file ? xstrdup(key_file) : NULL;
	s->ifindex = xcalloc(s->config->interfaces + 1, sizeof(*s->ifindex));
	for (size_t i = 0; i < s->config->interfaces; i++)
		s->ifindex[i] = (uint32_t)json_integer_value(json_array_get(interfaces, i));
	s->service_index = xcalloc(s->config->services + 1, sizeof(*s->service_index));
	for (size_t i = 0; i < s->config->services; i++)
		s->service_index[i] = (uint16_t)json_integer_value(json_array_get(services, i));
	s->pool = xcalloc(s->config->pools + 1, sizeof(*s->pool));
	for (s->pools = 0; s->pools < s->config->pools;) {
		err = pool_read(json_array_get(pools, s->pools), tables, tables_bytes, &s->pool[s->pools]);
		s->pools++; /* also a half-read one is to be freed */
		if (err)
			return err;
	}
	err = owns_read(owns, tables, tables_bytes, s);
	return err ? err : edits_read(edits, s);
}

struct state *manifest_read(const char *text, size_t length, const void *tables, size_t tables_bytes, struct diag *d)
{
	struct state *s = xcalloc(1, sizeof(*s));
	json_t *root = json_loadb(text, length, 0, NULL);
	struct diag ignored = { 0 };

	if (root && !state_read(root, tables, tables_bytes, s, &ignored)) {
		json_decref(root);
		diag_free(&ignored);
		return s;
	}
	diag_error(
		d, "manifest", "",
		"what runs can't be read back from the kernel%s%s: it was made by another version, or is damaged; packets "
		"keep flowing; detach and attach to start anew",
		ignored.errors ? ": " : "", ignored.errors ? ignored.entry[0].message : "");
	diag_free(&ignored);
	json_decref(root);
	state_free(s);
	return NULL;
}
