// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../include/ringlb_abi.h"
#include "ring_private.h"
#include "sort.h"

/* Writes i in decimal, without a NUL; returns the number of digits. */
static size_t put_number(char *text, uint32_t i)
{
	char reversed[RING_NUMBER_DIGITS];
	size_t digits = 0;

	do {
		reversed[digits++] = '0' + i % 10;
		i /= 10;
	} while (i);
	for (size_t d = 0; d < digits; d++)
		text[d] = reversed[digits - 1 - d];
	return digits;
}

/* Adds one to a decimal number in place; returns its number of digits, which may have grown. */
static size_t increment_number(char *text, size_t digits)
{
	size_t d = digits;

	while (d && text[d - 1] == '9')
		text[--d] = '0';
	if (d) {
		text[d - 1]++;
		return digits;
	}
	text[digits] = '0';
	text[0] = '1';
	return digits + 1;
}

uint32_t ring_point(const char *identity, uint32_t i)
{
	char number[1 + RING_NUMBER_DIGITS] = "#";
	XXH64_state_t state;

	XXH64_reset(&state, 0);
	XXH64_update(&state, identity, strlen(identity));
	XXH64_update(&state, number, 1 + put_number(number + 1, i));
	return XXH64_digest(&state) >> 32;
}

/* The text that is hashed is counted on in place. */
uint64_t *ring_append_points(uint64_t *point, const struct ring_member *member, uint16_t owner, char *text)
{
	size_t length = strlen(member->identity);
	size_t digits = 1;
	char *number = text + length + 1;

	memcpy(text, member->identity, length);
	text[length] = '#';
	number[0] = '0';
	for (uint32_t i = 0; i < member->points; i++) {
		uint64_t hash = XXH64(text, length + 1 + digits, 0);

		*point++ = (hash >> 32) << 32 | owner;
		digits = increment_number(number, digits);
	}
	return point;
}

int arcs_from_points(const uint64_t *point, size_t points, struct arcs *out)
{
	struct arcs_writer w;
	struct arc *arc;

	*out = (struct arcs){ 0 };
	if (!points)
		return 0;
	arc = malloc((points + 1) * sizeof(*arc));
	if (!arc)
		return -ENOMEM;
	w = arcs_start(arc);
	for (size_t i = 0; i < points; i++)
		arcs_put(&w, point[i]);
	out->count = arcs_end(&w, point[0]);
	out->arc = realloc(arc, out->count * sizeof(*arc));
	if (!out->arc)
		out->arc = arc;
	return 0;
}

static int compare_identity(const void *a, const void *b)
{
	const struct ring_member *const *x = a, *const *y = b;

	return strcmp((*x)->identity, (*y)->identity);
}

/* Sets *points to the sum, *longest to the longest identity's length. */
static int check_members(const struct ring_member **sorted, size_t members, size_t *points, size_t *longest)
{
	uint64_t sum = 0;

	*longest = 0;
	for (size_t i = 0; i < members; i++) {
		size_t length = strlen(sorted[i]->identity);

		if (i && !compare_identity(&sorted[i - 1], &sorted[i]))
			return -EINVAL;
		if (length > *longest)
			*longest = length;
		sum += sorted[i]->points;
	}
	if (sum > RINGLB_MAX_POINTS)
		return -E2BIG;
	*points = sum;
	return 0;
}

int ring_takers(const struct ring_member *member, size_t members, struct ring_takers *out)
{
	int err;

	*out = (struct ring_takers){ 0 };
	if (members >= RINGLB_NO_BACKEND)
		return -EINVAL;
	out->sorted = calloc(members + 1, sizeof(*out->sorted));
	if (!out->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < members; i++)
		if (member[i].points)
			out->sorted[out->count++] = &member[i];
	qsort(out->sorted, out->count, sizeof(*out->sorted), compare_identity);
	err = check_members(out->sorted, out->count, &out->points, &out->longest);
	if (err) {
		free(out->sorted);
		out->sorted = NULL;
	}
	return err;
}

/* The points of members that are sorted by identity, sorted; owners are places in the array `member`. */
static int sorted_points(const struct ring_member *member, const struct ring_takers *t, uint64_t **point,
			 uint64_t **room)
{
	char *text = malloc(RING_TEXT(t->longest));
	uint64_t *end = *room = malloc(2 * t->points * sizeof(*end));

	if (!text || !end) {
		free(text);
		return -ENOMEM;
	}
	for (size_t i = 0; i < t->count; i++)
		end = ring_append_points(end, t->sorted[i], (uint16_t)(t->sorted[i] - member), text);
	/* Stable, so equal positions stay in the order of identities. */
	*point = sort_by_upper32(*room, *room + t->points, t->points);
	free(text);
	return 0;
}

int ring_build(const struct ring_member *member, size_t members, struct arcs *out)
{
	uint64_t *point, *room = NULL;
	struct ring_takers t;
	int err;

	*out = (struct arcs){ 0 };
	err = ring_takers(member, members, &t);
	if (err)
		return err;
	if (t.points)
		err = sorted_points(member, &t, &point, &room);
	if (!err && t.points)
		err = arcs_from_points(point, t.points, out);
	free(room);
	free(t.sorted);
	return err;
}

size_t arcs_find(const struct arcs *arcs, uint32_t position)
{
	size_t low = 0, high = arcs->count - 1;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (arcs->arc[middle].last < position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t arcs_length(const struct arcs *arcs, size_t i)
{
	return i ? (uint64_t)arcs->arc[i].last - arcs->arc[i - 1].last : (uint64_t)arcs->arc[i].last + 1;
}

void arcs_shares(const struct arcs *arcs, uint64_t *length, size_t owners)
{
	memset(length, 0, owners * sizeof(*length));
	for (size_t i = 0; i < arcs->count; i++)
		length[arcs->arc[i].owner] += arcs_length(arcs, i);
}

void arcs_free(struct arcs *arcs)
{
	free(arcs->arc);
	*arcs = (struct arcs){ 0 };
}
