/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What changing one backend takes: in this process, by the code that every command runs, with the time of each step;
 * and by the command, from its start until the new ring answers.
 *
 * The steps are told apart by linking: calls of these functions come by here (ld's --wrap).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend_edit.h"
#include "balancer.h"
#include "change.h"
#include "encode.h"

#define FIRST_PAIR 30 /* of interfaces */
#define CHANGED "b1"
#define TRIES 1000000u /* flows that are looked up until one is that backend's */

extern char **environ;

static const struct size {
	const char *name;
	uint32_t pools, backends, vnodes;
} size_of[] = {
	{ "100 x 400", 1, 100, 400 },
	{ "100 x 10,000", 1, 100, 10000 },
	{ "4,096 x 160", 1, 4096, 160 },
	{ "1,000 pools of 3 x 160", 1000, 3, 160 },
};
#define SIZES (sizeof(size_of) / sizeof(size_of[0]))

enum step { READ, BUILD, PUSH, SWAP, WHOLE, COMMAND, STEPS };

static struct {
	struct pool_spec *pool[SIZES];
	struct service_spec *service[SIZES];
	struct balancer_spec spec[SIZES];
	struct balancer *balancer[SIZES];
	struct figure *figure[SIZES][STEPS], *memory[SIZES], *locked[SIZES];
	uint32_t flow[SIZES];  /* whose owner is the backend that changes, as long as it takes flows */
	uint16_t index[SIZES]; /* of that backend */
	double took[STEPS];    /* of the change under way */
} self;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int __real_plan_make(const struct plan_input *in, struct plan *out, struct diag *d);
void __real_encode_table(struct encoding *e, const struct state_pool *p);
void __real_encode_publish(struct encoding *e);
int __real_datapath_wait(struct datapath *dp);
int __wrap_plan_make(const struct plan_input *in, struct plan *out, struct diag *d);
void __wrap_encode_table(struct encoding *e, const struct state_pool *p);
void __wrap_encode_publish(struct encoding *e);
int __wrap_datapath_wait(struct datapath *dp);

int __wrap_plan_make(const struct plan_input *in, struct plan *out, struct diag *d)
{
	double start = now();
	int err = __real_plan_make(in, out, d);

	self.took[BUILD] += now() - start;
	return err;
}

void __wrap_encode_table(struct encoding *e, const struct state_pool *p)
{
	double start = now();

	__real_encode_table(e, p);
	self.took[PUSH] += now() - start;
}

void __wrap_encode_publish(struct encoding *e)
{
	double start = now();

	__real_encode_publish(e);
	self.took[SWAP] += now() - start;
}

int __wrap_datapath_wait(struct datapath *dp)
{
	double start = now();
	int err = __real_datapath_wait(dp);

	self.took[SWAP] += now() - start;
	return err;
}

static void specify(size_t i)
{
	const struct size *s = &size_of[i];

	self.pool[i] = xcalloc(s->pools, sizeof(*self.pool[i]));
	self.service[i] = xcalloc(s->pools, sizeof(*self.service[i]));
	for (uint32_t j = 0; j < s->pools; j++) {
		self.pool[i][j] = (struct pool_spec){ .backends = s->backends, .vnodes = s->vnodes };
		self.service[i][j] = (struct service_spec){ .pool = j,
							    .forward = RINGLB_FORWARD_IPIP,
							    .track = RINGLB_TRACK_NONE,
							    .protocol = IPPROTO_TCP,
							    .addresses = 1 };
	}
	self.spec[i] = (struct balancer_spec){ self.pool[i], s->pools, self.service[i], s->pools, .routed = true };
}

/* Where a flow goes that comes anew. */
static uint16_t ask(struct balancer *b, uint32_t flow)
{
	const struct stream s = { .kind = PACKET_SYN, .flows = 1, .count = 1 };
	const uint32_t client = htonl(bench_client(flow));
	uint8_t frame[BENCH_FRAME_IPV6];
	struct ringlb_lookup answer;
	size_t length = balancer_frame(b, &s, frame);

	memcpy(frame + BENCH_CLIENT_AT_IPV4, &client, sizeof(client));
	if (datapath_lookup(b->running.dp, frame, length, &answer))
		bench_die(errno, "the program lookup");
	return answer.owner;
}

static void find_flow(size_t i)
{
	struct balancer *b = self.balancer[i];

	self.index[i] = state_pool_find(&b->running.state->pool[0], CHANGED)->index;
	while (ask(b, self.flow[i]) != self.index[i])
		if (++self.flow[i] == TRIES)
			bench_die(0, "no flow goes to " CHANGED);
}

static void load(void)
{
	static const char *const step[STEPS] = { "read what runs", "build",         "push",
						 "swap",           "change in all", "command to new ring" };

	for (size_t i = 0; i < SIZES; i++) {
		specify(i);
		self.balancer[i] = balancer_start(FIRST_PAIR + (unsigned int)i, &self.spec[i]);
		find_flow(i);
		for (int j = 0; j < STEPS; j++)
			self.figure[i][j] = figure_new("ms", "commit, %s: %s", size_of[i].name, step[j]);
		self.memory[i] = figure_new("MB", "commit, %s: memory of the command", size_of[i].name);
		self.locked[i] = figure_new("MB", "commit, %s: memory of the maps", size_of[i].name);
		figure_add(self.locked[i], (double)datapath_locked_bytes(self.balancer[i]->running.dp) / 1e6);
	}
}

/* Ends with the change committed. */
static void carry_out(struct change *c, struct config *wanted, struct diag *d)
{
	c->in.keep_edits = true;
	if (!wanted || change_plan(c, wanted, d) || change_commit(c, NULL, true, d))
		bench_die(0, "the change failed: %s", d->count ? d->entry[d->count - 1].message : "");
}

static void drain(const struct balancer *b)
{
	struct backend_edit edit = { .verb = BACKEND_SET, .pool = "pool0", .name = CHANGED, .state = CONFIG_DRAIN };
	struct diag d = { 0 };
	double start = now();
	struct change c;

	memset(self.took, 0, sizeof(self.took));
	if (change_open(&b->at, &c, &d))
		bench_die(0, "what runs can't be read");
	self.took[READ] = now() - start;
	carry_out(&c, backend_edit_make(&edit, change_config(&c, &d), &d), &d);
	self.took[WHOLE] = now() - start;
	change_close(&c);
	diag_free(&d);
}

/* Nothing moves any more, or tables would grow with each round. */
static void settle(const struct balancer *b)
{
	struct diag d = { 0 };
	struct change c;

	if (change_open(&b->at, &c, &d))
		bench_die(0, "what runs can't be read");
	c.in.settle_force = true;
	carry_out(&c, change_config(&c, &d), &d);
	change_close(&c);
	diag_free(&d);
}

static uint64_t state_of(struct balancer *b)
{
	size_t bytes;

	return __atomic_load_n(&datapath_tables(b->running.dp, &bytes)->state, __ATOMIC_SEQ_CST);
}

/* The most that the process has had since it runs its own program; 0: it has gone. wait4() would count ours, too. */
static double megabytes(pid_t pid)
{
	char path[64], line[128];
	unsigned long kilobytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && !kilobytes && fgets(line, sizeof(line), f))
		sscanf(line, "VmHWM: %lu kB", &kilobytes);
	if (f)
		fclose(f);
	return (double)kilobytes / 1e3;
}

static void set_cpus(unsigned int from, unsigned int to)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned int i = from; i < to; i++)
		CPU_SET(i, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die(errno, "sched_setaffinity");
}

/* The command gets a CPU of its own, if there is one, and this process waits for the switch without sleeping. */
static pid_t start_command(const struct balancer *b)
{
	char instance[32];
	char *argv[] = { (char *)"ringlb",
			 (char *)"--quiet",
			 (char *)"-i",
			 instance,
			 (char *)"backend",
			 (char *)"set",
			 (char *)"pool0",
			 (char *)CHANGED,
			 (char *)"--state",
			 (char *)"up",
			 NULL };
	pid_t pid;

	snprintf(instance, sizeof(instance), "bench%u", b->number);
	set_cpus(0, (unsigned int)sysconf(_SC_NPROCESSORS_ONLN));
	if (posix_spawn(&pid, balancer_ringlb(), NULL, NULL, argv, environ))
		bench_die(errno, "%s", balancer_ringlb());
	return pid;
}

static void by_command(struct balancer *b, size_t i, bool record)
{
	const uint64_t before = state_of(b);
	const double start = now();
	pid_t pid = start_command(b);
	double answers, memory;
	int status = 0;

	while (state_of(b) == before && !waitpid(pid, &status, WNOHANG))
		sched_yield();
	answers = now();
	memory = megabytes(pid);
	if (state_of(b) == before || waitpid(pid, &status, 0) != pid || status)
		bench_die(0, "ringlb backend set: status %d", status);
	if (!record)
		return;
	figure_add(self.figure[i][COMMAND], answers - start);
	if (memory > 0)
		figure_add(self.memory[i], memory);
}

static void measure(size_t i, bool record)
{
	struct balancer *b = self.balancer[i];

	drain(b);
	for (int j = 0; record && j < COMMAND; j++)
		figure_add(self.figure[i][j], self.took[j]);
	if (ask(b, self.flow[i]) == self.index[i])
		bench_wrong(self.figure[i][WHOLE]->name, "a drained backend takes flows");
	by_command(b, i, record);
	if (ask(b, self.flow[i]) != self.index[i])
		bench_wrong(self.figure[i][COMMAND]->name, "a backend that is up again takes no flows");
	settle(b);
}

static void take_round(uint32_t count, bool record)
{
	(void)count;
	for (size_t i = 0; i < SIZES; i++)
		measure(i, record);
}

static void stop(void)
{
	for (size_t i = 0; i < SIZES; i++) {
		balancer_stop(self.balancer[i]);
		free(self.pool[i]);
		free(self.service[i]);
	}
}

const struct part part_commits = { "commits", load, take_round, 7, NULL, stop };
