/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What breaktest's client and servers say to each other. The client begins with the connection's seed, 8 bytes, and
 * goes on with chunks: their length in 2 bytes, then so many bytes of the stream `up`; length 0 asks the server to
 * close. The server begins with its name, NAME_BYTES padded with zeros, and answers each byte of a chunk with one of
 * the stream `down`. Both check every byte, so one that is lost, doubled or another connection's is noticed. Numbers
 * are in the machine's order: both ends are on it.
 */
#ifndef RINGLB_BREAKTEST_H
#define RINGLB_BREAKTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NAME_BYTES 16
#define STREAM_UP 0x5550ull
#define STREAM_DOWN 0x444f574eull

/* splitmix64 of a place in a stream. */
static inline uint64_t stream_word(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Bytes offset to offset + length of a stream. */
static inline void stream_fill(uint64_t seed, uint64_t offset, uint8_t *out, size_t length)
{
	while (length) {
		uint64_t word = stream_word(seed, offset / 8);
		size_t skip = offset % 8, n = 8 - skip < length ? 8 - skip : length;

		memcpy(out, (uint8_t *)&word + skip, n);
		out += n;
		offset += n;
		length -= n;
	}
}

static inline bool stream_matches(uint64_t seed, uint64_t offset, const uint8_t *data, size_t length)
{
	uint8_t want[4096];

	while (length) {
		size_t n = length < sizeof(want) ? length : sizeof(want);

		stream_fill(seed, offset, want, n);
		if (memcmp(data, want, n))
			return false;
		data += n;
		offset += n;
		length -= n;
	}
	return true;
}

#endif
