/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "trace_packet.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define MAX_EXTENSIONS 8

/* What is left of what was captured. */
struct cursor {
	const uint8_t *at, *end;
};

static bool has(const struct cursor *c, size_t bytes)
{
	return (size_t)(c->end - c->at) >= bytes;
}

static uint16_t word(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void read_transport(const struct cursor *c, struct trace_packet *out)
{
	if (out->fragment || (out->protocol != IPPROTO_TCP && out->protocol != IPPROTO_UDP) || !has(c, 4))
		return;
	out->ports = true;
	out->source_port = word(c->at);
	out->destination_port = word(c->at + 2);
	out->tcp = out->protocol == IPPROTO_TCP && has(c, 14);
	if (out->tcp)
		out->tcp_flags = c->at[13];
}

static void read_ipv4(struct cursor *c, struct trace_packet *out)
{
	static const struct address mapped = { { [10] = 0xff, [11] = 0xff } };
	size_t header;

	if (!has(c, 20))
		return;
	header = (c->at[0] & 0xfu) * 4u;
	out->ip = true;
	out->source = out->destination = mapped;
	memcpy(&out->source.byte[12], c->at + 12, 4);
	memcpy(&out->destination.byte[12], c->at + 16, 4);
	out->protocol = c->at[9];
	out->length = word(c->at + 2);
	out->fragment = word(c->at + 6) & 0x1fff;
	if (header < 20 || !has(c, header))
		return;
	c->at += header;
	read_transport(c, out);
}

static void read_ipv6(struct cursor *c, struct trace_packet *out)
{
	if (!has(c, 40))
		return;
	out->ip = true;
	memcpy(out->source.byte, c->at + 8, 16);
	memcpy(out->destination.byte, c->at + 24, 16);
	out->protocol = c->at[6];
	out->length = word(c->at + 4) + 40u;
	c->at += 40;
	for (int i = 0; i < MAX_EXTENSIONS && has(c, 8); i++) {
		size_t length = 8 * (c->at[1] + 1u);

		if (out->protocol == IPPROTO_FRAGMENT) {
			length = 8;
			out->fragment = word(c->at + 2) & 0xfff8;
		} else if (out->protocol != IPPROTO_HOPOPTS && out->protocol != IPPROTO_ROUTING &&
			   out->protocol != IPPROTO_DSTOPTS) {
			break;
		}
		out->protocol = c->at[0];
		if (!has(c, length))
			return;
		c->at += length;
	}
	read_transport(c, out);
}

void trace_packet_read(const struct ringlb_trace *t, struct trace_packet *out)
{
	uint32_t captured = t->captured < RINGLB_TRACE_BYTES ? t->captured : RINGLB_TRACE_BYTES;
	struct cursor c = { t->data, t->data + captured };

	memset(out, 0, sizeof(*out));
	if (has(&c, 14))
		out->ethertype = word(c.at + 12);
	if (!t->network || !has(&c, t->network + 1u))
		return;
	c.at += t->network;
	if (*c.at >> 4 == 6)
		read_ipv6(&c, out);
	else
		read_ipv4(&c, out);
}

const char *trace_protocol_text(uint8_t protocol, char buf[TRACE_PROTOCOL_TEXT])
{
	static const struct {
		uint8_t number;
		const char *name;
	} known[] = {
		{ IPPROTO_TCP, "tcp" }, { IPPROTO_UDP, "udp" }, { IPPROTO_ICMP, "icmp" }, { IPPROTO_ICMPV6, "icmp6" },
		{ IPPROTO_ESP, "esp" }, { IPPROTO_GRE, "gre" }, { IPPROTO_SCTP, "sctp" },
	};

	snprintf(buf, TRACE_PROTOCOL_TEXT, "protocol %u", protocol);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].number == protocol)
			snprintf(buf, TRACE_PROTOCOL_TEXT, "%s", known[i].name);
	return buf;
}

/* As tcpdump has them. */
static void flags_text(uint8_t flags, char buf[12])
{
	static const char letters[] = "FSRP.UEW";
	size_t n = 0;

	for (unsigned int i = 0; i < 8; i++)
		if (flags & 1u << i)
			buf[n++] = letters[i];
	buf[n] = '\0';
}

static const char *end_text(const struct trace_packet *p, const struct address *a, uint16_t port,
			    char buf[ADDRESS_PORT_TEXT])
{
	return p->ports ? address_port_text(a, port, buf) : address_text(a, buf);
}

const char *trace_packet_text(const struct trace_packet *p, char buf[TRACE_PACKET_TEXT])
{
	char source[ADDRESS_PORT_TEXT], destination[ADDRESS_PORT_TEXT], protocol[TRACE_PROTOCOL_TEXT], flags[12];
	char more[24] = "";

	if (!p->ip) {
		snprintf(buf, TRACE_PACKET_TEXT, "ethertype 0x%04x", p->ethertype);
		return buf;
	}
	if (p->tcp) {
		flags_text(p->tcp_flags, flags);
		snprintf(more, sizeof(more), "[%s] ", flags);
	} else if (p->fragment) {
		snprintf(more, sizeof(more), "fragment ");
	}
	snprintf(buf, TRACE_PACKET_TEXT, "%s %s > %s %s%u bytes", trace_protocol_text(p->protocol, protocol),
		 end_text(p, &p->source, p->source_port, source),
		 end_text(p, &p->destination, p->destination_port, destination), more, p->length);
	return buf;
}
