/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's log: lines on standard error, with journald's "<LEVEL>" in front unless a person looks on. What may come
 * in floods goes through a limit: so many lines a second one by one, the rest as a sum.
 */
#ifndef RINGLB_LOG_H
#define RINGLB_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "diag.h"

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_NOTICE = 5, LOG_LEVEL_INFO = 6 };

/* One line; control characters in it become '?'. */
__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);
/* Each entry of d, "what: FILE:1:2: message"; what may be NULL. */
void log_diag(const struct diag *d, const char *what);

#define LOG_LIMIT 10u /* lines of a kind in a second */

struct log_limit {
	const char *kind; /* "transitions": of what is left out */
	uint64_t window;  /* the second, of time passed in */
	uint32_t said, left_out;
};

/* Whether a line may be said now, milliseconds of a clock that never goes back; ends the second before with its sum. */
bool log_limit(struct log_limit *l, uint64_t now);
/* Says what is owed of a second that is over. When that is; UINT64_MAX: nothing is owed. */
uint64_t log_limit_due(const struct log_limit *l);
void log_limit_flush(struct log_limit *l, uint64_t now);

#endif
