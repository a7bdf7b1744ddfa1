// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ring of ring.h. */
#include "placement_private.h"

static int check(const struct placement_input *in, char **why)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < in->takers; i++)
		sum += placement_member_at(in, in->listed[i])->points;
	return placement_check_points(sum, why);
}

static int build(const struct placement_input *in, struct arcs *out, uint32_t *points)
{
	struct ring_member *member = calloc(in->pool->members, sizeof(*member));
	int err;

	if (!member)
		return -ENOMEM;
	for (size_t i = 0; i < in->pool->members; i++) {
		const struct placement_member *m = &in->pool->member[i];

		member[i] = (struct ring_member){ m->identity, m->weight ? m->points : 0 };
		if (points)
			points[i] = member[i].points;
	}
	err = ring_build(member, in->pool->members, out);
	free(member);
	return err;
}

const struct placement placement_ring = {
	.name = "ring",
	.summary = "a weighted ring of virtual nodes",
	.use = PLACEMENT_FLOWS,
	.check = check,
	.build = build,
	.key = placement_key_xxh64,
};
