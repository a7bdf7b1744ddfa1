// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "plan_case.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "random_pool.h"

static unsigned int names; /* given so far */

void case_backend_add(struct case_pool *p, uint32_t weight)
{
	struct case_backend *b = &p->backend[p->backends++];

	assert_true(p->backends <= CASE_BACKENDS);
	*b = (struct case_backend){ .address = ++names, .weight = weight, .state = "up" };
	snprintf(b->name, sizeof(b->name), "b%u", names);
}

void case_backend_remove(struct case_pool *p, size_t i)
{
	memmove(&p->backend[i], &p->backend[i + 1], (--p->backends - i) * sizeof(*p->backend));
}

struct case_pool *case_pool_add(struct case_config *c, size_t backends)
{
	struct case_pool *p = &c->pool[c->pools++];

	assert_true(c->pools <= CASE_POOLS);
	*p = (struct case_pool){ .vnodes = 1 + random_below(40), .drain_max = "24h" };
	snprintf(p->name, sizeof(p->name), "p%u", ++names);
	while (backends--)
		case_backend_add(p, 1 + random_below(4));
	return p;
}

void case_service_add(struct case_config *c, size_t pool)
{
	struct case_service *s = &c->service[c->services++];

	assert_true(c->services <= CASE_SERVICES);
	*s = (struct case_service){ .address = 0x10000 + ++names,
				    .port = (uint16_t)(names & 3 ? names : 0),
				    .protocol = names & 4 ? "tcp" : "udp",
				    .affinity = "flow",
				    .pool = pool };
	snprintf(s->name, sizeof(s->name), "s%u", names);
}

struct case_config case_small(void)
{
	struct case_config c = { .key = '1', .interfaces = "eth0, eth1", .more = "" };
	struct case_pool *p = case_pool_add(&c, 0);

	strcpy(p->name, "web");
	p->vnodes = 100;
	case_backend_add(p, 1);
	case_backend_add(p, 2);
	case_backend_add(p, 1);
	p = case_pool_add(&c, 2);
	strcpy(p->name, "dns");
	case_service_add(&c, 0);
	c.service[0].protocol = "tcp";
	case_service_add(&c, 1);
	c.service[1].protocol = "udp";
	return c;
}

struct case_config case_random(void)
{
	struct case_config c = { .key = '1', .interfaces = "eth0", .more = "" };

	for (size_t n = 1 + random_below(4); n; n--)
		case_pool_add(&c, random_below(9));
	for (size_t n = random_below(5); n; n--)
		case_service_add(&c, random_below((uint32_t)c.pools));
	return c;
}

/* Whether the parser takes states other than up: while it does not, they are not tried. */
static bool has_states(void)
{
	static const char text[] = "interfaces: [eth0]\nhash_key: \"00112233445566778899aabbccddeeff\"\nservices: []\n"
				   "pools: [{name: p, backends: [{name: b, address: 10.0.0.1, state: drain}]}]\n";
	static int known = -1;
	struct diag d = { 0 };

	if (known < 0) {
		struct config *c = config_parse("states", text, sizeof(text) - 1, &d);

		known = c != NULL;
		config_free(c);
		diag_free(&d);
	}
	return known;
}

static void change_backend(struct case_backend *b)
{
	static const char *const state[] = { "up", "up", "drain", "maint" };

	switch (random_below(has_states() ? 5 : 4)) {
	case 4:
		b->state = state[random_below(4)];
		break;
	case 0:
		b->weight = 1 + random_below(6);
		break;
	case 1:
		b->points = 1 + random_below(200);
		break;
	case 2: /* a new name for the same backend */
		if (!*b->identity)
			strcpy(b->identity, b->name);
		snprintf(b->name, sizeof(b->name), "b%u", ++names);
		break;
	default:
		b->address = ++names;
	}
}

static void change_pool(struct case_pool *p)
{
	if (p->backends < CASE_BACKENDS && random_below(3) == 0)
		case_backend_add(p, 1 + random_below(4));
	else if (p->backends && random_below(3) == 0)
		case_backend_remove(p, random_below((uint32_t)p->backends));
	else if (p->backends)
		change_backend(&p->backend[random_below((uint32_t)p->backends)]);
}

static void remove_service(struct case_config *c, size_t i)
{
	memmove(&c->service[i], &c->service[i + 1], (--c->services - i) * sizeof(*c->service));
}

static void remove_pool(struct case_config *c, size_t i)
{
	memmove(&c->pool[i], &c->pool[i + 1], (--c->pools - i) * sizeof(*c->pool));
	for (size_t s = c->services; s--;) {
		if (c->service[s].pool == i)
			remove_service(c, s);
		else if (c->service[s].pool > i)
			c->service[s].pool--;
	}
}

void case_change(struct case_config *c)
{
	for (uint32_t left = 1 + random_below(4); left; left--) {
		uint32_t kind = random_below(12);

		if (kind == 0 && c->pools < CASE_POOLS)
			case_pool_add(c, random_below(9));
		else if (kind == 1 && c->pools > 1)
			remove_pool(c, random_below((uint32_t)c->pools));
		else if (kind == 2 && c->services < CASE_SERVICES)
			case_service_add(c, random_below((uint32_t)c->pools));
		else if (kind == 3 && c->services)
			remove_service(c, random_below((uint32_t)c->services));
		else if (kind == 4 && c->services)
			c->service[random_below((uint32_t)c->services)].pool = random_below((uint32_t)c->pools);
		else
			change_pool(&c->pool[random_below((uint32_t)c->pools)]);
	}
}

/* 0 to n - 1, in random order or not. */
static void fill_order(size_t *order, size_t n, bool shuffled)
{
	for (size_t i = 0; i < n; i++) {
		size_t j = shuffled ? random_below((uint32_t)i + 1) : i;

		order[i] = order[j];
		order[j] = i;
	}
}

static const char *address(uint32_t n, char text[40])
{
	if (n & 1)
		snprintf(text, 40, "fd00::%x:%x", n >> 16, n & 0xffff);
	else
		snprintf(text, 40, "10.%u.%u.%u", n >> 16 & 255, n >> 8 & 255, n & 255);
	return text;
}

static void print_pool(FILE *o, const struct case_pool *p, bool shuffled)
{
	size_t order[CASE_BACKENDS];
	char text[40];

	fprintf(o, "  - name: %s\n    vnodes: %u\n    drain_max: %s\n", p->name, p->vnodes, p->drain_max);
	if (p->settle_after)
		fprintf(o, "    settle_after: %s\n", p->settle_after);
	if (p->check)
		fprintf(o, "    check: %s\n", p->check);
	fprintf(o, "    backends:%s\n", p->backends ? "" : " []");
	fill_order(order, p->backends, shuffled);
	for (size_t i = 0; i < p->backends; i++) {
		const struct case_backend *b = &p->backend[order[i]];

		fprintf(o, "      - {name: %s, address: \"%s\", weight: %u, state: %s", b->name,
			address(b->address, text), b->weight, b->state);
		if (*b->identity)
			fprintf(o, ", identity: %s", b->identity);
		if (b->points)
			fprintf(o, ", points: %u", b->points);
		fputs("}\n", o);
	}
}

static void print_service(FILE *o, const struct case_config *c, const struct case_service *s)
{
	char text[40], port[8] = "any";

	if (s->port)
		snprintf(port, sizeof(port), "%u", s->port);
	fprintf(o, "  - {name: %s, address: \"%s\", port: %s, protocol: %s, pool: %s, forward: ipip, affinity: %s}\n",
		s->name, address(s->address, text), port, s->protocol, c->pool[s->pool].name, s->affinity);
}

struct config *case_parse(const struct case_config *c, bool shuffled)
{
	size_t order[CASE_POOLS > CASE_SERVICES ? CASE_POOLS : CASE_SERVICES], length;
	char *text, key[33];
	FILE *o = open_memstream(&text, &length);
	struct diag d = { 0 };
	struct config *config;

	assert_non_null(o);
	memset(key, c->key, 32);
	key[32] = '\0';
	fprintf(o, "interfaces: [%s]\nhash_key: \"%s\"\ntunnel_source: {ipv4: 192.0.2.1, ipv6: \"fd00:1::1\"}\n%s",
		c->interfaces, key, c->more);
	fill_order(order, c->pools, shuffled);
	fprintf(o, "pools:\n");
	for (size_t i = 0; i < c->pools; i++)
		print_pool(o, &c->pool[order[i]], shuffled);
	fill_order(order, c->services, shuffled);
	fprintf(o, "services:%s\n", c->services ? "" : " []");
	for (size_t i = 0; i < c->services; i++)
		print_service(o, c, &c->service[order[i]]);
	fclose(o);
	config = config_parse("case.yaml", text, length, &d);
	if (!config)
		fail_msg("%s: %s\n%s", d.entry[0].where, d.entry[0].message, text);
	diag_free(&d);
	free(text);
	return config;
}
