/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A terminal on which text is drawn again and again in one place. */
#ifndef RINGLB_OUT_SCREEN_H
#define RINGLB_OUT_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether standard output is a terminal that understands more than lines. */
bool screen_possible(void);
/* Another page of the terminal, so that what was there comes back with screen_leave. */
void screen_enter(void);
void screen_leave(void);
void screen_size(size_t *rows, size_t *columns);
/* Replaces what is on the page. What does not fit is cut off. */
void screen_draw(const char *text);

/*
 * The first `rows` lines of text, each cut to `columns` characters and ended by "\033[K\r\n", the last one by "\033[K"
 * alone: the terminal must not scroll. Colours ("\033[...m") take no place and are ended with their line. To be freed.
 */
char *screen_fit(const char *text, size_t rows, size_t columns);

#endif
