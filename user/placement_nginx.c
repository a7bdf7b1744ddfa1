// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * nginx's `hash ... consistent` (ngx_http_upstream_hash_module): a server has 160 points for each unit of weight, each
 * the CRC-32 of the host, a zero byte, the port, and the point before as 32 little-endian bits (0 at first). HOST and
 * PORT stand in the identity as in nginx's configuration; without a port written, there is none to hash; the prefix
 * "unix:" is left out. Owner: the first point >= hash.
 *
 * A count depends on the server's own weight alone, so changes move the minimum. Of points at one position nginx keeps
 * that of the server listed first; here the order of the list means nothing, and the identity decides.
 */
#include <strings.h>

#include "../include/source_hash.h"
#include "placement_private.h"

static uint32_t crc32_bytes(uint32_t crc, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		crc = ringlb_crc32_byte(crc, (uint8_t)bytes[i]);
	return crc;
}

/* Of host, zero byte and port. */
static uint32_t base_crc(const char *identity)
{
	size_t length = strlen(identity), digits = 0;
	uint32_t crc;

	if (!strncasecmp(identity, "unix:", 5)) {
		crc = crc32_bytes(RINGLB_CRC32_START, identity + 5, length - 5);
		return ringlb_crc32_byte(crc, 0);
	}
	while (digits < length && identity[length - 1 - digits] >= '0' && identity[length - 1 - digits] <= '9')
		digits++;
	if (digits == length || identity[length - 1 - digits] != ':') {
		crc = crc32_bytes(RINGLB_CRC32_START, identity, length);
		return ringlb_crc32_byte(crc, 0);
	}
	crc = crc32_bytes(RINGLB_CRC32_START, identity, length - digits - 1);
	return crc32_bytes(ringlb_crc32_byte(crc, 0), identity + length - digits, digits);
}

static int check(const struct placement_input *in, char **why)
{
	return placement_check_points(in->weights * PLACEMENT_NGINX_POINTS, why);
}

static int build(const struct placement_input *in, struct arcs *out, uint32_t *points)
{
	uint64_t n = in->weights * PLACEMENT_NGINX_POINTS, *point, *end;
	int err;

	point = malloc(2 * n * sizeof(*point));
	if (!point)
		return -ENOMEM;
	end = point;
	for (size_t i = 0; i < in->takers; i++) {
		const struct placement_member *m = placement_member_at(in, in->sorted[i]);
		uint32_t base = base_crc(m->identity), count = m->weight * PLACEMENT_NGINX_POINTS, at = 0;

		for (uint32_t j = 0; j < count; j++) {
			uint32_t crc = base;

			for (unsigned int shift = 0; shift < 32; shift += 8)
				crc = ringlb_crc32_byte(crc, (uint8_t)(at >> shift));
			at = ~crc;
			*end++ = (uint64_t)at << 32 | in->sorted[i];
		}
		if (points)
			points[in->sorted[i]] = count;
	}
	err = placement_arcs(point, n, out);
	free(point);
	return err;
}

static int key(const void *bytes, size_t length, struct placement_key *out, char **why)
{
	(void)why;
	out->position = ~crc32_bytes(RINGLB_CRC32_START, bytes, length);
	out->hash = out->position;
	out->bits = 32;
	return 0;
}

const struct placement placement_nginx = {
	.name = "nginx",
	.summary = "as nginx's hash ... consistent",
	.use = PLACEMENT_SOURCES,
	.affinity = RINGLB_AFFINITY_CRC32,
	.check = check,
	.build = build,
	.key = key,
};
