/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "backend_edit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rendered.h"

static struct config_pool *find_pool(const struct config *c, const char *name)
{
	for (size_t i = 0; c && i < c->pools; i++)
		if (!strcmp(c->pool[i].name, name))
			return &c->pool[i];
	return NULL;
}

static struct config_backend *find_backend(const struct config_pool *p, const char *name)
{
	for (size_t i = 0; p && i < p->backends; i++)
		if (!strcmp(p->backend[i].name, name))
			return &p->backend[i];
	return NULL;
}

static void add_backend(struct config_pool *p, const struct backend_edit *e)
{
	p->backend = xreallocarray(p->backend, p->backends + 1, sizeof(*p->backend));
	p->backend[p->backends++] = (struct config_backend){
		.name = xstrdup(e->name),
		.identity = xstrdup(e->identity ? e->identity : e->name),
		.zone = e->zone ? xstrdup(e->zone) : NULL,
		.address = e->address,
		.weight = e->weight ? e->weight : 1,
	};
}

static void delete_backend(struct config_pool *p, struct config_backend *b)
{
	size_t i = (size_t)(b - p->backend);

	free(b->name);
	free(b->identity);
	free(b->zone);
	memmove(b, b + 1, (--p->backends - i) * sizeof(*b));
}

/* The count at the new weight of what was tuned for the old one. */
static uint32_t scaled(uint32_t points, uint32_t from, uint32_t to)
{
	uint64_t n = ((uint64_t)points * to + from / 2) / from;

	return n < 1 ? 1 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void set_backend(struct config_backend *b, struct backend_edit *e)
{
	if (e->weight && b->points)
		b->points = scaled(b->points, b->weight, e->weight);
	if (e->weight)
		b->weight = e->weight;
	if (e->state >= 0)
		b->state = (enum config_state)e->state;
	e->points = b->points;
}

/* The first error is enough: each makes the others meaningless. */
static bool edit(struct backend_edit *e, struct config *c, struct diag *d)
{
	struct config_pool *p = find_pool(c, e->pool);
	struct config_backend *b = find_backend(p, e->name);

	if (!p)
		diag_error(d, "unknown-pool", "", "no pool \"%s\": \"ringlb show\" lists them", e->pool);
	else if (e->verb == BACKEND_ADD && b)
		diag_error(
			d, "duplicate-name", "",
			"pool %s has a backend %s already: \"backend set\" changes it; for a new address delete it first",
			e->pool, e->name);
	else if (e->verb != BACKEND_ADD && !b)
		diag_error(d, "unknown-backend", "", "pool %s has no backend \"%s\": \"ringlb show %s\" lists them",
			   e->pool, e->name, e->pool);
	else if (e->verb == BACKEND_ADD)
		add_backend(p, e);
	else if (e->verb == BACKEND_DELETE)
		delete_backend(p, b);
	else
		set_backend(b, e);
	return p && (e->verb == BACKEND_ADD) != (b != NULL);
}

struct config *backend_edit_make(struct backend_edit *e, struct config *c, struct diag *d)
{
	struct diag before = { 0 }, after = { 0 };
	struct config *made = NULL;

	config_free(rendered_copy(c, &before));
	if (edit(e, c, d)) {
		made = rendered_copy(c, &after);
		rendered_errors(&after, d);
		rendered_new_warnings(&before, &after, d);
	}
	diag_free(&before);
	diag_free(&after);
	config_free(c);
	return made;
}

size_t backend_edit_of_file(const struct backend_edit *e, struct config_backend *added,
			    struct yaml_edit out[BACKEND_FILE_EDITS])
{
	struct yaml_edit to = { .pool = e->pool, .backend = e->name };
	size_t n = 0;

	*added = (struct config_backend){ .name = (char *)e->name,
					  .identity = (char *)(e->identity ? e->identity : e->name),
					  .zone = (char *)e->zone,
					  .address = e->address,
					  .weight = e->weight ? e->weight : 1 };
	to.add = added;
	to.kind = e->verb == BACKEND_ADD ? YAML_EDIT_ADD : e->verb == BACKEND_DELETE ? YAML_EDIT_DELETE : YAML_EDIT_SET;
	if (e->verb != BACKEND_SET) {
		out[n++] = to;
		return n;
	}
	to.key = YAML_EDIT_WEIGHT;
	to.value = e->weight;
	if (e->weight)
		out[n++] = to;
	to.key = YAML_EDIT_POINTS;
	to.value = e->points;
	if (e->weight && e->points)
		out[n++] = to;
	to.key = YAML_EDIT_STATE;
	to.value = e->state > 0 ? (uint32_t)e->state : CONFIG_UP;
	to.kind = to.value == CONFIG_UP ? YAML_EDIT_UNSET : YAML_EDIT_SET;
	if (e->state >= 0)
		out[n++] = to;
	return n;
}

/* Live edits that the file says, too, are none. */
static void forget_what_file_says(const struct backend_edit *e, const struct config *file, struct state *s)
{
	struct config_backend *f = find_backend(find_pool(file, e->pool), e->name);

	if (!file)
		return;
	if (!f)
		state_edit_drop(s, EDIT_DELETE, e->pool, e->name);
	if (f && e->verb == BACKEND_ADD && address_equal(&f->address, &e->address))
		state_edit_drop(s, EDIT_ADD, e->pool, e->name);
	if (f && e->weight == f->weight)
		state_edit_drop(s, EDIT_WEIGHT, e->pool, e->name);
	if (f && e->state == (int)f->state)
		state_edit_drop(s, EDIT_STATE, e->pool, e->name);
}

void backend_edit_note(const struct backend_edit *e, const struct config *was_in, const struct config *file,
		       struct state *next)
{
	const struct config_backend *was = find_backend(find_pool(was_in, e->pool), e->name);
	char weight[16], address[ADDRESS_TEXT];

	snprintf(weight, sizeof(weight), "%" PRIu32, e->weight);
	if (e->verb == BACKEND_ADD)
		state_edit_add(next, EDIT_ADD, e->pool, e->name, address_text(&e->address, address));
	if (e->verb == BACKEND_DELETE)
		state_edit_add(next, EDIT_DELETE, e->pool, e->name, NULL);
	if (e->weight && (!was || was->weight != e->weight))
		state_edit_add(next, EDIT_WEIGHT, e->pool, e->name, weight);
	if (e->state >= 0 && (!was || (int)was->state != e->state))
		state_edit_add(next, EDIT_STATE, e->pool, e->name, config_state_name((enum config_state)e->state));
	forget_what_file_says(e, file, next);
}

void backend_edit_saved(const struct backend_edit *e, struct state *next)
{
	if (e->verb == BACKEND_ADD || e->verb == BACKEND_DELETE) {
		state_edit_drop(next, EDIT_ADD, e->pool, e->name);
		state_edit_drop(next, EDIT_DELETE, e->pool, e->name);
	}
	if (e->weight)
		state_edit_drop(next, EDIT_WEIGHT, e->pool, e->name);
	if (e->state >= 0)
		state_edit_drop(next, EDIT_STATE, e->pool, e->name);
}

char *backend_edit_file_says(const struct backend_edit *e, const struct config *file)
{
	struct config_pool *p = find_pool(file, e->pool);
	struct config_backend *f = find_backend(p, e->name);
	char text[ADDRESS_TEXT];

	if (!p)
		return xasprintf("has no pool %s", e->pool);
	if (e->verb == BACKEND_DELETE)
		return f ? xasprintf("still has backend %s in pool %s", e->name, e->pool) : NULL;
	if (!f)
		return xasprintf("has no backend %s in pool %s", e->name, e->pool);
	if (e->verb == BACKEND_ADD && !address_equal(&f->address, &e->address))
		return xasprintf("says address %s for backend %s of pool %s", address_text(&f->address, text), e->name,
				 e->pool);
	if (e->weight && f->weight != e->weight)
		return xasprintf("still says weight %" PRIu32 " for backend %s of pool %s", f->weight, e->name,
				 e->pool);
	if (e->state >= 0 && (int)f->state != e->state)
		return xasprintf("still says state %s for backend %s of pool %s", config_state_name(f->state), e->name,
				 e->pool);
	return NULL;
}
