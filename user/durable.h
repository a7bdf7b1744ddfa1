/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files that are there whole or not at all, also after a power cut. */
#ifndef RINGLB_DURABLE_H
#define RINGLB_DURABLE_H

#include <stddef.h>

/*
 * Writes all of it, makes it durable, and closes fd, in any case. 0 or -errno. The file is then ready for rename(2),
 * and the rename for durable_directory.
 */
int durable_write(int fd, const void *bytes, size_t length);
/* Makes names in a directory durable. 0 or -errno. */
int durable_directory(const char *path);

#endif
