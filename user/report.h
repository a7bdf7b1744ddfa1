/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What runs, what it counted and what is kept of its past, said through out.h: the same fields for a command and for the
 * daemon's snapshots. Errors go to d as messages; 0 or -errno.
 */
#ifndef RINGLB_REPORT_H
#define RINGLB_REPORT_H

#include "commit.h"
#include "drift.h"
#include "generation.h"
#include "health.h"
#include "out.h"

struct report_options {
	const char *instance;
	const char *pool; /* only this one and its services; NULL: every pool */
	bool verbose;
	const struct drift *drift;   /* as it is known already; NULL: to be read */
	const struct health *health; /* for readiness; NULL: not known here */
};

/* show. -EINVAL for a pool that there is not. */
int report_running(struct out *o, const struct running *running, const struct report_options *options, struct diag *d);
/* How what runs differs from its file now; to be freed with drift_free. */
void report_drift_read(const struct running *running, uint32_t now, struct drift *out);

/* stats. */
int report_stats(struct out *o, const struct running *running, struct diag *d);

/*
 * history, as a value of the root (key NULL) or under a key. running NULL: nothing runs. Generations are those of
 * generation_list.
 */
void report_history(struct out *o, const char *key, const struct generation *list, size_t count,
		    const struct state *running);

#endif
