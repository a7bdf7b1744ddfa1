/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks of pools as values: written back, copied, compared. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config_expect.h"
#include "config_parse.h"

static void put_key(FILE *o, const char *key, const char *text)
{
	if (!text)
		return;
	fprintf(o, ", %s: ", key);
	put_text(o, text);
}

static void put_duration(FILE *o, const char *key, uint64_t ms)
{
	char text[DURATION_TEXT];

	fprintf(o, ", %s: %s", key, duration_text(ms, text));
}

static void put_share(FILE *o, const char *key, double fraction)
{
	fprintf(o, ", %s: ", key);
	put_percent(o, fraction);
}

static void put_source(FILE *o, const struct config_check *c)
{
	char text[ADDRESS_TEXT];

	if (c->has_source4 && c->has_source6) {
		fprintf(o, ", source: {ipv4: %s", address_text(&c->source4, text));
		put_key(o, "ipv6", address_text(&c->source6, text));
		fputc('}', o);
	} else if (c->has_source4 || c->has_source6) {
		put_key(o, "source", address_text(c->has_source4 ? &c->source4 : &c->source6, text));
	}
}

static void put_what(FILE *o, const struct config_check *c)
{
	if (c->port)
		fprintf(o, ", port: %u", c->port);
	put_key(o, "path", c->path);
	put_key(o, "host", c->host);
	put_key(o, "send", c->send);
	put_key(o, "query", c->query);
	for (size_t i = 0; c->type == CHECK_DNS && dns_type_names[i]; i++) {
		if (dns_type_numbers[i] == c->query_type)
			put_key(o, "query_type", dns_type_names[i]);
	}
	put_key(o, "expect", c->expect);
	put_key(o, "body", c->body);
	if (c->type == CHECK_HTTPS)
		fprintf(o, ", verify: %s", c->verify ? "true" : "false");
	put_key(o, "ca", c->ca);
	put_source(o, c);
	fprintf(o, ", via: %s", c->via_service ? "service" : "address");
}

char *config_check_text(const struct config_check *c)
{
	size_t length;
	char *text;
	FILE *o = open_memstream(&text, &length);

	if (!o)
		diag_fatal("out of memory");
	fprintf(o, "{type: %s", config_check_type_names[c->type]);
	put_what(o, c);
	put_duration(o, "interval", c->interval_ms);
	put_share(o, "jitter", c->jitter);
	put_duration(o, "timeout", c->timeout_ms);
	fprintf(o, ", rise: %" PRIu32 ", fall: %" PRIu32, c->rise, c->fall);
	put_duration(o, "slow_start", c->slow_start_ms);
	put_share(o, "panic", c->panic);
	fputc('}', o);
	if (fclose(o))
		diag_fatal("out of memory");
	return text;
}

static char *copy_text(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

struct config_check *config_check_copy(const struct config_check *c)
{
	struct config_check *copy = xcalloc(1, sizeof(*copy));

	*copy = *c;
	copy->path = copy_text(c->path);
	copy->host = copy_text(c->host);
	copy->expect = copy_text(c->expect);
	copy->body = copy_text(c->body);
	copy->ca = copy_text(c->ca);
	copy->send = copy_text(c->send);
	copy->query = copy_text(c->query);
	return copy;
}

bool config_check_equal(const struct config_check *a, const struct config_check *b)
{
	char *x, *y;
	bool same;

	if (!a || !b)
		return a == b;
	x = config_check_text(a);
	y = config_check_text(b);
	same = !strcmp(x, y);
	free(x);
	free(y);
	return same;
}

void config_check_free(struct config_check *c)
{
	if (!c)
		return;
	free(c->path);
	free(c->host);
	free(c->expect);
	free(c->body);
	free(c->ca);
	free(c->send);
	free(c->query);
	free(c);
}
