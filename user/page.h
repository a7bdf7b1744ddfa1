/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The status page: one document with style and script inside, which asks /api/v1/status again and again; what the
 * snapshot says stands in it as plain tables, for browsers without JavaScript. Pure.
 */
#ifndef RINGLB_PAGE_H
#define RINGLB_PAGE_H

#include <jansson.h>

/* Owned by the caller; NULL without memory. */
char *page_html(const json_t *snapshot);
/* The page's Content-Security-Policy: its own style and script, by their digests, and nothing from elsewhere. */
const char *page_policy(void);

#endif
