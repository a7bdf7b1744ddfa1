/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What must be true of a packet's end, whatever the packet is. */
#include "fuzz.h"

#include <stdarg.h>
#include <string.h>

#include <linux/bpf.h>
#include <netinet/in.h>

#define OUTER_TTL 64

static const uint8_t tunnel4[4] = { 10, 77, 0, 1 };
static const uint8_t tunnel6[16] = { 0xfd, 0x77, [15] = 1 };

__attribute__((format(printf, 2, 3))) static bool wrong(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputc('\n', out);
	return false;
}

static bool has_address(const struct service *s, const uint8_t address[16])
{
	for (uint32_t bit = 0; bit < s->prefix; bit++)
		if (((address[bit / 8] ^ s->bytes[bit / 8]) >> (7 - bit % 8)) & 1)
			return false;
	return true;
}

/* The more, the nearer: longest prefix, then one port, a range, any port, any protocol; 0: not at all. */
static uint32_t nearness(const struct service *s, const struct shape_of *p)
{
	uint32_t how;

	if (!has_address(s, p->destination))
		return 0;
	if (!s->protocol)
		how = 1;
	else if (s->protocol != p->protocol || p->service_port < s->from || p->service_port > s->to)
		return 0;
	else
		how = !s->from ? 2 : s->from == s->to ? 4 : 3;
	return s->prefix * 8 + how;
}

/* The service of a plain packet, or NULL; that of an address's only. */
static const struct service *service_of(const struct shape_of *p)
{
	const struct service *found = NULL;
	uint32_t best = 0;

	for (size_t i = 0; i < service_count; i++) {
		uint32_t near = nearness(&services[i], p);

		if (near > best) {
			best = near;
			found = &services[i];
		}
	}
	return found;
}

static bool is_service_address(const uint8_t address[16])
{
	for (size_t i = 0; i < service_count; i++)
		if (has_address(&services[i], address))
			return true;
	return false;
}

/* The inner packet with one hop less, and a header sum that says so, right or wrong as it was. */
static bool same_packet(const uint8_t *was, const uint8_t *now, size_t bytes, bool ipv6)
{
	const size_t ttl = ipv6 ? 7 : 8, header = ipv6 ? 40 : 20;
	uint8_t expected[40];

	if (bytes < header)
		return false;
	memcpy(expected, was, header);
	expected[ttl]--;
	if (!ipv6) {
		if (ones_sum(0, was, header) != ones_sum(0, now, header))
			return false;
		memcpy(expected + 10, now + 10, 2);
	}
	return !memcmp(expected, now, header) && !memcmp(was + header, now + header, bytes - header);
}

static bool judge_outer(const struct service *s, const struct shape_of *p, const struct backend *b, const uint8_t *ip,
			size_t room)
{
	const bool ipv6 = memcmp(b->address, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) != 0;
	const size_t udp = s->forward == GUE ? 8 : 0, header = ipv6 ? 40 : 20;
	const uint32_t protocol = udp ? IPPROTO_UDP : p->ipv6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
	const uint8_t *behind = ip + header;

	if (room < header + udp)
		return false;
	if (ipv6) {
		if (ip[0] >> 4 != 6 || ((get16(ip) >> 4) & 0xff) != p->tos || get16(ip + 4) != p->length + udp ||
		    ip[6] != protocol || ip[7] != OUTER_TTL || memcmp(ip + 8, tunnel6, 16) ||
		    memcmp(ip + 24, b->address, 16))
			return false;
	} else if (ip[0] != 0x45 || ip[1] != p->tos || get16(ip + 2) != p->length + udp + header ||
		   get16(ip + 4) != 0 || get16(ip + 6) != 0x4000 || ip[8] != OUTER_TTL || ip[9] != protocol ||
		   ones_sum(0, ip, header) != 0xffff || memcmp(ip + 12, tunnel4, 4) ||
		   memcmp(ip + 16, b->address + 12, 4)) {
		return false;
	}
	if (udp && (get16(behind) < 0xc000 || get16(behind + 2) != GUE_PORT || get16(behind + 4) != p->length + udp ||
		    get16(behind + 6)))
		return false;
	return true;
}

/* Whether the frame is what the service's way to this backend makes of the packet. */
static bool fits(const struct service *s, const struct backend *b, const struct frame *in, const struct shape_of *p,
		 uint32_t action, const struct frame *out)
{
	const bool ipv6_backend = memcmp(b->address, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) != 0;
	const size_t outer = s->forward == L2 ? 0 : (ipv6_backend ? 40u : 20u) + (s->forward == GUE ? 8u : 0u);
	/* Tags stay on the link that they came by. */
	const size_t link = b->second ? 14 : p->network, behind = link + outer;
	const bool ipv6 = outer ? ipv6_backend : p->ipv6;

	if (action != (b->second ? XDP_REDIRECT : XDP_TX) || out->length != behind + in->length - p->network)
		return false;
	if (memcmp(out->data, b->mac, 6) || memcmp(out->data + 6, scene_mac[b->second], 6) ||
	    get16(out->data + link - 2) != (ipv6 ? 0x86ddu : 0x0800u))
		return false;
	if (!b->second && memcmp(out->data + 12, in->data + 12, link - 14))
		return false;
	if (outer && !judge_outer(s, p, b, out->data + link, out->length - link))
		return false;
	return same_packet(in->data + p->network, out->data + behind, in->length - p->network, p->ipv6);
}

/*
 * Of several services of an address whose way the frame may have gone: which one fragments are for, and what is behind
 * extension headers, is told from the counters.
 */
static bool judge_forwarded(const struct frame *in, const struct shape_of *p, uint32_t action,
			    const struct frame *result, FILE *out)
{
	const struct service *plain = p->shape == SHAPE_PLAIN ? service_of(p) : NULL;

	if (p->shape == SHAPE_MALFORMED || p->shape == SHAPE_NOT_IP)
		return wrong(out, "what is malformed was forwarded");
	if (p->shape == SHAPE_PLAIN && !plain)
		return wrong(out, "what is for no service was forwarded");
	for (size_t i = 0; i < service_count; i++) {
		const struct service *s = &services[i];

		if (plain ? s != plain : !has_address(s, p->destination))
			continue;
		for (uint32_t j = 0; j < pools[s->pool].backends; j++) {
			const struct backend *b = &pools[s->pool].backend[j];

			if (!fits(s, b, in, p, action, result) || (!plain && !scene_counted(s->index, in->length)))
				continue;
			scene_expect(s->index, b->index, in->length);
			return true;
		}
	}
	return wrong(out, "the frame is not what any way to a backend makes of it");
}

static bool is_icmp_error(uint32_t protocol, uint8_t type)
{
	return protocol == IPPROTO_ICMPV6 ? type < 128 :
					    type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

/* RFC 1122, 3.2.2; RFC 4443, 2.4: about whom no error is to be sent. */
static bool may_be_told(const struct frame *in, const struct shape_of *p)
{
	const uint8_t *ip = in->data + p->network, *source = p->source;

	if (p->ipv6)
		return source[0] != 0xff && memcmp(source, (uint8_t[16]){ 0 }, 16) != 0 &&
		       !(p->protocol == IPPROTO_ICMPV6 && p->transport < in->length &&
			 is_icmp_error(IPPROTO_ICMPV6, in->data[p->transport]));
	source += 12;
	return source[0] < 224 && source[0] != 0 && source[0] != 127 && !(get16(ip + 6) & 0x1fff) &&
	       !(p->protocol == IPPROTO_ICMP && p->transport < in->length &&
		 is_icmp_error(IPPROTO_ICMP, in->data[p->transport]));
}

/* A packet of ours, from the service's address to who sent what it answers. */
static bool judge_answer(const struct frame *in, const struct shape_of *p, uint32_t action, bool echo,
			 const struct frame *result, FILE *out)
{
	struct shape_of a;
	const uint8_t *icmp;
	size_t length, quoted;
	uint32_t sum, type;

	wire_look(result, &a);
	if (action != XDP_TX)
		return wrong(out, "an answer with action %u", action);
	if (a.shape != SHAPE_OTHER || a.ipv6 != p->ipv6 || a.protocol != (p->ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return wrong(out, "an answer that is no ICMP of the packet's family");
	if (!is_service_address(p->destination) || memcmp(a.source, p->destination, 16) ||
	    memcmp(a.destination, p->source, 16))
		return wrong(out, "an answer not from the service's address to the packet's source");
	if (memcmp(result->data, in->data + 6, 6) || memcmp(result->data + 6, in->data, 6) || a.network != p->network ||
	    memcmp(result->data + 12, in->data + 12, p->network - 12))
		return wrong(out, "an answer that does not go back the way the packet came");
	icmp = result->data + a.transport;
	length = a.network + a.length - a.transport;
	if (length < 8)
		return wrong(out, "an answer that is no ICMP message");
	type = icmp[0];
	sum = ones_sum(a.ipv6 ? pseudo_sum(result->data + a.network, a.protocol, length) : 0, icmp, length);
	if (echo) {
		const uint8_t *asked = in->data + p->transport;
		uint32_t was = ones_sum(p->ipv6 ? pseudo_sum(in->data + p->network, p->protocol, length) : 0, asked,
					length);

		if (!p->ipv6 && ones_sum(0, result->data + a.network, 20) != ones_sum(0, in->data + p->network, 20))
			return wrong(out, "an echo whose header checksum became another");
		if (type != (p->ipv6 ? 129 : 0) || result->length != in->length || was != sum ||
		    memcmp(icmp + 4, asked + 4, length - 4))
			return wrong(out, "an echo that is not what was asked for");
		return true;
	}
	if (!p->ipv6 && ones_sum(0, result->data + a.network, 20) != 0xffff)
		return wrong(out, "an answer with a wrong header checksum");
	if (sum != 0xffff)
		return wrong(out, "an answer with a wrong ICMP checksum");
	if (!is_icmp_error(a.protocol, (uint8_t)type))
		return wrong(out, "an answer of type %u", type);
	if (!may_be_told(in, p))
		return wrong(out, "an error about what no error is to be sent for");
	quoted = length - 8;
	if (quoted > p->length || memcmp(icmp + 8, in->data + p->network, quoted) ||
	    result->length != a.network + a.length)
		return wrong(out, "an error whose quote is no beginning of the packet");
	return true;
}

/*
 * What a router has told of some way's MTU, at most: packets of the corpus do, in the course of a run. It counts for
 * minutes, of which a run takes less.
 */
static uint32_t smallest_mtu = MTU;

static void hear_of_mtu(const struct frame *in, const struct shape_of *p)
{
	const uint8_t *icmp = in->data + p->transport;
	uint32_t mtu;

	if (p->shape != SHAPE_OTHER || p->protocol != (p->ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP) ||
	    p->transport + 8 > in->length)
		return;
	mtu = p->ipv6 && get16(icmp + 4) ? MTU : get16(icmp + 6);
	if (mtu < (p->ipv6 ? 1280 : 576))
		mtu = p->ipv6 ? 1280 : 576;
	if (mtu < smallest_mtu)
		smallest_mtu = mtu;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Ends that a packet which is to be forwarded may have instead. */
static bool is_excused(const struct shape_of *p, const char *verdict)
{
	if (p->ttl <= 1)
		return begins(verdict, "answered_ttl") || begins(verdict, "dropped_ttl") ||
		       begins(verdict, "dropped_answer_limit");
	if (p->length + 48 > smallest_mtu)
		return begins(verdict, "answered_too_big") || begins(verdict, "dropped_too_big") ||
		       begins(verdict, "dropped_answer_limit");
	return false;
}

/* What is certain beforehand. */
static bool judge_verdict(const struct shape_of *p, const char *verdict, FILE *out)
{
	const struct service *s;

	if (p->shape == SHAPE_NOT_IP)
		return begins(verdict, "passed_") || wrong(out, "what is not IP was not passed");
	/* An address of IPv6 that is a mapped one of IPv4 is nobody's on the wire. */
	if (!is_service_address(p->destination) ||
	    (p->ipv6 && !memcmp(p->destination, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12)))
		return begins(verdict, "passed_") || wrong(out, "what is for none of our addresses was not passed");
	if (p->shape == SHAPE_MALFORMED)
		return !strcmp(verdict, "dropped_malformed") || wrong(out, "what is malformed was not dropped as that");
	if (p->shape != SHAPE_PLAIN)
		return true;
	s = service_of(p);
	if (!s)
		return !strcmp(verdict, "passed_no_service") || wrong(out, "what is for no service was not passed");
	if (!pools[s->pool].backends)
		return !strcmp(verdict, "dropped_no_backend") || is_excused(p, verdict) ||
		       wrong(out, "a service without a backend");
	return !strcmp(verdict, "forwarded") || is_excused(p, verdict) ||
	       wrong(out, "what is for a service was not forwarded");
}

bool judge(const struct frame *in, uint32_t action, const char *verdict, const struct frame *result, FILE *out)
{
	struct shape_of p;

	if (!verdict)
		return wrong(out, "not exactly one verdict was counted");
	wire_look(in, &p);
	hear_of_mtu(in, &p);
	if (!judge_verdict(&p, verdict, out))
		return false;
	if (!strcmp(verdict, "forwarded"))
		return judge_forwarded(in, &p, action, result, out);
	if (begins(verdict, "answered_"))
		return judge_answer(in, &p, action, !strcmp(verdict, "answered_echo"), result, out);
	if (begins(verdict, "dropped_"))
		return action == XDP_DROP || wrong(out, "dropped, with action %u", action);
	if (action != XDP_PASS)
		return wrong(out, "passed, with action %u", action);
	if (result->length != in->length || memcmp(result->data, in->data, in->length))
		return wrong(out, "passed, but not as it came");
	return true;
}
