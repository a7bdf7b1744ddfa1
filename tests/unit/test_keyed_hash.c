// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who does not know the key can't aim: whatever sequence of addresses, ports and connection ids is crafted, its flows
 * spread over arcs, and over the flow table's buckets, as by chance; nor does where one flow went tell where another one
 * goes. The same sequences against a key that is known show that the tests would see it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../include/flow_hash.h"

#define FLOWS 16384u
#define BINS 256u
#define KEYS 8u
#define SIGMAS 6.0
#define BELOW(x, bins) ((uint32_t)((uint64_t)(uint32_t)(x) * (bins) >> 32))

/* What is hashed of one flow; a union, so that a craft can turn any of its bits. */
union input {
	struct flow_key4 v4;
	struct flow_key6 v6;
	struct flow_key_id id;
	uint8_t byte[48];
};
enum { V4, V6, ID, KINDS };
static const char *const kinds[KINDS] = { "IPv4", "IPv6", "id" };

/* Keys from one sequence of numbers (SplitMix64), the same each time: a failure is no accident, and stays. */
static uint64_t next_number(uint64_t *at)
{
	uint64_t z = *at += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void secret(unsigned int number, __u64 key[2])
{
	uint64_t at = number;

	key[0] = next_number(&at);
	key[1] = next_number(&at);
}

static uint64_t fingerprint(const __u64 key[2], unsigned int kind, const union input *in)
{
	return kind == V4 ? flow_fingerprint4(key, &in->v4) :
	       kind == V6 ? flow_fingerprint6(key, &in->v6) :
			    flow_fingerprint_id(key, &in->id);
}

static union input plain(unsigned int kind)
{
	union input in = { .byte = { 0 } };

	if (kind == V4) {
		in.v4 = (struct flow_key4){ htonl(0xc6336407), htonl(0xc000020a), htons(40000),
					    htons(443),        IPPROTO_UDP,       { 0 } };
	} else if (kind == V6) {
		memset(in.v6.client, 0x20, 16);
		memset(in.v6.service, 0xfd, 16);
		in.v6.service_port = htons(443);
		in.v6.protocol = IPPROTO_UDP;
	} else {
		memset(in.id.service, 0xfd, 16);
		in.id.service_port = htons(443);
		in.id.length = 20;
	}
	return in;
}

/* The bytes that a client chooses: 8, the first of its address and its port, or of the id. */
static void put(unsigned int kind, union input *in, uint64_t value)
{
	if (kind == V4) {
		memcpy(&in->v4.client, &value, 4);
		in->v4.client_port = (__be16)(value >> 32);
	} else if (kind == V6) {
		memcpy(in->v6.client + 8, &value, 8);
		in->v6.client_port = (__be16)(value >> 32);
	} else {
		memcpy(in->id.id, &value, 8);
	}
}

/* Sequences that hashes without a key, or with weak ones, send to few places. */
static uint64_t ports(uint32_t i)
{
	return (uint64_t)i << 32;
}

static uint64_t addresses(uint32_t i)
{
	return htonl(0x0a000000 + i);
}

static uint64_t strides(uint32_t i)
{
	return (uint64_t)i << 16;
}

static uint64_t few_bits(uint32_t i)
{
	return 1ull << i % 48 ^ 1ull << i / 48 % 48 ^ 1ull << i / 2304 % 48;
}

static uint64_t gray(uint32_t i)
{
	return (i ^ i >> 1) * 0x100010001ull;
}

static uint64_t multiples(uint32_t i)
{
	return i * 0x9e3779b97f4a7c15ull;
}

static const struct {
	const char *name;
	uint64_t (*value)(uint32_t i);
	uint32_t count; /* of different ones */
} crafts[] = {
	{ "ports", ports, FLOWS },       { "addresses", addresses, FLOWS }, { "strides", strides, FLOWS },
	{ "few bits", few_bits, 17000 }, { "gray", gray, FLOWS },           { "multiples", multiples, FLOWS },
};

/* Sigmas by which counts of n in BINS bins are less even than chance makes them (chi-square, by its normal form). */
static double unevenness(const uint32_t count[BINS], uint32_t n)
{
	double expected = (double)n / BINS, sum = 0;

	for (unsigned int i = 0; i < BINS; i++)
		sum += (count[i] - expected) * (count[i] - expected) / expected;
	return (sum - (BINS - 1)) / sqrt(2.0 * (BINS - 1));
}

/* The flows' fingerprints, of a set without doubles, by arc (upper half) and by bucket (lower half). */
static double worst(const uint64_t *f, uint32_t n)
{
	uint32_t arc[BINS] = { 0 }, bucket[BINS] = { 0 };
	double of_arcs, of_buckets;

	for (uint32_t i = 0; i < n; i++) {
		arc[BELOW(f[i] >> 32, BINS)]++;
		bucket[BELOW(f[i], BINS)]++;
	}
	of_arcs = unevenness(arc, n);
	of_buckets = unevenness(bucket, n);
	return of_arcs > of_buckets ? of_arcs : of_buckets;
}

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Different values of a craft, at most FLOWS. */
static uint32_t values(unsigned int craft, uint64_t out[FLOWS])
{
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; n < FLOWS && i < crafts[craft].count; i++)
		out[n++] = crafts[craft].value(i);
	qsort(out, n, sizeof(*out), order);
	for (uint32_t i = 0; i < n; i++)
		if (!i || out[i] != out[i - 1])
			out[kept++] = out[i];
	return kept;
}

static void test_crafted_sequences_spread(void **state)
{
	static uint64_t value[FLOWS], f[FLOWS];

	(void)state;
	for (unsigned int craft = 0; craft < sizeof(crafts) / sizeof(*crafts); craft++) {
		uint32_t n = values(craft, value);

		assert_true(n > 10 * BINS);
		for (unsigned int run = 0; run < KEYS * KINDS; run++) {
			unsigned int kind = run % KINDS;
			union input in = plain(kind);
			__u64 key[2];

			secret(run, key);
			for (uint32_t i = 0; i < n; i++) {
				put(kind, &in, value[i]);
				f[i] = fingerprint(key, kind, &in);
			}
			if (worst(f, n) > SIGMAS)
				fail_msg("%s, %s, key %u: %.1f sigmas", crafts[craft].name, kinds[kind], run,
					 worst(f, n));
		}
	}
}

/* Flows chosen by a key that is known, all in one arc there; and in one bucket. */
static uint32_t aim(const __u64 known[2], unsigned int kind, bool bucket, uint64_t out[FLOWS])
{
	union input in = plain(kind);
	uint32_t n = 0;

	for (uint64_t i = 0; n < 10 * BINS; i++) {
		uint64_t f;

		put(kind, &in, i);
		f = fingerprint(known, kind, &in);
		if (!BELOW(bucket ? f : f >> 32, BINS))
			out[n++] = i;
	}
	return n;
}

static void test_what_another_key_aims_at(void **state)
{
	static uint64_t value[FLOWS], f[FLOWS];
	const __u64 known[2] = { 0, 0 };

	(void)state;
	for (unsigned int kind = 0; kind < 2 * KINDS; kind++) {
		uint32_t n = aim(known, kind / 2, kind % 2, value);
		union input in = plain(kind / 2);

		for (unsigned int run = 0; run <= KEYS; run++) {
			__u64 key[2];

			secret(100 + run, key);
			if (run == KEYS)
				memcpy(key, known, sizeof(key));
			for (uint32_t i = 0; i < n; i++) {
				put(kind / 2, &in, value[i]);
				f[i] = fingerprint(key, kind / 2, &in);
			}
			if (run == KEYS) /* who knows the key does aim: the test would see it */
				assert_true(worst(f, n) > 1000);
			else if (worst(f, n) > SIGMAS)
				fail_msg("%s, key %u: %.1f sigmas", kinds[kind / 2], run, worst(f, n));
		}
	}
}

/* Of flows that differ in one bit: how often they go to one backend of 16, and to one bucket of 16. */
static void differ(const __u64 key[2], unsigned int kind, unsigned int bit, uint32_t flows, uint32_t same[2])
{
	union input in = plain(kind), other;

	same[0] = same[1] = 0;
	for (uint32_t i = 0; i < flows; i++) {
		uint64_t a, b;

		put(kind, &in, i * 0x9e3779b97f4a7c15ull);
		other = in;
		other.byte[bit / 8] ^= (uint8_t)(1u << bit % 8);
		a = fingerprint(key, kind, &in);
		b = fingerprint(key, kind, &other);
		same[0] += BELOW(a >> 32, 16) == BELOW(b >> 32, 16);
		same[1] += BELOW(a, 16) == BELOW(b, 16);
	}
}

static void test_one_flow_does_not_tell_of_another(void **state)
{
	static const unsigned int bits[KINDS] = { 8 * offsetof(struct flow_key4, zero),
						  8 * offsetof(struct flow_key6, zero),
						  8 * offsetof(struct flow_key_id, zero2) };
	const uint32_t flows = 2048;
	const double mean = flows / 16.0, sigma = sqrt(flows / 16.0 * 15 / 16);

	(void)state;
	for (unsigned int kind = 0; kind < KINDS; kind++)
		for (unsigned int bit = 0; bit < bits[kind]; bit++) {
			uint32_t same[2];
			__u64 key[2];

			secret(200 + bit, key);
			differ(key, kind, bit, flows, same);
			for (unsigned int i = 0; i < 2; i++)
				if (fabs(same[i] - mean) > SIGMAS * sigma)
					fail_msg("%s, bit %u: %u of %u went the same way", kinds[kind], bit, same[i],
						 flows);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crafted_sequences_spread),
		cmocka_unit_test(test_what_another_key_aims_at),
		cmocka_unit_test(test_one_flow_does_not_tell_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
