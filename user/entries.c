// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "entries.h"

#include <stdlib.h>

#include "diag.h"

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

/* A unit separator is in no name. */
static char *key_of(const char *pool, const json_t *o)
{
	return xasprintf("%s\x1f%s\x1f%s\x1f%s", pool ? pool : text_of(o, "pool"), text_of(o, "name"),
			 text_of(o, "address"), text_of(o, "identity"));
}

json_t *entries_index(const json_t *list)
{
	json_t *index = json_object(), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		char *key = key_of(NULL, one);

		json_object_set(index, key, one);
		free(key);
	}
	return index;
}

const json_t *entries_find(const json_t *index, const char *pool, const json_t *what)
{
	char *key = key_of(pool, what);
	const json_t *found = json_object_get(index, key);

	free(key);
	return found;
}
