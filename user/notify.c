// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "diag.h"

/* The address: a path, or behind an @ an abstract name. 0 or -errno. */
static int address_of(const char *name, struct sockaddr_un *out, socklen_t *length)
{
	size_t size = strlen(name);

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	if ((*name != '/' && *name != '@') || !name[1] || size >= sizeof(out->sun_path))
		return -EINVAL;
	memcpy(out->sun_path, name, size);
	if (*name == '@')
		out->sun_path[0] = '\0';
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (*name == '/'));
	return 0;
}

static int send_to(const char *name, const char *text)
{
	struct sockaddr_un to;
	socklen_t length;
	int fd, err = address_of(name, &to, &length);

	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* A supervisor that does not read must not stop what it supervises. */
	if (sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, length) < 0)
		err = -errno;
	close(fd);
	return err;
}

int notify_send(const char *format, ...)
{
	const char *name = getenv("NOTIFY_SOCKET");
	char *text;
	va_list ap;
	int err;

	if (!name)
		return 0;
	va_start(ap, format);
	err = vasprintf(&text, format, ap);
	va_end(ap);
	if (err < 0)
		diag_fatal("out of memory");
	err = send_to(name, text);
	free(text);
	return err;
}

uint64_t notify_watchdog_ms(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!us || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoull(us, NULL, 10) / 2000;
}

void notify_end(void)
{
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}
