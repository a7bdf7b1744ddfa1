/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arcs as the kernel's compressed table (ringlb_abi.h: struct ringlb_service) and back. Pure: works on memory it is
 * given.
 */
#ifndef RINGLB_TABLE_H
#define RINGLB_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "ring.h"

/* Where the parts of a table lie, in bytes from its region's start; each part is aligned to RINGLB_REGION_ALIGN. */
struct table_layout {
	unsigned int bits; /* 0 for a table without owners: nothing is written */
	uint32_t points;   /* with sentinels */
	uint32_t owners;
	uint32_t index_off, points_off, cold_off, owners_off;
	uint32_t length; /* of the region */
};

/*
 * 0, or -E2BIG when the joined arcs pass what a table can hold (4 * RINGLB_MAX_POINTS entries). owners <= 65534; bits
 * makes about four points a bucket, or leaves room for the owners.
 */
int table_layout(const struct arcs *arcs, size_t owners, struct table_layout *out);
/*
 * Writes the whole region at base (layout->length bytes, 64-byte aligned). owner[i] is the kernel's index of backend i.
 * At least RINGLB_TABLES_SLACK bytes of the region lie behind the last point.
 */
void table_encode(const struct arcs *arcs, const uint16_t *owner, size_t owners, const struct table_layout *layout,
		  void *base);
/*
 * The arcs of a table; pieces that a bucket's end cut apart are joined where owner, moved and previous agree, with the
 * later stamp. layout->length is not needed. 0, -EINVAL where the table contradicts itself, -ENOMEM.
 */
int table_decode(const struct table_layout *layout, const void *base, struct arcs *out);
/*
 * What the data plane's search returns: the index in points of the entry that has this position. Branchy and simple,
 * for tests and lookups.
 */
uint32_t table_search(const struct table_layout *layout, const void *base, uint32_t position);

#endif
