/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connections of breaktest_client, by source port, and the traffic on them. */
#ifndef RINGLB_BREAKTEST_LINK_H
#define RINGLB_BREAKTEST_LINK_H

#include "breaktest.h"

#define TICK_MS 5
#define PORTS 65536

enum phase { GONE, CONNECTING, NAMING, OPEN, FINISHING };

struct link {
	enum phase phase;
	int fd;
	char name[NAME_BYTES];
	unsigned int named;       /* bytes of it that have come */
	uint64_t seed, up, down;  /* bytes of each stream so far */
	uint32_t chunk, put, due; /* the present chunk; of it with its head, written; of its answer, missing */
	double since;             /* of the connect, or of the present chunk */
	bool fresh, beaten;       /* the present chunk began after the beat; such a one was answered */
	bool listed;              /* in this command's list */
	const char *why;          /* broken, since the last beat */
};

extern struct link links[PORTS];
extern uint16_t live[PORTS]; /* those that are not GONE; dropping one puts the last in its place */
extern size_t lives;

struct traffic {
	int poller;             /* its events' data are ports */
	double interval, stall; /* milliseconds */
	bool paused;
	double slowest; /* milliseconds of the slowest answer */
	uint64_t bytes; /* of both streams */
};
extern struct traffic traffic;

double now_ms(void);
/* Begins to connect, and marks it as listed. */
void link_open(struct link *l, const char *address, uint16_t to);
/* Asks the server to close; of an OPEN one without an answer under way. */
void link_finish(struct link *l);
/* Closes, with a reset or without; that is not a break. */
void link_drop(struct link *l, bool reset);
/* There is something to read or write. */
void link_ready(struct link *l, uint32_t events);
/* Every TICK_MS: so many new chunks that each connection begins one an interval; and finds the stalled ones. */
void link_tick(void);

#endif
