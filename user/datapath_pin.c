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

int datapath_complain_path(const char *path, int err, struct diag *d)
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
		err = datapath_complain_path(path, -errno, d);
	else if (err)
		datapath_complain_path(path, err, d);
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
		datapath_complain_path(dir, err, d);
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

char *datapath_site(const char *dir)
{
	return xasprintf("%s~new", dir);
}

/* Of this version, by its name. */
static bool is_ours(const char *name)
{
	const char *number = name + strlen(DATAPATH_LINK_PREFIX);

	if (!strncmp(name, DATAPATH_LINK_PREFIX, strlen(DATAPATH_LINK_PREFIX)))
		return *number && strspn(number, "0123456789") == strlen(number);
	for (size_t i = 0; i < DATAPATH_MAP_COUNT; i++)
		if (!strcmp(name, datapath_map_name[i]))
			return true;
	return !strcmp(name, "prog") || !strcmp(name, "lookup");
}

/* Only pins, and only ours: a directory, a file of another file system, what others have pinned there. */
static int check_removable(const char *dir, DIR *list, struct diag *d)
{
	uint32_t abi = datapath_abi_of(dir);
	bool yes = false, others = abi && abi != RINGLB_ABI_VERSION; /* another version's may have other names */
	struct dirent *e;
	int err = is_bpffs(dir, &yes);

	if (err)
		return datapath_complain_path(dir, err, d);
	if (!yes) {
		diag_error(d, "not-ours", "", "%s is not on a BPF file system: nothing was removed", dir);
		return -ENODEV;
	}
	while ((e = readdir(list))) {
		bool pin = e->d_type == DT_REG;

		if ((pin && (others || is_ours(e->d_name))) || !strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		diag_error(d, "not-ours", "", "%s/%s is not %s: nothing was removed", dir, e->d_name,
			   pin ? "a pin of ringlb's: move or remove it first" : "a BPF pin");
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

static int unpin_directory(const char *dir, bool detach, struct diag *d)
{
	DIR *list = opendir(dir);
	int err;

	if (!list)
		return errno == ENOENT ? -ENOENT : datapath_complain_path(dir, -errno, d);
	err = check_removable(dir, list, d);
	if (err)
		goto out;
	datapath_capture_start();
	if (detach)
		err = unpin_prefix(dir, list, DATAPATH_LINK_PREFIX);
	if (!err)
		err = unpin_prefix(dir, list, "");
	if (!err && rmdir(dir))
		err = -errno;
	if (err)
		datapath_complain_path(dir, err, d);
out:
	closedir(list);
	return err;
}

/* Removes one directory of pins, and then the one that holds instances when nothing else is in it. */
static int remove_pins(const char *dir, bool detach, struct diag *d)
{
	char *parent = xstrdup(dir);
	int err = unpin_directory(dir, detach, d);

	if (!err && to_parent(parent))
		datapath_remove_directory(parent);
	free(parent);
	return err;
}

int datapath_unpin_site(const char *dir, struct diag *d)
{
	char *site = datapath_site(dir);
	int err = remove_pins(site, false, d); /* its links are in dir, too */

	free(site);
	return err;
}

int datapath_unpin(const char *dir, struct diag *d)
{
	int err = datapath_unpin_site(dir, d), dir_err = remove_pins(dir, true, d);

	return dir_err == -ENOENT ? err : dir_err;
}

int datapath_pin_site(struct datapath *dp, const char *dir, struct diag *d)
{
	char *site = datapath_site(dir);
	int err = datapath_unpin_site(dir, d); /* of an attempt that was killed */

	if (!err || err == -ENOENT)
		err = datapath_make_directory(site, d);
	if (!err) {
		datapath_capture_start();
		err = pin_all(dp, site);
		if (err) {
			datapath_complain_path(site, err, d);
			datapath_unpin_site(dir, d);
		}
	}
	free(site);
	return err;
}

int datapath_pin(struct datapath *dp, const char *dir, struct diag *d)
{
	char *site = datapath_site(dir), *parent = xstrdup(dir);
	struct stat st;
	int err;

	/* The place that is named to the user is the one that an option or a variable gave. */
	to_parent(parent);
	err = datapath_check_bpffs(parent, d);
	if (!err && !lstat(dir, &st)) {
		diag_error(d, "exists", "", "%s exists already: ringlb detach removes it", dir);
		err = -EEXIST;
	}
	if (!err)
		err = datapath_pin_site(dp, dir, d);
	if (!err && rename(site, dir)) {
		err = datapath_complain_path(dir, -errno, d);
		datapath_unpin_site(dir, d);
	}
	free(parent);
	free(site);
	return err;
}
