/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "balancer.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 21u
#define PACKETS 200000u /* in a sample */
#define SELF_TEST_PACKETS 4096u
#define WRONGS_SHOWN 20u

static const struct part *const all[] = {
	&part_packets, &part_lookup, &part_builds, &part_scale, &part_live, &part_commits,
};
#define PARTS (sizeof(all) / sizeof(all[0]))

static const char usage[] =
	"usage: bench [--rounds N] [--ringlb FILE] [PART...]\n"
	"       bench --self-test [PART...]\n"
	"       bench --sizes\n"
	"Measures, in namespaces of its own, and writes figures as JSON; root. scripts/bench.sh shows them.\n"
	"PART: packets, lookup, builds, scale, live, commits; without any: all.\n"
	"  --rounds N     of every figure (21)\n"
	"  --only TEXT    of packets and scale: only what has this in its name, and the floors\n"
	"  --ringlb FILE  measures this program instead of the one beside the benchmark\n"
	"  --self-test    no times: every check once, and once more with planted faults that it must notice\n"
	"  --sizes        of the program: instructions that the verifier went through, instructions and bytes loaded\n"
	"Status 1 when a check failed: then the figures are of something that does not work.\n";

const char *bench_only;

static struct {
	unsigned int count, planted;
	bool hush;
} wrong;

void bench_die(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("bench: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, err ? ": %s\n" : "\n", strerror(err));
	va_end(args);
	exit(1);
}

void bench_wrong(const char *who, const char *format, ...)
{
	va_list args;

	if (wrong.hush) {
		wrong.planted++;
		return;
	}
	if (wrong.count++ >= WRONGS_SHOWN)
		return;
	va_start(args, format);
	fprintf(stderr, "bench: wrong: %s: ", who);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

void bench_plant(void)
{
	wrong.hush = true;
	wrong.planted = 0;
}

void bench_noticed(const char *who, const char *fault)
{
	wrong.hush = false;
	if (!wrong.planted)
		bench_wrong(who, "nothing noticed %s", fault);
}

/* A thread that wanders leaves its caches, and its half of the per-CPU counters, behind. */
static void stay_on_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die(errno, "sched_setaffinity");
}

static void self_test(const bool wanted[PARTS])
{
	for (size_t i = 0; i < PARTS; i++)
		if (wanted[i])
			all[i]->round(SELF_TEST_PACKETS, false);
	for (size_t i = 0; i < PARTS; i++)
		if (wanted[i] && all[i]->self_test)
			all[i]->self_test();
	if (!wrong.count)
		puts("every check holds, and every planted fault was noticed");
}

static bool has_round(const struct part *p, unsigned int round, unsigned int rounds)
{
	return !p->rounds || round < (rounds * p->rounds + ROUNDS - 1) / ROUNDS;
}

static void measure(const bool wanted[PARTS], unsigned int rounds)
{
	for (unsigned int round = 0; round < rounds; round++)
		for (size_t i = 0; i < PARTS; i++)
			if (wanted[i] && has_round(all[i], round, rounds))
				all[i]->round(PACKETS, true);
	figures_json(stdout);
}

/* False: a name is none. */
static bool take_parts(char **name, size_t names, bool wanted[PARTS])
{
	for (size_t i = 0; i < PARTS; i++)
		wanted[i] = !names;
	for (size_t i = 0; i < names; i++) {
		size_t part = 0;

		while (part < PARTS && strcmp(all[part]->name, name[i]))
			part++;
		if (part == PARTS)
			return false;
		wanted[part] = true;
	}
	return true;
}

static void run(const bool wanted[PARTS], unsigned int rounds, bool test_only)
{
	place_enter();
	for (size_t i = 0; i < PARTS; i++)
		if (wanted[i])
			all[i]->load();
	if (test_only)
		self_test(wanted);
	else
		measure(wanted, rounds);
	for (size_t i = 0; i < PARTS; i++)
		if (wanted[i])
			all[i]->free();
	figures_free();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "only", required_argument, NULL, 'o' },
		{ "ringlb", required_argument, NULL, 'p' },
		{ "self-test", no_argument, NULL, 's' },
		{ "sizes", no_argument, NULL, 'z' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *ringlb = NULL;
	unsigned int rounds = ROUNDS;
	bool wanted[PARTS], test_only = false, sizes = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			rounds = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'o')
			bench_only = optarg;
		else if (c == 'p')
			ringlb = optarg;
		else if (c == 's')
			test_only = true;
		else if (c == 'z')
			sizes = true;
		else
			return fputs(usage, c == 'h' ? stdout : stderr), c == 'h' ? 0 : 2;
	}
	if (!rounds || rounds > 10000 || !take_parts(argv + optind, (size_t)(argc - optind), wanted))
		return fputs(usage, stderr), 2;
	stay_on_cpu();
	balancer_locate(ringlb);
	if (sizes) {
		place_enter();
		packets_sizes();
		return 0;
	}
	run(wanted, rounds, test_only);
	if (wrong.count)
		fprintf(stderr, "bench: %u checks failed\n", wrong.count);
	return wrong.count != 0;
}
