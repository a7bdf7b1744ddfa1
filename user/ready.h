/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a service is ready to be announced: every interface is attached, and a quorum of its pool is healthy. Pure. */
#ifndef RINGLB_READY_H
#define RINGLB_READY_H

#include "health.h"
#include "plan.h"

#define READY_REASON 160

/*
 * interface: those of what runs. health: of the pools, or NULL: then what the last daemon made of it counts, which is in s. reason says why or why not; it may be NULL.
 */
bool service_ready(const struct state *s, size_t service, const struct plan_interface *interface, size_t interfaces,
		   const struct health *health, char reason[READY_REASON]);

#endif
