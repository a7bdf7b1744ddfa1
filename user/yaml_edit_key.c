// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Keys of a backend, and backends that go. */
#include <stdlib.h>
#include <string.h>

#include "yaml_edit_private.h"

/* A key that is not there yet, on a line of its own in the column of the others. */
static const char *new_line(struct editor *e, const struct node *map, const char *pair)
{
	size_t i = map->children, at;

	/* Behind text under | a line would belong to it, or the text's own trailing lines to the key. */
	while (i && is_block_text(e, map->child[i - 1]))
		i--;
	if (!i)
		return "every value of the backend is written as a block of text";
	at = line_end(e, content_end(e, map->child[i - 1]));
	editor_change(e, at, at, xasprintf("%s%*s%s", line_ending(e, at), (int)map->column - 1, "", pair));
	return NULL;
}

const char *edit_set(struct editor *e, const struct node *map, const char *key, const char *value, bool text)
{
	const struct node *there = node_find(map, key);
	const char *quote = text && has_quoted_keys(e, map) ? "\"" : "", *reason = NULL;
	char *pair;

	if (there) {
		char first[2] = { e->text[there->begin], '\0' };

		if (is_block_text(e, there))
			return "the value is written as a block of text";
		if (!there->quoted)
			first[0] = '\0';
		editor_change(e, there->begin, there->end, xasprintf("%s%s%s", first, value, first));
		return NULL;
	}
	if (has_quoted_keys(e, map))
		pair = xasprintf("\"%s\": %s%s%s", key, quote, value, quote);
	else
		pair = xasprintf("%s: %s", key, value);
	if (map->flow) {
		size_t at = map->child[map->children - 1]->end;

		editor_change(e, at, at, xasprintf(", %s", pair));
	} else {
		reason = new_line(e, map, pair);
	}
	free(pair);
	return reason;
}

/* The comma before a place, in the fill that starts at from; SIZE_MAX where there is none. */
static size_t comma_from(const struct editor *e, size_t from)
{
	size_t at = skip_fill(e, from);

	return e->text[at] == ',' ? at : SIZE_MAX;
}

/*
 * Takes an element out of brackets, with one comma, and with its line where it has one to itself; comments on other
 * lines stay. previous: the end of the element before, or SIZE_MAX for the first.
 */
static void remove_element(struct editor *e, size_t previous, size_t begin, size_t end)
{
	size_t before = previous == SIZE_MAX ? SIZE_MAX : comma_from(e, previous), after = comma_from(e, end), left,
	       right;
	bool alone;

	if (after != SIZE_MAX && after == skip_blanks(e, end)) {
		end = after + 1;
	} else if (before != SIZE_MAX) {
		if (is_blank(e, before + 1, begin) && line_begin(e, before) == line_begin(e, begin))
			begin = before;
		else
			editor_change(e, before, before + 1, xstrdup(""));
	} else if (after != SIZE_MAX) {
		editor_change(e, after, after + 1, xstrdup(""));
	}
	left = line_begin(e, begin);
	right = skip_blanks(e, end);
	alone = is_blank(e, left, begin) && (e->text[right] == '#' || right == line_end(e, right));
	if (alone) {
		editor_change(e, left, line_next(e, right), xstrdup(""));
		return;
	}
	/* Blanks go with the comma, but not those that a comment needs before it. */
	if (e->text[end - 1] == ',' && e->text[right] != '#')
		end = right;
	editor_change(e, begin, end, xstrdup(""));
}

static size_t skip_blank_lines(const struct editor *e, size_t at)
{
	while (at < e->length && is_blank(e, at, line_end(e, at)))
		at = line_next(e, at);
	return skip_blanks(e, at);
}

const char *edit_unset(struct editor *e, const struct node *map, const char *key)
{
	const struct node *there = node_find(map, key);
	size_t end, left;

	if (map->children < 2)
		return "the backend would be left without a key";
	if (map->flow) {
		remove_element(e, there->index ? map->child[there->index - 1]->end : SIZE_MAX, there->key_begin,
			       there->end);
		return NULL;
	}
	end = line_next(e, content_end(e, there));
	left = line_begin(e, there->key_begin);
	if (is_blank(e, left, there->key_begin))
		editor_remove_lines(e, left, end);
	else if (end < e->length) /* behind the dash: the next line takes its place */
		editor_change(e, there->key_begin, skip_blank_lines(e, end), xstrdup(""));
	else
		return "the key shares its line";
	return NULL;
}

/* The end of an item's lines, with the comments below it that stand as deep as its keys do. */
static size_t own_lines_end(const struct editor *e, const struct node *list, const struct node *item)
{
	size_t end = line_next(e, content_end(e, item));

	while (!item->flow && end < e->length) {
		size_t at = skip_blanks(e, end);

		if (e->text[at] != '#' || at - end < list->column)
			break;
		end = line_next(e, at);
	}
	return end;
}

static const char *delete_from_block(struct editor *e, const struct node *list, size_t i)
{
	const struct node *item = list->child[i];
	size_t begin = line_begin(e, item->begin), end, colon;

	/* The dash may stand on a line above its item. */
	while (e->text[skip_blanks(e, begin)] != '-' || skip_blanks(e, begin) - begin != list->column - 1u) {
		if (!begin || begin <= list->begin)
			return "the list starts in the middle of a line";
		begin = line_begin(e, begin - 1);
	}
	end = own_lines_end(e, list, item);
	if (list->children == 1) {
		colon = skip_fill(e, list->key_end);
		if (e->text[colon] != ':' || colon >= begin)
			return "the key of the list is written in an unusual way";
		editor_change(e, colon + 1, colon + 1, xstrdup(" []"));
	}
	editor_remove_lines(e, begin, end);
	return NULL;
}

const char *edit_delete(struct editor *e, const struct node *list, size_t i)
{
	const struct node *item = list->child[i];

	if (!list->flow)
		return delete_from_block(e, list, i);
	if (list->children == 1 && is_blank(e, list->begin + 1, item->begin) && is_blank(e, item->end, list->end - 1))
		editor_change(e, list->begin, list->end, xstrdup("[]"));
	else
		remove_element(e, i ? list->child[i - 1]->end : SIZE_MAX, item->begin, item->end);
	return NULL;
}
