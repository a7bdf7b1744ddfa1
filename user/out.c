// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "out_table.h"

#define OUT_DEPTH 16

struct out {
	bool json, quiet, color, lines;
	int write_error; /* the first errno of standard output */
	json_t *root;
	json_t *open[OUT_DEPTH]; /* borrowed from root; the last one takes what comes */
	size_t depth;
	struct out_grid *grid; /* the table being filled, or NULL */
	FILE *captured;        /* where text goes; NULL: standard output */
	char *text;            /* of captured */
	size_t text_length;
};

struct out *out_new(bool json, bool quiet)
{
	struct out *o = xcalloc(1, sizeof(*o));
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	o->json = json;
	o->quiet = quiet;
	o->color = isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
	return o;
}

void out_free(struct out *o)
{
	if (!o)
		return;
	free(out_captured(o));
	json_decref(o->root);
	out_grid_free(o->grid);
	free(o);
}

bool out_is_json(const struct out *o)
{
	return o->json;
}

/* JSON is UTF-8; what a user typed need not be. */
static json_t *text_value(const char *text)
{
	json_t *v = json_string(text);
	char *copy;

	if (v)
		return v;
	copy = xstrdup(text);
	for (char *c = copy; *c; c++)
		if (*c & 0x80)
			*c = '?';
	v = json_string(copy);
	free(copy);
	return v;
}

/* Hands v over to the innermost open object or array. */
static void add(struct out *o, const char *key, json_t *v)
{
	json_t *into = o->depth ? o->open[o->depth - 1] : NULL;
	int err;

	if (json_is_array(into)) {
		err = json_array_append_new(into, v);
	} else {
		if (!into) {
			o->root = into = json_object();
			o->open[o->depth++] = into;
		}
		err = json_object_set_new(into, key, v);
	}
	if (err) {
		fputs("ringlb: out of memory\n", stderr);
		exit(1);
	}
}

static void open_value(struct out *o, const char *key, json_t *v)
{
	if (!o->json) {
		json_decref(v);
		return;
	}
	if (!o->root)
		o->root = v;
	else
		add(o, key, v);
	o->open[o->depth++] = v;
}

void out_object(struct out *o, const char *key)
{
	/* A key without an open root: the root is the object that has it. */
	if (o->json && !o->root && key)
		open_value(o, NULL, json_object());
	open_value(o, key, json_object());
}

void out_array(struct out *o, const char *key)
{
	if (o->json && !o->root && key)
		open_value(o, NULL, json_object());
	open_value(o, key, json_array());
}

void out_end(struct out *o)
{
	if (o->json && o->depth > 1) /* the root stays open until it is printed */
		o->depth--;
}

void out_string(struct out *o, const char *key, const char *value)
{
	if (o->json)
		add(o, key, value ? text_value(value) : json_null());
}

void out_integer(struct out *o, const char *key, int64_t value)
{
	if (o->json)
		add(o, key, json_integer(value));
}

void out_real(struct out *o, const char *key, double value)
{
	if (o->json)
		add(o, key, json_real(value));
}

void out_boolean(struct out *o, const char *key, bool value)
{
	if (o->json)
		add(o, key, json_boolean(value));
}

void out_text(struct out *o, const char *format, ...)
{
	va_list ap;

	if (o->json || o->quiet)
		return;
	va_start(ap, format);
	vfprintf(o->captured ? o->captured : stdout, format, ap);
	va_end(ap);
}

void out_table(struct out *o, const char *aligns)
{
	if (o->json || o->quiet)
		return;
	out_grid_free(o->grid);
	o->grid = out_grid_new(aligns);
}

void out_head(struct out *o, const char *format, ...)
{
	va_list ap;

	if (!o->grid)
		return;
	va_start(ap, format);
	out_grid_head(o->grid, format, ap);
	va_end(ap);
}

void out_cell(struct out *o, enum out_style style, const char *format, ...)
{
	va_list ap;

	if (!o->grid)
		return;
	va_start(ap, format);
	out_grid_cell(o->grid, style, format, ap);
	va_end(ap);
}

void out_row(struct out *o)
{
	if (o->grid)
		out_grid_row(o->grid);
}

void out_table_end(struct out *o)
{
	if (!o->grid)
		return;
	out_grid_print(o->grid, o->captured ? o->captured : stdout, o->color);
	out_grid_free(o->grid);
	o->grid = NULL;
}

const char *out_seconds_text(uint32_t seconds, char buf[OUT_SECONDS_TEXT])
{
	if (seconds < 120)
		snprintf(buf, OUT_SECONDS_TEXT, "%u s", seconds);
	else if (seconds < 120 * 60)
		snprintf(buf, OUT_SECONDS_TEXT, "%u m", (seconds + 59) / 60);
	else
		snprintf(buf, OUT_SECONDS_TEXT, "%u h", seconds / 3600 + (seconds % 3600 > 0));
	return buf;
}

static void dump(struct out *o, size_t flags)
{
	/* 15 digits: fractions of 2^32 come back exactly, and 0.1 stays 0.1. */
	json_dumpf(o->root, stdout, JSON_REAL_PRECISION(15) | flags);
	putchar('\n');
	json_decref(o->root);
	o->root = NULL;
	o->depth = 0;
}

void out_flush_line(struct out *o)
{
	o->lines = true;
	if (o->json && o->root)
		dump(o, JSON_COMPACT);
}

void out_json(struct out *o, json_t *value)
{
	json_decref(o->root);
	o->root = o->json ? json_incref(value) : NULL;
	o->depth = 0;
}

void out_capture(struct out *o)
{
	o->captured = open_memstream(&o->text, &o->text_length);
	if (o->captured)
		return;
	fputs("ringlb: out of memory\n", stderr);
	exit(1);
}

char *out_captured(struct out *o)
{
	char *text = o->captured && !fclose(o->captured) ? o->text : NULL;

	o->captured = NULL;
	o->text = NULL;
	return text;
}

char *out_take(struct out *o)
{
	char *text = o->root ? json_dumps(o->root, JSON_REAL_PRECISION(15) | JSON_COMPACT) : NULL;

	json_decref(o->root);
	o->root = NULL;
	o->depth = 0;
	return text;
}

static json_t *diag_list(const struct diag *d, enum diag_level level)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->count; i++) {
		const struct diag_entry *e = &d->entry[i];
		json_t *one;

		if (e->level != level)
			continue;
		one = json_object();
		json_object_set_new(one, "code", text_value(e->code));
		json_object_set_new(one, "message", text_value(e->message));
		json_object_set_new(one, "where", text_value(e->where));
		json_array_append_new(list, one);
	}
	return list;
}

static void finish_json(struct out *o, const struct diag *d)
{
	if (o->lines && !o->root && !d->count)
		return;
	if (d->errors || !o->root) {
		json_decref(o->root);
		o->root = json_object();
		json_object_set_new(o->root, "errors", diag_list(d, DIAG_ERROR));
	}
	if (json_is_object(o->root) && (d->count > d->errors || json_object_get(o->root, "errors")))
		json_object_set_new(o->root, "warnings", diag_list(d, DIAG_WARNING));
	dump(o, o->lines ? JSON_COMPACT : JSON_INDENT(2));
}

bool out_flush(struct out *o)
{
	if (fflush(stdout) && !o->write_error)
		o->write_error = errno;
	return !o->write_error;
}

static void finish_text(struct out *o, const struct diag *d)
{
	/* What was said comes before the complaints, also where both go to one file. */
	out_flush(o);
	for (size_t i = 0; i < d->count; i++) {
		const struct diag_entry *e = &d->entry[i];

		if (e->level == DIAG_WARNING && o->quiet)
			continue;
		fprintf(stderr, "ringlb: %s%s%s%s\n", e->where, *e->where ? ": " : "",
			e->level == DIAG_WARNING ? "warning: " : "", e->message);
	}
}

bool out_finish(struct out *o, const struct diag *d)
{
	if (o->json)
		finish_json(o, d);
	else
		finish_text(o, d);
	out_flush(o);
	if (!o->write_error && !ferror(stdout))
		return true;
	if (o->write_error == EPIPE)
		return false; /* whoever read it has seen enough */
	fprintf(stderr, "ringlb: cannot write to standard output: %s\n",
		o->write_error ? strerror(o->write_error) : "what is there is incomplete");
	return false;
}
