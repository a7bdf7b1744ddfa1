// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * HAProxy's `balance source` with `hash-type consistent`: a server of id I and weight W has W * 16 nodes, node j at
 * full_hash(I * 4096 + j). The owner is the nearest node on either side of the hash, on a tie the one before it. So
 * between neighbouring nodes a and b, what lies up to and with a + floor((b - a) / 2) is a's: a node is written as that
 * one point, the end of its arc, and the owner of a hash is that of the first such point at or after it.
 *
 * full_hash() gives no two numbers the same place, and ids that differ modulo 2^20 have no number in common.
 */
#include "../include/source_hash.h"
#include "address.h"
#include "placement_private.h"
#include "sort.h"

#define MAX_WEIGHT 256u
#define NUMBERS_PER_ID 4096u
#define IDS (1u << 20)

static int compare_u32(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * HAProxy goes through the servers in their order with a number that begins with 1 and grows by one from server to
 * server. Where a server has no id, the number first skips those that are given, and becomes its id.
 */
void placement_number(struct placement_member *member, size_t members)
{
	uint32_t *given = xcalloc(members, sizeof(*given)), next = 1;
	size_t count = 0, passed = 0;

	for (size_t i = 0; i < members; i++)
		if (member[i].id)
			given[count++] = member[i].id;
	qsort(given, count, sizeof(*given), compare_u32);
	for (size_t i = 0; i < members; i++, next++) {
		if (member[i].id)
			continue;
		for (; passed < count && given[passed] <= next; passed++)
			if (given[passed] == next)
				next++;
		member[i].id = next;
	}
	free(given);
}

/* What HAProxy has no way to say, or says of two servers at once. */
static int check(const struct placement_input *in, char **why)
{
	uint32_t *id = calloc(in->takers, sizeof(*id));
	int err = 0;

	if (!id)
		return -ENOMEM;
	for (size_t i = 0; i < in->takers && !err; i++) {
		const struct placement_member *m = placement_member_at(in, in->listed[i]);

		id[i] = m->id % IDS;
		if (!m->id)
			*why = xasprintf("backend \"%s\" has no id, which HAProxy hashes", m->identity);
		else if (m->weight > MAX_WEIGHT)
			*why = xasprintf("backend \"%s\" has weight %u: HAProxy's go to %u", m->identity, m->weight,
					 MAX_WEIGHT);
		err = *why ? -EINVAL : 0;
	}
	qsort(id, err ? 0 : in->takers, sizeof(*id), compare_u32);
	for (size_t i = 1; i < in->takers && !err; i++) {
		if (id[i] != id[i - 1])
			continue;
		*why = xasprintf("two backends have the id %u, or ids that differ by a multiple of %u: HAProxy would "
				 "give them the same nodes",
				 id[i], IDS);
		err = -EINVAL;
	}
	free(id);
	return err ? err : placement_check_points(in->weights * PLACEMENT_HAPROXY_POINTS, why);
}

/* From sorted nodes to the ends of their arcs. The last may end behind the wrap: then it comes first. */
static void nodes_to_ends(uint64_t *node, size_t n)
{
	uint32_t first = (uint32_t)(node[0] >> 32);
	uint64_t last;

	for (size_t i = 0; i < n; i++) {
		uint32_t at = (uint32_t)(node[i] >> 32), next = i + 1 < n ? (uint32_t)(node[i + 1] >> 32) : first;
		uint32_t end = at + (next - at) / 2;

		node[i] = (uint64_t)end << 32 | (uint16_t)node[i];
	}
	last = node[n - 1];
	if (n < 2 || last > node[n - 2])
		return;
	memmove(node + 1, node, (n - 1) * sizeof(*node));
	node[0] = last;
}

static int build(const struct placement_input *in, struct arcs *out, uint32_t *points)
{
	size_t n = in->weights * PLACEMENT_HAPROXY_POINTS;
	uint64_t *node, *end, *sorted;
	int err;

	node = malloc(2 * n * sizeof(*node));
	if (!node)
		return -ENOMEM;
	end = node;
	for (size_t i = 0; i < in->takers; i++) {
		const struct placement_member *m = placement_member_at(in, in->listed[i]);
		uint32_t count = m->weight * PLACEMENT_HAPROXY_POINTS;

		for (uint32_t j = 0; j < count; j++)
			*end++ = (uint64_t)ringlb_avalanche(m->id * NUMBERS_PER_ID + j) << 32 | in->listed[i];
		if (points)
			points[in->listed[i]] = count;
	}
	sorted = sort_by_upper32(node, node + n, n);
	nodes_to_ends(sorted, n);
	err = arcs_from_points(sorted, n, out);
	free(node);
	return err;
}

static int key(const void *bytes, size_t length, struct placement_key *out, char **why)
{
	struct address address;
	char *text = xcalloc(length + 1, 1);
	__be32 client;
	int err;

	memcpy(text, bytes, length);
	err = strlen(text) != length || address_parse(text, &address) || !address_is_ipv4(&address) ? -EINVAL : 0;
	free(text);
	if (err) {
		*why = xasprintf("haproxy hashes a client's IPv4 address: the key has to be one");
		return err;
	}
	memcpy(&client, address.byte + 12, sizeof(client));
	out->position = ringlb_avalanche_ipv4(client);
	out->hash = out->position;
	out->bits = 32;
	return 0;
}

const struct placement placement_haproxy = {
	.name = "haproxy",
	.summary = "as HAProxy's balance source, hash-type consistent",
	.use = PLACEMENT_SOURCES,
	.affinity = RINGLB_AFFINITY_AVALANCHE,
	.check = check,
	.build = build,
	.key = key,
};
