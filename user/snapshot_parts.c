// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rings as a picture needs them, and what the names of counters mean. */
#include <stdlib.h>
#include <string.h>

#include "snapshot_private.h"

/* rank[i]: the place of p's backend i in show, which has the file's order and those that have left it last. */
static void rank_backends(const struct config_pool *c, const struct state_pool *p, int *rank)
{
	int next = 0;

	for (size_t i = 0; i < p->backends; i++)
		rank[i] = -1;
	rank[p->backends] = -1; /* nobody */
	for (size_t i = 0; i < c->backends; i++)
		for (size_t j = 0; j < p->backends; j++)
			if (p->backend[j].state != BACKEND_LEAVING &&
			    !strcmp(p->backend[j].identity, c->backend[i].identity))
				rank[j] = next++;
	for (size_t j = 0; j < p->backends; j++)
		if (p->backend[j].state == BACKEND_LEAVING)
			rank[j] = next++;
}

static void ring(struct out *o, const struct config_pool *c, const struct state_pool *p)
{
	const struct arc *at[SNAPSHOT_RING_SLOTS];
	int *rank = xcalloc(p->backends + 1, sizeof(*rank));
	uint64_t step = (1ull << 32) / SNAPSHOT_RING_SLOTS;

	rank_backends(c, p, rank);
	for (size_t i = 0; i < SNAPSHOT_RING_SLOTS; i++)
		at[i] = &p->arcs.arc[arcs_find(&p->arcs, (uint32_t)(i * step + step / 2))];
	out_object(o, NULL);
	out_string(o, "pool", p->name);
	out_array(o, "owners");
	for (size_t i = 0; i < SNAPSHOT_RING_SLOTS; i++)
		out_integer(o, NULL, rank[at[i]->owner]);
	out_end(o);
	out_array(o, "moved");
	for (size_t i = 0; i < SNAPSHOT_RING_SLOTS; i++)
		out_integer(o, NULL, at[i]->moved);
	out_end(o);
	out_end(o);
	free(rank);
}

void snapshot_rings(struct out *o, const struct state *s)
{
	out_array(o, "rings");
	for (size_t i = 0; i < s->pools && i < SNAPSHOT_RINGS; i++)
		if (s->pool[i].arcs.count)
			ring(o, &s->config->pool[i], &s->pool[i]);
	out_end(o);
}

static void meaning(struct out *o, const char *name, const char *text, const char *remedy)
{
	out_object(o, name);
	out_string(o, "meaning", text);
	if (*remedy)
		out_string(o, "remedy", remedy);
	out_end(o);
}

void snapshot_meanings(struct out *o)
{
	out_object(o, "meanings");
	out_object(o, "verdicts");
#define X(id, name, text, remedy) meaning(o, name, text, remedy);
	RINGLB_VERDICTS(X)
#undef X
	out_end(o);
	out_object(o, "flow_events");
#define X(member, name, text) meaning(o, name, text, "");
	RINGLB_FLOW_EVENTS(X)
#undef X
	out_end(o);
	out_end(o);
}
