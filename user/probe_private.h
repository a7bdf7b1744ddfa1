/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by probe*.c only. probe.c says who is asked when, with which socket; a kind knows one way of asking. A kind
 * ends what it started with probe_end, from any of its functions but stop and where.
 */
#ifndef RINGLB_PROBE_PRIVATE_H
#define RINGLB_PROBE_PRIVATE_H

#include <sys/epoll.h>
#include <sys/socket.h>

#include "probe.h"

#define NOT_QUEUED SIZE_MAX

struct probe;

/* What an event of the epoll instance is for. */
struct probe_watch {
	void (*ready)(struct probe_watch *w, uint32_t events);
};

/* A check as several targets have it. */
struct probe_check {
	unsigned int targets;
	struct config_check *is;
};

enum probe_phase {
	PROBE_IDLE,    /* until due */
	PROBE_QUEUED,  /* for a socket */
	PROBE_ASKED,   /* someone else makes it */
	PROBE_RUNNING, /* until due at the latest */
	PROBE_GONE,    /* not wanted any more: freed when nothing can point to it */
};

struct probe_kind {
	int type, protocol, protocol6; /* of its socket */
	/* fd is made, or -1 where the kind does without; runs until probe_end. */
	void (*start)(struct probe *p);
	/* Of fd. */
	void (*ready)(struct probe *p, uint32_t events);
	/* Frees what start made. NULL: nothing but fd. */
	void (*stop)(struct probe *p); /* may take fd, and leave it -1 */
	/* What it was at when its time was up: "while connecting". */
	const char *(*where)(struct probe *p);
};

struct probe {
	struct probe_watch watch; /* first */
	struct probe_engine *e;
	const struct probe_kind *kind;
	struct probe_check *check;
	uint64_t key;
	struct address address;
	enum probe_phase phase;
	int fd;
	bool slot; /* counts as a socket */
	uint64_t due;
	size_t place;     /* in the heap, or NOT_QUEUED */
	uint64_t started; /* the last time, and when it should have */
	uint64_t started_us;
	struct probe *next; /* in the queue, or among those that are gone */
	/* the kinds' */
	bool connected;
	uint64_t cookie; /* what an answer must carry */
	struct probe_transfer *transfer;
};

struct probe_heap {
	struct probe **probe;
	size_t count, room;
};

/* The one that is due first is probe[0]. */
void probe_heap_put(struct probe_heap *h, struct probe *p); /* p->due is set; also moves one that is in it */
void probe_heap_take(struct probe_heap *h, struct probe *p);

struct probe_engine {
	struct probe_options options;
	int epoll;
	uint64_t now, expected; /* of this step; when it should have been at the latest */
	struct probe **probe;   /* by key */
	size_t probes;
	struct probe_heap heap;
	struct probe *queue, **queue_end, *gone;
	size_t queued;
	unsigned int sockets, most_sockets;
	uint64_t waited_ms;
	struct probe_echo *echo4, *echo6;
	struct probe_web *web;
	uint64_t random[32];
	size_t randoms; /* that are left */
};

extern const struct probe_kind probe_kind_tcp, probe_kind_udp, probe_kind_dns, probe_kind_web, probe_kind_echo;

struct probe *probe_find(const struct probe_engine *e, uint64_t key);
__attribute__((format(printf, 3, 4))) void probe_end(struct probe *p, enum probe_outcome outcome, const char *format,
						     ...);
/* With what an error number says of the target or of this host. */
void probe_end_errno(struct probe *p, int error);
/* What it has for asking: freed. */
void probe_drop(struct probe *p);
uint64_t probe_random(struct probe_engine *e);
uint64_t probe_now_us(void);
void probe_ready(struct probe_watch *w, uint32_t events); /* the watch of a probe */
/* 0 or -errno. events 0: no more. */
int probe_watch_fd(struct probe_engine *e, int fd, struct probe_watch *w, uint32_t events);

socklen_t probe_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *out);
/* The source that the check wants for this target, or NULL. */
const struct address *probe_source(const struct probe *p);
/* A socket for p->kind, not blocking, or -errno. */
int probe_socket_make(const struct probe *p);
/* Makes one ready that was made here or elsewhere: not blocking, bound to the source. 0 or -errno. */
int probe_socket_prepare(const struct probe *p, int fd);

/* probe_dns.c: a query in out, its length returned; 0 where the name is none. */
size_t dns_query(uint8_t out[512], uint16_t id, const char *name, uint16_t type);
/* False: not an answer to this query. Else good says whether it is what was expected, and reason what it is. */
bool dns_answer(const uint8_t *query, size_t query_length, const uint8_t *answer, size_t length, const char *expect,
		bool *good, char reason[PROBE_REASON]);

/* probe_icmp.c, probe_http.c: what the targets of a kind share. */
int probe_echo_open(struct probe_engine *e);
void probe_echo_close(struct probe_engine *e);
int probe_web_open(struct probe_engine *e);
void probe_web_close(struct probe_engine *e);
uint64_t probe_web_next(const struct probe_engine *e);
/* Whether something was done. */
bool probe_web_step(struct probe_engine *e);

#endif
