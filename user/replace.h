/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Other programs and maps in the place of those that run, with the same state, under traffic:
 *
 * 1. The new ones are made beside, with everything that runs written into those maps that can't be shared. So both
 *    steer alike, whichever a packet meets. A flow table that can't be shared is frozen in both: nothing new is
 *    remembered, and flows open where their arcs' old owners are, as with a full table. Then it is copied.
 * 2. Their pins take the place of the old ones, by exchanging two directories: from here on they are what runs.
 * 3. The links get the new program, one by one; a grace period.
 * 4. What packets left in the former maps since step 1 is added: flows, stamps, counters. The former pins go.
 *
 * Killed in 1, the next command removes what was made; from 2 on it does the rest.
 */
#ifndef RINGLB_REPLACE_H
#define RINGLB_REPLACE_H

#include "commit.h"

/*
 * Puts a datapath of these sizes in r->dp's place, made by this ringlb; r's and, unless NULL, next's tables are then
 * said to lie where they lie in the new map. 0, or -errno with a message, and what ran still runs.
 */
int replace(const struct instance *i, struct running *r, struct state *next, const struct datapath_sizes *sizes,
	    struct diag *d);
/* The same with this ringlb's program, and sizes as they are or, for maps of another ABI, as they are made. */
int replace_program(const struct instance *i, struct running *r, struct diag *d);
/* Completes or takes back what a killed command left, saying so with a warning. 0, or -errno with a message. */
int replace_repair(const struct instance *i, struct running *r, struct diag *d);

#endif
