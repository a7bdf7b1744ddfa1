/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each step of a growth: packets come in between, the command is killed there, or the kernel refuses it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/ptrace.h>

#include "grow_case.h"
#include "replace.h"

#define CALLS 1000u

struct call {
	uint64_t number, command; /* of bpf() */
};

static bool matters(const struct ptrace_syscall_info *i)
{
	switch (i->entry.nr) {
	case SYS_bpf:
		return i->entry.args[0] != BPF_MAP_LOOKUP_ELEM && i->entry.args[0] != BPF_OBJ_GET_INFO_BY_FD;
	case SYS_renameat2:
	case SYS_unlink:
	case SYS_rmdir:
	case SYS_mkdir:
		return true;
	}
	return false;
}

/* One of very many counters, most of the time. */
static bool is_bpf_update(const struct ptrace_syscall_info *i)
{
	return i->entry.nr == SYS_bpf && i->entry.args[0] == BPF_MAP_UPDATE_ELEM;
}

/* Has the kernel refuse the call that pid is about to make. */
static void refuse(pid_t pid)
{
	struct user_regs_struct regs;
	int status;

	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &regs), 0);
	regs.orig_rax = (unsigned long long)-1;
	assert_int_equal(ptrace(PTRACE_SETREGS, pid, 0, &regs), 0);
	assert_int_equal(ptrace(PTRACE_SYSCALL, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &regs), 0);
	regs.rax = (unsigned long long)-ENOMEM;
	assert_int_equal(ptrace(PTRACE_SETREGS, pid, 0, &regs), 0);
}

enum how { KILLED, REFUSED, WATCHED };

/* What happens at the call that is waited for; NULL: packets come at each. */
static void (*on_call)(struct running *r);
static struct running *on_call_of;

static void watch(bool is_it)
{
	if (on_call && is_it) {
		on_call(on_call_of);
	} else if (!on_call) {
		grow_opens(1);
		grow_go_on();
		grow_add_up();
	}
}

static int growth(void)
{
	struct diag d = { 0 };

	return grow_apply(GROW_MANY, GROW_LARGE, &d);
}

/*
 * Runs act in a child that is killed at its call number `at`, or has it refused, or is WATCHED. Returns how many calls there were; call[], if not NULL, is filled in.
 */
static unsigned int interrupted(int (*act)(void), unsigned int at, enum how how, struct call *call, int *status)
{
	struct ptrace_syscall_info info;
	unsigned int n = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(act() ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, status, 0), pid);
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
	for (;;) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, 0, 0), 0);
		assert_int_equal(waitpid(pid, status, 0), pid);
		if (WIFEXITED(*status) || WIFSIGNALED(*status))
			return n;
		assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0);
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !matters(&info))
			continue;
		if (call && n < CALLS)
			call[n] = (struct call){ info.entry.nr, info.entry.args[0] };
		if (how == WATCHED && !is_bpf_update(&info))
			watch(n == at);
		if (n++ != at || how == WATCHED)
			continue;
		if (how == REFUSED) {
			refuse(pid);
			continue;
		}
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, status, 0), pid);
		return n;
	}
}

static bool is_bpf(const struct call *c, uint64_t command)
{
	return c->number == SYS_bpf && c->command == command;
}

/*
 * Which calls of the growth to try: of those from the first on that changes anything, after the programs are loaded, the
 * decisive ones and what follows them, and some of the others; with RINGLB_FULL every one. An array to be freed.
 */
static unsigned int *calls_to_try(unsigned int *count)
{
	struct call *call = xcalloc(CALLS, sizeof(*call));
	unsigned int *at = xcalloc(CALLS, sizeof(*at)), first = 0, n;
	int status;

	grow_begin();
	n = interrupted(growth, CALLS, KILLED, call, &status);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_true(n < CALLS);
	grow_is_whole();
	grow_go_on();
	grow_end(NULL);
	for (unsigned int i = 0; i < n; i++)
		if (is_bpf(&call[i], BPF_PROG_LOAD))
			first = i + 1;
	*count = 0;
	for (unsigned int i = first; i < n; i++) {
		bool decides = call[i].number == SYS_renameat2 || is_bpf(&call[i], BPF_LINK_UPDATE) ||
			       call[i - 1].number == SYS_renameat2 || is_bpf(&call[i - 1], BPF_LINK_UPDATE);

		if (is_bpf(&call[i], BPF_MAP_UPDATE_ELEM) && is_bpf(&call[i - 1], BPF_MAP_UPDATE_ELEM))
			continue; /* one of very many counters */
		if (decides || i == n - 1 || (i - first) % 12 == 0 || getenv("RINGLB_FULL"))
			at[(*count)++] = i;
	}
	free(call);
	return at;
}

static void check_after(unsigned int at, bool old, bool new)
{
	struct diag d = { 0 };
	struct running r;
	size_t backends;

	/* Before anything is repaired, too. */
	grow_go_on();
	grow_add_up();
	r = grow_opened();
	backends = r.state->pool->backends;
	running_close(&r);
	if (!(old && backends == 4) && !(new &&backends == GROW_MANY))
		fail_msg("call %u: %zu backends", at, backends);
	assert_int_equal(grow_apply((unsigned int)backends, backends == 4 ? GROW_SMALL : GROW_LARGE, &d), 0);
	grow_quiet(&d);
	grow_is_whole();
	grow_go_on();
	grow_add_up();
	grow_applied(GROW_MANY, GROW_LARGE);
	grow_is_whole();
	grow_go_on();
	grow_add_up();
}

static void packets_at_every_step(void **state)
{
	unsigned int n;
	int status;

	(void)state;
	grow_begin();
	n = interrupted(growth, CALLS, WATCHED, NULL, &status);
	assert_true(n > 30);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	grow_is_whole();
	grow_go_on();
	grow_add_up();
}

/* Every map but those of one size made anew, and nothing else. */
static int replacement(void)
{
	struct diag d = { 0 };
	struct datapath_sizes larger;
	struct running r;
	int err = running_open(&grow_instance, &r, &d);

	if (err)
		return err;
	datapath_get_sizes(r.dp, &larger);
	larger.tables += 4096;
	larger.backends *= 2;
	larger.flow_buckets *= 2;
	err = replace(&grow_instance, &r, NULL, &larger, &d);
	running_close(&r);
	return err;
}

static uint32_t stamp(struct datapath *dp)
{
	uint32_t now;

	assert_int_equal(running_now(dp, &now), 0);
	return now;
}

/* The least deadline in the flow table, the latest stamps of an arc and of a backend. */
static void read_stamps(struct running *r, uint32_t *deadline, uint32_t *arc, uint32_t *backend)
{
	uint32_t buckets, count;
	const struct ringlb_flow_bucket *f = datapath_flows(r->dp, &buckets);
	const struct ringlb_backend *b = datapath_backends(r->dp, &count);
	const struct arcs *arcs = &r->state->pool->arcs;

	*deadline = UINT32_MAX;
	*arc = *backend = 0;
	for (uint32_t i = 0; i < buckets * RINGLB_FLOWS_PER_BUCKET; i++) {
		const struct ringlb_flow *e = &f[i / RINGLB_FLOWS_PER_BUCKET].flow[i % RINGLB_FLOWS_PER_BUCKET];

		if (e->fingerprint && e->established >> 32 < *deadline)
			*deadline = (uint32_t)(e->established >> 32);
	}
	for (size_t i = 0; i < arcs->count; i++)
		if (arcs->arc[i].moved && arcs->arc[i].stamp > *arc)
			*arc = arcs->arc[i].stamp;
	for (uint32_t i = 0; i < count; i++)
		if (b[i].last_old > *backend)
			*backend = b[i].last_old;
}

/* At the call that publishes the new datapath, when all is copied, a second and more later than what came before. */
static void late_packets(struct running *before)
{
	const struct timespec tick = { .tv_nsec = 20000000 };
	uint32_t since = stamp(before->dp);

	while (stamp(before->dp) - since < 2)
		nanosleep(&tick, NULL);
	grow_go_on();
}

static void what_packets_leave_at_the_last_moment_counts(void **state)
{
	struct call *call = xcalloc(CALLS, sizeof(*call));
	struct running before, after;
	uint32_t deadline, arc, backend, deadline_then, arc_then, backend_then;
	unsigned int at = 0;
	int status;

	(void)state;
	grow_begin();
	interrupted(replacement, CALLS, KILLED, call, &status);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	while (call[at].number != SYS_renameat2)
		at++;
	grow_end(NULL);

	grow_begin();
	before = grow_opened();
	read_stamps(&before, &deadline_then, &arc_then, &backend_then);
	on_call = late_packets;
	on_call_of = &before;
	interrupted(replacement, at, WATCHED, NULL, &status);
	on_call = NULL;
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	after = grow_opened();
	read_stamps(&after, &deadline, &arc, &backend);
	assert_true(deadline - deadline_then >= 2 && deadline - deadline_then < 60);
	assert_true(arc - arc_then >= 2 && arc - arc_then < 60);
	assert_true(backend - backend_then >= 2 && backend - backend_then < 60);
	running_close(&before);
	running_close(&after);
	free(call);
	grow_is_whole();
	grow_add_up();
}

static void killed_anywhere(void **state)
{
	unsigned int n, *at = calls_to_try(&n);

	(void)state;
	for (unsigned int i = 0; i < n; i++) {
		int status;

		grow_begin();
		interrupted(growth, at[i], KILLED, NULL, &status);
		assert_true(WIFSIGNALED(status));
		check_after(at[i], true, true);
		grow_end(NULL);
	}
	free(at);
}

static void refused_anything(void **state)
{
#ifdef __x86_64__
	unsigned int n, *at = calls_to_try(&n);

	(void)state;
	for (unsigned int i = 0; i < n; i++) {
		int status;

		grow_begin();
		interrupted(growth, at[i], REFUSED, NULL, &status);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status)) /* without a command that repairs */
			grow_is_whole();
		check_after(at[i], WEXITSTATUS(status) != 0, WEXITSTATUS(status) == 0);
		grow_end(NULL);
	}
	free(at);
#else
	(void)state;
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(packets_at_every_step, grow_end),
		cmocka_unit_test_teardown(what_packets_leave_at_the_last_moment_counts, grow_end),
		cmocka_unit_test_teardown(killed_anywhere, grow_end),
		cmocka_unit_test_teardown(refused_anything, grow_end),
	};

	return cmocka_run_group_tests(tests, grow_enter, grow_leave);
}
