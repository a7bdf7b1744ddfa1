/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loading the programs, and saying why where the kernel refuses. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"
#include "ringlb.skel.h"

#define CAUSE_MAX 400u
#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1

/* What libbpf said. Its print function takes no context, so there is one for the process. */
static struct {
	char verifier[CAUSE_MAX];
	char warning[CAUSE_MAX];
} capture;

/* Copies the last line of text that says anything of its own: not empty, no summary, no marker. */
static void last_line(const char *text, char out[CAUSE_MAX])
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		if (length && strncmp(text, "processed ", 10) && strncmp(text, "-- ", 3) &&
		    strncmp(text, "verification time", 17) && strncmp(text, "stack depth", 11))
			snprintf(out, CAUSE_MAX, "%.*s", (int)(length < CAUSE_MAX ? length : CAUSE_MAX - 1), text);
		text += length;
		text += *text == '\n';
	}
}

__attribute__((format(printf, 2, 0))) static int capture_print(enum libbpf_print_level level, const char *format,
							       va_list args)
{
	char *text, *log;

	if (level != LIBBPF_WARN || vasprintf(&text, format, args) < 0)
		return 0;
	log = strstr(text, "-- BEGIN PROG LOAD LOG --");
	if (log)
		last_line(log, capture.verifier);
	else if (!capture.warning[0]) /* the first is the cause, later ones report what followed from it */
		last_line(text, capture.warning);
	free(text);
	return 0;
}

void datapath_capture_start(void)
{
	capture.verifier[0] = capture.warning[0] = '\0';
	libbpf_set_print(capture_print);
}

const char *datapath_capture_cause(void)
{
	static const char prefix[] = "libbpf: ";

	if (capture.verifier[0])
		return capture.verifier;
	if (!strncmp(capture.warning, prefix, sizeof(prefix) - 1))
		return capture.warning + sizeof(prefix) - 1;
	return capture.warning;
}

/* True when this process lacks what loading takes. */
static bool lacks_capabilities(void)
{
	/* CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON, but not for CAP_NET_ADMIN. */
	const uint64_t net_admin = 1ull << 12, sys_admin = 1ull << 21, bpf = 1ull << 39;
	uint64_t effective = ~0ull;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapEff: %" SCNx64, &effective) == 1)
			break;
	}
	if (f)
		fclose(f);
	return !(effective & net_admin) || !(effective & (bpf | sys_admin));
}

static bool kernel_is_old(char release[65])
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	if (uname(&u))
		return false;
	snprintf(release, 65, "%.64s", u.release);
	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		return false;
	return major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR);
}

int datapath_complain_load(struct diag *d, const char *what, size_t bytes, int err)
{
	const char *cause = datapath_capture_cause();
	char release[65] = "";

	if ((err == -EPERM || err == -EACCES) && lacks_capabilities())
		diag_error(d, "permission", "",
			   "loading %s needs the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: run it as "
			   "root",
			   what);
	else if (kernel_is_old(release))
		diag_error(d, "old-kernel", "", "the kernel does not take %s (%s): it is %s, %d.%d or newer is needed",
			   what, strerror(-err), release, KERNEL_MAJOR, KERNEL_MINOR);
	else if (err == -ENOMEM)
		diag_error(d, "no-memory", "",
			   "the kernel has no %zu KiB of memory for the maps of %s: free some, raise the memory "
			   "limit of this service or container, or configure fewer points and flows",
			   bytes / 1024, what);
	else if (err == -EPERM)
		diag_error(
			d, "permission", "",
			"the kernel refuses BPF to this process although it has the capabilities: a "
			"container's seccomp profile, kernel lockdown or a memory lock limit (ulimit -l) forbids it");
	else if (err == -ENOSYS)
		diag_error(d, "no-bpf", "", "this kernel is built without BPF (CONFIG_BPF_SYSCALL)");
	else if (capture.verifier[0])
		diag_error(d, "verifier", "",
			   "the kernel's verifier refuses %s: %s: report this with the output of uname -r", what,
			   cause);
	else
		diag_error(d, "load", "", "cannot load %s: %s%s%s", what, strerror(-err), *cause ? ": " : "", cause);
	return err;
}

/*
 * Jiffies in a second. The resolution of the coarse clocks is exactly one jiffy (KTIME_LOW_RES in the kernel), so that
 * nothing has to be waited for.
 */
static uint32_t kernel_hz(void)
{
	struct timespec tick;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec || tick.tv_nsec <= 0)
		return 0;
	return (uint32_t)((1000000000 + tick.tv_nsec / 2) / tick.tv_nsec);
}

static int check_sizes(const struct datapath_sizes *s, struct diag *d)
{
	if (s->tables < RINGLB_TABLES_HEADER + RINGLB_TABLES_SLACK || !s->backends ||
	    s->backends > RINGLB_MAX_BACKENDS || !s->services || s->services > RINGLB_MAX_SERVICES || !s->flow_buckets)
		return -EINVAL;
	if (s->tables > RINGLB_MAX_TABLES_BYTES) {
		diag_error(d, "too-large", "", "the tables need %zu MiB, the limit is %u MiB: lower vnodes",
			   s->tables >> 20, RINGLB_MAX_TABLES_BYTES >> 20);
		return -E2BIG;
	}
	return 0;
}

static int set_sizes(struct ringlb_bpf *skel, const struct datapath_sizes *s)
{
	int err = bpf_map__set_value_size(skel->maps.tables, (uint32_t)s->tables);

	if (!err)
		err = bpf_map__set_max_entries(skel->maps.backends, s->backends);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.backend_stats, s->backends);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.service_stats, s->services);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.flows, s->flow_buckets);
	if (!err)
		err = bpf_map__set_value_size(skel->maps.carried, datapath_carried_bytes(s->services, s->backends));
	skel->rodata->sizes = (struct ringlb_sizes){
		.tables_bound = (uint32_t)s->tables - RINGLB_TABLES_SLACK,
		.flow_buckets = s->flow_buckets,
	};
	return err;
}

static int duplicate(int fd, int *out)
{
	*out = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return *out < 0 ? -errno : 0;
}

/* Takes descriptors of its own from a loaded object, which can then go. */
static int take(struct ringlb_bpf *skel, struct datapath *dp)
{
	int err = duplicate(bpf_program__fd(skel->progs.prog), &dp->prog);

	if (!err)
		err = duplicate(bpf_program__fd(skel->progs.lookup), &dp->lookup);
	for (size_t i = 0; i < DATAPATH_MAP_COUNT && !err; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, datapath_map_name[i]);

		err = map ? duplicate(bpf_map__fd(map), &dp->map[i]) : -ENOENT;
	}
	return err;
}

static size_t map_bytes(const struct datapath_sizes *s)
{
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);

	return s->tables + s->backends * (sizeof(struct ringlb_backend) + cpus * sizeof(struct ringlb_counter)) +
	       s->services * cpus * sizeof(struct ringlb_counter) + s->flow_buckets * sizeof(struct ringlb_flow_bucket);
}

/* Whether the map is as large in both. */
static bool same_size(enum datapath_map map, const struct datapath_sizes *a, const struct datapath_sizes *b)
{
	switch (map) {
	case DATAPATH_MAP_TABLES:
		return a->tables == b->tables;
	case DATAPATH_MAP_BACKENDS:
	case DATAPATH_MAP_BACKEND_STATS:
		return a->backends == b->backends;
	case DATAPATH_MAP_SERVICE_STATS:
		return a->services == b->services;
	case DATAPATH_MAP_FLOWS:
		return a->flow_buckets == b->flow_buckets;
	case DATAPATH_MAP_CARRIED:
		return a->services == b->services && a->backends == b->backends;
	default:
		return true;
	}
}

/*
 * Gives the object those of former's maps that can go on. Not the outputs: the kernel keeps a device map to programs of
 * one kind, either such as take frames of several buffers or such as don't, and former may be of the other kind.
 */
static int share(struct ringlb_bpf *skel, const struct datapath_sizes *sizes, const struct datapath *former)
{
	struct datapath_sizes were;
	int err = 0;

	if (!former || datapath_abi(former) != RINGLB_ABI_VERSION)
		return 0;
	datapath_get_sizes(former, &were);
	for (enum datapath_map i = 0; i < DATAPATH_MAP_COUNT && !err; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, datapath_map_name[i]);

		if (!map)
			err = -ENOENT;
		else if (i != DATAPATH_MAP_OUTPUTS && same_size(i, sizes, &were))
			err = bpf_map__reuse_fd(map, former->map[i]);
	}
	return err;
}

static int load(const struct datapath_sizes *sizes, const struct datapath *former, struct ringlb_bpf **out,
		struct diag *d)
{
	int err;

	*out = ringlb_bpf__open();
	if (!*out)
		return datapath_complain_load(d, "the XDP program", map_bytes(sizes), -errno);
	err = set_sizes(*out, sizes);
	if (!err)
		err = share(*out, sizes, former);
	if (!err)
		err = ringlb_bpf__load(*out);
	return err ? datapath_complain_load(d, "the XDP program", map_bytes(sizes), err) : 0;
}

int datapath_create_beside(const struct datapath_sizes *sizes, const struct datapath *former, struct datapath **out,
			   struct diag *d)
{
	struct ringlb_bpf *skel = NULL;
	struct datapath *dp = NULL;
	struct ringlb_tables *t;
	int err;

	*out = NULL;
	err = check_sizes(sizes, d);
	if (err)
		return err;
	datapath_capture_start();
	err = load(sizes, former, &skel, d);
	if (err)
		goto out;
	dp = datapath_new();
	err = take(skel, dp);
	if (!err)
		err = datapath_map_memory(dp);
	if (err) {
		diag_error(d, "load", "", "cannot map the XDP program's tables into memory: %s", strerror(-err));
		goto out;
	}
	t = dp->tables.base;
	t->abi = RINGLB_ABI_VERSION;
	t->hz = kernel_hz();
	*out = dp;
	dp = NULL;
out:
	datapath_free(dp);
	ringlb_bpf__destroy(skel);
	return err;
}

int datapath_create(const struct datapath_sizes *sizes, struct datapath **out, struct diag *d)
{
	int err = datapath_create_beside(sizes, NULL, out, d);

	if (!err)
		datapath_write_version(*out);
	return err;
}
