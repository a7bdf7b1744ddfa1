/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes frames as a pcapng file, which tcpdump and Wireshark read. */
#ifndef RINGLB_PCAPNG_H
#define RINGLB_PCAPNG_H

#include <stdint.h>
#include <stdio.h>

/* Begins a file. 0 or -errno, like all of these. */
int pcapng_begin(FILE *f, const char *program);
/* The next interface; they count from 0. */
int pcapng_interface(FILE *f, const char *name);
/* A frame of which `captured` of `length` bytes are at `data`; time in ns since 1970; a comment that Wireshark shows. */
int pcapng_packet(FILE *f, uint32_t interface, uint64_t time, const void *data, uint32_t captured, uint32_t length,
		  const char *comment);

#endif
