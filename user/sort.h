/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Radix sort. Pure. */
#ifndef RINGLB_SORT_H
#define RINGLB_SORT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Sorts n elements (fewer than 2^32) by their upper 32 bits; elements that are equal there keep their order, whatever
 * their lower bits. Uses scratch, of the same size, and returns the one of the two that holds the result.
 */
uint64_t *sort_by_upper32(uint64_t *element, uint64_t *scratch, size_t n);

#endif
