/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* draft-ietf-opsawg-pcapng: blocks of type, length, body and length again, in the byte order of whoever writes. */
#include "pcapng.h"

#include <errno.h>
#include <string.h>

#define SECTION 0x0a0d0d0au
#define SECTION_ORDER 0x1a2b3c4du
#define INTERFACE 1u
#define PACKET 6u
#define LINK_ETHERNET 1u
#define OPTION_END 0u
#define OPTION_COMMENT 1u
#define OPTION_SECTION_PROGRAM 4u
#define OPTION_INTERFACE_NAME 2u
#define OPTION_INTERFACE_RESOLUTION 9u
#define NANOSECONDS 9u /* a power of ten */

static uint32_t padded(size_t length)
{
	return ((uint32_t)length + 3) & ~3u;
}

static void put32(FILE *f, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, f);
}

static void put16(FILE *f, uint32_t value)
{
	uint16_t half = (uint16_t)value;

	fwrite(&half, sizeof(half), 1, f);
}

static void put_bytes(FILE *f, const void *data, size_t length)
{
	static const char zeros[4];

	if (length)
		fwrite(data, 1, length, f);
	fwrite(zeros, 1, padded(length) - length, f);
}

static uint32_t option_size(size_t length)
{
	return 4 + padded(length);
}

static void put_option(FILE *f, uint32_t code, const void *data, size_t length)
{
	put16(f, code);
	put16(f, (uint32_t)length);
	put_bytes(f, data, length);
}

static int result(FILE *f)
{
	return ferror(f) ? (errno ? -errno : -EIO) : 0;
}

int pcapng_begin(FILE *f, const char *program)
{
	uint32_t length = 28 + option_size(strlen(program)) + option_size(0);

	put32(f, SECTION);
	put32(f, length);
	put32(f, SECTION_ORDER);
	put16(f, 1); /* version 1.0 */
	put16(f, 0);
	put32(f, UINT32_MAX); /* as long as the file: its length is not known */
	put32(f, UINT32_MAX);
	put_option(f, OPTION_SECTION_PROGRAM, program, strlen(program));
	put_option(f, OPTION_END, NULL, 0);
	put32(f, length);
	return result(f);
}

int pcapng_interface(FILE *f, const char *name)
{
	uint32_t length = 20 + option_size(strlen(name)) + option_size(1) + option_size(0);
	uint8_t resolution = NANOSECONDS;

	put32(f, INTERFACE);
	put32(f, length);
	put16(f, LINK_ETHERNET);
	put16(f, 0);
	put32(f, 0); /* no limit */
	put_option(f, OPTION_INTERFACE_NAME, name, strlen(name));
	put_option(f, OPTION_INTERFACE_RESOLUTION, &resolution, 1);
	put_option(f, OPTION_END, NULL, 0);
	put32(f, length);
	return result(f);
}

int pcapng_packet(FILE *f, uint32_t interface, uint64_t time, const void *data, uint32_t captured, uint32_t length,
		  const char *comment)
{
	uint32_t block = 32 + padded(captured) + option_size(strlen(comment)) + option_size(0);

	put32(f, PACKET);
	put32(f, block);
	put32(f, interface);
	put32(f, (uint32_t)(time >> 32));
	put32(f, (uint32_t)time);
	put32(f, captured);
	put32(f, length);
	put_bytes(f, data, captured);
	put_option(f, OPTION_COMMENT, comment, strlen(comment));
	put_option(f, OPTION_END, NULL, 0);
	put32(f, block);
	return result(f);
}
