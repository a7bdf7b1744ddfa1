// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sort.h"

/* Three passes of 11, 11 and 10 bits: the counters of all passes still fit the first-level cache. */
#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define PASSES 3

static unsigned int digit(uint64_t element, unsigned int pass)
{
	return element >> (32 + pass * DIGIT_BITS) & (DIGITS - 1);
}

uint64_t *sort_by_upper32(uint64_t *element, uint64_t *scratch, size_t n)
{
	uint32_t start[PASSES][DIGITS] = { 0 };

	for (size_t i = 0; i < n; i++)
		for (unsigned int pass = 0; pass < PASSES; pass++)
			start[pass][digit(element[i], pass)]++;

	for (unsigned int pass = 0; pass < PASSES; pass++) {
		uint64_t *swap = element;
		uint32_t sum = 0;

		for (unsigned int d = 0; d < DIGITS; d++) {
			uint32_t count = start[pass][d];

			start[pass][d] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			scratch[start[pass][digit(element[i], pass)]++] = element[i];
		element = scratch;
		scratch = swap;
	}
	return element;
}
