// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * probe_driver SOCKETS KEY ADDRESS CHECK [KEY ADDRESS CHECK]...: probes these targets until its standard input ends. CHECK
 * is what stands behind `check:` in a configuration. A result is a line {"time": s, "key": n, "outcome": "good",
 * "reason": "..."}; at the end one {"most_sockets": n}.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config_parse.h"
#include "probe.h"

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void result(void *context, const struct probe_result *r)
{
	static const char *const outcome[] = {
		[PROBE_GOOD] = "good", [PROBE_BAD] = "bad", [PROBE_UNKNOWN] = "unknown"
	};

	(void)context;
	printf("{\"time\": %.3f, \"key\": %llu, \"outcome\": \"%s\", \"reason\": \"", (double)now_ms() / 1000,
	       (unsigned long long)r->key, outcome[r->outcome]);
	for (const char *p = r->reason; *p; p++)
		printf(*p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
	puts("\"}");
}

/* The check alone, as a part of a configuration; what else is missing there is of no interest. */
static struct config_check *read_check(const char *text)
{
	struct config_pool pool = { 0 };
	struct config c = { 0 };
	struct parse p = { .file = "arguments", .c = &c };
	struct node *n = tree_parse(text, strlen(text), &p.f);
	struct diag d = { 0 };
	bool good = n;

	if (n)
		parse_health_check(&p, n, &pool);
	faults_give(&p.f, p.file, &d);
	for (size_t i = 0; i < d.count; i++) {
		fprintf(stderr, "%s: %s\n", d.entry[i].where, d.entry[i].message);
		good = false;
	}
	diag_free(&d);
	tree_free(n);
	if (!good)
		exit(2);
	return pool.check;
}

static void serve(struct probe_engine *e)
{
	struct pollfd p[] = { { STDIN_FILENO, POLLIN, 0 }, { probe_engine_fd(e), POLLIN, 0 } };
	char ignored[64];

	for (;;) {
		uint64_t next = probe_engine_next(e), now = now_ms();

		poll(p, 2, next == PROBE_NEVER ? -1 : next > now ? (int)(next - now) : 0);
		if (p[0].revents && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0)
			return;
		probe_engine_step(e, now_ms());
	}
}

int main(int argc, char **argv)
{
	struct probe_options options = { .icmp4 = -1, .icmp6 = -1, .result = result };
	size_t targets = (size_t)(argc - 2) / 3;
	struct probe_target *target;
	struct probe_engine *e;

	if (argc < 2 || (argc - 2) % 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	options.sockets = (unsigned int)atoi(argv[1]);
	target = xcalloc(targets, sizeof(*target));
	for (size_t i = 0; i < targets; i++) {
		char **arg = argv + 2 + 3 * i;

		target[i].key = strtoull(arg[0], NULL, 10);
		if (address_parse(arg[1], &target[i].address))
			return 2;
		target[i].check = i && !strcmp(arg[2], arg[-1]) ? target[i - 1].check : read_check(arg[2]);
	}
	e = probe_engine_new(&options);
	if (!e)
		return 1;
	probe_engine_set(e, target, targets, now_ms());
	serve(e);
	printf("{\"most_sockets\": %u}\n", probe_engine_stats(e).most_sockets);
	probe_engine_free(e);
	return 0;
}
