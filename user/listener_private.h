/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the listener answers, apart from connections. */
#ifndef RINGLB_LISTENER_PRIVATE_H
#define RINGLB_LISTENER_PRIVATE_H

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

/* Answers that are the same for everybody until the next snapshot. */
enum content_body {
	BODY_PAGE,
	BODY_STATUS,
	BODY_SHOW,
	BODY_STATS,
	BODY_HISTORY,
	BODY_METRICS_TEXT,
	BODY_METRICS_OPENMETRICS,
	BODIES
};

struct content {
	json_t *snapshot;                  /* NULL: none yet */
	uint64_t arrived;                  /* milliseconds */
	json_t *base;                      /* an earlier one's stats, */
	double base_ms;                    /* and when that was */
	struct MHD_Response *body[BODIES]; /* made when first asked for */
};

int content_set(struct content *c, const char *text, size_t length, uint64_t now);
void content_free(struct content *c);
/* The answer to a request. once: the caller destroys it when it is queued. NULL without memory. */
struct MHD_Response *content_answer(struct content *c, const char *path, const char *accept, uint64_t now,
				    unsigned int *status, bool *once);
/* 405; the caller destroys it. */
struct MHD_Response *content_wrong_method(unsigned int *status);

#endif
