/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon: looks after an instance that is attached. One loop without waiting calls: what changes is noticed by its
 * event, and everything that follows goes through change.h, as every command does.
 */
#ifndef RINGLB_DAEMON_H
#define RINGLB_DAEMON_H

#include "diag.h"
#include "instance.h"

struct daemon_options {
	const struct instance *instance;
	const char *file;     /* for reloads, absolute */
	const char *command;  /* for the lock's holder line */
	const char *fallback; /* why FILE is not what was attached, for the status; or NULL */
};

/*
 * Makes sure that there is one daemon an instance: a descriptor to be held as long as it runs, close-on-exec, or -errno
 * with a message that names the other one.
 */
int daemon_lock(const struct instance *i, struct diag *d);
void daemon_unlock(const struct instance *i, int fd);
/* Until a signal ends it. 0, or -errno after a line in the log. What is attached stays so. */
int daemon_run(const struct daemon_options *o);
/* The process without privileges that daemon_run starts: its listener and probes. Descriptors: daemon_wire.h. 0 or -errno. */
int daemon_worker(void);

#endif
