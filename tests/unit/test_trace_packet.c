// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Traced packets as text: whole ones, ones cut anywhere, ones that lie. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "diag.h"
#include "random_pool.h"
#include "trace_packet.h"

#define LINK 14

static const uint8_t tcp4[] = {
	0x45, 0,    0, 60,   0, 0, 0x40, 0, 64, 6, 0, 0, 198,  51,   100,  7,    192, 0, 2, 10, /* IPv4 */
	0x9c, 0x40, 1, 0xbb, 0, 0, 0,    1, 0,  0, 0, 0, 0xa0, 0x12, 0xff, 0xff, 0,   0, 0, 0,  /* TCP */
};
static const uint8_t udp6[] = {
	0x60, 0,  0,   0,    0, 24, 0, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0,
	0,    0,  0,   0,    0, 0,  0, 7, /* IPv6 */
	0x20, 1,  0xd, 0xb8, 0, 0,  0, 0,  0,    0, 0,   0,    0, 0, 0, 0x10,
	17,   0,  1,   4,    0, 0,  0, 0,                                  /* hop-by-hop options */
	0,    53, 0,   54,   0, 16, 0, 0,  1,    2, 3,   4,    5, 6, 7, 8, /* UDP */
};

static struct ringlb_trace trace_of(const uint8_t *packet, size_t length, uint16_t network)
{
	struct ringlb_trace t = { .network = network, .captured = (uint16_t)(network + length) };

	t.data[12] = 8;
	memcpy(t.data + network, packet, length);
	return t;
}

static void assert_text(const struct ringlb_trace *t, const char *expected)
{
	char text[TRACE_PACKET_TEXT];
	struct trace_packet p;

	trace_packet_read(t, &p);
	assert_string_equal(trace_packet_text(&p, text), expected);
}

static void test_whole(void **state)
{
	struct ringlb_trace t = trace_of(tcp4, sizeof(tcp4), LINK);

	(void)state;
	assert_text(&t, "tcp 198.51.100.7:40000 > 192.0.2.10:443 [S.] 60 bytes");
	t = trace_of(udp6, sizeof(udp6), LINK + 40); /* behind an outer header */
	assert_text(&t, "udp [2001:db8::7]:53 > [2001:db8::10]:54 64 bytes");
	t = trace_of(tcp4, sizeof(tcp4), LINK);
	t.data[LINK + 9] = 50;
	assert_text(&t, "esp 198.51.100.7 > 192.0.2.10 60 bytes");
	t.data[LINK + 9] = 200;
	assert_text(&t, "protocol 200 198.51.100.7 > 192.0.2.10 60 bytes");
	t = trace_of(tcp4, sizeof(tcp4), LINK);
	t.data[LINK + 7] = 9;
	assert_text(&t, "tcp 198.51.100.7 > 192.0.2.10 fragment 60 bytes");
	t.network = 0;
	assert_text(&t, "ethertype 0x0800");
}

/* However short it is cut, and whatever it holds: the sanitizers watch. */
static void test_any(void **state)
{
	(void)state;
	for (int round = 0; round < 20000; round++) {
		bool six = random_below(2);
		struct ringlb_trace *t = xcalloc(1, sizeof(*t));
		char text[TRACE_PACKET_TEXT];
		struct trace_packet p;

		*t = six ? trace_of(udp6, sizeof(udp6), LINK) : trace_of(tcp4, sizeof(tcp4), LINK);
		t->captured = (uint16_t)random_below(RINGLB_TRACE_BYTES + 1);
		for (uint32_t damage = random_below(6); damage; damage--)
			t->data[LINK + random_below(80)] = (uint8_t)random_u64();
		if (random_below(10) == 0)
			t->network = (uint16_t)random_u64();
		if (random_below(10) == 0)
			t->captured = (uint16_t)random_u64();
		trace_packet_read(t, &p);
		assert_true(strlen(trace_packet_text(&p, text)) < TRACE_PACKET_TEXT);
		free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_any),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
