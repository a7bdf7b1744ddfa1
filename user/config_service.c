/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_label.h"
#include "config_parse.h"

static const struct key service_keys[] = {
	{ "address", "the address that clients send to" },
	{ "port", "1 to 65,535, a range FROM-TO, or any" },
	{ "protocol", "tcp, udp or any" },
	{ "pool", "the name of a pool" },
	{ "forward", "l2 (backends on the same link), ipip or gue" },
	{ "name", NULL },
	{ "affinity", NULL },
	{ "track", NULL },
	{ "fragments", NULL },
	{ "quic", NULL },
};
enum { S_ADDRESS, S_PORT, S_PROTOCOL, S_POOL, S_FORWARD, S_NAME, S_AFFINITY, S_TRACK, S_FRAGMENTS, S_QUIC, S_KEYS };

/* The pools' names, sorted for finding one, and ended by NULL for guessing one. */
struct pool_names {
	struct label *label;
	const char **name;
	size_t count;
};

static bool read_service_address(struct faults *f, const struct node *n, struct address *out, uint8_t *free_bits)
{
	unsigned int length;
	struct address a;

	if (!n || n->kind != NODE_TEXT || !strchr(n->text, '/'))
		return read_address(f, n, 0, out);
	if (address_parse_prefix(n->text, &a, &length)) {
		char shown[CLIP_TEXT];

		fault(f, n, "bad-value", "\"%s\" is no prefix: ADDRESS/LENGTH, with no bits set behind the length",
		      clip(n->text, shown));
		return false;
	}
	if (!check_unicast(f, n, &a))
		return false;
	*free_bits = (uint8_t)((address_is_ipv4(&a) ? 32 : 128) - length);
	*out = a;
	return true;
}

/* FROM-TO, both ports and in order. A range of one port is that port: *to is 0 then. */
static bool read_range(const char *text, uint16_t *from, uint16_t *to)
{
	unsigned int first, last;
	int end = -1;

	if (strspn(text, "0123456789-") != strlen(text) || sscanf(text, "%5u-%5u%n", &first, &last, &end) != 2 ||
	    end != (int)strlen(text) || first < 1 || first > last || last > 65535)
		return false;
	*from = (uint16_t)first;
	*to = last > first ? (uint16_t)last : 0;
	return true;
}

static bool read_port(struct faults *f, const struct node *n, uint16_t *out, uint16_t *to)
{
	uint32_t port;

	if (n && n->kind == NODE_TEXT && !strcmp(n->text, "any")) {
		*out = 0;
		return true;
	}
	if (n && n->kind == NODE_TEXT && read_range(n->text, out, to))
		return true;
	if (n && n->kind == NODE_TEXT && !n->quoted && n->text[strspn(n->text, "0123456789")]) {
		char shown[CLIP_TEXT];

		fault(f, n, "bad-value", "\"%s\" is no port; allowed are 1 to 65,535, FROM-TO, and any",
		      clip(n->text, shown));
		return false;
	}
	if (!read_u32(f, n, 1, 65535, &port))
		return false;
	*out = (uint16_t)port;
	return true;
}

static bool read_protocol(struct faults *f, const struct node *n, uint8_t *out)
{
	static const char *const names[] = { "tcp", "udp", "any", NULL };
	unsigned int choice;

	if (!read_choice(f, n, names, &choice))
		return false;
	*out = choice == 0 ? IPPROTO_TCP : choice == 1 ? IPPROTO_UDP : 0;
	return true;
}

static void read_forward(struct faults *f, const struct node *n, struct config_service *s)
{
	static const struct key keys[] = { { "mode", "gue" }, { "port", NULL } };
	const struct node *mode = n;
	struct node *v[2] = { 0 };
	unsigned int choice;
	uint32_t port;

	if (n && n->kind == NODE_MAP) {
		map_keys(f, n, keys, 2, v);
		mode = v[0];
		if (read_u32(f, v[1], 1, 65535, &port))
			s->gue_port = (uint16_t)port;
	}
	/* One letter from gue, and something else. */
	if (mode && mode->kind == NODE_TEXT && !strcmp(mode->text, "gre")) {
		fault(f, mode, "bad-value", "\"gre\": there is no GRE; there are l2, ipip and gue (in UDP)");
		return;
	}
	if (!read_choice(f, mode, config_forward_names, &choice))
		return;
	s->forward = (enum ringlb_forward)choice;
	if (v[1] && s->forward != RINGLB_FORWARD_GUE)
		fault_key(f, v[1], "bad-value", "only gue has a port; write forward: %s", config_forward_names[choice]);
}

static void read_prefix(struct faults *f, const struct node *n, uint8_t max, uint8_t *out)
{
	uint32_t length;

	if (read_u32(f, n, 1, max, &length))
		*out = (uint8_t)length;
}

static void read_affinity(struct faults *f, const struct node *n, struct config_service *s)
{
	static const struct key outer[] = { { "source", "prefix lengths, such as {ipv4: 24, ipv6: 56}" } };
	static const struct key inner[] = { { "ipv4", NULL }, { "ipv6", NULL } };
	struct node *source, *v[2];
	unsigned int choice;

	if (n && n->kind == NODE_MAP) {
		if (!map_keys(f, n, outer, 1, &source) || !map_keys(f, source, inner, 2, v))
			return;
		s->affinity = RINGLB_AFFINITY_SOURCE;
		read_prefix(f, v[0], 32, &s->source_prefix4);
		read_prefix(f, v[1], 128, &s->source_prefix6);
	} else if (read_choice(f, n, config_affinity_names, &choice)) {
		s->affinity = (enum ringlb_affinity)choice;
	}
}

/* The longest connection id of QUIC, and the longest number of a server in one. */
#define MAX_CID 20u
#define MAX_SERVER_LENGTH 4u

static void read_quic(struct faults *f, const struct node *n, struct config_service *s)
{
	static const struct key keys[] = { { "cid_length", "the bytes in the servers' connection ids, 1 to 20" },
					   { "server_id", NULL } };
	static const struct key where[] = { { "offset", "where the server's id begins, 0 for the first byte" },
					    { "length", "the server's id's bytes, 1 to 4" } };
	uint32_t cid = 0, offset, length;
	struct node *v[2], *w[2];

	if (!map_keys(f, n, keys, 2, v))
		return;
	if (read_u32(f, v[0], 1, MAX_CID, &cid))
		s->cid_length = (uint8_t)cid;
	if (!v[1] || !map_keys(f, v[1], where, 2, w))
		return;
	if (!read_u32(f, w[0], 0, MAX_CID - 1, &offset) || !read_u32(f, w[1], 1, MAX_SERVER_LENGTH, &length) || !cid)
		return;
	s->server_offset = (uint8_t)offset;
	s->server_length = (uint8_t)length;
	if (offset + length > cid)
		fault(f, v[1], "out-of-range", "ends behind byte %u of the connection ids, which have %u (cid_length)",
		      offset + length, cid);
}

static void read_pool(struct faults *f, const struct pool_names *pools, const struct node *n, size_t *out)
{
	const struct label *found;
	char shown[CLIP_TEXT];
	const char *text, *meant;

	if (!read_text(f, n, &text))
		return;
	found = labels_find(pools->label, pools->count, text, strlen(text));
	if (found) {
		*out = found->index;
		return;
	}
	meant = near_name(f, text, pools->name);
	fault(f, n, "unknown-pool", "there is no pool \"%s\"%s%s%s", clip(text, shown),
	      meant ? "; did you mean " : "; give the name of one under pools", meant ? meant : "", meant ? "?" : "");
}

static void parse_service(struct parse *p, const struct pool_names *pools, const struct node *n,
			  struct config_service *s)
{
	struct node *v[S_KEYS];
	struct faults *f = &p->f;
	unsigned int choice;
	bool known;

	*s = (struct config_service){
		.pool = POOL_UNKNOWN,
		.source_prefix4 = 32,
		.source_prefix6 = 128,
		.gue_port = CONFIG_DEFAULT_GUE_PORT,
		.fragments = RINGLB_FRAGMENTS_TRACK,
		.place = { n->line, n->column },
	};
	if (!map_keys(f, n, service_keys, S_KEYS, v))
		return;
	known = read_service_address(f, v[S_ADDRESS], &s->address, &s->free_bits);
	known &= read_port(f, v[S_PORT], &s->port, &s->port_to);
	known &= read_protocol(f, v[S_PROTOCOL], &s->protocol);
	read_pool(f, pools, v[S_POOL], &s->pool);
	read_forward(f, v[S_FORWARD], s);
	read_affinity(f, v[S_AFFINITY], s);
	if (v[S_QUIC])
		read_quic(f, v[S_QUIC], s);
	s->track = config_default_track(s->protocol, s->affinity);
	if (read_choice(f, v[S_TRACK], config_track_names, &choice))
		s->track = (enum ringlb_track)choice;
	if (read_choice(f, v[S_FRAGMENTS], config_fragments_names, &choice))
		s->fragments = (enum ringlb_fragments)choice;
	if (v[S_NAME])
		read_name(f, v[S_NAME], &s->name);
	else if (known)
		s->name = config_service_default_name(s);
	if (!known)
		s->protocol = PROTOCOL_UNKNOWN;
}

/* Names that were refused count too: a service that refers to one is not wrong on top of it. */
static struct pool_names pool_names(const struct parse *p)
{
	struct pool_names names = {
		.label = xcalloc(p->c->pools, sizeof(*names.label)),
		.name = xcalloc(p->c->pools + 1, sizeof(*names.name)),
	};

	for (size_t i = 0; i < p->c->pools; i++) {
		const struct node *n = node_find(p->pools->child[i], "name");

		if (!n || n->kind != NODE_TEXT)
			continue;
		names.name[names.count] = n->text;
		names.label[names.count++] = (struct label){ .bytes = n->text, .length = strlen(n->text), .index = i };
	}
	labels_sort(names.label, names.count);
	return names;
}

void parse_services(struct parse *p)
{
	struct pool_names names = pool_names(p);
	size_t count = list_items(&p->f, p->services);

	p->c->service = xcalloc(count, sizeof(*p->c->service));
	p->c->services = count;
	for (size_t i = 0; i < count; i++)
		parse_service(p, &names, p->services->child[i], &p->c->service[i]);
	free(names.label);
	free(names.name);
}
