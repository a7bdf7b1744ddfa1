// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "address.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static struct address parsed(const char *text)
{
	struct address a;

	memset(&a, 0xee, sizeof(a));
	if (address_parse(text, &a))
		fail_msg("%s is an address", text);
	return a;
}

static void test_text(void **state)
{
	static const struct {
		const char *in, *out;
		bool ipv4;
	} row[] = {
		{ "0.0.0.0", "0.0.0.0", true },
		{ "255.255.255.255", "255.255.255.255", true },
		{ "10.0.0.11", "10.0.0.11", true },
		{ "::", "::", false },
		{ "::1", "::1", false },
		{ "2001:DB8:0:0::10", "2001:db8::10", false },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false },
		{ "::fffe:1.2.3.4", "::fffe:102:304", false },
		{ "::ffff:0:0:0", "::ffff:0:0:0", false },
	};
	char text[ADDRESS_TEXT];

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct address a = parsed(row[i].in);

		assert_int_equal(address_is_ipv4(&a), row[i].ipv4);
		assert_ptr_equal(address_text(&a, text), text);
		assert_string_equal(text, row[i].out);
	}
}

static void test_bytes(void **state)
{
	static const uint8_t four[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 11 };
	static const uint8_t six[16] = { 0xfd, [15] = 0x13 };
	struct address a = parsed("10.0.0.11"), b = parsed("fd00::13");

	(void)state;
	assert_memory_equal(a.byte, four, 16);
	assert_memory_equal(b.byte, six, 16);
	assert_true(address_equal(&a, &a));
	assert_false(address_equal(&a, &b));
	assert_int_equal(address_compare(&a, &a), 0);
	assert_true(address_compare(&a, &b) < 0);
	assert_true(address_compare(&b, &a) > 0);
}

static void test_refused(void **state)
{
	static const char *const text[] = {
		"",
		" ",
		"10.0.0",
		"10.0.0.0.1",
		"10.0.0.256",
		"10.0.0.01",
		"10.0.0.1 ",
		" 10.0.0.1",
		"10.0.0.1/32",
		"0x0a000001",
		"10.0.0.-1",
		"localhost",
		":",
		":::",
		"1::2::3",
		"12345::",
		"[::1]",
		"fe80::1%eth0",
		"::ffff:1.2.3.4",
		"::ffff:102:304",
		"::FFFF:0:0",
		"0:0:0:0:0:ffff:1.2.3.4",
		"1:2:3:4:5:6:7",
		"1:2:3:4:5:6:7:8:9",
		"::1/128",
		"::1\n",
		"000000000000000000000000000000000000000000000000000000000000000000::",
	};
	struct address a, before;

	(void)state;
	memset(&a, 0xee, sizeof(a));
	before = a;
	for (size_t i = 0; i < COUNT(text); i++) {
		if (address_parse(text[i], &a) != -EINVAL)
			fail_msg("\"%s\" is no address", text[i]);
		assert_true(address_equal(&a, &before));
	}
}

static void test_prefix(void **state)
{
	static const struct {
		const char *in, *address;
		unsigned int length;
	} good[] = {
		{ "10.0.0.0/8", "10.0.0.0", 8 },
		{ "10.0.0.1", "10.0.0.1", 32 },
		{ "10.0.0.1/32", "10.0.0.1", 32 },
		{ "0.0.0.0/0", "0.0.0.0", 0 },
		{ "128.0.0.0/1", "128.0.0.0", 1 },
		{ "10.0.0.254/31", "10.0.0.254", 31 },
		{ "::/0", "::", 0 },
		{ "fd00::/8", "fd00::", 8 },
		{ "fd00::1", "fd00::1", 128 },
		{ "2001:db8::/33", "2001:db8::", 33 },
	};
	static const char *const bad[] = {
		"10.0.0.1/8",
		"10.0.0.0/33",
		"10.0.0.0/",
		"10.0.0.0/08",
		"10.0.0.0/-1",
		"10.0.0.0/ 8",
		"10.0.0.0/8/8",
		"/8",
		"",
		"fd00::1/127",
		"fd00::/129",
		"10.0.0.0/4294967304",
		"::ffff:10.0.0.0/104",
		"10.0.0.0/8x",
		"128.0.0.0/0",
		"10.0.0.0/99999999999999999999999999",
	};
	unsigned int length;
	struct address a;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct address wanted = parsed(good[i].address);

		assert_int_equal(address_parse_prefix(good[i].in, &a, &length), 0);
		assert_true(address_equal(&a, &wanted));
		assert_int_equal(length, good[i].length);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (address_parse_prefix(bad[i], &a, &length) != -EINVAL)
			fail_msg("\"%s\" is no prefix", bad[i]);
	}
}

static void test_port(void **state)
{
	static const struct {
		const char *in, *address;
		uint16_t port;
	} good[] = {
		{ "10.0.0.1:80", "10.0.0.1", 80 },
		{ "10.0.0.1:0", "10.0.0.1", 0 },
		{ "0.0.0.0:65535", "0.0.0.0", 65535 },
		{ "[::1]:1", "::1", 1 },
		{ "[2001:db8::10]:443", "2001:db8::10", 443 },
	};
	static const char *const bad[] = {
		"",
		":",
		":80",
		"10.0.0.1",
		"10.0.0.1:",
		"10.0.0.1:65536",
		"10.0.0.1:080",
		"10.0.0.1:-1",
		"10.0.0.1:+1",
		"10.0.0.1: 1",
		"::1:80",
		"[::1]",
		"[::1]80",
		"[::1:80",
		"::1]:80",
		"[]:80",
		"[10.0.0.1]:80",
		"[::ffff:1.2.3.4]:80",
		"[[::1]]:80",
		"x:80",
		"[:80",
		"]:80",
		"10.0.0.1:80x",
		"10.0.0.1:99999999999999999999",
	};
	char text[ADDRESS_PORT_TEXT];
	struct address a;
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct address wanted = parsed(good[i].address);

		assert_int_equal(address_parse_port(good[i].in, &a, &port), 0);
		assert_true(address_equal(&a, &wanted));
		assert_int_equal(port, good[i].port);
		assert_string_equal(address_port_text(&a, port, text), good[i].in);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (address_parse_port(bad[i], &a, &port) != -EINVAL)
			fail_msg("\"%s\" is no address with a port", bad[i]);
	}
	a = parsed("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	assert_string_equal(address_port_text(&a, 65535, text), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),   cmocka_unit_test(test_bytes), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_prefix), cmocka_unit_test(test_port),
	};

	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
