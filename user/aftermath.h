/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What follows a switch, and can be done again: after a commit, or by the next command when that commit was killed. */
#ifndef RINGLB_AFTERMATH_H
#define RINGLB_AFTERMATH_H

#include "datapath.h"
#include "state.h"

/*
 * Sets the backends' incarnations to the state's, frees the indices that it does not use, deletes the flow table's entries
 * that settled arcs or dead backends made void, makes the moved arcs' stamps good, and then says that nothing is pending.
 * s is the state that is published, was the one before, whose tables are still in place; a grace period lies behind.
 *
 * The stamps: up to the switch packets went by the tables of was, after the plan had read the stamps there.
 */
void aftermath_of(struct datapath *dp, const struct state *was, const struct state *s);
/*
 * The same where nobody knows any more what was before: then every moved arc has had its last old packet now, as far as
 * anyone can tell, and s says so too.
 */
void aftermath(struct datapath *dp, struct state *s);

#endif
