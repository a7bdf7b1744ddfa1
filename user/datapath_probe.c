/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program that sends probes through the data plane's encapsulation. Nothing of it is pinned: it goes with its device. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"
#include "probe.skel.h"

#define WHAT "the program for probes"

struct datapath_probe {
	struct probe_bpf *skel;
};

/* It works on dp's maps; of those that it only could refer to there are none. */
static int share(struct probe_bpf *skel, const struct datapath *dp)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, skel->obj)
	{
		enum datapath_map i = 0;

		if (map == skel->maps.probe_ways || bpf_map__is_internal(map))
			continue;
		while (i < DATAPATH_MAP_COUNT && strcmp(datapath_map_name[i], bpf_map__name(map)))
			i++;
		if (!err)
			err = i < DATAPATH_MAP_COUNT ? bpf_map__reuse_fd(map, dp->map[i]) :
						       bpf_map__set_autocreate(map, false);
	}
	return err;
}

static int attach(struct probe_bpf *skel, unsigned int ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = bpf_program__fd(skel->progs.probe));
	int err = bpf_tc_hook_create(&hook);

	return err && err != -EEXIST ? err : bpf_tc_attach(&hook, &opts);
}

int datapath_probe_attach(struct datapath *dp, unsigned int ifindex, struct datapath_probe **out, struct diag *d)
{
	struct datapath_probe *p = xcalloc(1, sizeof(*p));
	int err;

	*out = NULL;
	datapath_capture_start();
	p->skel = probe_bpf__open();
	err = p->skel ? share(p->skel, dp) : -errno;
	if (!err)
		err = probe_bpf__load(p->skel);
	if (err) {
		datapath_complain_load(d, WHAT, 0, err);
	} else {
		err = attach(p->skel, ifindex);
		if (err)
			diag_error(d, "tc", "", WHAT " can't be attached to its device: %s%s%s", strerror(-err),
				   *datapath_capture_cause() ? ": " : "", datapath_capture_cause());
	}
	if (err)
		datapath_probe_free(p);
	else
		*out = p;
	return err;
}

int datapath_probe_way(struct datapath_probe *p, uint32_t backend, enum ringlb_forward forward, uint16_t gue_port)
{
	const struct ringlb_probe_way way = { .forward = (uint8_t)forward, .gue_port = htons(gue_port) };

	return bpf_map__update_elem(p->skel->maps.probe_ways, &backend, sizeof(backend), &way, sizeof(way), BPF_ANY);
}

void datapath_probe_free(struct datapath_probe *p)
{
	if (!p)
		return;
	probe_bpf__destroy(p->skel);
	free(p);
}
