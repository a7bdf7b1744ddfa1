/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A configuration as text that means the same when it is read again. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_parse.h"

/* A byte more than UTF-8's at *p as its code point, *p moved behind it. The text came through libyaml: it is valid. */
static uint32_t take_character(const unsigned char **p)
{
	unsigned int more = **p >= 0xf0 ? 3 : **p >= 0xe0 ? 2 : **p >= 0xc0 ? 1 : 0;
	uint32_t c = *(*p)++;

	if (more)
		c &= 0x3fu >> more;
	while (more-- && **p)
		c = c << 6 | (*(*p)++ & 0x3fu);
	return c;
}

/* What every YAML reader takes for text, and for this text, without quotes. */
static bool is_plain(const char *text)
{
	static const char *const special[] = { "null", "true", "false", "yes", "no", "on", "off", "y", "n", NULL };
	struct address a;

	for (size_t i = 0; special[i]; i++) {
		if (!strcasecmp(text, special[i]))
			return false;
	}
	if (!strchr(text, ':') && !address_parse(text, &a))
		return true;
	if (!((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z')))
		return false;
	return !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")];
}

void put_text(FILE *o, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	if (is_plain(text)) {
		fputs(text, o);
		return;
	}
	fputc('"', o);
	while (*p) {
		uint32_t c = take_character(&p);

		if (c == '"' || c == '\\')
			fprintf(o, "\\%c", (int)c);
		else if (c >= 0x20 && c < 0x7f)
			fputc((int)c, o);
		else
			fprintf(o, c > 0xffff ? "\\U%08" PRIX32 : "\\u%04" PRIX32, c);
	}
	fputc('"', o);
}

static void put_key(FILE *o, const char *lead, const char *key, const char *text)
{
	fprintf(o, "%s%s: ", lead, key);
	put_text(o, text);
}

static void emit_hash_key(FILE *o, const struct config *c, bool with_key)
{
	if (with_key) {
		fputs("hash_key: \"", o);
		for (size_t i = 0; i < sizeof(c->hash_key); i++)
			fprintf(o, "%02x", c->hash_key[i]);
		fputs("\"\n", o);
	} else if (c->hash_key_file) {
		put_key(o, "hash_key: {", "file", c->hash_key_file);
		fputs("}\n", o);
	} else {
		fputs("# hash_key: (only shown to root)\n", o);
	}
}

/* In millionths of a percent, as it was read, so that nothing is rounded twice. */
void put_percent(FILE *o, double fraction)
{
	long long millionths = llround(fraction * 1e8);
	int places = 6;

	fprintf(o, "%lld", millionths / 1000000);
	millionths %= 1000000;
	for (; millionths && !(millionths % 10); places--)
		millionths /= 10;
	if (millionths)
		fprintf(o, ".%0*lld", places, millionths);
	fputc('%', o);
}

static void emit_top(FILE *o, const struct config *c, bool with_key)
{
	char text[CONFIG_ADDRESS_TEXT];

	fputs("interfaces: [", o);
	for (size_t i = 0; i < c->interfaces; i++) {
		fputs(i ? ", " : "", o);
		put_text(o, c->interface[i]);
	}
	fprintf(o, "]\nxdp: %s\n", config_xdp_names[c->xdp]);
	emit_hash_key(o, c, with_key);
	if (c->has_tunnel4 || c->has_tunnel6)
		fputs("tunnel_source: {", o);
	if (c->has_tunnel4)
		put_key(o, "", "ipv4", config_prefix_text(&c->tunnel4, c->tunnel4_free, text));
	if (c->has_tunnel6)
		put_key(o, c->has_tunnel4 ? ", " : "", "ipv6", config_prefix_text(&c->tunnel6, c->tunnel6_free, text));
	if (c->has_tunnel4 || c->has_tunnel6)
		fputs("}\n", o);
	if (c->status_listen) {
		put_key(o, "", "status_listen", c->status_listen);
		fputc('\n', o);
	}
	if (c->max_move >= 0) {
		fputs("max_move: ", o);
		put_percent(o, c->max_move);
		fputc('\n', o);
	}
	fprintf(o, "flows: {established: %" PRIu32 ", opening: %" PRIu32 "}\n", c->flows_established, c->flows_opening);
}

static void emit_backend(FILE *o, const struct config_backend *b)
{
	char text[ADDRESS_TEXT];

	put_key(o, "      - {", "name", b->name);
	put_key(o, ", ", "address", address_text(&b->address, text));
	fprintf(o, ", weight: %" PRIu32, b->weight);
	if (b->zone)
		put_key(o, ", ", "zone", b->zone);
	if (strcmp(b->identity, b->name))
		put_key(o, ", ", "identity", b->identity);
	if (b->points)
		fprintf(o, ", points: %" PRIu32, b->points);
	if (b->id)
		fprintf(o, ", id: %" PRIu32, b->id);
	if (b->state != CONFIG_UP)
		put_key(o, ", ", "state", config_state_names[b->state]);
	fputs("}\n", o);
}

static void emit_pool(FILE *o, const struct config_pool *p)
{
	char settle[DURATION_TEXT], drain[DURATION_TEXT];

	put_key(o, "  - ", "name", p->name);
	fprintf(o, "\n    placement: %s\n", config_placement_names[p->placement]);
	if (p->placement == CONFIG_RING || p->vnodes != CONFIG_DEFAULT_VNODES)
		fprintf(o, "    vnodes: %" PRIu32 "\n", p->vnodes);
	if (p->placement == CONFIG_MAGLEV || p->maglev_size != CONFIG_DEFAULT_MAGLEV_SIZE)
		fprintf(o, "    maglev_size: %" PRIu32 "\n", p->maglev_size);
	fprintf(o, "    settle_after: %s\n    drain_max: %s\n", duration_text(p->settle_after_ms, settle),
		duration_text(p->drain_max_ms, drain));
	fprintf(o, "    quorum: %" PRIu32 "\n", p->quorum);
	if (p->check) {
		char *check = config_check_text(p->check);

		fprintf(o, "    check: %s\n", check);
		free(check);
	}
	fprintf(o, "    backends:%s\n", p->backends ? "" : " []");
	for (size_t i = 0; i < p->backends; i++)
		emit_backend(o, &p->backend[i]);
}

static void emit_affinity(FILE *o, const struct config_service *s)
{
	if (s->affinity == RINGLB_AFFINITY_SOURCE && (s->source_prefix4 != 32 || s->source_prefix6 != 128))
		fprintf(o, "    affinity: {source: {ipv4: %u, ipv6: %u}}\n", s->source_prefix4, s->source_prefix6);
	else
		fprintf(o, "    affinity: %s\n", config_affinity_names[s->affinity]);
}

static void emit_quic(FILE *o, const struct config_service *s)
{
	if (!s->cid_length)
		return;
	fprintf(o, "    quic: {cid_length: %u", s->cid_length);
	if (s->server_length)
		fprintf(o, ", server_id: {offset: %u, length: %u}", s->server_offset, s->server_length);
	fputs("}\n", o);
}

static void emit_forward(FILE *o, const struct config_service *s)
{
	if (s->forward == RINGLB_FORWARD_GUE && s->gue_port != CONFIG_DEFAULT_GUE_PORT)
		fprintf(o, "\n    forward: {mode: gue, port: %u}\n", s->gue_port);
	else
		fprintf(o, "\n    forward: %s\n", config_forward_names[s->forward]);
}

static void emit_service(FILE *o, const struct config *c, const struct config_service *s)
{
	char *name = config_service_default_name(s), text[CONFIG_ADDRESS_TEXT], port[CONFIG_PORT_TEXT];
	bool named = strcmp(name, s->name);

	if (named)
		put_key(o, "  - ", "name", s->name);
	put_key(o, named ? "\n    " : "  - ", "address", config_service_address(s, text));
	fprintf(o, "\n    port: %s\n    protocol: %s", config_service_port(s, port), config_protocol_name(s->protocol));
	put_key(o, "\n    ", "pool", c->pool[s->pool].name);
	emit_forward(o, s);
	emit_affinity(o, s);
	emit_quic(o, s);
	if (s->track != config_default_track(s->protocol, s->affinity))
		fprintf(o, "    track: %s\n", config_track_names[s->track]);
	fprintf(o, "    fragments: %s\n", config_fragments_names[s->fragments]);
	free(name);
}

char *config_emit(const struct config *c, bool with_key)
{
	size_t length;
	char *text;
	FILE *o = open_memstream(&text, &length);

	if (!o)
		diag_fatal("out of memory");
	emit_top(o, c, with_key);
	fprintf(o, "pools:%s\n", c->pools ? "" : " []");
	for (size_t i = 0; i < c->pools; i++)
		emit_pool(o, &c->pool[i]);
	fprintf(o, "services:%s\n", c->services ? "" : " []");
	for (size_t i = 0; i < c->services; i++)
		emit_service(o, c, &c->service[i]);
	if (fclose(o))
		diag_fatal("out of memory");
	return text;
}
