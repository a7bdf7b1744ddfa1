/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

bool address_is_ipv4(const struct address *a)
{
	return !memcmp(a->byte, mapped, sizeof(mapped));
}

bool address_equal(const struct address *a, const struct address *b)
{
	return !memcmp(a->byte, b->byte, sizeof(a->byte));
}

int address_compare(const struct address *a, const struct address *b)
{
	return memcmp(a->byte, b->byte, sizeof(a->byte));
}

int address_parse(const char *text, struct address *out)
{
	struct address a;

	if (strchr(text, ':')) {
		/* Two spellings of one address would be two names for one thing: IPv4 has only its own. */
		if (inet_pton(AF_INET6, text, a.byte) != 1 || address_is_ipv4(&a))
			return -EINVAL;
	} else {
		memcpy(a.byte, mapped, sizeof(mapped));
		if (inet_pton(AF_INET, text, a.byte + 12) != 1)
			return -EINVAL;
	}
	*out = a;
	return 0;
}

/* A decimal number without sign, blanks or leading zeros, up to max (which is below 10^9). */
static int parse_decimal(const char *text, unsigned long max, unsigned long *out)
{
	unsigned long value = 0;
	size_t length = strspn(text, "0123456789");

	if (!length || text[length] || length > 9 || (length > 1 && text[0] == '0'))
		return -EINVAL;
	for (; *text; text++)
		value = value * 10 + (unsigned long)(*text - '0');
	if (value > max)
		return -EINVAL;
	*out = value;
	return 0;
}

/* The part of text before stop, as an address. */
static int parse_head(const char *text, const char *stop, struct address *out)
{
	char head[ADDRESS_TEXT];
	size_t length = (size_t)(stop - text);

	if (length >= sizeof(head))
		return -EINVAL;
	memcpy(head, text, length);
	head[length] = '\0';
	return address_parse(head, out);
}

int address_parse_prefix(const char *text, struct address *out, unsigned int *length)
{
	const char *slash = strchr(text, '/');
	unsigned long bits, max, skip;
	struct address a;

	if (parse_head(text, slash ? slash : text + strlen(text), &a))
		return -EINVAL;
	max = address_is_ipv4(&a) ? 32 : 128;
	skip = 128 - max;
	bits = max;
	if (slash && parse_decimal(slash + 1, max, &bits))
		return -EINVAL;
	for (unsigned long i = skip + bits; i < 128; i++) {
		if (a.byte[i / 8] & 0x80 >> i % 8)
			return -EINVAL;
	}
	*out = a;
	*length = (unsigned int)bits;
	return 0;
}

int address_parse_port(const char *text, struct address *out, uint16_t *port)
{
	const char *colon = strrchr(text, ':'), *end = colon;
	unsigned long value;
	struct address a;

	if (!colon)
		return -EINVAL;
	if (text[0] == '[') {
		text++;
		end--;
		if (end < text || *end != ']')
			return -EINVAL;
	}
	/* The brackets are IPv6's, and it needs them. */
	if (parse_head(text, end, &a) || address_is_ipv4(&a) != (end == colon))
		return -EINVAL;
	if (parse_decimal(colon + 1, UINT16_MAX, &value))
		return -EINVAL;
	*out = a;
	*port = (uint16_t)value;
	return 0;
}

const char *address_text(const struct address *a, char buf[ADDRESS_TEXT])
{
	if (address_is_ipv4(a))
		inet_ntop(AF_INET, a->byte + 12, buf, ADDRESS_TEXT);
	else
		inet_ntop(AF_INET6, a->byte, buf, ADDRESS_TEXT);
	return buf;
}

const char *address_port_text(const struct address *a, uint16_t port, char buf[ADDRESS_PORT_TEXT])
{
	char text[ADDRESS_TEXT];

	address_text(a, text);
	snprintf(buf, ADDRESS_PORT_TEXT, address_is_ipv4(a) ? "%s:%u" : "[%s]:%u", text, port);
	return buf;
}
