/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Larger maps and other programs take over: what every flow, counter and stamp makes of it, also where the command is
 * killed, or the kernel refuses, at any step. Packets are test runs of whatever program the interfaces have. As root, in
 * a mount and a network namespace of its own:
 *
 *   ra 10.0.0.1/16 ---- rb      rc ---- rd      backends are permanent neighbours on ra: 10.0.1.0 and up
 */
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>

#include "change.h"
#include "datapath_private.h"
#include "flows.h"
#include "lookup.h"
#include "replace.h"

#define FLOWS 120u
#define MANY 200u /* more backends than the maps of a few have room for */
#define SMALL "{established: 300, opening: 100}"
#define LARGE "{established: 600, opening: 200}"

static char root[] = "/tmp/ringlb-grow-XXXXXX";
static struct instance instance;
static uint64_t sent; /* packets for the service since the attach */

/* A connection: where its packets go. */
static struct flow {
	uint16_t port, backend;
} flow[4 * FLOWS];
static unsigned int flows;

static void run(const char *command)
{
	if (system(command))
		fail_msg("failed: %s", command);
}

static void neighbours(void)
{
	FILE *f = popen("ip -batch -", "we");

	assert_non_null(f);
	for (unsigned int i = 0; i < MANY; i++)
		fprintf(f, "neighbour replace 10.0.1.%u lladdr 02:00:00:00:01:%02x dev ra nud permanent\n", i, i);
	assert_int_equal(pclose(f), 0);
}

static int enter(void **state)
{
	struct diag d = { 0 };
	char *bpffs, *state_dir, *run_dir;

	(void)state;
	if (unshare(CLONE_NEWNS | CLONE_NEWNET) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(root))
		return -1;
	bpffs = xasprintf("%s/bpf", root);
	state_dir = xasprintf("%s/state", root);
	run_dir = xasprintf("%s/run", root);
	if (mkdir(bpffs, 0700) || mount("bpf", bpffs, "bpf", 0, NULL) ||
	    instance_init(&instance, NULL, bpffs, state_dir, run_dir, &d))
		return -1;
	free(bpffs);
	free(state_dir);
	free(run_dir);
	run("ip link set lo up");
	run("ip link add ra type veth peer name rb && ip link add rc type veth peer name rd");
	run("ip address add 10.0.0.1/16 dev ra && ip link set ra up && ip link set rb up && ip link set rc up");
	neighbours();
	return 0;
}

static int leave(void **state)
{
	(void)state;
	umount(instance.bpffs);
	rmdir(instance.bpffs);
	rmdir(root);
	instance_free(&instance);
	return 0;
}

static void assert_quiet(struct diag *d)
{
	if (d->errors)
		fail_msg("%s", d->entry[0].message);
	diag_free(d);
	memset(d, 0, sizeof(*d));
}

static struct config *config(unsigned int backends, const char *flow_table)
{
	struct diag d = { 0 };
	struct config *c;
	char *text = NULL;
	size_t length;
	FILE *f = open_memstream(&text, &length);

	fprintf(f,
		"interfaces: [ra, rc]\nhash_key: 00112233445566778899aabbccddeeff\nflows: %s\n"
		"services: [{name: www, address: 192.0.2.10, port: 80, protocol: tcp, pool: web, forward: l2}]\n"
		"pools:\n  - name: web\n    vnodes: 500\n    backends:\n",
		flow_table);
	for (unsigned int i = 0; i < backends; i++)
		fprintf(f, "      - {name: b%u, address: 10.0.1.%u}\n", i, i);
	fclose(f);
	c = config_parse("test", text, length, &d);
	assert_quiet(&d);
	free(text);
	return c;
}

static int apply(unsigned int backends, const char *flow_table, struct diag *d)
{
	struct change c;
	int err = change_open(&instance, &c, d);

	if (!err || err == -ENOENT)
		err = change_plan(&c, config(backends, flow_table), d);
	if (!err)
		err = change_commit(&c, NULL, false, d);
	change_close(&c);
	return err;
}

static void applied(unsigned int backends, const char *flow_table)
{
	struct diag d = { 0 };
	int err = apply(backends, flow_table, &d);

	assert_quiet(&d);
	assert_int_equal(err, 0);
}

static struct running opened(void)
{
	struct diag d = { 0 };
	struct running r;
	int err = running_open(&instance, &r, &d);

	assert_quiet(&d);
	assert_int_equal(err, 0);
	return r;
}

/* The program that sits on an interface now. */
static int attached(size_t i)
{
	struct datapath_link *link;
	size_t links;
	int fd;

	assert_int_equal(datapath_links(instance.pins, &link, &links), 0);
	assert_int_equal(links, 2);
	fd = bpf_prog_get_fd_by_id(link[i].prog_id);
	assert_true(fd >= 0);
	free(link);
	return fd;
}

/* Sends a packet of a connection from this port through a program; the backend that it goes to. */
static uint16_t sends(int prog, uint16_t port, bool established)
{
	static struct config *c;
	struct lookup_target target;
	struct lookup_source source = { .port = port };
	uint8_t frame[LOOKUP_FRAME], out[LOOKUP_FRAME];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_out = out, .data_size_out = sizeof(out));
	uint32_t sequence = htonl(port * 1000u + established);
	struct diag d = { 0 };

	if (!c)
		c = config(1, SMALL);
	assert_int_equal(lookup_target_find(c, "www", &target, &d), 0);
	assert_int_equal(address_parse("198.51.100.7", &source.address), 0);
	opts.data_size_in = (uint32_t)lookup_frame(&target, &source, established, frame);
	memcpy(frame + 38, &sequence, sizeof(sequence));
	assert_int_equal(bpf_prog_test_run_opts(prog, &opts), 0);
	assert_int_equal(opts.retval, 4); /* XDP_REDIRECT */
	assert_memory_equal(out, "\2\0\0\0\1", 5);
	sent++;
	return out[5];
}

/* New connections, whose first packet comes in on one interface and the next on the other. */
static void opens(unsigned int count)
{
	int prog[2] = { attached(0), attached(1) };

	for (unsigned int i = 0; i < count; i++) {
		struct flow *f = &flow[flows];

		f->port = (uint16_t)(20000 + flows++);
		f->backend = sends(prog[flows % 2], f->port, false);
		assert_int_equal(sends(prog[~flows % 2], f->port, true), f->backend);
	}
	close(prog[0]);
	close(prog[1]);
}

/* Every connection goes on where it was, on both interfaces. */
static void go_on(void)
{
	for (size_t i = 0; i < 2; i++) {
		int prog = attached(i);

		for (unsigned int j = 0; j < flows; j++)
			assert_int_equal(sends(prog, flow[j].port, true), flow[j].backend);
		close(prog);
	}
}

/* Not one packet is missing in any sum, nor counted twice. */
static void add_up(void)
{
	struct running r = opened();
	uint32_t count;
	struct ringlb_counter *c;
	struct ringlb_verdict_counters v;
	uint64_t sum = 0;

	datapath_backends(r.dp, &count);
	c = xcalloc(count, sizeof(*c));
	assert_int_equal(datapath_verdicts(r.dp, &v), 0);
	assert_int_equal(v.packets[RINGLB_VERDICT_FORWARDED], sent);
	assert_int_equal(datapath_backend_counters(r.dp, c, count), 0);
	for (uint32_t i = 0; i < count; i++)
		sum += c[i].packets;
	assert_int_equal(sum, sent);
	assert_int_equal(datapath_service_counters(r.dp, c, 1), 0);
	assert_int_equal(c->packets, sent);
	free(c);
	running_close(&r);
}

/* One program everywhere, and nothing left of another. */
static void is_whole(void)
{
	struct running r = opened();
	char *site = datapath_site(instance.pins);
	struct bpf_prog_info info = { 0 };
	uint32_t length = sizeof(info);
	struct stat st;
	size_t bytes;

	assert_int_equal(datapath_tables(r.dp, &bytes)->pending, 0);
	assert_int_equal(datapath_tables(r.dp, &bytes)->frozen, 0);
	assert_int_equal(bpf_obj_get_info_by_fd(r.dp->prog, &info, &length), 0);
	for (size_t i = 0; i < r.links; i++)
		assert_int_equal(r.link[i].prog_id, info.id);
	assert_int_equal(stat(site, &st), -1);
	free(site);
	running_close(&r);
}

static struct datapath_sizes sizes(void)
{
	struct running r = opened();
	struct datapath_sizes s;

	datapath_get_sizes(r.dp, &s);
	running_close(&r);
	return s;
}

static unsigned int remembered(void)
{
	struct running r = opened();
	struct flows f = { 0 };
	uint32_t used, openings;

	f.bucket = datapath_flows(r.dp, &f.buckets);
	flows_use(&f, 0, &used, &openings);
	running_close(&r);
	return used;
}

/* Connections from before and from within moved arcs. */
static void begin(void)
{
	sent = flows = 0;
	applied(3, SMALL);
	opens(FLOWS);
	applied(4, SMALL);
	opens(FLOWS);
	go_on();
	add_up();
	assert_true(remembered() > 0);
}

static int end(void **state)
{
	struct diag d = { 0 };

	(void)state;
	datapath_unpin(instance.pins, &d);
	diag_free(&d);
	return 0;
}

static void grows(void **state)
{
	struct datapath_sizes before, after;
	unsigned int were;

	(void)state;
	begin();
	before = sizes();
	were = remembered();
	applied(MANY, SMALL);
	after = sizes();
	assert_true(after.tables > before.tables && after.backends > before.backends);
	assert_int_equal(after.flow_buckets, before.flow_buckets);
	assert_int_equal(remembered(), were);
	is_whole();
	go_on();
	add_up();
}

static void changes_the_size_of_the_flow_table(void **state)
{
	struct datapath_sizes before, after;
	unsigned int were;

	(void)state;
	begin();
	before = sizes();
	were = remembered();
	applied(4, LARGE);
	after = sizes();
	assert_int_equal(after.flow_buckets, 2 * before.flow_buckets);
	assert_int_equal(after.tables, before.tables);
	assert_int_equal(remembered(), were);
	is_whole();
	go_on();
	add_up();
	applied(4, SMALL);
	is_whole();
	go_on();
	add_up();
}

static void refuses_a_flow_table_that_is_too_small(void **state)
{
	struct diag d = { 0 };

	(void)state;
	begin();
	assert_int_not_equal(apply(MANY, "{established: 4, opening: 4}", &d), 0);
	assert_int_equal(d.errors, 1);
	assert_string_equal(d.entry[0].code, "flows");
	diag_free(&d);
	is_whole();
	go_on();
	add_up();
}

static void another_program_shares_every_map(void **state)
{
	struct running r, then;
	struct diag d = { 0 };
	int prog;

	(void)state;
	begin();
	prog = attached(0);
	then = opened();
	r = opened();
	assert_int_equal(replace_program(&instance, &r, &d), 0);
	assert_quiet(&d);
	for (enum datapath_map i = 0; i < DATAPATH_MAP_COUNT; i++)
		assert_true(datapath_shares(r.dp, then.dp, i));
	assert_int_equal(r.state->revision, then.state->revision);
	running_close(&r);
	running_close(&then);
	is_whole();
	/* A packet that the former program still has is no other's. */
	for (unsigned int i = 0; i < flows; i++)
		assert_int_equal(sends(prog, flow[i].port, true), flow[i].backend);
	close(prog);
	go_on();
	add_up();
}

/* Killing and refusing */

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
		opens(1);
		go_on();
		add_up();
	}
}

static int growth(void)
{
	struct diag d = { 0 };

	return apply(MANY, LARGE, &d);
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

	begin();
	n = interrupted(growth, CALLS, KILLED, call, &status);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_true(n < CALLS);
	is_whole();
	go_on();
	end(NULL);
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
	go_on();
	add_up();
	r = opened();
	backends = r.state->pool->backends;
	running_close(&r);
	if (!(old && backends == 4) && !(new &&backends == MANY))
		fail_msg("call %u: %zu backends", at, backends);
	assert_int_equal(apply((unsigned int)backends, backends == 4 ? SMALL : LARGE, &d), 0);
	assert_quiet(&d);
	is_whole();
	go_on();
	add_up();
	applied(MANY, LARGE);
	is_whole();
	go_on();
	add_up();
}

static void packets_at_every_step(void **state)
{
	unsigned int n;
	int status;

	(void)state;
	begin();
	n = interrupted(growth, CALLS, WATCHED, NULL, &status);
	assert_true(n > 30);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	is_whole();
	go_on();
	add_up();
}

/* Every map but those of one size made anew, and nothing else. */
static int replacement(void)
{
	struct diag d = { 0 };
	struct datapath_sizes larger;
	struct running r;
	int err = running_open(&instance, &r, &d);

	if (err)
		return err;
	datapath_get_sizes(r.dp, &larger);
	larger.tables += 4096;
	larger.backends *= 2;
	larger.flow_buckets *= 2;
	err = replace(&instance, &r, NULL, &larger, &d);
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
	go_on();
}

static void what_packets_leave_at_the_last_moment_counts(void **state)
{
	struct call *call = xcalloc(CALLS, sizeof(*call));
	struct running before, after;
	uint32_t deadline, arc, backend, deadline_then, arc_then, backend_then;
	unsigned int at = 0;
	int status;

	(void)state;
	begin();
	interrupted(replacement, CALLS, KILLED, call, &status);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	while (call[at].number != SYS_renameat2)
		at++;
	end(NULL);

	begin();
	before = opened();
	read_stamps(&before, &deadline_then, &arc_then, &backend_then);
	on_call = late_packets;
	on_call_of = &before;
	interrupted(replacement, at, WATCHED, NULL, &status);
	on_call = NULL;
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	after = opened();
	read_stamps(&after, &deadline, &arc, &backend);
	assert_true(deadline - deadline_then >= 2 && deadline - deadline_then < 60);
	assert_true(arc - arc_then >= 2 && arc - arc_then < 60);
	assert_true(backend - backend_then >= 2 && backend - backend_then < 60);
	running_close(&before);
	running_close(&after);
	free(call);
	is_whole();
	add_up();
}

static void killed_anywhere(void **state)
{
	unsigned int n, *at = calls_to_try(&n);

	(void)state;
	for (unsigned int i = 0; i < n; i++) {
		int status;

		begin();
		interrupted(growth, at[i], KILLED, NULL, &status);
		assert_true(WIFSIGNALED(status));
		check_after(at[i], true, true);
		end(NULL);
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

		begin();
		interrupted(growth, at[i], REFUSED, NULL, &status);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status)) /* without a command that repairs */
			is_whole();
		check_after(at[i], WEXITSTATUS(status) != 0, WEXITSTATUS(status) == 0);
		end(NULL);
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
		cmocka_unit_test_teardown(grows, end),
		cmocka_unit_test_teardown(changes_the_size_of_the_flow_table, end),
		cmocka_unit_test_teardown(refuses_a_flow_table_that_is_too_small, end),
		cmocka_unit_test_teardown(another_program_shares_every_map, end),
		cmocka_unit_test_teardown(packets_at_every_step, end),
		cmocka_unit_test_teardown(what_packets_leave_at_the_last_moment_counts, end),
		cmocka_unit_test_teardown(killed_anywhere, end),
		cmocka_unit_test_teardown(refused_anything, end),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
