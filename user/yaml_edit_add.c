// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A backend that comes, written like those that are there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config_parse.h"
#include "yaml_edit_private.h"

/* How a backend is written. */
struct style {
	bool flow, quoted, padded; /* in braces; keys and words in quotes; { blanks inside the braces } */
	bool weight;               /* also where it is 1 */
	unsigned int gap;          /* blanks behind the dash */
};

static struct style style_of(const struct editor *e, const struct node *list)
{
	const struct node *item = list->child[list->children - 1];
	size_t dash = line_begin(e, item->begin) + list->column - 1;
	struct style s = {
		.flow = item->flow,
		.quoted = has_quoted_keys(e, item),
		.padded = item->flow && e->text[item->begin + 1] == ' ',
		.weight = node_find(item, "weight"),
		.gap = 1,
	};

	if (!list->flow && item->begin > dash + 1 && e->text[dash] == '-' && is_blank(e, dash + 1, item->begin))
		s.gap = (unsigned int)(item->begin - dash - 1);
	return s;
}

/* A key with its value; separator: what stands before it, unless it is the first. */
static void put_pair(FILE *o, const struct style *s, const char *separator, const char *key, const char *value,
		     bool text)
{
	const char *quote = s->quoted ? "\"" : "";

	fprintf(o, "%s%s%s%s: ", separator, quote, key, quote);
	/* put_text leaves off only quotes around letters, digits, dots and the like: nothing to escape. */
	if (text && s->quoted &&
	    value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == '\0')
		fprintf(o, "\"%s\"", value);
	else if (text)
		put_text(o, value);
	else
		fputs(value, o);
}

static void put_number(FILE *o, const struct style *s, const char *separator, const char *key, uint32_t value)
{
	char *text = xasprintf("%" PRIu32, value);

	put_pair(o, s, separator, key, text, false);
	free(text);
}

/* A backend as it stands behind a dash or between commas; indent: of its lines but the first. */
static char *item_text(const struct style *s, const struct config_backend *b, const char *ending, unsigned int indent)
{
	char *separator = s->flow ? xstrdup(", ") : xasprintf("%s%*s", ending, (int)indent, "");
	char address[ADDRESS_TEXT], *text;
	const char *pad = s->padded ? " " : "";
	size_t length;
	FILE *o = open_memstream(&text, &length);

	if (!o)
		diag_fatal("out of memory");
	if (s->flow)
		fprintf(o, "{%s", pad);
	put_pair(o, s, "", "name", b->name, true);
	put_pair(o, s, separator, "address", address_text(&b->address, address), true);
	if (b->weight != 1 || s->weight)
		put_number(o, s, separator, "weight", b->weight);
	if (b->zone)
		put_pair(o, s, separator, "zone", b->zone, true);
	if (b->identity && strcmp(b->identity, b->name))
		put_pair(o, s, separator, "identity", b->identity, true);
	if (b->points)
		put_number(o, s, separator, "points", b->points);
	if (b->id)
		put_number(o, s, separator, "id", b->id);
	if (b->state != CONFIG_UP)
		put_pair(o, s, separator, "state", config_state_name(b->state), true);
	if (s->flow)
		fprintf(o, "%s}", pad);
	if (fclose(o))
		diag_fatal("out of memory");
	free(separator);
	return text;
}

static char *dash_item(const struct style *s, const struct config_backend *b, const char *ending, unsigned int indent)
{
	char *item = item_text(s, b, ending, indent + 1 + s->gap);
	char *text = xasprintf("%s%*s-%*s%s", ending, (int)indent, "", (int)s->gap, "", item);

	free(item);
	return text;
}

/* Blank lines stand between the items of a list: there is one above the last. */
static bool is_spaced(const struct editor *e, const struct node *list)
{
	size_t line = line_begin(e, list->child[list->children - 1]->begin);

	return list->children > 1 && line && is_blank(e, line_begin(e, line - 1), line);
}

static const char *add_to_block(struct editor *e, const struct node *list, const struct config_backend *b)
{
	size_t at = line_end(e, content_end(e, list->child[list->children - 1]));
	struct style s = style_of(e, list);
	const char *ending = line_ending(e, at);
	char *item;

	if (!is_blank(e, line_begin(e, list->begin), list->begin))
		return "the list starts in the middle of a line";
	item = dash_item(&s, b, ending, list->column - 1);
	editor_change(e, at, at, is_spaced(e, list) ? xasprintf("%s%s", ending, item) : xstrdup(item));
	free(item);
	return NULL;
}

static const char *add_to_flow(struct editor *e, const struct node *list, const struct config_backend *b)
{
	const struct node *last = list->child[list->children - 1];
	size_t line = line_begin(e, last->begin), behind = skip_blanks(e, last->end), rest = behind;
	bool comma = e->text[behind] == ',', own_line = is_blank(e, line, last->begin);
	struct style s = style_of(e, list);
	const char *ending = line_ending(e, last->end);
	char *item;

	s.flow = true;
	item = item_text(&s, b, ending, 0);
	if (comma)
		rest = skip_blanks(e, behind + 1);
	if (!own_line) {
		editor_change(e, last->end, last->end, xasprintf(", %s", item));
	} else if (e->text[rest] == '#' || rest == line_end(e, rest)) {
		if (!comma)
			editor_change(e, last->end, last->end, xstrdup(","));
		rest = line_end(e, rest);
		editor_change(e, rest, rest,
			      xasprintf("%s%.*s%s%s", ending, (int)(last->begin - line), e->text + line, item,
					comma ? "," : ""));
	} else {
		editor_change(e, last->end, last->end,
			      xasprintf(",%s%.*s%s", ending, (int)(last->begin - line), e->text + line, item));
	}
	free(item);
	return NULL;
}

/* The list of another pool, to be a model; NULL where no pool has a backend. */
static const struct node *model_list(const struct node *pools)
{
	for (size_t i = pools->children; i; i--) {
		const struct node *list = node_find(pools->child[i - 1], "backends");

		if (list->children)
			return list;
	}
	return NULL;
}

/* To a list that is empty, and so "[]" in one way or another. */
static const char *add_first(struct editor *e, const struct node *pools, const struct node *pool,
			     const struct node *list, const struct config_backend *b)
{
	const struct node *model = model_list(pools);
	struct style s = { .flow = true, .gap = 1, .quoted = has_quoted_keys(e, pool) };
	size_t colon = skip_fill(e, list->key_end), end = line_end(e, list->end);
	bool empty = is_blank(e, list->begin + 1, list->end - 1), block;
	unsigned int indent = list->key_column - 1;
	char *item;

	if (model)
		s = style_of(e, model);
	block = !pool->flow && empty && e->text[colon] == ':' && is_blank(e, colon + 1, list->begin) &&
		line_begin(e, colon) == line_begin(e, list->end) && (model ? !model->flow : !s.quoted);
	if (block) {
		indent += model && model->column >= model->key_column ? model->column - model->key_column : 2;
		editor_change(e, colon + 1, list->end, xstrdup(""));
		editor_change(e, end, end, dash_item(&s, b, line_ending(e, end), indent));
		return NULL;
	}
	s.flow = true;
	item = item_text(&s, b, "", 0);
	if (empty)
		editor_change(e, list->begin, list->end, xasprintf("[%s]", item));
	else
		editor_change(e, list->begin + 1, list->begin + 1, xstrdup(item));
	free(item);
	return NULL;
}

const char *edit_add(struct editor *e, const struct node *pools, const struct node *pool,
		     const struct config_backend *b)
{
	const struct node *list = node_find(pool, "backends");

	if (!list->children)
		return add_first(e, pools, pool, list, b);
	return list->flow ? add_to_flow(e, list, b) : add_to_block(e, list, b);
}
