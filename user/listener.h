/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The HTTP listener: serves the last snapshot (snapshot.h) that it was given, and changes nothing. For a process without
 * privileges; the socket is bound by one that has them. One thread: the caller polls listener_fd and calls
 * listener_step.
 *
 *   /                 the status page
 *   /metrics          for Prometheus: OpenMetrics where the scrape asks for it, else text
 *   /api/v1/status    the snapshot; /api/v1/show, /stats, /history: what these commands print with --json
 *   /ready/SERVICE    200 or 503, with a line that says why
 *
 * Whatever clients do, it has at most LISTENER_CONNECTIONS of them, half as many of one address, with
 * LISTENER_MEMORY bytes for a request each; and a request or an answer that does not get done in time is given up, the
 * sooner the fewer places are left.
 */
#ifndef RINGLB_LISTENER_H
#define RINGLB_LISTENER_H

#include <stddef.h>

#include "diag.h"

#define LISTENER_CONNECTIONS 128u
#define LISTENER_MEMORY (16u * 1024)

struct listener;

/* A listening socket at "ADDRESS:PORT" (status_listen), close-on-exec; -errno with a message. "[::]" takes IPv4 too. */
int listener_bind(const char *where, struct diag *d);
/* Takes fd over. NULL without memory or descriptors. */
struct listener *listener_new(int fd);
void listener_free(struct listener *l); /* NULL is fine */

/* To be polled for reading. */
int listener_fd(const struct listener *l);
/* Milliseconds after which listener_step is to be called even if nothing happened; -1: never. */
int listener_timeout(const struct listener *l);
void listener_step(struct listener *l);
/* What to serve from now on: 0, or -EINVAL and what was served stays. */
int listener_snapshot(struct listener *l, const char *text, size_t length);

#endif
