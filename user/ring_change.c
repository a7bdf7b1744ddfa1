// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A ring's change: what stays is copied, in its order, and what is new is merged into it, in one pass. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ring_private.h"
#include "sort.h"

#define GONE UINT16_MAX

struct change {
	struct ring_takers old, new;
	uint16_t *number;   /* of an old member among the new; GONE: its points are not taken over */
	uint32_t *rank;     /* of a new member among the identities */
	uint64_t *fresh;    /* sorted points of members that are new, or have another number of them */
	uint64_t *room;     /* what fresh lies in */
	size_t fresh_count; /* of points */
};

static void change_clear(struct change *c)
{
	free(c->old.sorted);
	free(c->new.sorted);
	free(c->number);
	free(c->rank);
	free(c->room);
}

/* Walks both lists of identities; ranks the new ones, marks those that are fresh, and adds up their points. */
static void match(struct change *c, const struct ring_member *old, const struct ring_member *new, uint8_t *is_fresh)
{
	size_t i = 0;

	for (size_t j = 0; j < c->new.count; j++) {
		const struct ring_member *is = c->new.sorted[j];
		int order = -1;

		while (i < c->old.count && (order = strcmp(c->old.sorted[i]->identity, is->identity)) < 0)
			i++;
		c->rank[is - new] = (uint32_t)j;
		if (i < c->old.count && !order && c->old.sorted[i]->points == is->points) {
			c->number[c->old.sorted[i] - old] = (uint16_t)(is - new);
			continue;
		}
		is_fresh[j] = 1;
		c->fresh_count += is->points;
	}
}

static int make_fresh(struct change *c, const struct ring_member *new, const uint8_t *is_fresh)
{
	char *text = malloc(RING_TEXT(c->new.longest));
	uint64_t *end = c->room = malloc((2 * c->fresh_count + 1) * sizeof(*end));

	if (!text || !end) {
		free(text);
		return -ENOMEM;
	}
	for (size_t j = 0; j < c->new.count; j++)
		if (is_fresh[j])
			end = ring_append_points(end, c->new.sorted[j], (uint16_t)(c->new.sorted[j] - new), text);
	c->fresh = sort_by_upper32(c->room, c->room + c->fresh_count, c->fresh_count);
	free(text);
	return 0;
}

static int change_prepare(struct change *c, const struct ring_member *old, size_t olds, const struct ring_member *new,
			  size_t news)
{
	uint8_t *is_fresh;
	int err = ring_takers(old, olds, &c->old);

	if (!err)
		err = ring_takers(new, news, &c->new);
	if (err)
		return err;
	c->number = malloc((olds + 1) * sizeof(*c->number));
	c->rank = calloc(news + 1, sizeof(*c->rank));
	is_fresh = calloc(news + 1, 1);
	err = c->number && c->rank && is_fresh ? 0 : -ENOMEM;
	if (!err) {
		memset(c->number, 0xff, (olds + 1) * sizeof(*c->number));
		match(c, old, new, is_fresh);
		err = make_fresh(c, new, is_fresh);
	}
	free(is_fresh);
	return err;
}

static int make_room(struct ring *r, size_t points)
{
	if (r->spare_room < points) {
		free(r->spare);
		r->spare = malloc(points * sizeof(*r->spare));
		r->spare_room = r->spare ? points : 0;
	}
	if (r->arcs_room < points + 1) {
		struct arc *arc = realloc(r->arcs.arc, (points + 1) * sizeof(*arc));

		if (arc) {
			r->arcs.arc = arc;
			r->arcs_room = points + 1;
		}
	}
	return r->spare_room < points || r->arcs_room < points + 1 ? -ENOMEM : 0;
}

/* The next of the old points that stay, renumbered; or UINT64_MAX, which is behind every point, as no owner is GONE. */
static inline uint64_t next_old(const struct ring *r, const uint16_t *number, size_t *i)
{
	while (*i < r->points) {
		uint64_t p = r->point[(*i)++];
		uint16_t owner = number[(uint16_t)p];

		if (owner != GONE)
			return (p >> 32) << 32 | owner;
	}
	return UINT64_MAX;
}

static bool comes_before(uint64_t a, uint64_t b, const uint32_t *rank)
{
	if (a >> 32 != b >> 32 || b == UINT64_MAX)
		return a < b;
	return rank[(uint16_t)a] < rank[(uint16_t)b];
}

/* Where points go, and at once the arcs that they make. */
struct output {
	uint64_t *point;
	struct arcs_writer arcs;
};

static inline void put(struct output *out, uint64_t point)
{
	*out->point++ = point;
	arcs_put(&out->arcs, point);
}

static void merge(struct ring *r, const struct change *c)
{
	struct output out = { r->spare, arcs_start(r->arcs.arc) };
	uint64_t old;
	size_t i = 0;

	old = next_old(r, c->number, &i);
	for (size_t j = 0; j < c->fresh_count; j++) {
		for (; comes_before(old, c->fresh[j], c->rank); old = next_old(r, c->number, &i))
			put(&out, old);
		put(&out, c->fresh[j]);
	}
	for (; old != UINT64_MAX; old = next_old(r, c->number, &i))
		put(&out, old);
	r->arcs.count = c->new.points ? arcs_end(&out.arcs, r->spare[0]) : 0;
}

int ring_change(struct ring *r, const struct ring_member *old, size_t olds, const struct ring_member *new, size_t news)
{
	struct change c = { 0 };
	uint64_t *swap;
	size_t room;
	int err = change_prepare(&c, old, olds, new, news);

	if (!err)
		err = make_room(r, c.new.points);
	if (!err) {
		merge(r, &c);
		swap = r->point;
		room = r->room;
		r->point = r->spare;
		r->room = r->spare_room;
		r->points = c.new.points;
		r->spare = swap;
		r->spare_room = room;
	}
	change_clear(&c);
	return err;
}

void ring_free(struct ring *r)
{
	free(r->point);
	free(r->spare);
	arcs_free(&r->arcs);
	*r = (struct ring){ 0 };
}
