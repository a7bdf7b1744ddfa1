/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a packet of a client to a service hashes to, and what it looks like. Pure. */
#ifndef RINGLB_LOOKUP_H
#define RINGLB_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "config.h"
#include "diag.h"

/* Where the packet is sent to, and the service that has it. */
struct lookup_target {
	const struct config *config;
	const struct config_service *service;
	struct address address;
	uint16_t port;    /* host order */
	uint8_t protocol; /* 0: one that has no ports, of no matter which name */
};

struct lookup_source {
	struct address address;
	uint16_t port; /* host order */
};

/* Longest frame that lookup_frame makes. */
#define LOOKUP_FRAME 96u

/*
 * Finds the service that text means: a name, where that says all, or ADDRESS:PORT/PROTOCOL, ADDRESS:any/any for what is
 * neither TCP nor UDP. 0, or -EINVAL with a message in d.
 */
int lookup_target_find(const struct config *c, const char *text, struct lookup_target *out, struct diag *d);
/* "ADDRESS:PORT" of a client that can reach the target. 0, or -EINVAL with a message in d; where is its place. */
int lookup_source_parse(const struct lookup_target *t, const char *text, const char *where, struct lookup_source *out,
			struct diag *d);
/* The position on the pool's ring, as the data plane computes it. */
uint32_t lookup_position(const struct lookup_target *t, const struct lookup_source *s);
/*
 * Such a packet as an Ethernet frame: for TCP a SYN, or established a mere ACK; for UDP an empty datagram, or with
 * affinity quic the start of an Initial, established of a packet with a short header; for another protocol nothing behind
 * the IP header. At least as long as struct ringlb_lookup. Returns its length.
 */
size_t lookup_frame(const struct lookup_target *t, const struct lookup_source *s, bool established,
		    uint8_t frame[LOOKUP_FRAME]);

#endif
