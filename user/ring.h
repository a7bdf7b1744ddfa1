/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring: weighted consistent hashing. Pure, deterministic: the order of the members never matters.
 *
 * Point i of a member lies at the upper 32 bits of XXH64 (seed 0) of the text "IDENTITY#i". The owner of a position is
 * the member of the first point at or after it, wrapping to the first point. Of points at one position the one whose
 * identity comes first in byte order owns.
 */
#ifndef RINGLB_RING_H
#define RINGLB_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A stretch of positions with one owner: from just after the arc before it (the first: from 0) up to and with last.
 * A list of arcs covers 0 to 2^32 - 1 without gap, sorted, the last one ending at UINT32_MAX: the stretch behind the
 * last point, which belongs to the first point's owner, is an arc of its own there.
 */
struct arc {
	uint32_t last;
	uint16_t owner;    /* index of a member */
	uint16_t previous; /* equal to owner where not moved */
	uint32_t stamp;    /* seconds, ringlb_now(): the last packet that went to previous; 0 where not moved */
	bool moved;
	uint8_t zero[3]; /* so that equal arcs are equal bytes */
};

struct arcs {
	struct arc *arc;
	size_t count; /* 0 only for no member at all */
};

struct ring_member {
	const char *identity;
	uint32_t points; /* 0 takes no part, and may have the identity of another */
};

/* The position of point i of identity. */
uint32_t ring_point(const char *identity, uint32_t i);
/*
 * Builds the arcs of the members' ring, neighbours with one owner merged; to be freed with arcs_free. Sorts once.
 * 0; -EINVAL for more than 65,534 members or two of one identity; -E2BIG for more than RINGLB_MAX_POINTS points;
 * -ENOMEM.
 */
int ring_build(const struct ring_member *member, size_t members, struct arcs *out);
/*
 * A ring that is changed a member at a time, without making it anew: its points, which its arcs alone don't tell. Takes
 * up to 48 bytes a point.
 */
struct ring {
	uint64_t *point; /* position << 32 | owner, as arcs_from_points takes them */
	uint64_t *spare; /* what the next change writes to */
	size_t points, room, spare_room;
	struct arcs arcs; /* as ring_build makes them, owned by the ring */
	size_t arcs_room;
};
/*
 * Makes the ring of the members what that of the new ones is, byte for byte; `old` are those that it was last made of,
 * none for a ring of zeros. Only members that came, went, or have another number of points cost more than a copy; they
 * are told by their identities. Errors as ring_build, the ring being as before.
 */
int ring_change(struct ring *r, const struct ring_member *old, size_t olds, const struct ring_member *new, size_t news);
void ring_free(struct ring *r);
/*
 * The same from points made elsewhere: position << 32 | owner, sorted by position, of which the first at a position
 * counts. 0 or -ENOMEM.
 */
int arcs_from_points(const uint64_t *point, size_t points, struct arcs *out);
/* Index of the arc with this position; arcs->count must not be 0. */
size_t arcs_find(const struct arcs *arcs, uint32_t position);
/* Positions in arc i. */
uint64_t arcs_length(const struct arcs *arcs, size_t i);
/*
 * Adds up the lengths of each owner's arcs: length[owner], of 2^32. owners is the size of length, which is zeroed
 * first.
 */
void arcs_shares(const struct arcs *arcs, uint64_t *length, size_t owners);
void arcs_free(struct arcs *arcs);

#endif
