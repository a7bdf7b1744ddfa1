/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "config_value.h"

#define MAX_KEYS 32u

static void unknown_key(struct faults *f, const struct node *n, const struct key *key, size_t keys)
{
	const char *names[MAX_KEYS + 1] = { 0 }, *meant;
	char *list = xstrdup("");

	for (size_t i = 0; i < keys && i < MAX_KEYS; i++) {
		char *longer = xasprintf("%s%s%s", list, i ? ", " : "", key[i].name);

		free(list);
		list = longer;
		names[i] = key[i].name;
	}
	if (!strcmp(n->key, "<<"))
		fault_key(f, n, "unknown-key", "merge keys are not read: write the keys out");
	else if ((meant = near_name(f, n->key, names)))
		fault_key(f, n, "unknown-key", "unknown key; did you mean %s?", meant);
	else
		fault_key(f, n, "unknown-key", "unknown key; known here are %s", list);
	free(list);
}

bool map_keys(struct faults *f, const struct node *map, const struct key *key, size_t keys, struct node **value)
{
	memset(value, 0, keys * sizeof(*value));
	if (!map || map->kind == NODE_BAD)
		return false;
	if (map->kind != NODE_MAP) {
		fault(f, map, "wrong-type", "%smust be a mapping, \"key: value\"; found %s",
		      map->parent ? "" : "the configuration ", node_kind_text(map));
		return false;
	}
	for (size_t i = 0, k; i < map->children; i++) {
		struct node *n = map->child[i];

		if (!n->key_line) /* the key itself was complained of */
			continue;
		for (k = 0; k < keys && strcmp(n->key, key[k].name); k++)
			;
		if (k == keys)
			unknown_key(f, n, key, keys);
		else if (value[k])
			fault_key(f, n, "duplicate-key", "the key stands here twice, first in line %u; keep one",
				  value[k]->key_line);
		else
			value[k] = n;
	}
	for (size_t k = 0; k < keys; k++) {
		if (key[k].wanted && !value[k])
			fault_missing(f, map, key[k].name, "missing-key", "is missing; give %s", key[k].wanted);
	}
	return true;
}

size_t list_items(struct faults *f, const struct node *list)
{
	if (!list || list->kind == NODE_BAD)
		return 0;
	if (list->kind == NODE_LIST)
		return list->children;
	fault(f, list, "wrong-type", "must be a list, \"[...]\" or lines that start with \"- \"; found %s",
	      node_kind_text(list));
	return 0;
}
