/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The checksum of the outer IPv4 header. User space sums what is the same for every packet to a backend once; the data
 * plane adds the words that differ. Words are summed as they lie in memory: a ones' complement sum does not care
 * (RFC 1071), but the shifts below place bytes as little-endian hosts load them.
 */
#ifndef RINGLB_OUTER_HEADER_H
#define RINGLB_OUTER_HEADER_H

#include <linux/types.h>

#define RINGLB_OUTER_TTL 64
#define RINGLB_OUTER_VERSION_IHL 0x45
#define RINGLB_OUTER_DF 0x40u /* first byte of the fragment word: "don't fragment" */

/* Ones' complement sum of up to 65,536 words, folded to one. */
static inline __attribute__((always_inline)) __u16 ringlb_fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
}

/*
 * struct ringlb_backend.outer_sum: the header without options, TTL RINGLB_OUTER_TTL, DF set, identification 0, with
 * source, type of service, total length, protocol and checksum 0.
 */
static inline __attribute__((always_inline)) __u16 ringlb_outer_sum(__be32 destination)
{
	return ringlb_fold(RINGLB_OUTER_VERSION_IHL + RINGLB_OUTER_DF + RINGLB_OUTER_TTL + (destination & 0xffff) +
			   (destination >> 16));
}

/* The header's checksum as stored; total_length in network order. */
static inline __attribute__((always_inline)) __u16 ringlb_outer_check(__u16 outer_sum, __be32 source, __u8 tos,
								      __be16 total_length, __u8 protocol)
{
	return (__u16)~ringlb_fold(outer_sum + (source & 0xffff) + (source >> 16) + total_length +
				   ((__u32)(tos + protocol) << 8));
}

#endif
