/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "region.h"

#include <stdlib.h>
#include <string.h>

#include "../include/ringlb_abi.h"
#include "diag.h"

static uint32_t round_up(uint32_t length)
{
	return (length + RINGLB_REGION_ALIGN - 1) & ~(RINGLB_REGION_ALIGN - 1);
}

void regions_init(struct regions *r, size_t tables_bytes)
{
	*r = (struct regions){ .end = (uint32_t)(tables_bytes - RINGLB_TABLES_SLACK) };
}

void regions_add(struct regions *r, uint32_t offset, uint32_t length)
{
	size_t i = r->count;

	if (!length)
		return;
	r->used = xreallocarray(r->used, r->count + 1, sizeof(*r->used));
	for (; i > 0 && r->used[i - 1].offset > offset; i--)
		r->used[i] = r->used[i - 1];
	r->used[i] = (struct region){ offset, round_up(length) };
	r->count++;
}

uint32_t regions_take(struct regions *r, uint32_t length)
{
	uint32_t start = RINGLB_TABLES_HEADER;

	if (!length || length > r->end) /* which would wrap around when it is rounded up */
		return 0;
	length = round_up(length);
	for (size_t i = 0; i <= r->count; i++) {
		uint32_t end = i < r->count ? r->used[i].offset : r->end;

		if (end > start && end - start >= length) {
			regions_add(r, start, length);
			return start;
		}
		if (i < r->count && r->used[i].offset + r->used[i].length > start)
			start = r->used[i].offset + r->used[i].length;
	}
	return 0;
}

void regions_free(struct regions *r)
{
	free(r->used);
	memset(r, 0, sizeof(*r));
}
