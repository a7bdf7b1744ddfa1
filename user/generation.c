// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "generation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "durable.h"
#include "generation_text.h"

/* Six digits sort as numbers do in every listing; longer ones are only longer. */
#define FILE_NAME "%06u.yaml"
#define TEMPORARY ".%06u.yaml.tmp"

char *generation_path(const char *dir, uint32_t number)
{
	return xasprintf("%s/" FILE_NAME, dir, number);
}

/* The number in a name of ours, 0 in others. */
static uint32_t number_of(const char *name, const char *format)
{
	const char *digits = name + strcspn(format, "%");
	char exact[32];
	unsigned long long number;

	if (strlen(name) >= sizeof(exact) || *name != (*format == '%' ? *name : *format) ||
	    !strspn(digits, "0123456789"))
		return 0;
	number = strtoull(digits, NULL, 10);
	if (!number || number > UINT32_MAX)
		return 0;
	if (*format == '.')
		snprintf(exact, sizeof(exact), TEMPORARY, (unsigned int)number);
	else
		snprintf(exact, sizeof(exact), FILE_NAME, (unsigned int)number);
	return strcmp(name, exact) ? 0 : (uint32_t)number;
}

static int complain(const char *path, uint32_t number, int err, struct diag *d)
{
	const char *remedy = "choose another directory with --state-dir";

	if (err == -ENOSPC || err == -EDQUOT || err == -EFBIG)
		remedy = "free some space there, choose another directory with --state-dir";
	else if (err == -EROFS)
		remedy = "its file system is read-only: choose another directory with --state-dir";
	else if (err == -EACCES || err == -EPERM)
		remedy = "run it as root, choose another directory with --state-dir";
	else if (err == -ENOENT)
		remedy = "create the directory, choose another with --state-dir";
	diag_error(
		d, "not-recorded", "",
		"generation %u can't be written to %s: %s: %s, or go on without this record: ringlb attach --no-record, or "
		"apply --no-record (the daemon adopts what is attached)",
		number, path, strerror(-err), remedy);
	return err;
}

static int make_directory(const char *path, mode_t mode)
{
	const char *slash = strrchr(path, '/');
	char *parent;
	int err;

	if (mkdir(path, mode))
		return errno == EEXIST ? 0 : -errno;
	parent = !slash ? xstrdup(".") : xasprintf("%.*s", slash == path ? 1 : (int)(slash - path), path);
	err = durable_directory(parent);
	free(parent);
	return err;
}

static int make_directories(const char *dir)
{
	const char *slash = strrchr(dir, '/');
	char *parent;
	int err = make_directory(dir, 0700);

	if (err != -ENOENT || !slash || slash == dir)
		return err;
	parent = xasprintf("%.*s", (int)(slash - dir), dir);
	err = make_directory(parent, 0755);
	free(parent);
	return err ? err : make_directory(dir, 0700);
}

/* A file of that name that nobody had open before: a leftover goes. */
static int create(const char *path)
{
	int fd;

	if (unlink(path) && errno != ENOENT)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int write_file(const char *dir, const char *path, uint32_t number, const char *text)
{
	char *temporary = xasprintf("%s/" TEMPORARY, dir, number);
	int fd = create(temporary), err = fd < 0 ? fd : durable_write(fd, text, strlen(text));

	if (!err && rename(temporary, path))
		err = -errno;
	if (!err) {
		err = durable_directory(dir);
		/* Else it could be gone, or there, after a power cut: then rather gone. */
		if (err)
			unlink(path);
	} else if (fd >= 0) {
		unlink(temporary);
	}
	free(temporary);
	return err;
}

int generation_write(const char *dir, uint32_t number, time_t time, const char *digest, const char *summary,
		     const struct config *c, struct diag *d)
{
	char *path = generation_path(dir, number), *text = generation_text(number, time, digest, summary, c);
	int err = make_directories(dir);

	if (!err)
		err = write_file(dir, path, number, text);
	if (err)
		complain(path, number, err, d);
	explicit_bzero(text, strlen(text)); /* the hash key is in it */
	free(text);
	free(path);
	return err;
}

int generation_remove(const char *dir, uint32_t number)
{
	char *path = generation_path(dir, number);
	int err = unlink(path) ? -errno : durable_directory(dir);

	free(path);
	return err == -ENOENT ? 0 : err;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Numbers of the regular files of a form, sorted; freed by the caller. A count, or -errno. */
static ssize_t numbers(const char *dir, const char *format, uint32_t **out)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	ssize_t count = 0;
	struct stat st;

	*out = NULL;
	if (!stream)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(stream))) {
		uint32_t number = number_of(entry->d_name, format);

		if (!number || fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (!(count & (count - 1)))
			*out = xreallocarray(*out, count ? 2 * (size_t)count : 1, sizeof(**out));
		(*out)[count++] = number;
	}
	closedir(stream);
	if (count)
		qsort(*out, (size_t)count, sizeof(**out), compare_numbers);
	return count;
}

int generation_list(const char *dir, struct generation **out, size_t *count, struct diag *d)
{
	uint32_t *number;
	ssize_t found = numbers(dir, FILE_NAME, &number);

	*out = NULL;
	*count = 0;
	if (found < 0) {
		diag_error(d, "no-history", "", "the history in %s can't be read: %s%s", dir, strerror((int)-found),
			   found == -EACCES ? "; run it as root" : "");
		return (int)found;
	}
	*out = xcalloc((size_t)found, sizeof(**out));
	for (ssize_t i = 0; i < found; i++) {
		char *path = generation_path(dir, number[i]), *text = generation_read(path, number[i], &(*out)[*count]);

		/* Another command may have pruned it meanwhile. */
		if (text || errno != ENOENT)
			++*count;
		else
			free((*out)[*count].summary);
		generation_text_free(text);
		free(path);
	}
	free(number);
	return 0;
}

void generation_list_free(struct generation *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(list[i].summary);
	free(list);
}

int generation_prune(const char *dir, uint32_t keep, uint32_t running)
{
	uint32_t *number;
	ssize_t found = numbers(dir, FILE_NAME, &number);
	int removed = 0, err = found < 0 ? (int)found : 0;

	for (ssize_t i = 0; i < found && found - removed > (ssize_t)keep && !err; i++) {
		if (number[i] == running)
			continue;
		err = generation_remove(dir, number[i]);
		removed += !err;
	}
	free(number);
	return err ? err : removed;
}

uint32_t generation_last(const char *dir)
{
	uint32_t *number, last;
	ssize_t found = numbers(dir, FILE_NAME, &number);

	last = found > 0 ? number[found - 1] : 0;
	free(number);
	return last;
}

static int remove_leftovers(const char *dir)
{
	uint32_t *number;
	ssize_t found = numbers(dir, TEMPORARY, &number);
	int err = found < 0 ? (int)found : 0;

	for (ssize_t i = 0; i < found; i++) {
		char *path = xasprintf("%s/" TEMPORARY, dir, number[i]);

		if (unlink(path) && errno != ENOENT)
			err = -errno;
		free(path);
	}
	free(number);
	return err;
}

int generation_repair(const char *dir, uint32_t running, struct diag *d)
{
	int err = remove_leftovers(dir), removed = 0;
	uint32_t *number;
	ssize_t found = numbers(dir, FILE_NAME, &number);

	if (!err && found < 0)
		err = (int)found;
	if (!err && running && found && number[found - 1] > running && (found == 1 || number[found - 2] <= running)) {
		err = generation_remove(dir, number[found - 1]);
		removed = !err;
	}
	if (removed)
		diag_warning(
			d, "never-published", "",
			"generation %u was prepared and never published: its record is removed; generation %u runs",
			number[found - 1], running);
	if (err)
		diag_warning(d, "no-history", "", "the history in %s can't be repaired: %s", dir, strerror(-err));
	free(number);
	return err ? err : removed;
}
