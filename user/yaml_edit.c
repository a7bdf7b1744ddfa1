// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The edits are made twice: to the text, and to the configuration that the text meant. What the new text means is then
 * held against the second.
 */
#include "yaml_edit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config_parse.h"
#include "yaml_edit_private.h"

struct work {
	const char *file;
	struct diag *d;
	struct editor e;
	struct config *wanted;
	size_t hint; /* the backend found last: edits mostly come in the order of the file */
};

static bool unsafe(struct work *w, const struct node *n, const char *reason)
{
	char *where = n ? xasprintf("%s:%u:%u", w->file, n->line, n->column) : xstrdup(w->file);

	diag_error(w->d, "unsafe-edit", where, "can't be edited safely: %s; nothing was written, change it by hand",
		   reason);
	free(where);
	return false;
}

/* Line ends that YAML knows and nobody uses: what is a line there is not one here. */
static bool has_odd_line_ends(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\r' && (i + 1 == length || text[i + 1] != '\n'))
			return true;
		if (text[i] == '\xc2' && i + 1 < length && text[i + 1] == '\x85')
			return true;
		if (text[i] == '\xe2' && i + 2 < length && text[i + 1] == '\x80' &&
		    (text[i + 2] == '\xa8' || text[i + 2] == '\xa9'))
			return true;
	}
	return false;
}

/* The tree of the text as it is now. */
static bool reread(struct work *w)
{
	struct faults f = { 0 };

	tree_free(w->e.root);
	w->e.root = tree_parse(w->e.text, w->e.length, &f);
	if (w->e.root && !f.errors) {
		faults_give(&f, w->file, w->d);
		return true;
	}
	faults_give(&f, w->file, w->d);
	return unsafe(w, NULL, "the text can't be followed");
}

/* Makes what is planned and reads the result, so that the next edit sees it. */
static bool settle(struct work *w)
{
	if (!w->e.changes)
		return true;
	if (!editor_apply(&w->e))
		return unsafe(w, NULL, "two changes meet in one place");
	return reread(w);
}

static struct config_pool *find_pool(const struct config *c, const char *name, size_t *index)
{
	for (size_t i = 0; i < c->pools; i++) {
		if (!strcmp(c->pool[i].name, name)) {
			*index = i;
			return &c->pool[i];
		}
	}
	return NULL;
}

/* The index of a backend, from the hint on; p->backends where there is none. */
static size_t find_backend(const struct config_pool *p, const char *name, size_t hint)
{
	for (size_t k = 0; k < p->backends; k++) {
		size_t i = (hint + k) % p->backends;

		if (!strcmp(p->backend[i].name, name))
			return i;
	}
	return p->backends;
}

static void free_backend(struct config_backend *b)
{
	free(b->name);
	free(b->identity);
	free(b->zone);
}

/* In the configuration. False: it says so already. */
static bool set_value(struct config_backend *b, const struct yaml_edit *edit)
{
	static const uint32_t standard[] = {
		[YAML_EDIT_WEIGHT] = 1, [YAML_EDIT_POINTS] = 0, [YAML_EDIT_STATE] = CONFIG_UP
	};
	uint32_t value = edit->kind == YAML_EDIT_UNSET ? standard[edit->key] : edit->value, was;

	if (edit->key == YAML_EDIT_STATE) {
		was = b->state;
		b->state = (enum config_state)value;
	} else {
		uint32_t *number = edit->key == YAML_EDIT_WEIGHT ? &b->weight : &b->points;

		was = *number;
		*number = value;
	}
	return was != value;
}

static const char *change_key(struct work *w, const struct node *map, struct config_backend *b,
			      const struct yaml_edit *edit)
{
	static const char *const keys[] = {
		[YAML_EDIT_WEIGHT] = "weight", [YAML_EDIT_POINTS] = "points", [YAML_EDIT_STATE] = "state"
	};
	const char *key = keys[edit->key], *reason;
	char *value;

	if (edit->kind == YAML_EDIT_UNSET) {
		set_value(b, edit);
		return node_find(map, key) ? edit_unset(&w->e, map, key) : NULL;
	}
	if (!set_value(b, edit))
		return NULL;
	value = edit->key == YAML_EDIT_STATE ? xstrdup(config_state_name(b->state)) :
					       xasprintf("%" PRIu32, edit->value);
	reason = edit_set(&w->e, map, key, value, edit->key == YAML_EDIT_STATE);
	free(value);
	return reason;
}

static const char *add_backend(struct work *w, const struct node *pools, const struct node *pool, struct config_pool *p,
			       const struct config_backend *b)
{
	struct config_backend *n;

	p->backend = xreallocarray(p->backend, p->backends + 1, sizeof(*p->backend));
	n = &p->backend[p->backends++];
	*n = *b;
	n->name = xstrdup(b->name);
	n->identity = xstrdup(b->identity ? b->identity : b->name);
	n->zone = b->zone ? xstrdup(b->zone) : NULL;
	return edit_add(&w->e, pools, pool, b);
}

static const char *delete_backend(struct work *w, const struct node *list, struct config_pool *p, size_t i)
{
	free_backend(&p->backend[i]);
	memmove(&p->backend[i], &p->backend[i + 1], (p->backends - i - 1) * sizeof(*p->backend));
	p->backends--;
	return edit_delete(&w->e, list, i);
}

static bool missing(struct work *w, const struct yaml_edit *edit, const struct config_pool *p)
{
	if (!p)
		diag_error(w->d, "no-such-pool", w->file, "has no pool %s: nothing was written", edit->pool);
	else
		diag_error(w->d, "no-such-backend", w->file, "has no backend %s in pool %s: nothing was written",
			   edit->backend, edit->pool);
	return false;
}

static bool step(struct work *w, const struct yaml_edit *edit)
{
	const struct node *pools = node_find(w->e.root, "pools"), *pool, *list;
	const char *reason;
	size_t at = 0, i;
	struct config_pool *p = find_pool(w->wanted, edit->pool, &at);

	if (!p)
		return missing(w, edit, p);
	pool = pools->child[at];
	list = node_find(pool, "backends");
	i = find_backend(p, edit->backend, w->hint);
	if (edit->kind == YAML_EDIT_ADD) {
		if (i < p->backends) {
			diag_error(w->d, "duplicate-name", w->file,
				   "has a backend %s in pool %s already: nothing was written", edit->backend,
				   edit->pool);
			return false;
		}
		reason = add_backend(w, pools, pool, p, edit->add);
		return reason ? unsafe(w, pool, reason) : true;
	}
	if (i == p->backends)
		return edit->kind == YAML_EDIT_DELETE ? true : missing(w, edit, p);
	w->hint = i;
	reason = edit->kind == YAML_EDIT_DELETE ? delete_backend(w, list, p, i) :
						  change_key(w, list->child[i], &p->backend[i], edit);
	return reason ? unsafe(w, list->child[i], reason) : true;
}

/*
 * With `haproxy`, backends without an id of their own have one by their place. What the text does not say is taken out
 * before the edits, and given again after them.
 */
static void forget_ids(struct work *w)
{
	const struct node *pools = node_find(w->e.root, "pools");

	for (size_t i = 0; i < w->wanted->pools; i++) {
		struct config_pool *p = &w->wanted->pool[i];
		const struct node *list = node_find(pools->child[i], "backends");

		for (size_t j = 0; j < p->backends; j++) {
			if (!node_find(list->child[j], "id"))
				p->backend[j].id = 0;
		}
	}
}

/* Whether the text means what is wanted now. */
static bool check(struct work *w)
{
	struct diag d = { 0 };
	struct config *found = config_parse(w->file, w->e.text, w->e.length, &d);
	char *means, *wanted, *reason;
	size_t i = 0;
	bool same;

	while (i < d.count && d.entry[i].level != DIAG_ERROR)
		i++;
	if (!found) {
		reason = xasprintf("the result would be no valid configuration (%s)", d.entry[i].message);
		unsafe(w, NULL, reason);
		free(reason);
	}
	diag_free(&d);
	if (!found)
		return false;
	for (i = 0; i < w->wanted->pools; i++)
		number_backends(&w->wanted->pool[i]);
	means = config_emit(found, true);
	wanted = config_emit(w->wanted, true);
	same = !strcmp(means, wanted);
	explicit_bzero(means, strlen(means));
	explicit_bzero(wanted, strlen(wanted));
	free(means);
	free(wanted);
	config_free(found);
	return same ? true : unsafe(w, NULL, "the result would mean something else");
}

static bool run(struct work *w, const struct yaml_edit *edit, size_t edits)
{
	if (has_odd_line_ends(w->e.text, w->e.length))
		return unsafe(w, NULL, "it has line ends other than LF and CR LF");
	if (!reread(w))
		return false;
	forget_ids(w);
	for (size_t i = 0; i < edits; i++) {
		if (edit[i].kind != YAML_EDIT_SET && !settle(w))
			return false;
		if (!step(w, &edit[i]))
			return false;
		if (edit[i].kind != YAML_EDIT_SET && !settle(w))
			return false;
	}
	return settle(w) && check(w);
}

char *yaml_edit_text(const char *file, const char *text, size_t length, const struct yaml_edit *edit, size_t edits,
		     size_t *out_length, struct diag *d)
{
	struct work w = { .file = file, .d = d };
	struct diag faults = { 0 };
	char *out = NULL;

	/* Warnings are of no interest where the file is not wrong. */
	w.wanted = config_parse(file, text, length, &faults);
	for (size_t i = 0; i < faults.count && !w.wanted; i++)
		diag_add(d, faults.entry[i].level, faults.entry[i].code, faults.entry[i].where, "%s",
			 faults.entry[i].message);
	diag_free(&faults);
	if (!w.wanted)
		return NULL;
	w.e.text = xcalloc(length + 1, 1);
	w.e.length = length;
	memcpy(w.e.text, text, length);
	if (run(&w, edit, edits)) {
		out = w.e.text;
		*out_length = w.e.length;
		w.e.text = NULL;
	}
	editor_clear(&w.e);
	config_free(w.wanted);
	return out;
}
