// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Properties of reading and writing configurations, over random ones: what is written reads back the same, and no text,
 * however damaged, does worse than being refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <glob.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "config.h"
#include "quick.h"
#include "random_pool.h"

#define ROUND_TRIPS 300u
#define MUTATIONS 10000u

static char *random_name(void)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@-";
	static const char *const special[] = { "null", "true", "no",      "~",   "0x10",
					       "1e3",  "-",    "1.2.3.4", "::1", "2024-01-01" };
	uint32_t length = 1 + random_below(8);
	char *name = xcalloc(80, 1);

	if (!random_below(4))
		length = (uint32_t)sprintf(name, "%s",
					   special[random_below(3) ? random_below(3) : 4 + random_below(6)]);
	else
		for (uint32_t i = 0; i < length; i++)
			name[i] = letters[random_below(sizeof(letters) - 1)];
	sprintf(name + length, ".%08x", (unsigned int)random_u64()); /* so that no two are equal */
	return name;
}

static char *random_identity(void)
{
	uint32_t length = 1 + random_below(240);
	char *text = xcalloc(256, 1);

	for (uint32_t i = 0; i < length; i++)
		text[i] = (char)(' ' + random_below(95));
	sprintf(text + length, "%08x", (unsigned int)random_u64());
	return text;
}

static struct address random_address(bool ipv4)
{
	struct address a = { 0 };

	for (size_t i = 12; i < 16; i++)
		a.byte[i] = (uint8_t)random_u64();
	if (ipv4) {
		a.byte[10] = a.byte[11] = 0xff;
		a.byte[12] = 10;
	} else {
		a.byte[0] = 0xfd;
		a.byte[1 + random_below(11)] = 1;
	}
	return a;
}

/* Backends' addresses and services' have nothing in common, and no two services' lie in one /24 or /120. */
static struct address backend_address(bool ipv4)
{
	struct address a = random_address(ipv4);

	a.byte[13] &= 0x7f;
	return a;
}

static struct address service_address(bool ipv4)
{
	static uint16_t number;
	struct address a = random_address(ipv4);

	number++;
	a.byte[13] = (uint8_t)(0x80 | number >> 8);
	a.byte[14] = (uint8_t)number;
	return a;
}

static uint64_t random_duration(uint64_t min)
{
	static const uint64_t units[] = { 1, 1000, 60000, 3600000 };

	return min + units[random_below(4)] * random_below(100);
}

static void random_backend(struct config_backend *b, bool ipv4)
{
	b->name = random_name();
	b->identity = random_below(2) ? xstrdup(b->name) : random_identity();
	b->zone = random_below(2) ? random_name() : NULL;
	b->address = backend_address(ipv4);
	b->weight = 1 + random_below(random_below(4) ? 10 : 100);
	b->points = random_below(3) ? 0 : 1 + random_below(1000);
}

static void random_service(struct config *c, struct config_service *s, bool ipv4, bool tunnels)
{
	s->address = service_address(ipv4);
	if (random_below(3) == 0) {
		s->free_bits = 8;
		s->address.byte[15] = 0;
	}
	s->port = (uint16_t)random_below(random_below(2) ? 2 : 65536);
	s->protocol = (const uint8_t[]){ IPPROTO_TCP, IPPROTO_UDP, 0 }[random_below(3)];
	if (!s->protocol)
		s->port = 0;
	else if (s->port && s->port < 60000 && random_below(3) == 0)
		s->port_to = (uint16_t)(s->port + 1 + random_below(5000));
	s->name = random_below(2) ? random_name() : config_service_default_name(s);
	s->pool = random_below((uint32_t)c->pools);
	s->forward = !tunnels ? RINGLB_FORWARD_L2 : random_below(2) ? RINGLB_FORWARD_IPIP : RINGLB_FORWARD_GUE;
	s->gue_port = CONFIG_DEFAULT_GUE_PORT;
	if (s->forward == RINGLB_FORWARD_GUE && random_below(2))
		s->gue_port = (uint16_t)(1 + random_below(65535));
	s->affinity = random_below(2) ? RINGLB_AFFINITY_FLOW : RINGLB_AFFINITY_SOURCE;
	if (s->protocol == IPPROTO_UDP && random_below(3) == 0) {
		s->affinity = RINGLB_AFFINITY_QUIC;
		s->cid_length = (uint8_t)random_below(21);
	}
	s->source_prefix4 = 32;
	s->source_prefix6 = 128;
	if (s->affinity == RINGLB_AFFINITY_SOURCE && random_below(2)) {
		s->source_prefix4 = (uint8_t)(1 + random_below(32));
		s->source_prefix6 = (uint8_t)(1 + random_below(128));
	}
	s->track = (s->protocol == IPPROTO_TCP || s->affinity == RINGLB_AFFINITY_QUIC) && random_below(2) ?
			   RINGLB_TRACK_MOVED :
			   RINGLB_TRACK_NONE;
	s->fragments = random_below(2) ? RINGLB_FRAGMENTS_TRACK : RINGLB_FRAGMENTS_DROP;
}

static void random_top(struct config *c, bool tunnels)
{
	static const char *const interfaces[] = { "eth0", "null", "a\"b\\c",          "\xc3\xa9#0",
						  "{x}",  "-",    "\xf0\x9f\x90\xa7", "br-1.2" };

	c->file = xstrdup("random.yaml");
	c->interfaces = 1 + random_below(8);
	c->interface = xcalloc(c->interfaces, sizeof(*c->interface));
	for (size_t i = 0; i < c->interfaces; i++)
		c->interface[i] = xstrdup(interfaces[i]);
	c->xdp = (enum config_xdp)random_below(3);
	for (size_t i = 0; i < 16; i++)
		c->hash_key[i] = (uint8_t)random_u64();
	c->has_tunnel4 = tunnels || random_below(2);
	c->has_tunnel6 = tunnels || random_below(2);
	if (c->has_tunnel4)
		c->tunnel4 = random_address(true);
	if (c->has_tunnel6)
		c->tunnel6 = random_address(false);
	if (c->has_tunnel4 && random_below(2)) {
		c->tunnel4_free = 8;
		c->tunnel4.byte[15] = 0;
	}
	if (c->has_tunnel6 && random_below(2)) {
		c->tunnel6_free = 16;
		memset(&c->tunnel6.byte[14], 0, 2);
	}
	c->status_listen = random_below(2) ? xstrdup(random_below(2) ? "127.0.0.1:9391" : "[::]:1") : NULL;
	c->max_move = -1;
	c->flows_established = 4 + random_below(1u << 24);
	c->flows_opening = 4 + random_below(1000);
}

/* One that is valid: unique names and, but for odds of no account, unique addresses. */
static struct config *random_config(void)
{
	bool tunnels = random_below(2), ipv4 = random_below(2);
	struct config *c = xcalloc(1, sizeof(*c));

	random_top(c, tunnels);
	c->pools = 1 + random_below(4);
	c->pool = xcalloc(c->pools, sizeof(*c->pool));
	for (size_t i = 0; i < c->pools; i++) {
		struct config_pool *p = &c->pool[i];

		p->name = random_name();
		p->placement = (enum config_placement)random_below(CONFIG_RENDEZVOUS + 1);
		p->vnodes = 1 + random_below(500);
		p->maglev_size = (const uint32_t[]){ 13, CONFIG_DEFAULT_MAGLEV_SIZE, 1048573 }[random_below(3)];
		p->settle_after_ms = random_duration(1000);
		p->drain_max_ms = random_duration(0);
		p->quorum = 1 + random_below(3);
		p->backends = random_below(12);
		p->backend = xcalloc(p->backends, sizeof(*p->backend));
		for (size_t j = 0; j < p->backends; j++) {
			random_backend(&p->backend[j], tunnels ? random_below(2) : ipv4);
			p->backend[j].id = random_below(2) ? 0 : (uint32_t)(j + 1) * 1000003;
		}
	}
	c->services = random_below(6);
	c->service = xcalloc(c->services, sizeof(*c->service));
	for (size_t i = 0; i < c->services; i++)
		random_service(c, &c->service[i], tunnels ? random_below(2) : ipv4, tunnels);
	return c;
}

static void assert_same_text(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a)
		assert_string_equal(a, b);
}

static void assert_same_pool(const struct config_pool *a, const struct config_pool *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->placement, b->placement);
	assert_int_equal(a->vnodes, b->vnodes);
	assert_int_equal(a->maglev_size, b->maglev_size);
	assert_int_equal(a->settle_after_ms, b->settle_after_ms);
	assert_int_equal(a->drain_max_ms, b->drain_max_ms);
	assert_int_equal(a->quorum, b->quorum);
	assert_int_equal(a->backends, b->backends);
	for (size_t i = 0; i < a->backends; i++) {
		const struct config_backend *x = &a->backend[i], *y = &b->backend[i];

		assert_string_equal(x->name, y->name);
		assert_string_equal(x->identity, y->identity);
		assert_same_text(x->zone, y->zone);
		assert_true(address_equal(&x->address, &y->address));
		assert_int_equal(x->weight, y->weight);
		assert_int_equal(x->points, y->points);
		assert_int_equal(x->id, y->id);
		assert_int_equal(x->state, y->state);
	}
}

static void assert_same_service(const struct config_service *a, const struct config_service *b)
{
	assert_string_equal(a->name, b->name);
	assert_true(address_equal(&a->address, &b->address));
	assert_int_equal(config_service_order(a, b), 0);
	assert_int_equal(a->free_bits, b->free_bits);
	assert_int_equal(a->port, b->port);
	assert_int_equal(a->port_to, b->port_to);
	assert_int_equal(a->protocol, b->protocol);
	assert_int_equal(a->pool, b->pool);
	assert_int_equal(a->forward, b->forward);
	assert_int_equal(a->gue_port, b->gue_port);
	assert_int_equal(a->cid_length, b->cid_length);
	assert_int_equal(a->server_offset, b->server_offset);
	assert_int_equal(a->server_length, b->server_length);
	assert_int_equal(a->affinity, b->affinity);
	assert_int_equal(a->source_prefix4, b->source_prefix4);
	assert_int_equal(a->source_prefix6, b->source_prefix6);
	assert_int_equal(a->track, b->track);
	assert_int_equal(a->fragments, b->fragments);
}

static void assert_same_config(const struct config *a, const struct config *b)
{
	assert_int_equal(a->interfaces, b->interfaces);
	for (size_t i = 0; i < a->interfaces; i++)
		assert_string_equal(a->interface[i], b->interface[i]);
	assert_int_equal(a->xdp, b->xdp);
	assert_memory_equal(a->hash_key, b->hash_key, 16);
	assert_int_equal(a->has_tunnel4, b->has_tunnel4);
	assert_int_equal(a->has_tunnel6, b->has_tunnel6);
	assert_true(address_equal(&a->tunnel4, &b->tunnel4));
	assert_true(address_equal(&a->tunnel6, &b->tunnel6));
	assert_int_equal(a->tunnel4_free, b->tunnel4_free);
	assert_int_equal(a->tunnel6_free, b->tunnel6_free);
	assert_same_text(a->status_listen, b->status_listen);
	assert_true((a->max_move < 0 && b->max_move < 0) || a->max_move == b->max_move);
	assert_int_equal(a->flows_established, b->flows_established);
	assert_int_equal(a->flows_opening, b->flows_opening);
	assert_int_equal(a->pools, b->pools);
	for (size_t i = 0; i < a->pools; i++)
		assert_same_pool(&a->pool[i], &b->pool[i]);
	assert_int_equal(a->services, b->services);
	for (size_t i = 0; i < a->services; i++)
		assert_same_service(&a->service[i], &b->service[i]);
}

static struct config *parse_or_fail(const char *text)
{
	struct diag d = { 0 };
	struct config *c = config_parse("random.yaml", text, strlen(text), &d);

	for (size_t i = 0; !c && i < d.count; i++)
		print_error("%s: %s\n", d.entry[i].where, d.entry[i].message);
	if (!c)
		print_error("%s", text);
	diag_free(&d);
	assert_non_null(c);
	return c;
}

static void test_round_trip(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < ROUND_TRIPS; i++) {
		struct config *c = random_config();
		char *text = config_emit(c, true), *again;
		struct config *back = parse_or_fail(text);

		assert_same_config(c, back);
		again = config_emit(back, true);
		assert_string_equal(text, again);
		free(again);
		free(text);
		config_free(back);
		config_free(c);
	}
}

static char *slurp(const char *path, size_t *length)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;
	ssize_t got;

	assert_non_null(f);
	got = getdelim(&text, &room, EOF, f);
	fclose(f);
	*length = got < 0 ? 0 : (size_t)got;
	return text;
}

/* Bytes that mean something to YAML, or to us. */
static const char *const tokens[] = {
	"\n",
	"\n  ",
	": ",
	"- ",
	"[",
	"]",
	"{",
	"}",
	", ",
	"&a ",
	"*a",
	"!t ",
	"\"",
	"'",
	"\\",
	"#",
	"? ",
	"|\n",
	">\n",
	"---\n",
	"...\n",
	"<<: ",
	"%",
	"@",
	"~",
	"0",
	"-1",
	"99999999999999999999",
	"name",
	"pools:",
	"null",
	"\t",
	"\r",
	"\xc3",
	"\xff",
	"\xe2\x80\xa8",
	"\"\\0\"",
	"\"\\u0085\"",
	"::",
	"::ffff:1.2.3.4",
	"/33",
	"%eth0",
	"\xef\xbb\xbf",
};

/* A copy with up to eight damages: bits, bytes, pieces cut out, doubled, or put in. Freed by the caller. */
static char *mutate(const char *text, size_t length, size_t *out_length)
{
	size_t room = length * 2 + 4096;
	char *m = xcalloc(room, 1);

	if (length)
		memcpy(m, text, length);
	for (uint32_t n = 1 + random_below(random_below(3) ? 1 : 8); n; n--) {
		size_t at = length ? random_below((uint32_t)length) : 0, rest = length - at;
		size_t piece = rest ? 1 + random_below((uint32_t)(rest < 40 ? rest : 40)) : 0;
		const char *token = tokens[random_below(sizeof(tokens) / sizeof(*tokens))];
		size_t token_length = strlen(token);

		switch (random_below(6)) {
		case 0:
			m[at] = (char)(m[at] ^ 1 << random_below(8));
			break;
		case 1:
			memmove(m + at, m + at + piece, rest - piece);
			length -= piece;
			break;
		case 2:
			memmove(m + at + piece, m + at, rest);
			length += piece;
			break;
		case 3:
			if (length && m[at] >= '0' && m[at] <= '9')
				m[at] = (char)('0' + random_below(10));
			break;
		default:
			memmove(m + at + token_length, m + at, rest);
			memcpy(m + at, token, token_length);
			length += token_length;
		}
	}
	*out_length = length;
	return m;
}

/* Parses a text in memory of exactly its size, so that the sanitizer sees a step beyond. */
static bool survives(const char *text, size_t length)
{
	struct diag d = { 0 };
	char *exact = malloc(length ? length : 1);
	struct config *c, *back;
	char *emitted;

	assert_non_null(exact);
	memcpy(exact, text, length);
	c = config_parse("mutated.yaml", exact, length, &d);
	free(exact);
	assert_int_equal(!c, d.errors > 0);
	for (size_t i = 0; i < d.count; i++)
		assert_true(!strncmp(d.entry[i].where, "mutated.yaml", 12) && *d.entry[i].message);
	diag_free(&d);
	if (!c)
		return false;
	emitted = config_emit(c, true);
	back = parse_or_fail(emitted);
	assert_same_config(c, back);
	free(emitted);
	config_free(back);
	config_free(c);
	return true;
}

static void test_mutations(void **state)
{
	LEAVE_IF_QUICK();
	const char *conf = getenv("RINGLB_CONF");
	char *pattern = xasprintf("%s/*/*.yaml", conf ? conf : "tests/conf");
	unsigned int accepted = 0;
	glob_t files;

	(void)state;
	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	for (unsigned int i = 0; i < MUTATIONS; i++) {
		size_t length, mutated_length;
		char *text = slurp(files.gl_pathv[i % files.gl_pathc], &length);
		char *mutated = mutate(text, length, &mutated_length);

		accepted += survives(mutated, mutated_length);
		free(mutated);
		free(text);
	}
	globfree(&files);
	free(pattern);
	/* Else the damages were so heavy that nothing but the YAML library was tried. */
	assert_in_range(accepted, MUTATIONS / 100, MUTATIONS / 2);
}

static int start(void **state)
{
	(void)state;
	random_start();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests_name("config_random", tests, start, NULL);
}
