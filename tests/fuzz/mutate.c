/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fuzz.h"

#include <string.h>

static void flip_bits(struct frame *f)
{
	for (uint32_t n = 1 + below(8); n; n--)
		f->data[below((uint32_t)f->length)] ^= (uint8_t)(1u << below(8));
}

static void set_bytes(struct frame *f)
{
	static const uint8_t likely[] = { 0, 1, 4, 5, 6, 17, 41, 43, 44, 58, 60, 0x45, 0x60, 0x7f, 0x80, 0xff };

	for (uint32_t n = 1 + below(4); n; n--)
		f->data[below((uint32_t)f->length)] = one_in(2) ? likely[below(sizeof(likely))] :
								  (uint8_t)fuzz_random();
}

static void truncate(struct frame *f)
{
	f->length = FRAME_MIN + below((uint32_t)(f->length - FRAME_MIN) + 1);
}

static void extend(struct frame *f)
{
	uint32_t more = below(one_in(4) ? 1600 : 40);

	for (; more && f->length < FRAME_MAX; more--)
		f->data[f->length++] = (uint8_t)fuzz_random();
}

static void insert(struct frame *f, size_t at, const uint8_t *data, size_t length)
{
	if (at > f->length || f->length + length > FRAME_MAX)
		return;
	memmove(f->data + at + length, f->data + at, f->length - at);
	memcpy(f->data + at, data, length);
	f->length += length;
}

static void cut(struct frame *f, size_t at, size_t length)
{
	if (at + length > f->length || f->length - length < FRAME_MIN)
		return;
	memmove(f->data + at, f->data + at + length, f->length - at - length);
	f->length -= length;
}

/* Where headers are likely to begin, whatever the frame is. */
static size_t boundary(const struct frame *f)
{
	static const uint8_t behind[] = { 0, 8, 20, 28, 40, 48 };
	struct shape_of p;
	size_t at;

	wire_look(f, &p);
	at = p.network + behind[below(sizeof(behind))];
	return at < f->length ? at : p.network;
}

/* The rest of another packet in the place of this one's. */
static void splice(struct frame *f)
{
	const struct frame *other = &corpus[below((uint32_t)corpus_size)];
	size_t at = boundary(f), from = boundary(other), length;

	if (from >= other->length || at > f->length)
		return;
	length = other->length - from;
	if (at + length > FRAME_MAX)
		length = FRAME_MAX - at;
	memcpy(f->data + at, other->data + from, length);
	f->length = at + length > FRAME_MIN ? at + length : FRAME_MIN;
}

static void change_vlan(struct frame *f)
{
	const uint8_t tag[4] = { (uint8_t)(one_in(2) ? 0x81 : 0x88), (uint8_t)(one_in(2) ? 0x00 : 0xa8),
				 (uint8_t)fuzz_random(), (uint8_t)fuzz_random() };

	if (one_in(3))
		cut(f, 12, 4);
	else
		insert(f, 12, tag, sizeof(tag));
}

static void change_ipv4(uint8_t *ip)
{
	switch (below(8)) {
	case 0:
		ip[0] = (uint8_t)(0x40 | below(16));
		break;
	case 1:
		put16(ip + 2, get16(ip + 2) + below(9) - 4);
		break;
	case 2:
		put16(ip + 2, (uint32_t)fuzz_random());
		break;
	case 3:
		put16(ip + 6, one_in(2) ? 0x2000 : one_in(2) ? 0x4000 : (uint32_t)fuzz_random() & 0x3fff);
		break;
	case 4:
		ip[8] = (uint8_t)below(3);
		break;
	case 5: {
		static const uint8_t protocol[] = { 1, 2, 4, 6, 17, 41, 47, 50, 58, 132 };

		ip[9] = protocol[below(sizeof(protocol))];
		break;
	}
	case 6: /* sources that nothing may be sent to */
		ip[12] = (uint8_t)(one_in(2) ? 224 + below(32) : 127 * below(2));
		break;
	default:
		ip[1] = (uint8_t)fuzz_random();
	}
}

static void change_ipv6(uint8_t *ip)
{
	switch (below(6)) {
	case 0:
		put16(ip + 4, get16(ip + 4) + below(9) - 4);
		break;
	case 1:
		put16(ip + 4, (uint32_t)fuzz_random());
		break;
	case 2: {
		static const uint8_t next[] = { 0, 4, 6, 17, 41, 43, 44, 50, 51, 58, 59, 60, 135 };

		ip[6] = next[below(sizeof(next))];
		break;
	}
	case 3:
		ip[7] = (uint8_t)below(3);
		break;
	case 4:
		ip[8] = (uint8_t)(one_in(2) ? 0xff : 0);
		break;
	default:
		ip[one_in(2) ? 0 : 1] ^= (uint8_t)(1u << below(8));
	}
}

static void change_network(struct frame *f)
{
	struct shape_of p;

	wire_look(f, &p);
	if (p.network + 40 > f->length)
		return;
	if (p.ipv6)
		change_ipv6(f->data + p.network);
	else
		change_ipv4(f->data + p.network);
}

static void change_transport(struct frame *f)
{
	struct shape_of p;
	uint8_t *t;

	wire_look(f, &p);
	t = f->data + p.transport;
	if (!p.transport || p.transport + 20u > f->length)
		return;
	switch (below(6)) {
	case 0: /* data offset, or what there is in other protocols */
		t[12] = (uint8_t)fuzz_random();
		break;
	case 1: /* flags */
		t[13] = (uint8_t)fuzz_random();
		break;
	case 2: /* UDP's length */
		put16(t + 4, get16(t + 4) + below(9) - 4);
		break;
	case 3:
		t[0] = (uint8_t)below(16); /* an extension header's next, an ICMP type */
		break;
	case 4:
		t[1] = (uint8_t)below(16); /* its length, a code */
		break;
	default:
		put16(t + below(2) * 2, (uint32_t)fuzz_random());
	}
}

/* The length of everything is right again, as far as there are headers. */
static void fix_lengths(struct frame *f)
{
	struct shape_of p;
	uint8_t *ip;

	wire_look(f, &p);
	ip = f->data + p.network;
	if (p.shape == SHAPE_NOT_IP)
		return;
	if (p.ipv6)
		put16(ip + 4, (uint32_t)(f->length - p.network - 40));
	else
		put16(ip + 2, (uint32_t)(f->length - p.network));
	if (p.protocol == 17 && p.transport + 8u <= f->length)
		put16(f->data + p.transport + 4, (uint32_t)(f->length - p.transport));
}

/* To a service's address, and mostly to its port. */
static void aim(struct frame *f)
{
	const struct service *s = &services[below((uint32_t)service_count)];
	const bool ipv6 = memcmp(s->bytes, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) != 0;
	struct shape_of p;
	uint8_t *ip;

	wire_look(f, &p);
	if (p.shape == SHAPE_NOT_IP || p.ipv6 != ipv6)
		return;
	ip = f->data + p.network;
	memcpy(ip + (ipv6 ? 24 : 16), s->bytes + (ipv6 ? 0 : 12), ipv6 ? 16 : 4);
	if (s->prefix < 128)
		ip[ipv6 ? 39 : 19] |= (uint8_t)below(64);
	if (one_in(8) || p.transport + 4u > f->length || p.transport < p.network)
		return;
	if (s->protocol && one_in(2))
		ip[ipv6 ? 6 : 9] = (uint8_t)s->protocol;
	put16(f->data + p.transport + 2, s->from + below(s->to - s->from + 1));
	if (one_in(2))
		put16(f->data + p.transport, below(4096));
}

void mutate(struct frame *f)
{
	static void (*const way[])(struct frame * f) = { flip_bits,        set_bytes,       truncate,
							 extend,           splice,          change_vlan,
							 change_network,   change_network,  change_network,
							 change_transport, change_transport };

	for (uint32_t n = below(4); n; n--)
		way[below(sizeof(way) / sizeof(way[0]))](f);
	if (one_in(2))
		aim(f);
	if (one_in(2))
		fix_lengths(f);
	if (!one_in(4))
		wire_fix_checksums(f);
}
