/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config_fault.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_tree.h"

const char *clip(const char *text, char buf[CLIP_TEXT])
{
	const size_t room = CLIP_TEXT - 4; /* for "..." */
	size_t length = strnlen(text, room + 1);

	if (length <= room)
		return text;
	length = room;
	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	memcpy(buf, text, length);
	memcpy(buf + length, "...", 4);
	return buf;
}

const char *count_text(uint64_t value, char buf[COUNT_TEXT])
{
	char *p = &buf[COUNT_TEXT - 1];
	int digits = 0;

	*p = '\0';
	do {
		if (digits && digits % 3 == 0)
			*--p = ',';
		*--p = (char)('0' + value % 10);
		digits++;
		value /= 10;
	} while (value);
	return memmove(buf, p, (size_t)(buf + COUNT_TEXT - p));
}

/* A message goes to terminals and logs: what the file says must not move a cursor or begin a line there. */
static char *printable(const char *text)
{
	char *out = xcalloc(strlen(text) + 1, 4), *p = out;

	for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
		bool c1 = s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0;

		if (*s < 0x20 || *s == 0x7f)
			p += sprintf(p, "\\x%02x", *s);
		else if (c1)
			p += sprintf(p, "\\x%02x", *++s);
		else
			*p++ = (char)*s;
	}
	return out;
}

static void add(struct faults *f, enum diag_level level, const char *code, unsigned int line, unsigned int column,
		const char *path, const char *format, va_list args)
{
	char *text, *whole;

	if (level == DIAG_ERROR)
		f->errors++;
	if (f->count == FAULTS_MAX) {
		f->unlisted++;
		return;
	}
	if (f->count == f->capacity) {
		f->capacity = f->capacity ? 2 * f->capacity : 16;
		f->fault = xreallocarray(f->fault, f->capacity, sizeof(*f->fault));
	}
	text = vasprintf(&text, format, args) < 0 ? xstrdup("") : text;
	whole = xasprintf("%s%s%s", path, *path ? ": " : "", text);
	f->fault[f->count] = (struct fault){
		.level = level,
		.line = line,
		.column = column,
		.order = f->count,
		.code = code,
		.message = printable(whole),
	};
	f->count++;
	free(whole);
	free(text);
}

void fault_at(struct faults *f, enum diag_level level, const char *code, unsigned int line, unsigned int column,
	      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(f, level, code, line, column, "", format, args);
	va_end(args);
}

void fault(struct faults *f, const struct node *n, const char *code, const char *format, ...)
{
	char *path = node_path(n);
	va_list args;

	va_start(args, format);
	add(f, DIAG_ERROR, code, n->line, n->column, path, format, args);
	va_end(args);
	free(path);
}

void fault_key(struct faults *f, const struct node *n, const char *code, const char *format, ...)
{
	char *path = node_path(n);
	va_list args;

	va_start(args, format);
	add(f, DIAG_ERROR, code, n->key_line, n->key_column, path, format, args);
	va_end(args);
	free(path);
}

void fault_warning(struct faults *f, const struct node *n, const char *code, const char *format, ...)
{
	char *path = node_path(n);
	va_list args;

	va_start(args, format);
	add(f, DIAG_WARNING, code, n->line, n->column, path, format, args);
	va_end(args);
	free(path);
}

void fault_missing(struct faults *f, const struct node *map, const char *key, const char *code, const char *format, ...)
{
	char *parent = node_path(map), *path = xasprintf("%s%s%s", parent, *parent ? "." : "", key);
	va_list args;

	va_start(args, format);
	add(f, DIAG_ERROR, code, map->line, map->column, path, format, args);
	va_end(args);
	free(path);
	free(parent);
}

static int compare_places(const void *a, const void *b)
{
	const struct fault *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->column != y->column)
		return x->column < y->column ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void faults_give(struct faults *f, const char *file, struct diag *d)
{
	if (f->count)
		qsort(f->fault, f->count, sizeof(*f->fault), compare_places);
	for (size_t i = 0; i < f->count; i++) {
		const struct fault *x = &f->fault[i];
		char *where = x->line ? xasprintf("%s:%u:%u", file, x->line, x->column) : xstrdup(file);

		diag_add(d, x->level, x->code, where, "%s", x->message);
		free(where);
		free(x->message);
	}
	if (f->unlisted)
		diag_add(d, DIAG_ERROR, "too-many-faults", file, "%zu more faults are not listed", f->unlisted);
	free(f->fault);
	memset(f, 0, sizeof(*f));
}
