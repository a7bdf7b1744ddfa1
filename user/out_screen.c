// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "out_screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "diag.h"

/* Control sequences of ECMA-48, and xterm's second page. */
#define SECOND_PAGE "\033[?1049h"
#define FIRST_PAGE "\033[?1049l"
#define HIDE_CURSOR "\033[?25l"
#define SHOW_CURSOR "\033[?25h"
#define HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"
#define PLAIN "\033[0m"

#define DEFAULT_ROWS 24
#define DEFAULT_COLUMNS 80

bool screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void screen_enter(void)
{
	fputs(SECOND_PAGE HIDE_CURSOR, stdout);
	fflush(stdout);
}

void screen_leave(void)
{
	fputs(PLAIN SHOW_CURSOR FIRST_PAGE, stdout);
	fflush(stdout);
}

void screen_size(size_t *rows, size_t *columns)
{
	struct winsize w = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w))
		memset(&w, 0, sizeof(w));
	*rows = w.ws_row ? w.ws_row : DEFAULT_ROWS;
	*columns = w.ws_col ? w.ws_col : DEFAULT_COLUMNS;
}

/* The length of the sequence at text; 0: there is none. */
static size_t sequence(const char *text)
{
	size_t length = 2;

	if (text[0] != '\033' || text[1] != '[')
		return 0;
	while (text[length] && (text[length] < '@' || text[length] > '~'))
		length++;
	return text[length] ? length + 1 : length;
}

/* One line, without its end; returns what follows it. */
static const char *fit_line(const char *text, size_t columns, FILE *to)
{
	bool colored = false;
	size_t used = 0, length;

	while (*text && *text != '\n') {
		length = sequence(text);
		if (length) {
			fwrite(text, 1, length, to);
			colored = true;
			text += length;
			continue;
		}
		used += (*text & 0xc0) != 0x80; /* not the inside of a character of UTF-8 */
		if (used <= columns)
			putc(*text, to);
		text++;
	}
	if (colored)
		fputs(PLAIN, to);
	fputs(CLEAR_LINE, to);
	return *text ? text + 1 : text;
}

char *screen_fit(const char *text, size_t rows, size_t columns)
{
	char *fitted = NULL;
	size_t length;
	FILE *to = open_memstream(&fitted, &length);

	for (size_t i = 0; to && i < rows && *text; i++) {
		if (i)
			fputs("\r\n", to);
		text = fit_line(text, columns, to);
	}
	if (!to || fclose(to)) {
		fputs("ringlb: out of memory\n", stderr);
		exit(1);
	}
	return fitted;
}

void screen_draw(const char *text)
{
	size_t rows, columns;
	char *fitted;

	screen_size(&rows, &columns);
	fitted = screen_fit(text, rows, columns);
	printf(HOME "%s" CLEAR_BELOW, fitted);
	free(fitted);
}
