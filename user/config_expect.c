/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config_expect.h"

#include <string.h>
#include <strings.h>

/* Three digits at *p, moved behind them; 0 where they are no status. */
static unsigned int take_status(const char **p)
{
	unsigned int value = 0;

	for (int i = 0; i < 3; i++) {
		if (**p < '0' || **p > '9')
			return 0;
		value = value * 10 + (unsigned int)(*(*p)++ - '0');
	}
	return value >= 100 && value <= 599 ? value : 0;
}

/* Whether the list is one, and (in *among) whether status is in it. */
static bool read_statuses(const char *text, unsigned int status, bool *among)
{
	const char *p = text;

	*among = false;
	for (;;) {
		unsigned int from = take_status(&p), to = from;

		if (from && *p == '-') {
			p++;
			to = take_status(&p);
		}
		if (!from || to < from)
			return false;
		*among |= status >= from && status <= to;
		if (!*p)
			return true;
		if (*p++ != ',')
			return false;
		p += *p == ' ';
	}
}

bool expect_status_valid(const char *text)
{
	bool among;

	return read_statuses(text, 0, &among);
}

bool expect_status(const char *text, unsigned int status)
{
	bool among;

	return read_statuses(text, status, &among) && among;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

	return found ? (int)(found - digits) : -1;
}

size_t expect_bytes(const char *text, uint8_t out[EXPECT_MAX_BYTES])
{
	size_t length;

	if (strncmp(text, "hex:", 4)) {
		length = strlen(text);
		if (length > EXPECT_MAX_BYTES)
			return 0;
		memcpy(out, text, length);
		return length;
	}
	text += 4;
	length = strlen(text);
	if (length % 2 || length / 2 > EXPECT_MAX_BYTES)
		return 0;
	for (size_t i = 0; i < length / 2; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return 0;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return length / 2;
}

static const char *const rcode_names[] = { "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED" };

#define RCODES (sizeof(rcode_names) / sizeof(*rcode_names))

const char *dns_rcode_name(unsigned int rcode)
{
	return rcode < RCODES ? rcode_names[rcode] : "RCODE";
}

bool expect_dns(const char *text, struct expect_dns *out)
{
	for (size_t i = 0; i < RCODES; i++) {
		if (strcasecmp(text, rcode_names[i]))
			continue;
		*out = (struct expect_dns){ .rcode = (int)i };
		return true;
	}
	*out = (struct expect_dns){ .rcode = -1 };
	return !address_parse(text, &out->address);
}

const char *const dns_type_names[] = { "A", "NS", "CNAME", "SOA", "PTR", "MX", "TXT", "AAAA", "SRV", NULL };
const uint16_t dns_type_numbers[] = { 1, 2, 5, 6, 12, 15, 16, 28, 33 };

size_t dns_name(const char *text, uint8_t out[DNS_MAX_NAME])
{
	size_t length = 0;

	if (!strcmp(text, "."))
		text++;
	while (*text) {
		size_t label = strcspn(text, ".");

		if (!label || label > 63 || length + 1 + label + 1 > DNS_MAX_NAME)
			return 0;
		out[length++] = (uint8_t)label;
		memcpy(out + length, text, label);
		length += label;
		text += label;
		text += *text == '.';
	}
	out[length++] = 0;
	return length;
}
