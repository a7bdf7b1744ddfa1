/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What follows a switch, and can be done again: after a commit, or by the next command when that commit was killed. */
#ifndef RINGLB_AFTERMATH_H
#define RINGLB_AFTERMATH_H

#include "datapath.h"
#include "state.h"

/*
 * Sets the backends' incarnations to the state's, frees the indices that it does not use, deletes the flow table's entries
 * that settled arcs or dead backends made void, and then says that nothing is pending. s is the state that is published;
 * a grace period lies behind.
 */
void aftermath(struct datapath *dp, const struct state *s);

#endif
