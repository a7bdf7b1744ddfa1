/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steps 2 and 3: the service that a packet is for, and its flow's position on the ring. */
#ifndef RINGLB_SERVICE_BPF_H
#define RINGLB_SERVICE_BPF_H

#include "flow_hash.h"
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "source_hash.h"

#define SLOTS_PER_BUCKET 4

/* What the steps find out about a packet, one after the other. */
struct choice {
	const struct ringlb_tables *tables;
	const struct ringlb_root *root;       /* of the side that was current when the packet came */
	__u32 side;                           /* that one */
	const struct ringlb_service *service; /* NULL: for none */
	__u64 fingerprint;                    /* of the flow; not yet known where the position is not the flow's */
	__u32 position;
	__u32 backend;  /* index of the one that the packet goes to, or RINGLB_NO_BACKEND */
	__u32 owner;    /* of the position, likewise */
	__u32 previous; /* of a moved arc that a flow is kept in, likewise */
	__u32 mtu;      /* that the packet is too big for, where the verdict says so */
	__u32 fragment; /* an early one's position; of others what is remembered, as in struct ringlb_flow, or 0 */
	bool moved;     /* the arc is a moved one */
	bool tracked;   /* the flow table decided */
};

/* Of the 4 bytes behind a service's address, as loaded, those that belong to its key: port and protocol. */
#define SERVICE_KEY_MASK 0xffffffu

/*
 * Memory of the table at an offset, or NULL: nothing that user space wrote is trusted, and the verifier wants to see it.
 * Up to RINGLB_TABLES_SLACK bytes may be read there.
 */
static __always_inline const void *table_at(const void *t, __u64 offset)
{
	/*
	 * In C clang may compare one copy of the offset and add another, of which kernel 6.1 then knows no bound: "R9 min
	 * value is negative". At 0 is the header, which nobody asks for.
	 */
#ifdef __bpf__
	asm volatile("if %0 <= %1 goto +1\n%0 = 0" : "+r"(offset) : "r"((__u64)sizes.tables_bound));
#else /* the tests' build for user space */
	offset = offset <= sizes.tables_bound ? offset : 0;
#endif
	return likely(offset) ? t + offset : NULL;
}

static __always_inline bool is_service(const struct ringlb_service *s, __u64 high, __u64 low, __be16 port,
				       __u8 protocol)
{
	const __u64 *half = (const __u64 *)s->address;
	__u32 key = *(const __u32 *)&s->port & SERVICE_KEY_MASK;

	return !((half[0] ^ high) | (half[1] ^ low) | (key ^ (port | (__u32)protocol << 16)));
}

/* Entry `number` - 1 of the services. */
static __always_inline const struct ringlb_service *service_at(const void *t, const struct ringlb_root *root,
							       __u32 number)
{
	return table_at(t, root->services_off + (number - 1ull) * sizeof(struct ringlb_service));
}

/* The number of the entry with this very key, the address as loaded in halves; 0: there is none. */
static __always_inline __u32 service_find(const void *t, const struct ringlb_root *root, __u64 high, __u64 low,
					  __be16 port, __u8 protocol)
{
	__u32 hash = ringlb_service_hash(high, low, port, protocol);
	__u64 bucket = (__u64)hash >> (32 - root->services_bits);
	const __u32 *slot = table_at(t, root->services_slots + bucket * SLOTS_PER_BUCKET * sizeof(*slot));

	if (!slot)
		return 0;
#pragma unroll
	for (int i = 0; i < SLOTS_PER_BUCKET; i++) {
		__u32 number = slot[i] & 0xffff;
		const struct ringlb_service *s;

		if (likely(slot[i] >> 16 != (hash & 0xffff)) || !number)
			continue;
		s = service_at(t, root, number);
		if (!s)
			return 0;
		if (is_service(s, high, low, port, protocol))
			return number;
	}
	return 0;
}

/* Not for any packet that gets here: it says only whose the address is. */
static __always_inline bool is_mark(const struct ringlb_service *s)
{
	return s->index == RINGLB_NO_BACKEND;
}

static __always_inline bool is_for_any_protocol(const struct ringlb_service *s)
{
	return !(s->protocol & RINGLB_KEY_PROTOCOL) && !is_mark(s);
}

#include "wider.bpf.h"

/* To a service of any protocol all that two addresses exchange is one flow, without ports, beginning and end. */
static __always_inline void forget_transport(const struct ringlb_service *s, struct packet *p)
{
	__u64 mask = -is_below(0, s->protocol & RINGLB_KEY_PROTOCOL); /* all ones or, for such a service, none */

	p->client_port &= mask;
	p->service_port &= mask;
	p->protocol &= mask;
}

/*
 * Fills in the packet's service; false: it is for none. A packet without a port finds the entry that stands for the
 * whole address.
 */
static __always_inline bool find_service(struct choice *c, struct packet *p)
{
	__u32 number = service_find(c->tables, c->root, p->service[0], p->service[1], p->service_port, p->protocol);

	if (unlikely(c->root->flags) && (!number || !p->protocol))
		number = service_wider(p->service[0], p->service[1], p->service_port | (__u32)p->protocol << 16,
				       c->side) &
			 0xffff;
	if (!number)
		return false;
	c->service = service_at(c->tables, c->root, number);
	if (!c->service)
		return false;
	forget_transport(c->service, p);
	return true;
}

/* Mask, as loaded from memory, of the first `bits` bits of 8 bytes. */
static __always_inline __u64 prefix_mask(__u32 bits)
{
	return bits ? bpf_cpu_to_be64(~0ull << (64 - bits)) : 0;
}

static __always_inline __u32 source_position(const struct ringlb_root *root, const struct ringlb_service *s,
					     const struct packet *p)
{
	__u32 prefix = s->source_prefix;
	__u64 in[2];

	if (!p->ipv6) {
		in[0] = unmapped_ipv4(p->client[1]) & (__u32)prefix_mask(prefix < 32 ? prefix : 32);
		return flow_hash_siphash13(root->hash_key, in, 1) >> 32;
	}
	in[0] = p->client[0] & prefix_mask(prefix < 64 ? prefix : 64);
	in[1] = prefix > 64 ? p->client[1] & prefix_mask(prefix < 128 ? prefix - 64 : 64) : 0;
	return flow_hash_siphash13(root->hash_key, in, 2) >> 32;
}

static __always_inline __u64 flow_fingerprint(const struct ringlb_root *root, const struct packet *p)
{
	if (!p->ipv6) {
		struct flow_key4 key = {
			.client = unmapped_ipv4(p->client[1]),
			.service = unmapped_ipv4(p->service[1]),
			.client_port = p->client_port,
			.service_port = p->service_port,
			.protocol = p->protocol,
		};

		return flow_fingerprint4(root->hash_key, &key);
	} else {
		struct flow_key6 key = {
			.client_port = p->client_port,
			.service_port = p->service_port,
			.protocol = p->protocol,
		};

		__builtin_memcpy(key.client, p->client, sizeof(key.client));
		__builtin_memcpy(key.service, p->service, sizeof(key.service));
		return flow_fingerprint6(root->hash_key, &key);
	}
}

static __always_inline void find_position(struct choice *c, const struct packet *p)
{
	switch (c->service->affinity) {
	case RINGLB_AFFINITY_SOURCE:
		c->position = source_position(c->root, c->service, p);
		return;
	case RINGLB_AFFINITY_CRC32:
		c->position = ringlb_crc32_ipv4(unmapped_ipv4(p->client[1]));
		return;
	case RINGLB_AFFINITY_AVALANCHE:
		c->position = ringlb_avalanche_ipv4(unmapped_ipv4(p->client[1]));
		return;
	}
	c->fingerprint = flow_fingerprint(c->root, p);
	c->position = c->fingerprint >> 32;
}

#endif
