/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by health*.c only. */
#ifndef RINGLB_HEALTH_PRIVATE_H
#define RINGLB_HEALTH_PRIVATE_H

#include "health.h"

__attribute__((format(printf, 4, 5))) void health_event(struct health *h, uint64_t now, enum health_event_kind kind,
							const char *format, ...);
/* What follows from the backends' status: the pool's counts, each one's use and factor, and when to commit. */
void health_evaluate(struct health *h, struct health_pool *p, uint64_t now);
/* The status of a backend becomes another. */
void health_set(struct health_backend *b, enum health_status status, bool waiting, uint64_t now);

#endif
