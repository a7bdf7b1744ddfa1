// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lookup.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "../include/flow_hash.h"
#include "../include/source_hash.h"
#include "placement.h"

#define LIST_LONGEST 8
#define PROTOCOL_EXPERIMENT 253 /* RFC 3692 */

/* The names of the services, for an error; owned by the caller. */
static char *service_names(const struct config *c)
{
	char *list = xstrdup("");

	for (size_t i = 0; i < c->services && i < LIST_LONGEST; i++) {
		char *longer = xasprintf("%s%s%s", list, i ? ", " : "", c->service[i].name);

		free(list);
		list = longer;
	}
	if (c->services > LIST_LONGEST) {
		char *longer = xasprintf("%s and %zu more", list, c->services - LIST_LONGEST);

		free(list);
		list = longer;
	}
	return list;
}

#define ANY_TEXT ":any/any"

/* An address, in brackets where it is IPv6. */
static int parse_host(const char *text, size_t length, struct address *out)
{
	bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
	char *host = xasprintf("%.*s", (int)(length - 2 * brackets), text + brackets);
	int err = address_parse(host, out);

	free(host);
	return err || address_is_ipv4(out) == brackets ? -EINVAL : 0;
}

static int parse_target(const char *text, struct lookup_target *out)
{
	const char *slash = strrchr(text, '/');
	size_t length = strlen(text);
	char *head;
	int err;

	if (length > strlen(ANY_TEXT) && !strcmp(text + length - strlen(ANY_TEXT), ANY_TEXT)) {
		out->port = 0;
		out->protocol = 0;
		return parse_host(text, length - strlen(ANY_TEXT), &out->address);
	}
	if (!slash)
		return -EINVAL;
	if (!strcmp(slash + 1, "tcp"))
		out->protocol = IPPROTO_TCP;
	else if (!strcmp(slash + 1, "udp"))
		out->protocol = IPPROTO_UDP;
	else
		return -EINVAL;
	head = xasprintf("%.*s", (int)(slash - text), text);
	err = address_parse_port(head, &out->address, &out->port);
	free(head);
	return err || !out->port ? -EINVAL : 0;
}

/* The service of this name, if that says where a packet goes to. */
static int find_name(const struct config *c, const char *name, struct lookup_target *out, struct diag *d)
{
	const struct config_service *s = NULL;

	for (size_t i = 0; i < c->services && !s; i++)
		if (!strcmp(c->service[i].name, name))
			s = &c->service[i];
	if (!s)
		return -ENOENT;
	if (s->free_bits) {
		diag_error(d, "needs-address", "",
			   "service %s is for many addresses: say which one, as ADDRESS:PORT/PROTOCOL", name);
		return -EINVAL;
	}
	if (s->protocol && (!s->port || s->port_to)) {
		diag_error(d, "needs-port", "", "service %s is for %s port%s: say which one, as ADDRESS:PORT/PROTOCOL",
			   name, s->port ? "many" : "any", s->port ? "s" : "");
		return -EINVAL;
	}
	out->service = s;
	out->address = s->address;
	out->port = s->port;
	out->protocol = s->protocol;
	return 0;
}

int lookup_target_find(const struct config *c, const char *text, struct lookup_target *out, struct diag *d)
{
	char *names;
	int err;

	*out = (struct lookup_target){ .config = c };
	err = find_name(c, text, out, d);
	if (err != -ENOENT)
		return err;
	if (!parse_target(text, out))
		out->service = config_service_for(c, &out->address, out->port, out->protocol);
	if (out->service)
		return 0;
	names = service_names(c);
	diag_error(d, "unknown-service", "",
		   "no service \"%s\": it takes a name or ADDRESS:PORT/PROTOCOL (IPv6 in brackets, "
		   "tcp or udp; ADDRESS:any/any for other protocols) of: %s",
		   text, *names ? names : "(there is no service)");
	free(names);
	return -EINVAL;
}

int lookup_source_parse(const struct lookup_target *t, const char *text, const char *where, struct lookup_source *out,
			struct diag *d)
{
	bool ipv4 = address_is_ipv4(&t->service->address);

	if (address_parse_port(text, &out->address, &out->port)) {
		const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : "";
		size_t digits = strspn(port, "0123456789");

		if (*text != '[' && colon && strchr(text, ':') != colon) {
			diag_error(d, "bad-source", where,
				   "source \"%s\": an IPv6 address stands in brackets, as in [2001:db8::7]:40000",
				   text);
			return -EINVAL;
		}
		if (digits && !port[digits] && (digits > 5 || strtoul(port, NULL, 10) > UINT16_MAX)) {
			diag_error(d, "bad-source", where, "source \"%s\": a port is 65535 at most", text);
			return -EINVAL;
		}
		diag_error(d, "bad-source", where, "source \"%s\": ADDRESS:PORT is wanted, %s", text,
			   ipv4 ? "as in 198.51.100.7:40000" : "as in [2001:db8::7]:40000");
		return -EINVAL;
	}
	if (address_is_ipv4(&out->address) != ipv4) {
		diag_error(d, "bad-source", where,
			   "source \"%s\" is %s, but service %s is %s: no such packet can exist", text,
			   ipv4 ? "IPv6" : "IPv4", t->service->name, ipv4 ? "IPv4" : "IPv6");
		return -EINVAL;
	}
	return 0;
}

/* Clears what is behind the first `prefix` bits. */
static void mask(uint8_t *byte, size_t length, unsigned int prefix)
{
	for (size_t i = 0; i<length; i++, prefix = prefix> 8 ? prefix - 8 : 0)
		if (prefix < 8)
			byte[i] &= (uint8_t)(0xff00 >> prefix);
}

static uint32_t source_position(const struct lookup_target *t, const struct lookup_source *s, const __u64 key[2])
{
	__u64 in[2] = { 0 };

	if (address_is_ipv4(&s->address)) {
		memcpy(in, s->address.byte + 12, 4);
		mask((uint8_t *)in, 4, t->service->source_prefix4);
		return (uint32_t)(flow_hash_siphash13(key, in, 1) >> 32);
	}
	memcpy(in, s->address.byte, 16);
	mask((uint8_t *)in, 16, t->service->source_prefix6);
	return (uint32_t)(flow_hash_siphash13(key, in, 2) >> 32);
}

uint32_t lookup_position(const struct lookup_target *t, const struct lookup_source *s)
{
	const uint8_t *service = t->address.byte;
	bool ports = t->service->protocol; /* one of any protocol goes by the addresses alone */
	union {
		struct flow_key4 v4;
		struct flow_key6 v6;
		__u64 word[5];
	} in = { .word = { 0 } };
	enum ringlb_affinity affinity;
	uint64_t raw[2];
	__u64 key[2];
	__be32 client;

	memcpy(raw, t->config->hash_key, sizeof(raw));
	key[0] = le64toh(raw[0]);
	key[1] = le64toh(raw[1]);
	memcpy(&client, s->address.byte + 12, sizeof(client));
	affinity = placement_affinity(&t->config->pool[t->service->pool], t->service);
	if (affinity == RINGLB_AFFINITY_CRC32)
		return ringlb_crc32_ipv4(client);
	if (affinity == RINGLB_AFFINITY_AVALANCHE)
		return ringlb_avalanche_ipv4(client);
	if (affinity == RINGLB_AFFINITY_SOURCE)
		return source_position(t, s, key);
	if (address_is_ipv4(&t->service->address)) {
		memcpy(&in.v4.client, s->address.byte + 12, 4);
		memcpy(&in.v4.service, service + 12, 4);
		in.v4.client_port = ports ? htons(s->port) : 0;
		in.v4.service_port = ports ? htons(t->port) : 0;
		in.v4.protocol = t->service->protocol;
		return (uint32_t)(flow_hash_siphash13(key, in.word, 2) >> 32);
	}
	memcpy(in.v6.client, s->address.byte, 16);
	memcpy(in.v6.service, service, 16);
	in.v6.client_port = ports ? htons(s->port) : 0;
	in.v6.service_port = ports ? htons(t->port) : 0;
	in.v6.protocol = t->service->protocol;
	return (uint32_t)(flow_hash_siphash13(key, in.word, 5) >> 32);
}

static uint16_t ip_checksum(const void *header, size_t length)
{
	const uint8_t *byte = header;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < length; i += 2)
		sum += (uint32_t)byte[i] << 8 | byte[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Writes the IP header for a payload of `payload` bytes; returns its length. */
static size_t put_ip(const struct lookup_target *t, const struct lookup_source *s, size_t payload, uint8_t *at)
{
	uint8_t protocol = t->protocol ? t->protocol : PROTOCOL_EXPERIMENT;
	struct ip6_hdr v6 = { .ip6_hlim = 64, .ip6_nxt = protocol };
	struct iphdr v4 = { .version = 4, .ihl = 5, .ttl = 64, .protocol = protocol };

	if (address_is_ipv4(&t->service->address)) {
		v4.tot_len = htons((uint16_t)(sizeof(v4) + payload));
		memcpy(&v4.saddr, s->address.byte + 12, 4);
		memcpy(&v4.daddr, t->address.byte + 12, 4);
		v4.check = ip_checksum(&v4, sizeof(v4));
		memcpy(at, &v4, sizeof(v4));
		return sizeof(v4);
	}
	v6.ip6_vfc = 6 << 4;
	v6.ip6_plen = htons((uint16_t)payload);
	memcpy(&v6.ip6_src, s->address.byte, 16);
	memcpy(&v6.ip6_dst, t->address.byte, 16);
	memcpy(at, &v6, sizeof(v6));
	return sizeof(v6);
}

/*
 * The start of an Initial of version 1 (RFC 9000, 17.2.2) or, established, of a packet with a short header. Its connection
 * id is nobody's.
 */
#define QUIC_HEADER 14u
static size_t put_quic(bool established, uint8_t *at)
{
	const uint8_t initial[QUIC_HEADER] = { 0xc0, 0, 0, 0, 1, 8 };

	memcpy(at, initial, sizeof(initial));
	if (established)
		*at = 0x40;
	return sizeof(initial);
}

size_t lookup_frame(const struct lookup_target *t, const struct lookup_source *s, bool established,
		    uint8_t frame[LOOKUP_FRAME])
{
	struct tcphdr tcp = { .source = htons(s->port), .dest = htons(t->port), .doff = 5, .window = htons(65535) };
	struct udphdr udp = { .source = htons(s->port), .dest = htons(t->port), .len = htons(sizeof(udp)) };
	bool is_tcp = t->protocol == IPPROTO_TCP;
	size_t payload = is_tcp ? sizeof(tcp) : t->protocol ? sizeof(udp) : 0, length = sizeof(struct ethhdr);
	bool is_quic = t->service->affinity == RINGLB_AFFINITY_QUIC;
	struct ethhdr eth = { .h_proto = htons(address_is_ipv4(&t->service->address) ? ETH_P_IP : ETH_P_IPV6) };

	tcp.syn = !established;
	tcp.ack = established;
	memset(frame, 0, LOOKUP_FRAME);
	memcpy(frame, &eth, sizeof(eth));
	length += put_ip(t, s, payload + (is_quic ? QUIC_HEADER : 0), frame + length);
	if (is_quic)
		udp.len = htons(sizeof(udp) + QUIC_HEADER);
	memcpy(frame + length, is_tcp ? (const void *)&tcp : (const void *)&udp, payload);
	length += payload;
	if (is_quic)
		length += put_quic(established, frame + length);
	return length < 64 ? 64 : length;
}
