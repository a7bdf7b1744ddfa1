/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists of services and backends in a snapshot, of which the same one is to be found in another list. Pure. */
#ifndef RINGLB_ENTRIES_H
#define RINGLB_ENTRIES_H

#include <jansson.h>

/* By pool, name, address and identity, as far as an entry has them. A new reference. */
json_t *entries_index(const json_t *list);
/* pool: where what does not say it itself; or NULL. A borrowed reference; NULL: there is none. */
const json_t *entries_find(const json_t *index, const char *pool, const json_t *what);

#endif
