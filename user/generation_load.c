// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "generation_text.h"
#include "rendered.h"

/* The file that the key came from, as a comment says; NULL where it stood in the configuration. */
static char *key_file(const char *text)
{
	for (const char *p = text; *p == '#'; p += strcspn(p, "\n"), p += *p == '\n') {
		if (!strncmp(p, GENERATION_KEY_FILE, strlen(GENERATION_KEY_FILE))) {
			p += strlen(GENERATION_KEY_FILE);
			return xasprintf("%.*s", (int)strcspn(p, "\n"), p);
		}
	}
	return NULL;
}

/* The configuration with its key in the file again, where that still holds the key; else as it is. */
static struct config *with_key_file(struct config *c, const char *path)
{
	struct diag ignored = { 0 };
	struct config *other;
	char *text;

	c->hash_key_file = xstrdup(path);
	text = config_emit(c, false);
	other = config_parse(c->file, text, strlen(text), &ignored);
	diag_free(&ignored);
	free(text);
	if (other && !memcmp(other->hash_key, c->hash_key, sizeof(c->hash_key))) {
		config_free(c);
		return other;
	}
	config_free(other);
	free(c->hash_key_file);
	c->hash_key_file = NULL;
	return c;
}

struct config *generation_load(const char *dir, uint32_t number, struct diag *d)
{
	char *path = generation_path(dir, number), *text, *from = NULL;
	struct config *c = NULL;
	struct generation about;
	struct diag mine = { 0 };

	text = generation_read(path, number, &about);
	if (text) {
		c = config_parse(path, text, strlen(text), &mine);
		rendered_errors(&mine, d); /* what there is to warn of was said when it came to run */
		diag_free(&mine);
		from = key_file(text);
	} else if (errno == ENOENT) {
		diag_error(d, "no-generation", "",
			   "generation %u is not kept in %s: \"ringlb history\" lists those that are", number, dir);
	} else if (errno == EBADMSG) {
		diag_error(d, "damaged-generation", path,
			   "is not what was written for generation %u: choose another, \"ringlb history\" lists them",
			   number);
	} else {
		diag_error(d, "no-history", path, "can't be read: %s", strerror(errno));
	}
	if (c && from)
		c = with_key_file(c, from);
	free(from);
	generation_text_free(text);
	free(about.summary);
	free(path);
	return c;
}
