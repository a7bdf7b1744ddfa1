/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration file: parsed, checked, and written back. Pure apart from reading the files it is given.
 * Order is kept as in the file; nothing that follows from the configuration depends on it.
 */
#ifndef RINGLB_CONFIG_H
#define RINGLB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "diag.h"
#include "../include/ringlb_abi.h"

enum config_xdp { CONFIG_XDP_AUTO, CONFIG_XDP_NATIVE, CONFIG_XDP_GENERIC };
enum config_placement { CONFIG_RING, CONFIG_MAGLEV, CONFIG_RENDEZVOUS, CONFIG_NGINX, CONFIG_HAPROXY };
enum config_state { CONFIG_UP, CONFIG_DRAIN, CONFIG_MAINT };
enum config_check_type { CHECK_TCP, CHECK_HTTP, CHECK_HTTPS, CHECK_DNS, CHECK_UDP, CHECK_ICMP };

#define CONFIG_DEFAULT_VNODES 400u
#define CONFIG_DEFAULT_MAGLEV_SIZE 65537u
#define PLACEMENT_NGINX_POINTS 160u  /* for each unit of weight */
#define PLACEMENT_HAPROXY_POINTS 16u /* likewise */
#define CONFIG_DEFAULT_FLOWS_ESTABLISHED 131072u
#define CONFIG_DEFAULT_FLOWS_OPENING 32768u
#define CONFIG_DEFAULT_SETTLE_AFTER_MS (15 * 60 * 1000ull)
#define CONFIG_DEFAULT_DRAIN_MAX_MS (24 * 3600 * 1000ull)
#define CONFIG_DEFAULT_CHECK_INTERVAL_MS 2000u
#define CONFIG_DEFAULT_CHECK_TIMEOUT_MS 1000u /* the interval, where that is less */
#define CONFIG_DEFAULT_CHECK_JITTER 0.1
#define CONFIG_DEFAULT_CHECK_RISE 2u
#define CONFIG_DEFAULT_CHECK_FALL 3u

struct config_place { /* in the file, from 1; line 0: nowhere */
	unsigned int line, column;
};

struct config_backend {
	char *name;
	char *identity; /* never NULL: the name where the file gives none */
	char *zone;     /* or NULL */
	struct address address;
	uint32_t weight;
	uint32_t points; /* as written; 0: vnodes * weight */
	uint32_t id;     /* 0: none; with `haproxy` never, as a backend without one is numbered as HAProxy does */
	enum config_state state;
	struct config_place place;
};

/* How the backends of a pool are checked. What a type has no use for is NULL or 0. */
struct config_check {
	enum config_check_type type;
	bool via_service; /* the service's address, in packets as the data plane sends them; else the backend's own */
	uint16_t port;    /* 0 for icmp only */
	char *path;       /* http, https: never NULL */
	char *host;       /* http, https: the header, and the name that TLS asks for; NULL: the address */
	char *expect;     /* see config_expect.h; NULL: any answer of udp */
	char *body;       /* http, https: must be in the answer's body; or NULL */
	bool verify;      /* https: the certificate must be valid */
	char *ca;         /* https: the file of whom to trust, absolute; NULL: the system's */
	char *send;       /* udp: what is sent, see config_expect.h */
	char *query;      /* dns: the name */
	uint16_t query_type;
	bool has_source4, has_source6;
	struct address source4, source6;
	uint64_t interval_ms, timeout_ms;
	double jitter; /* fraction of the interval by which it may be shorter, at random */
	uint32_t rise, fall;
	uint64_t slow_start_ms;
	double panic; /* fraction of healthy backends below which all are used; 0: never */
};

struct config_pool {
	char *name;
	enum config_placement placement;
	uint32_t vnodes;
	uint32_t maglev_size; /* slots of `maglev`, a prime */
	uint64_t settle_after_ms;
	uint64_t drain_max_ms; /* 0: never */
	uint32_t quorum;
	struct config_backend *backend;
	size_t backends;
	struct config_check *check; /* or NULL */
	struct config_place place;
};

#define CONFIG_DEFAULT_GUE_PORT 6080u

struct config_service {
	char *name; /* never NULL: ADDRESS:PORT/PROTOCOL where the file gives none */
	struct address address;
	uint8_t free_bits; /* of the address, at its end: it is a prefix; 0: one address */
	uint16_t port;     /* host order; 0: any */
	uint16_t port_to;  /* the last of a range, above port; 0: port alone */
	uint8_t protocol;  /* IPPROTO_TCP, IPPROTO_UDP, or 0: any, with any port */
	size_t pool;       /* index in config.pool */
	enum ringlb_forward forward;
	uint16_t gue_port; /* where outer UDP headers go to */
	enum ringlb_affinity affinity;
	uint8_t cid_length;                     /* affinity quic: bytes in the servers' connection ids; 0: not known */
	uint8_t server_offset, server_length;   /* where in them the server's id is; length 0: nowhere */
	uint8_t source_prefix4, source_prefix6; /* affinity source: 32 and 128 where the file gives none */
	enum ringlb_track track;         /* where the file gives none: moved for tcp and affinity quic, else none */
	enum ringlb_fragments fragments; /* TRACK where the file gives none */
	struct config_place place;
};

struct config {
	char *file; /* as given, for messages; "standard input" for "-" */
	char **interface;
	size_t interfaces;
	enum config_xdp xdp;
	uint8_t hash_key[16];
	char *hash_key_file; /* absolute; or NULL: the key stands in the configuration */
	bool has_tunnel4, has_tunnel6;
	struct address tunnel4, tunnel6;
	uint8_t tunnel4_free, tunnel6_free; /* bits at the address's end that each flow has its own of */
	char *status_listen;                /* or NULL */
	double max_move;                    /* fraction; negative: no limit */
	uint32_t flows_established, flows_opening;
	struct config_pool *pool;
	size_t pools;
	struct config_service *service;
	size_t services;
};

/*
 * Reads and checks FILE ("-": standard input). All faults are added to d, each with FILE:LINE:COLUMN and
 * "path.to.key: what is wrong, what is allowed". Returns the configuration, owned by the caller, or NULL when there was
 * an error. Warnings alone do not stop it.
 */
struct config *config_load(const char *file, struct diag *d);
/* The same from memory; file is the name in messages. A {file: ...} hash key is read from disk. */
struct config *config_parse(const char *file, const char *text, size_t length, struct diag *d);
/*
 * The configuration as YAML that config_parse takes back to an equal one, NUL-terminated, owned by the caller.
 * Deterministic. with_key true: the key itself is written, also where it came from a file, so that the text stands alone
 * (hash_key_file is then not kept). False: {file: PATH}, or the comment "# hash_key: (only shown to root)".
 */
char *config_emit(const struct config *c, bool with_key);
void config_free(struct config *c);

/*
 * "ADDRESS:PORT/PROTOCOL", as a default name: IPv6 in brackets, a prefix with its length, a range as FROM-TO, any port or
 * protocol as "any". Owned by the caller.
 */
char *config_service_default_name(const struct config_service *s);
/* What it is for: its address, ports and protocol, and nothing else. */
int config_service_order(const struct config_service *a, const struct config_service *b);
/* The address or prefix, and the ports, as in the file; return buf. */
#define CONFIG_ADDRESS_TEXT 56
#define CONFIG_PORT_TEXT 16
const char *config_prefix_text(const struct address *a, uint8_t free_bits, char buf[CONFIG_ADDRESS_TEXT]);
const char *config_service_address(const struct config_service *s, char buf[CONFIG_ADDRESS_TEXT]);
const char *config_service_port(const struct config_service *s, char buf[CONFIG_PORT_TEXT]);
bool config_service_has(const struct config_service *s, const struct address *a); /* the address is one of its */
/* Whether packets to this address, port and protocol (0: neither TCP nor UDP) are for it, if not for one that fits better. */
bool config_service_takes(const struct config_service *s, const struct address *a, uint16_t port, uint8_t protocol);
/* The one that such a packet is for; NULL: none. */
const struct config_service *config_service_for(const struct config *c, const struct address *a, uint16_t port,
						uint8_t protocol);
/* Points of a backend on a `ring`, before any limit: its points, else vnodes * weight. */
uint64_t config_ring_points(const struct config_pool *p, const struct config_backend *b);
/* Of its pool's placement; 0 for one in which they depend on the other backends. */
uint64_t config_backend_points(const struct config_pool *p, const struct config_backend *b);
/* As a mapping in one line, as it stands in a file: equal exactly where the checks are. Owned by the caller. */
char *config_check_text(const struct config_check *c);
struct config_check *config_check_copy(const struct config_check *c);
bool config_check_equal(const struct config_check *a, const struct config_check *b); /* either may be NULL */
void config_check_free(struct config_check *c);
const struct config_pool *config_find_pool(const struct config *c, const char *name);
/* Names of enum values, as in the file. */
const char *config_placement_name(enum config_placement p);
const char *config_forward_name(enum ringlb_forward f);
const char *config_affinity_name(enum ringlb_affinity a);
const char *config_track_name(enum ringlb_track t);
const char *config_fragments_name(enum ringlb_fragments f);
const char *config_protocol_name(uint8_t protocol);
const char *config_state_name(enum config_state s);
const char *config_check_type_name(enum config_check_type t);

#endif
