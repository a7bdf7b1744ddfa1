// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A pool's ring: who owns which positions, clockwise from the top; what moves; and the shares beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "svg_private.h"

#define WIDTH 1080.0
#define CENTRE_X 260.0
#define CENTRE_Y 320.0
#define OUTER 225.0
#define INNER 172.0
#define MOVED_OUTER 160.0
#define MOVED_INNER 122.0
#define RIGHT 530.0
#define TOP 84.0
#define CELLS 1440u /* a quarter of a degree each: about a pixel */
#define HATCHED 5u  /* cells that a sector has, on average, to be hatched */
#define MOVES_SHOWN 10u

/* ---- the ring as cells ---- */

static uint64_t cell_start(uint32_t cell)
{
	return ((uint64_t)cell << 32) / CELLS;
}

/* What each owner has in the cell at hand, and what it is owed from those before. */
struct mixer {
	double *here, *owed;
	uint16_t *present;
	size_t count;
};

static void mix(struct mixer *m, uint16_t owner, uint64_t length)
{
	if (!m->here[owner])
		m->present[m->count++] = owner;
	m->here[owner] += (double)length * CELLS / SHARES_ALL;
}

/* Who gets the cell: of those present the one that is owed most, so that all that is drawn is in proportion. */
static uint16_t settle(struct mixer *m)
{
	uint16_t best = m->present[0];

	for (size_t i = 0; i < m->count; i++) {
		m->owed[m->present[i]] += m->here[m->present[i]];
		m->here[m->present[i]] = 0;
	}
	for (size_t i = 1; i < m->count; i++)
		if (m->owed[m->present[i]] > m->owed[best])
			best = m->present[i];
	m->owed[best] -= 1;
	m->count = 0;
	return best;
}

/* The owner of each cell. Where before is given: only of what has changed its owner; `owners` stands for the rest. */
static void cells(const struct arcs *arcs, const struct arcs *before, size_t owners, uint16_t out[CELLS])
{
	struct mixer m = { xcalloc(owners + 1, sizeof(double)), xcalloc(owners + 1, sizeof(double)),
			   xcalloc(owners + 1, sizeof(uint16_t)), 0 };
	size_t i = 0, j = 0;
	uint64_t at = 0;

	for (uint32_t cell = 0; cell < CELLS; cell++) {
		uint64_t end = cell_start(cell + 1);

		while (at < end) {
			const struct arc *a = &arcs->arc[i];
			uint64_t next = a->last + 1ull < end ? a->last + 1ull : end;
			uint16_t owner = a->owner;

			if (before) {
				const struct arc *b = &before->arc[j];

				next = b->last + 1ull < next ? b->last + 1ull : next;
				owner = b->owner == a->owner ? (uint16_t)owners : owner;
				j += b->last + 1ull == next;
			}
			mix(&m, owner, next - at);
			i += a->last + 1ull == next;
			at = next;
		}
		out[cell] = settle(&m);
	}
	free(m.here);
	free(m.owed);
	free(m.present);
}

/* A sector of cells; more than half a circle in two, as an arc of SVG is ambiguous there. */
static void sector(struct svg *s, uint32_t first, uint32_t behind, double outer, double inner)
{
	double a = 2 * M_PI * first / CELLS, b = 2 * M_PI * behind / CELLS;

	if (behind - first > CELLS / 2) {
		uint32_t middle = (first + behind) / 2;

		sector(s, first, middle, outer, inner);
		sector(s, middle, behind, outer, inner);
		return;
	}
	fprintf(s->file, "M%.1f %.1fA%g %g 0 0 1 %.1f %.1fL%.1f %.1fA%g %g 0 0 0 %.1f %.1fz", CENTRE_X + outer * sin(a),
		CENTRE_Y - outer * cos(a), outer, outer, CENTRE_X + outer * sin(b), CENTRE_Y - outer * cos(b),
		CENTRE_X + inner * sin(b), CENTRE_Y - inner * cos(b), inner, inner, CENTRE_X + inner * sin(a),
		CENTRE_Y - inner * cos(a));
}

/* Hatched where an owner's sectors are wide enough for that. next[cell] is the owner's next cell. */
static const char *sectors_fill(size_t owner, uint32_t first, const uint32_t next[CELLS], char paint[SVG_PAINT])
{
	uint32_t count = 0, sectors = 0;

	for (uint32_t i = first; i != UINT32_MAX; i = next[i]) {
		count++;
		sectors += next[i] != i + 1;
	}
	return count < HATCHED * sectors ? svg_colour(owner) : svg_paint(owner, paint);
}

/* One path for each owner: its cells, neighbours joined. first[owner] is its first cell, next[cell] the one behind. */
static void ring_of_cells(struct svg *s, const struct svg_ring *r, const uint16_t cell[CELLS], double outer,
			  double inner)
{
	uint32_t *first = xcalloc(r->owners + 1, sizeof(*first)), next[CELLS];
	char paint[SVG_PAINT];

	memset(first, 0xff, (r->owners + 1) * sizeof(*first));
	for (uint32_t i = CELLS; i-- > 0;) {
		next[i] = first[cell[i]];
		first[cell[i]] = i;
	}
	for (size_t owner = 0; owner < r->owners; owner++) {
		if (first[owner] == UINT32_MAX)
			continue;
		fprintf(s->file, "<path fill=\"%s\" d=\"", sectors_fill(owner, first[owner], next, paint));
		for (uint32_t i = first[owner]; i != UINT32_MAX;) {
			uint32_t start = i, behind;

			do {
				behind = i + 1;
				i = next[i];
			} while (i == behind);
			sector(s, start, behind, outer, inner);
		}
		fprintf(s->file, "\">");
		svg_hint(s, "%s: %.2f %%", r->name[owner], 100 * r->share[owner].share);
		fprintf(s->file, "</path>\n");
	}
	free(first);
}

static void circle(struct svg *s, double radius, const char *fill, const char *stroke)
{
	fprintf(s->file, "<circle cx=\"%g\" cy=\"%g\" r=\"%g\" fill=\"%s\" stroke=\"%s\"/>\n", CENTRE_X, CENTRE_Y,
		radius, fill, stroke);
}

/* A grey ring where nothing is painted. */
static void ground(struct svg *s, double outer, double inner)
{
	circle(s, outer, SVG_REST, "none");
	circle(s, inner, "#fff", "none");
}

static void outline(struct svg *s, double outer, double inner)
{
	circle(s, outer, "none", SVG_INK);
	circle(s, inner, "none", SVG_INK);
}

/* ---- what stands in the ring, below it and above ---- */

static void middle_text(struct svg *s, const struct svg_ring *r)
{
	char text[64];

	if (r->change) {
		snprintf(text, sizeof(text), "%.2f %%", 100 * (double)r->change->moved / SHARES_ALL);
		svg_bold(s, CENTRE_X, CENTRE_Y - 8, 28, SVG_MIDDLE, 0, text);
		svg_text(s, CENTRE_X, CENTRE_Y + 16, 14, SVG_MIDDLE, SVG_INK, 0, "moves");
		svg_textf(s, CENTRE_X, CENTRE_Y + 40, 12, SVG_MIDDLE, SVG_FAINT, "the minimum is %.2f %%",
			  50 * (double)r->change->minimum_twice / SHARES_ALL);
		return;
	}
	snprintf(text, sizeof(text), "%.3f", r->balance.max);
	svg_bold(s, CENTRE_X, CENTRE_Y - 22, 28, SVG_MIDDLE, 0, text);
	svg_text(s, CENTRE_X, CENTRE_Y, 13, SVG_MIDDLE, SVG_INK, 0, "largest share / mean");
	snprintf(text, sizeof(text), "%.3f", r->balance.min);
	svg_bold(s, CENTRE_X, CENTRE_Y + 40, 20, SVG_MIDDLE, 0, text);
	svg_text(s, CENTRE_X, CENTRE_Y + 60, 13, SVG_MIDDLE, SVG_INK, 0, "smallest share / mean");
}

static void rings(struct svg *s, const struct svg_ring *r)
{
	uint16_t cell[CELLS];

	ground(s, OUTER, INNER);
	if (r->arcs->count) {
		cells(r->arcs, NULL, r->owners, cell);
		ring_of_cells(s, r, cell, OUTER, INNER);
	}
	outline(s, OUTER, INNER);
	if (r->change) {
		ground(s, MOVED_OUTER, MOVED_INNER);
		if (r->arcs->count && r->before->count) {
			cells(r->arcs, r->before, r->owners, cell);
			ring_of_cells(s, r, cell, MOVED_OUTER, MOVED_INNER);
		}
		outline(s, MOVED_OUTER, MOVED_INNER);
	}
	svg_line(s, CENTRE_X, CENTRE_Y - OUTER - 7, CENTRE_X, CENTRE_Y - OUTER, SVG_INK, 1.5);
	svg_text(s, CENTRE_X, CENTRE_Y - OUTER - 11, 11, SVG_MIDDLE, SVG_FAINT, 0, "0");
}

static size_t moves_shown(const struct svg_ring *r)
{
	return !r->change ? 0 : r->change->moves < MOVES_SHOWN ? r->change->moves : MOVES_SHOWN;
}

/* Who gives how much to whom, the largest of it. */
static void moves(struct svg *s, const struct svg_ring *r, double y)
{
	size_t shown = moves_shown(r);

	if (!shown)
		return;
	svg_bold(s, 40, y, 12, SVG_START, 0, "What moves");
	for (size_t i = 0; i < shown; i++) {
		const struct share_move *m = &r->change->move[i];

		y += 20;
		svg_text(s, 186, y, 12, SVG_END, SVG_INK, 146, r->name[m->from]);
		svg_line(s, 196, y - 4, 214, y - 4, SVG_FAINT, 1.2);
		fprintf(s->file, "<path d=\"M219 %.1fl-7-3.5v7z\" fill=\"" SVG_FAINT "\"/>\n", y - 4);
		svg_swatch(s, m->to, 228, y - 10);
		svg_text(s, 247, y, 12, SVG_START, SVG_INK, 150, r->name[m->to]);
		svg_textf(s, 480, y, 12, SVG_END, SVG_INK, "%.2f %%", 100 * (double)m->length / SHARES_ALL);
	}
	if (shown < r->change->moves)
		svg_textf(s, 247, y + 20, 11, SVG_START, SVG_FAINT, "and %zu smaller", r->change->moves - shown);
}

static void legend(struct svg *s, const struct svg_ring *r)
{
	double y = CENTRE_Y + OUTER + 26;

	svg_text(s, CENTRE_X, y, 12, SVG_MIDDLE, SVG_FAINT, 0,
		 r->change ? "Outer ring: who owns which positions after the change." :
			     "Who owns which positions of the hash space, clockwise.");
	if (r->change)
		svg_text(s, CENTRE_X, y + 17, 12, SVG_MIDDLE, SVG_FAINT, 0,
			 "Inner ring: what moves, in the colour of its new owner.");
}

static char *description(const struct svg_ring *r)
{
	char *text = xasprintf("%s. Largest share over mean %.4f, smallest %.4f.", r->subtitle, r->balance.max,
			       r->balance.min);
	char *longer;

	if (!r->change)
		return text;
	longer = xasprintf("%s %.2f %% of the hash space moves; the minimum is %.2f %%.", text,
			   100 * (double)r->change->moved / SHARES_ALL,
			   50 * (double)r->change->minimum_twice / SHARES_ALL);
	free(text);
	return longer;
}

char *svg_ring(const struct svg_ring *r)
{
	double below = CENTRE_Y + OUTER + 80, left = below + 20 * ((double)moves_shown(r) + 2);
	double right = TOP + svg_shares_height(r) + 30;
	char *about = description(r);
	struct svg s;

	if (!moves_shown(r))
		left = below;
	svg_begin(&s, WIDTH, left > right ? left : right, r->title, about, r->owners);
	svg_bold(&s, 40, 38, 20, SVG_START, WIDTH - 80, r->title);
	svg_text(&s, 40, 60, 13, SVG_START, SVG_FAINT, WIDTH - 80, r->subtitle);
	rings(&s, r);
	middle_text(&s, r);
	legend(&s, r);
	moves(&s, r, below);
	svg_shares(&s, r, RIGHT, TOP);
	free(about);
	return svg_end(&s);
}
