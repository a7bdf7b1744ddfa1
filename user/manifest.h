/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The manifest: the running state as text inside the map tables, switched by the same word as everything else. It is
 * the truth about what runs; arcs are not in it but in the tables themselves. Pure.
 */
#ifndef RINGLB_MANIFEST_H
#define RINGLB_MANIFEST_H

#include <stddef.h>

#include "state.h"
#include "diag.h"

/* JSON text, NUL-terminated, owned by the caller. */
char *manifest_write(const struct state *s);
/*
 * The state that a manifest describes, with the arcs decoded from `tables` (the whole map; its size is checked against
 * every offset). NULL with a message in d where the two contradict themselves.
 */
struct state *manifest_read(const char *text, size_t length, const void *tables, size_t tables_bytes, struct diag *d);

#endif
