// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hash modulo N, what the others are there to avoid: the upper 20 bits of the key's hash modulo the sum of the weights
 * number a place in the list of backends, each of which stands there weight times in a row.
 */
#include "placement_private.h"

#define NUMBERS RINGLB_MAX_POINTS
#define NUMBER_SHIFT 12u
_Static_assert(NUMBERS == 1ull << (32 - NUMBER_SHIFT), "a number is 2^NUMBER_SHIFT positions");

static int check(const struct placement_input *in, char **why)
{
	return placement_check_points(in->weights, why);
}

static int build(const struct placement_input *in, struct arcs *out, uint32_t *points)
{
	uint64_t *point = malloc(NUMBERS * sizeof(*point));
	uint32_t number = 0;
	int err;

	if (!point)
		return -ENOMEM;
	while (number < NUMBERS) {
		for (size_t i = 0; i < in->takers; i++) {
			uint32_t turns = placement_member_at(in, in->listed[i])->weight;

			for (; turns-- && number < NUMBERS; number++) {
				uint64_t last = ((number + 1ull) << NUMBER_SHIFT) - 1;

				point[number] = last << 32 | in->listed[i];
				if (points)
					points[in->listed[i]]++;
			}
		}
	}
	err = arcs_from_points(point, NUMBERS, out);
	free(point);
	return err;
}

const struct placement placement_modulo = {
	.name = "modulo",
	.summary = "hash modulo the number of backends",
	.use = PLACEMENT_KEYS,
	.check = check,
	.build = build,
	.key = placement_key_xxh64,
};
