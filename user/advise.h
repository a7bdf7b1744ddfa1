/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What will hurt, said at attach and apply: each warning with its remedy. */
#ifndef RINGLB_ADVISE_H
#define RINGLB_ADVISE_H

#include "diag.h"
#include "neighbour.h"
#include "nexthop.h"
#include "state.h"

/* Compares what is wanted with the host's interfaces, routes and addresses. */
void advise(struct netlink *nl, const struct state *s, const struct nexthops *hops, struct diag *d);

#endif
