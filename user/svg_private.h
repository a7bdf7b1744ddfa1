/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between svg.c and svg_*.c only: a document being written. Lengths are pixels at the usual size. */
#ifndef RINGLB_SVG_PRIVATE_H
#define RINGLB_SVG_PRIVATE_H

#include <stdio.h>

#include "svg.h"

#define SVG_INK "#1a1a1a"
#define SVG_FAINT "#5f6368"
#define SVG_LINE "#c9ccd1"
#define SVG_REST "#e6e8eb" /* what is not spoken of */
#define SVG_PAINT 16       /* buffer for svg_paint() */
#define SVG_PAINTS 32u     /* different ones; then they come again */

struct svg {
	FILE *file;
	char *text;
	size_t length;
};

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

/* With a white ground, the paints of `count` owners, title and description for those who can't see it. */
void svg_begin(struct svg *s, double width, double height, const char *title, const char *description, size_t count);
/* The document; owned by the caller. */
char *svg_end(struct svg *s);
/* What to fill the shapes of an owner with, as url(#...). Returns buf. */
const char *svg_paint(size_t owner, char buf[SVG_PAINT]);
/* The same without the hatching, which is but noise where shapes are thin. */
const char *svg_colour(size_t owner);
/* Text as it may stand in XML, whatever bytes it is made of. */
void svg_escaped(struct svg *s, const char *text);
/* A line of text of `size` pixels, cut with an ellipsis where it might be wider than `most` (0: never). */
void svg_text(struct svg *s, double x, double y, double size, enum svg_anchor anchor, const char *colour, double most,
	      const char *text);
__attribute__((format(printf, 7, 8))) void svg_textf(struct svg *s, double x, double y, double size,
						     enum svg_anchor anchor, const char *colour, const char *format,
						     ...);
void svg_bold(struct svg *s, double x, double y, double size, enum svg_anchor anchor, double most, const char *text);
void svg_line(struct svg *s, double x1, double y1, double x2, double y2, const char *colour, double width);
/* How wide a text may be in the widest of usual fonts. */
double svg_width(const char *text, double size);
/* <title> of the element that is open: what is said when it is pointed at. */
__attribute__((format(printf, 2, 3))) void svg_hint(struct svg *s, const char *format, ...);

/* A small square with an owner's paint. */
void svg_swatch(struct svg *s, size_t owner, double x, double y);

/* The right half of a ring's picture, and how high that is: svg_shares.c. */
double svg_shares_height(const struct svg_ring *r);
void svg_shares(struct svg *s, const struct svg_ring *r, double x, double y);

#endif
