/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which positions change their owner, from whom to whom, by laying the arcs of before and after over each other. */
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"

/* Sums by (from, to), in an open-addressing table that doubles when half full. */
struct pair_sum {
	uint32_t key; /* from << 16 | to; both are below 65535, so all ones is free */
	uint64_t length;
};

struct pair_table {
	struct pair_sum *slot;
	size_t size, used;
};

#define PAIR_FREE UINT32_MAX

static void pair_table_init(struct pair_table *t, size_t size)
{
	t->slot = xcalloc(size, sizeof(*t->slot));
	t->size = size;
	t->used = 0;
	for (size_t i = 0; i < size; i++)
		t->slot[i].key = PAIR_FREE;
}

/* From the middle of the product: the low bits know nothing of `from`, and all pairs may have one `to`. */
static size_t pair_place(const struct pair_table *t, uint32_t key)
{
	return (key * 0x9e3779b97f4a7c15ull >> 32) & (t->size - 1);
}

static void pair_add(struct pair_table *t, uint32_t key, uint64_t length)
{
	size_t i = pair_place(t, key);

	while (t->slot[i].key != PAIR_FREE && t->slot[i].key != key)
		i = (i + 1) & (t->size - 1);
	if (t->slot[i].key == key) {
		t->slot[i].length += length;
		return;
	}
	t->slot[i] = (struct pair_sum){ key, length };
	if (++t->used * 2 > t->size) {
		struct pair_table bigger;

		pair_table_init(&bigger, t->size * 2);
		for (i = 0; i < t->size; i++)
			if (t->slot[i].key != PAIR_FREE)
				pair_add(&bigger, t->slot[i].key, t->slot[i].length);
		free(t->slot);
		*t = bigger;
	}
}

/* For each old backend, and nobody, the number of the same one among the new, or one of its own behind them. */
static uint16_t *number_old(const struct state_pool *old, const struct state_pool *new)
{
	uint16_t *number = xcalloc(old->backends + 1, sizeof(*number)), next = (uint16_t)STATE_NOBODY(new);
	size_t j = 0;

	number[STATE_NOBODY(old)] = next++;

	for (size_t i = 0; i < old->backends; i++) {
		while (j < new->backends && backend_order(&new->backend[j], &old->backend[i]) < 0)
			j++;
		if (j < new->backends && backend_same(&new->backend[j], &old->backend[i]))
			number[i] = (uint16_t)j;
		else
			number[i] = next++;
	}
	return number;
}

static void overlay(const struct state_pool *old, const struct state_pool *new, const uint16_t *number,
		    struct pair_table *pairs)
{
	size_t i = 0, j = 0;
	uint64_t start = 0;

	while (i < old->arcs.count && j < new->arcs.count) {
		const struct arc *a = &old->arcs.arc[i], *b = &new->arcs.arc[j];
		uint64_t end = (a->last < b->last ? a->last : b->last) + 1ull;

		if (number[a->owner] != b->owner)
			pair_add(pairs, (uint32_t)a->owner << 16 | b->owner, end - start);
		start = end;
		i += a->last + 1ull == end;
		j += b->last + 1ull == end;
	}
}

static uint64_t distance(const struct state_pool *old, const struct state_pool *new, const uint16_t *number)
{
	size_t all = old->backends + new->backends + 2;
	uint64_t *before = xcalloc(all, sizeof(*before)), *after = xcalloc(all, sizeof(*after)), sum = 0;
	uint64_t *own = xcalloc(old->backends + 1, sizeof(*own));

	arcs_shares(&old->arcs, own, old->backends + 1);
	for (size_t i = 0; i <= old->backends; i++)
		before[number[i]] = own[i];
	arcs_shares(&new->arcs, after, new->backends + 1);
	for (size_t i = 0; i < all; i++)
		sum += before[i] > after[i] ? before[i] - after[i] : after[i] - before[i];
	free(own);
	free(after);
	free(before);
	return sum;
}

static int move_order(const void *a, const void *b)
{
	const struct plan_move *x = a, *y = b;
	int order;

	if (x->length != y->length)
		return x->length > y->length ? -1 : 1;
	order = strcmp(x->from, y->from);
	return order ? order : strcmp(x->to, y->to);
}

static const struct state_backend *at(const struct state_pool *p, uint32_t owner)
{
	static const struct state_backend nobody = { .name = "nobody" };

	return owner < p->backends ? &p->backend[owner] : &nobody;
}

/* A backend's name; with its address where the name alone would not tell the two apart. */
static char *move_name(const struct state_backend *b, const struct state_backend *other)
{
	char text[ADDRESS_TEXT];

	if (strcmp(b->name, other->name))
		return xstrdup(b->name);
	return xasprintf("%s (%s)", b->name, address_text(&b->address, text));
}

void plan_diff(const struct state_pool *old, const struct state_pool *new, struct plan_pool *out)
{
	struct pair_table pairs;
	uint16_t *number;

	if (!old->arcs.count || !new->arcs.count)
		return;
	number = number_old(old, new);
	pair_table_init(&pairs, 64);
	overlay(old, new, number, &pairs);
	out->minimum_twice = distance(old, new, number);
	out->move = xcalloc(pairs.used + 1, sizeof(*out->move));
	for (size_t i = 0; i < pairs.size; i++) {
		const struct state_backend *from, *to;

		if (pairs.slot[i].key == PAIR_FREE)
			continue;
		from = at(old, pairs.slot[i].key >> 16);
		to = at(new, pairs.slot[i].key & 0xffff);
		out->move[out->moves++] = (struct plan_move){
			.from = move_name(from, to),
			.to = move_name(to, from),
			.length = pairs.slot[i].length,
		};
		out->moved += pairs.slot[i].length;
	}
	qsort(out->move, out->moves, sizeof(*out->move), move_order);
	free(pairs.slot);
	free(number);
}
