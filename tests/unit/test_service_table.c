// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel's table of services, read back by a look-up of the tests' own, written after ringlb_abi.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../include/flow_hash.h"
#include "diag.h"
#include "random_pool.h"
#include "service_table.h"

#define REGION 0x12340u /* where the table is said to lie */
#define SLOTS 4u

static struct address make_address(uint32_t n, bool six)
{
	struct address a = { { [10] = 0xff, [11] = 0xff } };

	if (six)
		a = (struct address){ { 0x20, 0x01, 0x0d, 0xb8 } };
	n = htonl(n);
	memcpy(&a.byte[12], &n, sizeof(n));
	return a;
}

/* A state of so many services, all of one pool with a table. */
struct fixture {
	struct config config;
	struct config_pool config_pool;
	struct state_pool pool;
	struct arc arc;
	struct state state;
};

static void fixture_make(struct fixture *f, size_t services)
{
	memset(f, 0, sizeof(*f));
	f->config_pool.settle_after_ms = 1500;
	f->config.pool = &f->config_pool;
	f->config.pools = 1;
	f->config.service = xcalloc(services + 1, sizeof(*f->config.service));
	f->config.services = services;
	f->arc = (struct arc){ .last = UINT32_MAX };
	f->pool.region = 0x4000;
	f->pool.layout = (struct table_layout){ .bits = 3,
						.points = 77,
						.owners = 5,
						.index_off = 0x40,
						.points_off = 0x80,
						.cold_off = 0x100,
						.owners_off = 0x180 };
	f->pool.arcs = (struct arcs){ &f->arc, 1 };
	f->state = (struct state){ .config = &f->config, .pool = &f->pool, .pools = 1 };
	f->state.service_index = xcalloc(services + 1, sizeof(*f->state.service_index));
	for (size_t i = 0; i < services; i++)
		f->state.service_index[i] = (uint16_t)(services - i);
}

static void fixture_free(struct fixture *f)
{
	free(f->config.service);
	free(f->state.service_index);
}

static void set_service(struct fixture *f, size_t i, struct address address, uint16_t port, uint8_t protocol)
{
	f->config.service[i] = (struct config_service){ .address = address,
							.port = port,
							.protocol = protocol,
							.forward = RINGLB_FORWARD_IPIP,
							.source_prefix4 = 24,
							.source_prefix6 = 56,
							.track = RINGLB_TRACK_MOVED,
							.fragments = (enum ringlb_fragments)random_below(3) };
}

/* The table in memory as the kernel has it. */
struct encoded {
	struct service_table layout;
	struct ringlb_root root;
	uint8_t *base;
};

static void encode(const struct fixture *f, struct encoded *e)
{
	memset(e, 0, sizeof(*e));
	assert_int_equal(service_table_layout(&f->state, &e->layout), 0);
	assert_int_equal(e->layout.services_off % RINGLB_REGION_ALIGN, 0);
	assert_true(e->layout.services_off >= SLOTS * sizeof(uint32_t) << e->layout.bits);
	assert_true(e->layout.length >= e->layout.services_off + e->layout.entries * sizeof(struct ringlb_service));
	/* Exactly the region, so that the sanitizer sees what is written behind it; dirty, as free space is. */
	assert_int_equal(posix_memalign((void **)&e->base, RINGLB_REGION_ALIGN, e->layout.length), 0);
	memset(e->base, 0xa5, e->layout.length);
	service_table_encode(&f->state, &e->layout, REGION, e->base, &e->root);
	assert_int_equal(e->root.services_slots, REGION);
	assert_int_equal(e->root.services_off, REGION + e->layout.services_off);
	assert_int_equal(e->root.services_bits, e->layout.bits);
}

static const struct ringlb_service *find(const struct encoded *e, const struct address *a, uint16_t port,
					 uint8_t protocol)
{
	const struct ringlb_root *r = &e->root;
	__u64 half[2];
	uint32_t hash;
	const uint32_t *slot;

	memcpy(half, a->byte, sizeof(half));
	hash = ringlb_service_hash(half[0], half[1], htons(port), protocol);
	slot = (const uint32_t *)(e->base + r->services_slots - REGION) +
	       ((uint64_t)hash >> (32 - r->services_bits)) * SLOTS;
	for (unsigned int i = 0; i < SLOTS; i++) {
		uint32_t number = slot[i] & 0xffff;
		const struct ringlb_service *s;

		if (!number || slot[i] >> 16 != (hash & 0xffff))
			continue;
		assert_true(number <= e->layout.entries);
		s = (const struct ringlb_service *)(e->base + r->services_off - REGION) + (number - 1);
		if (!memcmp(s->address, a->byte, sizeof(s->address)) && s->port == htons(port) &&
		    s->protocol == protocol)
			return s;
	}
	return NULL;
}

static void assert_entry(const struct fixture *f, const struct ringlb_service *s, size_t i)
{
	const struct config_service *v = &f->config.service[i];
	struct ringlb_service expected = {
		.port = htons(v->port),
		.protocol = v->protocol,
		.forward = (uint8_t)v->forward,
		.affinity = (uint8_t)v->affinity,
		.track = (uint8_t)v->track,
		.fragments = (uint8_t)v->fragments,
		.bits = 3,
		.source_prefix = address_is_ipv4(&v->address) ? 24 : 56,
		.index = f->state.service_index[i],
		.index_off = 0x4040,
		.points_off = 0x4080,
		.cold_off = 0x4100,
		.owners_off = 0x4180,
		.points = 77,
		.owners = 5,
		.settle_after = 2,
	};

	memcpy(expected.address, v->address.byte, sizeof(expected.address));
	assert_non_null(s);
	assert_memory_equal(s, &expected, sizeof(expected));
}

/* The service that a fragment is for of which only address and protocol are known; SIZE_MAX: it could be several. */
static size_t early_service(const struct fixture *f, const struct address *a, uint8_t protocol)
{
	size_t found = SIZE_MAX, services = 0;

	for (size_t i = f->config.services; i-- > 0;) {
		const struct config_service *v = &f->config.service[i];

		if (!address_equal(&v->address, a) || v->protocol != protocol)
			continue;
		services++;
		if (v->fragments == RINGLB_FRAGMENTS_SOURCE &&
		    (found == SIZE_MAX || v->port < f->config.service[found].port))
			found = i;
	}
	for (size_t i = 0; i < f->config.services && protocol == IPPROTO_UDP && services == 1; i++) {
		const struct config_service *v = &f->config.service[i];

		if (address_equal(&v->address, a) && v->protocol == protocol && v->fragments == RINGLB_FRAGMENTS_TRACK)
			found = i;
	}
	return found;
}

static uint32_t early_number(const struct fixture *f, const struct encoded *e, const struct address *a,
			     uint8_t protocol)
{
	size_t i = early_service(f, a, protocol);
	const struct ringlb_service *first = (const struct ringlb_service *)(e->base + e->root.services_off - REGION);

	if (i == SIZE_MAX)
		return 0;
	return (uint32_t)(find(e, a, f->config.service[i].port, protocol) - first) + 1;
}

static void assert_mark(const struct fixture *f, const struct encoded *e, const struct address *a)
{
	struct ringlb_service expected = {
		.index = RINGLB_NO_BACKEND,
		.points = early_number(f, e, a, IPPROTO_TCP),
		.owners = early_number(f, e, a, IPPROTO_UDP),
	};
	const struct ringlb_service *s = find(e, a, 0, 0);

	memcpy(expected.address, a->byte, sizeof(expected.address));
	assert_non_null(s);
	assert_memory_equal(s, &expected, sizeof(expected));
}

static bool is_configured(const struct fixture *f, const struct address *a, uint16_t port, uint8_t protocol)
{
	for (size_t i = 0; i < f->config.services; i++) {
		const struct config_service *v = &f->config.service[i];

		if (address_equal(&v->address, a) && v->port == port && v->protocol == protocol)
			return true;
	}
	return false;
}

/* Each service is found, its address too, and what is near to it only where it is a service as well. */
static void assert_finds_all(const struct fixture *f, const struct encoded *e)
{
	const uint32_t *slot = (const uint32_t *)e->base;
	uint32_t used = 0;
	bool any = false;

	for (size_t i = 0; i < f->config.services; i++) {
		const struct config_service *v = &f->config.service[i];
		struct address near = v->address;

		assert_entry(f, find(e, &v->address, v->port, v->protocol), i);
		assert_mark(f, e, &v->address);
		any |= !v->port;
		if (!is_configured(f, &v->address, v->port ^ 1, v->protocol))
			assert_null(find(e, &v->address, v->port ^ 1, v->protocol));
		if (!is_configured(f, &v->address, v->port, v->protocol ^ 23))
			assert_null(find(e, &v->address, v->port, v->protocol ^ 23));
		near.byte[random_below(12)] ^= 0x40;
		assert_null(find(e, &near, v->port, v->protocol));
		assert_null(find(e, &near, 0, 0));
	}
	assert_int_equal(e->root.flags, any ? RINGLB_ROOT_ANY_PORT : 0);
	for (uint32_t i = 0; i < SLOTS << e->layout.bits; i++)
		used += slot[i] != 0;
	assert_int_equal(used, e->layout.entries);
}

static void check(const struct fixture *f)
{
	struct encoded e;

	encode(f, &e);
	assert_finds_all(f, &e);
	free(e.base);
}

static void test_none(void **state)
{
	const struct address a = make_address(0x0a000001, false);
	struct fixture f;
	struct encoded e;

	(void)state;
	fixture_make(&f, 0);
	encode(&f, &e);
	assert_int_equal(e.layout.entries, 0);
	assert_null(find(&e, &a, 80, IPPROTO_TCP));
	assert_null(find(&e, &a, 0, 0));
	free(e.base);
	fixture_free(&f);
}

/* Random addresses, several services on some, up to `most` in all. */
static void random_services(uint32_t most, uint32_t ports)
{
	size_t services = 1 + random_below(most), n = 0;
	struct fixture f;

	fixture_make(&f, services);
	while (n < services) {
		struct address a = make_address((uint32_t)random_u64(), random_below(3) == 0);

		for (uint32_t left = 1 + random_below(6); left && n < services; left--) {
			uint16_t port = (uint16_t)random_below(ports);
			uint8_t protocol = random_below(2) ? IPPROTO_TCP : IPPROTO_UDP;

			f.config.services = n;
			if (!is_configured(&f, &a, port, protocol))
				set_service(&f, n++, a, port, protocol);
		}
	}
	f.config.services = services;
	check(&f);
	fixture_free(&f);
}

static void test_random(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 60; round++)
		random_services(40, round % 2 ? 8 : 65536);
	for (uint32_t round = 0; round < 6; round++)
		random_services(2000, 65536);
}

/* The search through what is for more than one address, port or protocol, after ringlb_abi.h. */

static const struct ringlb_service *entry(const struct encoded *e, uint32_t number)
{
	return (const struct ringlb_service *)(e->base + e->root.services_off - REGION) + (number - 1);
}

static const struct ringlb_service *find_range(const struct encoded *e, const struct address *key, uint16_t port,
					       uint8_t protocol)
{
	const struct ringlb_service *list = find(e, key, 0, protocol | RINGLB_KEY_RANGES);
	const struct ringlb_range *r;

	if (!list)
		return NULL;
	assert_int_equal(list->index, RINGLB_NO_BACKEND);
	r = (const struct ringlb_range *)(e->base + list->index_off - REGION);
	for (uint32_t i = 0; i < list->points; i++) {
		assert_true(r[i].from <= r[i].to && (!i || r[i - 1].to < r[i].from));
		if (port >= r[i].from && port <= r[i].to)
			return entry(e, r[i].number);
	}
	return NULL;
}

static const struct ringlb_service *find_among(const struct encoded *e, const struct address *key, uint8_t kind,
					       uint16_t port, uint8_t protocol)
{
	const struct ringlb_service *s = find(e, key, port, protocol | kind);

	if (!s)
		s = find_range(e, key, port, protocol | kind);
	if (!s)
		s = find(e, key, 0, protocol | kind);
	if (!s)
		s = find(e, key, 0, kind);
	return s && s->index == RINGLB_NO_BACKEND ? NULL : s;
}

static uint64_t half(const uint8_t *byte)
{
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | byte[i];
	return n;
}

/* From one end to the other, since the search itself is the data plane's. */
static uint32_t find_prefix(const struct encoded *e, const struct address *a)
{
	const struct ringlb_block *b = (const struct ringlb_block *)(e->base + e->root.blocks_off - REGION);
	uint64_t high = half(a->byte), low = half(a->byte + 8);

	for (uint32_t i = 0; i < e->root.blocks; i++) {
		if (i)
			assert_true(b[i - 1].last[0] < b[i].last[0] ||
				    (b[i - 1].last[0] == b[i].last[0] && b[i - 1].last[1] < b[i].last[1]));
		if (high < b[i].last[0] || (high == b[i].last[0] && low <= b[i].last[1]))
			return b[i].prefix;
	}
	return 0;
}

static const struct ringlb_service *find_wider(const struct encoded *e, const struct address *a, uint16_t port,
					       uint8_t protocol)
{
	const uint32_t *wider = (const uint32_t *)(e->base + e->root.prefixes_off - REGION);
	const struct ringlb_service *s = find_among(e, a, 0, port, protocol);

	for (uint32_t prefix = find_prefix(e, a); prefix && !s; prefix = wider[prefix - 1]) {
		struct address key = { { 0 } };
		__u64 number = prefix - 1;

		assert_true(prefix <= e->root.prefixes);
		memcpy(&key.byte[8], &number, sizeof(number));
		assert_non_null(find(e, &key, 0, RINGLB_KEY_PREFIX));
		s = find_among(e, &key, RINGLB_KEY_PREFIX, port, protocol);
	}
	return s;
}

/* Close to each other, so that they contain each other; no rule ranks two of the same kind that overlap. */
static bool add_wide(struct fixture *f, size_t i)
{
	struct config_service *s = &f->config.service[i];
	bool six = random_below(2);

	set_service(f, i, make_address(0xc0000000 | random_below(1 << 11), six), 0, 0);
	s->free_bits = (uint8_t)(random_below(2) ? random_below(12) : 0);
	for (unsigned int bit = 0; bit < s->free_bits; bit++)
		s->address.byte[15 - bit / 8] &= (uint8_t) ~(1u << bit % 8);
	if (random_below(4)) {
		s->protocol = random_below(2) ? IPPROTO_TCP : IPPROTO_UDP;
		s->port = (uint16_t)random_below(30);
	}
	if (s->port && random_below(2))
		s->port_to = (uint16_t)(s->port + 1 + random_below(6));
	for (size_t j = 0; j < i; j++) {
		const struct config_service *o = &f->config.service[j];

		if (!address_equal(&o->address, &s->address) || o->free_bits != s->free_bits ||
		    o->protocol != s->protocol)
			continue;
		if (o->port == s->port || (o->port_to && s->port_to && o->port <= s->port_to && s->port <= o->port_to))
			return false;
	}
	return true;
}

static void assert_wide(const struct fixture *f, const struct encoded *e, struct address a)
{
	uint16_t port = (uint16_t)(1 + random_below(36));
	uint8_t protocol = random_below(2) ? IPPROTO_TCP : IPPROTO_UDP;
	const struct config_service *v = config_service_for(&f->config, &a, port, protocol);
	const struct ringlb_service *s = find_wider(e, &a, port, protocol);

	assert_int_equal(!s, !v);
	if (v)
		assert_int_equal(s->index, f->state.service_index[v - f->config.service]);
}

static void test_wider(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 100; round++) {
		size_t services = 1 + random_below(40), n = 0;
		struct encoded e;
		struct fixture f;

		fixture_make(&f, services);
		while (n < services)
			n += add_wide(&f, n);
		encode(&f, &e);
		for (size_t i = 0; i < 400; i++) {
			const struct config_service *s = &f.config.service[random_below((uint32_t)services)];
			struct address a = s->address;

			if (random_below(2)) {
				a.byte[15] ^= (uint8_t)random_u64();
				a.byte[14] ^= random_below(8);
			}
			assert_wide(&f, &e, a);
		}
		free(e.base);
		fixture_free(&f);
	}
}

/* Of two backends with one id the one that stays, and none that takes no packets. */
static void test_servers(void **state)
{
	struct state_backend backend[] = {
		{ .id = 9, .state = BACKEND_LEAVING, .index = 4 },
		{ .id = 300, .state = BACKEND_DRAIN, .index = 1 },
		{ .id = 9, .state = BACKEND_UP, .index = 2 },
		{ .id = 7, .state = BACKEND_MAINT, .index = 3 },
		{ .id = 0, .state = BACKEND_UP, .index = 6 },
		{ .id = 8, .state = BACKEND_DRAIN, .cut = true, .index = 8 },
		{ .id = 1, .state = BACKEND_LEAVING, .index = 5 },
	};
	static const struct ringlb_server expected[] = { { 1, 5 }, { 9, 2 }, { 300, 1 } };
	const struct ringlb_servers *servers;
	const struct ringlb_service *s;
	struct encoded e;
	struct fixture f;

	(void)state;
	fixture_make(&f, 2);
	set_service(&f, 0, make_address(1, true), 443, IPPROTO_UDP);
	set_service(&f, 1, make_address(2, true), 443, IPPROTO_UDP);
	f.config.service[1].cid_length = 8;
	f.config.service[1].server_offset = 1;
	f.config.service[1].server_length = 2;
	f.pool.backend = backend;
	f.pool.backends = sizeof(backend) / sizeof(*backend);
	encode(&f, &e);
	assert_int_equal(find(&e, &f.config.service[0].address, 443, IPPROTO_UDP)->servers_off, 0);
	s = find(&e, &f.config.service[1].address, 443, IPPROTO_UDP);
	assert_int_equal(s->cid_length, 8);
	assert_int_equal(s->server_offset, 1);
	assert_int_equal(s->server_length, 2);
	servers = (const struct ringlb_servers *)(e.base + s->servers_off - REGION);
	assert_int_equal(servers->count, 3);
	assert_memory_equal(servers->server, expected, sizeof(expected));
	free(e.base);
	fixture_free(&f);
}

/* Every port of the flag's kind: 0 is "any". */
static void test_any_port(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f, 3);
	set_service(&f, 0, make_address(0xc0000201, false), 443, IPPROTO_TCP);
	set_service(&f, 1, make_address(0xc0000201, false), 80, IPPROTO_TCP);
	set_service(&f, 2, make_address(1, true), 53, IPPROTO_UDP);
	check(&f);
	f.config.service[1].port = 0;
	check(&f);
	f.config.service[1].protocol = IPPROTO_UDP;
	check(&f);
	fixture_free(&f);
}

/* Consecutive addresses, or consecutive ports of one: what people configure must not fill buckets by its regularity. */
static void regular(size_t services, bool by_port, bool six)
{
	struct service_table t;
	struct fixture f;

	fixture_make(&f, services);
	for (size_t i = 0; i < services; i++)
		set_service(&f, i, make_address(0x0a000000 + (by_port ? 0 : (uint32_t)i), six),
			    (uint16_t)(by_port ? 1 + i : 443), IPPROTO_TCP);
	assert_int_equal(service_table_layout(&f.state, &t), 0);
	/* Not more than 16 buckets, 256 bytes, for each entry. */
	assert_true(1u << t.bits <= 16 * t.entries);
	if (services <= 2000)
		check(&f);
	fixture_free(&f);
}

static void test_regular(void **state)
{
	static const size_t size[] = { 1, 2, 10, 64, 512, 2000, RINGLB_MAX_SERVICES };

	(void)state;
	for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++)
		for (int kind = 0; kind < 4; kind++)
			regular(size[i], kind & 1, kind & 2);
}

/* A pool without a backend that takes flows has no table to point at. */
static void test_no_table(void **state)
{
	const struct ringlb_service *s;
	struct fixture f;
	struct encoded e;

	(void)state;
	fixture_make(&f, 1);
	set_service(&f, 0, make_address(0xc0000201, false), 443, IPPROTO_TCP);
	f.pool.arcs.count = 0;
	f.pool.layout = (struct table_layout){ 0 };
	f.pool.region = 0;
	encode(&f, &e);
	s = find(&e, &f.config.service[0].address, 443, IPPROTO_TCP);
	assert_non_null(s);
	assert_int_equal(s->bits, 0);
	assert_int_equal(s->points_off, 0);
	assert_int_equal(s->index, f.state.service_index[0]);
	free(e.base);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),    cmocka_unit_test(test_any_port), cmocka_unit_test(test_no_table),
		cmocka_unit_test(test_regular), cmocka_unit_test(test_random),   cmocka_unit_test(test_wider),
		cmocka_unit_test(test_servers),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
