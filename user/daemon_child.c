// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The daemon's side of its worker: starting it, telling it what to check and to serve, and making sockets for it. */
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon_private.h"
#include "listener.h"
#include "probe.h"

#define RESTART_MS 1000u
#define SILENT_MS 10000u       /* a worker that is not heard of for so long hangs */
#define UNASKED_MS 60000u      /* how often it is said that this host can't check a backend */
#define RESULTS_MAX (4u << 20) /* bytes of a message of results */
#define FILES 4096u
#define PACKETS_AT_ONCE 64

/* Sockets for echo requests are made while this process still may. */
static int echo_socket(int family, int protocol)
{
	return socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
}

int worker_open(struct daemon *d)
{
	struct worker *w = &d->worker;
	struct rlimit files;

	w->icmp4 = echo_socket(AF_INET, IPPROTO_ICMP);
	w->icmp6 = echo_socket(AF_INET6, IPPROTO_ICMPV6);
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < FILES) {
		files.rlim_cur = files.rlim_max < FILES ? files.rlim_max : FILES;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	return spawner_start(w);
}

static void close_pair(int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

static void packet(struct worker *w, const struct wire_packet *p, int fd)
{
	if (w->packets >= 0)
		wire_packet_send(w->packets, p, fd);
}

/* What it needs to know to begin with. */
static void introduce(struct daemon *d)
{
	const struct wire_packet listen = { .kind = WIRE_LISTEN };

	if (d->worker.listener >= 0)
		packet(&d->worker, &listen, d->worker.listener);
	worker_checks(d);
	daemon_snapshot(d);
}

void worker_start(struct daemon *d)
{
	const struct wire_packet first = { .kind = 0 }, second = { .kind = 1 };
	struct worker *w = &d->worker;
	int stream[2], packets[2];

	w->restart = d->now + RESTART_MS;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, stream))
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, packets)) {
		close_pair(stream);
		return;
	}
	if (wire_packet_send(w->channel, &first, stream[1]) || wire_packet_send(w->channel, &second, packets[1])) {
		close_pair(stream);
		close_pair(packets);
		return;
	}
	close(stream[1]);
	close(packets[1]);
	w->restart = NEVER;
	w->heard = d->now;
	w->packets = packets[0];
	wire_init(&w->stream, stream[0], RESULTS_MAX);
	daemon_poll(d, w->stream.fd, false);
	daemon_poll(d, w->packets, false);
	introduce(d);
}

/* Nothing more is said to it. */
static void hang_up(struct daemon *d)
{
	struct worker *w = &d->worker;

	wire_free(&w->stream);
	if (w->packets >= 0)
		close(w->packets);
	w->packets = -1;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Both end when nobody talks to them any more, and at the latest with this process, which may not kill them. */
static void wait_for(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	for (int i = 0; i < 200 && pid > 0 && !waitpid(pid, NULL, WNOHANG); i++)
		nanosleep(&pause, NULL);
}

void worker_stop(struct daemon *d)
{
	struct worker *w = &d->worker;

	hang_up(d);
	close_if_open(w->channel);
	wait_for(w->spawner);
	w->spawner = 0;
	close_if_open(w->listener);
	close_if_open(w->icmp4);
	close_if_open(w->icmp6);
	w->channel = w->listener = w->icmp4 = w->icmp6 = -1;
	free(w->listens);
	w->listens = NULL;
	w->restart = NEVER;
}

void worker_ended(struct daemon *d)
{
	struct worker *w = &d->worker;

	if (w->spawner <= 0 || waitpid(w->spawner, NULL, WNOHANG) != w->spawner)
		return;
	w->spawner = 0;
	log_line(LOG_LEVEL_ERROR, "the process that makes workers is gone: the daemon ends, packets keep flowing");
	d->err = -ECHILD;
}

/* It is gone, or says what it must not: another one takes its place. */
static void give_up(struct daemon *d, const char *what)
{
	hang_up(d);
	d->worker.restart = d->now + RESTART_MS;
	log_line(LOG_LEVEL_ERROR, "the worker %s: no check and no page for a second", what);
}

void worker_watch(struct daemon *d)
{
	if (d->worker.stream.fd >= 0 && d->now - d->worker.heard >= SILENT_MS)
		give_up(d, "hangs, another one takes its place");
}

/* Nothing follows for its health, but who looks after it must know that nobody does. */
static void say_unasked(struct daemon *d, const struct wire_result *r)
{
	struct health_backend *b = health_by_id(&d->health, r->key);
	char address[ADDRESS_TEXT];

	if (!b || (b->unasked && d->now - b->unasked < UNASKED_MS))
		return;
	b->unasked = d->now;
	if (log_limit(&d->transitions, d->now))
		log_line(LOG_LEVEL_WARNING, "pool %s: backend %s (%s): %s; its health stays as it was",
			 d->health.pool[b->pool].name, b->name, address_text(&b->address, address), r->reason);
}

static void take_results(void *context, enum wire_type type, const void *data, size_t length)
{
	struct daemon *d = context;
	struct wire_result r;

	for (size_t at = 0; type == WIRE_RESULTS && length - at >= sizeof(r); at += sizeof(r)) {
		memcpy(&r, (const char *)data + at, sizeof(r));
		r.reason[sizeof(r.reason) - 1] = '\0';
		for (char *c = r.reason; *c; c++) /* for logs and terminals, whoever says it */
			if ((unsigned char)*c < ' ' || *c == 0x7f)
				*c = '?';
		if (r.outcome == PROBE_GOOD || r.outcome == PROBE_BAD)
			health_result(&d->health,
				      &(struct health_result){ r.key, r.outcome == PROBE_GOOD, r.latency_us, r.reason },
				      d->now);
		else
			say_unasked(d, &r);
	}
}

void worker_stream(struct daemon *d)
{
	struct wire *w = &d->worker.stream;
	int err = wire_read(w, take_results, d);

	d->worker.heard = d->now;
	daemon_say_health(d);
	if (!err)
		err = wire_flush(w);
	if (err)
		give_up(d, "ended");
	else
		daemon_poll(d, w->fd, wire_waiting(w) > 0);
}

void worker_say(struct daemon *d, enum wire_type type, const char *text)
{
	struct wire *w = &d->worker.stream;

	if (w->fd < 0)
		return;
	if (wire_send(w, type, text, strlen(text)))
		give_up(d, "ended");
	else
		daemon_poll(d, w->fd, wire_waiting(w) > 0);
}

/* The first service of the pool, in the file's order; SIZE_MAX: none. */
static size_t service_of(const struct config *c, size_t pool)
{
	for (size_t i = 0; i < c->services; i++)
		if (c->service[i].pool == pool)
			return i;
	return SIZE_MAX;
}

static json_t *targets_of(const struct daemon *d, size_t pool)
{
	const struct config *c = d->running.state->config;
	const struct config_pool *p = &c->pool[pool];
	size_t service = service_of(c, pool);
	json_t *list = json_array();
	char text[ADDRESS_TEXT];

	for (size_t i = 0; p->check && i < p->backends; i++) {
		const struct config_backend *b = &p->backend[i];
		const struct health_backend *h = health_find(&d->health, p->name, b->identity, &b->address);
		const struct address *to = &b->address;

		if (!h || b->state == CONFIG_MAINT || (p->check->via_service && service == SIZE_MAX))
			continue;
		if (p->check->via_service)
			to = &c->service[service].address;
		json_array_append_new(list, json_pack("[I, I, s]", (json_int_t)h->id, (json_int_t)pool,
						      address_text(to, text)));
	}
	return list;
}

void worker_checks(struct daemon *d)
{
	struct config shown;
	json_t *targets = json_array(), *root;
	char *config = NULL, *text;

	if (d->running.dp) {
		shown = *d->running.state->config;
		memset(shown.hash_key, 0, sizeof(shown.hash_key)); /* not the worker's business */
		shown.hash_key_file = NULL;
		config = config_emit(&shown, true);
		for (size_t i = 0; i < shown.pools; i++) {
			json_t *more = targets_of(d, i);

			json_array_extend(targets, more);
			json_decref(more);
		}
	}
	root = json_pack("{s:s, s:o}", "config", config ? config : "", "targets", targets);
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	free(config);
	if (text)
		worker_say(d, WIRE_CHECKS, text);
	free(text);
}

static const char *wanted_listener(const struct daemon *d)
{
	return d->running.dp ? d->running.state->config->status_listen : d->worker.listens;
}

void worker_listen(struct daemon *d)
{
	const struct wire_packet p = { .kind = WIRE_LISTEN };
	const char *want = wanted_listener(d);
	struct worker *w = &d->worker;
	struct diag diag = { 0 };
	bool same = want && w->listens && !strcmp(want, w->listens);

	if ((same && w->listener >= 0) || (!want && !w->listens))
		return;
	if (!same && w->listener >= 0) {
		close(w->listener);
		w->listener = -1;
		packet(w, &p, -1);
	}
	if (want)
		w->listener = listener_bind(want, &diag);
	if (!same) { /* what can't be bound is said once, and tried again */
		log_diag(&diag, NULL);
		free(w->listens);
		w->listens = want ? xstrdup(want) : NULL;
	}
	if (w->listener >= 0) {
		log_line(LOG_LEVEL_INFO, "serving metrics and the status page at http://%s/", want);
		packet(w, &p, w->listener);
	}
	diag_free(&diag);
}

static const struct state_backend *backend_of(const struct daemon *d, uint64_t key, size_t *pool)
{
	const struct health_backend *h = health_by_id(&d->health, key);
	const struct state *s = d->running.state;

	for (size_t i = 0; h && d->running.dp && i < s->pools; i++) {
		if (strcmp(s->pool[i].name, d->health.pool[h->pool].name))
			continue;
		*pool = i;
		for (size_t j = 0; j < s->pool[i].backends; j++) {
			const struct state_backend *b = &s->pool[i].backend[j];

			if (!strcmp(b->identity, h->identity) && address_equal(&b->address, &h->address))
				return b;
		}
	}
	return NULL;
}

/* Nothing is taken for granted of what the worker says. */
static int make_socket(struct daemon *d, const struct wire_packet *want)
{
	const struct state_backend *b;
	size_t pool, service;

	b = backend_of(d, want->key, &pool);
	if (!b || !d->running.state->config->pool[pool].check)
		return -ENOENT;
	service = service_of(d->running.state->config, pool);
	if (service == SIZE_MAX || !d->running.state->config->pool[pool].check->via_service)
		return -ENOENT;
	return probe_path_socket(d, b, service, want);
}

void worker_packet(struct daemon *d)
{
	struct worker *w = &d->worker;

	for (int i = 0; i < PACKETS_AT_ONCE; i++) {
		struct wire_packet want, answer = { .kind = WIRE_SOCKET };
		int fd, made, err = wire_packet_read(w->packets, &want, &fd);

		if (fd >= 0)
			close(fd); /* nobody asked for it */
		if (err == -EAGAIN)
			return;
		if (err) {
			give_up(d, "ended");
			return;
		}
		if (want.kind == WIRE_WANT_SNAPSHOT)
			daemon_snapshot_asked(d);
		if (want.kind != WIRE_WANT_SOCKET)
			continue;
		made = make_socket(d, &want);
		answer.key = want.key;
		answer.error = made < 0 ? made : 0;
		packet(w, &answer, made);
		if (made >= 0)
			close(made);
	}
}
