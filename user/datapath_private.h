/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files datapath*.c share. */
#ifndef RINGLB_DATAPATH_PRIVATE_H
#define RINGLB_DATAPATH_PRIVATE_H

#include "datapath.h"

/* X(ENUM, "name"): the maps of ringlb.bpf.c that are kept, by name and by the name of the pin. */
#define DATAPATH_MAPS(X)                                                                                               \
	X(TABLES, "tables")                                                                                            \
	X(BACKENDS, "backends")                                                                                        \
	X(FLOWS, "flows")                                                                                              \
	X(FLOW_STATS, "flow_stats")                                                                                    \
	X(VERDICTS, "verdicts")                                                                                        \
	X(SERVICE_STATS, "service_stats")                                                                              \
	X(BACKEND_STATS, "backend_stats")                                                                              \
	X(TRACES, "traces")                                                                                            \
	X(TRACE_RATE, "trace_rate")                                                                                    \
	X(FRAGMENTS, "fragments")                                                                                      \
	X(CARRIED, "carried")                                                                                          \
	X(OUTPUTS, "outputs")

enum datapath_map {
#define X(id, name) DATAPATH_MAP_##id,
	DATAPATH_MAPS(X)
#undef X
		DATAPATH_MAP_COUNT
};

#ifndef RINGLB_VERSION
#define RINGLB_VERSION "unknown"
#endif
_Static_assert(sizeof(RINGLB_VERSION) <= RINGLB_VERSION_TEXT, "the version is kept in struct ringlb_tables");

extern const char *const datapath_map_name[DATAPATH_MAP_COUNT];

#define DATAPATH_LINK_PREFIX "link-"
#define DATAPATH_DECAP_PREFIX "decap-"

struct datapath_area {
	void *base;    /* NULL: not mapped */
	size_t length; /* whole pages */
};

/* Descriptors are -1 where there is none. */
struct datapath {
	int prog, lookup;
	int map[DATAPATH_MAP_COUNT];
	struct datapath_area tables, backends, flows, carried;
	size_t tables_bytes; /* the value's size */
	uint32_t backend_count, flow_buckets, services;
	int wait_outer, wait_inner; /* datapath_wait's map of maps and what it holds */
	struct datapath *former;    /* what NAME~new holds while RINGLB_PENDING_REPLACED says so, else NULL */
};

struct datapath *datapath_new(void);
/* struct ringlb_tables.pending as it is now. */
uint32_t datapath_pending(const struct datapath *dp);
/* Of the value of the map `carried`. */
uint32_t datapath_carried_bytes(uint32_t service_elements, uint32_t backend_elements);
/* A version as the header has it, made printable. */
/* The layout of the tables pinned in dir; 0: there are none that can be read. */
uint32_t datapath_abi_of(const char *dir);
void datapath_read_version(const struct ringlb_tables *header, char out[RINGLB_VERSION_TEXT]);
/* One kernel map under two datapaths. */
bool datapath_shares(const struct datapath *a, const struct datapath *b, enum datapath_map map);
/* Checks the maps' shapes and maps them into memory. 0; -EPROTO where they are not as this program's are; -errno. */
int datapath_map_memory(struct datapath *dp);
/* The same for the tables alone. */
int datapath_map_tables(struct datapath *dp);

/* Keeps libbpf silent from the call on; what it says goes into a buffer instead. */
void datapath_capture_start(void);
/*
 * What the kernel or libbpf gave as the cause since datapath_capture_start: the verifier's last word, else libbpf's, in
 * one line; "" when nothing was said. Valid until the next datapath_capture_start.
 */
const char *datapath_capture_cause(void);
/* Adds the message for a program or map that could not be loaded; returns err. `what` names it: "the XDP program". */
int datapath_complain_load(struct diag *d, const char *what, size_t bytes, int err);

/* Where an instance's pins are made before they get their name; no instance's name has a tilde. */
char *datapath_site(const char *dir);
/*
 * Makes NAME~new for dir, anew where an attempt was killed, and pins programs and maps in it. 0 or -errno with a
 * message.
 */
int datapath_pin_site(struct datapath *dp, const char *dir, struct diag *d);
/* Removes every pin in NAME~new and the directory; links go on. -ENOENT without a message where there is none. */
int datapath_unpin_site(const char *dir, struct diag *d);
/* Adds a message about a path; returns err. */
int datapath_complain_path(const char *path, int err, struct diag *d);

/* Makes dir, and its parent where that is missing on a bpffs. 0 or -errno with a message. */
int datapath_make_directory(const char *dir, struct diag *d);
/* Removes dir when it is empty, is no mount point and lies in a directory of a bpffs. */
void datapath_remove_directory(const char *dir);
/* Creates the link and pins it as path, as datapath_attach says. */
/* The interface that the link pinned as path is attached to; 0: it is gone. */
int datapath_link_state(const char *path, unsigned int *ifindex, uint32_t *prog_id);
/* XDP links don't tell their mode: the interface does. */
enum datapath_mode datapath_link_mode(unsigned int ifindex, uint32_t prog_id);
int datapath_link_pin(int prog, unsigned int ifindex, enum datapath_mode mode, const char *path);
/* Takes the link pinned as path off, at once, and removes the pin. 0 or -errno. */
int datapath_link_unpin(const char *path);

#endif
