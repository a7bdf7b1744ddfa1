/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ringlb as people attach it, by its command, with an interface of its own; and, computed here from the configuration
 * alone, what each packet should do there. Several may be attached side by side.
 */
#ifndef BENCH_BALANCER_H
#define BENCH_BALANCER_H

#include "bench.h"
#include "commit.h"

/* Backends b0, b1, ... have equal weights. Arcs move where some drain and others come. */
struct pool_spec {
	bool ipv6;
	uint32_t backends; /* at first */
	uint32_t drained;  /* of these, the first ones, before packets come */
	uint32_t added;    /* then */
	uint32_t vnodes;
};

struct service_spec {
	unsigned int pool;
	enum ringlb_forward forward;
	enum ringlb_track track;
	uint8_t protocol;
	uint32_t addresses; /* services alike but for the address, one after the other; a power of two */
};

struct balancer_spec {
	const struct pool_spec *pool;
	unsigned int pools;
	const struct service_spec *service;
	unsigned int services;
	uint32_t flows; /* of the flow table; 0: the default */
	bool routed;    /* the backends are behind a router, not on the link */
};

enum packet_kind { PACKET_TCP, PACKET_SYN, PACKET_UDP }; /* TCP: of an established connection */

/* What packets are: count of them, of flows first, first + 1, ... modulo flows. */
struct stream {
	unsigned int service; /* BALANCER_OTHER: for no service */
	bool ipv6;            /* of BALANCER_OTHER */
	enum packet_kind kind;
	uint32_t flows;
	uint32_t first, count;
};
#define BALANCER_OTHER 1000u
#define SERVICE_PORT 443
#define CLIENTS_IPV6 "2001:db8:1::" /* the flow has the last 4 bytes */

/* What the flow table holds, as far as it matters to what is due. */
enum table_state {
	TABLE_ANY,
	TABLE_EMPTY,    /* SYNs are remembered, as long as there is room */
	TABLE_OPENINGS, /* full of them: no other is */
	TABLE_FILLING,  /* each flow comes for the first time, and is remembered, but for few that find no room */
	TABLE_FLOWS,    /* then: of a service with track: always */
};

struct balancer;

/* Finds ringlb beside this program, or takes another one; before place_enter(), whose /proc/self/exe is another path. */
void balancer_locate(const char *ringlb);
const char *balancer_ringlb(void);
/* number: of the pair of interfaces, which is made. spec must live as long. */
struct balancer *balancer_start(unsigned int number, const struct balancer_spec *spec);
void balancer_stop(struct balancer *b); /* it stays attached as long as the place lives */
int balancer_prog(const struct balancer *b);
const struct balancer_spec *balancer_spec_of(const struct balancer *b);
unsigned int balancer_ifindex(const struct balancer *b);
/* Of its program: instructions that the verifier went through, instructions as loaded, bytes of machine code. */
struct balancer_size {
	uint32_t verified, loaded, bytes;
};
struct balancer_size balancer_size_of(const struct balancer *b);
bool balancer_is_ipv6(const struct balancer *b, const struct stream *s);
/* The client's frame, without the flow's own address and port. Returns its length. */
size_t balancer_frame(const struct balancer *b, const struct stream *s, uint8_t frame[BENCH_FRAME_IPV6]);
/* How much longer the frame leaves. */
uint32_t balancer_outer(const struct balancer *b, const struct stream *s);
/* Addresses that flows are spread over, one after the other, less one. */
uint32_t balancer_address_mask(const struct balancer *b, const struct stream *s);

/* balancer_due.c: the address of the backend that a flow's packet goes to; of SYNs in moved arcs it depends on the table. */
void balancer_backend(struct balancer *b, const struct stream *s, enum table_state table, uint32_t flow,
		      struct address *address);
/* Adds packets by backend's index, and what should happen in the flow table. */
void balancer_due(struct balancer *b, const struct stream *s, enum table_state table, uint32_t *packets,
		  struct ringlb_flow_counters *events);
void balancer_due_free(struct balancer *b);

/* balancer_check.c: brings the flow table into this state. */
void balancer_table(struct balancer *b, enum table_state state);
/* Checks the counters: what came since the mark. */
void balancer_mark(struct balancer *b);
void balancer_check(struct balancer *b, const char *who, const struct stream *s, enum table_state table);
/* Makes the tables of the pools name wrong backends for some of the flows, or right ones again. */
void balancer_plant(struct balancer *b, bool wrong);

/* Shared by balancer*.c. */
struct balancer {
	const struct balancer_spec *spec;
	unsigned int number, ifindex;
	struct instance at;
	struct running running;
	struct diag diag;
	struct ring_due *ring; /* by pool */
	uint16_t **known;      /* by service: indices of the backends of established flows */
	uint32_t *knowns;      /* flows there */
	uint32_t backends, services;
	struct ringlb_counter *backend, *backend_now;
	struct ringlb_counter *service, *service_now;
	struct ringlb_verdict_counters verdict;
	struct ringlb_flow_counters events;
};
/* Of a pool: its arcs before and after the change, whose owners are numbers of backends, and their indices. */
struct ring_due {
	struct arcs before, after;
	uint16_t *index;
};
void balancer_service_address(const struct balancer *b, const struct stream *s, uint32_t flow, struct address *address);
void balancer_backend_address(const struct balancer *b, bool ipv6, uint32_t backend, struct address *address);

#endif
