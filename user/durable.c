// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "durable.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int durable_write(int fd, const void *bytes, size_t length)
{
	const char *p = bytes;
	int err = 0;

	while (length && !err) {
		ssize_t put = write(fd, p, length);

		if (put > 0) {
			p += put;
			length -= (size_t)put;
		} else if (!put) {
			err = -EIO;
		} else if (errno != EINTR) {
			err = -errno;
		}
	}
	if (!err && fsync(fd))
		err = -errno;
	/* Some file systems tell only now that there was no room. */
	if (close(fd) && !err)
		err = -errno;
	return err;
}

int durable_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	/* EINVAL: a file system that has nothing to make durable. */
	if (fsync(fd) && errno != EINVAL)
		err = -errno;
	close(fd);
	return err;
}
