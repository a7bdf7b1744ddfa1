// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The digest: equal exactly where new flows go the same ways. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "plan_case.h"
#include "random_pool.h"

struct digest {
	char text[33];
};

/* Of what a fresh attach would run. */
static struct digest digest_of(const struct case_config *c)
{
	struct case_instance nothing = { 0 };
	struct digest out;
	struct plan p;

	case_plan_good(&nothing, c, true, &p);
	memcpy(out.text, p.next->digest, sizeof(out.text));
	assert_int_equal(strlen(out.text), 32);
	assert_int_equal(strspn(out.text, "0123456789abcdef"), 32);
	plan_free(&p);
	return out;
}

static void assert_same(const struct case_config *a, const struct case_config *b)
{
	assert_string_equal(digest_of(a).text, digest_of(b).text);
}

static void assert_other(const struct case_config *a, const struct case_config *b)
{
	assert_string_not_equal(digest_of(a).text, digest_of(b).text);
}

/* Two balancers that take each other's place must agree about it, so it must never change: printed once, kept here. */
static void test_constant(void **state)
{
	struct case_config c = { .key = '1', .interfaces = "eth0", .more = "" };

	(void)state;
	case_pool_add(&c, 0)->vnodes = 7;
	strcpy(c.pool[0].name, "web");
	for (int i = 0; i < 2; i++) {
		case_backend_add(&c.pool[0], 1 + (uint32_t)i);
		strcpy(c.pool[0].backend[i].name, i ? "web-2" : "web-1");
		c.pool[0].backend[i].address = 10 + (uint32_t)i;
	}
	case_service_add(&c, 0);
	c.service[0] = (struct case_service){ "www", 0x10002, 443, "tcp", "flow", 0 };
	assert_string_equal(digest_of(&c).text, "03ed123cab54601923966aa568fc22f1");
}

static void test_says_nothing_of_names(void **state)
{
	struct case_config a = case_small(), b = a;

	(void)state;
	assert_same(&a, &b); /* in another order */
	strcpy(b.pool[0].name, "other");
	strcpy(b.service[0].name, "another");
	strcpy(b.pool[0].backend[0].identity, b.pool[0].backend[0].name);
	strcpy(b.pool[0].backend[0].name, "renamed");
	assert_same(&a, &b);
	b.interfaces = "eth7";
	b.more = "xdp: generic\nflows: {established: 4, opening: 4}\n";
	b.pool[0].drain_max = "1h";
	assert_same(&a, &b);
	/* The count is what counts, not how it is written. */
	b.pool[0].backend[1].points = 200;
	assert_same(&a, &b);
	/* A pool that no service uses. */
	case_pool_add(&b, 3);
	assert_same(&a, &b);
}

static void test_sees_what_matters(void **state)
{
	struct case_config a = case_small(), b;

	(void)state;
	b = a;
	b.key = '2';
	assert_other(&a, &b);
	b = a;
	b.pool[0].backend[0].weight = 2;
	assert_other(&a, &b);
	b = a;
	b.pool[0].backend[0].address = 77;
	assert_other(&a, &b);
	b = a;
	strcpy(b.pool[0].backend[0].identity, "other");
	assert_other(&a, &b);
	b = a;
	case_backend_add(&b.pool[1], 1);
	assert_other(&a, &b);
	b = a;
	case_backend_remove(&b.pool[1], 0);
	assert_other(&a, &b);
	b = a;
	b.service[0].port++;
	assert_other(&a, &b);
	b = a;
	b.service[0].protocol = "udp";
	b.service[1].protocol = "tcp";
	assert_other(&a, &b);
	b = a;
	b.service[0].pool = 1;
	assert_other(&a, &b);
	b.service[1].pool = 0;
	assert_other(&a, &b);
	b = a;
	b.service[1].affinity = "source";
	assert_other(&a, &b);
	a = b;
	b.service[1].affinity = "{source: {ipv4: 24, ipv6: 56}}";
	assert_other(&a, &b);
	b = a;
	case_service_add(&b, 0);
	assert_other(&a, &b);
	a.service[1].protocol = b.service[1].protocol = "udp";
	a.service[1].affinity = "flow";
	b = a;
	b.service[1].affinity = "quic";
	assert_other(&a, &b);
	a = b;
	b.service[1].affinity = "quic, quic: {cid_length: 8}";
	assert_other(&a, &b);
	a = b;
	b.service[1].affinity = "quic, quic: {cid_length: 9}";
	assert_other(&a, &b);
}

/* However an instance came to its configuration, moved arcs and all. */
static void test_history_does_not_matter(void **state)
{
	(void)state;
	for (int round = 0; round < 15; round++) {
		struct case_config c = case_random();
		struct case_instance i;

		case_instance_init(&i);
		for (int commits = 0; commits < 8; commits++) {
			case_apply(&i, &c);
			assert_string_equal(i.running->digest, digest_of(&c).text);
			i.now += random_below(1000);
			case_change(&c);
		}
		case_instance_free(&i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constant),
		cmocka_unit_test(test_says_nothing_of_names),
		cmocka_unit_test(test_sees_what_matters),
		cmocka_unit_test(test_history_does_not_matter),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
