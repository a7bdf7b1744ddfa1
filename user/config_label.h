/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to config*.c: finding equals among many without comparing each with each. */
#ifndef RINGLB_CONFIG_LABEL_H
#define RINGLB_CONFIG_LABEL_H

#include <stdbool.h>
#include <stddef.h>

struct label {
	const void *bytes; /* borrowed */
	size_t length;
	size_t index; /* of what bears it */
};

/* By bytes, then by index. */
void labels_sort(struct label *label, size_t count);
bool labels_equal(const struct label *a, const struct label *b);
/* The label with these bytes and the lowest index in a sorted array, or NULL. */
const struct label *labels_find(const struct label *label, size_t count, const void *bytes, size_t length);

#endif
