/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "config_parse.h"

#define DAY_MS (24 * 3600 * 1000ull)
#define MAX_IDENTITY 255u

static const struct key backend_keys[] = {
	{ "name", "a name that is its own in the pool: it is hashed, so flows stay with it" },
	{ "address", "the address of the backend" },
	{ "weight", NULL },
	{ "zone", NULL },
	{ "identity", NULL },
	{ "points", NULL },
	{ "id", NULL },
	{ "state", NULL },
};
enum { B_NAME, B_ADDRESS, B_WEIGHT, B_ZONE, B_IDENTITY, B_POINTS, B_ID, B_STATE, B_KEYS };

static const struct key pool_keys[] = {
	{ "name", "a name for the services to refer to" },
	{ "backends", "a list of backends, or []" },
	{ "placement", NULL },
	{ "vnodes", NULL },
	{ "maglev_size", NULL },
	{ "settle_after", NULL },
	{ "drain_max", NULL },
	{ "quorum", NULL },
	{ "check", NULL },
};
enum {
	P_NAME,
	P_BACKENDS,
	P_PLACEMENT,
	P_VNODES,
	P_MAGLEV_SIZE,
	P_SETTLE_AFTER,
	P_DRAIN_MAX,
	P_QUORUM,
	P_CHECK,
	P_KEYS
};

static bool read_identity(struct faults *f, const struct node *n, char **out)
{
	const char *text;

	if (!read_text(f, n, &text))
		return false;
	for (const char *p = text; *p; p++) {
		if (*p < 0x20 || *p > 0x7e) {
			fault(f, n, "bad-value",
			      "an identity is hashed byte for byte: printable ASCII characters are allowed");
			return false;
		}
	}
	if (strlen(text) > MAX_IDENTITY) {
		fault(f, n, "bad-value", "is %zu characters long, at most %u are allowed", strlen(text), MAX_IDENTITY);
		return false;
	}
	*out = xstrdup(text);
	return true;
}

static void read_weight(struct faults *f, const struct node *n, uint32_t *out)
{
	if (n && n->kind == NODE_TEXT && !n->quoted && !strcmp(n->text, "0"))
		fault(f, n, "out-of-range",
		      "0 would take no flow: use state: drain, and keep the weight (1 to 65,535)");
	else
		read_u32(f, n, 1, 65535, out);
}

static void parse_backend(struct parse *p, const struct node *n, struct config_backend *b)
{
	struct node *v[B_KEYS];
	unsigned int state;

	*b = (struct config_backend){ .weight = 1, .state = CONFIG_UP, .place = { n->line, n->column } };
	if (!map_keys(&p->f, n, backend_keys, B_KEYS, v))
		return;
	read_name(&p->f, v[B_NAME], &b->name);
	read_address(&p->f, v[B_ADDRESS], 0, &b->address);
	read_weight(&p->f, v[B_WEIGHT], &b->weight);
	read_name(&p->f, v[B_ZONE], &b->zone);
	if (!v[B_IDENTITY] && b->name)
		b->identity = xstrdup(b->name);
	else
		read_identity(&p->f, v[B_IDENTITY], &b->identity);
	read_u32(&p->f, v[B_POINTS], 1, RINGLB_MAX_POINTS, &b->points);
	read_u32(&p->f, v[B_ID], 1, INT32_MAX, &b->id);
	if (read_choice(&p->f, v[B_STATE], config_state_names, &state))
		b->state = (enum config_state)state;
}

static void parse_backends(struct parse *p, const struct node *list, struct config_pool *pool)
{
	size_t count = list_items(&p->f, list);

	pool->backend = xcalloc(count, sizeof(*pool->backend));
	pool->backends = count;
	for (size_t i = 0; i < count; i++)
		parse_backend(p, list->child[i], &pool->backend[i]);
}

static void parse_pool(struct parse *p, const struct node *n, struct config_pool *pool)
{
	struct node *v[P_KEYS];
	unsigned int placement;

	*pool = (struct config_pool){
		.placement = CONFIG_RING,
		.vnodes = CONFIG_DEFAULT_VNODES,
		.maglev_size = CONFIG_DEFAULT_MAGLEV_SIZE,
		.quorum = 1,
		.settle_after_ms = CONFIG_DEFAULT_SETTLE_AFTER_MS,
		.drain_max_ms = CONFIG_DEFAULT_DRAIN_MAX_MS,
		.place = { n->line, n->column },
	};
	if (!map_keys(&p->f, n, pool_keys, P_KEYS, v))
		return;
	read_name(&p->f, v[P_NAME], &pool->name);
	if (read_choice(&p->f, v[P_PLACEMENT], config_placement_names, &placement))
		pool->placement = (enum config_placement)placement;
	read_u32(&p->f, v[P_VNODES], 1, RINGLB_MAX_POINTS, &pool->vnodes);
	read_u32(&p->f, v[P_MAGLEV_SIZE], 2, RINGLB_MAX_POINTS, &pool->maglev_size);
	read_duration(&p->f, v[P_SETTLE_AFTER], 1000, 7 * DAY_MS, &pool->settle_after_ms);
	read_duration(&p->f, v[P_DRAIN_MAX], 0, 365 * DAY_MS, &pool->drain_max_ms);
	read_u32(&p->f, v[P_QUORUM], 1, RINGLB_MAX_BACKENDS - 1, &pool->quorum);
	parse_backends(p, v[P_BACKENDS], pool);
	number_backends(pool);
	if (v[P_CHECK])
		parse_health_check(p, v[P_CHECK], pool);
}

void parse_pools(struct parse *p)
{
	size_t count = list_items(&p->f, p->pools);

	p->c->pool = xcalloc(count, sizeof(*p->c->pool));
	p->c->pools = count;
	for (size_t i = 0; i < count; i++)
		parse_pool(p, p->pools->child[i], &p->c->pool[i]);
}
