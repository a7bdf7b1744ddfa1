/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to config*.c and yaml_edit*.c: the steps from a tree to a checked configuration. Each adds faults and goes on;
 * what could not be read keeps its default, or a value that the later checks leave out (a NULL name, address ::,
 * PROTOCOL_UNKNOWN, POOL_UNKNOWN), so that one mistake is one complaint.
 */
#ifndef RINGLB_CONFIG_PARSE_H
#define RINGLB_CONFIG_PARSE_H

#include <stdio.h>

#include "config.h"
#include "config_value.h"

#define POOL_UNKNOWN SIZE_MAX
#define PROTOCOL_UNKNOWN 0xff

/* Ended by NULL, in the order of the enums. */
extern const char *const config_xdp_names[], *const config_placement_names[], *const config_state_names[];
extern const char *const config_forward_names[], *const config_affinity_names[], *const config_track_names[];
extern const char *const config_fragments_names[], *const config_check_type_names[];

struct parse {
	const char *file;
	struct config *c;
	struct faults f;
	/* Of the root; NULL where missing. pools->child[i] is c->pool[i]'s, services->child[i] c->service[i]'s. */
	struct node *pools, *services, *tunnel;
};

void parse_root(struct parse *p, const struct node *root);
void parse_key(struct parse *p, const struct node *root, const struct node *n);
void parse_pools(struct parse *p);
void parse_services(struct parse *p); /* after the pools */
void parse_health_check(struct parse *p, const struct node *n, struct config_pool *pool);
/* With `haproxy`: gives ids to backends that have none, as HAProxy does. */
void number_backends(struct config_pool *pool);
/* What concerns more than one value. */
void check_pools(struct parse *p);
void check_placements(struct parse *p); /* what a placement asks of its pool, and of services that use that */
void check_services(struct parse *p);   /* services, and services with pools */
void check_matches(struct parse *p);    /* prefixes, ranges, any protocol, affinity quic */

/* The default of a service's track: what the file need not say. */
enum ringlb_track config_default_track(uint8_t protocol, enum ringlb_affinity affinity);
bool address_given(const struct address *a);

/* A scalar as config_emit writes it: in quotes where it would not be read as this text without. */
void put_text(FILE *o, const char *text);
/* A fraction as a percentage of at most six decimal places, as read_percent reads it. */
void put_percent(FILE *o, double fraction);

/* What the file's directory makes of a relative path: absolute where possible. Owned by the caller. */
char *config_resolve(const char *file, const char *path);
/* 0 and the 16 bytes of 32 hex digits, or -EINVAL. */
int config_parse_hex(const char *text, size_t length, uint8_t key[16]);
/* A whole file, "-" for standard input, at most limit bytes, owned by the caller and ended by NUL; or NULL and errno (EFBIG: larger). */
char *config_slurp(const char *file, size_t limit, size_t *length);

#endif
