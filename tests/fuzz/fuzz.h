/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A mutation fuzzer for the attached program: packets of a corpus, changed at random, through test runs, each judged by
 * what an oracle of its own says of it. The oracle shares no code with the data plane.
 *
 * scene      namespaces, interfaces, a configuration attached and changed; the program and its counters
 * corpus     packets from pcap files
 * mutate     another packet from one of these
 * wire       what a frame is, and checksums: the oracle's parser
 * judge      whether what the program did was right
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FRAME_MIN 14u
#define FRAME_MAX 2800u /* a test run's packet is in one page, with its head and tailroom */
#define POISON 64u      /* bytes in front of the frame that are not zero; older kernels take 32 */
#define FRAME_ROOM (FRAME_MAX + POISON + 512u)

struct frame {
	uint8_t data[FRAME_ROOM];
	size_t length;
};

__attribute__((format(printf, 2, 3))) _Noreturn void fuzz_die(int err, const char *format, ...);

/* main.c: random numbers of the packet that is being made */
uint64_t fuzz_random(void);
static inline uint32_t below(uint32_t limit)
{
	return (uint32_t)(fuzz_random() % limit);
}
static inline bool one_in(uint32_t n)
{
	return below(n) == 0;
}

/* corpus.c */
extern struct frame *corpus;
extern size_t corpus_size;
void corpus_read(const char *path); /* pcap, Ethernet */
void corpus_free(void);

/* wire.c */
static inline uint32_t get16(const uint8_t *p)
{
	return (uint32_t)(p[0] << 8 | p[1]);
}
static inline void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}
/* Ones' complement sum (RFC 1071), folded; 0xffff and 0 are the same number, and 0xffff is told. */
uint32_t ones_sum(uint32_t start, const uint8_t *data, size_t length);
/* Sum of the pseudo header of either family (RFC 793, RFC 8200). */
uint32_t pseudo_sum(const uint8_t *ip, uint32_t protocol, size_t length);

enum shape {
	SHAPE_NOT_IP,    /* or too short to have a destination */
	SHAPE_MALFORMED, /* contradicts itself */
	SHAPE_PLAIN,     /* TCP or UDP right behind an IP header, unfragmented */
	SHAPE_OTHER,     /* fragments, extension headers, other protocols */
};
struct shape_of {
	enum shape shape;
	bool ipv6;
	uint32_t network;   /* offset of the IP header; behind it */
	uint32_t transport; /* what comes there */
	uint32_t length;    /* of the IP packet, as it says */
	uint8_t protocol;   /* as the IP header says */
	uint16_t client_port, service_port;
	uint8_t source[16], destination[16]; /* IPv4 mapped */
	uint8_t ttl, tos;
};
void wire_look(const struct frame *f, struct shape_of *s);
/* Makes checksums of IP, TCP, UDP, ICMP right, as far as the frame has them. */
void wire_fix_checksums(struct frame *f);

/* mutate.c */
void mutate(struct frame *f);

/* scene.c */
enum forward { L2, IPIP, GUE };
struct backend {
	uint8_t address[16]; /* IPv4 mapped */
	uint8_t mac[6];
	bool second; /* behind the second interface */
	uint32_t index;
};
#define POOL_BACKENDS 10u
struct pool {
	const char *name;
	struct backend backend[POOL_BACKENDS];
	uint32_t backends; /* that may get packets; 0: the pool is without any */
};
struct service {
	const char *address; /* or a prefix */
	uint32_t from, to;   /* ports; 0, 65535: any */
	int protocol;        /* 0: any */
	int pool;
	enum forward forward;
	const char *more; /* of its configuration */
	/* found out */
	uint8_t bytes[16];
	uint32_t prefix; /* bits of the mapped address */
	uint32_t index;
};
extern struct service services[];
extern const size_t service_count;
extern struct pool pools[];
extern const uint8_t scene_mac[2][6];
#define GUE_PORT 6080
#define MTU 1500u

void scene_locate(void);
void scene_start(void);
void scene_stop(void);
/* Runs the frame, without ado; out is what came of it. Returns the action. */
uint32_t scene_run(const struct frame *f, struct frame *out);
/* The name of the verdict that was counted since the call before, or NULL where that was not exactly one. */
const char *scene_verdict(void);
/* What the counters of services and backends should have risen by; complains to out where they did not. */
void scene_expect(uint32_t service, uint32_t backend, size_t bytes);
/* Whether a frame beyond those expected was counted for the service. */
bool scene_counted(uint32_t service, size_t bytes);
bool scene_counters(FILE *out);

/* judge.c: false, and why to out, where the program was wrong. */
bool judge(const struct frame *in, uint32_t action, const char *verdict, const struct frame *result, FILE *out);

#endif
