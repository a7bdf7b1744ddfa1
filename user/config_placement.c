/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a placement asks of its pool, and of the services that use it. */
#include <stdlib.h>
#include <string.h>

#include "config_label.h"
#include "config_parse.h"
#include "placement.h"

void number_backends(struct config_pool *pool)
{
	struct placement_member *member;

	if (pool->placement != CONFIG_HAPROXY)
		return;
	member = xcalloc(pool->backends, sizeof(*member));
	for (size_t i = 0; i < pool->backends; i++)
		member[i].id = pool->backend[i].id;
	placement_number(member, pool->backends);
	for (size_t i = 0; i < pool->backends; i++)
		pool->backend[i].id = member[i].id;
	free(member);
}

static const struct node *pool_node(const struct parse *p, size_t i, const char *key)
{
	const struct node *n = node_find(p->pools->child[i], key);

	return n ? n : p->pools->child[i];
}

/* Keys that mean nothing to the pool's placement, the first of each kind. */
static void useless_keys(struct parse *p, size_t i)
{
	const struct config_pool *pool = &p->c->pool[i];
	const char *placement = config_placement_name(pool->placement);
	const struct node *vnodes = node_find(p->pools->child[i], "vnodes"), *list = pool_node(p, i, "backends");
	const struct node *size = node_find(p->pools->child[i], "maglev_size"), *points = NULL;

	for (size_t j = 0; j < pool->backends && !points; j++)
		points = node_find(list->child[j], "points");
	if (size && pool->placement != CONFIG_MAGLEV)
		fault_warning(&p->f, size, "no-effect", "means nothing to placement %s, only to maglev", placement);
	if (vnodes && pool->placement != CONFIG_RING)
		fault_warning(&p->f, vnodes, "no-effect", "means nothing to placement %s, only to ring", placement);
	if (points && pool->placement != CONFIG_RING)
		fault_warning(&p->f, points, "no-effect", "means nothing to placement %s, only to ring", placement);
}

/* What nginx and HAProxy hash of a server is not what a configuration of ours begins with. */
static void hashed_names(struct parse *p, size_t i)
{
	const struct config_pool *pool = &p->c->pool[i];
	const struct node *list = pool_node(p, i, "backends");
	const char *key = pool->placement == CONFIG_NGINX ? "identity" : "id";

	for (size_t j = 0; j < pool->backends; j++) {
		const struct config_backend *b = &pool->backend[j];

		if (node_find(list->child[j], key) || !b->name)
			continue;
		if (pool->placement == CONFIG_HAPROXY)
			fault_warning(&p->f, list->child[j], "no-id",
				      "backend %s has no id: it gets %u by its place in the list, as in HAProxy, and "
				      "another when the list changes; write id: %u to keep it",
				      b->name, b->id, b->id);
		else if (!strchr(b->name, ':'))
			fault_warning(&p->f, list->child[j], "no-identity",
				      "backend %s has no identity: nginx hashes HOST:PORT as its configuration has it; "
				      "write identity: \"HOST:PORT\", unless \"server %s;\" is what stands there",
				      b->name, b->name);
		else
			continue;
		return;
	}
}

/* Every backend counts, whatever its state: it may come up. */
static void check_pool(struct parse *p, size_t i)
{
	const struct config_pool *pool = &p->c->pool[i];
	struct placement_pool all = { .members = pool->backends, .maglev_size = pool->maglev_size };
	struct placement_member *member = xcalloc(pool->backends, sizeof(*member));
	char *why;

	placement_members(pool, member);
	all.member = member;
	for (size_t j = 0; j < pool->backends; j++) {
		member[j].weight = pool->backend[j].weight;
		if (!member[j].identity)
			all.members = 0; /* has its own complaint */
	}
	if (placement_check(placement_of(pool->placement), &all, &why) && why)
		fault(&p->f, pool_node(p, i, "placement"), "placement", "not possible with %s: %s",
		      config_placement_name(pool->placement), why);
	free(why);
	free(member);
}

static const struct node *service_node(const struct parse *p, size_t i, const char *key)
{
	const struct node *n = node_find(p->services->child[i], key);

	return n ? n : p->services->child[i];
}

/* For placements that hash what their own system hashes. */
static void check_source(struct parse *p, size_t i)
{
	const struct config_service *s = &p->c->service[i];
	const char *placement = config_placement_name(p->c->pool[s->pool].placement);

	if (s->affinity != RINGLB_AFFINITY_SOURCE)
		fault(&p->f, service_node(p, i, "affinity"), "placement",
		      "the pool's placement %s hashes the client's address: write affinity: source", placement);
	else if (s->source_prefix4 != 32)
		fault(&p->f, service_node(p, i, "affinity"), "placement",
		      "the pool's placement %s hashes whole addresses: write affinity: source", placement);
	if (address_given(&s->address) && !address_is_ipv4(&s->address))
		fault(&p->f, service_node(p, i, "address"), "placement",
		      "the pool's placement %s is defined here for IPv4 clients only; give IPv6 services a pool of "
		      "placement ring, maglev or rendezvous",
		      placement);
}

void check_placements(struct parse *p)
{
	bool *warned = xcalloc(p->c->pools, sizeof(*warned));

	for (size_t i = 0; i < p->c->pools; i++) {
		useless_keys(p, i);
		if (placement_of(p->c->pool[i].placement)->use == PLACEMENT_SOURCES)
			hashed_names(p, i);
		if (p->c->pool[i].placement != CONFIG_RING) /* that has a check of its own */
			check_pool(p, i);
	}
	for (size_t i = 0; i < p->c->services; i++) {
		size_t pool = p->c->service[i].pool;

		if (pool == POOL_UNKNOWN || placement_of(p->c->pool[pool].placement)->use != PLACEMENT_SOURCES)
			continue;
		check_source(p, i);
		if (!warned[pool])
			fault_warning(&p->f, pool_node(p, pool, "placement"), "unkeyed",
				      "%s hashes without a key: clients that can choose their address can aim at one "
				      "backend; ring can't be aimed at",
				      config_placement_name(p->c->pool[pool].placement));
		warned[pool] = true;
	}
	free(warned);
}
