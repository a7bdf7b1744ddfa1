/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DNS messages (RFC 1035): a query, and what answers it. */
#include <stdio.h>
#include <string.h>

#include "config_expect.h"
#include "probe_private.h"

#define HEADER 12u
#define TYPE_A 1u
#define TYPE_AAAA 28u

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint16_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

size_t dns_query(uint8_t out[512], uint16_t id, const char *name, uint16_t type)
{
	size_t length;

	memset(out, 0, HEADER);
	put16(out, id);
	out[2] = 1; /* recursion desired */
	out[5] = 1; /* one question */
	length = dns_name(name, out + HEADER);
	if (!length)
		return 0;
	put16(out + HEADER + length, type);
	put16(out + HEADER + length + 2, 1); /* class IN */
	return HEADER + length + 4;
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* Servers may write the name in another case. */
static bool same_question(const uint8_t *query, size_t length, const uint8_t *answer)
{
	for (size_t i = HEADER; i < length; i++) {
		if (lower(query[i]) != lower(answer[i]))
			return false;
	}
	return true;
}

/* The place behind a name, or 0 where the message ends before it does. */
static size_t skip_name(const uint8_t *m, size_t length, size_t at)
{
	while (at < length) {
		if (!m[at])
			return at + 1;
		if (m[at] >= 0xc0)
			return at + 2; /* continues elsewhere, which is of no interest */
		at += 1u + m[at];
	}
	return 0;
}

/* Whether the address is that of a record among the answers. */
static bool has_address(const uint8_t *m, size_t length, size_t at, const struct address *a)
{
	bool four = address_is_ipv4(a);
	uint16_t wanted_type = four ? TYPE_A : TYPE_AAAA, wanted_size = four ? 4 : 16;

	for (unsigned int records = get16(m + 6); records; records--) {
		uint16_t type, size;

		at = skip_name(m, length, at);
		if (!at || at + 10 > length)
			return false;
		type = get16(m + at);
		size = get16(m + at + 8);
		at += 10;
		if (at + size > length)
			return false;
		if (type == wanted_type && size == wanted_size && !memcmp(m + at, a->byte + 16 - size, size))
			return true;
		at += size;
	}
	return false;
}

bool dns_answer(const uint8_t *query, size_t query_length, const uint8_t *answer, size_t length, const char *expect,
		bool *good, char reason[PROBE_REASON])
{
	struct expect_dns wanted;
	unsigned int rcode;

	if (length < HEADER || get16(answer) != get16(query) || !(answer[2] & 0x80))
		return false;
	rcode = answer[3] & 0xf;
	/* A server that can't read the query (FORMERR), or will not, may leave the question out. */
	if (get16(answer + 4) ? length < query_length || !same_question(query, query_length, answer) : !rcode)
		return false;
	*good = false;
	if (!expect_dns(expect, &wanted))
		return false;
	if (rcode != (unsigned int)(wanted.rcode < 0 ? 0 : wanted.rcode)) {
		snprintf(reason, PROBE_REASON, "answer %s (%u), want %s", dns_rcode_name(rcode), rcode, expect);
	} else if (wanted.rcode < 0 && !has_address(answer, length, query_length, &wanted.address)) {
		snprintf(reason, PROBE_REASON, "answer without %s", expect);
	} else {
		*good = true;
		snprintf(reason, PROBE_REASON, "answer %s", expect);
	}
	return true;
}
