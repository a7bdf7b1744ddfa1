// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The listener alone: serve FD serves at the listening socket FD what comes on standard input, a snapshot in each line,
 * and answers each with "ok" or "bad" on standard output. Ends with standard input.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listener.h"

struct input {
	char *text;
	size_t length, room;
};

/* False at the end. */
static bool take(struct input *in, struct listener *l)
{
	ssize_t got;
	char *end;

	if (in->room - in->length < 65536) {
		in->room = 2 * in->room + 65536;
		in->text = xreallocarray(in->text, in->room, 1);
	}
	got = read(STDIN_FILENO, in->text + in->length, in->room - in->length);
	if (got <= 0)
		return false;
	in->length += (size_t)got;
	while ((end = memchr(in->text, '\n', in->length))) {
		size_t line = (size_t)(end - in->text);

		puts(listener_snapshot(l, in->text, line) ? "bad" : "ok");
		fflush(stdout);
		memmove(in->text, end + 1, in->length - line - 1);
		in->length -= line + 1;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct listener *l = argc == 2 ? listener_new(atoi(argv[1])) : NULL;
	struct input in = { 0 };
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .events = POLLIN } };

	if (!l) {
		fputs("usage: serve FD\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	fds[1].fd = listener_fd(l);
	for (;;) {
		if (poll(fds, 2, listener_timeout(l)) < 0)
			break;
		if (fds[0].revents && !take(&in, l))
			break;
		listener_step(l);
	}
	listener_free(l);
	free(in.text);
	return 0;
}
