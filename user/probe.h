/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes: asks thousands of targets at their intervals whether they answer as their checks want. One thread, no call
 * that waits, no privileges, a bounded number of sockets: who has its turn when all are in use waits for one. What a
 * result means for a backend is health.h's.
 *
 * A target is asked interval after interval, each shortened by up to its jitter at random, so that a backend's end is
 * noticed within fall * interval + timeout. The time is the caller's: milliseconds of CLOCK_MONOTONIC. When the process
 * was not run for a while, the answers that arrived meanwhile still count.
 */
#ifndef RINGLB_PROBE_H
#define RINGLB_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

#define PROBE_REASON 160u
#define PROBE_NEVER UINT64_MAX
#define PROBE_SOCKETS 512u /* a good number of sockets */

struct probe_engine;

struct probe_target {
	uint64_t key;                     /* the caller's name for it, another for each */
	const struct config_check *check; /* copied */
	struct address address;           /* the backend's; with via_service that of the service */
};

enum probe_outcome {
	PROBE_GOOD,
	PROBE_BAD,
	PROBE_UNKNOWN, /* this host could not ask, which says nothing of the target */
};

struct probe_result {
	uint64_t key;
	enum probe_outcome outcome;
	uint32_t latency_us;
	const char
		*reason; /* for people: "status 200", "connection refused", "timeout after 1s in the TLS handshake" */
};

struct probe_options {
	unsigned int sockets; /* at most as many in use at once */
	/*
	 * Sockets for echo requests, raw or IPPROTO_ICMP datagram ones, that become the engine's; -1: it tries to make one
	 * of its own, which sysctl net.ipv4.ping_group_range may allow.
	 */
	int icmp4, icmp6;
	void *context;
	/* Called from probe_engine_step. May call probe_engine_set. */
	void (*result)(void *context, const struct probe_result *r);
	/*
	 * A target with via_service needs a socket whose packets go to its backend, not where routes lead: made by whoever
	 * may set marks. Answered with probe_engine_socket, from within or later. NULL: such targets are PROBE_UNKNOWN.
	 */
	void (*want_socket)(void *context, uint64_t key, int domain, int type, int protocol);
};

struct probe_stats {
	size_t targets, running, queued;
	unsigned int sockets, most_sockets; /* in use, and the most that ever were */
	uint64_t waited_ms;                 /* the longest that a target waited for a socket since the last call */
};

/* NULL and errno. */
struct probe_engine *probe_engine_new(const struct probe_options *o);
void probe_engine_free(struct probe_engine *e); /* NULL too */

/*
 * The targets from now on. Those that are the same as before (key, check, address) go on undisturbed; of those that are
 * gone no result comes any more. New ones are asked first within an interval, or a second where that is shorter.
 */
void probe_engine_set(struct probe_engine *e, const struct probe_target *target, size_t targets, uint64_t now);

/* An epoll instance, readable when probe_engine_step has something to do before probe_engine_next(). */
int probe_engine_fd(const struct probe_engine *e);
uint64_t probe_engine_next(const struct probe_engine *e);
void probe_engine_step(struct probe_engine *e, uint64_t now);

/* The socket that was wanted for a target, or -errno. It is the engine's from then on, which may close it at once. */
void probe_engine_socket(struct probe_engine *e, uint64_t key, int fd, uint64_t now);

struct probe_stats probe_engine_stats(struct probe_engine *e);

#endif
