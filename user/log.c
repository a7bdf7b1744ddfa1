// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND_MS 1000u

/* One write for a line, so that two processes' lines don't mix. */
static void write_line(const char *text, size_t length)
{
	while (length) {
		ssize_t done = write(STDERR_FILENO, text, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return; /* nobody to tell */
		text += done;
		length -= (size_t)done;
	}
}

void log_line(enum log_level level, const char *format, ...)
{
	char *text, *line;
	va_list ap;
	int length;

	va_start(ap, format);
	length = vasprintf(&text, format, ap);
	va_end(ap);
	if (length < 0)
		diag_fatal("out of memory");
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	line = isatty(STDERR_FILENO) ? xasprintf("%s\n", text) : xasprintf("<%d>%s\n", (int)level, text);
	write_line(line, strlen(line));
	free(line);
	free(text);
}

void log_diag(const struct diag *d, const char *what)
{
	for (size_t i = 0; i < d->count; i++) {
		const struct diag_entry *e = &d->entry[i];

		log_line(e->level == DIAG_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "%s%s%s%s%s", what ? what : "",
			 what ? ": " : "", e->where, *e->where ? ": " : "", e->message);
	}
}

bool log_limit(struct log_limit *l, uint64_t now)
{
	log_limit_flush(l, now);
	if (now / SECOND_MS != l->window) {
		l->window = now / SECOND_MS;
		l->said = 0;
	}
	if (l->said < LOG_LIMIT) {
		l->said++;
		return true;
	}
	l->left_out++;
	return false;
}

uint64_t log_limit_due(const struct log_limit *l)
{
	return l->left_out ? (l->window + 1) * SECOND_MS : UINT64_MAX;
}

void log_limit_flush(struct log_limit *l, uint64_t now)
{
	if (now < log_limit_due(l))
		return;
	log_line(LOG_LEVEL_NOTICE, "and %u more %s within this second", l->left_out, l->kind);
	l->left_out = 0;
}
