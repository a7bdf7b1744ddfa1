// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libmemcached's KETAMA_WEIGHTED: a server of weight w, of n servers with weights W in all, has
 * 4 * floor((float)(w / W * 160 / 4 * n + 1e-10F)) points, in single precision throughout; MD5 of "NAME-i" gives four,
 * its little-endian 32-bit words. NAME is the identity, HOST:PORT, without a port 11211. The owner of a key is that of
 * the first point at or after the first word of its MD5; of points at one position the server listed first has it.
 *
 * The counts depend on the total weight, so a change moves more than it must.
 */
#include <math.h>
#include <md5.h>
#include <stdio.h>

#include "placement_private.h"

#define POINTS_PER_SERVER 160.0f
#define POINTS_PER_HASH 4u
#define MAX_SERVERS 100u /* update_continuum() ends the program when there are more */
#define DEFAULT_PORT ":11211"

static uint32_t little_endian(const uint8_t *b)
{
	return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

static void md5(const void *bytes, size_t length, uint8_t digest[MD5_DIGEST_LENGTH])
{
	MD5_CTX context;

	MD5Init(&context);
	MD5Update(&context, bytes, length);
	MD5Final(digest, &context);
}

static uint32_t point_count(const struct placement_input *in, uint32_t weight)
{
	/* Each step in a variable of its own: rounded to single precision, and not fused with the next. */
	volatile float count = (float)weight / (float)in->weights;

	count = count * POINTS_PER_SERVER;
	count = count / 4;
	count = count * (float)in->takers;
	count = count + 1e-10f;
	return (uint32_t)floorf(count) * POINTS_PER_HASH;
}

static size_t name_length(const char *identity)
{
	size_t length = strlen(identity), port = strlen(DEFAULT_PORT);

	return length > port && !strcmp(identity + length - port, DEFAULT_PORT) ? length - port : length;
}

static uint64_t *append_points(uint64_t *end, const char *identity, uint32_t count, uint16_t owner)
{
	uint8_t digest[MD5_DIGEST_LENGTH];

	for (uint32_t i = 0; i < count / POINTS_PER_HASH; i++) {
		char *text = xasprintf("%.*s-%u", (int)name_length(identity), identity, i);

		md5(text, strlen(text), digest);
		free(text);
		for (unsigned int word = 0; word < POINTS_PER_HASH; word++)
			*end++ = (uint64_t)little_endian(digest + 4 * word) << 32 | owner;
	}
	return end;
}

static int check(const struct placement_input *in, char **why)
{
	if (in->takers <= MAX_SERVERS)
		return 0;
	*why = xasprintf("%zu servers: libmemcached takes %u at most", in->takers, MAX_SERVERS);
	return -EINVAL;
}

static int build(const struct placement_input *in, struct arcs *out, uint32_t *points)
{
	uint64_t *point, *end;
	size_t n = 0;
	int err;

	for (size_t i = 0; i < in->takers; i++)
		n += point_count(in, placement_member_at(in, in->listed[i])->weight);
	point = malloc((2 * n + 1) * sizeof(*point));
	if (!point)
		return -ENOMEM;
	end = point;
	for (size_t i = 0; i < in->takers; i++) {
		const struct placement_member *m = placement_member_at(in, in->listed[i]);
		uint32_t count = point_count(in, m->weight);

		end = append_points(end, m->identity, count, in->listed[i]);
		if (points)
			points[in->listed[i]] = count;
	}
	err = placement_arcs(point, n, out);
	free(point);
	return err;
}

static int key(const void *bytes, size_t length, struct placement_key *out, char **why)
{
	uint8_t digest[MD5_DIGEST_LENGTH];

	(void)why;
	md5(bytes, length, digest);
	out->position = little_endian(digest);
	out->hash = out->position;
	out->bits = 32;
	return 0;
}

const struct placement placement_ketama = {
	.name = "ketama",
	.summary = "as libmemcached's KETAMA_WEIGHTED",
	.use = PLACEMENT_KEYS,
	.check = check,
	.build = build,
	.key = key,
};
