// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

/* A pool that changes are tried on: a copy with room for a newcomer, who is the last member. */
struct trial {
	const struct placement *placement;
	struct placement_member *member;
	struct placement_pool pool;
	const struct arcs *arcs;
	char *newcomer;
};

static struct compare_cost cost(const struct trial *t, const struct arcs *before, const struct arcs *after)
{
	struct share_change change;
	struct compare_cost c = { .known = true };

	shares_change_sums(before, after, t->pool.members, &change);
	c.moved = (double)change.moved / SHARES_ALL;
	c.excess = share_change_excess(&change);
	return c;
}

/* Builds the pool as it is now. *built false: it can't be expressed. 0 or -ENOMEM. */
static int build(const struct trial *t, struct arcs *out, bool *built)
{
	char *why;
	int err = placement_build(t->placement, &t->pool, out, NULL, &why);

	free(why);
	*built = !err;
	return err == -ENOMEM ? err : 0;
}

/* From what is there to what the members are now. */
static int try_change(const struct trial *t, const struct arcs *before, struct compare_cost *out)
{
	struct arcs after;
	int err = build(t, &after, &out->known);

	if (!err && out->known)
		*out = cost(t, before, &after);
	arcs_free(&after);
	return err;
}

static uint32_t rounded(uint64_t a, uint64_t b)
{
	return b ? (uint32_t)((a + b / 2) / b) : 0;
}

static int try_add(struct trial *t, struct compare_cost *out)
{
	struct placement_member *m = &t->member[t->pool.members - 1];
	uint64_t weights = 0, points = 0, takers = 0;
	uint32_t id = 0;
	int err;

	for (size_t i = 0; i + 1 < t->pool.members; i++) {
		const struct placement_member *other = &t->member[i];

		id = other->id > id ? other->id : id;
		takers += other->weight != 0;
		weights += other->weight;
		points += other->weight ? other->points : 0;
	}
	m->weight = rounded(weights, takers);
	m->points = rounded(points * m->weight, weights);
	m->id = id + 1;
	err = try_change(t, t->arcs, out);
	m->weight = 0;
	return err;
}

static int try_remove(struct trial *t, size_t gone, struct comparison *out)
{
	uint32_t weight = t->member[gone].weight;
	struct compare_cost c;
	struct arcs after;
	char *why;
	int err;

	t->member[gone].weight = 0;
	err = placement_build_without(t->placement, &t->pool, t->arcs, (uint16_t)gone, &after, &why);
	t->member[gone].weight = weight;
	free(why);
	if (!err) {
		c = cost(t, t->arcs, &after);
		out->removals++;
		out->remove.moved += c.moved;
		out->remove.excess += c.excess;
		if (c.moved > out->remove_worst.moved)
			out->remove_worst.moved = c.moved;
		if (c.excess > out->remove_worst.excess)
			out->remove_worst.excess = c.excess;
	}
	arcs_free(&after);
	return err == -ENOMEM ? err : 0;
}

/* The last one can't be taken away: then nothing would be left to compare. */
static int try_removals(struct trial *t, size_t takers, struct comparison *out)
{
	size_t wanted = takers < COMPARE_REMOVALS ? takers : COMPARE_REMOVALS, taker = 0;
	int err = 0;

	for (size_t i = 0; i < t->pool.members && takers > 1 && !err; i++) {
		if (!t->member[i].weight)
			continue;
		/* The k-th of them is taken where k * wanted / takers grows. */
		if (taker * wanted / takers != (taker + 1) * wanted / takers)
			err = try_remove(t, i, out);
		taker++;
	}
	out->remove.known = out->remove_worst.known = out->removals != 0;
	if (out->removals) {
		out->remove.moved /= (double)out->removals;
		out->remove.excess /= (double)out->removals;
	}
	return err;
}

/* The ring's points are counted: they are given their half exactly, and nothing has to be doubled. */
static int try_weight(struct trial *t, struct compare_cost *out)
{
	struct placement_member *m = t->member;
	struct arcs doubled = { 0 };
	const struct arcs *before = t->arcs;
	bool built = true;
	int err = 0;

	while (!m->weight)
		m++;
	if (m->weight % 2) {
		for (size_t i = 0; i < t->pool.members; i++)
			t->member[i].weight *= 2;
		err = build(t, &doubled, &built);
		before = &doubled;
	}
	m->weight += m->weight / 2;
	m->points += m->points / 2;
	if (!err && built)
		err = try_change(t, before, out);
	arcs_free(&doubled);
	return err;
}

/* An identity that is nobody's. */
static char *new_identity(const struct placement_pool *pool)
{
	char *identity = xstrdup("newcomer");
	unsigned int number = 0;

	for (size_t i = 0; i < pool->members;) {
		if (strcmp(pool->member[i].identity, identity)) {
			i++;
			continue;
		}
		free(identity);
		identity = xasprintf("newcomer-%u", ++number);
		i = 0;
	}
	return identity;
}

static void measure(const struct placement_pool *pool, const struct arcs *arcs, const uint32_t *points,
		    struct comparison *out)
{
	struct share *share = xcalloc(pool->members + 1, sizeof(*share));
	uint32_t *weight = xcalloc(pool->members + 1, sizeof(*weight));
	struct table_layout layout;

	for (size_t i = 0; i < pool->members; i++) {
		weight[i] = pool->member[i].weight;
		out->points += points[i];
	}
	out->balance = shares_measure(arcs, weight, pool->members, share);
	if (!table_layout(arcs, pool->members + 1, &layout))
		out->table_bytes = layout.length;
	free(weight);
	free(share);
}

int compare_placement(const struct placement *p, const struct placement_pool *pool, const struct arcs *arcs,
		      const uint32_t *points, struct comparison *out)
{
	struct trial t = { .placement = p, .pool = *pool, .arcs = arcs };
	size_t takers = 0;
	int err;

	*out = (struct comparison){ 0 };
	measure(pool, arcs, points, out);
	for (size_t i = 0; i < pool->members; i++)
		takers += pool->member[i].weight != 0;
	if (!takers)
		return 0;
	t.newcomer = new_identity(pool);
	t.member = xcalloc(pool->members + 1, sizeof(*t.member));
	memcpy(t.member, pool->member, pool->members * sizeof(*t.member));
	t.member[t.pool.members++].identity = t.newcomer;
	t.pool.member = t.member;
	err = try_add(&t, &out->add);
	if (!err)
		err = try_removals(&t, takers, out);
	if (!err)
		err = try_weight(&t, &out->weight);
	free(t.member);
	free(t.newcomer);
	return err;
}
