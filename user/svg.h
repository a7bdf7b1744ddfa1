/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pictures as SVG, complete documents for files: a pool's ring, and placements side by side. Pure. Colours are such as
 * the colour-blind tell apart, with hatching that print keeps, and everything that counts is written out too. A pool of
 * any size makes less than 500 KB: what is too thin to see is merged.
 */
#ifndef RINGLB_SVG_H
#define RINGLB_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare.h"
#include "shares.h"

struct svg_ring {
	const char *title, *subtitle;
	const char *const *name; /* of each owner */
	size_t owners;
	const uint32_t *weight;    /* 0: takes no part */
	const struct share *share; /* of arcs */
	const struct arcs *arcs;
	struct balance balance;
	/* Of before a change; NULL: no change is shown. */
	const struct arcs *before;
	const struct share *share_before;
	const struct share_change *change;
};

struct svg_compared {
	const char *name;
	bool chosen;     /* the pool's own */
	const char *why; /* it can't express the pool; NULL: it can */
	struct comparison figures;
};

/* The document, NUL-terminated, owned by the caller. */
char *svg_ring(const struct svg_ring *r);
char *svg_compare(const char *title, const char *subtitle, const struct svg_compared *v, size_t count);
/* 1,048,576: into buf, returned. */
const char *svg_count(uint64_t value, char buf[32]);

#endif
