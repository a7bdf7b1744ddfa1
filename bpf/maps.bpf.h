/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every map of the balancer, and what user space sets before the load. Map names are pin names. The sizes here are
 * placeholders: the loader knows the real ones.
 */
#ifndef RINGLB_MAPS_BPF_H
#define RINGLB_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "ringlb_abi.h"

const volatile struct ringlb_sizes sizes;

/*
 * No BTF type for this one: its size differs with every load, and a type that contradicts it makes libbpf warn and try
 * again without.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, RINGLB_TABLES_HEADER);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ringlb_backend);
} backends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ringlb_flow_bucket);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ringlb_verdict_counters);
} verdicts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ringlb_flow_counters);
} flow_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ringlb_counter);
} service_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ringlb_counter);
} backend_stats SEC(".maps");

/* For user space alone; of as many bytes as its counters need. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ringlb_carried));
} carried SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RINGLB_TRACES_BYTES);
} traces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ringlb_trace_rate);
} trace_rate SEC(".maps");

/*
 * By the keyed hash of what fragments belong to. The least recently used goes where there are too many: one that refused
 * would be shut to everybody by whoever fills it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, RINGLB_MAX_FRAGMENTED);
	__type(key, __u64);
	__type(value, struct ringlb_fragment);
} fragments SEC(".maps");

/* By address of a backend. The least recently used goes where there are too many. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, RINGLB_MAX_PATH_MTUS);
	__uint(key_size, 16);
	__type(value, struct ringlb_path_mtu);
} path_mtus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ringlb_answer_rate);
} answer_rate SEC(".maps");

/* Slot of struct ringlb_tables.outputs -> interface. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, RINGLB_MAX_OUTPUTS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} outputs SEC(".maps");

#endif
