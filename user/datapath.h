/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The BPF side: programs, maps, links and pins. The only module that knows libbpf. What is written into the mapped
 * memory, and in which order, is commit.c's.
 */
#ifndef RINGLB_DATAPATH_H
#define RINGLB_DATAPATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "../include/ringlb_abi.h"

struct datapath;

struct datapath_sizes {
	size_t tables;     /* bytes of the map tables */
	uint32_t backends; /* elements of backends and backend_stats */
	uint32_t services; /* elements of service_stats */
	uint32_t flow_buckets;
};

enum datapath_mode { DATAPATH_NATIVE, DATAPATH_GENERIC };

struct datapath_link {
	unsigned int ifindex; /* as pinned; the interface may be gone */
	enum datapath_mode mode;
	bool alive; /* still attached to an interface */
	uint32_t prog_id;
};

/* Checks that dir is on a bpffs and can be used, with a message that says what to do where not. 0 or -errno. */
int datapath_check_bpffs(const char *dir, struct diag *d);
/* Loads the programs and makes the maps, tables' header filled in (abi, hz); nothing is pinned or attached. */
int datapath_create(const struct datapath_sizes *sizes, struct datapath **out, struct diag *d);
/*
 * The same for programs that are to take over from former's. Maps that have the size that they have there are not made
 * anew but shared, unless the ABI is another: then every one is new.
 */
int datapath_create_beside(const struct datapath_sizes *sizes, const struct datapath *former, struct datapath **out,
			   struct diag *d);
/* Pins programs and maps in dir, which must not exist; all or nothing. */
int datapath_pin(struct datapath *dp, const char *dir, struct diag *d);
/*
 * Opens what is pinned in dir and maps it into memory. -ENOENT, without a message, where nothing is (a missing bpffs
 * too: datapath_check_bpffs tells the two apart); -EPROTO where the pins are of another ABI or incomplete, and other
 * errors, with one. datapath_open_older takes
 * an older ABI that an upgrade can read, too.
 */
int datapath_open(const char *dir, struct datapath **out, struct diag *d);
int datapath_open_older(const char *dir, struct datapath **out, struct diag *d);
/* Of pins that are incomplete the tables alone, to be read: 0 or -errno with a message. */
int datapath_open_tables(const char *dir, struct datapath **out, struct diag *d);
/* Removes every pin in dir and dir itself, links first, whatever state they are in. 0 or -errno. */
int datapath_unpin(const char *dir, struct diag *d);
void datapath_free(struct datapath *dp); /* closes; pins stay. NULL is fine */

/* Mapped memory, valid until datapath_free. */
struct ringlb_tables *datapath_tables(struct datapath *dp, size_t *bytes);
struct ringlb_backend *datapath_backends(struct datapath *dp, uint32_t *count);
struct ringlb_flow_bucket *datapath_flows(struct datapath *dp, uint32_t *count);
uint32_t datapath_services(struct datapath *dp); /* elements of service_stats */
void datapath_get_sizes(const struct datapath *dp, struct datapath_sizes *out);
uint32_t datapath_abi(const struct datapath *dp);
uint64_t datapath_locked_bytes(struct datapath *dp); /* memory of all maps, as the kernel accounts it */

/* Returns when no packet that started before the call is still being processed. */
int datapath_wait(struct datapath *dp);
/* Puts an interface into (ifindex) or out of (0) the redirect map's slot. */
int datapath_set_output(struct datapath *dp, unsigned int slot, unsigned int ifindex);
/*
 * Attaches prog and pins the link as dir/link-IFINDEX; a pin of that name whose interface is gone is replaced. -EBUSY
 * where a program sits already, -EOPNOTSUPP (no native XDP) and the kernel's other errors come back without a message:
 * the caller chooses what to do.
 */
int datapath_attach(struct datapath *dp, const char *dir, unsigned int ifindex, enum datapath_mode mode);
/* Takes it off again, at once, and removes the pin, alive or not. -ENOENT where there is none. */
int datapath_detach(const char *dir, unsigned int ifindex);
/* Pinned links, sorted by interface: an array to be freed. The mode of one that is not alive is not known. */
int datapath_links(const char *dir, struct datapath_link **out, size_t *count);
/*
 * What XDP program sits on an interface, in words, for the error of a refused attach: "program xdpfilt (id 12),
 * native". Empty when none. True where a BPF link holds it there: then nothing but its holder, or detaching that link,
 * takes it off.
 */
bool datapath_describe(unsigned int ifindex, char *buf, size_t size);

/* The instance below bpffs that is attached to the interface; owned by the caller; NULL: none. */
char *datapath_holder(const char *bpffs, unsigned int ifindex);

/* Runs the program lookup on a packet (Ethernet frame); changes nothing. 0, out filled in; or -errno. */
int datapath_lookup(struct datapath *dp, const void *frame, size_t length, struct ringlb_lookup *out);
/* Sums over CPUs; arrays of the size given. */
int datapath_service_counters(struct datapath *dp, struct ringlb_counter *out, uint32_t count);
int datapath_backend_counters(struct datapath *dp, struct ringlb_counter *out, uint32_t count);
int datapath_verdicts(struct datapath *dp, struct ringlb_verdict_counters *out);
int datapath_flow_counters(struct datapath *dp, struct ringlb_flow_counters *out);
int datapath_clear_backend_counter(struct datapath *dp, uint16_t index);
int datapath_clear_service_counter(struct datapath *dp, uint16_t index);

/*
 * Packets that are traced: datapath_trace.c. Each is handed to the function during datapath_trace_poll, which returns how
 * many there were, or -errno (-EINTR after a signal). Only one may be open at a time for all processes.
 */
struct datapath_trace;
int datapath_trace_open(struct datapath *dp, void (*packet)(const struct ringlb_trace *t, void *arg), void *arg,
			struct datapath_trace **out);
int datapath_trace_poll(struct datapath_trace *t, int timeout_ms);
void datapath_trace_close(struct datapath_trace *t); /* NULL is fine */
/* Which verdicts are to be traced, a bit each, until the stamp comes. */
void datapath_trace_want(struct datapath *dp, uint64_t verdicts, uint32_t until);
/* Packets that the limit, or a full buffer, has left out since the maps were made. */
int datapath_trace_left_out(struct datapath *dp, uint64_t *out);

/*
 * One datapath takes the place of another: datapath_replace.c. The new one's pins are made in NAME~new, with the links
 * in both; the two directories change names, which is the moment of the change; the links get the new program; the
 * former's pins are removed. See replace.h for what is copied when.
 */
int datapath_pin_beside(struct datapath *dp, const char *dir, struct diag *d);
int datapath_exchange(const char *dir, struct diag *d);
/* What dp takes over from; NULL where RINGLB_PENDING_REPLACED does not say so. Valid until datapath_free. */
struct datapath *datapath_former(struct datapath *dp);
/* Removes NAME~new; links go on. 0 also where there is none. */
int datapath_unpin_beside(const char *dir, struct diag *d);
/* Every link in dir runs dp's program from now on, but for those whose interface is gone. */
int datapath_update_links(struct datapath *dp, const char *dir, struct diag *d);
/* Whether the two have a map in common. */
bool datapath_shares_tables(const struct datapath *a, const struct datapath *b);
bool datapath_shares_backends(const struct datapath *a, const struct datapath *b);
bool datapath_shares_flows(const struct datapath *a, const struct datapath *b);
/* The version of the ringlb that made it, fit for a message. */
#define DATAPATH_VERSION RINGLB_VERSION_TEXT
void datapath_version(const struct datapath *dp, char out[DATAPATH_VERSION]);
/* Writes this ringlb's version into the header. */
void datapath_write_version(struct datapath *dp);
/* Copies the redirect map, which is never shared. 0 or -errno. */
int datapath_copy_outputs(struct datapath *dp, struct datapath *former);
/* Writes down what was counted before dp's own maps: what former carries and, if live, what it counted itself. */
int datapath_carry(struct datapath *dp, const struct datapath *former, bool live);

/*
 * probe: what leaves by the device with this number goes to one backend, see struct ringlb_probe_way; for dp's tables and
 * as long as the device lives.
 */
struct datapath_probe;
int datapath_probe_attach(struct datapath *dp, unsigned int ifindex, struct datapath_probe **out, struct diag *d);
int datapath_probe_way(struct datapath_probe *p, uint32_t backend, enum ringlb_forward forward, uint16_t gue_port);
void datapath_probe_free(struct datapath_probe *p); /* NULL is fine */

/*
 * decap: its own object, attached and pinned as dir/decap-IFINDEX with its prefixes. It belongs to the host and not to
 * an instance: dir is instance.bpffs. What the kernel says to attaching comes back without a message, as above.
 */
struct datapath_prefix {
	uint8_t address[16];
	uint32_t length; /* of 128, mapped IPv4 counted from bit 96 */
};
int datapath_decap_attach(const char *dir, unsigned int ifindex, enum datapath_mode mode,
			  const struct datapath_prefix *from, size_t count, uint16_t gue_port, struct diag *d);
int datapath_decap_detach(const char *dir, unsigned int ifindex, struct diag *d);

struct datapath_decap {
	unsigned int ifindex;
	bool alive; /* the interface is still there */
	enum datapath_mode mode;
	struct datapath_prefix *from;
	size_t prefixes;
	uint16_t gue_port;     /* host order */
	uint64_t decapsulated; /* packets */
};

/* Where it is attached, by ifindex; to be freed with datapath_decap_free. 0, also where there is none; or -errno. */
int datapath_decap_list(const char *dir, struct datapath_decap **out, size_t *count, struct diag *d);
void datapath_decap_free(struct datapath_decap *list, size_t count);

#endif
