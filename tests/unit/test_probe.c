// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What each type of check says of servers that answer, refuse, hang, or answer otherwise; and the engine that asks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "probe_case.h"
#include "probe_private.h"
#include "quick.h"
#include "random_pool.h"

#define TIMES .interval_ms = 100, .timeout_ms = 5000
#define SHORT_MS 200u /* where the time is to run out: elsewhere a busy machine must not be what is tested */

static uint64_t timeout_for(const char *reason)
{
	return strncmp(reason, "timeout", 7) ? 5000 : SHORT_MS;
}

static void assert_seen(const struct case_seen *s, enum probe_outcome outcome, const char *reason, const char *about)
{
	if (s->outcome != outcome || strcmp(s->reason, reason))
		fail_msg("%s: %d \"%s\", not %d \"%s\"", about, s->outcome, s->reason, outcome, reason);
}

static struct case_world world(struct case_server *servers, size_t count)
{
	return (struct case_world){ .server = servers, .servers = count };
}

static void test_tcp(void **state)
{
	struct case_server server[] = { { .kind = CASE_CLOSES }, { .kind = CASE_FULL }, { .kind = CASE_CLOSES } };
	static const struct {
		enum probe_outcome outcome;
		const char *reason;
	} row[] = { { PROBE_GOOD, "connected" },
		    { PROBE_BAD, "timeout after 200ms while connecting" },
		    { PROBE_BAD, "connection refused" } };
	struct case_world *w = calloc(1, sizeof(*w));

	(void)state;
	for (size_t i = 0; i < 3; i++)
		case_listen(&server[i], SOCK_STREAM);
	close(server[2].fd);
	*w = world(server, 2);
	case_start(w, 10, false);
	for (size_t i = 0; i < 3; i++) {
		struct config_check c = { .type = CHECK_TCP, .port = server[i].port, TIMES };

		c.timeout_ms = timeout_for(row[i].reason);
		assert_seen(case_ask(w, &c), row[i].outcome, row[i].reason, "tcp");
	}
	case_end(w);
	free(w);
}

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void test_http(void **state)
{
	LEAVE_IF_QUICK();
	static const struct {
		enum case_kind kind;
		const char *text;
		char *expect, *body;
		enum probe_outcome outcome;
		const char *reason;
	} row[] = {
		{ CASE_ANSWERS, OK, "200-399", NULL, PROBE_GOOD, "status 200" },
		{ CASE_ANSWERS, OK, "204", NULL, PROBE_BAD, "status 200, want 204" },
		{ CASE_ANSWERS, OK, "200", "ell", PROBE_GOOD, "status 200" },
		{ CASE_ANSWERS, OK, "200", "hex:6c6c", PROBE_GOOD, "status 200" },
		{ CASE_ANSWERS, OK, "200", "elk", PROBE_BAD, "status 200, and no \"elk\" in 5 bytes of body" },
		{ CASE_ANSWERS, "HTTP/1.1 200 OK\r\n\r\n", "200", "elk", PROBE_BAD,
		  "status 200, and no \"elk\" in 0 bytes of body" },
		{ CASE_ANSWERS, "HTTP/1.1 204 No Content\r\n\r\n", "204", NULL, PROBE_GOOD, "status 204" },
		{ CASE_ANSWERS, "HTTP/1.1 500 Sorry\r\n\r\nno", "200-399", NULL, PROBE_BAD,
		  "status 500, want 200-399" },
		/* no redirect is followed */
		{ CASE_ANSWERS, "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n", "302",
		  NULL, PROBE_GOOD, "status 302" },
		{ CASE_ANSWERS, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx", "200", NULL, PROBE_GOOD,
		  "status 200" },
		{ CASE_ANSWERS, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "200", "short", PROBE_BAD,
		  "transfer closed with 45 bytes remaining to read" },
		{ CASE_ANSWERS, "hello\n", "200", NULL, PROBE_BAD, "Received HTTP/0.9 when not allowed" },
		{ CASE_CLOSES, NULL, "200", NULL, PROBE_BAD, "closed without an answer" },
		{ CASE_SILENT, NULL, "200", NULL, PROBE_BAD, "timeout after 200ms waiting for the answer" },
		{ CASE_FULL, NULL, "200", NULL, PROBE_BAD, "timeout after 200ms while connecting" },
	};
	struct case_world *w = calloc(1, sizeof(*w));

	(void)state;
	setenv("http_proxy", "http://127.0.0.1:1", 1); /* has no say */
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct case_server server = { .kind = row[i].kind, .text = row[i].text };
		struct config_check c = { .type = CHECK_HTTP, .path = "/", .expect = row[i].expect, TIMES };
		char about[32];

		case_listen(&server, SOCK_STREAM);
		c.timeout_ms = timeout_for(row[i].reason);
		c.port = server.port;
		c.body = row[i].body;
		*w = world(&server, 1);
		case_start(w, 10, false);
		sprintf(about, "http row %zu", i);
		assert_seen(case_ask(w, &c), row[i].outcome, row[i].reason, about);
		case_end(w);
	}
	unsetenv("http_proxy");
	free(w);
}

static void test_http_request(void **state)
{
	struct case_server server = { .kind = CASE_ANSWERS, .text = OK };
	struct config_check c = { .type = CHECK_HTTP, .path = "/a/../b?c=%41", .expect = "200", TIMES };
	struct case_world *w = calloc(1, sizeof(*w));
	char wanted[64];

	(void)state;
	case_listen(&server, SOCK_STREAM);
	c.port = server.port;
	*w = world(&server, 1);
	case_start(w, 10, false);
	case_ask(w, &c);
	assert_int_equal(strncmp(server.request, "GET /a/../b?c=%41 HTTP/1.1\r\n", 28), 0);
	sprintf(wanted, "\r\nHost: 127.0.0.1:%u\r\n", server.port);
	assert_non_null(strstr(server.request, wanted));
	assert_non_null(strstr(server.request, "\r\nConnection: close\r\n"));
	c.host = "no.such.example";
	assert_seen(case_ask(w, &c), PROBE_GOOD, "status 200", "a host that no resolver knows");
	assert_non_null(strstr(server.request, "\r\nHost: no.such.example\r\n"));
	case_end(w);
	free(w);
}

static void test_large_body(void **state)
{
	static char text[100000];
	struct case_server server = { .kind = CASE_ANSWERS, .text = text };
	struct config_check c = { .type = CHECK_HTTP, .path = "/", .expect = "200", .body = "needle", TIMES };
	struct case_world *w = calloc(1, sizeof(*w));

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "HTTP/1.1 200 OK\r\n\r\n", 19);
	case_listen(&server, SOCK_STREAM);
	c.port = server.port;
	*w = world(&server, 1);
	case_start(w, 10, false);
	assert_seen(case_ask(w, &c), PROBE_BAD, "status 200, and no \"needle\" in the first 65536 bytes of body",
		    "large");
	memcpy(text + 65536, "needle", 6);
	assert_seen(case_ask(w, &c), PROBE_GOOD, "status 200", "large, with it");
	case_end(w);
	free(w);
}

static void test_udp(void **state)
{
	static const struct {
		enum case_kind kind;
		const char *text;
		char *expect;
		bool refused;
		enum probe_outcome outcome;
		const char *reason;
	} row[] = {
		{ CASE_ANSWERS, "a PONG b", "PONG", false, PROBE_GOOD, "answer of 8 bytes" },
		{ CASE_ANSWERS, "a PONG b", NULL, false, PROBE_GOOD, "answer of 8 bytes" },
		{ CASE_ANSWERS, "", NULL, false, PROBE_GOOD, "answer of 0 bytes" },
		{ CASE_ANSWERS, "", "PONG", false, PROBE_BAD, "answer of 0 bytes without \"PONG\"" },
		{ CASE_ANSWERS, "sorry", "PONG", false, PROBE_BAD, "answer of 5 bytes without \"PONG\"" },
		{ CASE_SILENT, NULL, "PONG", false, PROBE_BAD, "timeout after 200ms waiting for the answer" },
		{ CASE_SILENT, NULL, "PONG", true, PROBE_BAD, "connection refused" },
	};
	struct case_world *w = calloc(1, sizeof(*w));

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct case_server server = { .kind = row[i].kind, .text = row[i].text };
		struct config_check c = { .type = CHECK_UDP, .send = "hex:50494e47", .expect = row[i].expect, TIMES };
		char about[32];

		case_listen(&server, SOCK_DGRAM);
		c.timeout_ms = timeout_for(row[i].reason);
		c.port = server.port;
		*w = world(&server, 1);
		if (row[i].refused) {
			w->servers = 0;
			case_close(&server);
		}
		case_start(w, 10, false);
		sprintf(about, "udp row %zu", i);
		assert_seen(case_ask(w, &c), row[i].outcome, row[i].reason, about);
		if (!row[i].refused)
			assert_string_equal(server.request, "PING");
		case_end(w);
	}
	free(w);
}

/* Answers to a query for an A record, by their number: what is not one comes first. */
static size_t make_answer(const uint8_t *got, size_t length, uint8_t rcode, const char *records, size_t record_bytes,
			  uint8_t out[512])
{
	memcpy(out, got, length);
	out[2] |= 0x80;
	out[3] = rcode;
	out[7] = (uint8_t)(record_bytes / 16);
	memcpy(out + length, records, record_bytes);
	return length + record_bytes;
}

/* CNAME to the root takes no 4 bytes of data: two records, the address in the second. */
#define RECORDS                                                                                                        \
	"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\xc0\0\2\1"                                                                       \
	"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\xc0\0\2\2"

static size_t answer_after_noise(const uint8_t *got, size_t length, unsigned int n, uint8_t out[512])
{
	size_t size = make_answer(got, length, 0, RECORDS, 32, out);

	out[3] = n < 4 ? 2 : 0; /* SERVFAIL, to those who believe it */
	switch (n) {
	case 0:
		out[0] ^= 1; /* another id */
		return size;
	case 1:
		out[13] ^= 1; /* another question */
		return size;
	case 2:
		out[2] &= 0x7f; /* a query */
		return size;
	case 3:
		return 11; /* no header */
	case 4:
		out[14] ^= 0x20; /* the case of a letter */
		return size;
	default:
		return 0;
	}
}

static size_t answer_nxdomain(const uint8_t *got, size_t length, unsigned int n, uint8_t out[512])
{
	return n ? 0 : make_answer(got, length, 3, "", 0, out);
}

static size_t answer_formerr(const uint8_t *got, size_t length, unsigned int n, uint8_t out[512])
{
	make_answer(got, length, 1, "", 0, out);
	out[5] = 0; /* without the question */
	return n ? 0 : 12;
}

static void test_dns(void **state)
{
	static const struct {
		size_t (*answer)(const uint8_t *got, size_t length, unsigned int n, uint8_t out[512]);
		char *expect;
		enum probe_outcome outcome;
		const char *reason;
	} row[] = {
		{ answer_after_noise, "NOERROR", PROBE_GOOD, "answer NOERROR" },
		{ answer_after_noise, "192.0.2.2", PROBE_GOOD, "answer 192.0.2.2" },
		{ answer_after_noise, "192.0.2.3", PROBE_BAD, "answer without 192.0.2.3" },
		{ answer_after_noise, "2001:db8::1", PROBE_BAD, "answer without 2001:db8::1" },
		{ answer_nxdomain, "NOERROR", PROBE_BAD, "answer NXDOMAIN (3), want NOERROR" },
		{ answer_nxdomain, "192.0.2.2", PROBE_BAD, "answer NXDOMAIN (3), want 192.0.2.2" },
		{ answer_nxdomain, "NXDOMAIN", PROBE_GOOD, "answer NXDOMAIN" },
		{ answer_formerr, "NOERROR", PROBE_BAD, "answer FORMERR (1), want NOERROR" },
	};
	struct case_world *w = calloc(1, sizeof(*w));

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct case_server server = { .kind = CASE_ANSWERS, .answer = row[i].answer };
		struct config_check c = {
			.type = CHECK_DNS, .query = "www.example.org", .query_type = 1, .expect = row[i].expect, TIMES
		};
		char about[32];

		case_listen(&server, SOCK_DGRAM);
		c.timeout_ms = timeout_for(row[i].reason);
		c.port = server.port;
		*w = world(&server, 1);
		case_start(w, 10, false);
		sprintf(about, "dns row %zu", i);
		assert_seen(case_ask(w, &c), row[i].outcome, row[i].reason, about);
		assert_memory_equal(server.request + 2, "\1\0\0\1\0\0\0\0\0\0\3www\7example\3org\0\0\1\0\1", 31);
		case_end(w);
	}
	free(w);
}

/* In memory of exactly its size, so that the sanitizer sees a step beyond. */
static void test_dns_hostile(void **state)
{
	uint8_t query[512], answer[512];
	size_t length = dns_query(query, 0x1234, "www.example.org", 1);
	unsigned int understood = 0;
	char reason[PROBE_REASON];
	bool good;

	(void)state;
	random_start();
	for (unsigned int i = 0; i < 200000; i++) {
		size_t size = make_answer(query, length, 0, RECORDS, 32, answer);
		uint8_t *exact;

		for (uint32_t n = random_below(4); n; n--)
			answer[12 + random_below((uint32_t)size - 12)] = (uint8_t)random_u64();
		answer[7] = (uint8_t)random_below(5);
		size = random_below(2) ? size : random_below((uint32_t)size + 1);
		exact = malloc(size ? size : 1);
		assert_non_null(exact);
		memcpy(exact, answer, size);
		understood += dns_answer(query, length, exact, size, "192.0.2.2", &good, reason) && good;
		free(exact);
	}
	assert_true(understood > 1000);
}

static void test_icmp(void **state)
{
	struct config_check c = { .type = CHECK_ICMP, TIMES };
	struct case_world *w = calloc(1, sizeof(*w));
	int types[] = { SOCK_DGRAM, SOCK_RAW };
	unsigned int tried = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct probe_options options;
		int fd = socket(i & 2 ? AF_INET6 : AF_INET, types[i & 1], i & 2 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
		struct probe_target target = { .key = 7, .check = &c };

		if (fd < 0)
			continue;
		tried++;
		target.address = i & 2 ? (struct address){ .byte = { [15] = 1 } } : case_address();
		*w = world(NULL, 0);
		case_start(w, 10, false);
		options = w->engine->options;
		probe_engine_free(w->engine);
		*(i & 2 ? &options.icmp6 : &options.icmp4) = fd;
		w->engine = probe_engine_new(&options);
		probe_engine_set(w->engine, &target, 1, case_now());
		assert_true(case_until(w, 7, 2, 5000));
		assert_seen(&w->seen[7], PROBE_GOOD, "echo reply", "icmp");
		case_end(w);
	}
	free(w);
	if (!tried)
		skip(); /* neither root, nor does net.ipv4.ping_group_range allow it */
}

static void test_icmp_without_socket(void **state)
{
	struct config_check c = { .type = CHECK_ICMP, TIMES };
	struct case_world *w = calloc(1, sizeof(*w));

	(void)state;
	*w = world(NULL, 0);
	case_start(w, 10, false);
	probe_echo_close(w->engine);
	w->engine->echo4 = w->engine->echo6 = NULL;
	assert_seen(case_ask(w, &c), PROBE_UNKNOWN, "this host can't check it: no socket for echo requests", "icmp");
	case_end(w);
	free(w);
}

static void test_source(void **state)
{
	struct case_server server = { .kind = CASE_ANSWERS, .text = "ok" };
	struct config_check c = { .type = CHECK_UDP, .send = "x", .has_source4 = true, TIMES };
	struct case_world *w = calloc(1, sizeof(*w));

	(void)state;
	case_listen(&server, SOCK_DGRAM);
	c.port = server.port;
	c.source4 = case_address();
	c.source4.byte[15] = 77; /* 127.0.0.77 */
	*w = world(&server, 1);
	case_start(w, 10, false);
	assert_seen(case_ask(w, &c), PROBE_GOOD, "answer of 2 bytes", "a source of this host");
	c.source4.byte[12] = 192; /* 192.0.0.77 */
	assert_seen(case_ask(w, &c), PROBE_UNKNOWN, "this host can't check it: Cannot assign requested address",
		    "a source of another host");
	case_end(w);
	free(w);
}

static void many(struct case_world *w, const struct config_check *c, size_t count)
{
	struct probe_target *target = calloc(count, sizeof(*target));

	for (size_t i = 0; i < count; i++)
		target[i] = (struct probe_target){ .key = i, .check = c, .address = case_address() };
	probe_engine_set(w->engine, target, count, case_now());
	free(target);
}

static void test_thousand_targets(void **state)
{
	LEAVE_IF_QUICK();
	struct case_server server = { .kind = CASE_CLOSES };
	struct config_check c = { .type = CHECK_TCP, .interval_ms = 1000, .timeout_ms = 1000 };
	struct case_world *w = calloc(1, sizeof(*w));
	struct rlimit few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &few), 0);
	few.rlim_cur = 110; /* 10 sockets, the 64 of the server, and some */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	case_listen(&server, SOCK_STREAM);
	c.port = server.port;
	*w = world(&server, 1);
	case_start(w, 10, false);
	many(w, &c, 1000);
	for (unsigned int i = 0; i < 1000; i++) {
		assert_true(case_until(w, i, 2, 30000));
		assert_seen(&w->seen[i], PROBE_GOOD, "connected", "one of a thousand");
	}
	assert_in_range(probe_engine_stats(w->engine).most_sockets, 1, 10);
	assert_int_equal(probe_engine_stats(w->engine).targets, 1000);
	case_end(w);
	free(w);
	few.rlim_cur = few.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
}

/* None answers: each waits for its turn, and each gets it. */
static void test_bounded_when_all_hang(void **state)
{
	struct case_server server[] = { { .kind = CASE_FULL }, { .kind = CASE_FULL } };
	struct config_check c = { .type = CHECK_TCP, .interval_ms = 100, .timeout_ms = 100 };
	struct config_check http = {
		.type = CHECK_HTTP, .path = "/", .expect = "200", .interval_ms = 100, .timeout_ms = 100
	};
	struct probe_target target[60];
	struct case_world *w = calloc(1, sizeof(*w));
	struct probe_stats s;

	(void)state;
	case_listen(&server[0], SOCK_STREAM);
	case_listen(&server[1], SOCK_STREAM);
	c.port = server[0].port;
	http.port = server[1].port;
	for (size_t i = 0; i < 60; i++)
		target[i] = (struct probe_target){ i, i % 2 ? &c : &http, case_address() };
	*w = world(server, 2);
	case_start(w, 12, false);
	probe_engine_set(w->engine, target, 60, case_now());
	for (unsigned int i = 0; i < 60; i++) {
		assert_true(case_until(w, i, 2, 30000));
		assert_seen(&w->seen[i], PROBE_BAD, "timeout after 100ms while connecting", "one of many");
	}
	s = probe_engine_stats(w->engine);
	assert_int_equal(s.most_sockets, 12);
	assert_in_range(s.waited_ms, 100, 5000);
	/* half of them go while most are queued; the others go on */
	assert_true(s.queued > 10);
	probe_engine_set(w->engine, target, 30, case_now());
	memset(w->seen, 0, sizeof(w->seen));
	for (unsigned int i = 0; i < 30; i++)
		assert_true(case_until(w, i, 2, 30000));
	for (unsigned int i = 30; i < 60; i++)
		assert_int_equal(w->seen[i].count, 0);
	case_end(w);
	free(w);
}

static void test_jitter(void **state)
{
	struct case_server server = { .kind = CASE_CLOSES };
	struct config_check c = { .type = CHECK_TCP, .interval_ms = 1000, .timeout_ms = 1000, .jitter = 0.2 };
	struct case_world *w = calloc(1, sizeof(*w));
	uint64_t started = 0, least = UINT64_MAX, most = 0, now = 1000000;
	struct probe_target target = { 5, &c, case_address() };

	(void)state;
	case_listen(&server, SOCK_STREAM);
	c.port = server.port;
	*w = world(&server, 1);
	case_start(w, 10, false);
	probe_engine_set(w->engine, &target, 1, now);
	for (unsigned int i = 0; i < 200; i++) {
		uint64_t apart;

		now = probe_engine_next(w->engine); /* the time is ours: seconds pass in no time */
		probe_engine_step(w->engine, now);
		apart = now - started;
		if (started) {
			least = apart < least ? apart : least;
			most = apart > most ? apart : most;
		}
		started = now;
		while (w->seen[5].count == i) { /* the answer of the loopback interface */
			case_sleep(1);
			probe_engine_step(w->engine, now);
		}
	}
	assert_in_range(least, 800, 830);
	assert_in_range(most, 970, 1000);
	case_end(w);
	free(w);
}

static void test_targets_change(void **state)
{
	struct case_server server[] = { { .kind = CASE_ANSWERS, .text = OK }, { .kind = CASE_SILENT } };
	struct config_check good = { .type = CHECK_HTTP, .path = "/", .expect = "200", TIMES }, hangs = good,
			    also = good;
	struct case_world *w = calloc(1, sizeof(*w));
	struct probe_target target[4];
	struct probe *kept;
	uint64_t soon;

	(void)state;
	case_listen(&server[0], SOCK_STREAM);
	case_listen(&server[1], SOCK_STREAM);
	good.port = also.port = server[0].port;
	hangs.port = server[1].port;
	hangs.timeout_ms = hangs.interval_ms = 20000;
	*w = world(server, 2);
	case_start(w, 10, false);
	target[0] = (struct probe_target){ 9, &good, case_address() };
	target[1] = (struct probe_target){ 3, &hangs, case_address() };
	target[2] = (struct probe_target){ 4, &good, case_address() };
	probe_engine_set(w->engine, target, 1, case_now());
	assert_true(case_until(w, 9, 1, 5000));
	probe_engine_set(w->engine, target, 3, case_now()); /* what is added is asked within a second */
	kept = probe_find(w->engine, 9);
	soon = case_now() + 5000;
	while (!server[1].accepted) {
		assert_true(case_now() < soon);
		case_serve(w, 1000);
	}
	/* 9 stays, though its check is another copy; 3 goes amid its question; 4 has another check; 5 is new */
	target[0].check = &also;
	target[1] = (struct probe_target){ 5, &good, case_address() };
	target[2].check = &hangs;
	probe_engine_set(w->engine, target, 3, case_now());
	assert_ptr_equal(probe_find(w->engine, 9), kept);
	assert_null(probe_find(w->engine, 3));
	memset(w->seen, 0, sizeof(w->seen));
	assert_true(case_until(w, 9, 3, 5000) && case_until(w, 5, 3, 5000));
	assert_int_equal(w->seen[3].count + w->seen[4].count, 0);
	/* another address is another target */
	target[0].address.byte[15] = 2;
	probe_engine_set(w->engine, target, 1, case_now());
	memset(w->seen, 0, sizeof(w->seen));
	assert_true(case_until(w, 9, 1, 5000));
	assert_seen(&w->seen[9], PROBE_BAD, "connection refused", "at 127.0.0.2");
	probe_engine_set(w->engine, NULL, 0, case_now());
	assert_int_equal(probe_engine_next(w->engine), PROBE_NEVER);
	case_serve(w, 0);
	assert_int_equal(probe_engine_stats(w->engine).sockets, 0);
	case_end(w);
	free(w);
}

static void forget_all(struct case_world *w, const struct probe_result *r)
{
	(void)r;
	probe_engine_set(w->engine, NULL, 0, case_now());
}

/* From within the report of a result, with others running, queued and waiting. */
static void test_targets_go_within_a_result(void **state)
{
	struct case_server server = { .kind = CASE_ANSWERS, .text = OK };
	struct config_check c[] = { { .type = CHECK_HTTP, .path = "/", .expect = "200", TIMES },
				    { .type = CHECK_TCP, TIMES },
				    { .type = CHECK_UDP, .send = "x", TIMES } };
	struct case_world *w = calloc(1, sizeof(*w));

	(void)state;
	case_listen(&server, SOCK_STREAM);
	*w = world(&server, 1);
	w->on_result = forget_all;
	for (unsigned int round = 0; round < 30; round++) {
		struct probe_target target[200];
		unsigned int results = 0;

		case_start(w, 5, false);
		for (size_t i = 0; i < 200; i++) {
			c[i % 3].port = server.port;
			target[i] = (struct probe_target){ i, &c[(i + round) % 3], case_address() };
		}
		probe_engine_set(w->engine, target, 200, case_now());
		memset(w->seen, 0, sizeof(w->seen));
		while (probe_engine_next(w->engine) != PROBE_NEVER)
			case_serve(w, 1000);
		for (size_t i = 0; i < 200; i++)
			results += w->seen[i].count;
		assert_int_equal(results, 1);
		probe_engine_free(w->engine);
	}
	case_close(&server);
	free(w);
}

static void test_stall(void **state)
{
	struct case_server server = { .kind = CASE_ANSWERS, .text = OK };
	struct config_check c = { .type = CHECK_HTTP, .path = "/", .expect = "200", TIMES };
	struct case_world *w = calloc(1, sizeof(*w));
	struct probe_target target = { 2, &c, case_address() };

	(void)state;
	case_listen(&server, SOCK_STREAM);
	c.timeout_ms = SHORT_MS;
	c.port = server.port;
	*w = world(&server, 1);
	case_start(w, 10, false);
	probe_engine_set(w->engine, &target, 1, case_now());
	while (!probe_engine_stats(w->engine).running)
		case_serve(w, 1000);
	case_sleep(700); /* this process hangs, not the server */
	assert_true(case_until(w, 2, 1, 5000));
	assert_seen(&w->seen[2], PROBE_GOOD, "status 200", "after a stall");
	case_end(w);
	free(w);
}

static void test_by_way_of_the_service(void **state)
{
	struct case_server server = { .kind = CASE_ANSWERS, .text = OK };
	struct config_check c = { .type = CHECK_HTTP, .path = "/", .expect = "200", .via_service = true, TIMES };
	struct case_world *w = calloc(1, sizeof(*w));
	struct probe_target target = { 8, &c, case_address() };
	int fd, kept;

	(void)state;
	case_listen(&server, SOCK_STREAM);
	c.timeout_ms = 1000;
	c.port = server.port;
	*w = world(&server, 1);
	case_start(w, 10, true);
	probe_engine_set(w->engine, &target, 1, case_now());
	while (!w->wanted)
		case_serve(w, 1000);
	assert_int_equal(w->wanted_key, 8);
	assert_int_equal(w->wanted_domain, AF_INET);
	assert_int_equal(w->wanted_type, SOCK_STREAM);
	case_serve(w, 30);
	assert_int_equal(w->seen[8].count, 0);
	fd = socket(w->wanted_domain, w->wanted_type, w->wanted_protocol); /* as the other process makes it: blocking */
	kept = dup(fd);                                                    /* and keeps */
	probe_engine_socket(w->engine, 8, fd, case_now());
	assert_true(case_until(w, 8, 1, 5000));
	assert_seen(&w->seen[8], PROBE_GOOD, "status 200", "by the socket that was given");
	close(kept);
	/* an error, and no answer at all */
	while (w->wanted < 2)
		case_serve(w, 1000);
	probe_engine_socket(w->engine, 8, -EPERM, case_now());
	assert_seen(&w->seen[8], PROBE_UNKNOWN, "this host can't check it: Operation not permitted", "refused");
	assert_true(case_until(w, 8, 3, 5000));
	assert_seen(&w->seen[8], PROBE_UNKNOWN, "this host can't check it: no socket was made in time", "never");
	/* too late */
	probe_engine_set(w->engine, NULL, 0, case_now());
	fd = socket(AF_INET, SOCK_STREAM, 0);
	probe_engine_socket(w->engine, 8, fd, case_now());
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	probe_engine_free(w->engine);
	/* a host that makes none */
	case_start(w, 10, false);
	assert_seen(case_ask(w, &c), PROBE_UNKNOWN, "this host can't check by way of the service", "none");
	case_end(w);
	free(w);
}

/* The other process keeps the socket open, and packets still come to it when the target is long forgotten. */
static void test_socket_that_lives_on(void **state)
{
	struct case_server server = { .kind = CASE_SILENT };
	struct config_check c = { .type = CHECK_UDP, .send = "x", .via_service = true, TIMES };
	struct case_world *w = calloc(1, sizeof(*w));
	struct probe_target target = { 8, &c, case_address() };
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);
	int fd, kept;

	(void)state;
	case_listen(&server, SOCK_DGRAM);
	c.port = server.port;
	*w = world(&server, 1);
	case_start(w, 10, true);
	probe_engine_set(w->engine, &target, 1, case_now());
	while (!w->wanted)
		case_serve(w, 1000);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	kept = dup(fd);
	probe_engine_socket(w->engine, 8, fd, case_now());
	while (!server.accepted)
		case_serve(w, 1000);
	probe_engine_set(w->engine, NULL, 0, case_now());
	case_serve(w, 0);
	assert_int_equal(getsockname(kept, (struct sockaddr *)&to, &length), 0);
	assert_int_equal(connect(kept, &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr)), 0);
	assert_int_equal(bind(kept, (struct sockaddr *)&to, length), 0);
	assert_int_equal(sendto(server.fd, "late", 4, 0, (struct sockaddr *)&to, length), 4);
	assert_int_equal(recv(kept, &to, 4, MSG_PEEK), 4);
	case_serve(w, 0); /* must not meet the target's memory */
	close(kept);
	case_end(w);
	free(w);
}

static void test_heap(void **state)
{
	struct probe *probe = calloc(200, sizeof(*probe));
	struct probe_heap heap = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 200; i++)
		probe[i].place = NOT_QUEUED;
	for (unsigned int i = 0; i < 20000; i++) {
		struct probe *p = &probe[random_below(200)];

		if (random_below(3)) {
			probe_heap_take(&heap, p); /* its place is by the time that it had */
			p->due = random_below(1000);
			probe_heap_put(&heap, p);
		} else {
			probe_heap_take(&heap, p);
			assert_int_equal(p->place, NOT_QUEUED);
		}
		for (size_t j = 0; j < heap.count; j++) {
			assert_int_equal(heap.probe[j]->place, j);
			assert_true(!j || heap.probe[(j - 1) / 2]->due <= heap.probe[j]->due);
		}
	}
	free(heap.probe);
	free(probe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_http),
		cmocka_unit_test(test_http_request),
		cmocka_unit_test(test_large_body),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_dns),
		cmocka_unit_test(test_dns_hostile),
		cmocka_unit_test(test_icmp),
		cmocka_unit_test(test_icmp_without_socket),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_thousand_targets),
		cmocka_unit_test(test_bounded_when_all_hang),
		cmocka_unit_test(test_jitter),
		cmocka_unit_test(test_targets_change),
		cmocka_unit_test(test_targets_go_within_a_result),
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_by_way_of_the_service),
		cmocka_unit_test(test_socket_that_lives_on),
		cmocka_unit_test(test_heap),
	};

	return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
