/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A list of what is wrong, collected by the pure modules and spoken once at the edge (cmd.h). Messages say what is
 * wrong and what to do about it, without the place; the place is "FILE:LINE:COLUMN" or empty.
 */
#ifndef RINGLB_DIAG_H
#define RINGLB_DIAG_H

#include <stdbool.h>
#include <stddef.h>

enum diag_level { DIAG_WARNING, DIAG_ERROR };

struct diag_entry {
	enum diag_level level;
	char *code;  /* short and stable, for programs: "unknown-key", "not-attached", ... */
	char *where; /* never NULL */
	char *message;
};

struct diag {
	struct diag_entry *entry;
	size_t count;
	size_t errors; /* of count */
};

/* Adds one; never fails (out of memory ends the program with a message: see diag.c). */
__attribute__((format(printf, 5, 6))) void diag_add(struct diag *d, enum diag_level level, const char *code,
						    const char *where, const char *format, ...);
#define diag_error(d, code, where, ...) diag_add(d, DIAG_ERROR, code, where, __VA_ARGS__)
#define diag_warning(d, code, where, ...) diag_add(d, DIAG_WARNING, code, where, __VA_ARGS__)
void diag_free(struct diag *d);

/* Ends the program, status 1, with "ringlb: MESSAGE" on standard error: for no memory and the like, where nothing else can be done. */
__attribute__((noreturn)) void diag_fatal(const char *message);

/* malloc and friends that end the program with a message instead of returning NULL; for small things only. */
void *xcalloc(size_t count, size_t size);
void *xreallocarray(void *p, size_t count, size_t size);
char *xstrdup(const char *text);
__attribute__((format(printf, 1, 2))) char *xasprintf(const char *format, ...);

#endif
