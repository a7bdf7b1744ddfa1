/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a service is for: its addresses, ports and protocol. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

const char *config_prefix_text(const struct address *a, uint8_t free_bits, char buf[CONFIG_ADDRESS_TEXT])
{
	unsigned int bits = address_is_ipv4(a) ? 32 : 128;
	char text[ADDRESS_TEXT];

	address_text(a, text);
	if (free_bits)
		snprintf(buf, CONFIG_ADDRESS_TEXT, "%s/%u", text, bits - free_bits);
	else
		snprintf(buf, CONFIG_ADDRESS_TEXT, "%s", text);
	return buf;
}

const char *config_service_address(const struct config_service *s, char buf[CONFIG_ADDRESS_TEXT])
{
	return config_prefix_text(&s->address, s->free_bits, buf);
}

const char *config_service_port(const struct config_service *s, char buf[CONFIG_PORT_TEXT])
{
	if (!s->port)
		snprintf(buf, CONFIG_PORT_TEXT, "any");
	else if (s->port_to)
		snprintf(buf, CONFIG_PORT_TEXT, "%u-%u", s->port, s->port_to);
	else
		snprintf(buf, CONFIG_PORT_TEXT, "%u", s->port);
	return buf;
}

char *config_service_default_name(const struct config_service *s)
{
	char address[CONFIG_ADDRESS_TEXT], port[CONFIG_PORT_TEXT];
	bool six = !address_is_ipv4(&s->address);

	return xasprintf("%s%s%s:%s/%s", six ? "[" : "", config_service_address(s, address), six ? "]" : "",
			 config_service_port(s, port), config_protocol_name(s->protocol));
}

static int order(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

int config_service_order(const struct config_service *a, const struct config_service *b)
{
	int by = address_compare(&a->address, &b->address);

	if (!by)
		by = order(b->free_bits, a->free_bits);
	if (!by)
		by = order(a->port, b->port);
	if (!by)
		by = order(a->port_to, b->port_to);
	return by ? by : order(a->protocol, b->protocol);
}

bool config_service_has(const struct config_service *s, const struct address *a)
{
	unsigned int bits = 128 - s->free_bits, whole = bits / 8, rest = bits % 8;

	if (memcmp(s->address.byte, a->byte, whole))
		return false;
	return !rest || !((s->address.byte[whole] ^ a->byte[whole]) >> (8 - rest));
}

bool config_service_takes(const struct config_service *s, const struct address *a, uint16_t port, uint8_t protocol)
{
	if (!config_service_has(s, a) || (s->protocol && s->protocol != protocol))
		return false;
	return !s->port || s->port == port || (s->port_to && port >= s->port && port <= s->port_to);
}

/* Whether a fits better than b where both do. */
static bool is_narrower(const struct config_service *a, const struct config_service *b)
{
	unsigned int ports_a = !a->port ? 2 : a->port_to != 0, ports_b = !b->port ? 2 : b->port_to != 0;

	if (a->free_bits != b->free_bits)
		return a->free_bits < b->free_bits;
	if (ports_a != ports_b)
		return ports_a < ports_b;
	return a->protocol && !b->protocol;
}

const struct config_service *config_service_for(const struct config *c, const struct address *a, uint16_t port,
						uint8_t protocol)
{
	const struct config_service *best = NULL;

	for (size_t i = 0; i < c->services; i++) {
		const struct config_service *s = &c->service[i];

		if (config_service_takes(s, a, port, protocol) && (!best || is_narrower(s, best)))
			best = s;
	}
	return best;
}
