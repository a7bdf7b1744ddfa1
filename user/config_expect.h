/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a check's `expect`, `send`, `query` and `query_type` mean: read from text, once to check a configuration and
 * once to act on it. Pure.
 *   http, https  status codes and ranges of them: "200-399", "200,204,301-308"
 *   dns          the name of a response code, "NOERROR"; or an address that must be among the answers
 *   udp          bytes that must be in the answer: the text itself, or "hex:00ff"
 */
#ifndef RINGLB_CONFIG_EXPECT_H
#define RINGLB_CONFIG_EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

#define EXPECT_MAX_BYTES 1400u /* of what is sent or expected: one packet */
#define DNS_MAX_NAME 255u      /* as it goes over the wire */

/* Whether the text is a list of codes from 100 to 599. */
bool expect_status_valid(const char *text);
bool expect_status(const char *text, unsigned int status);

/* The bytes and how many; 0 where the text is none, or more than EXPECT_MAX_BYTES. */
size_t expect_bytes(const char *text, uint8_t out[EXPECT_MAX_BYTES]);

struct expect_dns {
	int rcode; /* -1: an address instead, and NOERROR */
	struct address address;
};
bool expect_dns(const char *text, struct expect_dns *out);
const char *dns_rcode_name(unsigned int rcode); /* "RCODE" where it has none here */

/* Names of types, ended by NULL, and their numbers in the same order. */
extern const char *const dns_type_names[];
extern const uint16_t dns_type_numbers[];
/* "www.example.org" in the form of the wire, its length returned; 0 where it is no name. "." is the root. */
size_t dns_name(const char *text, uint8_t out[DNS_MAX_NAME]);

#endif
