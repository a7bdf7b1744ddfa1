/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to config*.c: nodes of the tree as typed values. Each reader returns false and leaves *out alone where the
 * node is not what is wanted, after saying why and what is allowed. A NULL node (the key is not there) is false too,
 * silently: what must be there is map_keys' business.
 */
#ifndef RINGLB_CONFIG_VALUE_H
#define RINGLB_CONFIG_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "config_tree.h"

struct key {
	const char *name;
	const char *wanted; /* what to give where the key is missing; NULL: it may be */
};

/* Sorts the values of a mapping into value[i] for key[i], NULL where missing. Unknown, duplicate and missing keys are faults. False where map is no mapping. */
bool map_keys(struct faults *f, const struct node *map, const struct key *key, size_t keys, struct node **value);
/* Items of a list; 0 where it is none (a fault) or NULL. */
size_t list_items(struct faults *f, const struct node *list);

#define NAME_TEXT "[A-Za-z0-9._:@-], at most 64 of them"

/* The place of the node's text in choices, which NULL ends. */
bool read_choice(struct faults *f, const struct node *n, const char *const *choices, unsigned int *out);
/* The node's own text: any that is not empty. */
bool read_text(struct faults *f, const struct node *n, const char **out);
/* A copy, owned by the caller. */
bool read_name(struct faults *f, const struct node *n, char **out);
bool read_integer(struct faults *f, const struct node *n, uint64_t min, uint64_t max, uint64_t *out);
bool read_u32(struct faults *f, const struct node *n, uint32_t min, uint32_t max, uint32_t *out);
/* In milliseconds. */
bool read_duration(struct faults *f, const struct node *n, uint64_t min, uint64_t max, uint64_t *out);
/* "30%" as 0.3 */
bool read_percent(struct faults *f, const struct node *n, double *out);
/* One host's address, that packets can be sent to. family: 4, 6, or 0 for both. */
bool read_address(struct faults *f, const struct node *n, unsigned int family, struct address *out);
/* Whether an address is one that packets can be sent to over a wire; a fault says what else it is. */
bool check_unicast(struct faults *f, const struct node *n, const struct address *a);

/* A duration as the file has it, in the largest unit that it is a whole number of. Returns buf. */
#define DURATION_TEXT 32
const char *duration_text(uint64_t ms, char buf[DURATION_TEXT]);

/* The name among names (ended by NULL) that text was probably meant to be, or NULL. */
const char *near_name(struct faults *f, const char *text, const char *const *names);

#endif
