/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Neighbours that the kernel was asked to keep fresh, and that nobody needs any more. */
#ifndef RINGLB_RELEASE_H
#define RINGLB_RELEASE_H

#include "instance.h"
#include "neighbour.h"
#include "state.h"

/*
 * Ends the care for the neighbours of old's backends, but for those that keep's backends (NULL: none) or those of other
 * instances go through.
 */
void release_neighbours(const struct instance *i, struct netlink *nl, const struct state *old,
			const struct state *keep);

#endif
