/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The arcs of a table after a change. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "moved.h"
#include "placement.h"
#include "plan_internal.h"

static int complain(const struct state_pool *next, int err, struct diag *d)
{
	diag_error(d, "pool-too-large", "", "pool %s can't be built: %s", next->name,
		   err == -ENOMEM ?
			   "out of memory" :
			   "too many points: lower vnodes or weights, or settle first if arcs are still moving");
	return err;
}

/*
 * Slow start goes by points where a placement has them for each backend, else by weight, in which these two only know
 * the proportions: multiplied, the weights of all place the others as before.
 */
static uint32_t weight_scale(enum config_placement placement, const struct state_pool *next)
{
	if (placement != CONFIG_MAGLEV && placement != CONFIG_RENDEZVOUS)
		return 1;
	for (size_t i = 0; i < next->backends; i++)
		if (next->backend[i].withheld)
			return HEALTH_SLOW_STEPS;
	return 1;
}

static uint32_t weight_now(const struct state_backend *b, uint32_t scale)
{
	uint64_t weight = (uint64_t)b->weight * scale * (BACKEND_WHOLE - b->withheld) / BACKEND_WHOLE;

	return weight ? (uint32_t)weight : 1;
}

/* With health a backend has fewer points, or none. */
static int build(const struct config_pool *c, const struct state_pool *next, bool healthy, struct arcs *out,
		 struct diag *d)
{
	struct placement_member *member = xcalloc(next->backends + 1, sizeof(*member));
	struct placement_pool pool = { member, next->backends, c->maglev_size };
	uint32_t scale = weight_scale(c->placement, next);
	char *why;
	int err;

	for (size_t i = 0; i < next->backends; i++) {
		const struct state_backend *b = &next->backend[i];
		bool takes = healthy ? backend_takes_flows(b) : b->state == BACKEND_UP;

		member[i] = (struct placement_member){
			.identity = b->identity,
			.weight = !takes  ? 0 :
				  healthy ? weight_now(b, scale) :
					    b->weight,
			.points = healthy ? backend_points(b) : b->points,
			.id = b->id,
		};
	}
	err = placement_build(placement_of(c->placement), &pool, out, NULL, &why);
	free(member);
	if (why)
		diag_error(d, "placement", "", "pool %s can't have placement %s: %s", next->name,
			   config_placement_name(c->placement), why);
	else if (err)
		complain(next, err, d);
	free(why);
	return err;
}

int plan_ring(const struct config_pool *c, struct state_pool *next, struct diag *d)
{
	bool whole = true;
	int err;

	for (size_t i = 0; i < next->backends; i++) {
		const struct state_backend *b = &next->backend[i];

		whole &= b->state != BACKEND_UP || (b->use == HEALTH_USED && !b->withheld);
	}
	err = build(c, next, true, &next->ring, d);
	return err || whole ? err : build(c, next, false, &next->whole, d);
}

/* Nothing that is written in the table would differ. */
static bool table_same(const struct state_pool *old, const struct state_pool *next)
{
	if (old->backends != next->backends || old->arcs.count != next->arcs.count)
		return false;
	for (size_t i = 0; i < next->backends; i++)
		if (old->backend[i].index != next->backend[i].index ||
		    !backend_same(&old->backend[i], &next->backend[i]))
			return false;
	for (size_t i = 0; i < next->arcs.count; i++) {
		const struct arc *a = &old->arcs.arc[i], *b = &next->arcs.arc[i];

		if (a->last != b->last || a->owner != b->owner || a->moved != b->moved || a->previous != b->previous)
			return false;
	}
	return true;
}

/* Where nobody takes flows, nobody owns: established flows still find their previous owner. */
static int ring_or_nobody(const struct state_pool *next, struct arcs *out)
{
	const uint64_t nobody = (uint64_t)UINT32_MAX << 32 | STATE_NOBODY(next);

	return next->ring.count ? arcs_copy(&next->ring, out) : arcs_from_points(&nobody, 1, out);
}

static int change(const struct plan_input *in, const struct state_pool *old, const struct arcs *settled,
		  const struct state_pool *next, struct arcs *out)
{
	uint16_t *number = xcalloc(old->backends + 1, sizeof(*number));
	uint8_t *alive = xcalloc(next->backends + 1, 1);
	struct arcs ring;
	int err = ring_or_nobody(next, &ring);

	for (size_t i = 0; i < old->backends; i++) {
		const struct state_backend *is = plan_same(next, &old->backend[i]);

		number[i] = is ? (uint16_t)(is - next->backend) : MOVED_GONE;
	}
	number[STATE_NOBODY(old)] = (uint16_t)STATE_NOBODY(next);
	for (size_t i = 0; i < next->backends; i++)
		alive[i] = backend_alive(&next->backend[i]);
	if (!err)
		err = arcs_change(settled, number, &ring, alive, in->now, out);
	arcs_free(&ring);
	free(number);
	free(alive);
	return err;
}

/*
 * Leaving backends that no arc sends to and no entry of the flow table names go; the others move up. One that takes flows
 * up to the switch stays: some may have begun since the entries were counted.
 */
static void drop_unneeded(const struct plan_input *in, struct state_pool *next)
{
	uint8_t *needed = xcalloc(next->backends + 1, 1);
	uint16_t *number = xcalloc(next->backends + 1, sizeof(*number));
	size_t kept = 0;

	for (size_t i = 0; i < next->arcs.count; i++)
		needed[next->arcs.arc[i].previous] = 1;
	for (size_t i = 0; i < next->backends; i++) {
		struct state_backend *b = &next->backend[i];

		if (b->state == BACKEND_LEAVING && !needed[i] && b->since != in->now &&
		    !(in->flows && in->flows[b->index])) {
			backend_clear(b);
			continue;
		}
		number[i] = (uint16_t)kept;
		next->backend[kept++] = *b;
	}
	number[next->backends] = (uint16_t)kept;
	next->backends = kept;
	arcs_renumber(&next->arcs, number);
	arcs_renumber(&next->ring, number);
	arcs_renumber(&next->whole, number);
	free(needed);
	free(number);
}

/* Seconds of silence after which arcs settle: flows were promised what ran until this change, too. */
static uint32_t settle_seconds(const struct plan_input *in, const struct config_pool *c)
{
	const struct config_pool *was = in->running ? config_find_pool(in->running->config, c->name) : NULL;
	uint64_t ms = c->settle_after_ms;

	if (was && was->settle_after_ms > ms)
		ms = was->settle_after_ms;
	return (uint32_t)((ms + 999) / 1000);
}

int plan_arcs(const struct plan_input *in, const struct state_pool *old, const struct config_pool *c, bool keep,
	      struct state_pool *next, uint64_t *settled, struct diag *d)
{
	struct arcs was = { 0 };
	uint64_t moved;
	int err = 0;

	if (old)
		err = arcs_copy(&old->arcs, &was);
	if (!err && keep && was.count) {
		moved = arcs_moved(&was);
		arcs_settle(&was, in->now, settle_seconds(in, c),
			    in->settle_force && (!in->settle_pool || !strcmp(in->settle_pool, next->name)));
		if (settled)
			*settled = moved - arcs_moved(&was);
		err = change(in, old, &was, next, &next->arcs);
	} else if (!err) {
		err = arcs_copy(&next->ring, &next->arcs);
	}
	arcs_free(&was);
	if (!err) {
		drop_unneeded(in, next);
		err = table_layout(&next->arcs, next->backends + 1, &next->layout);
	}
	if (err)
		return complain(next, err, d);
	if (old && table_same(old, next)) {
		next->region = old->region;
		next->layout = old->layout;
	}
	return 0;
}
