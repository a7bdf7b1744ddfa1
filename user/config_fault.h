/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to config*.c: what is wrong in one file, collected in any order and handed out in the order of the places. */
#ifndef RINGLB_CONFIG_FAULT_H
#define RINGLB_CONFIG_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "diag.h"

#define FAULTS_MAX 10000u /* listed; more are counted only, so that a hostile file can't fill the memory */
#define CLIP_TEXT 72      /* buffer for clip() */
#define COUNT_TEXT 32     /* buffer for count_text() */

struct node;

struct fault {
	enum diag_level level;
	unsigned int line, column;
	size_t order;
	const char *code;
	char *message;
};

struct faults {
	struct fault *fault;
	size_t count, capacity, errors, unlisted;
	unsigned int suggestions; /* made so far: looking for a near name costs time, see near_name() */
};

/* line 0: the file as a whole. code is a literal. */
__attribute__((format(printf, 6, 7))) void fault_at(struct faults *f, enum diag_level level, const char *code,
						    unsigned int line, unsigned int column, const char *format, ...);
/* At the node, or at its key, the message prefixed with its path. */
__attribute__((format(printf, 4, 5))) void fault(struct faults *f, const struct node *n, const char *code,
						 const char *format, ...);
__attribute__((format(printf, 4, 5))) void fault_key(struct faults *f, const struct node *n, const char *code,
						     const char *format, ...);
__attribute__((format(printf, 4, 5))) void fault_warning(struct faults *f, const struct node *n, const char *code,
							 const char *format, ...);
/* At the mapping, about a key that is not there. */
__attribute__((format(printf, 5, 6))) void fault_missing(struct faults *f, const struct node *map, const char *key,
							 const char *code, const char *format, ...);
/* Adds all to d, sorted by place, and frees them. */
void faults_give(struct faults *f, const char *file, struct diag *d);

/* Text as it may stand in a message: not too long, cut between characters. Returns buf, or text itself where it fits. */
const char *clip(const char *text, char buf[CLIP_TEXT]);
/* A number with commas between the thousands. Returns buf. */
const char *count_text(uint64_t value, char buf[COUNT_TEXT]);

#endif
