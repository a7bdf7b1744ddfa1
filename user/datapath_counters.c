/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs counted, over all CPUs, and what former programs of the instance counted in maps that are gone.
 * While one takes over from another both count: then the former's count too, until datapath_carry has written them
 * down and RINGLB_PENDING_REPLACED goes. So no sum ever goes backwards.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"

#define TRIES 100 /* one replacement takes longer than many reads */

/* A map of counters. */
struct kind {
	enum datapath_map map;
	size_t words; /* of an element */
};

static const struct kind services = { DATAPATH_MAP_SERVICE_STATS, sizeof(struct ringlb_counter) / sizeof(uint64_t) };
static const struct kind backends = { DATAPATH_MAP_BACKEND_STATS, sizeof(struct ringlb_counter) / sizeof(uint64_t) };
static const struct kind verdicts = { DATAPATH_MAP_VERDICTS,
				      sizeof(struct ringlb_verdict_counters) / sizeof(uint64_t) };
static const struct kind flows = { DATAPATH_MAP_FLOW_STATS, sizeof(struct ringlb_flow_counters) / sizeof(uint64_t) };

uint32_t datapath_carried_bytes(uint32_t service_elements, uint32_t backend_elements)
{
	return (uint32_t)(sizeof(struct ringlb_carried) +
			  ((size_t)service_elements + backend_elements) * sizeof(struct ringlb_counter));
}

static uint32_t elements(const struct datapath *dp, const struct kind *k)
{
	return k == &services ? dp->services : k == &backends ? dp->backend_count : 1;
}

static uint64_t *carried(const struct datapath *dp, const struct kind *k)
{
	char *base = dp->carried.base;

	if (k == &verdicts)
		base += offsetof(struct ringlb_carried, verdicts);
	else if (k == &flows)
		base += offsetof(struct ringlb_carried, flows);
	else
		base += datapath_carried_bytes(k == &services ? 0 : dp->services, 0);
	return (uint64_t *)base;
}

/* Adds one per-CPU value up, onto sum; per_cpu has room for every CPU's. */
static int add_element(int fd, uint32_t index, uint64_t *per_cpu, int cpus, uint64_t *sum, size_t words)
{
	int err = bpf_map_lookup_elem(fd, &index, per_cpu);

	for (size_t i = 0; i < (size_t)cpus * words && !err; i++)
		sum[i % words] += per_cpu[i];
	return err;
}

/* Adds what the maps of dp say now. */
static int add_live(const struct datapath *dp, const struct kind *k, uint64_t *out, uint32_t count)
{
	int cpus = libbpf_num_possible_cpus(), err = 0;
	uint64_t *per_cpu;

	if (cpus < 0)
		return cpus;
	if (count > elements(dp, k))
		count = elements(dp, k);
	per_cpu = xcalloc((size_t)cpus * k->words, sizeof(*per_cpu));
	for (uint32_t i = 0; i < count && !err; i++)
		err = add_element(dp->map[k->map], i, per_cpu, cpus, out + i * k->words, k->words);
	free(per_cpu);
	return err;
}

static void add_carried(const struct datapath *dp, const struct kind *k, uint64_t *out, uint32_t count)
{
	const uint64_t *from = carried(dp, k);

	if (count > elements(dp, k))
		count = elements(dp, k);
	for (size_t i = 0; i < count * k->words; i++)
		out[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/* Adds what was counted before dp's own maps. */
static int add_former(const struct datapath *dp, const struct datapath *former, const struct kind *k, uint64_t *out,
		      uint32_t count)
{
	add_carried(former, k, out, count);
	return datapath_shares(dp, former, k->map) ? 0 : add_live(former, k, out, count);
}

static int total(const struct datapath *dp, const struct kind *k, void *out, uint32_t count)
{
	if (count > elements(dp, k))
		return -ENOENT;
	for (int i = 0; i < TRIES; i++) {
		uint32_t before = datapath_pending(dp);
		int err = 0;

		memset(out, 0, count * k->words * sizeof(uint64_t));
		if (before & RINGLB_PENDING_REPLACED && dp->former)
			err = add_former(dp, dp->former, k, out, count);
		else
			add_carried(dp, k, out, count);
		if (!err)
			err = add_live(dp, k, out, count);
		if (err || datapath_pending(dp) == before)
			return err;
	}
	return -EAGAIN;
}

int datapath_service_counters(struct datapath *dp, struct ringlb_counter *out, uint32_t count)
{
	return total(dp, &services, out, count);
}

int datapath_backend_counters(struct datapath *dp, struct ringlb_counter *out, uint32_t count)
{
	return total(dp, &backends, out, count);
}

int datapath_verdicts(struct datapath *dp, struct ringlb_verdict_counters *out)
{
	return total(dp, &verdicts, out, 1);
}

int datapath_flow_counters(struct datapath *dp, struct ringlb_flow_counters *out)
{
	return total(dp, &flows, out, 1);
}

static int clear(struct datapath *dp, const struct kind *k, uint16_t index)
{
	int cpus = libbpf_num_possible_cpus(), err;
	uint32_t key = index;
	uint64_t *zero;

	if (cpus < 0)
		return cpus;
	zero = xcalloc((size_t)cpus * k->words, sizeof(*zero));
	err = bpf_map_update_elem(dp->map[k->map], &key, zero, BPF_ANY);
	free(zero);
	if (!err)
		memset(carried(dp, k) + index * k->words, 0, k->words * sizeof(uint64_t));
	return err;
}

int datapath_clear_backend_counter(struct datapath *dp, uint16_t index)
{
	return clear(dp, &backends, index);
}

int datapath_clear_service_counter(struct datapath *dp, uint16_t index)
{
	return clear(dp, &services, index);
}

static int carry(struct datapath *dp, const struct datapath *former, const struct kind *k, bool live)
{
	uint32_t count = elements(dp, k);
	uint64_t *sum = xcalloc(count * k->words, sizeof(*sum));
	int err = 0;

	if (live)
		err = add_former(dp, former, k, sum, count);
	else
		add_carried(former, k, sum, count);
	if (!err)
		memcpy(carried(dp, k), sum, count * k->words * sizeof(*sum));
	free(sum);
	return err;
}

int datapath_carry(struct datapath *dp, const struct datapath *former, bool live)
{
	static const struct kind *const all[] = { &services, &backends, &verdicts, &flows };
	int err = 0;

	/* then all the others are shared, too */
	if (datapath_shares(dp, former, DATAPATH_MAP_CARRIED))
		return 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all) && !err; i++)
		err = carry(dp, former, all[i], live);
	return err;
}
