/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Servers on the loopback interface in this very process, served in turn with the engine that asks them. */
#ifndef RINGLB_TESTS_PROBE_CASE_H
#define RINGLB_TESTS_PROBE_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe.h"

#define CASE_TARGETS 1024u

enum case_kind {
	CASE_ANSWERS, /* TCP: with text, then closes; UDP: with what answer makes */
	CASE_SILENT,  /* takes what comes */
	CASE_CLOSES,  /* TCP: at once */
	CASE_FULL,    /* TCP: a queue of connections that takes no more */
};

struct case_server {
	enum case_kind kind;
	const char *text; /* NULL: the text "NULL" of length 0 */
	/* UDP: the length of the answer in out, 0 for none; called again while it returns something, with another n. */
	size_t (*answer)(const uint8_t *got, size_t length, unsigned int n, uint8_t out[512]);
	int fd;
	uint16_t port;
	unsigned int accepted;
	char request[2048]; /* the last one */
	int connection[64]; /* open ones; 0: none */
};

struct case_seen {
	unsigned int count;
	enum probe_outcome outcome;
	uint32_t latency_us;
	char reason[PROBE_REASON];
};

struct case_world {
	struct probe_engine *engine;
	struct case_server *server;
	size_t servers;
	struct case_seen seen[CASE_TARGETS]; /* by key */
	/* via_service */
	unsigned int wanted;
	uint64_t wanted_key;
	int wanted_domain, wanted_type, wanted_protocol;
	void (*on_result)(struct case_world *w, const struct probe_result *r);
};

uint64_t case_now(void);
/* In milliseconds, without serving anyone. */
void case_sleep(unsigned int ms);
void case_listen(struct case_server *s, int type);
void case_close(struct case_server *s);
void case_start(struct case_world *w, unsigned int sockets, bool services);
void case_end(struct case_world *w);
/* Serves engine and servers until the target has count results, or until ms have passed: false. */
bool case_until(struct case_world *w, uint64_t key, unsigned int count, unsigned int ms);
void case_serve(struct case_world *w, int ms); /* once, after waiting for at most ms */
/* The only target, at 127.0.0.1; its first result. */
const struct case_seen *case_ask(struct case_world *w, const struct config_check *c);
struct address case_address(void);

#endif
