/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the next state finds room: in the maps that there are, else in larger ones, which take over first. */
#ifndef RINGLB_ROOM_H
#define RINGLB_ROOM_H

#include "commit.h"
#include "encode.h"

/*
 * Finds a place for next in dp, which nothing runs in yet (r NULL), or in r->dp, which is replaced where it has none: r
 * and next refer to the new one then, also where it fails after that. 0, or -errno with a message.
 */
int room_make(const struct instance *i, struct running *r, struct datapath *dp, struct state *next,
	      struct encoding *out, struct diag *d);

#endif
