/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between ring.c and ring_change.c only. */
#ifndef RINGLB_RING_PRIVATE_H
#define RINGLB_RING_PRIVATE_H

#include "ring.h"

#define RING_NUMBER_DIGITS 10                                     /* of the largest uint32_t */
#define RING_TEXT(identity) ((identity) + 2 + RING_NUMBER_DIGITS) /* "IDENTITY#NUMBER", and a byte to count into */

/* Arcs as they come out of sorted points, into room for a point more. */
struct arcs_writer {
	struct arc *start, *end;
	uint64_t position; /* of the last point; UINT64_MAX: none yet */
	uint32_t owner;    /* likewise; kept here, so that nothing waits for the arc that was just written */
};

static inline struct arcs_writer arcs_start(struct arc *room)
{
	return (struct arcs_writer){ room, room, UINT64_MAX, UINT32_MAX };
}

/* Of points at one position the first counts; neighbours of one owner are joined. */
static inline void arcs_put(struct arcs_writer *w, uint64_t point)
{
	uint16_t owner = (uint16_t)point;

	if (point >> 32 == w->position)
		return;
	w->position = point >> 32;
	w->end += w->owner != owner;
	w->owner = owner;
	w->end[-1] = (struct arc){ .last = (uint32_t)w->position, .owner = owner, .previous = owner };
}

/* What lies behind the last point belongs to the first one. Returns how many arcs there are. */
static inline size_t arcs_end(struct arcs_writer *w, uint64_t first)
{
	arcs_put(w, (uint64_t)UINT32_MAX << 32 | (uint16_t)first);
	return (size_t)(w->end - w->start);
}

/* The members that have points. */
struct ring_takers {
	const struct ring_member **sorted; /* by identity, which decides between equal positions; to be freed */
	size_t count, points, longest;     /* longest: the longest identity */
};

/* 0, or -errno as ring_build says it. */
int ring_takers(const struct ring_member *member, size_t members, struct ring_takers *out);
/* Appends the points of a member, position << 32 | owner, and returns where they end; text has RING_TEXT bytes. */
uint64_t *ring_append_points(uint64_t *point, const struct ring_member *member, uint16_t owner, char *text);

#endif
