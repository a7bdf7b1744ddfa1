/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening what is pinned, whichever ringlb made it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_private.h"

#define TRIES 100 /* a replacement takes milliseconds */

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
			datapath_complain_path(path, err, d);
	}
	free(path);
	return err;
}

void datapath_read_version(const struct ringlb_tables *header, char out[RINGLB_VERSION_TEXT])
{
	memcpy(out, header->version, RINGLB_VERSION_TEXT);
	out[RINGLB_VERSION_TEXT - 1] = '\0';
	for (char *c = out; *c; c++)
		if (*c <= ' ' || *c >= 0x7f)
			*c = '?';
}

static int complain_abi(const char *dir, const struct ringlb_tables *header, struct diag *d)
{
	char version[RINGLB_VERSION_TEXT];

	datapath_read_version(header, version);
	if (header->abi > RINGLB_ABI_VERSION)
		diag_error(d, "newer-abi", "",
			   "what is pinned in %s was made by a newer ringlb, %s (layout %u), than this, " RINGLB_VERSION
			   " (layout %u): install package ringlb %s or newer",
			   dir, version, header->abi, RINGLB_ABI_VERSION, version);
	else if (header->abi >= RINGLB_ABI_OLDEST)
		diag_error(
			d, "older-abi", "",
			"what is pinned in %s was made by an older ringlb, %s (layout %u), than this, " RINGLB_VERSION
			" (layout %u): \"ringlb upgrade\" puts this one in its place without losing a connection",
			dir, version, header->abi, RINGLB_ABI_VERSION);
	else
		diag_error(d, "other-abi", "",
			   "what is pinned in %s has layout %u, which this ringlb does not know: detach and attach "
			   "again",
			   dir, header->abi);
	return -EPROTO;
}

/* Before anything else is read: other versions may have other maps. */
static int check_abi(const char *dir, int fd, bool older, struct diag *d)
{
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info);
	struct ringlb_tables *header;
	int err = bpf_obj_get_info_by_fd(fd, &info, &length);

	if (err)
		return datapath_complain_path(dir, err, d);
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size < RINGLB_TABLES_HEADER) {
		diag_error(d, "not-ours", "", "%s/tables is not a map of ringlb: choose another directory with --bpffs",
			   dir);
		return -EPROTO;
	}
	header = mmap(NULL, RINGLB_TABLES_HEADER, PROT_READ, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return datapath_complain_path(dir, -errno, d);
	if (header->abi != RINGLB_ABI_VERSION &&
	    !(older && header->abi >= RINGLB_ABI_OLDEST && header->abi < RINGLB_ABI_VERSION))
		err = complain_abi(dir, header, d);
	munmap(header, RINGLB_TABLES_HEADER);
	return err;
}

uint32_t datapath_abi_of(const char *dir)
{
	char *path = xasprintf("%s/%s", dir, datapath_map_name[DATAPATH_MAP_TABLES]);
	int fd = bpf_obj_get(path);
	struct ringlb_tables *header = fd < 0 ? MAP_FAILED :
						mmap(NULL, RINGLB_TABLES_HEADER, PROT_READ, MAP_SHARED, fd, 0);
	uint32_t abi = header == MAP_FAILED ? 0 : header->abi;

	if (header != MAP_FAILED)
		munmap(header, RINGLB_TABLES_HEADER);
	if (fd >= 0)
		close(fd);
	free(path);
	return abi;
}

static int open_all(struct datapath *dp, const char *dir, bool older, struct diag *d)
{
	int err = open_pin(dir, datapath_map_name[DATAPATH_MAP_TABLES], d, &dp->map[DATAPATH_MAP_TABLES]);

	if (!err)
		err = check_abi(dir, dp->map[DATAPATH_MAP_TABLES], older, d);
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
		datapath_complain_path(dir, err, d);
	return err;
}

/* While one datapath takes over from another, that one is needed too. Where it can't be read it is done without. */
static void open_former(struct datapath *dp, const char *dir)
{
	struct datapath *former;
	struct diag ignored = { 0 };
	char *site;

	if (!(datapath_pending(dp) & RINGLB_PENDING_REPLACED))
		return;
	site = datapath_site(dir);
	former = datapath_new();
	if (open_all(former, site, true, &ignored))
		datapath_free(former);
	else
		dp->former = former;
	diag_free(&ignored);
	free(site);
}

static int open_once(const char *dir, bool older, struct datapath **out, struct diag *d)
{
	struct datapath *dp = datapath_new();
	int err = open_all(dp, dir, older, d);

	if (err) {
		datapath_free(dp);
		return err;
	}
	open_former(dp, dir);
	*out = dp;
	return 0;
}

/* Whether dir is still the same directory; a replacement puts another in its place. */
static bool is_still(const char *dir, const struct stat *was)
{
	struct stat now;

	return !lstat(dir, &now) && now.st_ino == was->st_ino && now.st_dev == was->st_dev;
}

static int open_pinned(const char *dir, bool older, struct datapath **out, struct diag *d)
{
	datapath_capture_start();
	for (int i = 0;; i++) {
		struct diag mine = { 0 };
		struct stat was;
		int err;

		*out = NULL;
		if (lstat(dir, &was))
			return errno == ENOENT ? -ENOENT : datapath_complain_path(dir, -errno, d);
		err = open_once(dir, older, out, &mine);
		if (is_still(dir, &was) || i == TRIES) {
			for (size_t j = 0; j < mine.count; j++)
				diag_add(d, mine.entry[j].level, mine.entry[j].code, mine.entry[j].where, "%s",
					 mine.entry[j].message);
			diag_free(&mine);
			return err;
		}
		diag_free(&mine);
		datapath_free(*out);
	}
}

int datapath_open(const char *dir, struct datapath **out, struct diag *d)
{
	return open_pinned(dir, false, out, d);
}

int datapath_open_older(const char *dir, struct datapath **out, struct diag *d)
{
	return open_pinned(dir, true, out, d);
}

int datapath_open_tables(const char *dir, struct datapath **out, struct diag *d)
{
	struct datapath *dp = datapath_new();
	int *fd = &dp->map[DATAPATH_MAP_TABLES], err;

	datapath_capture_start();
	err = open_pin(dir, datapath_map_name[DATAPATH_MAP_TABLES], d, fd);
	if (!err)
		err = check_abi(dir, *fd, false, d);
	if (!err)
		err = datapath_map_tables(dp);
	*out = err ? NULL : dp;
	if (err)
		datapath_free(dp);
	return err;
}
