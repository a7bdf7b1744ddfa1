/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The oracle's parser: written from the RFCs, byte by byte, for reading and not for speed. */
#include "fuzz.h"

#include <string.h>

#define TCP 6u
#define UDP 17u
#define ICMP 1u
#define ICMP6 58u

uint32_t ones_sum(uint32_t start, const uint8_t *data, size_t length)
{
	uint64_t sum = start;

	for (size_t i = 0; i + 1 < length; i += 2)
		sum += get16(data + i);
	if (length & 1)
		sum += (uint64_t)data[length - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum ? (uint32_t)sum : 0xffff;
}

uint32_t pseudo_sum(const uint8_t *ip, uint32_t protocol, size_t length)
{
	const bool ipv6 = ip[0] >> 4 == 6;
	uint32_t sum = ipv6 ? ones_sum(0, ip + 8, 32) : ones_sum(0, ip + 12, 8);

	return sum + protocol + (uint32_t)(length >> 16) + (uint32_t)(length & 0xffff);
}

/* The ethertype, and where its header begins; 0 where the frame ends before. */
static uint32_t look_at_link(const struct frame *f, uint32_t *network)
{
	uint32_t type, at = 12;

	for (int tags = 0;; tags++) {
		if (at + 2 > f->length)
			return 0;
		type = get16(f->data + at);
		*network = at + 2;
		if ((type != 0x8100 && type != 0x88a8) || tags == 2)
			return type;
		at += 4;
	}
}

static enum shape look_at_ports(const struct frame *f, struct shape_of *s)
{
	const uint8_t *p = f->data + s->transport;
	const uint32_t rest = s->network + s->length - s->transport;

	if (s->protocol != TCP && s->protocol != UDP)
		return SHAPE_OTHER;
	if (rest < (s->protocol == TCP ? 20u : 8u))
		return SHAPE_MALFORMED;
	s->client_port = (uint16_t)get16(p);
	s->service_port = (uint16_t)get16(p + 2);
	if (s->protocol == TCP)
		return (p[12] >> 4) >= 5 && (p[12] >> 4) * 4u <= rest ? SHAPE_PLAIN : SHAPE_MALFORMED;
	return get16(p + 4) >= 8 && get16(p + 4) <= rest ? SHAPE_PLAIN : SHAPE_MALFORMED;
}

static void look_at_ipv4(const struct frame *f, struct shape_of *s)
{
	const uint8_t *ip = f->data + s->network;
	const uint32_t header = (ip[0] & 15) * 4u;

	s->length = get16(ip + 2);
	s->protocol = ip[9];
	s->ttl = ip[8];
	s->tos = ip[1];
	s->transport = s->network + header;
	memcpy(s->source, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	memcpy(s->destination, s->source, 12);
	memcpy(s->source + 12, ip + 12, 4);
	memcpy(s->destination + 12, ip + 16, 4);
	if (ip[0] >> 4 != 4 || header < 20 || s->length < header || s->length > f->length - s->network)
		s->shape = SHAPE_MALFORMED;
	else if (get16(ip + 6) & 0x3fff)
		s->shape = SHAPE_OTHER;
	else
		s->shape = look_at_ports(f, s);
}

static void look_at_ipv6(const struct frame *f, struct shape_of *s)
{
	const uint8_t *ip = f->data + s->network;

	s->ipv6 = true;
	s->length = get16(ip + 4) + 40;
	s->protocol = ip[6];
	s->ttl = ip[7];
	s->tos = (uint8_t)(get16(ip) >> 4);
	s->transport = s->network + 40;
	memcpy(s->source, ip + 8, 16);
	memcpy(s->destination, ip + 24, 16);
	if (ip[0] >> 4 != 6 || s->length > f->length - s->network)
		s->shape = SHAPE_MALFORMED;
	else
		s->shape = look_at_ports(f, s);
}

void wire_look(const struct frame *f, struct shape_of *s)
{
	uint32_t type;

	memset(s, 0, sizeof(*s));
	type = look_at_link(f, &s->network);
	if (type == 0x0800 && f->length >= s->network + 20)
		look_at_ipv4(f, s);
	else if (type == 0x86dd && f->length >= s->network + 40)
		look_at_ipv6(f, s);
}

/* Of a transport at `at`, `rest` bytes long, under the IP header `ip`. */
static void fix_transport(uint8_t *ip, uint32_t protocol, uint8_t *at, size_t rest)
{
	size_t place = protocol == TCP ? 16 : protocol == UDP ? 6 : 2;
	uint32_t sum;

	if ((protocol != TCP && protocol != UDP && protocol != ICMP && protocol != ICMP6) || rest < place + 2)
		return;
	if (protocol == UDP && get16(at + 4) >= 8 && get16(at + 4) <= rest)
		rest = get16(at + 4);
	put16(at + place, 0);
	sum = protocol == ICMP ? 0 : pseudo_sum(ip, protocol, rest);
	sum = 0xffff & ~ones_sum(sum, at, rest);
	put16(at + place, protocol == UDP && !sum ? 0xffff : sum);
}

static void fix_ip(uint8_t *ip, size_t room, int depth);

/* What an ICMP error quotes, or a tunnel has in it, first: it is part of the sum around it. */
static void fix_inner(uint32_t protocol, uint8_t *at, size_t rest, int depth)
{
	const bool error = (protocol == ICMP && (at[0] == 3 || at[0] == 11 || at[0] == 12)) ||
			   (protocol == ICMP6 && at[0] < 128);

	if (depth > 2 || rest < 8)
		return;
	if (protocol == 4 || protocol == 41)
		fix_ip(at, rest, depth + 1);
	else if (error || (protocol == UDP && get16(at + 2) == GUE_PORT))
		fix_ip(at + 8, rest - 8, depth + 1);
}

static void fix_ip(uint8_t *ip, size_t room, int depth)
{
	size_t header = (ip[0] & 15) * 4u, length;

	if (room >= 20 && ip[0] >> 4 == 4 && header >= 20 && header <= room) {
		length = get16(ip + 2) < room ? get16(ip + 2) : room;
		put16(ip + 10, 0);
		put16(ip + 10, 0xffff & ~ones_sum(0, ip, header));
		if (length < header || get16(ip + 6) & 0x3fff)
			return;
		fix_inner(ip[9], ip + header, length - header, depth);
		fix_transport(ip, ip[9], ip + header, length - header);
	} else if (room >= 40 && ip[0] >> 4 == 6) {
		length = get16(ip + 4) + 40u < room ? get16(ip + 4) + 40u : room;
		fix_inner(ip[6], ip + 40, length - 40, depth);
		fix_transport(ip, ip[6], ip + 40, length - 40);
	}
}

void wire_fix_checksums(struct frame *f)
{
	uint32_t network, type = look_at_link(f, &network);

	if ((type == 0x0800 || type == 0x86dd) && network + 20 <= f->length)
		fix_ip(f->data + network, f->length - network, 0);
}
