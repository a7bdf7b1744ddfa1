/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "manifest.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file's name is any bytes, JSON is UTF-8: what is not plain ASCII, and the escape itself, is written as %XX. */
static json_t *name_write(const char *name)
{
	char *text = xcalloc(3 * strlen(name) + 1, 1), *out = text;
	json_t *o;

	for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
		if (*p > ' ' && *p < 0x7f && *p != '%')
			*out++ = (char)*p;
		else
			out += snprintf(out, 4, "%%%02x", *p);
	}
	o = json_string(text);
	free(text);
	return o;
}

static char *name_read(const char *text)
{
	char *name = xcalloc(strlen(text) + 1, 1), *out = name;
	unsigned int byte;

	while (*text) {
		if (*text == '%' && sscanf(text, "%%%2x", &byte) == 1 && byte) {
			*out++ = (char)byte;
			text += strnlen(text, 3);
		} else {
			*out++ = *text++;
		}
	}
	return name;
}

static const char *const use_name[] = {
	[HEALTH_USED] = "used",
	[HEALTH_WAITS] = "waits",
	[HEALTH_CUT] = "cut",
};

static void health_write(json_t *o, const struct state_backend *b)
{
	if (b->health != HEALTH_UNCHECKED)
		json_object_set_new(o, "health", json_string(health_status_name(b->health)));
	if (b->use != HEALTH_USED)
		json_object_set_new(o, "use", json_string(use_name[b->use]));
	if (b->withheld)
		json_object_set_new(o, "withheld", json_integer(b->withheld));
	if (b->reason)
		json_object_set_new(o, "reason", name_write(b->reason));
}

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
	if (o)
		health_write(o, b);
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
	root = json_pack("{s:I, s:I, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "generation", (json_int_t)s->generation,
			 "revision", (json_int_t)s->revision, "digest", s->digest, "file",
			 name_write(s->config->file ? s->config->file : ""), "config", config, "interfaces", interfaces,
			 "services", services, "pools", pools, "owns", owns_write(s), "edits", edits_write(s));
	if (root && *s->effective_digest)
		json_object_set_new(root, "effective_digest", json_string(s->effective_digest));
	if (root && s->config->hash_key_file)
		json_object_set_new(root, "key_file", name_write(s->config->hash_key_file));
	if (root)
		text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	free(config);
	return text ? text : xstrdup(""); /* without memory; manifest_read refuses it */
}

static bool fits_u32(json_int_t value)
{
	return value >= 0 && value <= UINT32_MAX;
}

static int health_read(json_t *o, struct state_backend *b)
{
	const char *health = health_status_name(HEALTH_UNCHECKED), *use = use_name[HEALTH_USED], *reason = NULL;
	json_int_t withheld = 0;

	if (json_unpack(o, "{s?s, s?s, s?I, s?s}", "health", &health, "use", &use, "withheld", &withheld, "reason",
			&reason) ||
	    withheld < 0 || withheld > BACKEND_WHOLE)
		return -EINVAL;
	for (b->health = HEALTH_UNCHECKED; strcmp(health_status_name(b->health), health); b->health++)
		if (b->health == HEALTH_DOWN)
			return -EINVAL;
	for (b->use = HEALTH_USED; strcmp(use_name[b->use], use); b->use++)
		if (b->use == HEALTH_CUT)
			return -EINVAL;
	b->withheld = (uint32_t)withheld;
	b->reason = reason ? name_read(reason) : NULL;
	return 0;
}

static int backend_read(json_t *o, struct state_backend *b)
{
	const char *name, *identity, *address, *state, *zone = NULL;
	json_int_t weight, points, since, id = 0;
	int cut, index, incarnation;

	if (json_unpack(o, "{s:s, s:s, s:s, s:I, s:I, s:s, s:b, s:I, s:i, s:i, s?s, s?I}", "name", &name, "identity",
			&identity, "address", &address, "weight", &weight, "points", &points, "state", &state, "cut",
			&cut, "since", &since, "index", &index, "incarnation", &incarnation, "zone", &zone, "id", &id))
		return -EINVAL;
	if (address_parse(address, &b->address) || index < 0 || index >= (int)RINGLB_MAX_BACKENDS)
		return -EINVAL;
	if (incarnation < 1 || incarnation > UINT16_MAX || !fits_u32(weight) || !fits_u32(points) || !fits_u32(since) ||
	    !fits_u32(id))
		return -EINVAL;
	for (b->state = BACKEND_UP; strcmp(backend_state_name(b->state), state); b->state++)
		if (b->state == BACKEND_LEAVING)
			return -EINVAL;
	if (health_read(o, b))
		return -EINVAL;
	b->name = xstrdup(name);
	b->identity = xstrdup(identity);
	b->zone = zone ? xstrdup(zone) : NULL;
	b->weight = (uint32_t)weight;
	b->points = (uint32_t)points;
	b->id = (uint32_t)id;
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
		return !p->region;
	if ((l->index_off | l->points_off | l->cold_off | l->owners_off) % RINGLB_REGION_ALIGN)
		return false;
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
	if (!fits_u32(region) || !layout_fits(p, tables_bytes))
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
		if (k != EDIT_ROLLBACK && (!pool || !backend))
			return -EINVAL;
		state_edit_add(s, k, pool, backend, value);
	}
	return 0;
}

/* Numbers of a list, each below limit. */
static int numbers_read(json_t *list, json_int_t limit, uint32_t *out)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *o = json_array_get(list, i);

		if (!json_is_integer(o) || json_integer_value(o) < 0 || json_integer_value(o) >= limit)
			return -EINVAL;
		out[i] = (uint32_t)json_integer_value(o);
	}
	return 0;
}

static int service_indices_read(json_t *list, struct state *s)
{
	uint32_t *index = xcalloc(s->config->services + 1, sizeof(*index));
	uint8_t *used = xcalloc(RINGLB_MAX_SERVICES, 1);
	int err = numbers_read(list, RINGLB_MAX_SERVICES, index);

	for (size_t i = 0; i < s->config->services && !err; i++) {
		s->service_index[i] = (uint16_t)index[i];
		err = used[index[i]]++ ? -EINVAL : 0;
	}
	free(index);
	free(used);
	return err;
}

/*
 * What the rest of the program takes for granted: pools are the configuration's, backends are in order, and an index is
 * one backend's, which only tables of services' own may list again.
 */
static bool state_sound(const struct state *s)
{
	const struct state_backend **of = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*of));
	bool sound = true;

	for (size_t i = 0; i < s->pools; i++)
		sound &= !strcmp(s->pool[i].name, s->config->pool[i].name);
	for (size_t i = 0; i < state_tables(s); i++) {
		const struct state_pool *p = state_table_at(s, i);

		for (size_t j = 0; j < p->backends; j++) {
			const struct state_backend *b = &p->backend[j], *other = of[b->index];

			sound &= !j || backend_order(&p->backend[j - 1], b) < 0;
			sound &= !other || (i >= s->pools && backend_same(other, b));
			of[b->index] = b;
		}
	}
	for (size_t i = 0; i < s->owns; i++)
		for (size_t j = 0; j < i; j++)
			sound &= s->own[i].service != s->own[j].service;
	free(of);
	return sound;
}

static int state_read(json_t *root, const void *tables, size_t tables_bytes, struct state *s, struct diag *d)
{
	const char *digest, *effective = NULL, *file, *config, *key_file = NULL;
	json_int_t generation, revision;
	json_t *interfaces, *services, *pools, *owns, *edits;
	char *name;
	int err;

	if (json_unpack(root, "{s:I, s:I, s:s, s?s, s:s, s?s, s:s, s:o, s:o, s:o, s:o, s:o}", "generation", &generation,
			"revision", &revision, "digest", &digest, "effective_digest", &effective, "file", &file,
			"key_file", &key_file, "config", &config, "interfaces", &interfaces, "services", &services,
			"pools", &pools, "owns", &owns, "edits", &edits))
		return -EINVAL;
	s->generation = (uint32_t)generation;
	s->revision = (uint64_t)revision;
	if (!effective)
		effective = digest;
	if (strlen(digest) >= sizeof(s->digest) || strlen(effective) >= sizeof(s->effective_digest))
		return -EINVAL;
	strcpy(s->digest, digest);
	strcpy(s->effective_digest, effective);
	if (!fits_u32(generation) || revision < 0)
		return -EINVAL;
	name = name_read(file);
	s->config = config_parse(name, config, strlen(config), d);
	free(name);
	if (!s->config || json_array_size(services) != s->config->services ||
	    json_array_size(pools) != s->config->pools || json_array_size(interfaces) != s->config->interfaces)
		return -EINVAL;
	free(s->config->hash_key_file);
	s->config->hash_key_file = key_file ? name_read(key_file) : NULL;
	s->ifindex = xcalloc(s->config->interfaces + 1, sizeof(*s->ifindex));
	err = numbers_read(interfaces, INT32_MAX, s->ifindex);
	s->service_index = xcalloc(s->config->services + 1, sizeof(*s->service_index));
	if (!err)
		err = service_indices_read(services, s);
	if (err)
		return err;
	s->pool = xcalloc(s->config->pools + 1, sizeof(*s->pool));
	for (s->pools = 0; s->pools < s->config->pools;) {
		err = pool_read(json_array_get(pools, s->pools), tables, tables_bytes, &s->pool[s->pools]);
		s->pools++; /* also a half-read one is to be freed */
		if (err)
			return err;
	}
	err = owns_read(owns, tables, tables_bytes, s);
	if (!err)
		err = edits_read(edits, s);
	return err ? err : state_sound(s) ? 0 : -EINVAL;
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
