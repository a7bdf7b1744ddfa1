/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An open datapath: its memory and test runs. */
#include "datapath.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"

#define FRAME_MAX 2048u

_Static_assert(sizeof(struct ringlb_backend) % 8 == 0, "an array map rounds its elements up to 8 bytes");
_Static_assert(sizeof(struct ringlb_flow_bucket) % 8 == 0, "an array map rounds its elements up to 8 bytes");
_Static_assert(sizeof(struct ringlb_counter) % 8 == 0, "a per-CPU map rounds its values up to 8 bytes");
_Static_assert(sizeof(struct ringlb_verdict_counters) % 8 == 0, "a per-CPU map rounds its values up to 8 bytes");

const char *const datapath_map_name[DATAPATH_MAP_COUNT] = {
#define X(id, name) [DATAPATH_MAP_##id] = name,
	DATAPATH_MAPS(X)
#undef X
};

struct datapath *datapath_new(void)
{
	struct datapath *dp = xcalloc(1, sizeof(*dp));

	dp->prog = dp->lookup = dp->wait_outer = dp->wait_inner = -1;
	for (size_t i = 0; i < DATAPATH_MAP_COUNT; i++)
		dp->map[i] = -1;
	return dp;
}

uint32_t datapath_pending(const struct datapath *dp)
{
	return __atomic_load_n(&((const struct ringlb_tables *)dp->tables.base)->pending, __ATOMIC_SEQ_CST);
}

static void close_descriptor(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void unmap(struct datapath_area *a)
{
	if (a->base)
		munmap(a->base, a->length);
}

void datapath_free(struct datapath *dp)
{
	if (!dp)
		return;
	unmap(&dp->tables);
	unmap(&dp->backends);
	unmap(&dp->flows);
	unmap(&dp->carried);
	datapath_free(dp->former);
	close_descriptor(dp->prog);
	close_descriptor(dp->lookup);
	close_descriptor(dp->wait_outer);
	close_descriptor(dp->wait_inner);
	for (size_t i = 0; i < DATAPATH_MAP_COUNT; i++)
		close_descriptor(dp->map[i]);
	free(dp);
}

/* The shape of a map; value 0: any size of at least the header of tables. */
static int map_shape(int fd, uint32_t type, uint32_t value, struct bpf_map_info *info)
{
	uint32_t length = sizeof(*info);
	int err;

	memset(info, 0, sizeof(*info));
	err = bpf_obj_get_info_by_fd(fd, info, &length);
	if (err)
		return err;
	if (info->type != type || info->key_size != sizeof(uint32_t) || !info->max_entries)
		return -EPROTO;
	if (value ? info->value_size != value : info->value_size < RINGLB_TABLES_HEADER)
		return -EPROTO;
	return 0;
}

static int map_area(int fd, size_t bytes, struct datapath_area *a)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), length = (bytes + page - 1) / page * page;
	void *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	a->base = base;
	a->length = length;
	return 0;
}

int datapath_map_tables(struct datapath *dp)
{
	struct bpf_map_info info;
	int err = map_shape(dp->map[DATAPATH_MAP_TABLES], BPF_MAP_TYPE_ARRAY, 0, &info);

	if (err)
		return err;
	dp->tables_bytes = info.value_size;
	return map_area(dp->map[DATAPATH_MAP_TABLES], info.value_size, &dp->tables);
}

int datapath_map_memory(struct datapath *dp)
{
	struct bpf_map_info info;
	int err = datapath_map_tables(dp);

	if (err)
		return err;

	err = map_shape(dp->map[DATAPATH_MAP_BACKENDS], BPF_MAP_TYPE_ARRAY, sizeof(struct ringlb_backend), &info);
	if (err)
		return err;
	dp->backend_count = info.max_entries;
	err = map_area(dp->map[DATAPATH_MAP_BACKENDS], (size_t)info.max_entries * info.value_size, &dp->backends);
	if (err)
		return err;

	err = map_shape(dp->map[DATAPATH_MAP_FLOWS], BPF_MAP_TYPE_ARRAY, sizeof(struct ringlb_flow_bucket), &info);
	if (err)
		return err;
	dp->flow_buckets = info.max_entries;
	err = map_area(dp->map[DATAPATH_MAP_FLOWS], (size_t)info.max_entries * info.value_size, &dp->flows);
	if (err)
		return err;

	err = map_shape(dp->map[DATAPATH_MAP_SERVICE_STATS], BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(struct ringlb_counter),
			&info);
	if (err)
		return err;
	dp->services = info.max_entries;
	err = map_shape(dp->map[DATAPATH_MAP_BACKEND_STATS], BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(struct ringlb_counter),
			&info);
	if (err)
		return err;
	if (info.max_entries < dp->backend_count)
		return -EPROTO;
	err = map_shape(dp->map[DATAPATH_MAP_VERDICTS], BPF_MAP_TYPE_PERCPU_ARRAY,
			sizeof(struct ringlb_verdict_counters), &info);
	if (err)
		return err;
	err = map_shape(dp->map[DATAPATH_MAP_CARRIED], BPF_MAP_TYPE_ARRAY,
			datapath_carried_bytes(dp->services, dp->backend_count), &info);
	return err ? err : map_area(dp->map[DATAPATH_MAP_CARRIED], info.value_size, &dp->carried);
}

struct ringlb_tables *datapath_tables(struct datapath *dp, size_t *bytes)
{
	*bytes = dp->tables_bytes;
	return dp->tables.base;
}

struct ringlb_backend *datapath_backends(struct datapath *dp, uint32_t *count)
{
	*count = dp->backend_count;
	return dp->backends.base;
}

struct ringlb_flow_bucket *datapath_flows(struct datapath *dp, uint32_t *count)
{
	*count = dp->flow_buckets;
	return dp->flows.base;
}

uint32_t datapath_services(struct datapath *dp)
{
	return dp->services;
}

void datapath_get_sizes(const struct datapath *dp, struct datapath_sizes *out)
{
	*out = (struct datapath_sizes){
		.tables = dp->tables_bytes,
		.backends = dp->backend_count,
		.services = dp->services,
		.flow_buckets = dp->flow_buckets,
	};
}

struct datapath *datapath_former(struct datapath *dp)
{
	return dp->former;
}

uint32_t datapath_abi(const struct datapath *dp)
{
	return ((const struct ringlb_tables *)dp->tables.base)->abi;
}

static uint64_t map_locked_bytes(int fd)
{
	char path[32], line[128];
	unsigned long long bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	}
	fclose(f);
	return bytes;
}

uint64_t datapath_locked_bytes(struct datapath *dp)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < DATAPATH_MAP_COUNT; i++)
		sum += map_locked_bytes(dp->map[i]);
	return sum;
}

/*
 * A change of a map of maps returns to user space only after an RCU grace period, so that programs see the new inner
 * map (maybe_wait_bpf_programs() in the kernel). XDP programs run in RCU read-side sections whatever maps they use: a
 * map of our own that none of them knows does as well.
 */
static int make_wait_map(struct datapath *dp)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	if (dp->wait_outer >= 0)
		return 0;
	if (dp->wait_inner < 0) {
		dp->wait_inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ringlb_wait_in", 4, 4, 1, NULL);
		if (dp->wait_inner < 0)
			return dp->wait_inner;
	}
	opts.inner_map_fd = (uint32_t)dp->wait_inner;
	dp->wait_outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "ringlb_wait", 4, 4, 1, &opts);
	return dp->wait_outer < 0 ? dp->wait_outer : 0;
}

int datapath_wait(struct datapath *dp)
{
	uint32_t slot = 0;
	int err = make_wait_map(dp);

	return err ? err : bpf_map_update_elem(dp->wait_outer, &slot, &dp->wait_inner, BPF_ANY);
}

int datapath_set_output(struct datapath *dp, unsigned int slot, unsigned int ifindex)
{
	uint32_t key = slot;
	struct bpf_devmap_val value = { .ifindex = ifindex }; /* the kernel reads as much as the map's values have */

	if (!ifindex)
		return bpf_map_delete_elem(dp->map[DATAPATH_MAP_OUTPUTS], &key);
	return bpf_map_update_elem(dp->map[DATAPATH_MAP_OUTPUTS], &key, &value, BPF_ANY);
}

int datapath_lookup(struct datapath *dp, const void *frame, size_t length, struct ringlb_lookup *out)
{
	unsigned char buffer[FRAME_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int err;

	if (length < sizeof(*out) || length > sizeof(buffer))
		return -EMSGSIZE;
	opts.data_in = frame;
	opts.data_size_in = (uint32_t)length;
	opts.data_out = buffer;
	opts.data_size_out = sizeof(buffer);
	err = bpf_prog_test_run_opts(dp->lookup, &opts);
	if (err)
		return err;
	if (opts.retval != 2 /* XDP_PASS */ || opts.data_size_out != length)
		return -EPROTO;
	memcpy(out, buffer, sizeof(*out));
	return 0;
}
