// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Placements side by side: how uneven they are against what they move beyond the minimum, and the figures below. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "svg_private.h"

#define WIDTH 1080.0
#define PLOT_X 110.0
#define PLOT_Y 96.0
#define PLOT_WIDTH 900.0
#define PLOT_HEIGHT 330.0
#define TABLE_Y (PLOT_Y + PLOT_HEIGHT + 92)
#define ROW 24.0
#define LABEL_SIZE 13.0
/* Logarithmic, but from 0 on: up to this value it is all but linear. */
#define SCALE_BEND 0.0005
#define MARK 7.0

struct label {
	double x, y, width;
};

/* 0 to 1, for fractions of 0 to 1 (and more, which is cut). */
static double scaled(double fraction)
{
	return log1p(fmin(fraction, 1) / SCALE_BEND) / log1p(1 / SCALE_BEND);
}

static double plot_x(double fraction)
{
	return PLOT_X + PLOT_WIDTH * scaled(fraction);
}

static double plot_y(double fraction)
{
	return PLOT_Y + PLOT_HEIGHT * (1 - scaled(fraction));
}

static void frame(struct svg *s)
{
	static const double tick[] = { 0, 0.001, 0.01, 0.1, 1 };

	for (size_t i = 0; i < sizeof(tick) / sizeof(*tick); i++) {
		svg_line(s, plot_x(tick[i]), PLOT_Y, plot_x(tick[i]), PLOT_Y + PLOT_HEIGHT, SVG_LINE, 1);
		svg_line(s, PLOT_X, plot_y(tick[i]), PLOT_X + PLOT_WIDTH, plot_y(tick[i]), SVG_LINE, 1);
		svg_textf(s, plot_x(tick[i]), PLOT_Y + PLOT_HEIGHT + 26, 11, SVG_MIDDLE, SVG_FAINT, "%g %%",
			  100 * tick[i]);
		svg_textf(s, PLOT_X - 16, plot_y(tick[i]) + 4, 11, SVG_END, SVG_FAINT, "%g %%", 100 * tick[i]);
	}
	svg_text(s, PLOT_X + PLOT_WIDTH / 2, PLOT_Y + PLOT_HEIGHT + 48, 13, SVG_MIDDLE, SVG_INK, 0,
		 "Moved beyond the minimum when one backend is removed, of the hash space (mean over the backends)");
	fprintf(s->file, "<g transform=\"rotate(-90 40 %g)\">\n", PLOT_Y + PLOT_HEIGHT / 2);
	svg_text(s, 40, PLOT_Y + PLOT_HEIGHT / 2, 13, SVG_MIDDLE, SVG_INK, 0, "Largest share above the mean");
	fprintf(s->file, "</g>\n");
}

/* Shapes, so that no colour has to be told from another. */
static void mark(struct svg *s, size_t which, double x, double y, bool chosen)
{
	static const char *const shape[] = {
		"M-6-6h12v12h-12z",
		"M0-7.5L7.5 5.5h-15z",
		"M0-8L8 0 0 8-8 0z",
		"M0 7.5L7.5-5.5h-15z",
		"M-8-3h5v-5h6v5h5v6h-5v5h-6v-5h-5z",
		"M-7 0L-3.5-6h7L7 0 3.5 6h-7z",
		"M-6-6L6 6M6-6L-6 6",
		"M-7.5 0h15M0-7.5v15",
	};
	char paint[SVG_PAINT];
	bool open = which % 8 >= 6;

	if (chosen)
		fprintf(s->file,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"13\" fill=\"none\" stroke=\"" SVG_INK
			"\" stroke-width=\"1.5\"/>\n",
			x, y);
	if (open)
		fprintf(s->file,
			"<path transform=\"translate(%.1f %.1f)\" d=\"%s\" fill=\"none\" stroke=\"" SVG_INK
			"\" stroke-width=\"3\"/>\n",
			x, y, shape[which % 8]);
	else
		fprintf(s->file,
			"<path transform=\"translate(%.1f %.1f)\" d=\"%s\" fill=\"%s\" stroke=\"" SVG_INK
			"\" stroke-width=\"1.2\"/>\n",
			x, y, shape[which % 8], svg_paint(which, paint));
}

static bool meets(const struct label *a, const struct label *b)
{
	return fabs(a->y - b->y) < LABEL_SIZE + 3 && a->x < b->x + b->width && b->x < a->x + a->width;
}

static bool is_free(const struct label *l, const struct label *placed, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (meets(l, &placed[i]))
			return false;
	return l->y > PLOT_Y + 8 && l->y < PLOT_Y + PLOT_HEIGHT - 3;
}

/* Beside the mark, or as near below or else above that as nothing else is written. */
static struct label place_label(const struct label *placed, size_t count, double x, double y, double width)
{
	/* To the right of the mark, unless that is where the plot ends. */
	struct label l = { x + 18 + width > PLOT_X + PLOT_WIDTH ? x - 18 - width : x + 18, y + 4, width };

	while (l.y < PLOT_Y + PLOT_HEIGHT && !is_free(&l, placed, count))
		l.y += 2;
	if (l.y < PLOT_Y + PLOT_HEIGHT)
		return l;
	for (l.y = y + 4; l.y > PLOT_Y && !is_free(&l, placed, count);)
		l.y -= 2;
	return l;
}

struct spot {
	size_t which;
	double x, y;
};

/* From the top down, so that lines to labels don't cross. */
static int by_height(const void *a, const void *b)
{
	const struct spot *p = a, *q = b;

	if (p->y != q->y)
		return p->y < q->y ? -1 : 1;
	return (p->which > q->which) - (p->which < q->which);
}

static void draw_spot(struct svg *s, const struct svg_compared *v, const struct spot *p, const struct label *l)
{
	if (fabs(l->y - 4 - p->y) > 6)
		svg_line(s, p->x, p->y, l->x < p->x ? l->x + l->width : l->x - 2, l->y - 4, SVG_FAINT, 0.8);
	svg_text(s, l->x, l->y, LABEL_SIZE, SVG_START, SVG_INK, 0, v->name);
	mark(s, p->which, p->x, p->y, v->chosen);
}

static void plot(struct svg *s, const struct svg_compared *v, size_t count)
{
	struct label *placed = xcalloc(2 * count, sizeof(*placed));
	struct spot *spot = xcalloc(count, sizeof(*spot));
	size_t spots = 0, labels;

	for (size_t i = 0; i < count; i++)
		if (!v[i].why && v[i].figures.remove.known)
			spot[spots++] = (struct spot){ i, plot_x(v[i].figures.remove.excess),
						       plot_y(v[i].figures.balance.max - 1) };
	qsort(spot, spots, sizeof(*spot), by_height);
	/* Labels keep off the marks, too. */
	for (labels = 0; labels < spots; labels++)
		placed[labels] = (struct label){ spot[labels].x - MARK, spot[labels].y + 4, 2 * MARK };
	for (size_t i = 0; i < spots; i++, labels++) {
		const struct svg_compared *which = &v[spot[i].which];

		placed[labels] = place_label(placed, labels, spot[i].x, spot[i].y, svg_width(which->name, LABEL_SIZE));
		draw_spot(s, which, &spot[i], &placed[labels]);
	}
	free(spot);
	free(placed);
}

/* ---- the figures ---- */

static const struct {
	const char *head, *head2;
	double x;
} columns[] = {
	{ "largest", "/ mean", 270 },
	{ "smallest", "/ mean", 350 },
	{ "adding one", "moves", 460 },
	{ "", "excess", 545 },
	{ "removing one", "moves", 655 },
	{ "", "excess", 740 },
	{ "weight \xc3\x97 1.5", "moves", 840 },
	{ "", "excess", 925 },
	{ "table", "KiB", 1020 },
};

static void cost(struct svg *s, double y, size_t column, const struct compare_cost *c)
{
	if (!c->known) {
		svg_text(s, columns[column].x, y, 12, SVG_END, SVG_FAINT, 0, "\xe2\x80\x93");
		svg_text(s, columns[column + 1].x, y, 12, SVG_END, SVG_FAINT, 0, "\xe2\x80\x93");
		return;
	}
	svg_textf(s, columns[column].x, y, 12, SVG_END, SVG_INK, "%.2f %%", 100 * c->moved);
	svg_textf(s, columns[column + 1].x, y, 12, SVG_END, SVG_INK, "%.2f %%", 100 * c->excess);
}

static void row(struct svg *s, const struct svg_compared *v, size_t which, double y)
{
	const struct comparison *c = &v->figures;
	char text[32];

	if (v->why) {
		svg_text(s, 74, y, 12, SVG_START, SVG_FAINT, 110, v->name);
		svg_text(s, 190, y, 12, SVG_START, SVG_FAINT, WIDTH - 250, v->why);
		return;
	}
	mark(s, which, 50, y - 4, false);
	if (v->chosen)
		svg_bold(s, 74, y, 12, SVG_START, 0, v->name);
	else
		svg_text(s, 74, y, 12, SVG_START, SVG_INK, 110, v->name);
	svg_textf(s, columns[0].x, y, 12, SVG_END, SVG_INK, "%.4f", c->balance.max);
	svg_textf(s, columns[1].x, y, 12, SVG_END, SVG_INK, "%.4f", c->balance.min);
	cost(s, y, 2, &c->add);
	cost(s, y, 4, &c->remove);
	cost(s, y, 6, &c->weight);
	svg_text(s, columns[8].x, y, 12, SVG_END, SVG_INK, 0,
		 c->table_bytes ? svg_count((c->table_bytes + 1023) / 1024, text) : "\xe2\x80\x93");
}

static void table(struct svg *s, const struct svg_compared *v, size_t count)
{
	double y = TABLE_Y;

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		svg_text(s, columns[i].x, y - 14, 11, SVG_END, SVG_FAINT, 0, columns[i].head);
		svg_text(s, columns[i].x, y, 11, SVG_END, SVG_FAINT, 0, columns[i].head2);
	}
	svg_line(s, 40, y + 7, 1030, y + 7, SVG_INK, 1);
	for (size_t i = 0; i < count; i++) {
		y += ROW;
		row(s, &v[i], i, y);
		svg_line(s, 40, y + 8, 1030, y + 8, SVG_LINE, 1);
	}
	svg_text(
		s, 40, y + 30, 11, SVG_START, SVG_FAINT, 0,
		"Moves: of the hash space, by one such change. Excess: beyond what any placement with these shares must "
		"move.");
	svg_text(
		s, 40, y + 46, 11, SVG_START, SVG_FAINT, 0,
		"In the plot the better is nearer to the lower left corner; both scales are logarithmic. Circle, bold: the "
		"pool's own placement.");
}

static char *description(const char *subtitle, const struct svg_compared *v, size_t count)
{
	char *text = xasprintf("%s.", subtitle), *longer;

	for (size_t i = 0; i < count; i++) {
		if (v[i].why)
			longer = xasprintf("%s %s: not possible.", text, v[i].name);
		else
			longer = xasprintf(
				"%s %s: largest share over mean %.4f, removing a backend moves %.2f %% more than it must.",
				text, v[i].name, v[i].figures.balance.max, 100 * v[i].figures.remove.excess);
		free(text);
		text = longer;
	}
	return text;
}

char *svg_compare(const char *title, const char *subtitle, const struct svg_compared *v, size_t count)
{
	char *about = description(subtitle, v, count);
	struct svg s;

	svg_begin(&s, WIDTH, TABLE_Y + ROW * (double)count + 66, title, about, count);
	svg_bold(&s, 40, 38, 20, SVG_START, WIDTH - 80, title);
	svg_text(&s, 40, 60, 13, SVG_START, SVG_FAINT, WIDTH - 80, subtitle);
	frame(&s);
	plot(&s, v, count);
	table(&s, v, count);
	free(about);
	return svg_end(&s);
}
