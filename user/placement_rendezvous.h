/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How rendezvous hashing compares, for its tests. */
#ifndef RINGLB_PLACEMENT_RENDEZVOUS_H
#define RINGLB_PLACEMENT_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>

struct rendezvous_logs;

/* To be freed with free; NULL without memory. */
struct rendezvous_logs *rendezvous_logs_new(void);
/* 64 - log2(hash), with 40 bits behind the point: more than 0, the smaller the larger the hash. */
uint64_t rendezvous_distance(const struct rendezvous_logs *l, uint64_t hash);
/* distance / weight < other_distance / other_weight: the first wins. Weights are at most 65,535. */
bool rendezvous_beats(uint64_t distance, uint32_t weight, uint64_t other_distance, uint32_t other_weight);

#endif
