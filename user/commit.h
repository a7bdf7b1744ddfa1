/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Carrying out a plan: everything is built aside in the mapped memory, published by one word, and what is no longer
 * used is freed after a grace period. Knows the datapath and netlink, prints nothing.
 */
#ifndef RINGLB_COMMIT_H
#define RINGLB_COMMIT_H

#include "datapath.h"
#include "instance.h"
#include "neighbour.h"
#include "plan.h"

struct running {
	struct datapath *dp;
	struct state *state;
	struct datapath_link *link; /* pinned links */
	size_t links;
};

/* What runs in the instance. 0; -ENOENT when nothing is attached; else -errno with a message in d. */
int running_open(const struct instance *i, struct running *out, struct diag *d);
/* The same, also where an older ringlb with another ABI made it: for an upgrade. */
int running_open_older(const struct instance *i, struct running *out, struct diag *d);
/* Of pins that are incomplete: the state alone; for what then is left to tidy up. */
int running_open_tables(const struct instance *i, struct running *out, struct diag *d);
void running_close(struct running *r);
/* For what stays open: reads anew what the data plane writes into the tables, the stamps of moved arcs. */
void running_refresh(struct running *r);
/* The pinned link of config interface i of what runs, or NULL. */
const struct datapath_link *running_link(const struct running *r, size_t interface);
/* That of the interface with this number, or NULL. */
const struct datapath_link *running_link_on(const struct running *r, unsigned int ifindex);
/* The interfaces that run: an array to be freed, names owned by r. */
struct plan_interface *running_interfaces(const struct running *r, size_t *count);
/* What a datapath's tables say. NULL with a message. */
struct state *running_state(struct datapath *dp, struct diag *d);
/* The stamp of this moment. 0 or -errno. */
int running_now(struct datapath *dp, uint32_t *stamp);
/* As flows_count, of what runs: count and left (or NULL) have RINGLB_MAX_BACKENDS elements, zeroed. */
void running_flows(const struct running *r, uint32_t now, uint32_t *count, uint32_t *left);
/*
 * Whether a daemon looks after the instance, as far as can be told: it says so every second. *silent: the seconds since it
 * last did; UINT32_MAX: never.
 */
#define RUNNING_DAEMON_SILENT 5u
bool running_watched(const struct running *r, uint32_t now, uint32_t *silent);
/* Fills in what plan_make is to know of what runs; to be freed with running_input_free. 0, or -errno with a message. */
int running_input(const struct running *r, struct plan_input *in, struct diag *d);
void running_input_free(struct plan_input *in);

/* Sizes of maps for a configuration. */
void commit_sizes(const struct state *next, struct datapath_sizes *out);
/* attach: loads, writes, publishes, attaches to every interface and pins: all or nothing. Warnings go to d. 0 or -errno. */
int commit_attach(const struct instance *i, struct plan *plan, struct diag *d);
/* apply: executes the plan's operations on what runs. On failure what ran still runs unchanged. 0 or -errno with a message. */
int commit_apply(const struct instance *i, struct running *r, struct plan *plan, struct diag *d);
/* detach: removes every pin, half-built ones too; r, what ran, may be NULL where it could not be opened. 0 or -errno with a message. */
int commit_detach(const struct instance *i, struct running *r, struct diag *d);

#endif
