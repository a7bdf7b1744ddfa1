// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "out_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRID_COLUMNS 16

struct grid_cell {
	char *text; /* NULL: empty */
	enum out_style style;
};

struct out_grid {
	char align[GRID_COLUMNS + 1];
	size_t columns;
	char *head[GRID_COLUMNS];
	size_t heads;
	struct grid_cell *cell; /* rows * columns */
	size_t rows, capacity;  /* in rows; the last one is being filled */
	size_t column;
};

static const char *const style_start[] = {
	[OUT_PLAIN] = "",        [OUT_HEAD] = "\033[1m", [OUT_GOOD] = "\033[32m",
	[OUT_WARN] = "\033[33m", [OUT_BAD] = "\033[31m",
};

struct out_grid *out_grid_new(const char *aligns)
{
	struct out_grid *g = xcalloc(1, sizeof(*g));

	snprintf(g->align, sizeof(g->align), "%s", aligns);
	g->columns = strlen(g->align);
	return g;
}

static char *format_text(const char *format, va_list ap)
{
	char *text;

	if (vasprintf(&text, format, ap) < 0) {
		fputs("ringlb: out of memory\n", stderr);
		exit(1);
	}
	return text;
}

void out_grid_head(struct out_grid *g, const char *format, va_list ap)
{
	if (g->heads < g->columns)
		g->head[g->heads++] = format_text(format, ap);
}

void out_grid_cell(struct out_grid *g, enum out_style style, const char *format, va_list ap)
{
	struct grid_cell *c;

	if (g->column >= g->columns)
		return;
	if (g->rows == g->capacity) {
		size_t cells = g->rows * g->columns;

		g->capacity = g->capacity ? 2 * g->capacity : 16;
		g->cell = xreallocarray(g->cell, g->capacity * g->columns, sizeof(*g->cell));
		memset(&g->cell[cells], 0, (g->capacity * g->columns - cells) * sizeof(*g->cell));
	}
	c = &g->cell[g->rows * g->columns + g->column++];
	c->text = format_text(format, ap);
	c->style = style;
}

void out_grid_row(struct out_grid *g)
{
	if (!g->column)
		return;
	g->rows++;
	g->column = 0;
}

/* Characters on the screen: UTF-8 continuation bytes take no place. */
static size_t text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

/* 0 where no row has text there: the column is left out. */
static size_t column_width(const struct out_grid *g, size_t column)
{
	size_t widest = 0;

	for (size_t i = 0; i < g->rows; i++) {
		const char *text = g->cell[i * g->columns + column].text;
		size_t width = text ? text_width(text) : 0;

		widest = width > widest ? width : widest;
	}
	if (widest && column < g->heads && text_width(g->head[column]) > widest)
		widest = text_width(g->head[column]);
	return widest;
}

static void print_cell(FILE *to, const char *text, size_t width, bool right, bool last, const char *start)
{
	int pad = (int)(width - text_width(text));

	fprintf(to, "%*s%s%s%s%*s", right ? pad : 0, "", start, text, *start ? "\033[0m" : "", right || last ? 0 : pad,
		"");
}

static void print_row(FILE *to, const struct out_grid *g, const size_t *width, size_t row, bool head, bool color)
{
	size_t last = 0;

	for (size_t c = 0; c < g->columns; c++) {
		const char *text = head ? g->head[c] : g->cell[row * g->columns + c].text;

		if (width[c] && text && *text)
			last = c;
	}
	for (size_t c = 0; c <= last; c++) {
		const struct grid_cell *cell = head ? NULL : &g->cell[row * g->columns + c];
		const char *text = head ? g->head[c] : cell->text;

		if (!width[c])
			continue;
		fputs("  ", to);
		print_cell(to, text ? text : "", width[c], g->align[c] == 'r', c == last,
			   color ? style_start[head ? OUT_HEAD : cell->style] : "");
	}
	putc('\n', to);
}

void out_grid_print(const struct out_grid *g, FILE *to, bool color)
{
	size_t width[GRID_COLUMNS];

	if (!g->rows)
		return;
	for (size_t c = 0; c < g->columns; c++)
		width[c] = column_width(g, c);
	if (g->heads)
		print_row(to, g, width, 0, true, color);
	for (size_t i = 0; i < g->rows; i++)
		print_row(to, g, width, i, false, color);
}

void out_grid_free(struct out_grid *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->heads; i++)
		free(g->head[i]);
	for (size_t i = 0; g->cell && i < g->rows * g->columns + g->column; i++)
		free(g->cell[i].text);
	free(g->cell);
	free(g);
}
