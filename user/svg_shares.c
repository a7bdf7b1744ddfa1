// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Each backend's share against its weight: a bar a backend, or for many of them the curve of their ratios. */
#include <math.h>
#include <stdlib.h>

#include "diag.h"
#include "svg_private.h"

#define MOST_BARS 40u
#define ROW 19.0
#define HEAD 34.0
#define NAME_X 19.0
#define NAME_MOST 150.0
#define BAR_END 350.0
#define SHARE_X 420.0
#define RATIO_X 500.0
#define CURVE_X 44.0
#define CURVE_WIDTH 456.0
#define CURVE_HEIGHT 260.0
#define CURVE_STEPS 456u /* a pixel each */
#define EXTREMES 6u

/* Takes part now, or did before the change. */
static bool is_shown(const struct svg_ring *r, size_t i)
{
	return r->weight[i] || r->share[i].length || (r->share_before && r->share_before[i].length);
}

static size_t count_shown(const struct svg_ring *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->owners; i++)
		n += is_shown(r, i);
	return n;
}

double svg_shares_height(const struct svg_ring *r)
{
	size_t n = count_shown(r);

	if (n <= MOST_BARS)
		return HEAD + ROW * (double)n + 26;
	return HEAD + CURVE_HEIGHT + 70 + ROW * (EXTREMES + 1) * 2;
}

static void box(struct svg *s, double x, double y, double width, double height, const char *fill)
{
	fprintf(s->file,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"" SVG_INK
		"\" stroke-width=\".6\"/>\n",
		x, y, width, height, fill);
}

/* Where bars begin, behind the names, and how long a share of all would be. */
struct scale {
	double x, all;
};

static void bar(struct svg *s, const struct svg_ring *r, size_t i, double x, double y, const struct scale *scale)
{
	const struct share *is = &r->share[i];
	char paint[SVG_PAINT];
	double top = y - 10, height = 13;

	svg_swatch(s, i, x, y - 10);
	svg_text(s, x + NAME_X, y, 12, SVG_START, SVG_INK, scale->x - x - NAME_X - 10, r->name[i]);
	if (r->share_before) {
		box(s, scale->x, top - 1, r->share_before[i].share * scale->all, 5, SVG_REST);
		top += 4;
		height = 9;
	}
	if (is->length)
		box(s, scale->x, top, is->share * scale->all, height, svg_paint(i, paint));
	if (is->expected > 0)
		svg_line(s, scale->x + is->expected * scale->all, y - 12, scale->x + is->expected * scale->all, y + 5,
			 SVG_INK, 2);
	svg_textf(s, x + SHARE_X, y, 12, SVG_END, SVG_INK, "%.2f %%", 100 * is->share);
	if (r->weight[i])
		svg_textf(s, x + RATIO_X, y, 12, SVG_END, SVG_INK, "%.3f", is->ratio);
}

static struct scale bar_scale(const struct svg_ring *r, double x)
{
	double most = 0, name = 40;

	for (size_t i = 0; i < r->owners; i++) {
		if (!is_shown(r, i))
			continue;
		name = fmin(fmax(name, svg_width(r->name[i], 12)), NAME_MOST);
		most = fmax(most, fmax(r->share[i].share, r->share[i].expected));
		if (r->share_before)
			most = fmax(most, r->share_before[i].share);
	}
	name += x + NAME_X + 12;
	return (struct scale){ name, most > 0 ? (x + BAR_END - name) / most : 0 };
}

static void bars(struct svg *s, const struct svg_ring *r, double x, double y)
{
	struct scale scale = bar_scale(r, x);

	svg_text(s, x + SHARE_X, y + 14, 11, SVG_END, SVG_FAINT, 0, "share");
	svg_text(s, x + RATIO_X, y + 14, 11, SVG_END, SVG_FAINT, 0, "/ expected");
	y += HEAD;
	for (size_t i = 0; i < r->owners; i++) {
		if (!is_shown(r, i))
			continue;
		bar(s, r, i, x, y, &scale);
		y += ROW;
	}
	svg_text(s, x, y + 12, 11, SVG_START, SVG_FAINT, 0,
		 r->share_before ? "Black mark: what its weight asks for, after the change. Grey: the share before." :
				   "Black mark: the share that its weight asks for.");
}

/* ---- many backends ---- */

struct ranked {
	size_t owner;
	double ratio;
};

static int by_ratio(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->ratio != y->ratio)
		return x->ratio > y->ratio ? -1 : 1;
	return (x->owner > y->owner) - (x->owner < y->owner);
}

/* Those with a weight, the largest ratio first; owned by the caller. */
static struct ranked *rank(const struct svg_ring *r, size_t *count)
{
	struct ranked *v = xcalloc(r->owners + 1, sizeof(*v));

	*count = 0;
	for (size_t i = 0; i < r->owners; i++)
		if (r->weight[i])
			v[(*count)++] = (struct ranked){ i, r->share[i].ratio };
	qsort(v, *count, sizeof(*v), by_ratio);
	return v;
}

/* A round distance of at most about five lines over the range. */
static double grid_step(double range)
{
	double step = pow(10, floor(log10(range / 2)));

	while (range / step > 5)
		step *= range / step > 10 ? 5 : 2;
	return step;
}

struct curve {
	double x, y, low, high; /* place; ratios at the bottom and at the top */
};

static double curve_y(const struct curve *c, double ratio)
{
	return c->y + CURVE_HEIGHT * (c->high - ratio) / (c->high - c->low);
}

static struct curve curve_frame(struct svg *s, double x, double y, double least, double most)
{
	struct curve c = { .x = x + CURVE_X, .y = y };
	double step = grid_step(fmax(fmax(most - 1, 1 - least), 0.0005) * 2.1);

	c.low = floor(fmin(least, 1 - step / 4) / step) * step;
	c.high = ceil(fmax(most, 1 + step / 4) / step) * step;
	for (double v = c.low; v < c.high + step / 2; v += step) {
		bool is_one = fabs(v - 1) < step / 4;

		svg_line(s, c.x, curve_y(&c, v), c.x + CURVE_WIDTH, curve_y(&c, v), is_one ? SVG_INK : SVG_LINE,
			 is_one ? 1.5 : 1);
		svg_textf(s, c.x - 8, curve_y(&c, v) + 4, 11, SVG_END, SVG_FAINT, "%.*f", step < 0.01 ? 4 : 2, v);
	}
	return c;
}

/* Each pixel's backends between their extremes, as one shape against the line of 1. */
static void curve_shape(struct svg *s, const struct curve *c, const struct ranked *v, size_t count)
{
	size_t steps = count < CURVE_STEPS ? count : CURVE_STEPS;
	double one = curve_y(c, 1);

	fprintf(s->file, "<path fill=\"url(#p0)\" stroke=\"" SVG_INK "\" stroke-width=\".8\" d=\"M%.1f %.1f", c->x,
		one);
	for (size_t i = 0; i < steps; i++) {
		double ratio = v[i * (count - 1) / (steps - 1)].ratio;

		fprintf(s->file, "L%.1f %.1fH%.1f", c->x + CURVE_WIDTH * (double)i / (double)steps, curve_y(c, ratio),
			c->x + CURVE_WIDTH * (double)(i + 1) / (double)steps);
	}
	fprintf(s->file, "V%.1fz\"/>\n", one);
}

static void extremes(struct svg *s, const struct svg_ring *r, const struct ranked *v, size_t first, double x, double y,
		     const char *head)
{
	svg_bold(s, x, y, 12, SVG_START, 0, head);
	for (size_t i = first; i < first + EXTREMES; i++) {
		const struct share *share = &r->share[v[i].owner];

		y += ROW;
		svg_swatch(s, v[i].owner, x, y - 10);
		svg_text(s, x + NAME_X, y, 12, SVG_START, SVG_INK, 200, r->name[v[i].owner]);
		svg_textf(s, x + 330, y, 12, SVG_END, SVG_INK, "weight %u", r->weight[v[i].owner]);
		svg_textf(s, x + SHARE_X, y, 12, SVG_END, SVG_INK, "%.4f %%", 100 * share->share);
		svg_textf(s, x + RATIO_X, y, 12, SVG_END, SVG_INK, "%.3f", share->ratio);
	}
}

static void curve(struct svg *s, const struct svg_ring *r, double x, double y)
{
	struct ranked *v;
	struct curve c;
	size_t count;
	char text[32];

	v = rank(r, &count);
	if (count < 2 * EXTREMES) { /* most of them went: the ring tells it */
		free(v);
		return;
	}
	svg_textf(s, x, y + 14, 12, SVG_START, SVG_INK, "Share over expected share of %s backends, the largest first",
		  svg_count(count, text));
	c = curve_frame(s, x, y + HEAD, v[count - 1].ratio, v[0].ratio);
	curve_shape(s, &c, v, count);
	y += HEAD + CURVE_HEIGHT + 40;
	extremes(s, r, v, 0, x, y, "Largest");
	extremes(s, r, v, count - EXTREMES, x, y + ROW * (EXTREMES + 1) + 8, "Smallest");
	free(v);
}

void svg_shares(struct svg *s, const struct svg_ring *r, double x, double y)
{
	if (count_shown(r) <= MOST_BARS)
		bars(s, r, x, y);
	else
		curve(s, r, x, y);
}
