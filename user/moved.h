/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Moved arcs: what a change of owners means for established flows, and when an arc is an ordinary one again. Pure.
 * The rules are those of the project's model (tests/model/), "Changing backends without breaking connections".
 */
#ifndef RINGLB_MOVED_H
#define RINGLB_MOVED_H

#include <stdint.h>

#include "ring.h"

#define MOVED_GONE UINT16_MAX

/*
 * The arcs after a change. old: as they run, with owners numbered before the change; number[o] is the number of that
 * backend after it, MOVED_GONE where it is no longer there. ring: who owns now. alive[n]: flows of backend n after the
 * change may still be served (up, draining or leaving, not cut). now: the stamp of the change. Where both have an owner:
 *  - the same owner, not moved before: an ordinary arc;
 *  - else moved; previous is the old owner or, where it was moved already, stays what it was; its flows are lost anyway
 *    where it is not alive: previous becomes the new owner, and an arc that was not moved before stays ordinary.
 * The stamp is now where the owner changes, else stays. Neighbours that agree are joined, keeping the later stamp.
 * 0 or -ENOMEM.
 */
int arcs_change(const struct arcs *old, const uint16_t *number, const struct arcs *ring, const uint8_t *alive,
		uint32_t now, struct arcs *out);
/*
 * Seconds until a moved arc may settle; 0: now. A stamp is the second in which something came, so that settle_after whole
 * ones have passed only when one more has begun.
 */
uint32_t arc_settles_in(const struct arc *a, uint32_t now, uint32_t settle_after);
/*
 * Makes moved arcs ordinary that have sent nothing but to their owner for settle_after seconds, all of them with force.
 * Returns the number of arcs that settled. The flow table's entries of a settled arc are to be deleted before it moves
 * again.
 */
size_t arcs_settle(struct arcs *arcs, uint32_t now, uint32_t settle_after, bool force);
/* Positions in moved arcs, of 2^32. */
uint64_t arcs_moved(const struct arcs *arcs);
/* Seconds until the last moved arc can settle, at the earliest; 0 when none is moved or it could now. */
uint32_t arcs_settled_in(const struct arcs *arcs, uint32_t now, uint32_t settle_after);
/* A copy; 0 or -ENOMEM. */
int arcs_copy(const struct arcs *from, struct arcs *to);
/* Renumbers owners and previous ones by number[], whose values are all there. */
void arcs_renumber(struct arcs *arcs, const uint16_t *number);

#endif
