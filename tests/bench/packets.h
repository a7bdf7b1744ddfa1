/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program under test behind the driver, which restores the frame in each round: see driver.bpf.c. */
#ifndef BENCH_PACKETS_H
#define BENCH_PACKETS_H

#include "balancer.h"

enum under_test { FLOOR_BARE, FLOOR_EMPTY, FLOOR_SWAP, FLOOR_OUTER, BALANCER };

struct packet_case {
	enum under_test what;
	struct balancer *balancer; /* of floors, too: whose interface the frame comes from */
	struct stream stream;      /* first, count: of the last run */
	enum table_state table;    /* brought about before each sample */
	uint32_t most;             /* packets in a sample, not more; 0: any number */
	struct figure *figure;
};

/* What the figures of programs behind the driver are made of: the driver costs what it adds to the empty program. */
struct packet_floors {
	const struct figure *bare, *empty[2]; /* by family */
};

struct packet_cases {
	struct packet_case *item;
	size_t count;
	struct driver_bpf *driver;
};

/* Fits the driver to the program, too: they must agree on whether they take frames in pieces. */
void packets_open(struct packet_cases *p, const struct balancer *b);
void packets_add(struct packet_cases *p, struct packet_case c, const struct packet_floors *floors);
/* Adds floors; label: before each name. */
void packets_add_floors(struct packet_cases *p, struct balancer *b, const char *label, struct packet_floors *out);
/* Runs count packets of the case; the nanoseconds of each. keep_frame: a planted fault. */
double packets_run(struct packet_cases *p, struct packet_case *c, uint32_t count, bool keep_frame);
/* The same without a look at the balancer's counters. */
double packets_run_unchecked(struct packet_cases *p, struct packet_case *c, uint32_t count, bool keep_frame);
/* One sample of every figure, of about `count` packets. */
void packets_sample(struct packet_cases *p, uint32_t count, bool record);
void packets_plant(struct packet_cases *p);
void packets_close(struct packet_cases *p);

#endif
