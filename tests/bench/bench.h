/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the benchmark that is in C: it measures and checks, and says what it found as JSON; what people see is
 * made from that by the Python beside it. Every figure is the median of rounds that take turns, so that what disturbs
 * the machine disturbs all alike, and each round of each figure is checked, not only timed.
 *
 * place      namespaces and interfaces of its own, gone with the process
 * balancer   ringlb attached there, and what each flow should do: balancer.h
 * packets    a program under test behind the driver: time, and whether it did what it should
 * cases      the packet path: which packets
 * scale      the same by numbers of services, backends, points and CPUs
 * live       frames that really travel
 * rings      the ring's search alone
 * builds     building a large ring
 * commits    changing what runs
 * figures    samples, medians, JSON
 * Errors are spoken where they happen: bench_die() for what should never fail, bench_wrong() for a failed check.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench_abi.h"

/* Ends the program with a message, for errno where err is not 0. */
__attribute__((format(printf, 2, 3))) _Noreturn void bench_die(int err, const char *format, ...);
/* Reports a check that failed; the program then ends with status 1. */
__attribute__((format(printf, 2, 3))) void bench_wrong(const char *who, const char *format, ...);
/* Between these two, bench_wrong() only counts, and a fault that nothing was reported for is reported itself. */
void bench_plant(void);
void bench_noticed(const char *who, const char *fault);

/* Of packets, only those are measured whose name has this in it; NULL: all. */
extern const char *bench_only;

/* place.c */
void place_enter(void);
/* Makes a pair of interfaces; packets are looked at on the first, the second is its other end. Numbers from 0. */
#define PLACE_NAME 16
void place_pair(unsigned int number);
void place_interface(unsigned int number, char name[PLACE_NAME]);
unsigned int place_ifindex(unsigned int number);
unsigned int place_other_end(unsigned int number);

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
/* Figures are written in the order in which they are made, and belong to figures.c. unit is a literal. */
__attribute__((format(printf, 2, 3))) struct figure *figure_new(const char *unit, const char *format, ...);
void figure_add(struct figure *f, double value);
void figures_json(FILE *out);
void figures_free(void);

/* Parts: what each needs is made by load; a round takes one sample of each figure and keeps it where record is true. */
struct part {
	const char *name;
	void (*load)(void);
	void (*round)(uint32_t count, bool record); /* of about `count` packets or look-ups */
	unsigned int rounds;                        /* of 21 that are asked for; 0: all */
	void (*self_test)(void); /* plants faults and sees that the checks notice; NULL: those of another part do */
	void (*free)(void);
};
/* Prints the program's sizes as JSON. */
void packets_sizes(void);
extern const struct part part_packets, part_scale, part_live, part_lookup, part_builds, part_commits;

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
