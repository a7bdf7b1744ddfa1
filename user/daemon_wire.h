/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon and its worker say to each other, over two sockets: a stream of messages of any length, and packets
 * that carry descriptors. Neither side ever waits for the other.
 */
#ifndef RINGLB_DAEMON_WIRE_H
#define RINGLB_DAEMON_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The worker's descriptors. */
enum { WIRE_STREAM_FD = 3, WIRE_PACKET_FD, WIRE_ICMP4_FD, WIRE_ICMP6_FD };

enum wire_type {
	/* to the worker: {"config": text of a configuration (without its key), "targets": [[key, number of pool, address]]} */
	WIRE_CHECKS,
	WIRE_SNAPSHOT, /* to the worker: snapshot.h */
	/* from the worker: struct wire_result, any number of them; none where there was none for WIRE_BEAT_MS */
	WIRE_RESULTS,
};

#define WIRE_BEAT_MS 1000u

#define WIRE_REASON 128u
struct wire_result {
	uint64_t key;
	uint32_t latency_us;
	uint32_t outcome;         /* enum probe_outcome */
	char reason[WIRE_REASON]; /* ended by a zero */
};

enum wire_packet_kind {
	WIRE_WANT_SOCKET,   /* from the worker: for the target key */
	WIRE_SOCKET,        /* the answer, with the descriptor, or with error */
	WIRE_LISTEN,        /* to the worker: serve HTTP there; without a descriptor: no more */
	WIRE_WANT_SNAPSHOT, /* from the worker: somebody asks */
};

struct wire_packet {
	uint32_t kind;
	int32_t error; /* -errno, or 0 */
	uint64_t key;
	int32_t domain, type, protocol;
	uint32_t reserved;
};

#define WIRE_LENGTH_MAX (256u << 20)

struct wire {
	int fd;
	size_t limit; /* bytes of a message from there, that are accepted */
	char *in, *out;
	size_t in_length, in_room, out_length, out_room, out_sent;
};

typedef void (*wire_fn)(void *context, enum wire_type type, const void *data, size_t length);

/* fd is not blocking, and becomes w's. */
void wire_init(struct wire *w, int fd, size_t limit);
void wire_free(struct wire *w);
/* Queues a message and sends what goes. 0, or -errno: the other side is gone. */
int wire_send(struct wire *w, enum wire_type type, const void *data, size_t length);
int wire_flush(struct wire *w);
/* Bytes that wait: poll for writing where there are any. */
size_t wire_waiting(const struct wire *w);
/* Gives each whole message that came to fn. 0; -EPIPE: the other side is gone; -EMSGSIZE: it says what it must not. */
int wire_read(struct wire *w, wire_fn fn, void *context);

/* One packet; descriptor -1 for none, and it stays the caller's. 0 or -errno (-EAGAIN: later). */
int wire_packet_send(int fd, const struct wire_packet *p, int descriptor);
/* *descriptor: -1, or one that is the caller's now, close-on-exec. 0, -EAGAIN, or -EPIPE. */
int wire_packet_read(int fd, struct wire_packet *p, int *descriptor);

#endif
