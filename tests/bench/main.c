/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define POINTS 400u /* of each backend: 40,000 in all, the default */
#define ROUNDS 31u
#define QUICK_ROUNDS 5u
#define PACKETS 200000u /* in a sample */
#define SELF_TEST_PACKETS 4096u
#define WRONGS_SHOWN 20u

static const char usage[] =
	"usage: bench [--quick] [--rounds N] [--json FILE]\n"
	"       bench --self-test\n"
	"What a packet costs, in a namespace of its own; root.\n"
	"  --quick      fewer rounds\n"
	"  --rounds N   of every figure (31)\n"
	"  --json FILE  writes the figures there, too\n"
	"  --self-test  no times: every check once, and once more with planted faults that it must notice\n"
	"Status 1 when a check failed: then the figures are of something that does not work.\n";

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

/* The value of the first line of /proc/cpuinfo with this key, and how many there are. */
static int cpu_model(char out[96])
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[512];
	int cpus = 0;

	out[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "model name", 10) || !strchr(line, ':'))
			continue;
		snprintf(out, 96, "%.95s", strchr(line, ':') + 2);
		out[strcspn(out, "\n")] = '\0';
		cpus++;
	}
	if (f)
		fclose(f);
	return cpus;
}

static void print_setting(int argc, char **argv, unsigned int rounds)
{
	char model[96], date[32];
	struct utsname u;
	time_t now = time(NULL);
	int cpus = cpu_model(model);

	uname(&u);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", gmtime(&now));
	printf("%s, %d x %s, %s %s, ringlb " RINGLB_VERSION "\n", date, cpus, *model ? model : u.machine, u.sysname,
	       u.release);
	printf("command:");
	for (int i = 0; i < argc; i++)
		printf(" %s", argv[i]);
	printf("\n%u rounds of %u packets; %u backends with %u points; one CPU\n\n", rounds, PACKETS, BENCH_BACKENDS,
	       BENCH_BACKENDS * POINTS);
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

static void self_test(void)
{
	packets_round(SELF_TEST_PACKETS, false);
	rings_round(SELF_TEST_PACKETS, false);
	builds_round(false);
	packets_self_test();
	rings_self_test();
	builds_self_test();
	if (!wrong.count)
		puts("every check holds, and every planted fault was noticed");
}

static void measure(unsigned int rounds, FILE *json)
{
	for (unsigned int i = 0; i < rounds; i++) {
		packets_round(PACKETS, true);
		rings_round(PACKETS, true);
		builds_round(true);
	}
	figures_print();
	if (json)
		figures_json(json);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "quick", no_argument, NULL, 'q' },      { "rounds", required_argument, NULL, 'r' },
		{ "json", required_argument, NULL, 'j' }, { "self-test", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },       { 0 },
	};
	unsigned int rounds = ROUNDS;
	const char *file = NULL;
	FILE *json = NULL;
	bool test_only = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'q')
			rounds = QUICK_ROUNDS;
		else if (c == 'r')
			rounds = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'j')
			file = optarg;
		else if (c == 's')
			test_only = true;
		else
			return fputs(usage, c == 'h' ? stdout : stderr), c == 'h' ? 0 : 2;
	}
	if (optind < argc || !rounds || rounds > 10000)
		return fputs(usage, stderr), 2;
	/* Before the work, and before the places change. */
	if (file && !(json = fopen(file, "we")))
		bench_die(errno, "%s", file);
	stay_on_cpu();
	instance_locate();
	place_enter();
	instance_start(POINTS);
	packets_load();
	rings_load();
	builds_load();
	if (test_only) {
		self_test();
	} else {
		print_setting(argc, argv, rounds);
		measure(rounds, json);
	}
	builds_free();
	rings_free();
	packets_free();
	instance_stop();
	figures_free();
	if (json && fclose(json))
		bench_die(errno, "%s", file);
	if (wrong.count)
		fprintf(stderr, "bench: %u checks failed\n", wrong.count);
	return wrong.count != 0;
}
