// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every point that could be needed is hashed and sorted once; a count says how many of a member's points are on. So a
 * round is a pass over the sorted points, and one point more or less is a matter of its two neighbours.
 */
#include "tune.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../include/ringlb_abi.h"
#include "ring.h"
#include "ring_private.h"
#include "sort.h"

#define ROUNDS 64
#define ROUNDS_POINTS                                                                                                  \
	(1u << 25)             /* passed over in all rounds together, so that a large pool takes seconds, not minutes */
#define CLIMB_STEPS (1u << 17) /* points turned on or off in a round, likewise */
#define CLIMB_FROM 4           /* the round: before it everybody is far off */
#define DAMPING_ROUNDS 16.0    /* after so many, a step is half of what it seems to take */
#define STRIDE 16              /* points of the worst member that are turned on or off together, at most */
#define STRIDE_OF_OTHERS 3
#define SMALL_WEIGHS 0.5
#define SPARE 16u

struct tuner {
	const struct tune_member *member;
	size_t members;
	uint32_t *count, *limit, *best;
	uint32_t *first; /* of a member's points in `where` */
	double *wanted;  /* positions */
	double *scaled;  /* a count before it is rounded */
	uint64_t *length;
	bool has_fixed;
	uint64_t steps;

	/* by place among the sorted points */
	size_t points;
	uint32_t *position, *number; /* number: which one of the owner's */
	uint16_t *owner;
	uint8_t *on;
	uint32_t *where; /* places, by owner and number */
};

static bool is_free(const struct tuner *t, size_t i)
{
	return t->member[i].weight && !t->member[i].fixed;
}

/* How far off a share is. */
static double fault(const struct tuner *t, size_t i)
{
	double ratio = (double)t->length[i] / t->wanted[i];

	if (!is_free(t, i))
		return 0;
	return ratio > 1 ? ratio - 1 : (1 - ratio) * SMALL_WEIGHS;
}

static size_t worst_of_all(const struct tuner *t)
{
	size_t worst = 0;

	for (size_t i = 1; i < t->members; i++)
		if (fault(t, i) > fault(t, worst))
			worst = i;
	return worst;
}

static size_t place_before(const struct tuner *t, size_t place)
{
	do
		place = place ? place - 1 : t->points - 1;
	while (!t->on[place]);
	return place;
}

static size_t place_behind(const struct tuner *t, size_t place)
{
	do
		place = place + 1 < t->points ? place + 1 : 0;
	while (!t->on[place]);
	return place;
}

static bool can_turn(const struct tuner *t, size_t i, bool on)
{
	return is_free(t, i) && (on ? t->count[i] < t->limit[i] : t->count[i] > 1);
}

/* One point of member i more or less. Returns who loses or gains for it. */
static uint16_t turn(struct tuner *t, size_t i, bool on)
{
	size_t place = t->where[t->first[i] + t->count[i] - !on], behind = place_behind(t, place);
	uint32_t arc = t->position[place] - t->position[place_before(t, place)];
	uint16_t other = t->owner[behind];

	t->on[place] = on;
	if (on) {
		t->count[i]++;
		t->length[other] -= arc;
		t->length[i] += arc;
	} else {
		t->count[i]--;
		t->length[i] -= arc;
		t->length[other] += arc;
	}
	t->steps++;
	return other;
}

/*
 * Turns some points of member i, and back. Returns how many are best for it, for `worst` and for those
 * that it concerns, 0 where none makes all of them better than *least, which is lowered to what that leaves.
 */
static int try_stride(struct tuner *t, size_t i, bool on, size_t worst, double *least)
{
	uint16_t other[STRIDE];
	int done = 0, best = 0, most = i == worst ? STRIDE : STRIDE_OF_OTHERS;

	while (done < most && can_turn(t, i, on)) {
		double f = fault(t, worst);

		other[done++] = turn(t, i, on);
		for (int k = 0; k < done; k++)
			f = fmax(f, fault(t, other[k]));
		f = fmax(fault(t, worst), fmax(f, fault(t, i)));
		if (f < *least) {
			*least = f;
			best = done;
		} else if (i != worst && fault(t, i) >= *least) {
			break;
		}
	}
	for (int k = 0; k < done; k++)
		turn(t, i, !on);
	return best;
}

/* Makes the worst share better at nobody's cost beyond that, until that can't be done. */
static void climb(struct tuner *t)
{
	for (t->steps = 0; t->steps < CLIMB_STEPS;) {
		size_t worst = worst_of_all(t), chosen = 0;
		bool large = (double)t->length[worst] > t->wanted[worst];
		double least = fault(t, worst);
		int stride = 0;

		for (size_t i = 0; i < t->members; i++) {
			int n = try_stride(t, i, large != (i == worst), worst, &least);

			if (n) {
				stride = n;
				chosen = i;
			}
		}
		if (!stride)
			return;
		while (stride--)
			turn(t, chosen, large != (chosen == worst));
	}
}

/* Turns on what the counts say and measures the shares. */
static void measure(struct tuner *t)
{
	size_t last = 0;
	uint32_t before;

	memset(t->length, 0, t->members * sizeof(*t->length));
	for (size_t p = 0; p < t->points; p++) {
		t->on[p] = t->number[p] < t->count[t->owner[p]];
		last = t->on[p] ? p : last;
	}
	before = t->position[last];
	for (size_t p = 0; p < t->points; p++) {
		if (!t->on[p])
			continue;
		t->length[t->owner[p]] += t->position[p] - before;
		before = t->position[p];
	}
}

/* What the round's shares ask for; the sum stays, where nobody's count is fixed. */
static void scale(struct tuner *t, double exponent)
{
	double sum = 0, start = 0, factor;

	for (size_t i = 0; i < t->members; i++) {
		if (!is_free(t, i))
			continue;
		t->scaled[i] *= pow(t->wanted[i] / (double)(t->length[i] + 1), exponent);
		t->scaled[i] = fmin(fmax(t->scaled[i], 1), t->limit[i]);
		sum += t->scaled[i];
		start += t->member[i].points;
	}
	factor = t->has_fixed || !(sum > 0) ? 1 : start / sum;
	for (size_t i = 0; i < t->members; i++)
		t->scaled[i] *= factor;
}

static uint64_t sum_of(const uint32_t *count, size_t members)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < members; i++)
		sum += count[i];
	return sum;
}

static void rounds(struct tuner *t)
{
	size_t most = ROUNDS_POINTS / t->points;
	double best = INFINITY;

	if (most > ROUNDS)
		most = ROUNDS;
	for (size_t round = 0; round < most + !most; round++) {
		double left;

		measure(t);
		scale(t, 1 / (1 + (double)round / DAMPING_ROUNDS));
		if (round >= CLIMB_FROM)
			climb(t);
		left = fault(t, worst_of_all(t));
		if (left < best && sum_of(t->count, t->members) <= RINGLB_MAX_POINTS) {
			best = left;
			memcpy(t->best, t->count, t->members * sizeof(*t->best));
		}
		for (size_t i = 0; i < t->members; i++)
			if (is_free(t, i))
				t->count[i] = (uint32_t)fmin(fmax(rint(t->scaled[i]), 1), t->limit[i]);
	}
}

static int lay_out(struct tuner *t, const struct ring_takers *takers, const struct ring_member *all)
{
	uint64_t *room = malloc(2 * t->points * sizeof(*room)), *end = room, *sorted;
	uint16_t *owner = malloc(t->points * sizeof(*owner)); /* in the order in which they are made, as `where` */
	char *text = malloc(RING_TEXT(takers->longest));
	int err = room && owner && text ? 0 : -ENOMEM;

	for (size_t i = 0; i < takers->count && !err; i++) {
		uint16_t member = (uint16_t)(takers->sorted[i] - all);

		t->first[member] = (uint32_t)(end - room);
		for (uint64_t *p = end; p < end + takers->sorted[i]->points; p++)
			owner[p - room] = member;
		end = ring_append_points(end, takers->sorted[i], member, text);
	}
	for (size_t p = 0; p < t->points && !err; p++)
		room[p] = (room[p] >> 32) << 32 | p;
	/* Stable, so equal positions stay in the order of identities. */
	sorted = err ? NULL : sort_by_upper32(room, room + t->points, t->points);
	for (size_t p = 0; p < t->points && !err; p++) {
		uint32_t made = (uint32_t)sorted[p];

		t->position[p] = (uint32_t)(sorted[p] >> 32);
		t->owner[p] = owner[made];
		t->number[p] = made - t->first[owner[made]];
		t->where[made] = (uint32_t)p;
	}
	free(text);
	free(owner);
	free(room);
	return err;
}

static void *array(int *err, size_t count, size_t size)
{
	void *p = calloc(count + 1, size);

	if (!p)
		*err = -ENOMEM;
	return p;
}

static int allocate(struct tuner *t)
{
	int err = 0;

	t->count = array(&err, t->members, sizeof(*t->count));
	t->limit = array(&err, t->members, sizeof(*t->limit));
	t->best = array(&err, t->members, sizeof(*t->best));
	t->first = array(&err, t->members, sizeof(*t->first));
	t->wanted = array(&err, t->members, sizeof(*t->wanted));
	t->scaled = array(&err, t->members, sizeof(*t->scaled));
	t->length = array(&err, t->members, sizeof(*t->length));
	return err;
}

static int allocate_points(struct tuner *t)
{
	int err = 0;

	t->position = array(&err, t->points, sizeof(*t->position));
	t->number = array(&err, t->points, sizeof(*t->number));
	t->owner = array(&err, t->points, sizeof(*t->owner));
	t->on = array(&err, t->points, sizeof(*t->on));
	t->where = array(&err, t->points, sizeof(*t->where));
	return err;
}

static void clear(struct tuner *t)
{
	free(t->count);
	free(t->limit);
	free(t->best);
	free(t->first);
	free(t->wanted);
	free(t->scaled);
	free(t->length);
	free(t->position);
	free(t->number);
	free(t->owner);
	free(t->on);
	free(t->where);
}

/* Counts to start from, and how far they may grow: twice as far as that, or as the others' points for their weight. */
static void start(struct tuner *t)
{
	uint64_t weights = 0, points = 0;

	for (size_t i = 0; i < t->members; i++) {
		const struct tune_member *m = &t->member[i];

		t->count[i] = t->best[i] = m->points;
		t->scaled[i] = m->points;
		weights += m->weight;
		points += m->weight ? m->points : 0;
		t->has_fixed |= m->weight && m->fixed;
	}
	for (size_t i = 0; i < t->members; i++) {
		const struct tune_member *m = &t->member[i];
		double usual = m->weight ? (double)m->weight * (double)points / (double)weights : 0;

		t->wanted[i] = m->weight ? 0x1p32 * m->weight / (double)weights : 1;
		t->limit[i] = !m->weight ? 0 :
			      m->fixed   ? m->points :
					   (uint32_t)fmin(2 * fmax(m->points, usual) + SPARE, RINGLB_MAX_POINTS);
		t->points += t->limit[i];
	}
}

/* Checks what is given as a ring would, and then hashes up to the limits. */
static int prepare(struct tuner *t, struct ring_member *ring, struct ring_takers *takers)
{
	int err;

	for (size_t i = 0; i < t->members; i++)
		ring[i] = (struct ring_member){ t->member[i].identity, t->member[i].weight ? t->member[i].points : 0 };
	err = ring_takers(ring, t->members, takers);
	if (err)
		return err;
	for (size_t i = 0; i < t->members; i++)
		ring[i].points = t->limit[i];
	err = allocate_points(t);
	return err ? err : lay_out(t, takers, ring);
}

static int tune_sorted(const struct tune_member *member, size_t members, uint32_t *points)
{
	struct tuner t = { .member = member, .members = members };
	struct ring_member *ring = calloc(members + 1, sizeof(*ring));
	struct ring_takers takers = { 0 };
	int err = allocate(&t);

	if (!ring)
		err = -ENOMEM;
	if (!err) {
		start(&t);
		err = prepare(&t, ring, &takers);
	}
	/* Of one alone there is nothing to find. */
	if (!err && takers.count > 1)
		rounds(&t);
	if (!err)
		memcpy(points, t.best, members * sizeof(*points));
	free(takers.sorted);
	free(ring);
	clear(&t);
	return err;
}

static int by_identity(const void *a, const void *b)
{
	const struct tune_member *const *x = a, *const *y = b;

	return strcmp((*x)->identity, (*y)->identity);
}

/* Sums of fractions depend on their order, and so does who of two equals is chosen: it is the identities', never the caller's. */
int tune(const struct tune_member *member, size_t members, uint32_t *points)
{
	const struct tune_member **order = calloc(members + 1, sizeof(*order));
	struct tune_member *sorted = calloc(members + 1, sizeof(*sorted));
	uint32_t *out = calloc(members + 1, sizeof(*out));
	int err = order && sorted && out ? 0 : -ENOMEM;

	for (size_t i = 0; i < members && !err; i++)
		order[i] = &member[i];
	if (!err)
		qsort(order, members, sizeof(*order), by_identity);
	for (size_t i = 0; i < members && !err; i++)
		sorted[i] = *order[i];
	if (!err)
		err = tune_sorted(sorted, members, out);
	for (size_t i = 0; i < members && !err; i++)
		points[order[i] - member] = out[i];
	free(out);
	free(sorted);
	free(order);
	return err;
}
