/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config_label.h"

#include <stdlib.h>
#include <string.h>

static int compare_bytes(const struct label *x, const struct label *y)
{
	size_t common = x->length < y->length ? x->length : y->length;
	int order = common ? memcmp(x->bytes, y->bytes, common) : 0;

	if (order)
		return order;
	return x->length < y->length ? -1 : x->length > y->length;
}

static int compare(const void *a, const void *b)
{
	const struct label *x = a, *y = b;
	int order = compare_bytes(x, y);

	return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

void labels_sort(struct label *label, size_t count)
{
	if (count)
		qsort(label, count, sizeof(*label), compare);
}

bool labels_equal(const struct label *a, const struct label *b)
{
	return !compare_bytes(a, b);
}

const struct label *labels_find(const struct label *label, size_t count, const void *bytes, size_t length)
{
	const struct label wanted = { .bytes = bytes, .length = length };
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_bytes(&label[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && labels_equal(&label[low], &wanted) ? &label[low] : NULL;
}
