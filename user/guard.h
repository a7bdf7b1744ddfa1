/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What keeps a change from being made: the operator's limits. Pure. */
#ifndef RINGLB_GUARD_H
#define RINGLB_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "diag.h"
#include "plan.h"

struct guard {
	double max_move; /* fraction of a pool; negative: the stricter of the running and the wanted configuration's */
	int64_t generation; /* that must run; negative: any */
	bool allow_empty, discard_live;
};

#define GUARD_NONE ((struct guard){ .max_move = -1, .generation = -1 })

/* Adds an error with the remedy for each guard that the plan runs into; true when there was none. running may be NULL. */
bool guard_check(const struct guard *g, const struct state *running, const struct plan *plan, struct diag *d);

#endif
