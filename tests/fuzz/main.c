/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fuzz.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 1024u /* packets between two looks at the counters of services and backends */
#define MAX_ENDS 64u

static const char usage[] =
	"usage: packets [--count N] [--seed N] [--start N] [--check N] CORPUS.pcap...\n"
	"       packets --packet HEX CORPUS.pcap...\n"
	"Mutated packets through the attached program, each judged; root.\n"
	"  --count N    so many (100000)\n"
	"  --seed N     of everything that is random (1)\n"
	"  --start N    the number of the first one\n"
	"  --check N    looks at all counters every N packets (1024): 1 finds the packet that made one wrong\n"
	"  --packet HEX this frame alone\n"
	"Status 1 when the program was wrong; the packet is then printed.\n";

static uint64_t random_state;

void fuzz_die(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("packets: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, err ? ": %s\n" : "\n", strerror(err));
	va_end(args);
	exit(2);
}

/* SplitMix64 */
uint64_t fuzz_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* How packets ended: a run in which none came far is none. */
static struct {
	const char *verdict;
	uint64_t packets;
} ends[MAX_ENDS];

static void count_end(const char *verdict)
{
	for (size_t i = 0; i < MAX_ENDS; i++) {
		if (ends[i].verdict && ends[i].verdict != verdict)
			continue;
		ends[i].verdict = verdict;
		ends[i].packets++;
		return;
	}
}

static void print_frame(const char *what, const struct frame *f)
{
	printf("%s, %zu bytes: ", what, f->length);
	for (size_t i = 0; i < f->length; i++)
		printf("%02x", f->data[i]);
	putchar('\n');
}

static bool one(const struct frame *f)
{
	static struct frame result;
	uint32_t action = scene_run(f, &result);
	const char *verdict = scene_verdict();

	if (!judge(f, action, verdict, &result, stdout)) {
		printf("verdict %s, action %u\n", verdict ? verdict : "none, or several", action);
		print_frame("packet", f);
		print_frame("result", &result);
		return false;
	}
	count_end(verdict);
	return true;
}

/* Packet `number` of a seed, the same in every run. */
static void make(struct frame *f, uint64_t seed, uint64_t number)
{
	const struct frame *from;

	random_state = seed;
	random_state = fuzz_random() ^ number * 0xd1342543de82ef95;
	from = &corpus[below((uint32_t)corpus_size)];
	f->length = from->length;
	memcpy(f->data, from->data, from->length);
	mutate(f);
}

static bool run(uint64_t seed, uint64_t start, uint64_t count, uint64_t check)
{
	static struct frame f;

	for (uint64_t i = start; i < start + count; i++) {
		make(&f, seed, i);
		if (!one(&f)) {
			printf("number %llu; again: --seed %llu --count %llu\n", (unsigned long long)i,
			       (unsigned long long)seed, (unsigned long long)i + 1);
			return false;
		}
		if ((i + 1 - start) % check && i + 1 < start + count)
			continue;
		if (!scene_counters(stdout)) {
			printf("at the latest by number %llu; again: --seed %llu --count %llu --check 1\n",
			       (unsigned long long)i, (unsigned long long)seed, (unsigned long long)i + 1);
			print_frame("packet", &f);
			return false;
		}
	}
	return true;
}

static bool run_hex(const char *hex)
{
	static struct frame f;

	for (; hex[0] && hex[1] && f.length < FRAME_MAX; hex += 2)
		f.data[f.length++] = (uint8_t)strtoul((char[]){ hex[0], hex[1], '\0' }, NULL, 16);
	if (f.length < FRAME_MIN)
		fuzz_die(0, "--packet: at least %u bytes", FRAME_MIN);
	return one(&f) && scene_counters(stdout);
}

/* A thread that wanders would meet fewer of its own flows. */
static void stay_on_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fuzz_die(errno, "sched_setaffinity");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' },
		{ "start", required_argument, NULL, 'f' },
		{ "check", required_argument, NULL, 'k' },
		{ "packet", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	uint64_t count = 100000, seed = 1, start = 0, check = BATCH;
	const char *hex = NULL;
	bool good;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint64_t *number = c == 'c' ? &count : c == 's' ? &seed : c == 'f' ? &start : c == 'k' ? &check : NULL;

		if (number)
			*number = strtoull(optarg, NULL, 0);
		else if (c == 'p')
			hex = optarg;
		else
			return fputs(usage, c == 'h' ? stdout : stderr), c == 'h' ? 0 : 2;
	}
	if (optind == argc || !check)
		return fputs(usage, stderr), 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (; optind < argc; optind++)
		corpus_read(argv[optind]);
	stay_on_cpu();
	scene_locate();
	scene_start();
	printf("seed %llu, %zu packets in the corpus\n", (unsigned long long)seed, corpus_size);
	good = hex ? run_hex(hex) : run(seed, start, count, check);
	for (size_t i = 0; i < MAX_ENDS && ends[i].verdict; i++)
		printf("%s %llu\n", ends[i].verdict, (unsigned long long)ends[i].packets);
	scene_stop();
	corpus_free();
	return !good;
}
