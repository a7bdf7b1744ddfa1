/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to config*.c and yaml_edit*.c: YAML as a tree that knows its places. The part of YAML that a configuration
 * needs: one document, mappings with text keys, lists, scalars; anchors, aliases and tags are refused, so that a node is
 * what it looks like and a small file is a small tree.
 */
#ifndef RINGLB_CONFIG_TREE_H
#define RINGLB_CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "config_fault.h"

#define TREE_MAX_BYTES (32u << 20)
#define TREE_MAX_VALUES (2u << 20) /* the largest configuration within the limits has 1.6 million */
#define TREE_MAX_DEPTH 16u

enum node_kind {
	NODE_NULL, /* nothing, or ~ or null */
	NODE_TEXT,
	NODE_LIST,
	NODE_MAP,
	NODE_BAD, /* complained of already: readers fail on it silently */
};

struct node {
	enum node_kind kind;
	bool quoted;                       /* NODE_TEXT: not a plain scalar, so never a number */
	unsigned int line, column;         /* from 1; column in characters */
	unsigned int key_line, key_column; /* 0: the key was complained of */
	size_t begin, end; /* bytes of the text, a mark at its start included; end is the first behind */
	size_t key_begin, key_end;
	bool flow;    /* a list or mapping in brackets */
	char *key;    /* in a mapping; else NULL */
	size_t index; /* in the parent */
	char *text;   /* NODE_TEXT: valid UTF-8 */
	struct node *parent;
	struct node **child; /* values of a mapping, items of a list, in order */
	size_t children;
};

/* The tree, or NULL where the text is no YAML at all (a fault says so); freed with tree_free. */
struct node *tree_parse(const char *text, size_t length, struct faults *f);
void tree_free(struct node *n);
/* "pools[0].backends[2].weight"; empty for the root. Owned by the caller. */
char *node_path(const struct node *n);
/* The value of a key of a mapping (the first, where it stands there twice), or NULL. */
struct node *node_find(const struct node *map, const char *key);
/* "a list", "a mapping", ...: what stands there, for messages. */
const char *node_kind_text(const struct node *n);

#endif
