/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef RINGLB_PAGE_PRIVATE_H
#define RINGLB_PAGE_PRIVATE_H

#include <jansson.h>
#include <stdio.h>

/* HTML: what the snapshot says, as plain tables; and a title of one line. */
void page_tables(FILE *to, const json_t *snapshot);
void page_title(FILE *to, const json_t *snapshot);

#endif
