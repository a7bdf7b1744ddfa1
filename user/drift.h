/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How what runs differs from its configuration file. Pure. */
#ifndef RINGLB_DRIFT_H
#define RINGLB_DRIFT_H

#include <stddef.h>

#include "state.h"

struct drift {
	char **line; /* for people: "live: pool web: ..." of changes made live, "file: ..." of what apply would do */
	size_t lines;
};

/*
 * file: what the file says now, of which it takes ownership; NULL where that can't be known, for the reason in unknown
 * (NULL: none is to be given). now: the stamp of this moment. To be freed with drift_free.
 */
void drift_find(const struct state *running, struct config *file, const char *unknown, uint32_t now, struct drift *out);
void drift_free(struct drift *d);

#endif
