/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Straight to the descriptor: stdio may want memory itself. Nothing is held that the kernel wouldn't release. */
void diag_fatal(const char *message)
{
	struct iovec part[] = {
		{ .iov_base = (void *)"ringlb: ", .iov_len = 8 },
		{ .iov_base = (void *)message, .iov_len = strlen(message) },
		{ .iov_base = (void *)"\n", .iov_len = 1 },
	};
	ssize_t written = writev(STDERR_FILENO, part, 3);

	(void)written;
	_exit(1);
}

static _Noreturn void out_of_memory(void)
{
	diag_fatal("out of memory");
}

void *xcalloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *xreallocarray(void *p, size_t count, size_t size)
{
	p = reallocarray(p, count ? count : 1, size ? size : 1);
	if (!p)
		out_of_memory();
	return p;
}

char *xstrdup(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		out_of_memory();
	return copy;
}

static char *format_text(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		out_of_memory();
	return text;
}

char *xasprintf(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	return text;
}

void diag_add(struct diag *d, enum diag_level level, const char *code, const char *where, const char *format, ...)
{
	struct diag_entry *e;
	va_list args;

	/* The room doubles whenever the count is a power of two, so that struct diag needs no capacity. */
	if (!(d->count & (d->count - 1)))
		d->entry = xreallocarray(d->entry, d->count ? 2 * d->count : 1, sizeof(*d->entry));
	e = &d->entry[d->count++];
	e->level = level;
	e->code = xstrdup(code);
	e->where = xstrdup(where ? where : "");
	va_start(args, format);
	e->message = format_text(format, args);
	va_end(args);
	if (level == DIAG_ERROR)
		d->errors++;
}

void diag_free(struct diag *d)
{
	for (size_t i = 0; i < d->count; i++) {
		free(d->entry[i].code);
		free(d->entry[i].where);
		free(d->entry[i].message);
	}
	free(d->entry);
	memset(d, 0, sizeof(*d));
}
