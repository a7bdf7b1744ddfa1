// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "replicas.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int replicas_init(struct replicas *r, const struct arcs *arcs, size_t owners, const char *const *zone, uint16_t nobody)
{
	*r = (struct replicas){ .arcs = arcs, .zone = zone, .owners = owners, .nobody = nobody };
	r->seen = calloc(owners + 1, sizeof(*r->seen));
	r->walked = calloc(owners + 1, sizeof(*r->walked));
	if (!r->seen || !r->walked) {
		replicas_free(r);
		return -ENOMEM;
	}
	r->look_up = 1;
	for (size_t i = 0; i < arcs->count; i++) {
		uint16_t owner = arcs->arc[i].owner;

		if (owner == nobody || r->seen[owner] == r->look_up)
			continue;
		r->seen[owner] = r->look_up;
		r->distinct++;
	}
	return 0;
}

static bool same_zone(const struct replicas *r, uint16_t a, uint16_t b)
{
	const char *x = r->zone[a], *y = r->zone[b];

	return x == y || (x && y && !strcmp(x, y));
}

static bool zone_is_new(const struct replicas *r, uint16_t owner, const uint16_t *chosen, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (same_zone(r, owner, chosen[i]))
			return false;
	return true;
}

/* The first `wanted` distinct owners from the position on; returns how many there are. */
static size_t walk(struct replicas *r, uint32_t position, size_t wanted)
{
	size_t at = arcs_find(r->arcs, position), found = 0;

	if (wanted > r->distinct)
		wanted = r->distinct;
	if (!++r->look_up) { /* its numbers are used up: none of those seen may look like a new one */
		memset(r->seen, 0, (r->owners + 1) * sizeof(*r->seen));
		r->look_up = 1;
	}
	while (found < wanted) {
		uint16_t owner = r->arcs->arc[at].owner;

		if (owner != r->nobody && r->seen[owner] != r->look_up) {
			r->seen[owner] = r->look_up;
			r->walked[found++] = owner;
		}
		at = at + 1 < r->arcs->count ? at + 1 : 0;
	}
	return found;
}

size_t replicas_find(struct replicas *r, uint32_t position, size_t wanted, uint16_t *out)
{
	size_t found, count = 0;

	if (!r->distinct)
		return 0;
	found = walk(r, position, r->zone ? r->distinct : wanted);
	if (!r->zone) {
		memcpy(out, r->walked, found * sizeof(*out));
		return found;
	}
	/* r->look_up marks all that were met; those that are chosen lose the mark. */
	for (size_t i = 0; i < found && count < wanted; i++) {
		if (!zone_is_new(r, r->walked[i], out, count))
			continue;
		out[count++] = r->walked[i];
		r->seen[r->walked[i]] = 0;
	}
	for (size_t i = 0; i < found && count < wanted; i++)
		if (r->seen[r->walked[i]])
			out[count++] = r->walked[i];
	return count;
}

void replicas_free(struct replicas *r)
{
	free(r->seen);
	free(r->walked);
	r->seen = NULL;
	r->walked = NULL;
}
