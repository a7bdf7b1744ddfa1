/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The datapath against the kernel: pins, links, memory, the grace period. As root, in a mount and a network namespace
 * of its own:
 *
 *   bpffs on DIR/bpf        ra ---- rb      a pair of veths, both in the namespace
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"

static char root[] = "/tmp/ringlb-datapath-XXXXXX";
static char *bpffs, *pins, *parent;

static const struct datapath_sizes sizes = { .tables = 100000, .backends = 7, .services = 3, .flow_buckets = 5 };

static void run(const char *command)
{
	if (system(command))
		fail_msg("failed: %s", command);
}

static int enter(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNS | CLONE_NEWNET) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(root))
		return -1;
	bpffs = xasprintf("%s/bpf", root);
	parent = xasprintf("%s/bpf/ringlb", root);
	pins = xasprintf("%s/bpf/ringlb/web", root);
	return mkdir(bpffs, 0700) || mount("bpf", bpffs, "bpf", 0, NULL) ? -1 : 0;
}

static int leave(void **state)
{
	(void)state;
	umount(bpffs);
	rmdir(bpffs);
	rmdir(root);
	free(bpffs);
	free(parent);
	free(pins);
	return 0;
}

/* What a test that failed left. */
static int clean(void **state)
{
	struct diag d = { 0 };

	(void)state;
	datapath_unpin(pins, &d);
	diag_free(&d);
	return system("ip link del ra 2>/dev/null") < 0;
}

static struct datapath *created(void)
{
	struct diag d = { 0 };
	struct datapath *dp;
	int err = datapath_create(&sizes, &dp, &d);

	if (err)
		fail_msg("datapath_create: %s", d.count ? d.entry[0].message : strerror(-err));
	assert_int_equal(d.count, 0);
	return dp;
}

static struct datapath *pinned(void)
{
	struct datapath *dp = created();
	struct diag d = { 0 };

	assert_int_equal(datapath_pin(dp, pins, &d), 0);
	assert_int_equal(d.count, 0);
	return dp;
}

static void removed(struct datapath *dp)
{
	struct diag d = { 0 };
	struct stat st;

	datapath_free(dp);
	assert_int_equal(datapath_unpin(pins, &d), 0);
	assert_int_equal(d.count, 0);
	assert_int_equal(stat(parent, &st), -1);
}

/* The only complaint in d has this code and says this; empties d. */
static void assert_complaint(struct diag *d, const char *code, const char *part)
{
	assert_int_equal(d->errors, 1);
	assert_string_equal(d->entry[0].code, code);
	if (!strstr(d->entry[0].message, part))
		fail_msg("\"%s\" does not say \"%s\"", d->entry[0].message, part);
	diag_free(d);
	memset(d, 0, sizeof(*d));
}

static void finds_the_bpffs(void **state)
{
	struct diag d = { 0 };
	char *beside = xasprintf("%s/other/ringlb", root);

	(void)state;
	assert_int_equal(datapath_check_bpffs(bpffs, &d), 0);
	assert_int_equal(datapath_check_bpffs(parent, &d), 0);
	assert_int_equal(datapath_check_bpffs(pins, &d), 0);
	assert_int_equal(d.count, 0);
	assert_int_equal(datapath_check_bpffs(beside, &d), -ENODEV);
	assert_complaint(&d, "no-bpffs", "mount one with: mkdir -p ");

	run("mount -t tmpfs tmpfs /sys/fs");
	assert_int_equal(datapath_check_bpffs("/sys/fs/bpf/ringlb", &d), -ENODEV);
	run("umount /sys/fs");
	assert_complaint(&d, "no-bpffs",
			 "/sys/fs/bpf is not a BPF file system: mount it with: mount -t bpf bpf /sys/fs/bpf");
	free(beside);
}

static void names_the_place_that_was_given(void **state)
{
	char *dir = xasprintf("%s/other", root), *instance = xasprintf("%s/web", dir), *remedy;
	struct datapath *dp = created();
	struct diag d = { 0 };

	(void)state;
	remedy = xasprintf("mkdir -p %s && mount -t bpf bpf %s, or", dir, dir);
	assert_int_equal(datapath_pin(dp, instance, &d), -ENODEV);
	assert_complaint(&d, "no-bpffs", remedy);
	datapath_free(dp);
	free(dir);
	free(instance);
	free(remedy);
}

static void has_the_sizes_asked_for(void **state)
{
	struct datapath *dp = created();
	struct ringlb_tables *t;
	uint32_t count;
	size_t bytes;

	(void)state;
	t = datapath_tables(dp, &bytes);
	assert_int_equal(bytes, sizes.tables);
	assert_int_equal(t->abi, RINGLB_ABI_VERSION);
	assert_int_equal(t->state, 0);
	((volatile char *)t)[bytes - 1] = 1;
	datapath_backends(dp, &count)[sizes.backends - 1].flags = 1;
	assert_int_equal(count, sizes.backends);
	datapath_flows(dp, &count)[sizes.flow_buckets - 1].flow[RINGLB_FLOWS_PER_BUCKET - 1].place = 1;
	assert_int_equal(count, sizes.flow_buckets);
	assert_int_equal(datapath_services(dp), sizes.services);
	assert_in_range(datapath_locked_bytes(dp), sizes.tables, sizes.tables + 131072 + RINGLB_MAX_FRAGMENTED * 128);
	datapath_free(dp);
}

static void refuses_sizes(void **state)
{
	struct datapath_sizes s = sizes;
	struct diag d = { 0 };
	struct datapath *dp;

	(void)state;
	s.backends = 0;
	assert_int_equal(datapath_create(&s, &dp, &d), -EINVAL);
	assert_null(dp);
	s = sizes;
	s.tables = RINGLB_MAX_TABLES_BYTES + 1ul;
	assert_int_equal(datapath_create(&s, &dp, &d), -E2BIG);
	assert_complaint(&d, "too-large", "the limit is 256 MiB");
}

static struct ringlb_lookup looked_up(struct datapath *dp)
{
	unsigned char frame[64] = { [12] = 0x08, [13] = 0x06 }; /* ARP */
	struct ringlb_lookup l;

	assert_int_equal(datapath_lookup(dp, frame, sizeof(frame), &l), 0);
	return l;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void lookup_answers(void **state)
{
	struct datapath *dp = created();
	char frame[4096] = "";
	struct ringlb_lookup l;
	size_t bytes;

	(void)state;
	datapath_tables(dp, &bytes)->state = 77 << 1;
	l = looked_up(dp);
	assert_int_equal(l.verdict, RINGLB_VERDICT_PASSED_NOT_IP);
	assert_int_equal(l.revision, 77);
	assert_int_equal(datapath_lookup(dp, frame, sizeof(l) - 1, &l), -EMSGSIZE);
	assert_int_equal(datapath_lookup(dp, frame, sizeof(frame), &l), -EMSGSIZE);
	datapath_free(dp);
}

/* The header's hz against the jiffies that really pass; how long the pause takes on a busy machine does not matter. */
static void hz_is_the_kernels(void **state)
{
	const struct timespec pause = { .tv_nsec = 200000000 };
	struct datapath *dp = created();
	double hz, before, after, begin[2], end[2];
	uint64_t jiffies;
	size_t bytes;

	(void)state;
	hz = datapath_tables(dp, &bytes)->hz;
	begin[0] = seconds();
	jiffies = looked_up(dp).jiffies;
	begin[1] = seconds();
	nanosleep(&pause, NULL);
	end[0] = seconds();
	jiffies = looked_up(dp).jiffies - jiffies;
	end[1] = seconds();
	before = (double)(jiffies - 1) / (end[1] - begin[0]);
	after = (double)(jiffies + 1) / (end[0] - begin[1]);
	if (hz < before || hz > after)
		fail_msg("hz %g, measured %g to %g", hz, before, after);
	datapath_free(dp);
}

static void pins_are_the_same_memory(void **state)
{
	struct datapath *dp = pinned(), *again;
	struct diag d = { 0 };
	struct stat st;
	size_t bytes;
	uint32_t count;

	(void)state;
	assert_int_equal(stat(pins, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	datapath_tables(dp, &bytes)->state = 0x1234567890;
	datapath_backends(dp, &count)[6].mtu = 1480;
	datapath_free(dp);
	assert_int_equal(datapath_open(pins, &again, &d), 0);
	assert_int_equal(datapath_tables(again, &bytes)->state, 0x1234567890);
	assert_int_equal(bytes, sizes.tables);
	assert_int_equal(datapath_backends(again, &count)[6].mtu, 1480);
	assert_int_equal(count, sizes.backends);
	assert_int_equal(looked_up(again).revision, 0x1234567890 >> 1 & 0xffffffff);

	assert_int_equal(datapath_pin(again, pins, &d), -EEXIST);
	assert_complaint(&d, "exists", "ringlb detach");
	removed(again);
	assert_int_equal(datapath_open(pins, &again, &d), -ENOENT);
	assert_int_equal(datapath_unpin(pins, &d), -ENOENT);
	assert_int_equal(d.count, 0);
}

/* What a killed attach leaves is neither an instance nor in the way of the next, and detach clears it. */
static void a_killed_pin_leaves_no_instance(void **state)
{
	char *site = xasprintf("%s~new", pins), *left = xasprintf("%s/prog", site);
	struct datapath *dp = created(), *none;
	struct diag d = { 0 };
	struct stat st;

	(void)state;
	for (int round = 0; round < 2; round++) {
		assert_int_equal(datapath_make_directory(site, &d), 0);
		assert_int_equal(bpf_obj_pin(dp->prog, left), 0);
		assert_int_equal(datapath_open(pins, &none, &d), -ENOENT);
		if (round) {
			assert_int_equal(datapath_unpin(pins, &d), 0);
			assert_int_equal(stat(parent, &st), -1);
		} else {
			assert_int_equal(datapath_pin(dp, pins, &d), 0);
			assert_int_equal(stat(site, &st), -1);
			assert_int_equal(datapath_unpin(pins, &d), 0);
		}
	}
	assert_int_equal(d.count, 0);
	datapath_free(dp);
	free(site);
	free(left);
}

static void open_refuses_what_is_not_whole(void **state)
{
	struct datapath *dp = pinned(), *none;
	char *path = xasprintf("%s/verdicts", pins);
	struct ringlb_tables *t;
	struct diag d = { 0 };
	size_t bytes;

	(void)state;
	t = datapath_tables(dp, &bytes);
	memcpy(t->version, "9.9", sizeof("9.9"));
	t->abi++;
	assert_int_equal(datapath_open_older(pins, &none, &d), -EPROTO);
	assert_null(none);
	assert_complaint(&d, "newer-abi", "install package ringlb 9.9 or newer");
	t->abi = 0;
	assert_int_equal(datapath_open(pins, &none, &d), -EPROTO);
	assert_complaint(&d, "other-abi", "detach and attach again");
	t->abi = RINGLB_ABI_VERSION;

	assert_int_equal(unlink(path), 0);
	assert_int_equal(datapath_open(pins, &none, &d), -EPROTO);
	assert_complaint(&d, "incomplete", "verdicts is missing");
	/* Another map under that name. */
	assert_int_equal(bpf_obj_pin(dp->map[DATAPATH_MAP_OUTPUTS], path), 0);
	assert_int_equal(datapath_open(pins, &none, &d), -EPROTO);
	assert_complaint(&d, "not-ours", "contradict each other");
	free(path);
	removed(dp);
}

static void unpin_removes_pins_only(void **state)
{
	struct datapath *dp = pinned();
	char *inside = xasprintf("%s/directory", pins), *beside = xasprintf("%s/plain", root);
	char *file = xasprintf("%s/prog", beside);
	struct diag d = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(mkdir(inside, 0700), 0);
	assert_int_equal(datapath_unpin(pins, &d), -ENOTEMPTY);
	assert_complaint(&d, "not-ours", "nothing was removed");
	assert_int_equal(rmdir(inside), 0);
	datapath_free(dp);
	assert_int_equal(datapath_open(pins, &dp, &d), 0);

	assert_int_equal(mkdir(beside, 0700), 0);
	close(open(file, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(datapath_unpin(beside, &d), -ENODEV);
	assert_complaint(&d, "not-ours", "not on a BPF file system");
	assert_int_equal(stat(file, &st), 0);
	unlink(file);
	rmdir(beside);
	free(inside);
	free(beside);
	free(file);
	removed(dp);
}

static void assert_link(unsigned int ifindex, enum datapath_mode mode)
{
	struct datapath_link *link;
	size_t count;

	assert_int_equal(datapath_links(pins, &link, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(link->ifindex, ifindex);
	assert_true(link->alive);
	assert_int_equal(link->mode, mode);
	assert_true(link->prog_id > 0);
	free(link);
}

static void attaches_in_both_modes(void **state)
{
	struct datapath *dp;
	char text[96], *path;
	unsigned int ra;
	int watcher;

	(void)state;
	run("ip link add ra type veth peer name rb");
	ra = if_nametoindex("ra");
	path = xasprintf("%s/link-%u", pins, ra);
	dp = pinned();
	for (enum datapath_mode mode = DATAPATH_NATIVE; mode <= DATAPATH_GENERIC; mode++) {
		assert_int_equal(datapath_attach(dp, pins, ra, mode), 0);
		assert_link(ra, mode);
		assert_int_equal(datapath_attach(dp, pins, ra, DATAPATH_NATIVE), -EBUSY);
		assert_int_equal(datapath_attach(dp, pins, ra, DATAPATH_GENERIC), -EBUSY);
		assert_link(ra, mode);
		datapath_describe(ra, text, sizeof(text));
		assert_non_null(strstr(text, "program prog (id "));
		assert_non_null(strstr(text, mode == DATAPATH_NATIVE ? "), native" : "), generic"));
		/* Off at once, also while somebody else looks at the link. */
		watcher = bpf_obj_get(path);
		assert_true(watcher >= 0);
		assert_int_equal(datapath_detach(pins, ra), 0);
		datapath_describe(ra, text, sizeof(text));
		assert_string_equal(text, "");
		close(watcher);
		assert_int_equal(datapath_detach(pins, ra), -ENOENT);
	}
	assert_int_equal(datapath_attach(dp, pins, if_nametoindex("lo"), DATAPATH_NATIVE), -EOPNOTSUPP);
	assert_int_equal(datapath_attach(dp, pins, 4711, DATAPATH_NATIVE), -EINVAL);
	free(path);
	removed(dp);
}

/* Programs that were attached without our pins: by another instance, by ip. */
static void respects_other_programs(void **state)
{
	struct datapath *dp;
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts);
	unsigned int ra;

	(void)state;
	run("ip link add ra type veth peer name rb");
	ra = if_nametoindex("ra");
	dp = pinned();
	for (int flags = 2; flags <= 4; flags += 2) { /* XDP_FLAGS_SKB_MODE, XDP_FLAGS_DRV_MODE */
		assert_int_equal(bpf_xdp_attach((int)ra, dp->lookup, (unsigned int)flags, &opts), 0);
		assert_int_equal(datapath_attach(dp, pins, ra, DATAPATH_NATIVE), -EBUSY);
		assert_int_equal(datapath_attach(dp, pins, ra, DATAPATH_GENERIC), -EBUSY);
		assert_int_equal(bpf_xdp_detach((int)ra, (unsigned int)flags, NULL), 0);
	}
	removed(dp);
}

static void notices_a_removed_interface(void **state)
{
	struct datapath *dp;
	struct datapath_link *link;
	unsigned int ra;
	char *command;
	size_t count;

	(void)state;
	run("ip link add ra type veth peer name rb");
	ra = if_nametoindex("ra");
	dp = pinned();
	assert_int_equal(datapath_attach(dp, pins, ra, DATAPATH_NATIVE), 0);
	run("ip link del ra");
	assert_int_equal(datapath_links(pins, &link, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(link->ifindex, ra);
	assert_false(link->alive);
	free(link);

	/* The number may be given out again: the dead link's pin is not in the way. */
	command = xasprintf("ip link add ra index %u type veth peer name rb", ra);
	run(command);
	free(command);
	assert_int_equal(datapath_attach(dp, pins, ra, DATAPATH_GENERIC), 0);
	assert_link(ra, DATAPATH_GENERIC);
	run("ip link del ra");
	assert_int_equal(datapath_detach(pins, ra), 0);
	removed(dp);
}

static void sums_counters(void **state)
{
	struct datapath *dp = created();
	int cpus = libbpf_num_possible_cpus();
	struct ringlb_counter *value = xcalloc((size_t)cpus, sizeof(*value)), out[7];
	struct ringlb_verdict_counters verdicts;
	uint32_t key = 2;

	(void)state;
	for (int cpu = 0; cpu < cpus; cpu++)
		value[cpu] = (struct ringlb_counter){ .packets = 1ull << 40, .bytes = 10 + (uint64_t)cpu };
	assert_int_equal(bpf_map_update_elem(dp->map[DATAPATH_MAP_SERVICE_STATS], &key, value, 0), 0);
	assert_int_equal(bpf_map_update_elem(dp->map[DATAPATH_MAP_BACKEND_STATS], &key, value, 0), 0);
	assert_int_equal(datapath_service_counters(dp, out, 3), 0);
	assert_int_equal(out[2].packets, (uint64_t)cpus << 40);
	assert_int_equal(out[2].bytes, 10 * cpus + cpus * (cpus - 1) / 2);
	assert_int_equal(out[0].packets | out[1].packets, 0);
	assert_int_equal(datapath_service_counters(dp, out, 4), -ENOENT);
	assert_int_equal(datapath_clear_service_counter(dp, 2), 0);
	assert_int_equal(datapath_service_counters(dp, out, 3), 0);
	assert_int_equal(out[2].packets | out[2].bytes, 0);
	assert_int_equal(datapath_backend_counters(dp, out, 7), 0);
	assert_int_equal(out[2].packets, (uint64_t)cpus << 40);
	assert_int_equal(datapath_clear_backend_counter(dp, 2), 0);
	assert_int_equal(datapath_backend_counters(dp, out, 7), 0);
	assert_int_equal(out[2].packets | out[2].bytes, 0);
	assert_int_equal(datapath_verdicts(dp, &verdicts), 0);
	for (int i = 0; i < RINGLB_VERDICT_COUNT; i++)
		assert_int_equal(verdicts.packets[i], 0);
	free(value);
	datapath_free(dp);
}

static void sets_outputs(void **state)
{
	struct datapath *dp = created();
	uint32_t key = 3, ifindex = 0;

	(void)state;
	run("ip link add ra type veth peer name rb");
	assert_int_equal(datapath_set_output(dp, 3, if_nametoindex("ra")), 0);
	assert_int_equal(bpf_map_lookup_elem(dp->map[DATAPATH_MAP_OUTPUTS], &key, &ifindex), 0);
	assert_int_equal(ifindex, if_nametoindex("ra"));
	assert_int_equal(datapath_set_output(dp, 3, 0), 0);
	assert_int_equal(bpf_map_lookup_elem(dp->map[DATAPATH_MAP_OUTPUTS], &key, &ifindex), -ENOENT);
	assert_int_equal(datapath_set_output(dp, 3, 0), 0);
	assert_true(datapath_set_output(dp, RINGLB_MAX_OUTPUTS, if_nametoindex("ra")) < 0);
	assert_true(datapath_set_output(dp, 3, 4711) < 0);
	datapath_free(dp);
}

/*
 * A program that says 1 in a map, works for tens of milliseconds (calls of bpf_ktime_get_ns, and itself as often as
 * tail calls may) and then says 2.
 */
static int slow_program(int flag, int self)
{
	enum { ROUNDS = 20000 };
	const struct bpf_insn insn[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1 },
		{ .code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = 10, .off = -4, .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 2, .imm = -4 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = flag },
		{ .code = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .off = 12, .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 7, .src_reg = 0 },
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = 7, .imm = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 8, .imm = ROUNDS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ktime_get_ns },
		{ .code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = 8, .imm = 1 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 8, .off = -3, .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 6 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 2, .src_reg = BPF_PSEUDO_MAP_FD, .imm = self },
		{ .code = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call },
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = 7, .imm = 2 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 2 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "slow", "GPL", insn, sizeof(insn) / sizeof(*insn), NULL);
}

static void *run_slow(void *prog)
{
	unsigned char frame[64] = "";
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame));

	return (void *)(intptr_t)bpf_prog_test_run_opts(*(int *)prog, &opts);
}

static void waits_for_running_programs(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, mmapable, .map_flags = BPF_F_MMAPABLE);
	int flag_map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "flag", 4, 8, 1, &mmapable);
	int self = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "self", 4, 4, 1, NULL);
	int prog = slow_program(flag_map, self), caught = 0;
	volatile uint64_t *flag = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, flag_map, 0);
	struct datapath *dp = created();
	uint32_t key = 0;

	(void)state;
	assert_true(prog >= 0);
	assert_true((const volatile void *)flag != MAP_FAILED);
	assert_int_equal(bpf_map_update_elem(self, &key, &prog, 0), 0);
	/* On a busy machine the program may be through before this thread sees it at work: that proves nothing. */
	for (int round = 0; round < 100 && caught < 3; round++) {
		pthread_t thread;
		uint64_t before;
		void *err;

		*flag = 0;
		assert_int_equal(pthread_create(&thread, NULL, run_slow, &prog), 0);
		while (!*flag)
			sched_yield();
		before = *flag;
		assert_int_equal(datapath_wait(dp), 0);
		assert_int_equal(*flag, 2);
		caught += before == 1;
		assert_int_equal(pthread_join(thread, &err), 0);
		assert_null(err);
	}
	assert_int_equal(caught, 3);
	munmap((void *)(uintptr_t)flag, 4096);
	bpf_map_delete_elem(self, &key);
	close(prog);
	close(self);
	close(flag_map);
	datapath_free(dp);
}

static void says_that_root_is_needed(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		struct datapath *dp;
		struct diag d = { 0 };

		if (setuid(65534))
			_exit(2);
		_exit(datapath_create(&sizes, &dp, &d) == -EPERM && d.errors == 1 &&
				      !strcmp(d.entry[0].code, "permission") &&
				      strstr(d.entry[0].message, "run it as root") ?
			      0 :
			      1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void decap_comes_and_goes(void **state)
{
	struct datapath_prefix from[2] = {
		{ .address = { [10] = 0xff, 0xff, 10, 1 }, .length = 96 + 16 },
		{ .address = { 0xfd }, .length = 8 },
	};
	struct diag d = { 0 };
	char text[96];
	struct stat st;
	unsigned int ra;

	(void)state;
	run("ip link add ra type veth peer name rb");
	ra = if_nametoindex("ra");
	for (enum datapath_mode mode = DATAPATH_NATIVE; mode <= DATAPATH_GENERIC; mode++) {
		assert_int_equal(datapath_decap_attach(parent, ra, mode, from, 2, 6080, &d), 0);
		datapath_describe(ra, text, sizeof(text));
		assert_non_null(strstr(text, "program decap (id "));
		assert_int_equal(datapath_decap_attach(parent, ra, mode, from, 2, 6080, &d), -EBUSY);
		assert_int_equal(datapath_decap_detach(parent, ra, &d), 0);
		datapath_describe(ra, text, sizeof(text));
		assert_string_equal(text, "");
		assert_int_equal(stat(parent, &st), -1);
	}
	assert_int_equal(datapath_decap_attach(parent, 4711, DATAPATH_NATIVE, from, 2, 6080, &d), -EINVAL);
	assert_int_equal(stat(parent, &st), -1);
	assert_int_equal(datapath_decap_detach(parent, ra, &d), -ENOENT);
	assert_int_equal(d.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(finds_the_bpffs, clean),
		cmocka_unit_test_teardown(names_the_place_that_was_given, clean),
		cmocka_unit_test_teardown(has_the_sizes_asked_for, clean),
		cmocka_unit_test_teardown(refuses_sizes, clean),
		cmocka_unit_test_teardown(lookup_answers, clean),
		cmocka_unit_test_teardown(hz_is_the_kernels, clean),
		cmocka_unit_test_teardown(pins_are_the_same_memory, clean),
		cmocka_unit_test_teardown(a_killed_pin_leaves_no_instance, clean),
		cmocka_unit_test_teardown(open_refuses_what_is_not_whole, clean),
		cmocka_unit_test_teardown(unpin_removes_pins_only, clean),
		cmocka_unit_test_teardown(attaches_in_both_modes, clean),
		cmocka_unit_test_teardown(respects_other_programs, clean),
		cmocka_unit_test_teardown(notices_a_removed_interface, clean),
		cmocka_unit_test_teardown(sums_counters, clean),
		cmocka_unit_test_teardown(sets_outputs, clean),
		cmocka_unit_test_teardown(waits_for_running_programs, clean),
		cmocka_unit_test_teardown(says_that_root_is_needed, clean),
		cmocka_unit_test_teardown(decap_comes_and_goes, clean),
	};

	return cmocka_run_group_tests_name("datapath", tests, enter, leave);
}
