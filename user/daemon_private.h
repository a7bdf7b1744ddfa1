/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by daemon*.c only. Times are milliseconds of CLOCK_MONOTONIC. */
#ifndef RINGLB_DAEMON_PRIVATE_H
#define RINGLB_DAEMON_PRIVATE_H

#include <sys/types.h>

#include "commit.h"
#include "daemon.h"
#include "daemon_wire.h"
#include "health.h"
#include "log.h"
#include "nexthop.h"
#include "watch.h"

#define NEVER UINT64_MAX

/* The process that serves and probes. */
struct worker {
	pid_t spawner;      /* 0: none */
	int channel;        /* to it */
	struct wire stream; /* -1: no worker */
	int packets;
	uint64_t heard;   /* of it, when */
	uint64_t restart; /* when there is to be another */
	int listener;     /* bound, or -1 */
	char *listens;    /* status_listen that it is bound to, or that can't be bound; NULL: none */
	int icmp4, icmp6; /* for its echo requests, or -1 */
};

/* What a probe through the data plane needs in the kernel: daemon_probe.c. */
struct probe_path;

struct daemon {
	const struct daemon_options *options;
	const struct instance *instance;
	int epoll, signals, changes; /* descriptors; changes: of the run directory, where locks come and go */
	uint64_t now;
	bool stop;
	int err; /* why it ends; 0: it was told to */
	/* what runs */
	struct running running; /* dp NULL: nothing */
	dev_t device;           /* of the pins */
	ino_t inode;
	bool known; /* something ran before */
	struct health health;
	struct log_limit transitions;
	char **warning; /* of the last commit, so that they are not said again and again */
	size_t warnings;
	char *failure; /* of the last commit, likewise; NULL: it succeeded */
	char *missing; /* interfaces, as said; NULL: none */
	char *status;  /* as the supervisor was told; NULL: not yet */
	/* what is to be done, and when */
	uint64_t tick, look, said_due, upkeep, reload;
	uint64_t blocked; /* until then somebody else has the lock: nothing is tried */
	/* reloads */
	bool reloaded, reload_ok;
	char *reload_message;
	char reload_time[32];
	/* next hops */
	struct netlink *nl;
	struct watch *watch;
	struct nexthops hops;
	bool links;         /* an interface changed */
	uint64_t links_due; /* not before */
	uint64_t hops_due, hops_took;
	size_t unresolved;
	struct worker worker;
	struct probe_path *path;
	uint64_t watchdog; /* period; 0: none */
	uint64_t fed;      /* the watchdog, when */
	struct daemon_snapshots *snapshots;
};

uint64_t daemon_clock(void);

/* daemon_state.c: what runs, as this daemon knows it. */
/* Notices what others did, and learns it. */
void daemon_look(struct daemon *d);
/* After a commit of its own; learns: the configuration may be another. */
void daemon_learn(struct daemon *d, bool learns);
void daemon_forget(struct daemon *d);
/* Says every second that there is a daemon. */
void daemon_mark(struct daemon *d, bool runs);
/* Logs what happened to backends' health. */
void daemon_say_health(struct daemon *d);
/* What is known of the backends differs from what the kernel was told. */
bool daemon_health_differs(const struct daemon *d);

/* daemon_commit.c */
/*
 * Makes what runs what health and time make of it: with the same configuration. attach: and puts the program onto
 * interfaces that lack it, which may fail, and must then not keep the rest from being done. 0; -EAGAIN: soon again;
 * -errno, logged.
 */
int daemon_upkeep(struct daemon *d, bool attach);
/* Makes it what FILE says, as apply does. The same; its result is kept for those who ask. */
int daemon_reload(struct daemon *d);
/* When upkeep is due although nothing happens; NEVER. */
uint64_t daemon_upkeep_due(const struct daemon *d);

/* daemon_hops.c */
int daemon_hops_open(struct daemon *d);
void daemon_hops_close(struct daemon *d);
void daemon_hops_event(struct daemon *d); /* the watch is readable */
/* Looks all of them up and writes them. 0; -EAGAIN: soon again. */
int daemon_hops_refresh(struct daemon *d);
/* Whether an interface of what runs is back, or not as it should be; says which are gone. */
bool daemon_interfaces(struct daemon *d);

/* daemon_spawn.c: starts what makes workers; what it is sent are the two ends of one, numbered 0 and 1. 0 or -errno. */
int spawner_start(struct worker *w);

/* daemon_child.c */
int worker_open(struct daemon *d); /* before privileges go: what only they can make */
void worker_start(struct daemon *d);
void worker_stop(struct daemon *d);
void worker_ended(struct daemon *d);  /* a child of this process ended */
void worker_stream(struct daemon *d); /* something came, or can go */
void worker_packet(struct daemon *d);
void worker_watch(struct daemon *d);  /* every second: one that hangs is replaced */
void worker_checks(struct daemon *d); /* they may be others */
void worker_listen(struct daemon *d); /* likewise the place to listen at */
void worker_say(struct daemon *d, enum wire_type type, const char *text);
/* What descriptors are to be polled for. */
void daemon_poll(struct daemon *d, int fd, bool write);
void daemon_unpoll(struct daemon *d, int fd);

/* daemon_probe.c: sockets whose packets go to one backend as the data plane sends them. */
/* A socket for the backend with this index, by the way of the service; not blocking. Or -errno. */
int probe_path_socket(struct daemon *d, const struct state_backend *b, size_t service, const struct wire_packet *want);
void probe_path_close(struct daemon *d);

/* daemon_snapshot.c: what the worker serves. */
void daemon_snapshot_open(struct daemon *d);
void daemon_snapshot_close(struct daemon *d);
void daemon_snapshot(struct daemon *d);       /* makes one, and sends it */
void daemon_snapshot_tick(struct daemon *d);  /* every second: the same where the last one is old */
void daemon_snapshot_asked(struct daemon *d); /* by the worker: the same, but not as often as it likes */

#endif
