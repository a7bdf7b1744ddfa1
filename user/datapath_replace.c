/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One datapath takes the place of another: the pins, the links, and what the maps share. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"

static uint32_t map_id(int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &length) ? 0 : info.id;
}

bool datapath_shares(const struct datapath *a, const struct datapath *b, enum datapath_map map)
{
	uint32_t id = map_id(a->map[map]);

	return id && id == map_id(b->map[map]);
}

bool datapath_shares_tables(const struct datapath *a, const struct datapath *b)
{
	return datapath_shares(a, b, DATAPATH_MAP_TABLES);
}

bool datapath_shares_backends(const struct datapath *a, const struct datapath *b)
{
	return datapath_shares(a, b, DATAPATH_MAP_BACKENDS);
}

bool datapath_shares_flows(const struct datapath *a, const struct datapath *b)
{
	return datapath_shares(a, b, DATAPATH_MAP_FLOWS);
}

int datapath_copy_outputs(struct datapath *dp, struct datapath *former)
{
	const struct ringlb_tables *t = former->tables.base;
	int err = 0;

	for (unsigned int i = 0; i < RINGLB_MAX_OUTPUTS && !err; i++) {
		if (!t->outputs[i].ifindex)
			continue;
		err = datapath_set_output(dp, i, t->outputs[i].link);
		if (err == -EINVAL || err == -ENODEV) /* the interface is gone: nothing leaves there */
			err = 0;
	}
	return err;
}

void datapath_version(const struct datapath *dp, char out[DATAPATH_VERSION])
{
	datapath_read_version(dp->tables.base, out);
}

void datapath_write_version(struct datapath *dp)
{
	struct ringlb_tables *t = dp->tables.base;

	memset(t->version, 0, sizeof(t->version));
	memcpy(t->version, RINGLB_VERSION, sizeof(RINGLB_VERSION));
}

/* Calls on(path, name) for each pinned link of dir, until one fails. */
static int each_link(const char *dir, int (*on)(const char *path, const char *name, void *arg), void *arg)
{
	DIR *list = opendir(dir);
	struct dirent *e;
	int err = 0;

	if (!list)
		return -errno;
	while (!err && (e = readdir(list))) {
		char *path;

		if (strncmp(e->d_name, DATAPATH_LINK_PREFIX, strlen(DATAPATH_LINK_PREFIX)))
			continue;
		path = xasprintf("%s/%s", dir, e->d_name);
		err = on(path, e->d_name, arg);
		free(path);
	}
	closedir(list);
	return err;
}

static int pin_again(const char *path, const char *name, void *arg)
{
	char *other = xasprintf("%s/%s", (const char *)arg, name);
	int err, fd = bpf_obj_get(path);

	err = fd < 0 ? fd : bpf_obj_pin(fd, other);
	if (fd >= 0)
		close(fd);
	free(other);
	return err;
}

int datapath_pin_beside(struct datapath *dp, const char *dir, struct diag *d)
{
	char *site = datapath_site(dir);
	int err = datapath_pin_site(dp, dir, d);

	if (!err) {
		datapath_capture_start();
		err = each_link(dir, pin_again, site);
		if (err) {
			datapath_complain_path(site, err, d);
			datapath_unpin_site(dir, d);
		}
	}
	free(site);
	return err;
}

int datapath_unpin_beside(const char *dir, struct diag *d)
{
	int err = datapath_unpin_site(dir, d);

	return err == -ENOENT ? 0 : err;
}

int datapath_exchange(const char *dir, struct diag *d)
{
	char *site = datapath_site(dir);
	int err = 0;

	if (renameat2(AT_FDCWD, site, AT_FDCWD, dir, RENAME_EXCHANGE))
		err = datapath_complain_path(dir, -errno, d);
	free(site);
	return err;
}

struct update {
	int prog;
	uint32_t prog_id;
	struct diag *d;
};

static int update_link(const char *path, const char *name, void *arg)
{
	const struct update *u = arg;
	struct bpf_link_info info = { 0 };
	uint32_t length = sizeof(info);
	int err, fd = bpf_obj_get(path);

	(void)name;
	if (fd < 0)
		return datapath_complain_path(path, fd, u->d);
	err = bpf_obj_get_info_by_fd(fd, &info, &length);
	if (!err && info.xdp.ifindex && info.prog_id != u->prog_id)
		err = bpf_link_update(fd, u->prog, NULL);
	close(fd);
	if (err == -ENOLINK) /* the interface went this moment */
		err = 0;
	if (err)
		diag_error(u->d, "update", "", "interface %u does not take the new program: %s", info.xdp.ifindex,
			   strerror(-err));
	return err;
}

int datapath_update_links(struct datapath *dp, const char *dir, struct diag *d)
{
	struct bpf_prog_info info = { 0 };
	uint32_t length = sizeof(info);
	struct update u = { .prog = dp->prog, .d = d };
	int err = bpf_obj_get_info_by_fd(dp->prog, &info, &length);

	if (err)
		return datapath_complain_path(dir, err, d);
	u.prog_id = info.id;
	datapath_capture_start();
	return each_link(dir, update_link, &u);
}
