// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The worker: what faces the network, in a process that may do nothing. It is told what to check and what to serve, and
 * tells results; where it fails or is taken over, packets are none of its business.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon_private.h"
#include "listener.h"
#include "probe.h"

#define RESULTS 256u /* that are sent together */
#define EVENTS 16
#define FRESH_MS 900u    /* what is younger is served */
#define LOOK_MS 60000u   /* how often it is told that checks wait */
#define WAITED_MS 1000u  /* what is worth a word */
#define PATIENCE_MS 500u /* after that what is there is served, whatever its age */

struct worker_self {
	struct wire stream;
	int epoll, packets;
	struct probe_engine *engine;
	struct listener *listener;
	struct wire_result result[RESULTS];
	size_t results;
	uint64_t said;   /* when the last went out */
	uint64_t looked; /* how long checks waited, when */
	char *snapshot;  /* the last, for a listener that comes later */
	size_t snapshot_length;
	uint64_t snapshot_at; /* when it came */
	uint64_t asked;       /* for another one, when: clients wait for it; 0: they don't */
	int err;
};

static uint64_t now_ms(void)
{
	return daemon_clock();
}

static void poll_for(struct worker_self *s, int fd, bool write)
{
	struct epoll_event e = { .events = EPOLLIN | (write ? (uint32_t)EPOLLOUT : 0), .data.fd = fd };

	if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, fd, &e) && errno == ENOENT)
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e);
}

static void send_results(struct worker_self *s)
{
	uint64_t now = now_ms();

	if (s->results || now - s->said >= WIRE_BEAT_MS) {
		s->err = wire_send(&s->stream, WIRE_RESULTS, s->result, s->results * sizeof(*s->result));
		s->said = now;
	}
	s->results = 0;
	if (!s->err)
		poll_for(s, s->stream.fd, wire_waiting(&s->stream) > 0);
}

static void take_result(void *context, const struct probe_result *r)
{
	struct worker_self *s = context;
	struct wire_result *out;

	if (s->results == RESULTS)
		send_results(s);
	out = &s->result[s->results++];
	*out = (struct wire_result){ .key = r->key, .latency_us = r->latency_us, .outcome = r->outcome };
	strncpy(out->reason, r->reason, sizeof(out->reason) - 1);
}

static void want_socket(void *context, uint64_t key, int domain, int type, int protocol)
{
	struct worker_self *s = context;
	const struct wire_packet p = {
		.kind = WIRE_WANT_SOCKET, .key = key, .domain = domain, .type = type, .protocol = protocol
	};
	int err = wire_packet_send(s->packets, &p, -1);

	if (err)
		probe_engine_socket(s->engine, key, err, now_ms());
}

/* Targets of a message; those that are not understood are left out. */
static size_t read_targets(json_t *list, const struct config *c, struct probe_target *out)
{
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_int_t key, pool;
		const char *address;

		if (json_unpack(json_array_get(list, i), "[I, I, s]", &key, &pool, &address) || pool < 0 ||
		    (size_t)pool >= c->pools || !c->pool[pool].check)
			continue;
		out[count] = (struct probe_target){ .key = (uint64_t)key, .check = c->pool[pool].check };
		if (!address_parse(address, &out[count].address))
			count++;
	}
	return count;
}

static void take_checks(struct worker_self *s, const char *text, size_t length)
{
	struct probe_target *target;
	struct diag d = { 0 };
	struct config *c = NULL;
	const char *config;
	json_t *root = json_loadb(text, length, 0, NULL), *list;
	size_t count = 0;

	if (!root || json_unpack(root, "{s:s, s:o}", "config", &config, "targets", &list))
		goto out;
	if (*config)
		c = config_parse("checks", config, strlen(config), &d);
	target = xcalloc(json_array_size(list) + 1, sizeof(*target));
	if (c)
		count = read_targets(list, c, target);
	probe_engine_set(s->engine, target, count, now_ms());
	free(target);
out:
	log_diag(&d, "checks");
	diag_free(&d);
	config_free(c);
	json_decref(root);
}

/* Somebody wants something. Everybody waits for a moment where what could be served is old. */
static void clients_ask(struct worker_self *s, uint64_t now)
{
	const struct wire_packet p = { .kind = WIRE_WANT_SNAPSHOT };

	if (s->asked || now - s->snapshot_at < FRESH_MS || wire_packet_send(s->packets, &p, -1))
		return;
	s->asked = now;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, listener_fd(s->listener), NULL);
}

static void clients_go_on(struct worker_self *s, uint64_t now)
{
	s->snapshot_at = now;
	if (s->asked && s->listener)
		poll_for(s, listener_fd(s->listener), false);
	s->asked = 0;
}

static void take_snapshot(struct worker_self *s, const void *text, size_t length)
{
	clients_go_on(s, now_ms());
	free(s->snapshot);
	s->snapshot = xcalloc(length + 1, 1);
	memcpy(s->snapshot, text, length);
	s->snapshot_length = length;
	if (s->listener)
		listener_snapshot(s->listener, s->snapshot, length);
}

static void take_message(void *context, enum wire_type type, const void *data, size_t length)
{
	struct worker_self *s = context;

	if (type == WIRE_CHECKS)
		take_checks(s, data, length);
	else if (type == WIRE_SNAPSHOT)
		take_snapshot(s, data, length);
}

static void listen_at(struct worker_self *s, int fd)
{
	if (s->listener) {
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, listener_fd(s->listener), NULL);
		listener_free(s->listener);
	}
	s->asked = 0;
	s->listener = fd >= 0 ? listener_new(fd) : NULL;
	if (!s->listener)
		return;
	poll_for(s, listener_fd(s->listener), false);
	if (s->snapshot)
		listener_snapshot(s->listener, s->snapshot, s->snapshot_length);
}

static void take_packets(struct worker_self *s)
{
	struct wire_packet p;
	int fd;

	for (;;) {
		int err = wire_packet_read(s->packets, &p, &fd);

		if (err == -EAGAIN)
			return;
		if (err) {
			s->err = err;
			return;
		}
		if (p.kind == WIRE_SOCKET)
			probe_engine_socket(s->engine, p.key, fd >= 0 ? fd : p.error ? p.error : -EIO, now_ms());
		else if (p.kind == WIRE_LISTEN)
			listen_at(s, fd);
		else if (fd >= 0)
			close(fd);
	}
}

static void say_waits(struct worker_self *s, uint64_t now)
{
	uint64_t waited;

	if (now - s->looked < LOOK_MS)
		return;
	s->looked = now;
	waited = probe_engine_stats(s->engine).waited_ms;
	if (waited >= WAITED_MS)
		log_line(
			LOG_LEVEL_WARNING,
			"checks waited up to %llu ms for one of the %u sockets that are in use at once: what ends is noticed "
			"so much later; longer intervals or shorter timeouts help",
			(unsigned long long)waited, PROBE_SOCKETS);
}

static int timeout(const struct worker_self *s)
{
	uint64_t now = now_ms(), next = probe_engine_next(s->engine);
	int wait = next <= now ? 0 : next - now > WIRE_BEAT_MS ? (int)WIRE_BEAT_MS : (int)(next - now);
	int served = s->listener ? listener_timeout(s->listener) : -1;

	if (s->asked)
		served = s->asked + PATIENCE_MS <= now ? 0 : (int)(s->asked + PATIENCE_MS - now);
	return served >= 0 && served < wait ? served : wait;
}

static void loop(struct worker_self *s)
{
	struct epoll_event event[EVENTS];

	while (!s->err) {
		int count = epoll_wait(s->epoll, event, EVENTS, timeout(s));

		for (int i = 0; i < count && !s->err; i++) {
			if (event[i].data.fd == s->stream.fd) {
				s->err = wire_read(&s->stream, take_message, s);
				if (!s->err)
					s->err = wire_flush(&s->stream);
			} else if (event[i].data.fd == s->packets) {
				take_packets(s);
			} else if (s->listener && event[i].data.fd == listener_fd(s->listener)) {
				clients_ask(s, now_ms());
			}
		}
		probe_engine_step(s->engine, now_ms());
		say_waits(s, now_ms());
		if (s->asked && now_ms() - s->asked >= PATIENCE_MS)
			clients_go_on(s, now_ms());
		if (s->listener && !s->asked)
			listener_step(s->listener);
		if (!s->err)
			send_results(s);
	}
}

static int given(int fd)
{
	return fcntl(fd, F_GETFD) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -1 : fd;
}

int daemon_worker(void)
{
	struct worker_self s = { .packets = given(WIRE_PACKET_FD), .epoll = epoll_create1(EPOLL_CLOEXEC) };
	const struct probe_options options = {
		.sockets = PROBE_SOCKETS,
		.icmp4 = given(WIRE_ICMP4_FD),
		.icmp6 = given(WIRE_ICMP6_FD),
		.context = &s,
		.result = take_result,
		.want_socket = want_socket,
	};

	prctl(PR_SET_NAME, "ringlb-worker");
	if (given(WIRE_STREAM_FD) < 0 || s.packets < 0 || s.epoll < 0)
		return -EBADF;
	wire_init(&s.stream, WIRE_STREAM_FD, WIRE_LENGTH_MAX);
	s.engine = probe_engine_new(&options);
	if (!s.engine)
		return -errno;
	poll_for(&s, s.stream.fd, false);
	poll_for(&s, s.packets, false);
	poll_for(&s, probe_engine_fd(s.engine), false);
	loop(&s);
	listener_free(s.listener);
	probe_engine_free(s.engine);
	wire_free(&s.stream);
	free(s.snapshot);
	return s.err == -EPIPE ? 0 : s.err;
}
