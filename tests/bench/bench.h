/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The benchmark: what a packet costs. Every figure is the median of rounds that take turns, so that what disturbs the
 * machine disturbs all alike, and each round of each figure is checked, not only timed.
 *
 * place      namespaces and interfaces of its own, gone with the process
 * instance   ringlb attached there, and what each of its flows should do
 * packets    a program under test behind the driver: time, and whether it did what it should
 * rings      the ring's search alone, likewise
 * builds     building a large ring, likewise
 * figures    samples, medians, the table, JSON
 * Errors are spoken where they happen: bench_die() for what should never fail, bench_wrong() for a failed check.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench_abi.h"

#define BENCH_INTERFACE "rlb0"
#define BENCH_BACKENDS 100u /* of each family */

/* Ends the program with a message, for errno where err is not 0. */
__attribute__((format(printf, 2, 3))) _Noreturn void bench_die(int err, const char *format, ...);
/* Reports a check that failed; the program then ends with status 1. */
__attribute__((format(printf, 2, 3))) void bench_wrong(const char *who, const char *format, ...);
/* Between these two, bench_wrong() only counts, and a fault that nothing was reported for is reported itself. */
void bench_plant(void);
void bench_noticed(const char *who, const char *fault);

/* place.c */
void place_enter(void);
/* Runs a command line's worth of ip(8) commands. */
void place_ip(const char *commands);
unsigned int place_ifindex(void);

/* figures.c */
struct figure {
	char name[64];
	const char *unit;
	/*
	 * What is measured around the thing itself: its cost is `frame`'s median less `frame_floor`'s (NULL: 0), and is
	 * taken off every sample.
	 */
	const struct figure *frame, *frame_floor;
	const struct figure *empty; /* the cost that this one is a multiple of; NULL: none */
	const struct figure *flat;  /* likewise */
	const struct figure *sort;  /* likewise */
	const struct figure *build; /* likewise */
	double *sample;
	size_t samples;
};
/* Figures are shown in the order in which they are made, and belong to figures.c. unit is a literal. */
__attribute__((format(printf, 2, 3))) struct figure *figure_new(const char *unit, const char *format, ...);
void figure_add(struct figure *f, double value);
void figures_print(void);
void figures_json(FILE *out);
void figures_free(void);

/* instance.c */
enum traffic { TRAFFIC_L2, TRAFFIC_IPIP, TRAFFIC_OTHER, TRAFFIC_KINDS };
/* Finds ringlb beside this program; before place_enter(), after which a chroot's /proc/self/exe is another path. */
void instance_locate(void);
/* Loads, configures and attaches. points is each backend's. */
void instance_start(uint32_t points);
void instance_stop(void);
int instance_prog(void); /* a descriptor of the pinned program */
/* The client's frame of such traffic, without the flow's address and port. Returns its length. */
size_t instance_frame(bool ipv6, enum traffic traffic, uint8_t frame[BENCH_FRAME_IPV6]);
/* Checks the counters: since the mark, `count` packets came, of flows `first`, `first` + 1, ... modulo `flows`. */
void instance_mark(void);
void instance_check(const char *who, bool ipv6, enum traffic traffic, uint32_t first, uint32_t flows, uint32_t count);
/* The address of the backend of a flow. */
const uint8_t *instance_backend(bool ipv6, enum traffic traffic, uint32_t flow);
/* Makes the table name a wrong backend for one in a hundred flows, or right ones again. */
void instance_plant(bool wrong);
void instance_figures(void); /* the program's size */

/* packets.c */
void packets_load(void);
/* One sample of every figure, of about `count` packets; kept where record is true. */
void packets_round(uint32_t count, bool record);
/* Plants faults and sees that the checks notice. */
void packets_self_test(void);
void packets_free(void);

/* rings.c: the same */
void rings_load(void);
void rings_round(uint32_t count, bool record);
void rings_self_test(void);
void rings_free(void);

/* builds.c: the same */
void builds_load(void);
void builds_round(bool record);
void builds_self_test(void);
void builds_free(void);

/* run.c */
struct bench_run {
	int prog;
	unsigned int ifindex; /* that the frame comes from; 0: none */
	const void *in;
	uint32_t in_length;
	uint8_t out[256];
	uint32_t out_length;
	uint32_t action;
};
/* Runs the program `count` times; the nanoseconds of this thread's time that one took. */
double bench_run(struct bench_run *r, uint32_t count);

#endif
