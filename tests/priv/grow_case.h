/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An instance whose maps grow, in a mount and a network namespace of its own, and connections to it. Packets are test
 * runs of whatever program the interfaces have:
 *
 *   ra 10.0.0.1/16 ---- rb      rc ---- rd      backends are permanent neighbours on ra: 10.0.1.0 and up
 */
#ifndef RINGLB_TESTS_GROW_CASE_H
#define RINGLB_TESTS_GROW_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "commit.h"

#define GROW_MANY 200u                                /* more backends than the maps of a few have room for */
#define GROW_SMALL "{established: 300, opening: 100}" /* flow tables */
#define GROW_LARGE "{established: 600, opening: 200}"

extern struct instance grow_instance;

int grow_enter(void **state); /* of a group */
int grow_leave(void **state);
/* Attached, and connections from before and from within moved arcs. */
void grow_begin(void);
int grow_end(void **state);

/* Makes the instance run so many backends and such a flow table, attaching it where it is not. 0 or -errno. */
int grow_apply(unsigned int backends, const char *flow_table, struct diag *d);
void grow_applied(unsigned int backends, const char *flow_table); /* without an error */
void grow_quiet(struct diag *d);                                  /* fails where it has an error; empties it */
struct running grow_opened(void);
/* The program that sits on the first or second interface now. */
int grow_attached(size_t interface);

/* New connections, whose first packet comes in on one interface and the next on the other. */
void grow_opens(unsigned int count);
/* Every connection goes on where it was, on both interfaces; or through this program. */
void grow_go_on(void);
void grow_go_on_through(int prog);
/* Not one packet is missing in any sum, nor counted twice. */
void grow_add_up(void);
/* One program everywhere, and nothing left of another. */
void grow_is_whole(void);
unsigned int grow_remembered(void); /* entries of the flow table */

#endif
