// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Moved arcs from the change to the end: stamps, settling, what a command that is killed leaves, a flood meanwhile. The
 * programs, maps and commits are real, and attached to nothing. As root.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
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

#define SETTLE_AFTER 900u
#define FLOWS 400u
#define FLOOD 1000000u

struct flow {
	struct case_packet packet;
	uint16_t backend;
};

static struct {
	struct balancer b;
	struct case_config c;
	struct flow flow[FLOWS];
} s;

static uint16_t send_packet(struct flow *f, uint8_t flags, uint32_t sequence)
{
	f->packet.flags = flags;
	f->packet.sequence = sequence;
	f->packet.payload = flags == CASE_ACK;
	return balancer_send(&s.b, &f->packet);
}

static void start_with(uint32_t flow_buckets, const char *track)
{
	balancer_open(&s.b, flow_buckets);
	s.c = (struct case_config){ .key = '1', .interfaces = "eth0", .more = "", .services = 1 };
	case_pool_add(&s.c, 0)->vnodes = 100;
	for (int i = 0; i < 3; i++)
		case_backend_add(&s.c.pool[0], 1);
	s.c.service[0] = (struct case_service){ "www", 0x10002, 443, "tcp", track, 0 };
	balancer_commit(&s.b, case_parse(&s.c, false));
	for (uint32_t i = 0; i < FLOWS; i++)
		s.flow[i].packet = (struct case_packet){ .client = i, .port = 1024 };
}

static void start(uint32_t flow_buckets)
{
	start_with(flow_buckets, "flow");
}

static void apply(void)
{
	balancer_commit(&s.b, case_parse(&s.c, false));
}

static void open_flow(struct flow *f, uint32_t isn)
{
	f->backend = send_packet(f, CASE_SYN, isn);
	assert_int_equal(send_packet(f, CASE_ACK, isn + 1), f->backend);
	f->packet.sequence = isn + 1;
}

static void open_flows(uint32_t isn)
{
	for (size_t i = 0; i < FLOWS; i++)
		open_flow(&s.flow[i], isn);
}

static void send_again(struct flow *f)
{
	assert_int_equal(send_packet(f, CASE_ACK, f->packet.sequence + 100), f->backend);
}

static void all_send(void)
{
	for (size_t i = 0; i < FLOWS; i++)
		send_again(&s.flow[i]);
}

static struct ringlb_lookup look(const struct flow *f)
{
	struct ringlb_lookup answer;

	balancer_lookup(&s.b, &f->packet, &answer);
	return answer;
}

/* A flow in an arc that is moved. */
static struct flow *moved_flow(void)
{
	for (size_t i = 0; i < FLOWS; i++)
		if (look(&s.flow[i]).moved)
			return &s.flow[i];
	fail_msg("no flow in a moved arc");
	return NULL;
}

static uint64_t moved(void)
{
	return arcs_moved(&state_table(s.b.running, 0)->arcs);
}

static uint32_t entries(void)
{
	uint32_t used, openings;

	flows_use(&s.b.flows, s.b.now - (1u << 30), &used, &openings); /* none has expired by then */
	return used;
}

static const struct state_backend *named(const char *name)
{
	return state_pool_find(state_table(s.b.running, 0), name);
}

static void test_settles_when_silent(void **state)
{
	struct flow *f;

	(void)state;
	start(1000);
	open_flows(100);
	case_backend_add(&s.c.pool[0], 1);
	apply();
	all_send();
	assert_true(moved() > 0);
	assert_int_equal(entries(), 0);
	f = moved_flow();
	for (int i = 0; i < 3; i++) {
		balancer_clock(&s.b, s.b.now + SETTLE_AFTER);
		apply();
		send_again(f);
	}
	/* The others were silent: only arcs with flows like this one are left. */
	balancer_clock(&s.b, s.b.now + SETTLE_AFTER);
	apply();
	send_again(f);
	assert_true(moved() > 0 && moved() < UINT32_MAX / 8);
	balancer_clock(&s.b, s.b.now + SETTLE_AFTER + 1);
	apply();
	assert_int_equal(moved(), 0);
	balancer_close(&s.b);
}

/* Packets stamp the former table until the switch, after the plan has read it. */
static void stamped_under_way(bool killed)
{
	struct flow *f;
	struct plan p;

	start(1000);
	open_flows(100);
	case_backend_add(&s.c.pool[0], 1);
	apply();
	f = moved_flow();
	balancer_clock(&s.b, s.b.now + 500);
	s.c.pool[0].backend[0].weight = 2;
	balancer_plan(&s.b, case_parse(&s.c, false), false, &p);
	send_again(f);
	balancer_publish(&s.b, &p);
	plan_free(&p);
	balancer_after(&s.b, killed);
	balancer_clock(&s.b, s.b.now + SETTLE_AFTER);
	apply();
	send_again(f);
	assert_true(look(f).moved);
	balancer_close(&s.b);
}

static void test_stamps_cross_the_switch(void **state)
{
	(void)state;
	stamped_under_way(false);
	stamped_under_way(true);
}

/* The plan that is made at once after the repair knows, too. */
static void test_stamps_after_a_kill(void **state)
{
	struct flow *f;
	struct plan p;

	(void)state;
	start(1000);
	open_flows(100);
	case_backend_add(&s.c.pool[0], 1);
	apply();
	f = moved_flow();
	balancer_clock(&s.b, s.b.now + SETTLE_AFTER);
	s.c.pool[0].backend[0].weight = 2;
	balancer_plan(&s.b, case_parse(&s.c, false), false, &p);
	balancer_clock(&s.b, s.b.now + 1);
	send_again(f); /* nearly too late */
	balancer_publish(&s.b, &p);
	plan_free(&p);
	balancer_after(&s.b, true);
	for (size_t i = 0; i < state_table(s.b.running, 0)->arcs.count; i++) {
		const struct arc *a = &state_table(s.b.running, 0)->arcs.arc[i];

		if (a->moved)
			assert_int_equal(a->stamp, s.b.now);
	}
	apply();
	send_again(f);
	balancer_close(&s.b);
}

/*
 * An entry outlives its connection. Were it there when the arc has settled, the 5-tuple was used again and the arc moves
 * once more, it would divert the new connection.
 */
static void test_no_entry_outlives_its_arc(void **state)
{
	(void)state;
	start(1000);
	case_backend_add(&s.c.pool[0], 1);
	apply();
	open_flows(100);
	assert_true(entries() > 0);
	case_backend_remove(&s.c.pool[0], 3);
	case_backend_add(&s.c.pool[0], 2);
	apply();
	all_send();
	balancer_clock(&s.b, s.b.now + SETTLE_AFTER + 1);
	apply();
	assert_int_equal(moved(), 0);
	assert_int_equal(entries(), 0);
	open_flows(1000000000);
	s.c.pool[0].backend[1].weight = 3;
	apply();
	all_send();
	balancer_close(&s.b);
}

/* Killed between the switch and what follows: packets go by the new tables, and the next command does the rest. */
static void test_kill_after_the_switch(void **state)
{
	uint16_t down;
	struct plan p;

	(void)state;
	start(1000);
	case_backend_add(&s.c.pool[0], 1);
	apply();
	open_flows(100);
	down = named(s.c.pool[0].backend[3].name)->index;
	s.c.pool[0].backend[3].state = "maint";
	balancer_plan(&s.b, case_parse(&s.c, false), false, &p);
	balancer_publish(&s.b, &p);
	plan_free(&p);
	for (size_t i = 0; i < FLOWS; i++)
		if (s.flow[i].backend != down)
			send_again(&s.flow[i]);
	assert_true(entries() > 0);
	balancer_after(&s.b, true);
	assert_int_equal(entries(), 0);
	for (size_t i = 0; i < FLOWS; i++)
		if (s.flow[i].backend == down)
			assert_int_not_equal(send_packet(&s.flow[i], CASE_ACK, 500), down);
		else
			send_again(&s.flow[i]);
	balancer_close(&s.b);
}

/* The arc does not settle between a SYN that the table refused and its handshake's end. */
static void test_refused_opening(void **state)
{
	struct flow *f = NULL;
	uint16_t to = RINGLB_NO_BACKEND;

	(void)state;
	start(1);
	case_backend_add(&s.c.pool[0], 1);
	apply();
	balancer_clock(&s.b, s.b.now + SETTLE_AFTER + 1);
	for (size_t i = 0; i < FLOWS; i++) {
		f = &s.flow[i];
		to = send_packet(f, CASE_SYN, 100);
		if (look(f).moved && to != look(f).owner)
			break;
	}
	assert_int_not_equal(to, look(f).owner);
	apply();
	assert_int_equal(send_packet(f, CASE_ACK, 101), to);
	/* Not for longer than that. */
	balancer_clock(&s.b, s.b.now + SETTLE_AFTER + 1);
	for (size_t i = 0; i < FLOWS; i++)
		send_packet(&s.flow[i], CASE_SYN, 200);
	balancer_clock(&s.b, s.b.now + RINGLB_OPENING_SECONDS + 1);
	apply();
	assert_int_equal(moved(), 0);
	balancer_close(&s.b);
}

/* With every backend drained nobody takes flows, and those that are there stay. */
static void test_all_drain(void **state)
{
	(void)state;
	start(1000);
	open_flows(100);
	for (size_t i = 0; i < 3; i++)
		s.c.pool[0].backend[i].state = "drain";
	apply();
	all_send();
	for (size_t i = 0; i < FLOWS; i++) {
		struct flow other = s.flow[i];

		other.packet.port++;
		assert_int_equal(send_packet(&other, CASE_SYN, 100), RINGLB_NO_BACKEND);
	}
	all_send();
	s.c.pool[0].backend[1].state = "up";
	apply();
	all_send();
	for (size_t i = 0; i < 3; i++)
		s.c.pool[0].backend[i].state = "up";
	apply();
	all_send();
	balancer_close(&s.b);
}

/* Under track: always a leaving backend goes when its flows have ended or fallen silent, whatever is left in the table. */
static void test_leaving_is_not_held_by_the_expired(void **state)
{
	char name[CASE_NAME];

	(void)state;
	start_with(1000, "flow, track: always");
	open_flows(100);
	strcpy(name, s.c.pool[0].backend[0].name);
	case_backend_remove(&s.c.pool[0], 0);
	apply();
	all_send();
	balancer_clock(&s.b, s.b.now + SETTLE_AFTER);
	apply();
	assert_non_null(named(name));
	all_send();
	balancer_clock(&s.b, s.b.now + SETTLE_AFTER + 1);
	assert_int_equal(entries(), FLOWS);
	apply();
	assert_null(named(name));
	assert_true(entries() < FLOWS);
	balancer_close(&s.b);
}

/* A backend that is given up is sent nothing again, also where a forged SYN keeps the entry in the table. */
static void test_given_up(void **state)
{
	struct flow *f = NULL;
	uint16_t gone;

	(void)state;
	start(1000);
	s.c.pool[0].drain_max = "1h";
	case_backend_add(&s.c.pool[0], 2);
	apply();
	open_flows(100);
	gone = named(s.c.pool[0].backend[3].name)->index;
	for (size_t i = 0; i < FLOWS && !f; i++)
		if (s.flow[i].backend == gone)
			f = &s.flow[i];
	assert_non_null(f);
	case_backend_remove(&s.c.pool[0], 3);
	apply();
	assert_int_equal(send_packet(f, CASE_ACK, 200), gone);
	for (int i = 0; i < 4; i++) {
		balancer_clock(&s.b, s.b.now + 890);
		assert_int_equal(send_packet(f, CASE_ACK, 201), gone);
	}
	balancer_clock(&s.b, s.b.now + 60);
	send_packet(f, CASE_SYN, 1000000000);
	apply();
	assert_non_null(balancer_entry(&s.b, balancer_fingerprint(&s.b, &f->packet)));
	assert_int_equal(send_packet(f, CASE_ACK, 202), look(f).owner);
	assert_int_not_equal(look(f).owner, gone);
	balancer_close(&s.b);
}

static atomic_bool flooding;

/* SYNs of everyone, and on the tuples of half the living connections, none of whose numbers are near. */
static void *flood(void *arg)
{
	uint64_t random = 1;

	for (uint32_t i = 0; i < FLOOD; i++) {
		struct case_packet p = { .flags = CASE_SYN };

		random = random * 6364136223846793005u + 1442695040888963407u;
		p.sequence = 2000000000 + (uint32_t)(random >> 34);
		if (i % 4) {
			p.client = (uint32_t)(random >> 40);
			p.port = (uint16_t)(random >> 20);
		} else {
			p.client = (uint32_t)((random >> 33) % (FLOWS / 2));
			p.port = 1024;
		}
		balancer_send(arg, &p);
	}
	flooding = false;
	return NULL;
}

/* Changes, one after the other, while a million forged SYNs come in: nothing established breaks. */
static void test_flood(void **state)
{
	struct ringlb_flow_counters before, after;
	unsigned int changes = 0;
	pthread_t thread;

	(void)state;
	random_start();
	start(64);
	before = balancer_flow_counters(&s.b);
	open_flows(100);
	case_backend_add(&s.c.pool[0], 1);
	apply();
	flooding = true;
	assert_int_equal(pthread_create(&thread, NULL, flood, &s.b), 0);
	while (flooding) {
		struct flow *f = &s.flow[FLOWS / 2 + random_below(FLOWS / 2)];

		open_flow(f, f->packet.sequence + 1000000); /* its tuple was used before, and nobody knows of it */
		s.c.pool[0].backend[random_below(4)].weight = 1 + random_below(4);
		apply();
		all_send();
		changes++;
	}
	pthread_join(thread, NULL);
	all_send();
	after = balancer_flow_counters(&s.b);
	assert_true(changes > 5);
	assert_true(after.refused_quota + after.refused_full - before.refused_quota - before.refused_full > FLOOD / 10);
	balancer_close(&s.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settles_when_silent),
		cmocka_unit_test(test_stamps_cross_the_switch),
		cmocka_unit_test(test_stamps_after_a_kill),
		cmocka_unit_test(test_no_entry_outlives_its_arc),
		cmocka_unit_test(test_kill_after_the_switch),
		cmocka_unit_test(test_refused_opening),
		cmocka_unit_test(test_all_drain),
		cmocka_unit_test(test_leaving_is_not_held_by_the_expired),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
