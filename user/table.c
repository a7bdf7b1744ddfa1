// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../include/ringlb_abi.h"

#define MAX_ENTRIES (4 * RINGLB_MAX_POINTS)
#define MAX_BITS 22u
#define POINTS_PER_BUCKET_BITS 2 /* four: with the sentinel, what the data plane compares in one step */

/* What an entry stands for, but its place. */
struct entry {
	uint32_t low; /* bits of the last position */
	uint16_t owner;
	bool moved;
};

static unsigned int width(uint64_t value)
{
	return value ? 64 - (unsigned int)__builtin_clzll(value) : 0;
}

/* K: the buckets that make about four points each, between 2.8 and 5.7, or more where the owner's bits need it. */
static unsigned int table_bits(size_t arcs, size_t owners)
{
	/* Half the width of the square is the logarithm, rounded. */
	unsigned int log2 = width((uint64_t)arcs * arcs) / 2;
	unsigned int bits = log2 > POINTS_PER_BUCKET_BITS ? log2 - POINTS_PER_BUCKET_BITS : 1;
	unsigned int least = width(owners - 1) + 1;

	if (bits < least)
		bits = least;
	return bits < MAX_BITS ? bits : MAX_BITS;
}

static uint32_t low_mask(unsigned int bits)
{
	return UINT32_MAX >> bits;
}

static uint32_t make_point(unsigned int bits, uint32_t position, const struct arc *arc)
{
	return position << bits | (uint32_t)arc->moved << (bits - 1) | arc->owner;
}

static struct entry read_point(unsigned int bits, uint32_t point)
{
	return (struct entry){
		.low = point >> bits,
		.owner = (uint16_t)(point & ((1u << (bits - 1)) - 1)),
		.moved = point >> (bits - 1) & 1,
	};
}

/* The offset behind a part, where the next one starts. */
static uint32_t behind(uint32_t offset, size_t count, size_t size)
{
	return (uint32_t)((offset + count * size + RINGLB_REGION_ALIGN - 1) & ~(size_t)(RINGLB_REGION_ALIGN - 1));
}

int table_layout(const struct arcs *arcs, size_t owners, struct table_layout *out)
{
	struct table_layout l = { .owners = (uint32_t)owners };
	uint64_t entries;

	*out = (struct table_layout){ 0 };
	if (!arcs->count)
		return 0;
	if (arcs->count > MAX_ENTRIES)
		return -E2BIG;
	l.bits = table_bits(arcs->count, owners);
	/* A sentinel for each bucket, and a point for each arc that does not end with one. */
	entries = 1ull << l.bits;
	for (size_t i = 0; i < arcs->count; i++)
		entries += (arcs->arc[i].last & low_mask(l.bits)) != low_mask(l.bits);
	if (entries > MAX_ENTRIES)
		return -E2BIG;
	l.points = (uint32_t)entries;
	l.points_off = behind(l.index_off, (1u << l.bits) + 1, sizeof(uint32_t));
	/* The cold part is never less than a line, so a line may be read past the last point (RINGLB_TABLES_SLACK). */
	l.cold_off = behind(l.points_off, l.points, sizeof(uint32_t));
	l.owners_off = behind(l.cold_off, l.points, sizeof(struct ringlb_cold));
	l.length = behind(l.owners_off, owners, sizeof(uint16_t));
	*out = l;
	return 0;
}

void table_encode(const struct arcs *arcs, const uint16_t *owner, size_t owners, const struct table_layout *layout,
		  void *base)
{
	uint8_t *bytes = base;
	uint32_t *index = (uint32_t *)(bytes + layout->index_off);
	uint32_t *point = (uint32_t *)(bytes + layout->points_off);
	struct ringlb_cold *cold = (struct ringlb_cold *)(bytes + layout->cold_off);
	const struct arc *arc = arcs->arc;
	const unsigned int bits = layout->bits;
	uint32_t n = 0;

	if (!bits)
		return;
	memset(base, 0, layout->length);
	for (uint32_t bucket = 0; bucket < 1u << bits; bucket++) {
		uint32_t end = bucket << (32 - bits) | low_mask(bits);
		bool closed = false;

		index[bucket] = n;
		while (!closed) {
			closed = arc->last >= end;
			point[n] = make_point(bits, closed ? end : arc->last, arc);
			cold[n].previous = arc->previous;
			cold[n].stamp = arc->stamp;
			n++;
			/* The last arc ends with the last bucket: nothing is read behind it. */
			if (arc->last <= end)
				arc++;
		}
	}
	index[1u << bits] = n;
	memcpy(bytes + layout->owners_off, owner, owners * sizeof(*owner));
}

/* Adds an arc, or lengthens the last one where a bucket's end has cut it: join tells that the last one ended so. */
static void append_piece(struct arcs *out, const struct arc *piece, bool join)
{
	struct arc *last = out->count ? &out->arc[out->count - 1] : NULL;

	if (join && last && last->owner == piece->owner && last->moved == piece->moved &&
	    last->previous == piece->previous) {
		last->last = piece->last;
		if (last->stamp < piece->stamp)
			last->stamp = piece->stamp;
	} else {
		out->arc[out->count++] = *piece;
	}
}

/* Reads the points of one bucket, which starts at position `start`. */
static int decode_bucket(const struct table_layout *layout, const void *base, uint32_t start, uint32_t first,
			 uint32_t last, struct arcs *out)
{
	const uint8_t *bytes = base;
	const uint32_t *point = (const uint32_t *)(bytes + layout->points_off);
	const struct ringlb_cold *cold = (const struct ringlb_cold *)(bytes + layout->cold_off);
	const uint32_t mask = low_mask(layout->bits);

	for (uint32_t i = first; i <= last; i++) {
		struct entry e = read_point(layout->bits, point[i]);
		struct arc piece = { .last = start | e.low, .owner = e.owner, .previous = e.owner, .moved = e.moved };

		if (e.owner >= layout->owners || (e.low == mask) != (i == last) ||
		    (i > first && e.low <= read_point(layout->bits, point[i - 1]).low))
			return -EINVAL;
		if (e.moved) {
			piece.previous = cold[i].previous;
			/* The data plane may write it meanwhile. */
			piece.stamp = __atomic_load_n(&cold[i].stamp, __ATOMIC_RELAXED);
			if (piece.previous >= layout->owners)
				return -EINVAL;
		}
		append_piece(out, &piece, i == first);
	}
	return 0;
}

int table_decode(const struct table_layout *layout, const void *base, struct arcs *out)
{
	const uint32_t *index = (const uint32_t *)((const uint8_t *)base + layout->index_off);
	const unsigned int bits = layout->bits;
	struct arcs arcs = { 0 };
	int err = -EINVAL;

	*out = arcs;
	if (!bits)
		return 0;
	if (bits > MAX_BITS || layout->points > MAX_ENTRIES || index[0] != 0 || index[1u << bits] != layout->points)
		return -EINVAL;
	arcs.arc = calloc(layout->points, sizeof(*arcs.arc));
	if (!arcs.arc)
		return -ENOMEM;
	for (uint32_t bucket = 0; bucket < 1u << bits; bucket++) {
		uint32_t first = index[bucket], next = index[bucket + 1];

		if (first >= next || next > layout->points)
			goto fail;
		err = decode_bucket(layout, base, bucket << (32 - bits), first, next - 1, &arcs);
		if (err)
			goto fail;
		err = -EINVAL;
	}
	out->count = arcs.count;
	out->arc = realloc(arcs.arc, arcs.count * sizeof(*arcs.arc));
	if (!out->arc)
		out->arc = arcs.arc;
	return 0;
fail:
	arcs_free(&arcs);
	return err;
}

uint32_t table_search(const struct table_layout *layout, const void *base, uint32_t position)
{
	const uint8_t *bytes = base;
	const uint32_t *index = (const uint32_t *)(bytes + layout->index_off);
	const uint32_t *point = (const uint32_t *)(bytes + layout->points_off);
	const unsigned int bits = layout->bits;
	uint32_t bucket = position >> (32 - bits), key = position << bits;
	uint32_t low = index[bucket], high = index[bucket + 1] - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (point[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
