/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The history of generations: a file for each in a directory of the instance's (mode 0700, files 0600, they hold the hash
 * key). File N is a configuration with a comment in front. Only what the kernel runs is the truth: a file of a higher
 * number was prepared and never published. Writers hold the instance's lock.
 */
#ifndef RINGLB_GENERATION_H
#define RINGLB_GENERATION_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "diag.h"

#define GENERATIONS_KEPT 50u

struct generation {
	uint32_t number;
	char *time;    /* RFC 3339, UTC */
	char *digest;
	char *summary; /* one line */
	bool damaged;  /* its file can't be read; the texts are "" then */
};

struct generations {
	struct generation *generation; /* by number, ascending */
	size_t count;
};

/* Writes file `number`: temporary, fsync, rename, fsync of the directory, which is made. 0, or -errno with a message. */
int generation_write(const char *dir, uint32_t number, const char *digest, const char *summary, const struct config *c,
		     struct diag *d);
/* 0 or -errno; a file that is not there is fine. */
int generation_remove(const char *dir, uint32_t number);
/* Those that there are; a directory that is not there has none. 0 or -errno. */
int generation_list(const char *dir, struct generations *out);
void generations_free(struct generations *g);
/* The configuration of a generation, or NULL with a message. */
struct config *generation_load(const char *dir, uint32_t number, struct diag *d);
/* The highest number that there is; 0 for none. */
uint32_t generation_last(const char *dir);
/* Removes the oldest beyond `keep`, never `running`. */
void generation_prune(const char *dir, size_t keep, uint32_t running);
/* Removes files above `running`, never published, and temporary ones. Returns how many numbered ones. */
unsigned int generation_repair(const char *dir, uint32_t running);

#endif
