/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files service_table*.c share. */
#ifndef RINGLB_SERVICE_TABLE_PRIVATE_H
#define RINGLB_SERVICE_TABLE_PRIVATE_H

#include "service_table.h"

/* The prefixes of the services, each once, and the blocks that they cut the address space into. */
struct service_prefixes {
	const struct config_service **prefix; /* one that has it; sorted by address, the wider one first */
	uint32_t *wider;                      /* as in the table: a number + 1 */
	uint32_t count;
	struct ringlb_block *block;
	uint32_t blocks;
};

void service_prefixes_make(const struct config *c, struct service_prefixes *out);
void service_prefixes_free(struct service_prefixes *p);
/* The number of a service's prefix. */
uint32_t service_prefixes_find(const struct service_prefixes *p, const struct config_service *s);

/* An entry of the table. */
struct service_entry {
	uint8_t address[16]; /* of its key, like port and protocol, in which the RINGLB_KEY_* are */
	uint16_t port, port_to;
	uint8_t protocol;
	const struct config_service *service; /* NULL: none */
	size_t number;                        /* of it in the configuration */
	uint32_t first, ranges;               /* of a list of ranges: the entries that it lists */
	uint32_t early_tcp,
		early_udp; /* of a mark: the entry, as a number, that fragments without ports are for; 0: none */
};

struct service_entries {
	struct service_entry *entry; /* the hashed ones first */
	uint32_t count, hashed;
};

void service_entries_make(const struct config *c, const struct service_prefixes *p, struct service_entries *out);
void service_entries_free(struct service_entries *e);

/* How many servers the connection ids of the service can name, at most; 0: they name none. */
uint32_t service_servers(const struct state *s, size_t service);
/* Writes those that take packets. */
void service_servers_encode(const struct state *s, size_t service, struct ringlb_servers *out);

#endif
