// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random sequences of changes, with connections that live through them, against the model (tests/model): the plan, the
 * arcs, the encoded tables and the data plane's program as they are, event by event. What the balancer did is written to
 * tests/model/replay.py, which does the same by the model; here every living connection is held to its backend.
 * RINGLB_MODEL_SEQUENCES: how many, 100; RINGLB_FULL: 1,000. As root, in the tree's top directory.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../include/ringlb_abi.h"
#include "../unit/balancer_case.h"
#include "../unit/plan_case.h"
#include "../unit/random_pool.h"
#include "moved.h"

#define TUPLES 200u
#define EVENTS 30u
#define HISTORY 8u
#define SETTLE_AFTER 900u
#define NAME 64u

/* A 5-tuple, and the connection on it. */
struct tuple {
	struct case_packet packet;
	__u64 fingerprint;
	bool kept; /* the flow table has an entry */
	bool opening, living;
	uint16_t backend, incarnation;
	uint32_t first, sequence; /* numbers: of the SYN, and of what was sent last */
};

static struct sequence {
	struct balancer b;
	struct case_config config, history[HISTORY];
	struct case_backend deleted[CASE_POOLS][4];
	struct tuple tuple[TUPLES];
	unsigned int number;
} s;
static FILE *replay;

static const struct state_pool *table(void)
{
	return state_table(s.b.running, 0);
}

static const struct state_backend *backend_of(uint16_t index)
{
	for (size_t i = 0; i < table()->backends; i++)
		if (table()->backend[i].index == index)
			return &table()->backend[i];
	return NULL;
}

static const char *name_of(const struct state_backend *b, char text[NAME])
{
	const uint8_t *a = b ? b->address.byte : NULL;

	if (!b)
		return "nobody";
	snprintf(text, NAME, "%s@%02x%02x%02x%02x", b->identity, a[12], a[13], a[14], a[15]);
	return text;
}

/* Whether the other pool still has it. */
static bool elsewhere(uint16_t index)
{
	for (size_t i = 0; i < state_tables(s.b.running); i++) {
		const struct state_pool *p = state_table_at(s.b.running, i);

		for (size_t j = 0; j < p->backends; j++)
			if (p->backend[j].index == index)
				return true;
	}
	return false;
}

static const char *index_name(uint16_t index, char text[NAME])
{
	const struct state_backend *b = backend_of(index);

	return !b && index != RINGLB_NO_BACKEND && elsewhere(index) ? "elsewhere" : name_of(b, text);
}

static bool alive(uint16_t index, uint16_t incarnation)
{
	const struct state_backend *b = backend_of(index);

	return b && b->incarnation == incarnation && backend_alive(b);
}

static uint32_t bucket_of(const struct tuple *t)
{
	return (uint32_t)((__u64)(uint32_t)t->fingerprint * s.b.flows.buckets >> 32);
}

/* Whose entries were given to others. */
static void note_reused(const struct tuple *by)
{
	for (size_t i = 0; i < TUPLES; i++) {
		struct tuple *t = &s.tuple[i];

		if (t == by || !t->kept || bucket_of(t) != bucket_of(by) || balancer_entry(&s.b, t->fingerprint))
			continue;
		t->kept = false;
		fprintf(replay, "reused %zu\n", i);
	}
}

/* A refusal has a reason. */
static void assert_no_room(const struct tuple *t)
{
	const struct ringlb_flow *e = s.b.flows.bucket[bucket_of(t)].flow;
	unsigned int used = 0, openings = 0;

	for (size_t i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++) {
		if (!e[i].fingerprint || (int32_t)(s.b.now - (uint32_t)(e[i].established >> 32)) >= 0)
			continue;
		used++;
		openings += !(uint32_t)e[i].established;
	}
	assert_true(used == RINGLB_FLOWS_PER_BUCKET || openings >= RINGLB_OPENINGS_PER_BUCKET);
}

static uint16_t send_syn(struct tuple *t, uint32_t isn)
{
	struct ringlb_lookup answer;
	char text[NAME];
	uint16_t to;

	t->packet.flags = CASE_SYN;
	t->packet.sequence = isn;
	t->packet.payload = 0;
	balancer_lookup(&s.b, &t->packet, &answer);
	to = balancer_send(&s.b, &t->packet);
	assert_int_equal(answer.backend, to);
	t->kept = balancer_entry(&s.b, t->fingerprint) != NULL;
	if (answer.moved && !t->kept)
		assert_no_room(t);
	note_reused(t);
	fprintf(replay, "open %zu %u %d %s\n", (size_t)(t - s.tuple), isn, t->kept, index_name(to, text));
	return to;
}

static uint16_t send_more(struct tuple *t, uint32_t sequence, uint8_t flags, uint8_t payload)
{
	bool ask = random_below(4) == 0; /* what the program lookup says beforehand */
	struct ringlb_lookup answer;
	char text[NAME];
	uint16_t to;

	t->packet.flags = flags;
	t->packet.sequence = sequence;
	t->packet.payload = payload;
	if (ask)
		balancer_lookup(&s.b, &t->packet, &answer);
	to = balancer_send(&s.b, &t->packet);
	if (ask)
		assert_int_equal(answer.backend, to);
	fprintf(replay, "packet %zu %u %d %s\n", (size_t)(t - s.tuple), sequence, payload > 0, index_name(to, text));
	return to;
}

static void assert_stays(const struct tuple *t, uint16_t to, const char *what)
{
	char is[NAME], should[NAME];

	if (to != t->backend)
		fail_msg("sequence %u: %s of %zu went to %s, its connection is with %s", s.number, what,
			 (size_t)(t - s.tuple), index_name(to, is), index_name(t->backend, should));
}

/* The handshake's third packet: from now on the connection lives. */
static void finish_opening(struct tuple *t)
{
	t->opening = false;
	t->living = true;
	assert_stays(t, send_more(t, ++t->sequence, CASE_ACK, 0), "the handshake");
}

static void open_connection(struct tuple *t)
{
	t->first = t->sequence = 1000000000 + random_below(1000000000);
	t->backend = send_syn(t, t->first);
	assert_non_null(backend_of(t->backend));
	t->incarnation = backend_of(t->backend)->incarnation;
	t->opening = true;
	if (random_below(5) == 0)
		assert_stays(t, send_syn(t, t->first), "a SYN sent again");
	if (random_below(4))
		finish_opening(t);
}

/* Its own SYN is, and where it went. */
static bool is_remembered(const struct tuple *t)
{
	const struct ringlb_flow *e = balancer_entry(&s.b, t->fingerprint);
	uint32_t choice = (uint32_t)t->incarnation << 16 | t->backend;

	return e && (uint32_t)e->established == choice && e->opening == ((uint64_t)t->first << 32 | choice);
}

static void traffic(void)
{
	for (unsigned int i = 0; i < TUPLES / 4; i++) {
		struct tuple *t = &s.tuple[random_below(TUPLES)];

		if (!t->living && !t->opening && random_below(t->kept ? 2 : 10))
			open_connection(t);
		else if (t->living && random_below(3) == 0) /* forged: no sequence number of a connection is near */
			send_syn(t, 1000000 + random_below(900000000));
		else if (t->living && is_remembered(t)) /* a copy that comes late */
			send_syn(t, t->first);
		else if (!t->living && !t->opening)
			send_more(t, 3000000000u + random_below(1000000), CASE_ACK, random_below(2));
	}
}

/* Every living connection's packet reaches its backend. */
static void living_send(void)
{
	for (size_t i = 0; i < TUPLES; i++) {
		struct tuple *t = &s.tuple[i];

		if (t->opening)
			finish_opening(t);
		if (!t->living)
			continue;
		t->sequence += random_below(100000);
		assert_stays(t, send_more(t, t->sequence, CASE_ACK, random_below(2)), "a packet");
		if (random_below(10))
			continue;
		assert_stays(t, send_more(t, t->sequence, random_below(2) ? CASE_FIN | CASE_ACK : CASE_RST, 0),
			     "an end");
		t->living = false;
	}
}

static struct case_backend *some_backend(struct case_pool *p, const char *state)
{
	size_t first = random_below((uint32_t)p->backends);

	for (size_t i = 0; i < p->backends; i++) {
		struct case_backend *b = &p->backend[(first + i) % p->backends];

		if (!state || !strcmp(b->state, state))
			return b;
	}
	return NULL;
}

static void set_state(struct case_pool *p, const char *from, const char *to)
{
	struct case_backend *b = some_backend(p, from);

	if (b)
		b->state = to;
}

static void delete (struct case_pool *p, struct case_backend *deleted)
{
	struct case_backend *b = some_backend(p, NULL);

	deleted[random_below(4)] = *b;
	case_backend_remove(p, (size_t)(b - p->backend));
}

static void restore(struct case_pool *p, const struct case_backend *deleted)
{
	deleted += random_below(4);
	if (!deleted->weight || p->backends >= 8)
		return;
	for (size_t i = 0; i < p->backends; i++)
		if (!strcmp(p->backend[i].name, deleted->name))
			return;
	p->backend[p->backends++] = *deleted;
}

static void change(struct case_config *c)
{
	size_t pool = random_below(4) ? c->service[0].pool : random_below((uint32_t)c->pools);
	struct case_pool *p = &c->pool[pool];
	static uint32_t address = 0x8000;

	switch (random_below(14)) {
	case 0:
	case 1:
		if (p->backends < 8)
			case_backend_add(p, 1 + random_below(3));
		break;
	case 2:
		some_backend(p, NULL)->weight = 1 + random_below(4);
		break;
	case 3:
		set_state(p, "up", "drain");
		break;
	case 4:
		set_state(p, "drain", "up");
		break;
	case 5:
		set_state(p, "up", "maint");
		break;
	case 6:
		set_state(p, "maint", "up");
		break;
	case 7:
	case 8:
		delete (p, s.deleted[pool]);
		break;
	case 9:
		restore(p, s.deleted[pool]);
		break;
	case 10:
		*c = s.history[random_below(HISTORY)];
		break;
	case 11:
		c->service[0].pool = 1 - c->service[0].pool;
		break;
	case 12:
		some_backend(p, NULL)->address = ++address;
		break;
	}
}

/* The model knows no ring without owner. */
static bool has_owners(const struct case_config *c)
{
	for (size_t i = 0; i < c->pools; i++) {
		bool up = false;

		for (size_t j = 0; j < c->pool[i].backends; j++)
			up |= !strcmp(c->pool[i].backend[j].state, "up");
		if (!up)
			return false;
	}
	return true;
}

static bool in_maintenance(const char *identity)
{
	for (size_t i = 0; i < s.config.pools; i++)
		for (size_t j = 0; j < s.config.pool[i].backends; j++) {
			const struct case_backend *b = &s.config.pool[i].backend[j];

			if (!strcmp(b->name, identity) && !strcmp(b->state, "maint"))
				return true;
		}
	return false;
}

/* Only what goes into maintenance loses connections, and only its own. */
static void lose_connections(const struct state_pool *was)
{
	for (size_t i = 0; i < TUPLES; i++) {
		struct tuple *t = &s.tuple[i];
		const struct state_backend *b = NULL;

		if ((!t->living && !t->opening) || alive(t->backend, t->incarnation))
			continue;
		for (size_t j = 0; j < was->backends; j++)
			if (was->backend[j].index == t->backend)
				b = &was->backend[j];
		assert_non_null(b);
		if (!in_maintenance(b->identity))
			fail_msg("sequence %u: %s went with a connection", s.number, b->identity);
		t->living = t->opening = false;
	}
}

/* By the configuration alone. */
static void write_owners(void)
{
	const struct case_pool *p = &s.config.pool[s.config.service[0].pool];
	struct ring_member member[CASE_BACKENDS];
	struct arcs ring;
	char text[NAME];

	for (size_t i = 0; i < p->backends; i++) {
		const struct case_backend *b = &p->backend[i];

		member[i] = (struct ring_member){ b->name, strcmp(b->state, "up") ? 0 : p->vnodes * b->weight };
	}
	assert_int_equal(ring_build(member, p->backends, &ring), 0);
	for (size_t i = 0; i < TUPLES; i++) {
		const char *owner =
			member[ring.arc[arcs_find(&ring, (uint32_t)(s.tuple[i].fingerprint >> 32))].owner].identity;
		const struct state_backend *b = NULL;

		for (size_t j = 0; j < table()->backends; j++)
			if (!strcmp(table()->backend[j].identity, owner) && table()->backend[j].state == BACKEND_UP)
				b = &table()->backend[j];
		fprintf(replay, " %s", name_of(b, text));
	}
	fputc('\n', replay);
	arcs_free(&ring);
}

static void write_commit(void)
{
	char text[NAME];

	fputs("commit ", replay);
	for (size_t i = 0; i < table()->backends; i++) {
		const struct state_backend *b = &table()->backend[i];

		fprintf(replay, "%s%s:%s", i ? "," : "", name_of(b, text),
			!backend_alive(b) ? "down" : backend_state_name(b->state));
	}
	write_owners();
}

static void write_settled(void)
{
	struct arcs settled;

	assert_int_equal(arcs_copy(&table()->arcs, &settled), 0);
	arcs_settle(&settled, s.b.now, SETTLE_AFTER, false);
	fputs("settle", replay);
	for (size_t i = 0; i < TUPLES; i++) {
		uint32_t position = (uint32_t)(s.tuple[i].fingerprint >> 32);

		if (table()->arcs.arc[arcs_find(&table()->arcs, position)].moved &&
		    !settled.arc[arcs_find(&settled, position)].moved)
			fprintf(replay, " %zu", i);
	}
	fputc('\n', replay);
	arcs_free(&settled);
}

static void write_memory(void)
{
	struct ringlb_lookup answer;
	char text[NAME];

	fputs("arcs", replay);
	for (size_t i = 0; i < TUPLES; i++) {
		balancer_lookup(&s.b, &s.tuple[i].packet, &answer);
		fprintf(replay, " %u:%s", answer.moved, index_name(answer.previous, text));
	}
	fputs("\nentries", replay);
	for (size_t i = 0; i < TUPLES; i++) {
		s.tuple[i].kept = balancer_entry(&s.b, s.tuple[i].fingerprint) != NULL;
		if (s.tuple[i].kept)
			fprintf(replay, " %zu", i);
	}
	fputc('\n', replay);
}

static void commit(void)
{
	struct case_config next = s.config;
	struct plan p;

	change(&next);
	if (has_owners(&next))
		s.config = next;
	balancer_plan(&s.b, case_parse(&s.config, random_below(2)), false, &p);
	write_settled();
	if (random_below(4) == 0)
		living_send(); /* after the plan has read what there is */
	balancer_publish(&s.b, &p);
	plan_free(&p);
	write_commit();
	lose_connections(state_table(s.b.before, 0));
	if (random_below(4) == 0)
		living_send(); /* before what follows the switch */
	balancer_after(&s.b, random_below(8) == 0);
	write_memory();
	s.history[random_below(HISTORY)] = s.config;
}

static void advance(void)
{
	static const uint32_t seconds[] = { 0, 0, 1, 5, 60, 450, 900 };
	bool opening = false;

	for (size_t i = 0; i < TUPLES; i++)
		opening |= s.tuple[i].opening;
	balancer_clock(&s.b, s.b.now + seconds[random_below(opening ? 4 : 7)]);
}

static void start(void)
{
	struct plan p;

	balancer_clear(&s.b);
	s.config = (struct case_config){ .key = '1', .interfaces = "eth0", .more = "", .services = 1 };
	case_pool_add(&s.config, 4);
	case_pool_add(&s.config, 3);
	s.config.service[0] = (struct case_service){ "www", 0x10002, 443, "tcp", "flow", 0 };
	for (size_t i = 0; i < HISTORY; i++)
		s.history[i] = s.config;
	memset(s.deleted, 0, sizeof(s.deleted));
	memset(s.tuple, 0, sizeof(s.tuple));
	balancer_plan(&s.b, case_parse(&s.config, false), false, &p);
	balancer_publish(&s.b, &p);
	plan_free(&p);
	for (size_t i = 0; i < TUPLES; i++) {
		s.tuple[i].packet = (struct case_packet){ .client = random_below(1 << 16), .port = (uint16_t)(i + 1) };
		s.tuple[i].fingerprint = balancer_fingerprint(&s.b, &s.tuple[i].packet);
	}
	fprintf(replay, "start %u\n", TUPLES);
	write_commit();
	balancer_after(&s.b, false);
}

static void one_sequence(void)
{
	s.number++;
	start();
	for (unsigned int i = 0; i < EVENTS; i++) {
		traffic();
		advance();
		commit();
		living_send();
	}
}

static unsigned int sequences(void)
{
	const char *text = getenv("RINGLB_MODEL_SEQUENCES");

	return text ? (unsigned int)atoi(text) : getenv("RINGLB_FULL") ? 1000 : 100;
}

/* From a table that refuses nearly everything to one that refuses nearly nothing. */
static void test_agrees(void **state)
{
	static const uint32_t buckets[] = { 1, 4, 30, 200, 4000 };
	const unsigned int kinds = sizeof(buckets) / sizeof(buckets[0]);

	(void)state;
	random_start();
	signal(SIGPIPE, SIG_IGN);
	replay = popen("/usr/bin/python3 tests/model/replay.py", "w");
	assert_non_null(replay);
	for (unsigned int i = 0; i < kinds; i++) {
		balancer_open(&s.b, buckets[i]);
		for (unsigned int j = 0; j < (sequences() + kinds - 1) / kinds; j++)
			one_sequence();
		balancer_close(&s.b);
	}
	assert_int_equal(pclose(replay), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_agrees) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
