// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The flow hash against published vectors, and what exactly goes into it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <cmocka.h>

#include "../../include/flow_hash.h"

/* Of the vectors with key 00 01 .. 0f and input 00 01 .. (n - 1): those for n = 0, 8, .. 56, whole words. */
#define VECTORS 8

/* vectors.h of the reference implementation, github.com/veorq/SipHash: SipHash-2-4, 64-bit output. */
static const uint64_t siphash24[VECTORS] = {
	0x726fdb47dd0e0e31, 0x93f5f5799a932462, 0x3f2acc7f57c29bdb, 0xb8ad50c6f649af94,
	0x7127512f72f27cce, 0x0e3ea96b5304a7d0, 0xe612a3cb9ecba951, 0xb78dbfaf3a8d83bd,
};

/*
 * SipHash-1-3: the reference implementation with cROUNDS 1 and dROUNDS 3; the tests of Swift's standard library carry
 * them too, and Linux' lib/siphash_kunit.c their lower halves.
 */
static const uint64_t siphash13[VECTORS] = {
	0xabac0158050fc4dc, 0x369095118d299a8e, 0xcc4fdd1a7d908b66, 0xf464aeb267349c8c,
	0x81157b6c16a7b60d, 0xc1d2363299e41531, 0x9f3143f8df074c46, 0xb4bcc0db243c6d75,
};

static const uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };

static uint64_t hash(const __u64 k[2], unsigned int words, unsigned int c, unsigned int d)
{
	uint8_t byte[8 * VECTORS];
	__u64 in[VECTORS];

	for (unsigned int i = 0; i < sizeof(byte); i++)
		byte[i] = (uint8_t)i;
	memcpy(in, byte, sizeof(in));
	return flow_hash_siphash(k, in, words, c, d);
}

static void test_siphash24(void **state)
{
	const __u64 k[2] = { key[0], key[1] };

	(void)state;
	for (unsigned int words = 0; words < VECTORS; words++)
		assert_int_equal(hash(k, words, 2, 4), siphash24[words]);
}

static void test_siphash13(void **state)
{
	const __u64 k[2] = { key[0], key[1] };

	(void)state;
	for (unsigned int words = 0; words < VECTORS; words++)
		assert_int_equal(hash(k, words, 1, 3), siphash13[words]);
}

/* hash(bytes(range(n))) of CPython 3.11 with PYTHONHASHSEED=0, which is SipHash-1-3 with a key of zeros. */
static void test_siphash13_zero_key(void **state)
{
	const __u64 zero[2] = { 0, 0 };

	(void)state;
	assert_int_equal(hash(zero, 1, 1, 3), 0xead411e67ebe2eea);
	assert_int_equal(hash(zero, 2, 1, 3), 0x8972188433a5c5b7);
	assert_int_equal(hash(zero, 5, 1, 3), 0x95bc321ab41d8206);
}

/* The order and the padding of what is hashed, byte by byte. */
static void test_flow4(void **state)
{
	const __u64 k[2] = { key[0], key[1] };
	const uint8_t expected[16] = { 192, 0, 2, 1, 198, 51, 100, 7, 0xc0, 0x01, 0x01, 0xbb, IPPROTO_TCP, 0, 0, 0 };
	struct flow_key4 flow = {
		.client = htonl(0xc0000201),
		.service = htonl(0xc6336407),
		.client_port = htons(49153),
		.service_port = htons(443),
		.protocol = IPPROTO_TCP,
	};
	__u64 in[2];

	(void)state;
	assert_int_equal(sizeof(flow), sizeof(expected));
	assert_memory_equal(&flow, expected, sizeof(expected));
	memcpy(in, expected, sizeof(in));
	assert_int_equal(flow_hash4(k, &flow), flow_hash_siphash(k, in, 2, 1, 3) >> 32);
	/* Computed apart from this code, from the definition. */
	assert_int_equal(flow_hash4(k, &flow), 0x1dfaac9d);
}

static void test_flow6(void **state)
{
	const __u64 k[2] = { key[0], key[1] };
	struct flow_key6 flow = {
		.client_port = htons(49153),
		.service_port = htons(443),
		.protocol = IPPROTO_UDP,
	};
	uint8_t expected[40] = { [32] = 0xc0, 0x01, 0x01, 0xbb, IPPROTO_UDP, 0, 0, 0 };
	__u64 in[5];

	(void)state;
	assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", flow.client), 1);
	assert_int_equal(inet_pton(AF_INET6, "fd00::2:3", flow.service), 1);
	memcpy(expected, flow.client, 16);
	memcpy(expected + 16, flow.service, 16);
	assert_int_equal(sizeof(flow), sizeof(expected));
	assert_memory_equal(&flow, expected, sizeof(expected));
	memcpy(in, expected, sizeof(in));
	assert_int_equal(flow_hash6(k, &flow), flow_hash_siphash(k, in, 5, 1, 3) >> 32);
	assert_int_equal(flow_hash6(k, &flow), 0xcb2e3439);
}

static void test_id(void **state)
{
	const __u64 k[2] = { key[0], key[1] };
	const uint8_t expected[48] = { [10] = 0xff, 0xff, 192, 0, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8, [40] = 0x01, 0xbb, 8 };
	struct flow_key_id id = {
		.service = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.id = { 1, 2, 3, 4, 5, 6, 7, 8 },
		.service_port = htons(443),
		.length = 8,
	};

	(void)state;
	assert_int_equal(sizeof(id), sizeof(expected));
	assert_memory_equal(&id, expected, sizeof(expected));
	assert_int_equal(flow_fingerprint_id(k, &id), 0xc3782273d98faaf5);
}

/* Each field counts, and so does each bit of the key. */
static void test_everything_counts(void **state)
{
	__u64 k[2] = { key[0], key[1] };
	struct flow_key4 flow4 = { 0 };
	struct flow_key6 flow6 = { 0 };
	struct flow_key_id id = { 0 };
	const __u64 plain = flow_fingerprint_id(k, &id);
	const __u32 plain4 = flow_hash4(k, &flow4), plain6 = flow_hash6(k, &flow6);

	(void)state;
	for (size_t bit = 0; bit < 8 * offsetof(struct flow_key4, zero); bit++) {
		((uint8_t *)&flow4)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(flow_hash4(k, &flow4), plain4);
		((uint8_t *)&flow4)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t bit = 0; bit < 8 * offsetof(struct flow_key6, zero); bit++) {
		((uint8_t *)&flow6)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(flow_hash6(k, &flow6), plain6);
		((uint8_t *)&flow6)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t bit = 0; bit < 8 * offsetof(struct flow_key_id, zero2); bit++) {
		((uint8_t *)&id)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(flow_fingerprint_id(k, &id) != plain);
		((uint8_t *)&id)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t bit = 0; bit < 128; bit++) {
		k[bit / 64] ^= 1ull << bit % 64;
		assert_int_not_equal(flow_hash4(k, &flow4), plain4);
		k[bit / 64] ^= 1ull << bit % 64;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_siphash24),
		cmocka_unit_test(test_siphash13),
		cmocka_unit_test(test_siphash13_zero_key),
		cmocka_unit_test(test_flow4),
		cmocka_unit_test(test_flow6),
		cmocka_unit_test(test_id),
		cmocka_unit_test(test_everything_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
