/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "config_parse.h"

/* The one list of what can be written and has no effect yet. Whoever makes a line work deletes it. */
static const struct {
	const char *key;
	const char *value; /* NULL: the key, whatever its value */
	const char *instead;
} refused[] = {
	{ "fragments", "track", "leave it out, or use drop" },
	{ "fragments", "source", "leave it out, or use drop" },
};

void check_supported(struct faults *f, const struct node *n, const char *key, const char *value)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		if (strcmp(refused[i].key, key) || !refused[i].value != !value)
			continue;
		if (value && strcmp(refused[i].value, value))
			continue;
		fault(f, n, "unsupported", "%s is not supported by this version; %s", value ? value : "the key",
		      refused[i].instead);
		return;
	}
}
