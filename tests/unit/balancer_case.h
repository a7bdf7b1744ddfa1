/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A balancer in this process: the real programs and maps, attached to nothing, with what commit.c does but for interfaces
 * and neighbours. Packets are test runs; a backend's link-layer address is its index. The clock is the test's. For tests
 * with privileges.
 */
#ifndef RINGLB_TESTS_BALANCER_CASE_H
#define RINGLB_TESTS_BALANCER_CASE_H

#include "datapath.h"
#include "encode.h"
#include "flows.h"
#include "plan.h"

#define CASE_FIN 0x01u
#define CASE_SYN 0x02u
#define CASE_RST 0x04u
#define CASE_ACK 0x10u

struct balancer {
	struct datapath *dp;
	struct ringlb_tables *tables;
	struct flows flows;
	struct state *running; /* as read back from the memory; NULL: nothing yet */
	struct state *before;  /* while a commit is published and not more */
	uint32_t now;
	__be32 address; /* of the first service, as it was at first: packets may be sent from other threads */
	__be16 port;
};

struct case_packet {
	uint32_t client; /* the low bits of its address */
	uint16_t port;
	uint32_t sequence;
	uint8_t flags;   /* CASE_* */
	uint8_t payload; /* bytes */
};

void balancer_open(struct balancer *b, uint32_t flow_buckets);
void balancer_close(struct balancer *b);
/* As just opened. */
void balancer_clear(struct balancer *b);
void balancer_clock(struct balancer *b, uint32_t now);
/* Reads what runs, as every command does first, and plans; takes config. */
void balancer_plan(struct balancer *b, struct config *config, bool settle_force, struct plan *out);
/* Up to the switch and with it; the plan can go. */
void balancer_publish(struct balancer *b, const struct plan *p);
/* What follows; killed: as the next command does it when the one before was killed. */
void balancer_after(struct balancer *b, bool killed);
/* All of it. */
void balancer_commit(struct balancer *b, struct config *config);

/* Index of the backend that a packet to the first service is sent to, RINGLB_NO_BACKEND where it is dropped. */
uint16_t balancer_send(const struct balancer *b, const struct case_packet *p);
void balancer_lookup(const struct balancer *b, const struct case_packet *p, struct ringlb_lookup *out);
__u64 balancer_fingerprint(const struct balancer *b, const struct case_packet *p);
/* The entry of the packet's flow, or NULL. */
struct ringlb_flow *balancer_entry(const struct balancer *b, __u64 fingerprint);
struct ringlb_flow_counters balancer_flow_counters(const struct balancer *b);

#endif
