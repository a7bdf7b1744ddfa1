/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What it takes to build a pool of a million points, and to change one backend of a hundred in it. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "diag.h"
#include "ring.h"
#include "sort.h"
#include "table.h"

#define MEMBERS 100u
#define POINTS 10000u /* of each */
#define ALL ((size_t)MEMBERS * POINTS)
#define LIMIT 64.0 /* bytes a point */

static struct {
	struct ring_member member[MEMBERS];
	char identity[MEMBERS][16];
	uint64_t *unsorted, *keys; /* keys: room for the sort */
	struct ring ring;
	struct figure *sort, *build, *change, *memory;
} self;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long most_memory(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* The arcs and the kernel's table of the pool: what a commit builds. Returns the kilobytes that it took. */
static long build_all(void)
{
	static const uint16_t owner[MEMBERS];
	long before = most_memory();
	struct table_layout layout;
	struct arcs arcs;
	void *table;

	if (ring_build(self.member, MEMBERS, &arcs) || table_layout(&arcs, MEMBERS, &layout))
		_exit(1);
	table = aligned_alloc(64, layout.length);
	if (!table)
		_exit(1);
	table_encode(&arcs, owner, MEMBERS, &layout, table);
	return most_memory() - before;
}

/* In a process of its own, of which the most that it ever had is known. */
static double bytes_a_point(void)
{
	int ends[2], status;
	long kilobytes;
	pid_t pid;

	if (pipe(ends))
		bench_die(errno, "pipe");
	pid = fork();
	if (pid < 0)
		bench_die(errno, "fork");
	if (!pid) {
		kilobytes = build_all();
		_exit(write(ends[1], &kilobytes, sizeof(kilobytes)) != sizeof(kilobytes));
	}
	close(ends[1]);
	if (read(ends[0], &kilobytes, sizeof(kilobytes)) != sizeof(kilobytes) || waitpid(pid, &status, 0) != pid ||
	    status)
		bench_die(0, "building a million points failed");
	close(ends[0]);
	return (double)kilobytes * 1024 / (double)ALL;
}

static void builds_load(void)
{
	uint64_t x = 1;

	for (unsigned int i = 0; i < MEMBERS; i++) {
		snprintf(self.identity[i], sizeof(self.identity[i]), "backend-%u", i);
		self.member[i] = (struct ring_member){ self.identity[i], POINTS };
	}
	self.unsorted = xcalloc(ALL, sizeof(*self.unsorted));
	self.keys = xcalloc(2 * ALL, sizeof(*self.keys));
	for (size_t i = 0; i < ALL; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull; /* Knuth's MMIX */
		self.unsorted[i] = x;
	}
	if (ring_change(&self.ring, NULL, 0, self.member, MEMBERS))
		bench_die(ENOMEM, "a ring of a million points");
	self.sort = figure_new("ns", "a million points: radix sort, a point");
	self.build = figure_new("ns", "a million points: build, a point");
	self.change = figure_new("ns", "a million points: change 1 of 100, a point");
	self.build->sort = self.sort;
	self.change->build = self.build;
	self.memory = figure_new("bytes", "a million points: memory to build, a point");
	figure_add(self.memory, bytes_a_point());
	if (self.memory->sample[0] >= LIMIT)
		bench_wrong(self.memory->name, "%.0f bytes", self.memory->sample[0]);
}

static double time_sort(void)
{
	double start;

	memcpy(self.keys, self.unsorted, ALL * sizeof(*self.keys));
	start = seconds();
	sort_by_upper32(self.keys, self.keys + ALL, ALL);
	return seconds() - start;
}

static double time_build(struct arcs *arcs)
{
	double start = seconds();

	if (ring_build(self.member, MEMBERS, arcs))
		bench_die(ENOMEM, "a ring of a million points");
	return seconds() - start;
}

/* Another backend each time, and back to as many points as the others. */
static double time_change(void)
{
	struct ring_member changed[MEMBERS];
	static unsigned int which;
	double start, took;

	memcpy(changed, self.member, sizeof(changed));
	which = (which + 1) % MEMBERS;
	changed[which].points = POINTS / 2;
	start = seconds();
	if (ring_change(&self.ring, self.member, MEMBERS, changed, MEMBERS))
		bench_die(ENOMEM, "a ring of a million points");
	took = seconds() - start;
	if (ring_change(&self.ring, changed, MEMBERS, self.member, MEMBERS))
		bench_die(ENOMEM, "a ring of a million points");
	return took;
}

static void builds_round(uint32_t count, bool record)
{
	double sort = time_sort(), build, change;
	struct arcs arcs;

	(void)count; /* it is always a million points */
	build = time_build(&arcs);
	change = time_change();
	if (arcs.count != self.ring.arcs.count || memcmp(arcs.arc, self.ring.arcs.arc, arcs.count * sizeof(*arcs.arc)))
		bench_wrong(self.change->name, "the changed ring is not the one that is built");
	arcs_free(&arcs);
	if (!record)
		return;
	figure_add(self.sort, sort * 1e9 / (double)ALL);
	figure_add(self.build, build * 1e9 / (double)ALL);
	figure_add(self.change, change * 1e9 / (double)ALL);
}

static void builds_self_test(void)
{
	builds_round(0, false);
	bench_plant();
	/* A change takes over the points of all others. */
	self.ring.point[0] -= 1ull << 32;
	builds_round(0, false);
	bench_noticed(self.change->name, "a wrong point");
}

static void builds_free(void)
{
	ring_free(&self.ring);
	free(self.unsorted);
	free(self.keys);
}

const struct part part_builds = { "builds", builds_load, builds_round, 0, builds_self_test, builds_free };
