/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flow hash: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) over a whole number of
 * 64-bit words. Shared by the data plane, `lookup --file` and the tests, so that they cannot differ.
 * A position on the ring is the upper 32 bits.
 */
#ifndef RINGLB_FLOW_HASH_H
#define RINGLB_FLOW_HASH_H

#include <linux/types.h>

/* The input, in the order that is hashed; aligned, so that the verifier lets words of it be loaded from the stack. */
struct flow_key4 {
	__be32 client;
	__be32 service;
	__be16 client_port;
	__be16 service_port;
	__u8 protocol;
	__u8 zero[3];
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct flow_key4) == 16, "flow_key4");

struct flow_key6 {
	__u8 client[16];
	__u8 service[16];
	__be16 client_port;
	__be16 service_port;
	__u8 protocol;
	__u8 zero[3];
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct flow_key6) == 40, "flow_key6");

/* A QUIC connection id at a service's address and port: longer than the others, so that no packet's addresses are one. */
struct flow_key_id {
	__u8 service[16]; /* IPv4 mapped */
	__u8 id[20];      /* zeros behind its end */
	__u8 zero[4];
	__be16 service_port;
	__u8 length; /* of id */
	__u8 zero2[5];
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct flow_key_id) == 48, "flow_key_id");

#define FLOW_HASH_ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))
/* Four quarters, a line each. */
/* clang-format off */
#define FLOW_HASH_ROUND(v0, v1, v2, v3)                                                                                \
	do {                                                                                                           \
		v0 += v1; v1 = FLOW_HASH_ROTL(v1, 13); v1 ^= v0; v0 = FLOW_HASH_ROTL(v0, 32);                          \
		v2 += v3; v3 = FLOW_HASH_ROTL(v3, 16); v3 ^= v2;                                                       \
		v0 += v3; v3 = FLOW_HASH_ROTL(v3, 21); v3 ^= v0;                                                       \
		v2 += v1; v1 = FLOW_HASH_ROTL(v1, 17); v1 ^= v2; v2 = FLOW_HASH_ROTL(v2, 32);                          \
	} while (0)
/* clang-format on */

#ifdef __clang__
#define FLOW_HASH_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FLOW_HASH_UNROLL
#endif

/* `count` rounds, a compile-time constant. */
#define FLOW_HASH_ROUNDS(count, v0, v1, v2, v3)                                                                        \
	do {                                                                                                           \
		FLOW_HASH_UNROLL                                                                                       \
		for (unsigned int round_ = 0; round_ < (count); round_++)                                              \
			FLOW_HASH_ROUND(v0, v1, v2, v3);                                                               \
	} while (0)

/*
 * SipHash of `words` 64-bit words at `in`, which are loaded in host order (the hosts are little-endian, as SipHash is
 * defined), with `c` rounds for each word and `d` at the end. The last three are compile-time constants, so that the
 * loops unroll. SipHash's authors publish vectors for 2-4: the rounds are arguments so that those hold this code too.
 */
static inline __attribute__((always_inline)) __u64 flow_hash_siphash(const __u64 key[2], const __u64 *in,
								     const unsigned int words, const unsigned int c,
								     const unsigned int d)
{
	__u64 v0 = key[0] ^ 0x736f6d6570736575ull, v1 = key[1] ^ 0x646f72616e646f6dull;
	__u64 v2 = key[0] ^ 0x6c7967656e657261ull, v3 = key[1] ^ 0x7465646279746573ull;
	/* Behind whole words nothing but the length is left. */
	__u64 last = (__u64)(words * 8) << 56;

	FLOW_HASH_UNROLL
	for (unsigned int i = 0; i < words; i++) {
		v3 ^= in[i];
		FLOW_HASH_ROUNDS(c, v0, v1, v2, v3);
		v0 ^= in[i];
	}
	v3 ^= last;
	FLOW_HASH_ROUNDS(c, v0, v1, v2, v3);
	v0 ^= last;
	v2 ^= 0xff;
	FLOW_HASH_ROUNDS(d, v0, v1, v2, v3);
	return v0 ^ v1 ^ v2 ^ v3;
}

static inline __attribute__((always_inline)) __u64 flow_hash_siphash13(const __u64 key[2], const __u64 *in,
								       const unsigned int words)
{
	return flow_hash_siphash(key, in, words, 1, 3);
}

/* The whole hash of a flow, by which the flow table knows it, and its position on the ring: the upper half. */
static inline __attribute__((always_inline)) __u64 flow_fingerprint4(const __u64 key[2], const struct flow_key4 *flow)
{
	__u64 in[sizeof(*flow) / 8];

	__builtin_memcpy(in, flow, sizeof(in));
	return flow_hash_siphash13(key, in, sizeof(in) / 8);
}

static inline __attribute__((always_inline)) __u32 flow_hash4(const __u64 key[2], const struct flow_key4 *flow)
{
	return (__u32)(flow_fingerprint4(key, flow) >> 32);
}

static inline __attribute__((always_inline)) __u64 flow_fingerprint6(const __u64 key[2], const struct flow_key6 *flow)
{
	__u64 in[sizeof(*flow) / 8];

	__builtin_memcpy(in, flow, sizeof(in));
	return flow_hash_siphash13(key, in, sizeof(in) / 8);
}

static inline __attribute__((always_inline)) __u32 flow_hash6(const __u64 key[2], const struct flow_key6 *flow)
{
	return (__u32)(flow_fingerprint6(key, flow) >> 32);
}

static inline __attribute__((always_inline)) __u64 flow_fingerprint_id(const __u64 key[2], const struct flow_key_id *id)
{
	__u64 in[sizeof(*id) / 8];

	__builtin_memcpy(in, id, sizeof(in));
	return flow_hash_siphash13(key, in, sizeof(in) / 8);
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
