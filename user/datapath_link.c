/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs on interfaces. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/if_link.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"

int datapath_link_state(const char *path, unsigned int *ifindex, uint32_t *prog_id)
{
	struct bpf_link_info info = { 0 };
	uint32_t length = sizeof(info);
	int err, fd = bpf_obj_get(path);

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &info, &length);
	close(fd);
	if (err)
		return err;
	if (info.type != BPF_LINK_TYPE_XDP)
		return -EPROTO;
	*ifindex = info.xdp.ifindex;
	*prog_id = info.prog_id;
	return 0;
}

int datapath_link_pin(int prog, unsigned int ifindex, enum datapath_mode mode, const char *path)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts);
	unsigned int attached;
	uint32_t prog_id;
	int err, fd;

	err = datapath_link_state(path, &attached, &prog_id);
	if (!err)
		err = attached ? -EBUSY : unlink(path) ? -errno : 0;
	if (err && err != -ENOENT)
		return err;
	opts.flags = mode == DATAPATH_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	fd = bpf_link_create(prog, (int)ifindex, BPF_XDP, &opts);
	if (fd < 0)
		return fd == -EEXIST ? -EBUSY : fd; /* a program sits there in the other mode */
	err = bpf_obj_pin(fd, path);
	close(fd);
	return err;
}

int datapath_link_unpin(const char *path)
{
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return fd;
	/* Removing the last reference would do, but takes the program off some time later. */
	bpf_link_detach(fd);
	close(fd);
	return unlink(path) ? -errno : 0;
}

static char *link_path(const char *dir, unsigned int ifindex)
{
	return xasprintf("%s/" DATAPATH_LINK_PREFIX "%u", dir, ifindex);
}

int datapath_attach(struct datapath *dp, const char *dir, unsigned int ifindex, enum datapath_mode mode)
{
	char *path = link_path(dir, ifindex);
	int err;

	datapath_capture_start();
	err = datapath_link_pin(dp->prog, ifindex, mode, path);
	free(path);
	return err;
}

int datapath_detach(const char *dir, unsigned int ifindex)
{
	char *path = link_path(dir, ifindex);
	int err;

	datapath_capture_start();
	err = datapath_link_unpin(path);
	free(path);
	return err;
}

enum datapath_mode datapath_link_mode(unsigned int ifindex, uint32_t prog_id)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (!bpf_xdp_query((int)ifindex, 0, &query) && query.skb_prog_id == prog_id)
		return DATAPATH_GENERIC;
	return DATAPATH_NATIVE;
}

static int read_link(const char *dir, const char *name, struct datapath_link *out)
{
	unsigned int attached = 0;
	char *path, *end;
	int err;

	memset(out, 0, sizeof(*out));
	out->ifindex = (unsigned int)strtoul(name + strlen(DATAPATH_LINK_PREFIX), &end, 10);
	if (!out->ifindex || *end)
		return -ENOENT;
	path = xasprintf("%s/%s", dir, name);
	err = datapath_link_state(path, &attached, &out->prog_id);
	free(path);
	if (err)
		return err;
	out->alive = attached == out->ifindex;
	if (out->alive)
		out->mode = datapath_link_mode(out->ifindex, out->prog_id);
	return 0;
}

static int compare_links(const void *a, const void *b)
{
	const struct datapath_link *x = a, *y = b;

	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

int datapath_links(const char *dir, struct datapath_link **out, size_t *count)
{
	struct datapath_link *link = NULL;
	size_t links = 0;
	struct dirent *e;
	DIR *list;
	int err = 0;

	*out = NULL;
	*count = 0;
	datapath_capture_start();
	list = opendir(dir);
	if (!list)
		return -errno;
	while ((e = readdir(list))) {
		if (strncmp(e->d_name, DATAPATH_LINK_PREFIX, strlen(DATAPATH_LINK_PREFIX)))
			continue;
		link = xreallocarray(link, links + 1, sizeof(*link));
		err = read_link(dir, e->d_name, &link[links]);
		if (!err)
			links++;
		else if (err != -ENOENT)
			break;
		err = 0;
	}
	closedir(list);
	if (err) {
		free(link);
		return err;
	}
	if (links)
		qsort(link, links, sizeof(*link), compare_links);
	*out = link;
	*count = links;
	return 0;
}

static bool held_by_link(unsigned int ifindex)
{
	bool held = false;

	for (uint32_t id = 0; !held && !bpf_link_get_next_id(id, &id);) {
		struct bpf_link_info info = { 0 };
		uint32_t length = sizeof(info);
		int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0)
			continue;
		held = !bpf_obj_get_info_by_fd(fd, &info, &length) && info.type == BPF_LINK_TYPE_XDP &&
		       info.xdp.ifindex == ifindex;
		close(fd);
	}
	return held;
}

bool datapath_describe(unsigned int ifindex, char *buf, size_t size)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	uint32_t id, length = sizeof(info);
	const char *mode;
	int fd;

	buf[0] = '\0';
	datapath_capture_start();
	if (bpf_xdp_query((int)ifindex, 0, &query))
		return false;
	id = query.drv_prog_id ? query.drv_prog_id : query.skb_prog_id ? query.skb_prog_id : query.hw_prog_id;
	if (!id)
		return false;
	mode = query.drv_prog_id ? "native" : query.skb_prog_id ? "generic" : "offloaded";
	fd = bpf_prog_get_fd_by_id(id);
	if (fd >= 0) {
		bpf_obj_get_info_by_fd(fd, &info, &length);
		close(fd);
	}
	snprintf(buf, size, "program %.*s (id %u), %s", BPF_OBJ_NAME_LEN, info.name[0] ? info.name : "without a name",
		 id, mode);
	return held_by_link(ifindex);
}

char *datapath_holder(const char *bpffs, unsigned int ifindex)
{
	DIR *list = opendir(bpffs);
	char *holder = NULL;
	struct dirent *e;

	datapath_capture_start();
	while (list && !holder && (e = readdir(list))) {
		char *path = xasprintf("%s/%s/" DATAPATH_LINK_PREFIX "%u", bpffs, e->d_name, ifindex);
		unsigned int attached = 0;
		uint32_t prog_id;

		/* What is behind a ~ is an instance on its way. */
		if (*e->d_name != '.' && !datapath_link_state(path, &attached, &prog_id) && attached == ifindex)
			holder = xasprintf("%.*s", (int)strcspn(e->d_name, "~"), e->d_name);
		free(path);
	}
	if (list)
		closedir(list);
	return holder;
}
