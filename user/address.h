/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses, prefixes and ports as text and back. Pure. */
#ifndef RINGLB_ADDRESS_H
#define RINGLB_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An IPv6 address, or an IPv4 address mapped into ::ffff:0:0/96; network order. */
struct address {
	uint8_t byte[16];
};

#define ADDRESS_TEXT 48      /* longest text of an address, with its NUL */
#define ADDRESS_PORT_TEXT 56 /* of "[ADDRESS]:PORT" */

bool address_is_ipv4(const struct address *a);
bool address_equal(const struct address *a, const struct address *b);
int address_compare(const struct address *a, const struct address *b);
/* 0, or -EINVAL. No names, no zones, no brackets; "::ffff:1.2.3.4" is refused: write 1.2.3.4. */
int address_parse(const char *text, struct address *out);
/* ADDRESS or ADDRESS/LENGTH; *length counts in the address's own family (32 or 128 when there is no slash). -EINVAL also when host bits are set. */
int address_parse_prefix(const char *text, struct address *out, unsigned int *length);
/* "1.2.3.4:80" or "[::1]:80"; port in host order, 1 to 65535 or, for a source, 0 too. */
int address_parse_port(const char *text, struct address *out, uint16_t *port);
/* Return buf. */
const char *address_text(const struct address *a, char buf[ADDRESS_TEXT]);
const char *address_port_text(const struct address *a, uint16_t port, char buf[ADDRESS_PORT_TEXT]);

#endif
