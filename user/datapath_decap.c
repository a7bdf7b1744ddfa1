/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program that takes outer headers off on a backend. Its link keeps it and its maps: nothing else is pinned. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"
#include "decap.skel.h"

#define WHAT "the decapsulating XDP program"

static char *decap_path(const char *dir, unsigned int ifindex)
{
	return xasprintf("%s/" DATAPATH_DECAP_PREFIX "%u", dir, ifindex);
}

static int add_prefixes(struct decap_bpf *skel, const struct datapath_prefix *from, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		struct ringlb_decap_prefix key = { .length = from[i].length };
		uint32_t value = 1;

		memcpy(key.address, from[i].address, sizeof(key.address));
		err = bpf_map__update_elem(skel->maps.decap_from, &key, sizeof(key), &value, sizeof(value), BPF_ANY);
	}
	return err;
}

static int load(const struct datapath_prefix *from, size_t count, uint16_t gue_port, struct decap_bpf **out,
		struct diag *d)
{
	int err;

	*out = NULL;
	if (count > RINGLB_DECAP_MAX_PREFIXES) {
		diag_error(d, "too-many", "", "%zu prefixes, %u are allowed: join some", count,
			   RINGLB_DECAP_MAX_PREFIXES);
		return -E2BIG;
	}
	datapath_capture_start();
	*out = decap_bpf__open();
	if (!*out)
		return datapath_complain_load(d, WHAT, 0, -errno);
	(*out)->rodata->gue_port = htons(gue_port);
	err = decap_bpf__load(*out);
	if (err)
		return datapath_complain_load(d, WHAT, 0, err);
	err = add_prefixes(*out, from, count);
	if (err)
		diag_error(d, "load", "", "cannot give " WHAT " its prefixes: %s", strerror(-err));
	return err;
}

int datapath_decap_attach(const char *dir, unsigned int ifindex, enum datapath_mode mode,
			  const struct datapath_prefix *from, size_t count, uint16_t gue_port, struct diag *d)
{
	char *path = decap_path(dir, ifindex);
	struct decap_bpf *skel = NULL;
	int err;

	err = datapath_check_bpffs(dir, d);
	if (!err)
		err = load(from, count, gue_port, &skel, d);
	if (!err)
		err = datapath_make_directory(dir, d);
	if (err == -EEXIST)
		err = 0;
	if (!err) {
		err = datapath_link_pin(bpf_program__fd(skel->progs.decap), ifindex, mode, path);
		if (err)
			datapath_remove_directory(dir);
	}
	decap_bpf__destroy(skel);
	free(path);
	return err;
}

int datapath_decap_detach(const char *dir, unsigned int ifindex, struct diag *d)
{
	char *path = decap_path(dir, ifindex);
	int err;

	datapath_capture_start();
	err = datapath_link_unpin(path);
	if (!err)
		datapath_remove_directory(dir);
	else if (err != -ENOENT)
		diag_error(d, "bpffs", "", "%s: %s", path, strerror(-err));
	free(path);
	return err;
}
