/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One flow table's entries into another one, while packets use both. Both are frozen: entries change and expire, new
 * ones don't come. Pure: works on memory it is given.
 */
#ifndef RINGLB_FLOWS_COPY_H
#define RINGLB_FLOWS_COPY_H

#include "flows.h"

/*
 * An entry that is there already takes what was established elsewhere unless its own deadline is later. Expired entries
 * come along where there is room. Returns how many that have not expired by the stamp now found none.
 */
uint32_t flows_copy(const struct flows *from, const struct flows *to, uint32_t now);

#endif
