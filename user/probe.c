/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is asked when: the heap of what is due, the queue for sockets, the events. */
#include "probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "probe_private.h"

#define EVENTS 64
#define ROUNDS 16 /* of events in one step, so that a flood of them does not keep the caller from the rest */
#define STALL_MS 250u

uint64_t probe_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t probe_random(struct probe_engine *e)
{
	if (!e->randoms) {
		if (getrandom(e->random, sizeof(e->random), 0) != sizeof(e->random))
			diag_fatal("getrandom failed");
		e->randoms = sizeof(e->random) / sizeof(*e->random);
	}
	return e->random[--e->randoms];
}

int probe_watch_fd(struct probe_engine *e, int fd, struct probe_watch *w, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = w };

	if (!events)
		return epoll_ctl(e->epoll, EPOLL_CTL_DEL, fd, NULL) ? -errno : 0;
	if (!epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &event))
		return 0;
	if (errno == EEXIST && !epoll_ctl(e->epoll, EPOLL_CTL_MOD, fd, &event))
		return 0;
	return -errno;
}

static void wait_until(struct probe *p, enum probe_phase phase, uint64_t due)
{
	p->phase = phase;
	p->due = due;
	probe_heap_put(&p->e->heap, p);
}

void probe_drop(struct probe *p)
{
	if (p->phase == PROBE_RUNNING && p->kind->stop)
		p->kind->stop(p);
	if (p->fd >= 0) {
		/* Closing alone would not do where another process has the same socket. */
		probe_watch_fd(p->e, p->fd, &p->watch, 0);
		close(p->fd);
	}
	p->fd = -1;
	p->e->sockets -= p->slot;
	p->slot = false;
}

/* Back to waiting for its turn. */
static void settle_down(struct probe *p)
{
	const struct config_check *c = p->check->is;
	struct probe_engine *e = p->e;
	uint64_t next;

	probe_drop(p);
	next = p->started + c->interval_ms -
	       (uint64_t)(c->jitter * (double)c->interval_ms * (double)(probe_random(e) >> 11) * 0x1p-53);
	wait_until(p, PROBE_IDLE, next > e->now ? next : e->now);
}

void probe_end(struct probe *p, enum probe_outcome outcome, const char *format, ...)
{
	uint64_t took = probe_now_us() - p->started_us;
	struct probe_engine *e = p->e;
	char reason[PROBE_REASON];
	struct probe_result result = {
		.key = p->key,
		.outcome = outcome,
		.latency_us = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took,
		.reason = reason,
	};
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	for (char *c = reason; *c; c++) { /* it may quote what came over the network */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	settle_down(p);
	e->options.result(e->options.context, &result);
}

static void time_up(struct probe *p)
{
	uint64_t ms = p->check->is->timeout_ms;
	bool whole = ms % 1000 == 0;

	probe_end(p, PROBE_BAD, "timeout after %llu%s %s", (unsigned long long)(whole ? ms / 1000 : ms),
		  whole ? "s" : "ms", p->kind->where(p));
}

static void run(struct probe *p)
{
	p->started_us = probe_now_us();
	p->connected = false;
	wait_until(p, PROBE_RUNNING, p->e->now + p->check->is->timeout_ms);
	p->kind->start(p);
}

/* Its turn has come, and there is a place for its socket. */
static void begin(struct probe *p)
{
	struct probe_engine *e = p->e;
	bool four = address_is_ipv4(&p->address), own = p->check->is->via_service;
	int fd;

	p->started = e->now;
	p->slot = true;
	if (++e->sockets > e->most_sockets)
		e->most_sockets = e->sockets;
	p->started_us = probe_now_us();
	wait_until(p, PROBE_ASKED, e->now + p->check->is->timeout_ms);
	if (own && !e->options.want_socket) {
		probe_end(p, PROBE_UNKNOWN, "this host can't check by way of the service");
	} else if (own) {
		e->options.want_socket(e->options.context, p->key, four ? AF_INET : AF_INET6, p->kind->type,
				       four ? p->kind->protocol : p->kind->protocol6);
	} else {
		fd = probe_socket_make(p);
		p->fd = fd < 0 ? -1 : fd;
		if (fd < 0)
			probe_end_errno(p, -fd);
		else
			run(p);
	}
}

void probe_engine_socket(struct probe_engine *e, uint64_t key, int fd, uint64_t now)
{
	struct probe *p = probe_find(e, key);
	int err;

	if (now > e->now)
		e->now = now;
	if (!p || p->phase != PROBE_ASKED || !p->check->is->via_service) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fd < 0) {
		probe_end_errno(p, -fd);
		return;
	}
	p->fd = fd;
	p->started = e->now; /* what its making took is not the target's */
	err = probe_socket_prepare(p, fd);
	if (err)
		probe_end_errno(p, -err);
	else
		run(p);
}

static void queue(struct probe *p)
{
	struct probe_engine *e = p->e;

	p->phase = PROBE_QUEUED;
	p->next = NULL;
	*e->queue_end = p;
	e->queue_end = &p->next;
	e->queued++;
}

static bool serve_queue(struct probe_engine *e)
{
	bool any = false;

	while (e->queue && e->sockets < e->options.sockets) {
		struct probe *p = e->queue;

		e->queue = p->next;
		if (!e->queue)
			e->queue_end = &e->queue;
		e->queued--;
		if (p->phase == PROBE_GONE) {
			p->next = e->gone;
			e->gone = p;
			continue;
		}
		if (e->now - p->due > e->waited_ms)
			e->waited_ms = e->now - p->due;
		begin(p);
		any = true;
	}
	return any;
}

static void serve_heap(struct probe_engine *e)
{
	while (e->heap.count && e->heap.probe[0]->due <= e->now) {
		struct probe *p = e->heap.probe[0];

		probe_heap_take(&e->heap, p);
		if (p->phase == PROBE_RUNNING) {
			time_up(p);
		} else if (p->phase == PROBE_ASKED) {
			probe_end(p, PROBE_UNKNOWN, "this host can't check it: no socket was made in time");
		} else if (p->kind == &probe_kind_echo && !p->check->is->via_service) {
			p->started = e->now; /* on a socket that all share */
			run(p);
		} else {
			queue(p);
		}
	}
}

static void serve_events(struct probe_engine *e)
{
	struct epoll_event event[EVENTS];
	int count = EVENTS;

	for (int round = 0; round < ROUNDS && count == EVENTS; round++) {
		count = epoll_wait(e->epoll, event, EVENTS, 0);
		for (int i = 0; i < count; i++) {
			struct probe_watch *w = event[i].data.ptr;

			w->ready(w, event[i].events);
		}
	}
}

/* The event of a probe, which may have ended since epoll_wait. */
void probe_ready(struct probe_watch *w, uint32_t events)
{
	struct probe *p = (struct probe *)w;

	if (p->phase == PROBE_RUNNING)
		p->kind->ready(p, events);
}

/* This process did not run, and so did not hear those who answered: they get the time back that they had. */
static void forgive_stall(struct probe_engine *e, uint64_t now)
{
	if (now < e->expected || now - e->expected < STALL_MS)
		return;
	for (size_t i = 0; i < e->probes; i++) {
		if (e->probe[i]->phase == PROBE_RUNNING)
			wait_until(e->probe[i], PROBE_RUNNING, e->probe[i]->due + (now - e->now));
	}
}

void probe_engine_step(struct probe_engine *e, uint64_t now)
{
	bool more = true;

	forgive_stall(e, now);
	e->now = now;
	serve_events(e);
	serve_heap(e);
	while (more) {
		more = serve_queue(e);
		more |= probe_web_step(e);
	}
	while (e->gone) {
		struct probe *p = e->gone;

		e->gone = p->next;
		free(p);
	}
	e->expected = probe_engine_next(e);
}

uint64_t probe_engine_next(const struct probe_engine *e)
{
	uint64_t web = probe_web_next(e), next = e->heap.count ? e->heap.probe[0]->due : PROBE_NEVER;

	return web < next ? web : next;
}

int probe_engine_fd(const struct probe_engine *e)
{
	return e->epoll;
}

struct probe_stats probe_engine_stats(struct probe_engine *e)
{
	struct probe_stats s = {
		.targets = e->probes,
		.queued = e->queued,
		.sockets = e->sockets,
		.most_sockets = e->most_sockets,
		.waited_ms = e->waited_ms,
	};

	for (size_t i = 0; i < e->probes; i++)
		s.running += e->probe[i]->phase == PROBE_RUNNING;
	e->waited_ms = 0;
	return s;
}
