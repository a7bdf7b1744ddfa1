// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lines, blanks and comments of the text, and changes to it. */
#include <stdlib.h>
#include <string.h>

#include "yaml_edit_private.h"

void editor_change(struct editor *e, size_t begin, size_t end, char *text)
{
	if (e->changes == e->capacity) {
		e->capacity = e->capacity ? 2 * e->capacity : 16;
		e->change = xreallocarray(e->change, e->capacity, sizeof(*e->change));
	}
	e->change[e->changes] = (struct change){ begin, end, e->changes, text };
	e->changes++;
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void drop_changes(struct editor *e)
{
	for (size_t i = 0; i < e->changes; i++)
		free(e->change[i].text);
	e->changes = 0;
}

bool editor_apply(struct editor *e)
{
	size_t length = e->length, from = 0;
	char *text, *p;

	if (e->changes)
		qsort(e->change, e->changes, sizeof(*e->change), compare_changes);
	for (size_t i = 0; i < e->changes; i++) {
		const struct change *c = &e->change[i];

		if (c->begin < from || c->end < c->begin || c->end > e->length)
			return false;
		length += strlen(c->text) - (c->end - c->begin);
		from = c->end;
	}
	p = text = xcalloc(length + 1, 1);
	from = 0;
	for (size_t i = 0; i < e->changes; i++) {
		const struct change *c = &e->change[i];

		p = (char *)mempcpy(p, e->text + from, c->begin - from);
		p = stpcpy(p, c->text);
		from = c->end;
	}
	memcpy(p, e->text + from, e->length - from);
	drop_changes(e);
	explicit_bzero(e->text, e->length); /* the hash key may be in it */
	free(e->text);
	e->text = text;
	e->length = length;
	return true;
}

void editor_remove_lines(struct editor *e, size_t begin, size_t end)
{
	if (end == e->length && e->text[end - 1] != '\n' && begin)
		begin = line_end(e, line_begin(e, begin - 1));
	editor_change(e, begin, end, xstrdup(""));
}

void editor_clear(struct editor *e)
{
	drop_changes(e);
	free(e->change);
	tree_free(e->root);
	if (e->text)
		explicit_bzero(e->text, e->length);
	free(e->text);
	memset(e, 0, sizeof(*e));
}

size_t line_begin(const struct editor *e, size_t at)
{
	while (at && e->text[at - 1] != '\n')
		at--;
	return at;
}

size_t line_end(const struct editor *e, size_t at)
{
	const char *found = memchr(e->text + at, '\n', e->length - at);
	size_t end = found ? (size_t)(found - e->text) : e->length;

	return end > at && found && e->text[end - 1] == '\r' ? end - 1 : end;
}

size_t line_next(const struct editor *e, size_t at)
{
	const char *found = memchr(e->text + at, '\n', e->length - at);

	return found ? (size_t)(found - e->text) + 1 : e->length;
}

const char *line_ending(const struct editor *e, size_t at)
{
	size_t end = line_end(e, at);

	if (end == e->length)
		end = line_end(e, 0);
	return end < e->length && e->text[end] == '\r' ? "\r\n" : "\n";
}

size_t skip_blanks(const struct editor *e, size_t at)
{
	while (e->text[at] == ' ' || e->text[at] == '\t')
		at++;
	return at;
}

size_t skip_fill(const struct editor *e, size_t at)
{
	for (;;) {
		at = skip_blanks(e, at);
		if (e->text[at] == '#')
			at = line_end(e, at);
		else if (e->text[at] == '\n' || e->text[at] == '\r')
			at++;
		else
			return at;
	}
}

bool is_blank(const struct editor *e, size_t begin, size_t end)
{
	for (; begin < end; begin++) {
		if (!strchr(" \t\r\n", e->text[begin]))
			return false;
	}
	return true;
}

bool is_block_text(const struct editor *e, const struct node *n)
{
	return n->kind == NODE_TEXT && n->quoted && (e->text[n->begin] == '|' || e->text[n->begin] == '>');
}

size_t content_end(const struct editor *e, const struct node *n)
{
	size_t end;

	while (!n->flow && n->children)
		n = n->child[n->children - 1];
	end = n->end;
	while (is_block_text(e, n) && end > n->begin && strchr(" \t\r\n", e->text[end - 1]))
		end--;
	return end;
}

bool has_quoted_keys(const struct editor *e, const struct node *map)
{
	return map->kind == NODE_MAP && map->children && e->text[map->child[0]->key_begin] == '"';
}
