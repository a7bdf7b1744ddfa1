// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "svg.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "svg_private.h"

/* Okabe and Ito's, which the common kinds of colour blindness keep apart; darkest and lightest take turns. */
static const char *const colours[] = {
	"#0072b2", "#e69f00", "#009e73", "#f0e442", "#d55e00", "#56b4e9", "#8c4f74", "#b3b7bd",
};
#define COLOURS (sizeof(colours) / sizeof(*colours))
/* Drawn over the colour, so that eight colours make SVG_PAINTS paints, and print keeps them apart without colour. */
static const char *const hatches[] = {
	"",
	"<path d=\"M-1 1L1-1M0 6L6 0M5 7L7 5\" stroke=\"#fff\" stroke-width=\"1.1\"/>",
	"<circle cx=\"1.5\" cy=\"1.5\" r=\"1\" fill=\"#1a1a1a\"/><circle cx=\"4.5\" cy=\"4.5\" r=\"1\" fill=\"#1a1a1a\"/>",
	"<path d=\"M0 3H6M3 0V6\" stroke=\"#1a1a1a\" stroke-width=\".7\"/>",
};
#define HATCHES (sizeof(hatches) / sizeof(*hatches))
_Static_assert(COLOURS *HATCHES == SVG_PAINTS, "every colour with every hatch");

static const char *const anchors[] = { [SVG_START] = "start", [SVG_MIDDLE] = "middle", [SVG_END] = "end" };

const char *svg_paint(size_t owner, char buf[SVG_PAINT])
{
	snprintf(buf, SVG_PAINT, "url(#p%u)", (unsigned int)(owner % SVG_PAINTS));
	return buf;
}

const char *svg_colour(size_t owner)
{
	return colours[owner % COLOURS];
}

/* Neighbours differ in both. */
static void paints(struct svg *s, size_t count)
{
	fprintf(s->file, "<defs>\n");
	for (size_t i = 0; i < count && i < SVG_PAINTS; i++)
		fprintf(s->file,
			"<pattern id=\"p%zu\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
			"<rect width=\"6\" height=\"6\" fill=\"%s\"/>%s</pattern>\n",
			i, colours[i % COLOURS], hatches[(i + i / COLOURS) % HATCHES]);
	fprintf(s->file, "</defs>\n");
}

void svg_begin(struct svg *s, double width, double height, const char *title, const char *description, size_t count)
{
	*s = (struct svg){ 0 };
	s->file = open_memstream(&s->text, &s->length);
	if (!s->file)
		diag_fatal("out of memory");
	fprintf(s->file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" "
		"aria-labelledby=\"title description\" font-family=\"'DejaVu Sans', Verdana, Arial, sans-serif\">\n"
		"<title id=\"title\">",
		width, height, width, height);
	svg_escaped(s, title);
	fprintf(s->file, "</title>\n<desc id=\"description\">");
	svg_escaped(s, description);
	fprintf(s->file, "</desc>\n");
	paints(s, count);
	fprintf(s->file, "<rect width=\"%g\" height=\"%g\" fill=\"#fff\"/>\n", width, height);
}

char *svg_end(struct svg *s)
{
	fprintf(s->file, "</svg>\n");
	if (ferror(s->file) || fclose(s->file))
		diag_fatal("out of memory");
	return s->text;
}

/* Bytes of the character at text: 1 to 4, or 0 where there is none that XML takes. */
static size_t character(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t length = c[0] < 0x80 ? 1 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2 : c[0] >= 0xe0 && c[0] < 0xf0 ? 3 : 4;
	uint32_t code = length == 1 ? c[0] : c[0] & (0xff >> (length + 1));
	static const uint32_t least[] = { 0, 0x20, 0x80, 0x800, 0x10000 };

	if (c[0] >= 0xf5 || (c[0] >= 0x80 && c[0] < 0xc2))
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (c[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || (code & 0xfffe) == 0xfffe ||
	    (code >= 0x7f && code < 0xa0))
		return 0;
	return length;
}

static void put_character(struct svg *s, const char *c, size_t length)
{
	switch (length ? *c : '?') {
	case '&':
		fputs("&amp;", s->file);
		break;
	case '<':
		fputs("&lt;", s->file);
		break;
	case '>':
		fputs("&gt;", s->file);
		break;
	case '"':
		fputs("&quot;", s->file);
		break;
	default:
		fprintf(s->file, "%.*s", length ? (int)length : 1, length ? c : "?");
	}
}

void svg_escaped(struct svg *s, const char *text)
{
	while (*text) {
		size_t length = character(text);

		put_character(s, text, length);
		text += length + !length;
	}
}

/* In parts of the font's size: DejaVu Sans and Verdana are the widest, of others no text gets longer. */
static double character_width(const char *c, size_t length)
{
	if (length > 2)
		return 1.1;
	if (length == 2)
		return 0.8;
	if (strchr("ijlI.,:;|'!()[] ", *c))
		return 0.4;
	if (strchr("mwMW@%", *c))
		return 1.0;
	return *c >= 'A' && *c <= 'Z' ? 0.76 : 0.65;
}

double svg_width(const char *text, double size)
{
	double width = 0;

	while (*text) {
		size_t length = character(text);

		width += character_width(text, length);
		text += length + !length;
	}
	return width * size;
}

static void open_text(struct svg *s, double x, double y, double size, enum svg_anchor anchor, const char *colour)
{
	fprintf(s->file, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" text-anchor=\"%s\" fill=\"%s\">", x, y, size,
		anchors[anchor], colour);
}

void svg_text(struct svg *s, double x, double y, double size, enum svg_anchor anchor, const char *colour, double most,
	      const char *text)
{
	bool cut = most > 0 && svg_width(text, size) > most;
	double left = most - size;

	open_text(s, x, y, size, anchor, colour);
	if (!cut)
		svg_escaped(s, text);
	while (cut && *text) {
		size_t length = character(text);

		left -= character_width(text, length) * size;
		if (left < 0)
			break;
		put_character(s, text, length);
		text += length + !length;
	}
	fprintf(s->file, "%s</text>\n", cut ? "\xe2\x80\xa6" : "");
}

void svg_textf(struct svg *s, double x, double y, double size, enum svg_anchor anchor, const char *colour,
	       const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		diag_fatal("out of memory");
	va_end(ap);
	svg_text(s, x, y, size, anchor, colour, 0, text);
	free(text);
}

void svg_bold(struct svg *s, double x, double y, double size, enum svg_anchor anchor, double most, const char *text)
{
	fprintf(s->file, "<g font-weight=\"bold\">");
	/* Bold letters are wider by a seventh. */
	svg_text(s, x, y, size, anchor, SVG_INK, most * 7 / 8, text);
	fprintf(s->file, "</g>\n");
}

void svg_swatch(struct svg *s, size_t owner, double x, double y)
{
	char paint[SVG_PAINT];

	fprintf(s->file,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\" stroke=\"" SVG_INK
		"\" stroke-width=\".6\"/>\n",
		x, y, svg_paint(owner, paint));
}

void svg_line(struct svg *s, double x1, double y1, double x2, double y2, const char *colour, double width)
{
	fprintf(s->file, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\" stroke-width=\"%g\" fill=\"none\"/>\n", x1, y1,
		x2, y2, colour, width);
}

void svg_hint(struct svg *s, const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		diag_fatal("out of memory");
	va_end(ap);
	fprintf(s->file, "<title>");
	svg_escaped(s, text);
	fprintf(s->file, "</title>");
	free(text);
}

const char *svg_count(uint64_t value, char buf[32])
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	char *out = buf;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
	return buf;
}
