// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * breaktest_server NAME PORT: the real server of the break test, on every address of its host; breaktest.h says what it
 * speaks. Prints "ready" once it listens. Data that it does not expect are complained of, and reset the connection.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "breaktest.h"

struct session {
	int fd;
	uint8_t head[8]; /* of the seed, then of a chunk's length */
	unsigned int have, need;
	bool seeded, ending; /* ending: the client has said all it had to say */
	uint64_t seed, received, sent;
	uint64_t owed;  /* bytes to be answered */
	uint32_t chunk; /* bytes of the chunk still to come */
};

static const char *name;
static int poller;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "breaktest_server %s: %s: %s\n", name, what, strerror(errno));
	exit(1);
}

static void end(struct session *s, const char *complaint)
{
	struct linger reset = { .l_onoff = 1 };

	if (complaint) {
		fprintf(stderr, "breaktest_server %s: %s after %llu bytes\n", name, complaint,
			(unsigned long long)s->received);
		setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	close(s->fd);
	free(s);
}

static void wait_for(struct session *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };

	if (epoll_ctl(poller, EPOLL_CTL_MOD, s->fd, &e))
		die("epoll_ctl");
}

/* One whole seed or length has come. */
static void head_complete(struct session *s)
{
	uint16_t length;

	s->have = 0;
	if (!s->seeded) {
		memcpy(&s->seed, s->head, sizeof(s->seed));
		s->seeded = true;
		s->need = sizeof(length);
		return;
	}
	memcpy(&length, s->head, sizeof(length));
	s->chunk = length;
	s->ending = !length;
}

/* False when the bytes are not those that the client has to send. */
static bool take(struct session *s, const uint8_t *data, size_t length)
{
	while (length) {
		size_t n = s->chunk < length ? s->chunk : length;

		if (s->ending)
			return false;
		if (!s->chunk) {
			s->head[s->have++] = *data++;
			length--;
			if (s->have == s->need)
				head_complete(s);
			continue;
		}
		if (!stream_matches(s->seed ^ STREAM_UP, s->received, data, n))
			return false;
		s->received += n;
		s->owed += n;
		s->chunk -= n;
		data += n;
		length -= n;
	}
	return true;
}

/* Writes what is owed; false when the connection is gone. */
static bool answer(struct session *s)
{
	static uint8_t buffer[16384];

	while (s->owed) {
		size_t n = s->owed < sizeof(buffer) ? s->owed : sizeof(buffer);
		ssize_t put;

		stream_fill(s->seed ^ STREAM_DOWN, s->sent, buffer, n);
		put = send(s->fd, buffer, n, MSG_NOSIGNAL);
		if (put < 0 && errno == EAGAIN) {
			wait_for(s, EPOLLIN | EPOLLOUT);
			return true;
		}
		if (put < 0)
			return false;
		s->sent += (size_t)put;
		s->owed -= (size_t)put;
	}
	wait_for(s, EPOLLIN);
	return true;
}

static void ready(struct session *s)
{
	static uint8_t buffer[65536];

	for (;;) {
		ssize_t got = recv(s->fd, buffer, sizeof(buffer), 0);

		if (got < 0 && errno == EAGAIN)
			break;
		if (got <= 0) { /* reset, or closed half-way: the client's affair */
			end(s, NULL);
			return;
		}
		if (!take(s, buffer, (size_t)got)) {
			end(s, "other bytes than the client's");
			return;
		}
	}
	if (!answer(s) || (s->ending && !s->owed))
		end(s, NULL);
}

static void welcome(int listener)
{
	char greeting[NAME_BYTES] = { 0 };
	int fd, one = 1;

	memcpy(greeting, name, strlen(name));
	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct session *s = calloc(1, sizeof(*s));
		struct epoll_event e = { .events = EPOLLIN, .data.ptr = s };

		if (!s)
			die("calloc");
		s->fd = fd;
		s->need = sizeof(s->seed);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e))
			die("epoll_ctl");
		if (send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL) != sizeof(greeting))
			end(s, NULL);
	}
}

static int listen_at(uint16_t port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 4096))
		die("listen");
	return fd;
}

int main(int argc, char **argv)
{
	struct epoll_event e = { .events = EPOLLIN };
	int listener;

	name = argc == 3 ? argv[1] : "";
	if (argc != 3 || strlen(name) >= NAME_BYTES)
		return 2;
	poller = epoll_create1(EPOLL_CLOEXEC);
	listener = listen_at((uint16_t)atoi(argv[2]));
	if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e))
		die("epoll");
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct epoll_event events[64];
		int n = epoll_wait(poller, events, 64, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				ready(events[i].data.ptr);
			else
				welcome(listener);
		}
	}
}
