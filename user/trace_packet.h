/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a traced packet says of itself. Pure. */
#ifndef RINGLB_TRACE_PACKET_H
#define RINGLB_TRACE_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "../include/ringlb_abi.h"

struct trace_packet {
	bool ip; /* the rest is filled in for IP packets, as far as what was captured goes */
	struct address source, destination;
	uint8_t protocol; /* behind IPv6 extension headers */
	uint32_t length;  /* of the IP packet, by its header */
	bool fragment;    /* not the first: there are no ports */
	bool ports;
	uint16_t source_port, destination_port;
	bool tcp; /* tcp_flags are there */
	uint8_t tcp_flags;
	uint16_t ethertype;
};

/* Reads the packet as it came, without what forwarding put around it. */
void trace_packet_read(const struct ringlb_trace *t, struct trace_packet *out);
/* In one line: "tcp 198.51.100.7:40000 > 192.0.2.10:443 [S] 60 bytes". Returns buf. */
#define TRACE_PACKET_TEXT 192
const char *trace_packet_text(const struct trace_packet *p, char buf[TRACE_PACKET_TEXT]);
/* "tcp", or its number. Returns buf. */
#define TRACE_PROTOCOL_TEXT 16
const char *trace_protocol_text(uint8_t protocol, char buf[TRACE_PROTOCOL_TEXT]);

#endif
