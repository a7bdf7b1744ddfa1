/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The BPF file system: pins made, opened and removed. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"

#define STANDARD_MOUNT "/sys/fs/bpf"

/* Cuts the last component off a path, "/" at least stays; false where there is none left to cut. */
static bool to_parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || !slash[1]) {
		if (!slash && strcmp(path, ".")) {
			strcpy(path, "."); /* of a relative name of one component */
			return true;
		}
		return false;
	}
	if (slash == path)
		slash++;
	*slash = '\0';
	return true;
}

static int is_bpffs(const char *path, bool *yes)
{
	struct statfs fs;

	if (statfs(path, &fs))
		return -errno;
	*yes = fs.f_type == BPF_FS_MAGIC;
	return 0;
}

static int complain_bpffs(const char *dir, struct diag *d)
{
	static const char mount[] = STANDARD_MOUNT;

	if (!strncmp(dir, STANDARD_MOUNT "/", sizeof(mount)))
		diag_error(
			d, "no-bpffs", "",
			"%s is not a BPF file system: mount it with: mount -t bpf bpf %s (\"ip netns exec\" hides it: "
			"use nsenter --net=/run/netns/NAME, or name another directory with --bpffs or RINGLB_BPFFS)",
			mount, mount);
	else
		diag_error(d, "no-bpffs", "",
			   "%s is not on a BPF file system: mount one with: mkdir -p %s && mount -t bpf bpf %s, or "
			   "name another directory with --bpffs or RINGLB_BPFFS",
			   dir, dir, dir);
	return -ENODEV;
}

static int complain_path(const char *path, int err, struct diag *d)
{
	if (err == -EACCES || err == -EPERM)
		diag_error(d, "permission", "", "%s: %s: run it as root", path, strerror(-err));
	else
		diag_error(d, "bpffs", "", "%s: %s", path, strerror(-err));
	return err;
}

int datapath_check_bpffs(const char *dir, struct diag *d)
{
	char *path = xstrdup(dir);
	bool yes = false;
	int err;

	do {
		err = is_bpffs(path, &yes);
	} while (err == -ENOENT && to_parent(path));
	if (!err && !yes)
		err = complain_bpffs(dir, d);
	else if (!err && access(path, W_OK | X_OK))
		err = complain_path(path, -errno, d);
	else if (err)
		complain_path(path, err, d);
	free(path);
	return err;
}

int datapath_make_directory(const char *dir, struct diag *d)
{
	char *parent = xstrdup(dir);
	int err = 0;

	to_parent(parent);
	/* Another instance's detach may remove the parent between the two calls. */
	for (int attempt = 0; attempt < 100; attempt++) {
		err = mkdir(dir, 0700) ? -errno : 0;
		if (err != -ENOENT)
			break;
		err = mkdir(parent, 0700) ? -errno : 0;
		if (err && err != -EEXIST)
			break;
	}
	if (err && err != -EEXIST)
		complain_path(dir, err, d);
	free(parent);
	return err;
}

void datapath_remove_directory(const char *dir)
{
	char *above = xstrdup(dir);
	bool yes = false;

	/* A mount point cannot be removed, nor anything that is not empty. */
	if (to_parent(above) && !is_bpffs(above, &yes) && yes)
		rmdir(dir);
	free(above);
}

static int pin(int fd, const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	int err = bpf_obj_pin(fd, path);

	free(path);
	return err;
}

static int pin_all(struct datapath *dp, const char *dir)
{
	int err = pin(dp->prog, dir, "prog");

	if (!err)
		err = pin(dp->lookup, dir, "lookup");
	for (size_t i = 0; i < DATAPATH_MAP_COUNT && !err; i++)
		err = pin(dp->map[i], dir, datapath_map_name[i]);
	return err;
}

/* Where an instance's pins are made before they get their name; no instance's name has a tilde. */
static char *building_site(const char *dir)
{
	return xasprintf("%s~new", dir);
}

/* Only pins: a directory, or a file of another file system, is none of ours. */
static int check_removable(const char *dir, DIR *list, struct diag *d)
{
	bool yes = false;
	struct dirent *e;
	int err = is_bpffs(dir, &yes);

	if (err)
		return complain_path(dir, err, d);
	if (!yes) {
		diag_error(d, "not-ours", "", "%s is not on a BPF file system: nothing was removed", dir);
		return -ENODEV;
	}
	while ((e = readdir(list))) {
		if (e->d_type == DT_REG || !strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		diag_error(d, "not-ours", "", "%s/%s is not a BPF pin: nothing was removed", dir, e->d_name);
		return -ENOTEMPTY;
	}
	return 0;
}

/* Removes what begins with the prefix; goes on after an error and returns the first. */
static int unpin_prefix(const char *dir, DIR *list, const char *prefix)
{
	struct dirent *e;
	int first = 0;

	rewinddir(list);
	while ((e = readdir(list))) {
		char *path;
		int err;

		if (e->d_type != DT_REG || strncmp(e->d_name, prefix, strlen(prefix)))
			continue;
		path = xasprintf("%s/%s", dir, e->d_name);
		err = *prefix ? datapath_link_unpin(path) : unlink(path) ? -errno : 0;
		if (err && err != -ENOENT && !first)
			first = err;
		free(path);
	}
	return first;
}

static int unpin_directory(const char *dir, struct diag *d)
{
	DIR *list = opendir(dir);
	int err;

	if (!list)
		return errno == ENOENT ? -ENOENT : complain_path(dir, -errno, d);
	err = check_removable(dir, list, d);
	if (err)
		goto out;
	datapath_capture_start();
	err = unpin_prefix(dir, list, DATAPATH_LINK_PREFIX);
	if (!err)
		err = unpin_prefix(dir, list, "");
	if (!err && rmdir(dir))
		err = -errno;
	if (err)
		complain_path(dir, err, d);
out:
	closedir(list);
	return err;
}

/* Removes one directory of pins, and then the one that holds instances when nothing else is in it. */
static int remove_pins(const char *dir, struct diag *d)
{
	char *parent = xstrdup(dir);
	int err = unpin_directory(dir, d);

	if (!err && to_parent(parent))
		datapath_remove_directory(parent);
	free(parent);
	return err;
}

int datapath_unpin(const char *dir, struct diag *d)
{
	char *site = building_site(dir);
	int err = remove_pins(site, d), dir_err = remove_pins(dir, d);

	free(site);
	return dir_err == -ENOENT ? err : dir_err;
}

int datapath_pin(struct datapath *dp, const char *dir, struct diag *d)
{
	char *site = building_site(dir), *parent = xstrdup(dir);
	struct stat st;
	int err;

	/* The place that is named to the user is the one that an option or a variable gave. */
	to_parent(parent);
	err = datapath_check_bpffs(parent, d);
	if (!err && !lstat(dir, &st)) {
		diag_error(d, "exists", "", "%s exists already: ringlb detach removes it", dir);
		err = -EEXIST;
	}
	if (!err) {
		err = remove_pins(site, d); /* of an attempt that was killed */
		if (err == -ENOENT)
			err = 0;
	}
	if (!err)
		err = datapath_make_directory(site, d);
	if (err)
		goto out;
	datapath_capture_start();
	err = pin_all(dp, site);
	if (!err && rename(site, dir))
		err = -errno;
	if (err) {
		complain_path(dir, err, d);
		remove_pins(site, d);
	}
out:
	free(parent);
	free(site);
	return err;
}

static int open_pin(const char *dir, const char *name, struct diag *d, int *out)
{
	char *path = xasprintf("%s/%s", dir, name);
	int err = 0;

	*out = bpf_obj_get(path);
	if (*out < 0) {
		err = *out == -ENOENT ? -EPROTO : *out;
		*out = -1;
		if (err == -EPROTO)
			diag_error(d, "incomplete", "",
				   "%s is incomplete, %s is missing: ringlb detach removes what is there", dir, name);
		else
			complain_path(path, err, d);
	}
	free(path);
	return err;
}

/* Before anything else is read: other versions may have other maps. */
static int check_abi(const char *dir, int fd, struct diag *d)
{
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info), abi;
	struct ringlb_tables *header;
	int err = bpf_obj_get_info_by_fd(fd, &info, &length);

	if (err)
		return complain_path(dir, err, d);
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size < RINGLB_TABLES_HEADER) {
		diag_error(d, "not-ours", "", "%s/tables is not a map of ringlb: choose another directory with --bpffs",
			   dir);
		return -EPROTO;
	}
	header = mmap(NULL, RINGLB_TABLES_HEADER, PROT_READ, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return complain_path(dir, -errno, d);
	abi = header->abi;
	munmap(header, RINGLB_TABLES_HEADER);
	if (abi == RINGLB_ABI_VERSION)
		return 0;
	diag_error(d, "other-abi", "",
		   "what is pinned in %s has layout %u, this ringlb knows layout %u: use the ringlb that attached "
		   "it, or detach and attach again",
		   dir, abi, RINGLB_ABI_VERSION);
	return -EPROTO;
}

static int open_all(struct datapath *dp, const char *dir, struct diag *d)
{
	int err = open_pin(dir, datapath_map_name[DATAPATH_MAP_TABLES], d, &dp->map[DATAPATH_MAP_TABLES]);

	if (!err)
		err = check_abi(dir, dp->map[DATAPATH_MAP_TABLES], d);
	if (!err)
		err = open_pin(dir, "prog", d, &dp->prog);
	if (!err)
		err = open_pin(dir, "lookup", d, &dp->lookup);
	for (size_t i = 0; i < DATAPATH_MAP_COUNT && !err; i++) {
		if (dp->map[i] < 0)
			err = open_pin(dir, datapath_map_name[i], d, &dp->map[i]);
	}
	if (err)
		return err;
	err = datapath_map_memory(dp);
	if (err == -EPROTO)
		diag_error(d, "not-ours", "", "the maps pinned in %s contradict each other: detach and attach again",
			   dir);
	else if (err)
		complain_path(dir, err, d);
	return err;
}

int datapath_open(const char *dir, struct datapath **out, struct diag *d)
{
	struct datapath *dp;
	struct stat st;
	int err;

	*out = NULL;
	if (lstat(dir, &st))
		return errno == ENOENT ? -ENOENT : complain_path(dir, -errno, d);
	datapath_capture_start();
	dp = datapath_new();
	err = open_all(dp, dir, d);
	if (err)
		datapath_free(dp);
	else
		*out = dp;
	return err;
}
