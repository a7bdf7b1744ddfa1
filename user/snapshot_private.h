/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef RINGLB_SNAPSHOT_PRIVATE_H
#define RINGLB_SNAPSHOT_PRIVATE_H

#include "out.h"
#include "snapshot.h"

/* Parts of the document. */
void snapshot_health(struct out *o, const struct snapshot_source *s);
void snapshot_rings(struct out *o, const struct state *s);
void snapshot_meanings(struct out *o);

#endif
