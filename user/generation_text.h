/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to generation*.c: what stands in the file of a generation. */
#ifndef RINGLB_GENERATION_TEXT_H
#define RINGLB_GENERATION_TEXT_H

#include "generation.h"

#define GENERATION_KEY_FILE "# hash key from: " /* a comment behind the head, where the key came from a file */

/* The whole file; owned by the caller. */
char *generation_text(uint32_t number, time_t time, const char *digest, const char *summary, const struct config *c);
/*
 * The file's text, and what its comments say. NULL with errno where it can't be read, or, errno EBADMSG, where it is
 * not what was written; out->damaged then, and the rest is empty. Freed with generation_text_free.
 */
char *generation_read(const char *path, uint32_t number, struct generation *out);
void generation_text_free(char *text);

#endif
