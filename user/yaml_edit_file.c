// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The edited text takes the file's place. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_parse.h"
#include "config_tree.h"
#include "durable.h"
#include "yaml_edit.h"

static int complain(const char *file, const char *doing, int err, struct diag *d)
{
	const char *remedy = "";

	if (err == -ENOSPC || err == -EDQUOT)
		remedy = "; free some space";
	else if (err == -EROFS)
		remedy = "; its file system is read-only";
	else if (err == -EACCES || err == -EPERM)
		remedy = "; it takes the right to write there, and to keep its owner";
	diag_error(d, "not-saved", file, "%s: %s%s; the file is as it was", doing, strerror(-err), remedy);
	return err;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Owner first: changing it takes set-user bits away. */
static int like(int fd, const struct stat *st)
{
	struct stat mine;

	if (fstat(fd, &mine))
		return -errno;
	if ((mine.st_uid != st->st_uid || mine.st_gid != st->st_gid) && fchown(fd, st->st_uid, st->st_gid))
		return -errno;
	return fchmod(fd, st->st_mode & 07777) ? -errno : 0;
}

/* Of an absolute path. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return xasprintf("%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* Puts text into the place of path, which was was when it was read. */
static int replace(const char *path, const struct stat *was, const char *text, size_t length, struct diag *d)
{
	char *directory = directory_of(path),
	     *temporary = xasprintf("%s/.%s.XXXXXX", directory, strrchr(path, '/') + 1);
	int fd = mkostemp(temporary, O_CLOEXEC), err = fd < 0 ? -errno : 0;
	struct stat now;

	if (!err) {
		err = like(fd, was);
		if (err)
			close(fd);
		else
			err = durable_write(fd, text, length);
		if (!err && (lstat(path, &now) || !same_file(was, &now)))
			err = -ESTALE;
		if (!err && rename(temporary, path))
			err = -errno;
		if (err)
			unlink(temporary);
	}
	if (err == -ESTALE)
		diag_error(d, "not-saved", path,
			   "was changed by somebody else meanwhile: nothing was written, try again");
	else if (err)
		complain(path, "can't be replaced", err, d);
	else
		durable_directory(directory); /* it stands there in any case: nothing to take back */
	free(temporary);
	free(directory);
	return err;
}

/* Whether a file can come into the place of path. */
static int rehearse(const char *file, const char *path, struct diag *d)
{
	char *directory = directory_of(path);
	int err = access(directory, W_OK | X_OK) ? complain(file, "can't be replaced", -errno, d) : 0;

	free(directory);
	return err;
}

static int edit_path(const char *file, const char *path, const struct yaml_edit *edit, size_t edits, bool write,
		     struct diag *d)
{
	size_t length, edited_length;
	struct stat was;
	char *text, *edited;
	int err = 0;

	if (lstat(path, &was))
		return complain(file, "can't be read", -errno, d);
	if (!S_ISREG(was.st_mode)) {
		diag_error(d, "not-saved", file, "is no regular file: it can't be edited");
		return -EINVAL;
	}
	text = config_slurp(path, TREE_MAX_BYTES, &length);
	if (!text)
		return complain(file, "can't be read", -errno, d);
	edited = yaml_edit_text(file, text, length, edit, edits, &edited_length, d);
	if (!edited)
		err = -EINVAL;
	else if (edited_length == length && !memcmp(edited, text, length))
		err = 0;
	else if (write)
		err = replace(path, &was, edited, edited_length, d);
	else
		err = rehearse(file, path, d);
	explicit_bzero(text, length); /* the hash key may be in it */
	free(text);
	if (edited)
		explicit_bzero(edited, edited_length);
	free(edited);
	return err;
}

static int edit_file(const char *file, const struct yaml_edit *edit, size_t edits, bool write, struct diag *d)
{
	char *path;
	int err;

	if (!strcmp(file, "-")) {
		diag_error(d, "not-saved", "standard input", "can't be edited: name the file");
		return -EINVAL;
	}
	path = realpath(file, NULL);
	if (!path)
		return complain(file, "can't be read", -errno, d);
	err = edit_path(file, path, edit, edits, write, d);
	free(path);
	return err;
}

int yaml_edit_file(const char *file, const struct yaml_edit *edit, size_t edits, struct diag *d)
{
	return edit_file(file, edit, edits, true, d);
}

int yaml_edit_rehearse(const char *file, const struct yaml_edit *edit, size_t edits, struct diag *d)
{
	return edit_file(file, edit, edits, false, d);
}
