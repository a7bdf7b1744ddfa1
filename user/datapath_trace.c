/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The packets that are traced, from the ring buffer. */
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"

struct datapath_trace {
	struct ring_buffer *ring;
	void (*packet)(const struct ringlb_trace *t, void *arg);
	void *arg;
};

static int hand_on(void *arg, void *data, size_t size)
{
	struct datapath_trace *t = arg;

	if (size >= sizeof(struct ringlb_trace))
		t->packet(data, t->arg);
	return 0;
}

int datapath_trace_open(struct datapath *dp, void (*packet)(const struct ringlb_trace *t, void *arg), void *arg,
			struct datapath_trace **out)
{
	struct datapath_trace *t = xcalloc(1, sizeof(*t));
	int err;

	datapath_capture_start();
	t->packet = packet;
	t->arg = arg;
	t->ring = ring_buffer__new(dp->map[DATAPATH_MAP_TRACES], hand_on, t, NULL);
	err = -errno;
	if (!t->ring) {
		free(t);
		return err;
	}
	*out = t;
	return 0;
}

int datapath_trace_poll(struct datapath_trace *t, int timeout_ms)
{
	return ring_buffer__poll(t->ring, timeout_ms);
}

void datapath_trace_close(struct datapath_trace *t)
{
	if (!t)
		return;
	ring_buffer__free(t->ring);
	free(t);
}

void datapath_trace_want(struct datapath *dp, uint64_t verdicts, uint32_t until)
{
	struct ringlb_tables *t = dp->tables.base;

	__atomic_store_n(&t->trace_until, until, __ATOMIC_RELEASE);
	__atomic_store_n(&t->trace, verdicts, __ATOMIC_RELEASE);
}

int datapath_trace_left_out(struct datapath *dp, uint64_t *out)
{
	int cpus = libbpf_num_possible_cpus(), err;
	struct ringlb_trace_rate *rate;
	uint32_t zero = 0;

	*out = 0;
	if (cpus < 0)
		return cpus;
	rate = xcalloc((size_t)cpus, sizeof(*rate));
	err = bpf_map_lookup_elem(dp->map[DATAPATH_MAP_TRACE_RATE], &zero, rate);
	for (int i = 0; i < cpus && !err; i++)
		*out += rate[i].left_out;
	free(rate);
	return err;
}
