/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to yaml_edit*.c: a text, what stands where in it, and the changes that are to be made to it. Functions that
 * plan a change return NULL, or why it can't be made; they see the text as it was before the changes.
 */
#ifndef RINGLB_YAML_EDIT_PRIVATE_H
#define RINGLB_YAML_EDIT_PRIVATE_H

#include "config_tree.h"

struct change {
	size_t begin, end; /* bytes that go; equal: nothing goes */
	size_t order;
	char *text; /* what comes */
};

struct editor {
	char *text; /* NUL-terminated */
	size_t length;
	struct node *root;
	struct change *change;
	size_t changes, capacity;
};

/* text is taken over. */
void editor_change(struct editor *e, size_t begin, size_t end, char *text);
/* Makes the changes: a new text, which the tree no longer describes. False, with nothing done, where two overlap. */
bool editor_apply(struct editor *e);
/* Lines from begin to end go; where they were the last and ended without a line end, the text does so again. */
void editor_remove_lines(struct editor *e, size_t begin, size_t end);
void editor_clear(struct editor *e);

/* Where the line of a byte begins; where its contents end, before the line end; where the next begins. */
size_t line_begin(const struct editor *e, size_t at);
size_t line_end(const struct editor *e, size_t at);
size_t line_next(const struct editor *e, size_t at);
/* How the line of a byte ends, or the first line of the text where it is the last and does not. */
const char *line_ending(const struct editor *e, size_t at);
/* The first byte from there that is no blank; no blank, line end or comment. */
size_t skip_blanks(const struct editor *e, size_t at);
size_t skip_fill(const struct editor *e, size_t at);
/* Only blanks, and between them line ends. */
bool is_blank(const struct editor *e, size_t begin, size_t end);
/* Behind the last byte that belongs to a value, without what a block's end takes in. */
size_t content_end(const struct editor *e, const struct node *n);
/* Text under | or >. */
bool is_block_text(const struct editor *e, const struct node *n);
/* The keys of a mapping stand in double quotes, as in JSON. */
bool has_quoted_keys(const struct editor *e, const struct node *map);

/* In the mapping of a backend; text: the value is a word, not a number. */
const char *edit_set(struct editor *e, const struct node *map, const char *key, const char *value, bool text);
const char *edit_unset(struct editor *e, const struct node *map, const char *key);
const char *edit_delete(struct editor *e, const struct node *list, size_t i);
/* pools: the list of all, for a model of how backends are written here. */
const char *edit_add(struct editor *e, const struct node *pools, const struct node *pool,
		     const struct config_backend *b);

#endif
