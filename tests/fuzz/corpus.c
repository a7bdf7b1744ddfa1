/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINKTYPE_ETHERNET 1u

struct frame *corpus;
size_t corpus_size;

static uint32_t number(const uint8_t *p, bool swapped)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return swapped ? __builtin_bswap32(value) : value;
}

static void add(const uint8_t *data, size_t length)
{
	struct frame *f;

	if (length < FRAME_MIN)
		return;
	corpus = reallocarray(corpus, corpus_size + 1, sizeof(*corpus));
	if (!corpus)
		fuzz_die(ENOMEM, "the corpus");
	f = &corpus[corpus_size++];
	memset(f, 0, sizeof(*f));
	f->length = length < FRAME_MAX ? length : FRAME_MAX;
	memcpy(f->data, data, f->length);
}

void corpus_read(const char *path)
{
	static uint8_t packet[1 << 18];
	uint8_t header[24], record[16];
	FILE *in = fopen(path, "re");
	bool swapped;

	if (!in)
		fuzz_die(errno, "%s", path);
	if (fread(header, sizeof(header), 1, in) != 1)
		fuzz_die(0, "%s: no pcap file", path);
	swapped = number(header, false) == 0xd4c3b2a1 || number(header, false) == 0x4d3cb2a1;
	if ((number(header, swapped) & 0xffff00ff) != 0xa1b200d4 && number(header, swapped) != 0xa1b23c4d)
		fuzz_die(0, "%s: no pcap file", path);
	if ((number(header + 20, swapped) & 0xffff) != LINKTYPE_ETHERNET)
		fuzz_die(0, "%s: not of Ethernet", path);
	while (fread(record, sizeof(record), 1, in) == 1) {
		uint32_t length = number(record + 8, swapped);

		if (length > sizeof(packet) || fread(packet, length, 1, in) != 1)
			break; /* captures for tests of parsers may end anywhere */
		add(packet, length);
	}
	fclose(in);
}

void corpus_free(void)
{
	free(corpus);
	corpus = NULL;
	corpus_size = 0;
}
