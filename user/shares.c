// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shares.h"

#include <stdlib.h>

#include "diag.h"

struct balance shares_measure(const struct arcs *arcs, const uint32_t *weight, size_t owners, struct share *out)
{
	struct balance b = { 0 };
	uint64_t weights = 0;
	bool first = true;

	for (size_t i = 0; i < owners; i++) {
		out[i] = (struct share){ 0 };
		weights += weight[i];
	}
	for (size_t i = 0; i < arcs->count; i++)
		if (arcs->arc[i].owner < owners)
			out[arcs->arc[i].owner].length += arcs_length(arcs, i);
	for (size_t i = 0; i < owners; i++) {
		struct share *s = &out[i];

		s->share = (double)s->length / SHARES_ALL;
		if (!weight[i])
			continue;
		s->expected = (double)weight[i] / (double)weights;
		s->ratio = s->share / s->expected;
		b.max = first || s->ratio > b.max ? s->ratio : b.max;
		b.min = first || s->ratio < b.min ? s->ratio : b.min;
		first = false;
	}
	return b;
}

/* Sums by (from, to), in an open-addressing table that doubles when half full. */
struct pair_table {
	struct share_move *slot; /* length 0: free */
	size_t size, used;
};

static void pair_add(struct pair_table *t, uint16_t from, uint16_t to, uint64_t length)
{
	uint64_t key = (uint64_t)from << 16 | to;
	size_t i = key * 0x9e3779b97f4a7c15u >> 32 & (t->size - 1);

	while (t->slot[i].length && (t->slot[i].from != from || t->slot[i].to != to))
		i = (i + 1) & (t->size - 1);
	t->used += !t->slot[i].length;
	t->slot[i].from = from;
	t->slot[i].to = to;
	t->slot[i].length += length;
	if (t->used * 2 > t->size) {
		struct pair_table bigger = { xcalloc(2 * t->size, sizeof(*bigger.slot)), 2 * t->size, 0 };

		for (i = 0; i < t->size; i++)
			if (t->slot[i].length)
				pair_add(&bigger, t->slot[i].from, t->slot[i].to, t->slot[i].length);
		free(t->slot);
		*t = bigger;
	}
}

/* Fills in moved, and adds to pairs where they are not NULL. gain[owner]: what it has after, less what it had before. */
static void overlay(const struct arcs *before, const struct arcs *after, int64_t *gain, struct pair_table *pairs,
		    struct share_change *out)
{
	size_t i = 0, j = 0;
	uint64_t start = 0;

	while (i < before->count && j < after->count) {
		const struct arc *a = &before->arc[i], *b = &after->arc[j];
		uint64_t end = (a->last < b->last ? a->last : b->last) + 1ull;

		if (a->owner != b->owner) {
			gain[a->owner] -= (int64_t)(end - start);
			gain[b->owner] += (int64_t)(end - start);
			out->moved += end - start;
			if (pairs)
				pair_add(pairs, a->owner, b->owner, end - start);
		}
		start = end;
		i += a->last + 1ull == end;
		j += b->last + 1ull == end;
	}
}

static void change(const struct arcs *before, const struct arcs *after, size_t owners, struct pair_table *pairs,
		   struct share_change *out)
{
	int64_t *gain = xcalloc(owners + 1, sizeof(*gain));

	*out = (struct share_change){ 0 };
	overlay(before, after, gain, pairs, out);
	for (size_t i = 0; i < owners; i++)
		out->minimum_twice += (uint64_t)llabs(gain[i]);
	free(gain);
}

void shares_change_sums(const struct arcs *before, const struct arcs *after, size_t owners, struct share_change *out)
{
	change(before, after, owners, NULL, out);
}

static int move_order(const void *a, const void *b)
{
	const struct share_move *x = a, *y = b;

	if (x->length != y->length)
		return x->length > y->length ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

void shares_change(const struct arcs *before, const struct arcs *after, size_t owners, struct share_change *out)
{
	struct pair_table pairs = { xcalloc(64, sizeof(*pairs.slot)), 64, 0 };

	change(before, after, owners, &pairs, out);
	for (size_t i = 0; i < pairs.size; i++)
		if (pairs.slot[i].length)
			pairs.slot[out->moves++] = pairs.slot[i];
	qsort(pairs.slot, out->moves, sizeof(*pairs.slot), move_order);
	out->move = pairs.slot;
}

double share_change_excess(const struct share_change *c)
{
	return ((double)c->moved - (double)c->minimum_twice / 2) / SHARES_ALL;
}

void share_change_free(struct share_change *c)
{
	free(c->move);
	*c = (struct share_change){ 0 };
}
