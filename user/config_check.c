/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The key `check` of a pool. */
#include <stdlib.h>
#include <string.h>

#include "config_expect.h"
#include "config_parse.h"

static const struct key check_keys[] = {
	{ "type", "http, tcp, https, dns, udp or icmp" },
	{ "port", NULL },
	{ "path", NULL },
	{ "host", NULL },
	{ "expect", NULL },
	{ "body", NULL },
	{ "verify", NULL },
	{ "ca", NULL },
	{ "send", NULL },
	{ "query", NULL },
	{ "query_type", NULL },
	{ "source", NULL },
	{ "via", NULL },
	{ "interval", NULL },
	{ "jitter", NULL },
	{ "timeout", NULL },
	{ "rise", NULL },
	{ "fall", NULL },
	{ "slow_start", NULL },
	{ "panic", NULL },
};
enum {
	C_TYPE,
	C_PORT,
	C_PATH,
	C_HOST,
	C_EXPECT,
	C_BODY,
	C_VERIFY,
	C_CA,
	C_SEND,
	C_QUERY,
	C_QUERY_TYPE,
	C_SOURCE,
	C_VIA,
	C_INTERVAL,
	C_JITTER,
	C_TIMEOUT,
	C_RISE,
	C_FALL,
	C_SLOW_START,
	C_PANIC,
	C_KEYS
};

#define BIT(type) (1u << (type))
#define WEB (BIT(CHECK_HTTP) | BIT(CHECK_HTTPS))

/* Keys that only some types have, and whether these need them. */
static const struct {
	unsigned int key, types;
	const char *of, *needed; /* needed: what to give where it is missing */
} only[] = {
	{ C_PORT, ~BIT(CHECK_ICMP), "all types but icmp", NULL },
	{ C_PATH, WEB, "http and https", NULL },
	{ C_HOST, WEB, "http and https", NULL },
	{ C_EXPECT, WEB | BIT(CHECK_DNS) | BIT(CHECK_UDP), "http, https, dns and udp", NULL },
	{ C_BODY, WEB, "http and https", NULL },
	{ C_VERIFY, BIT(CHECK_HTTPS), "https", NULL },
	{ C_CA, BIT(CHECK_HTTPS), "https", NULL },
	{ C_SEND, BIT(CHECK_UDP), "udp", "what to send, a text or hex: and digits" },
	{ C_QUERY, BIT(CHECK_DNS), "dns", "the name to ask for" },
	{ C_QUERY_TYPE, BIT(CHECK_DNS), "dns", NULL },
};

static const uint16_t default_port[] = { [CHECK_HTTP] = 80, [CHECK_HTTPS] = 443, [CHECK_DNS] = 53, [CHECK_ICMP] = 0 };

static void keys_of_type(struct faults *f, const struct node *n, struct node *const *v, enum config_check_type type)
{
	for (size_t i = 0; i < sizeof(only) / sizeof(*only); i++) {
		struct node *value = v[only[i].key];
		const char *name = check_keys[only[i].key].name;
		bool has = only[i].types & BIT(type);

		if (value && !has)
			fault_key(f, value, "bad-value", "is for %s, not for %s; leave it out", only[i].of,
				  config_check_type_names[type]);
		else if (!value && has && only[i].needed)
			fault_missing(f, n, name, "missing-key", "is missing; give %s", only[i].needed);
	}
	if (!v[C_PORT] && (type == CHECK_TCP || type == CHECK_UDP))
		fault_missing(f, n, "port", "missing-key", "is missing; give 1 to 65,535");
}

/* Text of characters that can be sent in a line of a request, none of them in banned. A copy. */
static void read_word(struct faults *f, const struct node *n, const char *banned, size_t limit, char **out)
{
	const char *text;

	if (!read_text(f, n, &text))
		return;
	for (const char *p = text; *p; p++) {
		if (*p > ' ' && *p < 0x7f && !strchr(banned, *p))
			continue;
		fault(f, n, "bad-value", "printable ASCII characters are allowed, without blanks%s%s",
		      *banned ? " and any of " : "", banned);
		return;
	}
	if (strlen(text) > limit)
		fault(f, n, "bad-value", "is %zu characters long, at most %zu are allowed", strlen(text), limit);
	else
		*out = xstrdup(text);
}

static void read_bytes(struct faults *f, const struct node *n, char **out)
{
	uint8_t bytes[EXPECT_MAX_BYTES];
	const char *text;

	if (!read_text(f, n, &text))
		return;
	if (!expect_bytes(text, bytes))
		fault(f, n, "bad-value", "must be text of at most %u bytes, or hex: and an even number of digits",
		      EXPECT_MAX_BYTES);
	else
		*out = xstrdup(text);
}

static void read_expect(struct faults *f, const struct node *n, struct config_check *c)
{
	struct expect_dns dns;
	const char *text;

	if (c->type == CHECK_UDP) {
		read_bytes(f, n, &c->expect);
		return;
	}
	if (!read_text(f, n, &text))
		return;
	if (c->type == CHECK_DNS && !expect_dns(text, &dns))
		fault(f, n, "bad-value", "must be NOERROR, NXDOMAIN, SERVFAIL, REFUSED, NOTIMP, FORMERR or an address");
	else if (c->type != CHECK_DNS && !expect_status_valid(text))
		fault(f, n, "bad-value", "must be status codes from 100 to 599, such as 200-399 or 200,204");
	else
		c->expect = xstrdup(text);
}

static void read_web(struct parse *p, struct node *const *v, struct config_check *c)
{
	static const char *const no_yes[] = { "false", "true", NULL };
	unsigned int choice;
	const char *ca;

	read_word(&p->f, v[C_PATH], "#", 2000, &c->path);
	if (c->path && *c->path != '/')
		fault(&p->f, v[C_PATH], "bad-value", "a path starts with /");
	/* Characters that would make another URL of it are left out with the rest. */
	read_word(&p->f, v[C_HOST], "/:@?#[]%\\", 253, &c->host);
	read_bytes(&p->f, v[C_BODY], &c->body);
	if (read_choice(&p->f, v[C_VERIFY], no_yes, &choice))
		c->verify = choice;
	if (read_text(&p->f, v[C_CA], &ca))
		c->ca = config_resolve(p->file, ca);
	if (v[C_CA] && !c->verify)
		fault_key(&p->f, v[C_CA], "bad-value", "is of no use with verify: false; leave one of them out");
}

static void read_dns(struct faults *f, struct node *const *v, struct config_check *c)
{
	uint8_t wire[DNS_MAX_NAME];
	unsigned int choice;

	read_word(f, v[C_QUERY], "", 253, &c->query);
	if (c->query && !dns_name(c->query, wire))
		fault(f, v[C_QUERY], "bad-value", "must be a domain name: labels of 1 to 63 characters between dots");
	c->query_type = c->type == CHECK_DNS ? dns_type_numbers[0] : 0;
	if (read_choice(f, v[C_QUERY_TYPE], dns_type_names, &choice))
		c->query_type = dns_type_numbers[choice];
}

static void read_source(struct faults *f, struct node *n, struct config_check *c)
{
	static const struct key keys[] = { { "ipv4", NULL }, { "ipv6", NULL } };
	struct address a;
	struct node *v[2];

	if (n && n->kind == NODE_MAP) {
		map_keys(f, n, keys, 2, v);
		c->has_source4 = read_address(f, v[0], 4, &c->source4);
		c->has_source6 = read_address(f, v[1], 6, &c->source6);
	} else if (read_address(f, n, 0, &a)) {
		c->has_source4 = address_is_ipv4(&a);
		c->has_source6 = !c->has_source4;
		*(c->has_source4 ? &c->source4 : &c->source6) = a;
	}
}

static void read_timing(struct faults *f, struct node *const *v, struct config_check *c)
{
	read_duration(f, v[C_INTERVAL], 10, 3600000, &c->interval_ms);
	if (c->timeout_ms > c->interval_ms)
		c->timeout_ms = c->interval_ms;
	if (read_duration(f, v[C_TIMEOUT], 1, 3600000, &c->timeout_ms) && c->timeout_ms > c->interval_ms)
		fault(f, v[C_TIMEOUT], "out-of-range", "is longer than the interval; give at most that");
	if (read_percent(f, v[C_JITTER], &c->jitter) && c->jitter > 0.5)
		fault(f, v[C_JITTER], "out-of-range", "is more than half the interval; give at most 50%%");
	read_u32(f, v[C_RISE], 1, 1000, &c->rise);
	read_u32(f, v[C_FALL], 1, 1000, &c->fall);
	read_duration(f, v[C_SLOW_START], 0, 24 * 3600000ull, &c->slow_start_ms);
	read_percent(f, v[C_PANIC], &c->panic);
}

static void defaults(struct config_check *c)
{
	bool web = BIT(c->type) & WEB;

	if (web && !c->path)
		c->path = xstrdup("/");
	if (web && !c->expect)
		c->expect = xstrdup("200-399");
	if (c->type == CHECK_DNS && !c->expect)
		c->expect = xstrdup("NOERROR");
}

void parse_health_check(struct parse *p, const struct node *n, struct config_pool *pool)
{
	static const char *const vias[] = { "address", "service", NULL };
	struct config_check *c;
	struct node *v[C_KEYS];
	unsigned int choice;
	uint32_t port;
	bool typed;

	if (!map_keys(&p->f, n, check_keys, C_KEYS, v))
		return;
	pool->check = c = xcalloc(1, sizeof(*c));
	*c = (struct config_check){
		.verify = true,
		.interval_ms = CONFIG_DEFAULT_CHECK_INTERVAL_MS,
		.timeout_ms = CONFIG_DEFAULT_CHECK_TIMEOUT_MS,
		.jitter = CONFIG_DEFAULT_CHECK_JITTER,
		.rise = CONFIG_DEFAULT_CHECK_RISE,
		.fall = CONFIG_DEFAULT_CHECK_FALL,
	};
	typed = read_choice(&p->f, v[C_TYPE], config_check_type_names, &choice);
	if (typed) {
		c->type = (enum config_check_type)choice;
		keys_of_type(&p->f, n, v, c->type);
		c->port = default_port[c->type];
	}
	if (read_u32(&p->f, v[C_PORT], 1, 65535, &port))
		c->port = (uint16_t)port;
	read_web(p, v, c);
	if (typed)
		read_expect(&p->f, v[C_EXPECT], c);
	read_bytes(&p->f, v[C_SEND], &c->send);
	read_dns(&p->f, v, c);
	read_source(&p->f, v[C_SOURCE], c);
	if (read_choice(&p->f, v[C_VIA], vias, &choice))
		c->via_service = choice;
	read_timing(&p->f, v, c);
	defaults(c);
}
