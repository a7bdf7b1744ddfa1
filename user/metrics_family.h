/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One family of metrics at a time, as text. Pure. */
#ifndef RINGLB_METRICS_FAMILY_H
#define RINGLB_METRICS_FAMILY_H

#include <stdio.h>

#include "metrics.h"

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_INFO, METRICS_HISTOGRAM };

struct metrics_writer {
	FILE *to;
	enum metrics_format format;
	/* the family being filled */
	const char *name;
	enum metrics_type type;
	json_t *samples; /* suffix and labels, as they are written -> number, in order */
};

/*
 * name: without the _total of a counter and the _info of an info. unit: "bytes", "seconds", "ratio", which the name ends
 * in, or NULL. What has no sample is not written at all.
 */
void metrics_begin(struct metrics_writer *w, const char *name, enum metrics_type type, const char *unit,
		   const char *help);
/* Labels: pairs of name and value, ended by NULL; a value of NULL leaves its label out. value: a number, a boolean, or else no sample. */
void metrics_sample(struct metrics_writer *w, const json_t *value, ...) __attribute__((sentinel));
void metrics_integer(struct metrics_writer *w, json_int_t value, ...) __attribute__((sentinel));
void metrics_real(struct metrics_writer *w, double value, ...) __attribute__((sentinel));
/* count[0 .. bounds], the last one above every bound. */
void metrics_histogram(struct metrics_writer *w, const json_t *bounds, const json_t *counts, double sum);
void metrics_end(struct metrics_writer *w);

#endif
