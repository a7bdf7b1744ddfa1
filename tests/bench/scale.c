/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The packet path by numbers of services, backends, points and CPUs: IPv4 and ipip, each number with a balancer. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "packets.h"

#define FLOWS 1000000u
#define FIRST_PAIR 8 /* of interfaces: the packets have the ones before */
#define CPUS 2

static const struct scale {
	const char *name; /* figures are "by NAME: NUMBER" */
	uint32_t number, services, backends, points;
} scale[] = {
	{ "services", 1, 1, 100, 40000 },     { "services", 8, 8, 100, 40000 },
	{ "services", 64, 64, 100, 40000 },   { "services", 512, 512, 100, 40000 },
	{ "backends", 3, 1, 3, 40000 },       { "backends", 30, 1, 30, 40000 },
	{ "backends", 300, 1, 300, 40000 },   { "backends", 1000, 1, 1000, 40000 },
	{ "backends", 4096, 1, 4096, 40960 }, { "points", 480, 1, 3, 480 },
	{ "points", 4000, 1, 100, 4000 },     { "points", 16000, 1, 100, 16000 },
	{ "points", 65000, 1, 100, 65000 },   { "points", 160000, 1, 100, 160000 },
	{ "points", 400000, 1, 100, 400000 }, { "points", 1000000, 1, 100, 1000000 },
};
#define SCALES (sizeof(scale) / sizeof(scale[0]))

static struct {
	struct pool_spec pool[SCALES];
	struct service_spec service[SCALES];
	struct balancer_spec spec[SCALES];
	struct balancer *balancer[SCALES];
	struct packet_cases cases, by_cpu[CPUS];
	struct figure *cpus[CPUS];
} self;

static struct packet_case case_of(size_t i)
{
	return (struct packet_case){
		.what = BALANCER,
		.balancer = self.balancer[i],
		.stream = { .kind = PACKET_TCP, .flows = FLOWS },
		.figure = figure_new("ns", "by %s: %u", scale[i].name, scale[i].number),
	};
}

static void start(size_t i)
{
	self.pool[i] = (struct pool_spec){ .backends = scale[i].backends,
					   .vnodes = scale[i].points / scale[i].backends };
	self.service[i] = (struct service_spec){ .forward = RINGLB_FORWARD_IPIP,
						 .track = RINGLB_TRACK_MOVED,
						 .protocol = IPPROTO_TCP,
						 .addresses = scale[i].services };
	self.spec[i] = (struct balancer_spec){ &self.pool[i], 1, &self.service[i], 1, .routed = true };
	self.balancer[i] = balancer_start(FIRST_PAIR + (unsigned int)i, &self.spec[i]);
}

/* Each CPU has a driver of its own, and flows of its own, which together are one stream. */
static void load_cpus(void)
{
	for (int i = 0; i < CPUS; i++) {
		self.cpus[i] = figure_new("Mpps", "by CPUs: %d", i + 1);
		packets_open(&self.by_cpu[i], self.balancer[0]);
		packets_add(&self.by_cpu[i],
			    (struct packet_case){ .what = BALANCER,
						  .balancer = self.balancer[0],
						  .stream = { .kind = PACKET_TCP, .flows = FLOWS },
						  .figure = self.cpus[i] },
			    NULL);
		self.cpus[i]->empty = NULL;
	}
}

static void load(void)
{
	struct packet_floors floors;

	for (size_t i = 0; i < SCALES; i++)
		start(i);
	packets_open(&self.cases, self.balancer[0]);
	packets_add_floors(&self.cases, self.balancer[0], "by number, ", &floors);
	for (size_t i = 0; i < SCALES; i++)
		packets_add(&self.cases, case_of(i), &floors);
	load_cpus();
}

struct worker {
	pthread_t thread;
	pthread_barrier_t *begin;
	unsigned int number;
	uint32_t first, count;
	double ns;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct packet_cases *p = &self.by_cpu[w->number];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(w->number, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die(errno, "CPU %u", w->number);
	p->item[0].stream.first = w->first;
	p->item[0].stream.count = 0;
	pthread_barrier_wait(w->begin);
	w->ns = packets_run_unchecked(p, &p->item[0], w->count, false);
	return NULL;
}

/* Millions of packets in a second of these CPUs' time. */
static double run_on(unsigned int cpus, uint32_t count)
{
	struct stream whole = { .kind = PACKET_TCP, .flows = FLOWS, .count = cpus * count };
	struct worker worker[CPUS];
	pthread_barrier_t begin;
	double mpps = 0;

	pthread_barrier_init(&begin, NULL, cpus);
	balancer_mark(self.balancer[0]);
	for (unsigned int i = 0; i < cpus; i++) {
		worker[i] = (struct worker){ .begin = &begin, .number = i, .first = i * count, .count = count };
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
			bench_die(errno, "a thread");
	}
	for (unsigned int i = 0; i < cpus; i++) {
		pthread_join(worker[i].thread, NULL);
		mpps += 1e3 / worker[i].ns;
	}
	pthread_barrier_destroy(&begin);
	balancer_check(self.balancer[0], self.cpus[cpus - 1]->name, &whole, TABLE_ANY);
	return mpps;
}

static void sample(uint32_t count, bool record)
{
	packets_sample(&self.cases, count, record);
	if (sysconf(_SC_NPROCESSORS_ONLN) < CPUS)
		return;
	for (unsigned int i = 0; i < CPUS; i++) {
		double mpps = run_on(i + 1, count);

		if (record)
			figure_add(self.cpus[i], mpps);
	}
}

static void stop(void)
{
	packets_close(&self.cases);
	for (int i = 0; i < CPUS; i++)
		packets_close(&self.by_cpu[i]);
	for (size_t i = 0; i < SCALES; i++)
		balancer_stop(self.balancer[i]);
}

static void plant(void)
{
	packets_plant(&self.cases);
}

const struct part part_scale = { "scale", load, sample, 9, plant, stop };
