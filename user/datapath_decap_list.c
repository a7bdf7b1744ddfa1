/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the decapsulating program is, read back from the kernel: its link leads to the program, and that to its maps. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"

#define MAPS 8 /* more than it has */

static void read_prefixes(int map, struct datapath_decap *out)
{
	struct ringlb_decap_prefix key, *before = NULL;

	while (!bpf_map_get_next_key(map, before, &key)) {
		out->from = xreallocarray(out->from, out->prefixes + 1, sizeof(*out->from));
		out->from[out->prefixes].length = key.length;
		memcpy(out->from[out->prefixes++].address, key.address, sizeof(key.address));
		before = &key;
	}
}

static void read_counters(int map, struct datapath_decap *out)
{
	int cpus = libbpf_num_possible_cpus();
	struct ringlb_decap_counters *c = xcalloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*c));
	uint32_t zero = 0;

	for (int i = 0; i < cpus && (i || !bpf_map_lookup_elem(map, &zero, c)); i++)
		out->decapsulated += c[i].decapsulated;
	free(c);
}

/* A map tells by its kind which it is. */
static void read_map(uint32_t id, struct datapath_decap *out)
{
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info), zero = 0;
	int fd = bpf_map_get_fd_by_id(id);
	__be16 port;

	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, &info, &length)) {
		if (info.type == BPF_MAP_TYPE_LPM_TRIE && info.key_size == sizeof(struct ringlb_decap_prefix))
			read_prefixes(fd, out);
		else if (info.type == BPF_MAP_TYPE_PERCPU_ARRAY &&
			 info.value_size == sizeof(struct ringlb_decap_counters))
			read_counters(fd, out);
		else if (info.type == BPF_MAP_TYPE_ARRAY && info.value_size == sizeof(port) &&
			 !bpf_map_lookup_elem(fd, &zero, &port))
			out->gue_port = ntohs(port);
	}
	close(fd);
}

static int read_program(uint32_t id, struct datapath_decap *out)
{
	uint32_t map[MAPS], length = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = { .nr_map_ids = MAPS, .map_ids = (uintptr_t)map };
	int fd = bpf_prog_get_fd_by_id(id), err;

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &info, &length);
	for (uint32_t i = 0; !err && i < info.nr_map_ids && i < MAPS; i++)
		read_map(map[i], out);
	close(fd);
	return err;
}

static int read_pin(const char *dir, const char *name, struct datapath_decap *out)
{
	char *path = xasprintf("%s/%s", dir, name), *end;
	unsigned int attached = 0;
	uint32_t prog_id;
	int err;

	memset(out, 0, sizeof(*out));
	out->ifindex = (unsigned int)strtoul(name + strlen(DATAPATH_DECAP_PREFIX), &end, 10);
	err = !out->ifindex || *end ? -ENOENT : datapath_link_state(path, &attached, &prog_id);
	free(path);
	if (err)
		return err;
	out->alive = attached == out->ifindex;
	if (out->alive)
		out->mode = datapath_link_mode(out->ifindex, prog_id);
	return read_program(prog_id, out);
}

static int compare(const void *a, const void *b)
{
	const struct datapath_decap *x = a, *y = b;

	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

int datapath_decap_list(const char *dir, struct datapath_decap **out, size_t *count, struct diag *d)
{
	struct datapath_decap *list = NULL;
	size_t n = 0;
	struct dirent *e;
	DIR *pins;
	int err = datapath_check_bpffs(dir, d);

	*out = NULL;
	*count = 0;
	if (err)
		return err;
	datapath_capture_start();
	pins = opendir(dir);
	if (!pins)
		return errno == ENOENT ? 0 : datapath_complain_path(dir, -errno, d);
	while (!err && (e = readdir(pins))) {
		if (strncmp(e->d_name, DATAPATH_DECAP_PREFIX, strlen(DATAPATH_DECAP_PREFIX)))
			continue;
		list = xreallocarray(list, n + 1, sizeof(*list));
		err = read_pin(dir, e->d_name, &list[n]);
		if (!err)
			n++;
		else
			free(list[n].from);
		if (err == -ENOENT) /* taken off meanwhile, or an instance of that name */
			err = 0;
	}
	closedir(pins);
	if (err) {
		datapath_complain_path(dir, err, d);
		datapath_decap_free(list, n);
		return err;
	}
	if (n)
		qsort(list, n, sizeof(*list), compare);
	*out = list;
	*count = n;
	return 0;
}

void datapath_decap_free(struct datapath_decap *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(list[i].from);
	free(list);
}
