/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The services of a state as the kernel's table (ringlb_abi.h: struct ringlb_root). Pure. */
#ifndef RINGLB_SERVICE_TABLE_H
#define RINGLB_SERVICE_TABLE_H

#include <stdint.h>

#include "state.h"

/* Offsets are from the start of the region, where the slots are. */
struct service_table {
	unsigned int bits; /* log2 of buckets */
	uint32_t hashed; /* entries in the slots: services, one for each service address, one for each list of ranges */
	uint32_t entries; /* those and the services of ranges */
	uint32_t services_off;
	uint32_t ranges_off;
	uint32_t blocks, blocks_off;
	uint32_t prefixes, prefixes_off;
	uint32_t servers_off; /* lists, one for each service whose connection ids name servers */
	uint32_t length;      /* of the region */
};

/* Chooses the number of buckets so that none overflows. 0, or -ENOSPC where no number up to 2^20 does. */
int service_table_layout(const struct state *s, struct service_table *out);
/* Writes the region, which lies at offset region of tables, from base on, and root's services fields. Every pool that has a table has its region. */
void service_table_encode(const struct state *s, const struct service_table *t, uint32_t region, void *base,
			  struct ringlb_root *root);

#endif
