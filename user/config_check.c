/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The key `check` of a pool: its values are checked; what they ask for is not kept, as nothing does it yet. */
#include <string.h>

#include "config_parse.h"

static const struct key check_keys[] = {
	{ "type", "http, tcp, https, dns, udp or icmp" },
	{ "port", NULL },
	{ "path", NULL },
	{ "host", NULL },
	{ "expect", NULL },
	{ "via", NULL },
	{ "interval", NULL },
	{ "timeout", NULL },
	{ "rise", NULL },
	{ "fall", NULL },
	{ "slow_start", NULL },
};
enum { C_TYPE, C_PORT, C_PATH, C_HOST, C_EXPECT, C_VIA, C_INTERVAL, C_TIMEOUT, C_RISE, C_FALL, C_SLOW_START, C_KEYS };

static const char *const types[] = { "http", "tcp", "https", "dns", "udp", "icmp", NULL };
static const char *const vias[] = { "address", "service", NULL };

void parse_health_check(struct parse *p, const struct node *n)
{
	uint64_t interval = 2000, timeout = 1000, unused64;
	struct node *v[C_KEYS];
	unsigned int choice;
	const char *text;
	uint32_t unused;

	if (!map_keys(&p->f, n, check_keys, C_KEYS, v))
		return;
	read_choice(&p->f, v[C_TYPE], types, &choice);
	read_u32(&p->f, v[C_PORT], 1, 65535, &unused);
	if (read_text(&p->f, v[C_PATH], &text) && *text != '/')
		fault(&p->f, v[C_PATH], "bad-value", "a path starts with /");
	read_text(&p->f, v[C_HOST], &text);
	read_text(&p->f, v[C_EXPECT], &text);
	read_choice(&p->f, v[C_VIA], vias, &choice);
	read_duration(&p->f, v[C_INTERVAL], 10, 3600000, &interval);
	if (read_duration(&p->f, v[C_TIMEOUT], 1, 3600000, &timeout) && timeout > interval)
		fault(&p->f, v[C_TIMEOUT], "out-of-range", "is longer than the interval; give at most that");
	read_u32(&p->f, v[C_RISE], 1, 1000, &unused);
	read_u32(&p->f, v[C_FALL], 1, 1000, &unused);
	read_duration(&p->f, v[C_SLOW_START], 0, 24 * 3600000ull, &unused64);
	check_supported(&p->f, n, "check", NULL);
}
