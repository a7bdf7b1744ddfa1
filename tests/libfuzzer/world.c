/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath_private.h"
#include "encode.h"
#include "plan.h"

#define HEAD                                                                                                           \
	"interfaces: [fuzz0, fuzz1]\nhash_key: 000102030405060708090a0b0c0d0e0f\n"                                     \
	"tunnel_source: {ipv4: 10.77.0.1, ipv6: \"fd77::1\"}\n"

#define POOLS(four, six)                                                                                               \
	"pools:\n"                                                                                                     \
	"  - name: four\n    vnodes: 10\n    backends:\n" four "  - name: six\n    vnodes: 10\n    backends:\n" six    \
	"  - {name: empty, backends: [{name: a, address: 10.77.1.99, state: maint}]}\n"

#define FOUR(n) "      - {name: f" #n ", id: " #n ", address: 10.77.1." #n "}\n"
#define SIX(n) "      - {name: s" #n ", id: " #n ", address: \"fd77::1:" #n "\"}\n"
#define OF(name, address, port, protocol, pool, forward, more)                                                         \
	"  - {name: " name ", address: \"" address "\", port: " port ", protocol: " protocol ", pool: " pool           \
	", forward: " forward more "}\n"

#define SERVICES                                                                                                       \
	"services:\n" OF("web", "192.0.2.1", "443", "tcp", "four", "l2",                                               \
			 "") OF("dns", "192.0.2.1", "53", "udp", "four", "ipip",                                       \
				"") OF("kept", "192.0.2.1", "54", "udp", "four", "l2", ", track: always")              \
		OF("kept-tcp", "192.0.2.2", "443", "tcp", "six", "ipip",                                               \
		   ", track: always") OF("range", "192.0.2.2", "8000-8999", "tcp", "four", "gue",                      \
					 "") OF("source", "192.0.2.3", "any", "tcp", "four", "ipip",                   \
						", affinity: {source: {ipv4: 24, ipv6: 56}}")                          \
			OF("all", "192.0.2.4", "any", "any", "four", "ipip",                                           \
			   "") OF("nobody", "192.0.2.5", "80", "tcp", "empty", "l2",                                   \
				  "") OF("quic", "192.0.2.6", "443", "udp", "four", "gue",                             \
					 ", affinity: quic, quic: {server_id: {offset: 1, length: 2}, cid_length: 8}") \
				OF("prefix", "192.0.2.128/25", "80", "tcp", "six", "gue",                              \
				   "") OF("narrow", "192.0.2.128/26", "100-199", "udp", "four", "ipip",                \
					  ", track: always") OF("web6", "2001:db8::1", "443", "tcp", "six", "l2", "")  \
					OF("dns6", "2001:db8::1", "53", "udp", "six", "gue", "")                       \
						OF("kept6", "2001:db8::2", "443", "tcp", "four", "ipip",               \
						   ", track: always") OF("all6", "2001:db8::3", "any", "any", "six",   \
									 "ipip", "")                                   \
							OF("quic6", "2001:db8::4", "443", "udp", "six", "ipip",        \
							   ", affinity: quic") OF("nobody6", "2001:db8::5", "80",      \
										  "tcp", "empty", "ipip", "")          \
								OF("prefix6", "2001:db8:1::/48", "any", "udp", "six",  \
								   "l2", ", affinity: source")

static const char *const text[] = {
	HEAD POOLS(FOUR(1) FOUR(2) FOUR(3), SIX(1) SIX(2)) SERVICES,
	HEAD POOLS(FOUR(2) FOUR(3) FOUR(4), SIX(1) SIX(2) SIX(3)) SERVICES,
};

static void die(const char *what, const struct diag *d)
{
	fprintf(stderr, "%s: %s %s\n", what, d->count ? d->entry[0].where : "", d->count ? d->entry[0].message : "");
	abort();
}

/* The plan from what runs, NULL at first, to the configuration. */
static void make_plan(struct state *running, const char *configuration, struct plan *out, struct diag *d)
{
	struct plan_interface interface[WORLD_INTERFACES];
	struct plan_input in = { .running = running, .interface = interface, .now = WORLD_NOW };

	in.config = config_parse("world.yaml", configuration, strlen(configuration), d);
	if (!in.config)
		die("configuration", d);
	for (size_t i = 0; running && i < WORLD_INTERFACES; i++)
		interface[in.interfaces++] = (struct plan_interface){
			.name = running->config->interface[i], .attached = true, .alive = true, .native = true
		};
	if (plan_make(&in, out, d))
		die("plan", d);
	for (uint32_t i = 0; i < WORLD_INTERFACES; i++)
		out->next->ifindex[i] = WORLD_INTERFACE + i;
}

static void publish(struct datapath *dp, const struct state *running, struct plan *p, const struct diag *d)
{
	struct encoding e;

	if (encode_place(&e, dp, running, p->next))
		die("no room: WORLD_TABLES", d);
	for (size_t i = 0; i < p->operations; i++) {
		const struct plan_operation *o = &p->operation[i];

		if (o->kind == PLAN_BACKEND_ADD)
			encode_backend(&e, &p->next->pool[o->pool].backend[o->backend]);
		else if (o->kind == PLAN_TABLE_BUILD)
			encode_table(&e, &p->next->pool[o->pool]);
		else if (o->kind == PLAN_OWN_BUILD)
			encode_table(&e, &p->next->own[o->pool].table);
	}
	if (encode_root(&e))
		die("no room for the manifest", d);
	encode_publish(&e);
	encode_end(&e);
}

/* Two links, the second of them with a VLAN tag; one backend is the host itself, one's next hop is not known yet. */
static void write_ways(struct ringlb_tables *tables, struct ringlb_backend *backends)
{
	for (uint32_t i = 0; i < WORLD_INTERFACES; i++)
		tables->outputs[i] = (struct ringlb_output){ .ifindex = WORLD_INTERFACE + i,
							     .mtu = 1500,
							     .mac = { 2, 0x77, 0, 0, 0, (uint8_t)i },
							     .link = WORLD_INTERFACE + i };
	tables->outputs[1].vlan_protocol = __builtin_bswap16(0x8100);
	tables->outputs[1].vlan_tag = __builtin_bswap16(7);
	for (uint64_t i = 0; i < WORLD_BACKENDS; i++) {
		if (i != 2)
			backends[i].next_hop = (0x020000000100ull | i) << 16 | (i == 1 ? RINGLB_OUTPUT_LOCAL : i & 1);
		backends[i].next_hop_stamp = WORLD_NOW * WORLD_HZ;
		backends[i].route_mtu = 1500;
		backends[i].mtu = 1500;
	}
}

void world_make(struct ringlb_tables *tables, struct ringlb_backend *backends)
{
	struct datapath dp = { .prog = -1,
			       .lookup = -1,
			       .wait_outer = -1,
			       .wait_inner = -1,
			       .tables = { tables, WORLD_TABLES },
			       .tables_bytes = WORLD_TABLES,
			       .backends = { backends, WORLD_BACKENDS * sizeof(*backends) },
			       .backend_count = WORLD_BACKENDS,
			       .services = WORLD_SERVICES };
	struct diag d = { 0 };
	struct plan first, second;

	for (int i = 0; i < DATAPATH_MAP_COUNT; i++)
		dp.map[i] = -1;
	tables->abi = RINGLB_ABI_VERSION;
	tables->hz = WORLD_HZ;
	make_plan(NULL, text[0], &first, &d);
	publish(&dp, NULL, &first, &d);
	make_plan(first.next, text[1], &second, &d);
	publish(&dp, first.next, &second, &d);
	write_ways(tables, backends);
	tables->trace = ~0ull;
	tables->trace_until = WORLD_NOW * 2;
	plan_free(&second);
	plan_free(&first);
	diag_free(&d);
}
