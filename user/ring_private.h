/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between ring.c and ring_change.c only. */
#ifndef RINGLB_RING_PRIVATE_H
#define RINGLB_RING_PRIVATE_H

#include "ring.h"

#define RING_NUMBER_DIGITS 10                                     /* of the largest uint32_t */
#define RING_TEXT(identity) ((identity) + 2 + RING_NUMBER_DIGITS) /* "IDENTITY#NUMBER", and a byte to count into */

/* arcs_from_points into room for points + 1 arcs; returns how many there are. */
size_t arcs_write(const uint64_t *point, size_t points, struct arc *arc);

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
