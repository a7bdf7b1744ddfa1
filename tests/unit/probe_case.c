// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "probe_case.h"

#define CONNECTIONS (sizeof(((struct case_server *)0)->connection) / sizeof(int))

uint64_t case_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void case_sleep(unsigned int ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

struct address case_address(void)
{
	return (struct address){ .byte = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
}

/* Connections that nobody takes, until the queue is full and further ones hang. */
static void fill(struct case_server *s, const struct sockaddr_in *a)
{
	for (size_t i = 0; i < 4; i++) {
		s->connection[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(s->connection[i] > 0);
		connect(s->connection[i], (const struct sockaddr *)a, sizeof(*a));
	}
}

void case_listen(struct case_server *s, int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(a);

	s->fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(s->fd >= 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &length), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(s->fd, s->kind == CASE_FULL ? 0 : 1024), 0);
	s->port = ntohs(a.sin_port);
	if (s->kind == CASE_FULL)
		fill(s, &a);
}

void case_close(struct case_server *s)
{
	for (size_t i = 0; i < CONNECTIONS; i++) {
		if (s->connection[i])
			close(s->connection[i]);
	}
	close(s->fd);
}

static void serve_datagram(struct case_server *s)
{
	struct sockaddr_in from;
	socklen_t from_length = sizeof(from);
	uint8_t out[512];
	ssize_t got;

	got = recvfrom(s->fd, s->request, sizeof(s->request) - 1, 0, (struct sockaddr *)&from, &from_length);
	if (got < 0)
		return;
	s->request[got] = '\0';
	s->accepted++;
	if (s->kind == CASE_SILENT)
		return;
	if (s->text) {
		sendto(s->fd, s->text, strlen(s->text), 0, (struct sockaddr *)&from, from_length);
		return;
	}
	for (unsigned int n = 0;; n++) {
		size_t length = s->answer((uint8_t *)s->request, (size_t)got, n, out);

		if (!length)
			return;
		sendto(s->fd, out, length, 0, (struct sockaddr *)&from, from_length);
	}
}

static void serve_connection(struct case_server *s, int *fd)
{
	char text[2048];
	ssize_t got = recv(*fd, text, sizeof(text) - 1, 0);

	if (got > 0) {
		text[got] = '\0';
		snprintf(s->request, sizeof(s->request), "%s", text);
		if (s->kind == CASE_SILENT)
			return;
		assert_int_equal(send(*fd, s->text, strlen(s->text), MSG_NOSIGNAL), strlen(s->text));
	}
	close(*fd);
	*fd = 0;
}

static void serve_listener(struct case_server *s)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	s->accepted++;
	for (size_t i = 0; s->kind != CASE_CLOSES && i < CONNECTIONS; i++) {
		if (!s->connection[i]) {
			s->connection[i] = fd;
			return;
		}
	}
	close(fd);
}

static void serve(struct case_server *s, const struct pollfd *p)
{
	int type = 0;
	socklen_t length = sizeof(type);

	getsockopt(s->fd, SOL_SOCKET, SO_TYPE, &type, &length);
	if (type == SOCK_DGRAM) {
		serve_datagram(s);
		return;
	}
	for (size_t i = 0; i < CONNECTIONS; i++) {
		if (p[1 + i].revents)
			serve_connection(s, &s->connection[i]);
	}
	if (p[0].revents)
		serve_listener(s);
}

void case_serve(struct case_world *w, int ms)
{
	size_t per = 1 + CONNECTIONS, count = 1 + w->servers * per;
	struct pollfd *p = calloc(count, sizeof(*p));
	uint64_t next = probe_engine_next(w->engine), now = case_now();

	if (next != PROBE_NEVER && next < now + (uint64_t)ms)
		ms = next > now ? (int)(next - now) : 0;
	p[0] = (struct pollfd){ probe_engine_fd(w->engine), POLLIN, 0 };
	for (size_t i = 0; i < w->servers; i++) {
		const struct case_server *s = &w->server[i];
		struct pollfd *of = &p[1 + i * per];

		of[0] = (struct pollfd){ s->kind == CASE_FULL ? -1 : s->fd, POLLIN, 0 };
		for (size_t j = 0; j < CONNECTIONS; j++)
			of[1 + j] = (struct pollfd){ s->connection[j] && s->kind != CASE_FULL ? s->connection[j] : -1,
						     POLLIN, 0 };
	}
	poll(p, count, ms);
	for (size_t i = 0; i < w->servers; i++)
		serve(&w->server[i], &p[1 + i * per]);
	free(p);
	probe_engine_step(w->engine, case_now());
}

static void result(void *context, const struct probe_result *r)
{
	struct case_world *w = context;
	struct case_seen *s = &w->seen[r->key];

	assert_true(r->key < CASE_TARGETS);
	s->count++;
	s->outcome = r->outcome;
	s->latency_us = r->latency_us;
	snprintf(s->reason, sizeof(s->reason), "%s", r->reason);
	if (w->on_result)
		w->on_result(w, r);
}

static void want_socket(void *context, uint64_t key, int domain, int type, int protocol)
{
	struct case_world *w = context;

	w->wanted++;
	w->wanted_key = key;
	w->wanted_domain = domain;
	w->wanted_type = type;
	w->wanted_protocol = protocol;
}

void case_start(struct case_world *w, unsigned int sockets, bool services)
{
	const struct probe_options options = {
		.sockets = sockets,
		.icmp4 = -1,
		.icmp6 = -1,
		.context = w,
		.result = result,
		.want_socket = services ? want_socket : NULL,
	};

	w->engine = probe_engine_new(&options);
	assert_non_null(w->engine);
}

void case_end(struct case_world *w)
{
	probe_engine_free(w->engine);
	for (size_t i = 0; i < w->servers; i++)
		case_close(&w->server[i]);
}

bool case_until(struct case_world *w, uint64_t key, unsigned int count, unsigned int ms)
{
	uint64_t end = case_now() + ms;

	while (w->seen[key].count < count) {
		if (case_now() >= end)
			return false;
		case_serve(w, 1000);
	}
	return true;
}

const struct case_seen *case_ask(struct case_world *w, const struct config_check *c)
{
	const struct probe_target target = { .key = 1, .check = c, .address = case_address() };

	probe_engine_set(w->engine, NULL, 0, case_now());
	w->seen[1].count = 0;
	probe_engine_set(w->engine, &target, 1, case_now());
	assert_true(case_until(w, 1, 1, 10000));
	return &w->seen[1];
}
