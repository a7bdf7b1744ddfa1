/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The history of an instance: a file for each generation in STATE_DIR/INSTANCE, such as 000008.yaml, that holds the
 * configuration as `apply` takes it, its hash key in it. The kernel is the truth about what runs; a generation's file
 * is written before the kernel is told, and one that was never published is removed by the next command. Who writes or
 * removes holds the instance's lock; who reads need not. Knows files, no clock and no kernel.
 */
#ifndef RINGLB_GENERATION_H
#define RINGLB_GENERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "config.h"
#include "diag.h"

#define GENERATION_KEEP 50u /* files kept where nothing else is said */

struct generation {
	uint32_t number;
	char time[24];   /* RFC 3339, UTC, when it was written; empty where damaged */
	char digest[33]; /* of the state, see state.h */
	char *summary;   /* one line; never NULL */
	uint64_t bytes;  /* of its file */
	bool damaged;    /* not what was written: it can't be loaded */
};

/* DIR/000008.yaml; owned by the caller. */
char *generation_path(const char *dir, uint32_t number);
/*
 * Writes the file of a generation, durably, and makes dir (0700) and its parent where they are missing. One that is
 * there already is replaced. 0; or -errno with a message that names the file and the remedy, and what was there before
 * is there still.
 */
int generation_write(const char *dir, uint32_t number, time_t time, const char *digest, const char *summary,
		     const struct config *c, struct diag *d);
/* Takes a file back whose generation was not published. 0, also where there is none; or -errno. */
int generation_remove(const char *dir, uint32_t number);
/*
 * All that are kept, sorted by number, damaged ones too; freed with generation_list_free. Other files are left out; no
 * directory is no history. 0, or -errno with a message.
 */
int generation_list(const char *dir, struct generation **out, size_t *count, struct diag *d);
void generation_list_free(struct generation *list, size_t count);
/*
 * The configuration of a generation; NULL with a message where it is not kept, damaged, or no longer valid. A key that
 * came from a file names that file again, as long as it holds the same key.
 */
struct config *generation_load(const char *dir, uint32_t number, struct diag *d);
/* Removes the oldest until keep are left; never the running one. How many, or -errno. */
int generation_prune(const char *dir, uint32_t keep, uint32_t running);
/* The highest number there is, damaged or not; 0 for none. The next one should be above it. */
uint32_t generation_last(const char *dir);
/*
 * After a crash: removes half-written files, and the file above the running generation, which was prepared and never
 * published; a warning names it. More than one above it can't have come from a crash: they are the history of an
 * earlier life of the instance, and stay. running 0: nothing runs, so only half-written files go. How many generations were
 * removed, or -errno with a warning: what runs needs no history.
 */
int generation_repair(const char *dir, uint32_t running, struct diag *d);

#endif
