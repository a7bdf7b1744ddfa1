/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flow hash: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) over a whole number of
 * 64-bit words. Shared by the data plane, `lookup --file` and the tests, so that they cannot differ.
 * A position on the ring is the upper 32 bits.
 */
#ifndef RINGLB_FLOW_HASH_H
#define RINGLB_FLOW_HASH_H

#include <linux/types.h>

/* The input, in the order that is hashed. Words are loaded as they lie in memory, little-endian. */
struct flow_key4 {
	__be32 client;
	__be32 service;
	__be16 client_port;
	__be16 service_port;
	__u8 protocol;
	__u8 zero[3];
};
_Static_assert(sizeof(struct flow_key4) == 16, "flow_key4");

struct flow_key6 {
	__u8 client[16];
	__u8 service[16];
	__be16 client_port;
	__be16 service_port;
	__u8 protocol;
	__u8 zero[3];
};
_Static_assert(sizeof(struct flow_key6) == 40, "flow_key6");

#define FLOW_HASH_ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))
#define FLOW_HASH_ROUND(v0, v1, v2, v3)                                                                                \
	do {                                                                                                           \
		v0 += v1; v1 = FLOW_HASH_ROTL(v1, 13); v1 ^= v0; v0 = FLOW_HASH_ROTL(v0, 32);                          \
		v2 += v3; v3 = FLOW_HASH_ROTL(v3, 16); v3 ^= v2;                                                       \
		v0 += v3; v3 = FLOW_HASH_ROTL(v3, 21); v3 ^= v0;                                                       \
		v2 += v1; v1 = FLOW_HASH_ROTL(v1, 17); v1 ^= v2; v2 = FLOW_HASH_ROTL(v2, 32);                          \
	} while (0)

/*
 * SipHash-1-3 of `words` 64-bit words at `in`, which are loaded in host order (the hosts are little-endian, as SipHash
 * is defined). `words` is a compile-time constant, so that the loop unrolls.
 */
static inline __attribute__((always_inline)) __u64 flow_hash_siphash13(const __u64 key[2], const __u64 *in, const unsigned int words)
{
	__u64 v0 = key[0] ^ 0x736f6d6570736575ull, v1 = key[1] ^ 0x646f72616e646f6dull;
	__u64 v2 = key[0] ^ 0x6c7967656e657261ull, v3 = key[1] ^ 0x7465646279746573ull;
	__u64 last = (__u64)(words * 8) << 56;

#ifdef __clang__
#pragma unroll
#endif
	for (unsigned int i = 0; i < words; i++) {
		v3 ^= in[i];
		FLOW_HASH_ROUND(v0, v1, v2, v3);
		v0 ^= in[i];
	}
	v3 ^= last;
	FLOW_HASH_ROUND(v0, v1, v2, v3);
	v0 ^= last;
	v2 ^= 0xff;
	FLOW_HASH_ROUND(v0, v1, v2, v3);
	FLOW_HASH_ROUND(v0, v1, v2, v3);
	FLOW_HASH_ROUND(v0, v1, v2, v3);
	return v0 ^ v1 ^ v2 ^ v3;
}

/*
 * Hash of a service table's key, not keyed: the table is the operator's, and a bucket has four places whatever the
 * packets do. `hi` and `lo` are the address's two halves as loaded from memory, `port` in network order as loaded.
 * The upper bits choose the bucket; the value with bit 0 set is the tag.
 */
static inline __attribute__((always_inline)) __u32 ringlb_service_hash(__u64 hi, __u64 lo, __be16 port, __u8 protocol)
{
	__u64 h = (hi ^ ((__u64)port << 8 | protocol)) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 32 ^ lo) * 0xd6e8feb86659fd93ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return (__u32)(h >> 32);
}

#endif
