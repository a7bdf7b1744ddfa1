/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flow table's memory, as user space sees it between packets. Pure: works on memory it is given. */
#ifndef RINGLB_FLOWS_H
#define RINGLB_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "../include/ringlb_abi.h"

struct flows {
	struct ringlb_flow_bucket *bucket;
	uint32_t buckets;
};

/* What an entry is about, for the question whether it is to stay. */
struct flow_view {
	uint32_t position;
	uint16_t service;
	uint32_t established, opening; /* choices; 0: none */
	uint32_t stamp;
};

/* Calls keep for each entry in use and frees those for which it says no. Returns how many were freed. */
uint32_t flows_sweep(const struct flows *f, bool (*keep)(const struct flow_view *v, void *arg), void *arg);
uint32_t flow_choice(uint16_t backend, uint16_t incarnation);
uint16_t flow_choice_backend(uint32_t choice);
/*
 * Adds one to count[backend] for each entry that names the backend in its present incarnation (incarnation[backend]) and
 * has not expired by the stamp now. left[backend], unless left is NULL, becomes the seconds until the last of them
 * expires, should it stay silent.
 */
void flows_count(const struct flows *f, const uint16_t *incarnation, uint32_t backends, uint32_t now, uint32_t *count,
		 uint32_t *left);
/* The same by service: adds one to count[service] for each entry, services of them. */
void flows_count_services(const struct flows *f, uint32_t now, uint32_t *count, uint32_t services);
/* Entries in use that have not expired by the stamp now, and mere openings among them. */
void flows_use(const struct flows *f, uint32_t now, uint32_t *used, uint32_t *openings);

#endif
