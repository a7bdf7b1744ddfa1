/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What must hold among the services, and between services and pools. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_label.h"
#include "config_parse.h"

/* What the services ask of a pool, by family: 0 for IPv4, 1 for IPv6. */
struct pool_use {
	const struct config_backend *first[2];
	size_t backends[2];
	bool used;
};

static unsigned int family_of(const struct address *a)
{
	return !address_is_ipv4(a);
}

static const struct node *service_node(const struct parse *p, size_t i, const char *key)
{
	const struct node *n = node_find(p->services->child[i], key);

	return n ? n : p->services->child[i];
}

static void names_unique(struct parse *p)
{
	const struct config *c = p->c;
	struct label *label = xcalloc(c->services, sizeof(*label));
	size_t count = 0, first = 0;

	/* Default names can't meet given ones, which have no slash, and meet each other only in duplicate services. */
	for (size_t i = 0; i < c->services; i++) {
		if (c->service[i].name && node_find(p->services->child[i], "name"))
			label[count++] = (struct label){ c->service[i].name, strlen(c->service[i].name), i };
	}
	labels_sort(label, count);
	for (size_t i = 1; i < count; i++) {
		if (!labels_equal(&label[first], &label[i])) {
			first = i;
			continue;
		}
		fault(&p->f, service_node(p, label[i].index, "name"), "duplicate-name",
		      "service %s is already in line %u; give each service its own name",
		      c->service[label[i].index].name, c->service[label[first].index].place.line);
	}
	free(label);
}

struct endpoint {
	struct address address;
	uint8_t free_bits, port[2], port_to[2], protocol;
};

static void endpoints_unique(struct parse *p)
{
	const struct config *c = p->c;
	struct label *label = xcalloc(c->services, sizeof(*label));
	struct endpoint *e = xcalloc(c->services, sizeof(*e));
	size_t count = 0, first = 0;

	for (size_t i = 0; i < c->services; i++) {
		const struct config_service *s = &c->service[i];

		if (s->protocol == PROTOCOL_UNKNOWN)
			continue;
		e[i] = (struct endpoint){ s->address,
					  s->free_bits,
					  { (uint8_t)(s->port >> 8), (uint8_t)s->port },
					  { (uint8_t)(s->port_to >> 8), (uint8_t)s->port_to },
					  s->protocol };
		label[count++] = (struct label){ &e[i], sizeof(*e), i };
	}
	labels_sort(label, count);
	for (size_t i = 1; i < count; i++) {
		const struct config_service *s = &c->service[label[i].index];
		char *name;

		if (!labels_equal(&label[first], &label[i])) {
			first = i;
			continue;
		}
		name = config_service_default_name(s);
		fault(&p->f, service_node(p, label[i].index, "address"), "duplicate-service",
		      "%s is already a service, in line %u; an address, port and protocol can have one", name,
		      c->service[label[first].index].place.line);
		free(name);
	}
	free(e);
	free(label);
}

/* The balancer would take the packets to the backend itself, such as checks and outer packets, for the service's. */
static void apart_from_backends(struct parse *p)
{
	const struct config *c = p->c;
	struct label *label;
	size_t count = 0;

	for (size_t i = 0; i < c->pools; i++)
		count += c->pool[i].backends;
	label = xcalloc(count, sizeof(*label));
	count = 0;
	for (size_t i = 0; i < c->pools; i++) {
		for (size_t j = 0; j < c->pool[i].backends; j++) {
			const struct config_backend *b = &c->pool[i].backend[j];

			if (address_given(&b->address))
				label[count++] = (struct label){ &b->address, sizeof(b->address), b->place.line };
		}
	}
	labels_sort(label, count);
	for (size_t i = 0; i < c->services; i++) {
		const struct address *a = &c->service[i].address;
		const struct label *found = c->service[i].free_bits ? NULL : labels_find(label, count, a, sizeof(*a));
		char text[ADDRESS_TEXT];

		if (found)
			fault(&p->f, service_node(p, i, "address"), "service-is-backend",
			      "%s is also the address of the backend in line %zu; a service needs an address of its own, which "
			      "the backends have beside theirs",
			      address_text(a, text), found->index);
	}
	free(label);
}

/* Without rewriting, an IPv6 backend can't take an IPv4 packet. */
static void check_l2(struct parse *p, size_t i, const struct pool_use *use)
{
	const struct config_service *s = &p->c->service[i];
	unsigned int other = !family_of(&s->address);
	const struct config_backend *b = use->first[other];
	const char *const kind[] = { "IPv4", "IPv6" };
	char more[COUNT_TEXT + 16] = "";

	if (!b || !address_given(&s->address))
		return;
	if (use->backends[other] > 1)
		snprintf(more, sizeof(more), " and %zu more", use->backends[other] - 1);
	fault(&p->f, service_node(p, i, "forward"), "family",
	      "l2 leaves packets as they are, %s, but pool %s has backend %s%s with an %s address; use ipip, or a pool of %s "
	      "backends",
	      kind[!other], p->c->pool[s->pool].name ? p->c->pool[s->pool].name : "", b->name ? b->name : "?", more,
	      kind[other], kind[!other]);
}

static void check_tunnel(struct parse *p, size_t i, const struct pool_use *use, bool complained[2])
{
	static const char *const keys[] = { "ipv4", "ipv6" };
	const bool has[] = { p->c->has_tunnel4, p->c->has_tunnel6 };
	char text[ADDRESS_TEXT];

	for (unsigned int family = 0; family < 2; family++) {
		const struct config_backend *b = use->first[family];

		if (!b || has[family] || complained[family])
			continue;
		/* One that is there and was refused has its own complaint. */
		if (p->tunnel && (p->tunnel->kind != NODE_MAP || node_find(p->tunnel, keys[family])))
			continue;
		complained[family] = true;
		fault(&p->f, service_node(p, i, "forward"), "no-tunnel-source",
		      "%s to backend %s, %s, needs an outer source address; add tunnel_source: {%s: ADDRESS}, an address of "
		      "this host",
		      config_forward_name(p->c->service[i].forward), b->name ? b->name : "?",
		      address_text(&b->address, text), keys[family]);
	}
}

static struct pool_use *pool_uses(const struct config *c)
{
	struct pool_use *use = xcalloc(c->pools, sizeof(*use));

	for (size_t i = 0; i < c->pools; i++) {
		for (size_t j = 0; j < c->pool[i].backends; j++) {
			const struct config_backend *b = &c->pool[i].backend[j];
			unsigned int family = family_of(&b->address);

			if (!address_given(&b->address))
				continue;
			if (!use[i].backends[family]++)
				use[i].first[family] = b;
		}
	}
	return use;
}

void check_services(struct parse *p)
{
	char total[COUNT_TEXT], limit[COUNT_TEXT];
	struct pool_use *use = pool_uses(p->c);
	bool complained[2] = { 0 };

	names_unique(p);
	endpoints_unique(p);
	apart_from_backends(p);
	check_matches(p);
	for (size_t i = 0; i < p->c->services; i++) {
		const struct config_service *s = &p->c->service[i];

		if (s->pool == POOL_UNKNOWN)
			continue;
		use[s->pool].used = true;
		if (s->forward != RINGLB_FORWARD_L2)
			check_tunnel(p, i, &use[s->pool], complained);
		else if (node_find(p->services->child[i], "forward"))
			check_l2(p, i, &use[s->pool]);
	}
	/* Among errors this would be guesswork: the service that uses the pool may be the one that could not be read. */
	for (size_t i = 0; i < p->c->pools && !p->f.errors; i++) {
		if (!use[i].used)
			fault_warning(&p->f, p->pools->child[i], "unused-pool", "no service uses pool %s",
				      p->c->pool[i].name);
	}
	if (p->c->services > RINGLB_MAX_SERVICES)
		fault(&p->f, p->services, "too-many-services", "%s services; the limit is %s",
		      count_text(p->c->services, total), count_text(RINGLB_MAX_SERVICES, limit));
	free(use);
}
