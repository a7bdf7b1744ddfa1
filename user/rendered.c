/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rendered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "pools[1].backends[2].weight: ..." -> "pool web: backend b3: weight: ..."; else a copy. */
static char *with_names(const struct config *c, const char *text)
{
	const struct config_pool *p;
	size_t i, j;
	int n = 0;

	if (sscanf(text, "services[%zu]%n", &i, &n) == 1 && n && i < c->services)
		return xasprintf("service %s%s%s", c->service[i].name, text[n] == '.' ? ": " : "",
				 text + n + (text[n] == '.'));
	if (sscanf(text, "pools[%zu]%n", &i, &n) != 1 || !n || i >= c->pools)
		return xstrdup(text);
	p = &c->pool[i];
	text += n;
	n = 0;
	if (sscanf(text, ".backends[%zu]%n", &j, &n) == 1 && n && j < p->backends)
		return xasprintf("pool %s: backend %s%s%s", p->name, p->backend[j].name, text[n] == '.' ? ": " : "",
				 text + n + (text[n] == '.'));
	return xasprintf("pool %s%s%s", p->name, *text == '.' ? ": " : "", text + (*text == '.'));
}

/* Takes "in line N" out, in place. */
static void without_lines(char *text)
{
	char *at;

	while ((at = strstr(text, "in line "))) {
		char *end = at + strlen("in line ");

		end += strspn(end, "0123456789");
		if (at - text >= 2 && !strncmp(at - 2, ", ", 2))
			at -= 2;
		else if (at - text >= 8 && !strncmp(at - 8, "already ", 8))
			for (const char *c = "there"; *c; c++)
				*at++ = *c;
		memmove(at, end, strlen(end) + 1);
	}
}

char *rendered_message(const struct config *c, const char *message)
{
	char *text = with_names(c, message);

	without_lines(text);
	return text;
}

struct config *rendered_copy(const struct config *c, struct diag *d)
{
	struct config keyed = *c, *copy;
	struct diag mine = { 0 };
	char *text;

	keyed.hash_key_file = NULL;
	text = config_emit(&keyed, true);
	copy = config_parse(c->file, text, strlen(text), &mine);
	explicit_bzero(text, strlen(text));
	free(text);
	for (size_t i = 0; i < mine.count; i++) {
		char *message = rendered_message(c, mine.entry[i].message);

		diag_add(d, mine.entry[i].level, mine.entry[i].code, "", "%s", message);
		free(message);
	}
	diag_free(&mine);
	if (copy && c->hash_key_file)
		copy->hash_key_file = xstrdup(c->hash_key_file);
	return copy;
}

static bool has(const struct diag *d, const struct diag_entry *e)
{
	for (size_t i = 0; i < d->count; i++)
		if (!strcmp(d->entry[i].code, e->code) && !strcmp(d->entry[i].message, e->message))
			return true;
	return false;
}

void rendered_new_warnings(const struct diag *before, const struct diag *after, struct diag *d)
{
	for (size_t i = 0; i < after->count; i++)
		if (after->entry[i].level == DIAG_WARNING && !has(before, &after->entry[i]))
			diag_warning(d, after->entry[i].code, "", "%s", after->entry[i].message);
}

void rendered_errors(const struct diag *from, struct diag *d)
{
	for (size_t i = 0; i < from->count; i++)
		if (from->entry[i].level == DIAG_ERROR)
			diag_error(d, from->entry[i].code, from->entry[i].where, "%s", from->entry[i].message);
}
