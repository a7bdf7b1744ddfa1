/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_BPFFS "/sys/fs/bpf/ringlb"
#define DEFAULT_STATE_DIR "/var/lib/ringlb"
#define DEFAULT_RUN_DIR "/run/ringlb"

#define NAME_MAX_LENGTH 32
#define HOLDER_TEXT 256
#define POLL_NANOSECONDS 25000000L
#define HOLDER_RETRIES 10

static bool name_is_valid(const char *name)
{
	size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");

	return length > 0 && length <= NAME_MAX_LENGTH && name[length] == '\0';
}

/* The option, else the variable, else the default; without slashes at the end. */
static char *directory(const char *option, const char *variable, const char *standard)
{
	const char *value = option;
	size_t length;
	char *copy;

	if (!value)
		value = getenv(variable);
	if (!value || !*value)
		value = standard;
	copy = xstrdup(value);
	for (length = strlen(copy); length > 1 && copy[length - 1] == '/'; length--)
		copy[length - 1] = '\0';
	return copy;
}

int instance_init(struct instance *i, const char *name, const char *bpffs, const char *state_dir, const char *run_dir,
		  struct diag *d)
{
	memset(i, 0, sizeof(*i));
	if (!name)
		name = "default";
	if (!name_is_valid(name)) {
		diag_error(d, "bad-instance", "", "instance name \"%s\": 1 to %d letters, digits, - and _ are allowed",
			   name, NAME_MAX_LENGTH);
		return -EINVAL;
	}
	i->name = xstrdup(name);
	i->bpffs = directory(bpffs, "RINGLB_BPFFS", DEFAULT_BPFFS);
	i->pins = xasprintf("%s/%s", i->bpffs, name);
	i->state_dir = directory(state_dir, "RINGLB_STATE_DIR", DEFAULT_STATE_DIR);
	i->run_dir = directory(run_dir, "RINGLB_RUN_DIR", DEFAULT_RUN_DIR);
	return 0;
}

void instance_free(struct instance *i)
{
	free(i->name);
	free(i->bpffs);
	free(i->pins);
	free(i->state_dir);
	free(i->run_dir);
	memset(i, 0, sizeof(*i));
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Opens the lock's file, made with its directory where missing; unlockers remove both at any time. */
static int open_lock(const char *run_dir, const char *path)
{
	for (int attempt = 0;; attempt++) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd >= 0)
			return fd;
		if (errno != ENOENT || attempt >= 100)
			return -errno;
		if (mkdir(run_dir, 0755) && errno != EEXIST)
			return -errno;
	}
}

/* False when the file was removed, or replaced by another, between opening and locking it. */
static bool is_current(int fd, const char *path)
{
	struct stat mine, there;

	return !fstat(fd, &mine) && !stat(path, &there) && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* "PID COMMAND" as the holder wrote it, made fit for one line; empty while it has not yet. */
static void read_holder(int fd, char text[HOLDER_TEXT])
{
	ssize_t length = pread(fd, text, HOLDER_TEXT - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
}

static void write_holder(int fd, const char *command)
{
	char text[HOLDER_TEXT];

	snprintf(text, sizeof(text), "%ld %s", (long)getpid(), command);
	text[strcspn(text, "\n")] = '\0';
	/* Only for the message of others: a full /run takes nothing else from us. */
	if (ftruncate(fd, 0) || pwrite(fd, text, strlen(text), 0) < 0)
		return;
}

static void complain_locked(const struct instance *i, int fd, struct diag *d)
{
	const struct timespec pause = { .tv_nsec = POLL_NANOSECONDS };
	char holder[HOLDER_TEXT], *command = NULL;

	/* It writes that down right after it has locked. */
	for (int tries = 0; !command && tries < HOLDER_RETRIES; tries++) {
		if (tries)
			nanosleep(&pause, NULL);
		read_holder(fd, holder);
		command = strchr(holder, ' ');
	}
	if (command) {
		*command++ = '\0';
		diag_error(d, "locked", "", "instance %s is locked by PID %s (%s): try again or raise --wait", i->name,
			   holder, command);
	} else {
		diag_error(d, "locked", "", "instance %s is locked by another process: try again or raise --wait",
			   i->name);
	}
}

static int complain_open(const struct instance *i, const char *path, int err, struct diag *d)
{
	if (err == -EACCES || err == -EPERM)
		diag_error(d, "permission", "",
			   "cannot lock %s: %s: run it as root, or choose another directory with --run-dir", path,
			   strerror(-err));
	else if (err == -ENOENT)
		diag_error(d, "no-run-dir", "",
			   "cannot create %s: its parent directory is missing: create it, or choose another "
			   "with --run-dir",
			   i->run_dir);
	else
		diag_error(d, "no-lock", "", "cannot lock %s: %s: choose another directory with --run-dir", path,
			   strerror(-err));
	return err;
}

int instance_lock(const struct instance *i, const char *command, double wait_seconds, struct diag *d)
{
	const struct timespec pause = { .tv_nsec = POLL_NANOSECONDS };
	const double deadline = now() + wait_seconds;
	char *path = xasprintf("%s/%s.lock", i->run_dir, i->name);
	int fd, err = 0;

	for (;;) {
		fd = open_lock(i->run_dir, path);
		if (fd < 0) {
			err = complain_open(i, path, fd, d);
			break;
		}
		if (!flock(fd, LOCK_EX | LOCK_NB)) {
			if (is_current(fd, path)) {
				write_holder(fd, command);
				break;
			}
		} else if (errno != EWOULDBLOCK && errno != EINTR) {
			err = complain_open(i, path, -errno, d);
		} else if (now() >= deadline) {
			complain_locked(i, fd, d);
			err = -ETIMEDOUT;
		} else {
			nanosleep(&pause, NULL);
		}
		close(fd);
		if (err)
			break;
	}
	free(path);
	return err ? err : fd;
}

void instance_unlock(const struct instance *i, int fd)
{
	char *path = xasprintf("%s/%s.lock", i->run_dir, i->name);

	if (is_current(fd, path))
		unlink(path);
	/* A directory of the user's own choice stays. */
	if (!strcmp(i->run_dir, DEFAULT_RUN_DIR))
		rmdir(i->run_dir);
	close(fd);
	free(path);
}
