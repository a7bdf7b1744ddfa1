// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "placement.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "placement_private.h"
#include "sort.h"

const struct placement *const placements[] = {
	&placement_ring,    &placement_maglev, &placement_rendezvous, &placement_nginx,
	&placement_haproxy, &placement_ketama, &placement_slots,      &placement_modulo,
};
const size_t placements_count = sizeof(placements) / sizeof(*placements);

const struct placement *placement_find(const char *name)
{
	for (size_t i = 0; i < placements_count; i++)
		if (!strcmp(placements[i]->name, name))
			return placements[i];
	return NULL;
}

const struct placement *placement_of(enum config_placement p)
{
	static const struct placement *const of[] = {
		[CONFIG_RING] = &placement_ring,
		[CONFIG_MAGLEV] = &placement_maglev,
		[CONFIG_RENDEZVOUS] = &placement_rendezvous,
		[CONFIG_NGINX] = &placement_nginx,
		[CONFIG_HAPROXY] = &placement_haproxy,
	};

	return of[p];
}

int placement_check_points(uint64_t points, char **why)
{
	if (points <= RINGLB_MAX_POINTS)
		return 0;
	*why = xasprintf("it takes %llu points, a table holds %u: lower the weights", (unsigned long long)points,
			 RINGLB_MAX_POINTS);
	return -EINVAL;
}

int placement_arcs(uint64_t *point, size_t n, struct arcs *out)
{
	return arcs_from_points(sort_by_upper32(point, point + n, n), n, out);
}

int placement_key_xxh64(const void *key, size_t length, struct placement_key *out, char **why)
{
	(void)why;
	out->position = (uint32_t)(XXH64(key, length, 0) >> 32);
	out->hash = out->position;
	out->bits = 32;
	return 0;
}

struct named {
	const char *identity;
	uint16_t index;
};

static int compare_identity(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->identity, ((const struct named *)b)->identity);
}

/* Fills in sorted from listed; refuses two of one identity, which every placement would give the same points. */
static int sort_takers(const struct placement_pool *pool, const uint16_t *listed, uint16_t *sorted, size_t takers,
		       char **why)
{
	struct named *named = calloc(takers, sizeof(*named));
	int err = named ? 0 : -ENOMEM;

	for (size_t i = 0; i < takers && !err; i++)
		named[i] = (struct named){ pool->member[listed[i]].identity, listed[i] };
	if (!err)
		qsort(named, takers, sizeof(*named), compare_identity);
	for (size_t i = 0; i < takers && !err; i++) {
		sorted[i] = named[i].index;
		if (i && !compare_identity(&named[i - 1], &named[i])) {
			*why = xasprintf("two backends have the identity \"%s\"", named[i].identity);
			err = -EINVAL;
		}
	}
	free(named);
	return err;
}

/* out NULL: checks only. */
static int check_and_build(const struct placement *p, struct placement_input in, struct arcs *out, uint32_t *points,
			   char **why)
{
	const struct placement_pool *pool = in.pool;
	uint16_t *order;
	int err;

	*why = NULL;
	if (pool->members >= RINGLB_NO_BACKEND) {
		*why = xasprintf("%zu backends: a pool has at most %u", pool->members, RINGLB_NO_BACKEND - 1);
		return -EINVAL;
	}
	order = calloc(2 * pool->members + 1, sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < pool->members; i++) {
		if (!pool->member[i].weight)
			continue;
		order[in.takers++] = (uint16_t)i;
		in.weights += pool->member[i].weight;
	}
	in.listed = order;
	in.sorted = order + in.takers;
	err = in.takers ? p->check(&in, why) : 0;
	if (!err && in.takers && out)
		err = sort_takers(pool, in.listed, order + in.takers, in.takers, why);
	if (!err && in.takers && out)
		err = p->build(&in, out, points);
	free(order);
	return err;
}

int placement_check(const struct placement *p, const struct placement_pool *pool, char **why)
{
	return check_and_build(p, (struct placement_input){ .pool = pool }, NULL, NULL, why);
}

int placement_build(const struct placement *p, const struct placement_pool *pool, struct arcs *out, uint32_t *points,
		    char **why)
{
	*out = (struct arcs){ 0 };
	if (points && pool->members)
		memset(points, 0, pool->members * sizeof(*points));
	return check_and_build(p, (struct placement_input){ .pool = pool }, out, points, why);
}

int placement_build_without(const struct placement *p, const struct placement_pool *pool, const struct arcs *before,
			    uint16_t gone, struct arcs *out, char **why)
{
	*out = (struct arcs){ 0 };
	return check_and_build(p, (struct placement_input){ .pool = pool, .before = before, .gone = gone }, out, NULL,
			       why);
}

int placement_key_hash(const struct placement *p, const void *key, size_t length, struct placement_key *out, char **why)
{
	*out = (struct placement_key){ .slot = -1 };
	*why = NULL;
	return p->key(key, length, out, why);
}

void placement_members(const struct config_pool *c, struct placement_member *member)
{
	for (size_t i = 0; i < c->backends; i++) {
		const struct config_backend *b = &c->backend[i];
		uint64_t points = config_ring_points(c, b);

		member[i] = (struct placement_member){
			.identity = b->identity,
			.weight = b->state == CONFIG_UP ? b->weight : 0,
			.points = points < UINT32_MAX ? (uint32_t)points : UINT32_MAX,
			.id = b->id,
		};
	}
	placement_number(member, c->backends);
}

enum ringlb_affinity placement_affinity(const struct config_pool *c, const struct config_service *s)
{
	const struct placement *p = placement_of(c->placement);

	return p->use == PLACEMENT_SOURCES ? p->affinity : s->affinity;
}
