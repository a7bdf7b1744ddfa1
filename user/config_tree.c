/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config_tree.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* What is known while the events of one text come in. */
struct builder {
	struct faults *f;
	const char *text;
	size_t length, mark, characters, offset; /* mark: bytes left out at the start; the place reached so far */
	struct node *root, *open;                /* open: the innermost collection that has not ended */
	struct node *key;                        /* the value that waits: its key has come */
	size_t values, documents;
	unsigned int depth;
	unsigned int skip; /* collections open inside a key, which is no text: ignored */
	bool stop;
};

void tree_free(struct node *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->children; i++)
		tree_free(n->child[i]); /* at most TREE_MAX_DEPTH deep */
	free(n->child);
	free(n->key);
	free(n->text);
	free(n);
}

char *node_path(const struct node *n)
{
	char *parent, *path, shown[CLIP_TEXT];

	if (!n->parent)
		return xstrdup("");
	parent = node_path(n->parent);
	if (n->key)
		path = xasprintf("%s%s%s", parent, *parent ? "." : "", clip(n->key, shown));
	else
		path = xasprintf("%s[%zu]", parent, n->index);
	free(parent);
	return path;
}

struct node *node_find(const struct node *map, const char *key)
{
	for (size_t i = 0; i < map->children; i++) {
		if (map->kind == NODE_MAP && !strcmp(map->child[i]->key, key))
			return map->child[i];
	}
	return NULL;
}

const char *node_kind_text(const struct node *n)
{
	switch (n->kind) {
	case NODE_NULL:
		return "nothing";
	case NODE_TEXT:
		return n->quoted ? "text in quotes" : "text";
	case NODE_LIST:
		return "a list";
	case NODE_MAP:
		return "a mapping";
	case NODE_BAD:
		break;
	}
	return "something else";
}

/* The library counts characters. Marks only go forward, so the text is walked through once. */
static size_t offset_of(struct builder *b, const yaml_mark_t *mark)
{
	while (b->characters < mark->index && b->offset < b->length) {
		do
			b->offset++;
		while (b->offset < b->length && ((unsigned char)b->text[b->offset] & 0xc0) == 0x80);
		b->characters++;
	}
	return b->mark + b->offset;
}

static struct node *node_new(struct builder *b, const yaml_mark_t *mark)
{
	struct node *n = xcalloc(1, sizeof(*n));

	n->line = (unsigned int)mark->line + 1;
	n->column = (unsigned int)mark->column + 1;
	n->begin = n->end = offset_of(b, mark);
	return n;
}

/* Puts a value where it belongs: below the open collection, under the key that waits, or at the root. */
static void place(struct builder *b, struct node *n)
{
	struct node *p = b->open;

	if (++b->values > TREE_MAX_VALUES) {
		fault_at(b->f, DIAG_ERROR, "too-large", n->line, n->column,
			 "more than %u values in one file: no configuration within the limits is as large",
			 TREE_MAX_VALUES);
		b->stop = true;
	}
	if (!p) {
		b->root = n;
		return;
	}
	if (b->key) {
		n->key = b->key->text;
		n->key_line = b->key->kind == NODE_BAD ? 0 : b->key->line;
		n->key_column = b->key->column;
		n->key_begin = b->key->begin;
		n->key_end = b->key->end;
		b->key->text = NULL;
		tree_free(b->key);
		b->key = NULL;
	}
	n->parent = p;
	n->index = p->children;
	if (!(p->children & (p->children - 1)))
		p->child = xreallocarray(p->child, p->children ? 2 * p->children : 1, sizeof(struct node *));
	p->child[p->children++] = n;
}

/* Whether the next event is a key of the open mapping. */
static bool wants_key(const struct builder *b)
{
	return b->open && b->open->kind == NODE_MAP && !b->key;
}

/* A key that is no text: complained of, and a name that no real key has keeps its value apart. */
static void bad_key(struct builder *b, struct node *n)
{
	fault_at(b->f, DIAG_ERROR, "wrong-type", n->line, n->column, "a key must be text; found %s", node_kind_text(n));
	n->kind = NODE_BAD;
	free(n->text);
	n->text = xstrdup("");
	b->key = n;
}

static void refuse_extras(struct builder *b, const struct node *n, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	char shown[CLIP_TEXT];

	if (anchor) {
		fault_at(b->f, DIAG_ERROR, "anchor", n->line, n->column,
			 "&%s: anchors and aliases are not read: write the value out wherever it is wanted",
			 clip((const char *)anchor, shown));
	}
	if (tag) {
		fault_at(b->f, DIAG_ERROR, "tag", n->line, n->column, "%s: tags are not read: leave it out",
			 clip((const char *)tag, shown));
	}
}

static void on_scalar(struct builder *b, const yaml_event_t *e)
{
	const char *text = (const char *)e->data.scalar.value;
	size_t length = e->data.scalar.length;
	struct node *n = node_new(b, &e->start_mark);

	refuse_extras(b, n, e->data.scalar.anchor, e->data.scalar.tag);
	n->kind = NODE_TEXT;
	n->end = offset_of(b, &e->end_mark);
	n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	if (!n->quoted &&
	    (!length || !strcmp(text, "~") || !strcmp(text, "null") || !strcmp(text, "Null") || !strcmp(text, "NULL")))
		n->kind = NODE_NULL;
	n->text = xstrdup(text);
	if (strlen(text) != length) {
		fault_at(b->f, DIAG_ERROR, "bad-value", n->line, n->column,
			 "the text contains \\0, which is not allowed");
		n->kind = NODE_BAD;
	}
	if (!wants_key(b))
		place(b, n);
	else if (n->kind == NODE_TEXT)
		b->key = n;
	else
		bad_key(b, n);
}

static void on_alias(struct builder *b, const yaml_event_t *e)
{
	struct node *n = node_new(b, &e->start_mark);
	char shown[CLIP_TEXT];

	fault_at(b->f, DIAG_ERROR, "anchor", n->line, n->column,
		 "*%s: anchors and aliases are not read: write the value out wherever it is wanted",
		 clip((const char *)e->data.alias.anchor, shown));
	n->kind = NODE_BAD;
	n->text = xstrdup("");
	if (wants_key(b))
		b->key = n;
	else
		place(b, n);
}

static void check_depth(struct builder *b, const yaml_event_t *e)
{
	if (b->depth + b->skip <= TREE_MAX_DEPTH)
		return;
	fault_at(b->f, DIAG_ERROR, "too-deep", (unsigned int)e->start_mark.line + 1,
		 (unsigned int)e->start_mark.column + 1,
		 "lists and mappings more than %u deep in each other: no configuration is nested like that",
		 TREE_MAX_DEPTH);
	b->stop = true;
}

static void on_start(struct builder *b, const yaml_event_t *e, enum node_kind kind, const yaml_char_t *anchor,
		     const yaml_char_t *tag)
{
	struct node *n = node_new(b, &e->start_mark);

	refuse_extras(b, n, anchor, tag);
	n->kind = kind;
	n->flow = e->type == YAML_SEQUENCE_START_EVENT ? e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE :
							 e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
	if (wants_key(b)) {
		bad_key(b, n);
		b->skip = 1;
		return;
	}
	place(b, n);
	b->open = n;
	b->depth++;
	check_depth(b, e);
}

static void on_event(struct builder *b, const yaml_event_t *e)
{
	bool start = e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT;
	bool end = e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT;

	if (b->skip) {
		b->skip += (unsigned int)start - (unsigned int)end;
		check_depth(b, e);
		return;
	}
	if (e->type == YAML_DOCUMENT_START_EVENT && b->documents++) {
		fault_at(b->f, DIAG_ERROR, "documents", (unsigned int)e->start_mark.line + 1,
			 (unsigned int)e->start_mark.column + 1,
			 "a second document begins here: a configuration is one document; take the --- out");
		b->stop = true;
	} else if (e->type == YAML_SCALAR_EVENT) {
		on_scalar(b, e);
	} else if (e->type == YAML_ALIAS_EVENT) {
		on_alias(b, e);
	} else if (e->type == YAML_SEQUENCE_START_EVENT) {
		on_start(b, e, NODE_LIST, e->data.sequence_start.anchor, e->data.sequence_start.tag);
	} else if (e->type == YAML_MAPPING_START_EVENT) {
		on_start(b, e, NODE_MAP, e->data.mapping_start.anchor, e->data.mapping_start.tag);
	} else if (end) {
		b->open->end = offset_of(b, &e->end_mark);
		b->open = b->open->parent;
		b->depth--;
	}
}

/* The library's reader knows an offset only. */
static void place_of(const char *text, size_t length, size_t offset, unsigned int *line, unsigned int *column)
{
	*line = *column = 1;
	for (size_t i = 0; i < offset && i < length; i++) {
		if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == length || text[i + 1] != '\n'))) {
			++*line;
			*column = 1;
		} else if (((unsigned char)text[i] & 0xc0) != 0x80) {
			++*column;
		}
	}
}

/* The byte at a mark, to see what the scanner stumbled over; 0 where the text ends. */
static char char_at(const char *text, size_t length, const yaml_mark_t *mark)
{
	unsigned int line, column;

	for (size_t i = 0, chars = 0; i < length; i++) {
		if (((unsigned char)text[i] & 0xc0) == 0x80)
			continue;
		if (chars++ != mark->index)
			continue;
		place_of(text, length, i, &line, &column);
		return line == mark->line + 1 ? text[i] : '\0';
	}
	return '\0';
}

static const char *remedy(const yaml_parser_t *p, char found)
{
	static const struct {
		const char *problem, *remedy;
	} known[] = {
		{ "mapping values are not allowed",
		  "; text with a colon and a space in it needs quotes, and the keys of a mapping start in one column" },
		{ "did not find expected key", "; the keys of a mapping start in one column" },
		{ "did not find expected '-' indicator", "; the items of a list start in one column" },
		{ "could not find expected ':'", "; a key is followed by a colon and a space" },
		{ "did not find expected ',' or ", "; a bracket is not closed, or a comma is missing" },
		{ "did not find expected node content", "; text that starts with this character needs quotes" },
		{ "found unexpected end of stream", "; a quote is not closed" },
	};

	if (found == '\t')
		return "; this is a tab, and only spaces indent";
	if (strstr(p->problem, "cannot start any token"))
		return "; text that starts with this character needs quotes";
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strstr(p->problem, known[i].problem))
			return known[i].remedy;
	}
	return "";
}

static void syntax_fault(struct builder *b, const yaml_parser_t *p, const char *text, size_t length)
{
	unsigned int line = (unsigned int)p->problem_mark.line + 1, column = (unsigned int)p->problem_mark.column + 1;
	char found;

	if (p->error == YAML_READER_ERROR) {
		place_of(text, length, p->problem_offset, &line, &column);
		fault_at(b->f, DIAG_ERROR, "syntax", line, column,
			 "not text in UTF-8: %s; save the file as UTF-8, without control characters", p->problem);
		return;
	}
	if (p->error == YAML_MEMORY_ERROR || !p->problem) {
		fault_at(b->f, DIAG_ERROR, "syntax", 0, 0, "the file can't be parsed: no memory is left");
		return;
	}
	found = char_at(text, length, &p->problem_mark);
	if (p->context && p->context_mark.line != p->problem_mark.line) {
		fault_at(b->f, DIAG_ERROR, "syntax", line, column, "not valid YAML: %s, %s that starts in line %zu%s",
			 p->problem, p->context, p->context_mark.line + 1, remedy(p, found));
		return;
	}
	fault_at(b->f, DIAG_ERROR, "syntax", line, column, "not valid YAML: %s%s%s%s", p->problem,
		 p->context ? ", " : "", p->context ? p->context : "", remedy(p, found));
}

struct node *tree_parse(const char *text, size_t length, struct faults *f)
{
	struct builder b = { .f = f };
	yaml_parser_t parser;
	yaml_event_t event;
	bool end = false;

	if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		length -= 3;
		b.mark = 3;
	}
	b.text = text;
	b.length = length;
	if (!yaml_parser_initialize(&parser)) {
		fault_at(f, DIAG_ERROR, "syntax", 0, 0, "the file can't be parsed: no memory is left");
		return NULL;
	}
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)(length ? text : ""), length);
	while (!end && !b.stop) {
		if (!yaml_parser_parse(&parser, &event)) {
			syntax_fault(&b, &parser, text, length);
			b.stop = true;
			break;
		}
		end = event.type == YAML_STREAM_END_EVENT;
		on_event(&b, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	tree_free(b.key);
	if (!b.stop && !b.root)
		fault_at(f, DIAG_ERROR, "empty-file", 0, 0,
			 "the file is empty; a configuration has interfaces, hash_key, pools and services");
	if (b.stop) {
		tree_free(b.root);
		return NULL;
	}
	return b.root;
}
