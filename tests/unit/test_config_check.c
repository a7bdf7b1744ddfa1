// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a pool's `check` becomes, that it reads back the same, and what its texts mean. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "config_expect.h"
#include "config.h"

/* The check of a configuration with this line. */
static struct config_check *parse_check(const char *check)
{
	char *text = xasprintf("interfaces: [eth0]\nhash_key: 00112233445566778899aabbccddeeff\npools:\n"
			       "- name: p\n  backends: [{name: b, address: 10.0.0.11}]\n  check: %s\n"
			       "services: [{address: 192.0.2.1, port: 80, protocol: tcp, pool: p, forward: l2}]\n",
			       check);
	struct diag d = { 0 };
	struct config *c = config_parse("/etc/ringlb/test.yaml", text, strlen(text), &d);
	struct config_check *found;

	if (!c)
		fail_msg("%s: %s", check, d.entry[0].message);
	assert_non_null(c->pool[0].check);
	found = config_check_copy(c->pool[0].check);
	diag_free(&d);
	free(text);
	config_free(c);
	return found;
}

static void test_texts(void **state)
{
	static const struct {
		const char *given, *means;
	} row[] = {
		{ "{type: tcp, port: 80}",
		  "{type: tcp, port: 80, via: address, interval: 2s, jitter: 10%, timeout: 1s, rise: 2, fall: 3, "
		  "slow_start: 0s, panic: 0%}" },
		{ "{type: http, interval: 500ms}",
		  "{type: http, port: 80, path: \"/\", expect: \"200-399\", via: address, interval: 500ms, "
		  "jitter: 10%, timeout: 500ms, rise: 2, fall: 3, slow_start: 0s, panic: 0%}" },
		{ "{type: https, host: example.org, path: \"/a?b=c\", expect: 204, body: \"\\u00e9 \\\"x\\\"\\n\", "
		  "ca: ca.pem, source: {ipv4: 10.0.0.1, ipv6: \"fd00::1\"}, jitter: 12.5%, panic: 50%, slow_start: 90s}",
		  "{type: https, port: 443, path: \"/a?b=c\", host: example.org, expect: \"204\", "
		  "body: \"\\u00E9 \\\"x\\\"\\u000A\", verify: true, ca: \"/etc/ringlb/ca.pem\", "
		  "source: {ipv4: 10.0.0.1, ipv6: \"fd00::1\"}, via: address, interval: 2s, jitter: 12.5%, "
		  "timeout: 1s, rise: 2, fall: 3, slow_start: 90s, panic: 50%}" },
		{ "{type: https, verify: false, via: service, source: 10.0.0.1}",
		  "{type: https, port: 443, path: \"/\", expect: \"200-399\", verify: false, source: 10.0.0.1, "
		  "via: service, interval: 2s, jitter: 10%, timeout: 1s, rise: 2, fall: 3, slow_start: 0s, panic: 0%}" },
		{ "{type: dns, query: www.example.org, query_type: AAAA, expect: \"2001:db8::1\"}",
		  "{type: dns, port: 53, query: www.example.org, query_type: AAAA, expect: \"2001:db8::1\", "
		  "via: address, interval: 2s, jitter: 10%, timeout: 1s, rise: 2, fall: 3, slow_start: 0s, panic: 0%}" },
		{ "{type: udp, port: 5000, send: \"hex:00ff\", expect: ok, jitter: 0%, rise: 1, fall: 1}",
		  "{type: udp, port: 5000, send: \"hex:00ff\", expect: ok, via: address, interval: 2s, jitter: 0%, "
		  "timeout: 1s, rise: 1, fall: 1, slow_start: 0s, panic: 0%}" },
		{ "{type: icmp, source: \"fd00::1\", interval: 1m, timeout: 2s}",
		  "{type: icmp, source: \"fd00::1\", via: address, interval: 1m, jitter: 10%, timeout: 2s, rise: 2, "
		  "fall: 3, slow_start: 0s, panic: 0%}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct config_check *c = parse_check(row[i].given), *back;
		char *text = config_check_text(c);

		assert_string_equal(text, row[i].means);
		back = parse_check(text);
		assert_true(config_check_equal(c, back));
		back->fall++;
		assert_false(config_check_equal(c, back));
		config_check_free(back);
		config_check_free(c);
		free(text);
	}
	assert_true(config_check_equal(NULL, NULL));
}

static void test_part_of_a_configuration(void **state)
{
	struct config_check *check = parse_check("{type: tcp, port: 80}");
	struct config_pool pool = { .name = "p", .vnodes = 400, .quorum = 1, .check = check };
	struct config c = { .pool = &pool, .pools = 1, .max_move = -1 };
	char *text = config_emit(&c, true);

	(void)state;
	assert_non_null(strstr(text, "\n    check: {type: tcp, port: 80, "));
	free(text);
	config_check_free(check);
}

static void test_statuses(void **state)
{
	static const struct {
		const char *text;
		unsigned int status;
		bool valid, among;
	} row[] = {
		{ "200-399", 200, true, true },
		{ "200-399", 399, true, true },
		{ "200-399", 400, true, false },
		{ "200-399", 199, true, false },
		{ "200", 200, true, true },
		{ "200", 201, true, false },
		{ "200,204, 301-308", 204, true, true },
		{ "200,204, 301-308", 305, true, true },
		{ "200,204, 301-308", 300, true, false },
		{ "", 200, false, false },
		{ "200-", 200, false, false },
		{ "-399", 200, false, false },
		{ "200,", 200, false, false },
		{ "399-200", 300, false, false },
		{ "99", 99, false, false },
		{ "600", 600, false, false },
		{ "2000", 200, false, false },
		{ "2xx", 200, false, false },
		{ "200 ,204", 200, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		assert_int_equal(expect_status_valid(row[i].text), row[i].valid);
		assert_int_equal(expect_status(row[i].text, row[i].status), row[i].among);
	}
}

static void test_bytes(void **state)
{
	uint8_t out[EXPECT_MAX_BYTES];
	char long_text[EXPECT_MAX_BYTES + 2] = { 0 };

	(void)state;
	assert_int_equal(expect_bytes("PING\n", out), 5);
	assert_memory_equal(out, "PING\n", 5);
	assert_int_equal(expect_bytes("hex:00fFa0", out), 3);
	assert_memory_equal(out, "\x00\xff\xa0", 3);
	assert_int_equal(expect_bytes("hex:0", out), 0);
	assert_int_equal(expect_bytes("hex:0g", out), 0);
	assert_int_equal(expect_bytes("hex:", out), 0);
	memset(long_text, 'x', EXPECT_MAX_BYTES);
	assert_int_equal(expect_bytes(long_text, out), EXPECT_MAX_BYTES);
	memset(long_text, 'x', EXPECT_MAX_BYTES + 1);
	assert_int_equal(expect_bytes(long_text, out), 0);
}

static void test_dns_texts(void **state)
{
	static const char long_label[] = "a23456789b123456789c123456789d123456789e123456789f123456789g1234.org";
	uint8_t wire[DNS_MAX_NAME];
	char name[256] = { 0 };
	struct expect_dns e;

	(void)state;
	assert_int_equal(dns_name("www.example.org", wire), 17);
	assert_memory_equal(wire, "\3www\7example\3org", 17);
	assert_int_equal(dns_name("example.org.", wire), 13);
	assert_int_equal(dns_name(".", wire), 1);
	assert_int_equal(dns_name("a..b", wire), 0);
	assert_int_equal(dns_name(".a", wire), 0);
	assert_int_equal(dns_name(long_label, wire), 0);
	for (size_t i = 0; i < 254; i++)
		name[i] = i % 2 ? '.' : 'a';
	assert_int_equal(dns_name(name, wire), 255); /* 127 labels of one character */
	memcpy(name + 253, "a", 2);                  /* one character more than fits */
	assert_int_equal(dns_name(name, wire), 0);
	assert_true(expect_dns("nxdomain", &e));
	assert_int_equal(e.rcode, 3);
	assert_true(expect_dns("192.0.2.1", &e));
	assert_int_equal(e.rcode, -1);
	assert_true(address_is_ipv4(&e.address));
	assert_false(expect_dns("OKAY", &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),     cmocka_unit_test(test_part_of_a_configuration),
		cmocka_unit_test(test_statuses),  cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_dns_texts),
	};

	return cmocka_run_group_tests_name("config_check", tests, NULL, NULL);
}
