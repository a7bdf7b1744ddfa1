/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A snapshot (snapshot.h) as metrics for Prometheus. Pure. */
#ifndef RINGLB_METRICS_H
#define RINGLB_METRICS_H

#include <jansson.h>

enum metrics_format {
	METRICS_TEXT,        /* Prometheus's text format, version 0.0.4 */
	METRICS_OPENMETRICS, /* OpenMetrics, version 1.0.0 */
};

#define METRICS_TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* What the header Accept of a scrape prefers (NULL: none was sent); text where it leaves the choice. */
enum metrics_format metrics_negotiate(const char *accept);
/*
 * Owned by the caller. What a snapshot does not have is left out. No name with one set of labels comes twice, whatever
 * the snapshot says: such values are added up.
 */
char *metrics_text(const json_t *snapshot, enum metrics_format format);

#endif
