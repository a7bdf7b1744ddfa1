/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the number of ring points with which each backend's share matches its weight. Pure, and from names and weights
 * alone: the counts that there are already don't matter, so that a second run finds the same.
 *
 * In rounds, from the counts given: each count is scaled by wanted over actual share, damped more from round to round.
 * From each round's counts single points are then added and taken away, at whoever is farthest off, as long as that
 * helps. What fits best is kept.
 */
#ifndef RINGLB_TUNE_H
#define RINGLB_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tune_member {
	const char *identity;
	uint32_t weight; /* 0: takes no part */
	uint32_t points; /* to start from: vnodes * weight; or what it has, where it is fixed */
	bool fixed;      /* keeps its points: only the others' shares are looked at */
};

/*
 * points[i] gets the count of member i: at least 1 for those that take part and are not fixed, else what is given.
 * Shares that are too small weigh half as much as such that are too large. 0; -EINVAL for two of one identity;
 * -E2BIG where the points to start from are more than RINGLB_MAX_POINTS; -ENOMEM.
 */
int tune(const struct tune_member *member, size_t members, uint32_t *points);

#endif
