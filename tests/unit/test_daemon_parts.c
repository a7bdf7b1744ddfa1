// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the daemon is made of and needs no kernel for: its log, its wire, the supervisor's socket. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon_wire.h"
#include "log.h"
#include "notify.h"

/* What is written to standard error from begin to end. */
static int saved, pipe_of[2];

static void capture(void)
{
	assert_int_equal(pipe(pipe_of), 0);
	saved = dup(STDERR_FILENO);
	dup2(pipe_of[1], STDERR_FILENO);
}

static char *captured(void)
{
	static char text[65536];
	ssize_t length;

	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipe_of[1]);
	length = read(pipe_of[0], text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = '\0';
	close(pipe_of[0]);
	return text;
}

static void test_lines(void **state)
{
	struct diag d = { 0 };

	(void)state;
	capture();
	log_line(LOG_LEVEL_NOTICE, "backend %s\n<3>forged", "b1");
	diag_warning(&d, "a", "", "w");
	diag_error(&d, "a", "f.yaml:1:2", "e");
	log_diag(&d, "reload");
	diag_free(&d);
	assert_string_equal(captured(), "<5>backend b1?<3>forged\n<4>reload: w\n<3>reload: f.yaml:1:2: e\n");
}

/* Ten a second, then their number; and again ten in the next second. */
static void test_limit(void **state)
{
	struct log_limit l = { .kind = "transitions" };
	unsigned int said = 0;

	(void)state;
	capture();
	for (int i = 0; i < 500; i++)
		said += log_limit(&l, 7000 + (uint64_t)i);
	assert_int_equal(said, 10);
	assert_int_equal(log_limit_due(&l), 8000);
	log_limit_flush(&l, 7999);
	assert_int_equal(log_limit_due(&l), 8000);
	log_limit_flush(&l, 8000);
	assert_true(log_limit_due(&l) == UINT64_MAX);
	assert_true(log_limit(&l, 8001));
	assert_string_equal(captured(), "<5>and 490 more transitions within this second\n");
}

struct heard {
	size_t count, bytes;
	uint32_t sum;
};

static void hear(void *context, enum wire_type type, const void *data, size_t length)
{
	const unsigned char *bytes = data;
	struct heard *h = context;

	assert_int_equal(type, h->count % 2 ? WIRE_RESULTS : WIRE_SNAPSHOT);
	h->count++;
	h->bytes += length;
	for (size_t i = 0; i < length; i++)
		h->sum = h->sum * 31 + bytes[i];
}

/* Messages of any length arrive whole and in order, however little the socket takes at once. */
static void test_wire(void **state)
{
	static const size_t lengths[] = { 0, 1, 1000000, 7, 65536, 3000000, 0, 5 };
	struct heard sent = { 0 }, got = { 0 };
	struct wire a, b;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	wire_init(&a, fds[0], WIRE_LENGTH_MAX);
	wire_init(&b, fds[1], WIRE_LENGTH_MAX);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		unsigned char *data = malloc(lengths[i] + 1);

		for (size_t j = 0; j < lengths[i]; j++)
			data[j] = (unsigned char)(j * 7 + i);
		hear(&sent, i % 2 ? WIRE_RESULTS : WIRE_SNAPSHOT, data, lengths[i]);
		assert_int_equal(wire_send(&a, i % 2 ? WIRE_RESULTS : WIRE_SNAPSHOT, data, lengths[i]), 0);
		free(data);
	}
	assert_true(wire_waiting(&a) > 0);
	while (got.count < sent.count) {
		assert_int_equal(wire_flush(&a), 0);
		assert_int_equal(wire_read(&b, hear, &got), 0);
	}
	assert_memory_equal(&sent, &got, sizeof(got));
	assert_int_equal(wire_waiting(&a), 0);
	wire_free(&a);
	assert_int_equal(wire_read(&b, hear, &got), -EPIPE);
	wire_free(&b);
}

/* Of a message that is too long nothing is believed, nor is room made for it. */
static void test_wire_limit(void **state)
{
	struct heard got = { 0 };
	struct wire a, b;
	char data[2000] = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	wire_init(&a, fds[0], WIRE_LENGTH_MAX);
	wire_init(&b, fds[1], 1000);
	assert_int_equal(wire_send(&a, WIRE_RESULTS, data, sizeof(data)), 0);
	assert_int_equal(wire_read(&b, hear, &got), -EMSGSIZE);
	assert_int_equal(got.count, 0);
	wire_free(&a);
	wire_free(&b);
}

static void test_packets(void **state)
{
	const struct wire_packet p = { .kind = WIRE_SOCKET, .key = 42 };
	struct wire_packet got;
	int fds[2], passed, end[2];
	char byte = 'x';

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(wire_packet_read(fds[1], &got, &passed), -EAGAIN);
	assert_int_equal(pipe(end), 0);
	assert_int_equal(wire_packet_send(fds[0], &p, end[1]), 0);
	assert_int_equal(wire_packet_send(fds[0], &p, -1), 0);
	assert_int_equal(send(fds[0], &p, sizeof(p) - 1, 0), sizeof(p) - 1);
	close(end[1]);
	assert_int_equal(wire_packet_read(fds[1], &got, &passed), 0);
	assert_memory_equal(&got, &p, sizeof(p));
	assert_true(passed >= 0);
	assert_int_equal(write(passed, &byte, 1), 1);
	assert_int_equal(read(end[0], &byte, 1), 1);
	close(passed);
	close(end[0]);
	assert_int_equal(wire_packet_read(fds[1], &got, &passed), 0);
	assert_int_equal(passed, -1);
	assert_int_equal(wire_packet_read(fds[1], &got, &passed), -EPIPE);
	close(fds[0]);
	assert_int_equal(wire_packet_read(fds[1], &got, &passed), -EPIPE);
	close(fds[1]);
}

/* To an abstract address, as supervisors of user sessions use, too. */
static void test_notify(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char name[64], got[64];
	ssize_t length;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	(void)state;
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_send("READY=1"), 0);
	snprintf(name, sizeof(name), "@ringlb-test-%ld", (long)getpid());
	memcpy(at.sun_path, name, strlen(name));
	at.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&at,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(notify_send("STATUS=%d", 5), 0);
	length = recv(fd, got, sizeof(got), 0);
	assert_int_equal(length, 8);
	assert_memory_equal(got, "STATUS=5", 8);
	setenv("NOTIFY_SOCKET", "nonsense", 1);
	assert_int_equal(notify_send("READY=1"), -EINVAL);
	setenv("WATCHDOG_USEC", "3000000", 1);
	assert_int_equal(notify_watchdog_ms(), 1500);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_watchdog_ms(), 0);
	notify_end();
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_int_equal(notify_watchdog_ms(), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),      cmocka_unit_test(test_limit),   cmocka_unit_test(test_wire),
		cmocka_unit_test(test_wire_limit), cmocka_unit_test(test_packets), cmocka_unit_test(test_notify),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
