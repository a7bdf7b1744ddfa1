/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hashes of a client's address by which nginx and HAProxy choose a server, for the placements named after them.
 * Not keyed: a client that may choose its address may choose its server. Shared by the data plane, `lookup --file` and
 * the tests, so that they cannot differ.
 */
#ifndef RINGLB_SOURCE_HASH_H
#define RINGLB_SOURCE_HASH_H

#include <linux/types.h>

/* CRC-32 (IEEE 802.3, reflected, as in zlib) of no byte yet; its complement is the checksum. */
#define RINGLB_CRC32_START 0xffffffffu

/* The checksum's change by four bits, low ones first. */
static const __u32 ringlb_crc32_nibble[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

static inline __attribute__((always_inline)) __u32 ringlb_crc32_byte(__u32 crc, __u8 byte)
{
	crc ^= byte;
	crc = crc >> 4 ^ ringlb_crc32_nibble[crc & 15];
	return crc >> 4 ^ ringlb_crc32_nibble[crc & 15];
}

/* nginx, `hash $binary_remote_addr consistent`: CRC-32 of the four bytes as they are sent. */
static inline __attribute__((always_inline)) __u32 ringlb_crc32_ipv4(__be32 client)
{
	__u32 crc = RINGLB_CRC32_START;

	crc = ringlb_crc32_byte(crc, client);
	crc = ringlb_crc32_byte(crc, client >> 8);
	crc = ringlb_crc32_byte(crc, client >> 16);
	return ~ringlb_crc32_byte(crc, client >> 24);
}

/*
 * HAProxy's full_hash(): one of Bob Jenkins's integer hashes in which every bit counts for every other, times a large
 * prime. No two numbers have the same one. HAProxy's `balance source` with `hash-type consistent` takes it of the IPv4
 * address as a number.
 */
static inline __attribute__((always_inline)) __u32 ringlb_avalanche(__u32 a)
{
	a = (a + 0x7ed55d16) + (a << 12);
	a = (a ^ 0xc761c23c) ^ (a >> 19);
	a = (a + 0x165667b1) + (a << 5);
	a = (a + 0xd3a2646c) ^ (a << 9);
	a = (a + 0xfd7046c5) + (a << 3);
	a = (a ^ 0xb55a4f09) ^ (a >> 16);
	return a * 3221225473u;
}

static inline __attribute__((always_inline)) __u32 ringlb_avalanche_ipv4(__be32 client)
{
	return ringlb_avalanche(client << 24 | (client & 0xff00) << 8 | (client >> 8 & 0xff00) | client >> 24);
}

#endif
