/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How fast the counters of `stats --json` grow: the "rates" of snapshot.h. Pure. */
#ifndef RINGLB_RATES_H
#define RINGLB_RATES_H

#include <jansson.h>

/*
 * stats now and `seconds` before; what was not there before, or was reset, is left out. A new
 * reference.
 */
json_t *rates_between(const json_t *now, const json_t *before, double seconds);

#endif
