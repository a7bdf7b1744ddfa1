/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which backends still get packets of flows that they no longer would be given, and for how long. */
#ifndef RINGLB_OLD_FLOWS_H
#define RINGLB_OLD_FLOWS_H

#include "commit.h"

/* Arrays by backend index, RINGLB_MAX_BACKENDS of them. */
struct old_flows {
	uint32_t now;
	uint32_t *last; /* stamp of the last packet that came to it though another owned the arc; 0: none */
	uint32_t *wait; /* seconds until, at the earliest, nothing but what it owns is sent to it any more */
};

/* 0, or -errno. To be freed with old_flows_free in both cases. */
int old_flows_read(const struct running *r, struct old_flows *out);
void old_flows_free(struct old_flows *o);
/* Seconds until it can be switched off, should its old flows stay silent. For a backend that takes no flows. */
uint32_t old_flows_safe_in(const struct old_flows *o, const struct state_backend *b);

#endif
