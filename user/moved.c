/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "moved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool agree(const struct arc *a, const struct arc *b)
{
	return a->owner == b->owner && a->moved == b->moved && a->previous == b->previous;
}

/* Appends, joining with the arc before; the later stamp stays. */
static void append(struct arcs *out, const struct arc *a)
{
	struct arc *last = out->count ? &out->arc[out->count - 1] : NULL;

	if (!last || !agree(last, a)) {
		out->arc[out->count++] = *a;
		return;
	}
	last->last = a->last;
	if ((int32_t)(a->stamp - last->stamp) > 0)
		last->stamp = a->stamp;
}

static struct arc ordinary(uint32_t last, uint16_t owner)
{
	return (struct arc){ .last = last, .owner = owner, .previous = owner };
}

static struct arc changed(const struct arc *old, const uint16_t *number, uint16_t owner, const uint8_t *alive,
			  uint32_t now)
{
	uint16_t was = number[old->owner], stays = old->moved ? number[old->previous] : was;
	bool lost = stays == MOVED_GONE || !alive[stays];

	if (!old->moved && (was == owner || lost))
		return ordinary(0, owner);
	return (struct arc){
		.owner = owner,
		.previous = lost ? owner : stays,
		.moved = true,
		.stamp = was == owner ? old->stamp : now,
	};
}

int arcs_change(const struct arcs *old, const uint16_t *number, const struct arcs *ring, const uint8_t *alive,
		uint32_t now, struct arcs *out)
{
	size_t i = 0, j = 0;

	memset(out, 0, sizeof(*out));
	if (!ring->count || !old->count)
		return arcs_copy(ring, out);
	out->arc = malloc((old->count + ring->count) * sizeof(*out->arc));
	if (!out->arc)
		return -ENOMEM;
	while (i < old->count && j < ring->count) {
		const struct arc *a = &old->arc[i], *b = &ring->arc[j];
		struct arc piece = changed(a, number, b->owner, alive, now);

		piece.last = a->last < b->last ? a->last : b->last;
		append(out, &piece);
		i += a->last == piece.last;
		j += b->last == piece.last;
	}
	return 0;
}

uint32_t arc_settles_in(const struct arc *a, uint32_t now, uint32_t settle_after)
{
	int64_t silent = (int32_t)(now - a->stamp);

	return silent > settle_after ? 0 : (uint32_t)(settle_after + 1 - silent);
}

size_t arcs_settle(struct arcs *arcs, uint32_t now, uint32_t settle_after, bool force)
{
	struct arcs out = { .arc = arcs->arc }; /* in place: never longer */
	size_t settled = 0;

	for (size_t i = 0; i < arcs->count; i++) {
		struct arc a = arcs->arc[i];

		if (a.moved && (force || !arc_settles_in(&a, now, settle_after))) {
			a = ordinary(a.last, a.owner);
			settled++;
		}
		append(&out, &a);
	}
	arcs->count = out.count;
	return settled;
}

uint64_t arcs_moved(const struct arcs *arcs)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < arcs->count; i++)
		if (arcs->arc[i].moved)
			sum += arcs_length(arcs, i);
	return sum;
}

uint32_t arcs_settled_in(const struct arcs *arcs, uint32_t now, uint32_t settle_after)
{
	uint32_t longest = 0;

	for (size_t i = 0; i < arcs->count; i++) {
		uint32_t in = arcs->arc[i].moved ? arc_settles_in(&arcs->arc[i], now, settle_after) : 0;

		longest = in > longest ? in : longest;
	}
	return longest;
}

int arcs_copy(const struct arcs *from, struct arcs *to)
{
	memset(to, 0, sizeof(*to));
	if (!from->count)
		return 0;
	to->arc = malloc(from->count * sizeof(*to->arc));
	if (!to->arc)
		return -ENOMEM;
	memcpy(to->arc, from->arc, from->count * sizeof(*to->arc));
	to->count = from->count;
	return 0;
}

void arcs_renumber(struct arcs *arcs, const uint16_t *number)
{
	for (size_t i = 0; i < arcs->count; i++) {
		arcs->arc[i].owner = number[arcs->arc[i].owner];
		arcs->arc[i].previous = number[arcs->arc[i].previous];
	}
}
