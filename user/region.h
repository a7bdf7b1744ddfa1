/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Free space in the map tables: first fit between the regions in use. Pure. */
#ifndef RINGLB_REGION_H
#define RINGLB_REGION_H

#include <stddef.h>
#include <stdint.h>

struct region {
	uint32_t offset, length;
};

struct regions {
	struct region *used; /* sorted by offset */
	size_t count;
	uint32_t end; /* bytes of the map that may be used */
};

void regions_init(struct regions *r, size_t tables_bytes);
/* Marks what is in use; length is rounded up to RINGLB_REGION_ALIGN; 0 is ignored. */
void regions_add(struct regions *r, uint32_t offset, uint32_t length);
/* Takes length bytes. The offset, or 0 when no gap is large enough, and for length 0, which nobody means to write. */
uint32_t regions_take(struct regions *r, uint32_t length);
void regions_free(struct regions *r);

#endif
