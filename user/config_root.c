/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The keys at the top of the file. */
#include <string.h>

#include "config_parse.h"

#define MAX_INTERFACE_NAME 15u /* the kernel's IFNAMSIZ with its NUL is 16 */
#define MAX_FLOWS (16u << 20)
#define MAX_TUNNEL_FREE 24u /* more than enough to spread by */

static const struct key root_keys[] = {
	{ "interfaces", "the interfaces that packets come in through, such as [eth0]" },
	{ "pools", "a list of pools, or []" },
	{ "services", "a list of services, or []" },
	{ "xdp", NULL },
	{ "hash_key", NULL },
	{ "tunnel_source", NULL },
	{ "status_listen", NULL },
	{ "max_move", NULL },
	{ "flows", NULL },
};
enum { R_INTERFACES, R_POOLS, R_SERVICES, R_XDP, R_HASH_KEY, R_TUNNEL, R_LISTEN, R_MAX_MOVE, R_FLOWS, R_KEYS };

/* As the kernel does (dev_valid_name), and nothing that a terminal would act on. */
static bool valid_interface(struct faults *f, const struct node *n)
{
	const char *text;

	if (!read_text(f, n, &text))
		return false;
	if (strlen(text) > MAX_INTERFACE_NAME) {
		fault(f, n, "bad-value", "is %zu bytes long; an interface's name has at most %u", strlen(text),
		      MAX_INTERFACE_NAME);
		return false;
	}
	for (const char *p = text; *p; p++) {
		if ((unsigned char)*p > ' ' && *p != 0x7f && *p != '/' && *p != ':')
			continue;
		fault(f, n, "bad-value", "an interface's name has no blanks, slashes or colons");
		return false;
	}
	if (!strcmp(text, ".") || !strcmp(text, "..")) {
		fault(f, n, "bad-value", "%s is no interface's name", text);
		return false;
	}
	return true;
}

static void parse_interfaces(struct parse *p, const struct node *list)
{
	size_t count = list_items(&p->f, list);
	struct config *c = p->c;

	if (list && list->kind == NODE_LIST && !count)
		fault(&p->f, list, "bad-value", "is empty; give at least one interface");
	if (count > RINGLB_MAX_OUTPUTS) {
		fault(&p->f, list, "out-of-range", "has %zu interfaces; the limit is %u", count, RINGLB_MAX_OUTPUTS);
		count = 0;
	}
	c->interface = xcalloc(count, sizeof(*c->interface));
	for (size_t i = 0; i < count; i++) {
		const struct node *n = list->child[i], *first = NULL;

		if (!valid_interface(&p->f, n))
			continue;
		for (size_t j = 0; j < i && !first; j++) {
			if (list->child[j]->kind == NODE_TEXT && !strcmp(list->child[j]->text, n->text))
				first = list->child[j];
		}
		if (first)
			fault(&p->f, n, "duplicate-name", "%s is already in line %u; name each interface once", n->text,
			      first->line);
		else
			c->interface[c->interfaces++] = xstrdup(n->text);
	}
}

/* An address, or a prefix whose other bits are each flow's own. */
static bool read_tunnel(struct faults *f, const struct node *n, unsigned int family, struct address *out,
			uint8_t *free_bits)
{
	unsigned int length, bits = family == 4 ? 32 : 128;
	char shown[CLIP_TEXT];

	if (!n || n->kind != NODE_TEXT || !strchr(n->text, '/'))
		return read_address(f, n, family, out);
	if (address_parse_prefix(n->text, out, &length) || address_is_ipv4(out) != (family == 4)) {
		fault(f, n, "bad-value",
		      "\"%s\" is no IPv%u prefix: ADDRESS/LENGTH, with no bits set behind the length",
		      clip(n->text, shown), family);
		return false;
	}
	if (bits - length > MAX_TUNNEL_FREE) {
		fault(f, n, "out-of-range", "leaves %u bits to flows; the limit is %u: a length of %u to %u",
		      bits - length, MAX_TUNNEL_FREE, bits - MAX_TUNNEL_FREE, bits);
		return false;
	}
	*free_bits = (uint8_t)(bits - length);
	return check_unicast(f, n, out);
}

static void parse_tunnel(struct parse *p, struct node *n)
{
	static const struct key keys[] = { { "ipv4", NULL }, { "ipv6", NULL } };
	struct node *v[2];

	p->tunnel = n;
	if (!map_keys(&p->f, n, keys, 2, v))
		return;
	p->c->has_tunnel4 = read_tunnel(&p->f, v[0], 4, &p->c->tunnel4, &p->c->tunnel4_free);
	p->c->has_tunnel6 = read_tunnel(&p->f, v[1], 6, &p->c->tunnel6, &p->c->tunnel6_free);
}

static void parse_listen(struct parse *p, const struct node *n)
{
	char canonical[ADDRESS_PORT_TEXT], shown[CLIP_TEXT];
	const char *text;
	struct address a;
	uint16_t port;

	if (!read_text(&p->f, n, &text))
		return;
	if (address_parse_port(text, &a, &port) || !port)
		fault(&p->f, n, "bad-value", "\"%s\" is not ADDRESS:PORT, such as 127.0.0.1:9391 or \"[::1]:9391\"",
		      clip(text, shown));
	else
		p->c->status_listen = xstrdup(address_port_text(&a, port, canonical));
}

static void parse_flows(struct parse *p, const struct node *n)
{
	static const struct key keys[] = { { "established", NULL }, { "opening", NULL } };
	struct node *v[2];

	if (!map_keys(&p->f, n, keys, 2, v))
		return;
	read_u32(&p->f, v[0], RINGLB_FLOWS_PER_BUCKET, MAX_FLOWS, &p->c->flows_established);
	read_u32(&p->f, v[1], RINGLB_FLOWS_PER_BUCKET, MAX_FLOWS, &p->c->flows_opening);
}

void parse_root(struct parse *p, const struct node *root)
{
	struct node *v[R_KEYS];
	unsigned int xdp;

	if (root->kind == NODE_NULL) {
		fault_at(&p->f, DIAG_ERROR, "empty-file", 0, 0,
			 "the file is empty; a configuration has interfaces, hash_key, pools and services");
		return;
	}
	if (!map_keys(&p->f, root, root_keys, R_KEYS, v))
		return;
	parse_interfaces(p, v[R_INTERFACES]);
	if (read_choice(&p->f, v[R_XDP], config_xdp_names, &xdp))
		p->c->xdp = (enum config_xdp)xdp;
	parse_key(p, root, v[R_HASH_KEY]);
	parse_tunnel(p, v[R_TUNNEL]);
	parse_listen(p, v[R_LISTEN]);
	read_percent(&p->f, v[R_MAX_MOVE], &p->c->max_move);
	parse_flows(p, v[R_FLOWS]);
	p->pools = v[R_POOLS];
	p->services = v[R_SERVICES];
	parse_pools(p);
	parse_services(p);
	check_pools(p);
	check_services(p);
	check_placements(p);
}
