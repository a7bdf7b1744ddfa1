/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A state in the mapped memory: where its tables, services and manifest lie, and their bytes. Everything is written
 * beside what is published, until encode_publish.
 */
#ifndef RINGLB_ENCODE_H
#define RINGLB_ENCODE_H

#include "datapath.h"
#include "region.h"
#include "service_table.h"
#include "state.h"

struct encoding {
	struct datapath *dp;
	struct state *next;
	struct regions regions;
	struct service_table services;
	uint32_t services_region, manifest_region, manifest_room;
	uint32_t *were; /* regions of next's tables before */
};

/* Bytes of the map tables that a state takes up, header included. */
size_t encode_need(const struct state *s);
/*
 * Finds room in dp for what next has and running, which is published there, or NULL, has not. 0; -ENOSPC where there is
 * none; -EINVAL where the services can't be arranged. In both cases next is as it was. End with encode_end.
 */
int encode_place(struct encoding *e, struct datapath *dp, const struct state *running, struct state *next);
/* Fills in a new backend's entry, and b's incarnation, which follows that of the index's last user. */
void encode_backend(struct encoding *e, struct state_backend *b);
void encode_table(struct encoding *e, const struct state_pool *p);
/*
 * Fills in the side that is not in use, after everything else, and next's revision: the one after the published. 0, or
 * -ENOSPC where the manifest has outgrown its room.
 */
int encode_root(struct encoding *e);
/* Switches to it. */
void encode_publish(struct encoding *e);
void encode_end(struct encoding *e);
/* Takes back what encode_place did to next, in place of encode_end. */
void encode_cancel(struct encoding *e);

#endif
