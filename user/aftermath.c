/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "aftermath.h"

#include <stdlib.h>

#include "flows.h"

struct judge {
	const struct state *state;
	const struct state_pool **table; /* by service index; NULL: no such service, or one that keeps no flows */
	bool *always;                    /* by service index */
	uint16_t *incarnation;           /* by backend index; 0: not in use */
};

static bool valid(const struct judge *j, uint32_t choice)
{
	return choice && choice >> 16 == j->incarnation[flow_choice_backend(choice)];
}

static bool keep(const struct flow_view *v, void *arg)
{
	const struct judge *j = arg;
	const struct state_pool *p = j->table[v->service];

	if (!p || !p->arcs.count || (!valid(j, v->established) && !valid(j, v->opening)))
		return false;
	return j->always[v->service] || p->arcs.arc[arcs_find(&p->arcs, v->position)].moved;
}

static void judge_init(struct judge *j, const struct state *s)
{
	const struct config *c = s->config;

	*j = (struct judge){
		.state = s,
		.table = xcalloc(UINT16_MAX + 1, sizeof(*j->table)),
		.always = xcalloc(UINT16_MAX + 1, sizeof(*j->always)),
		.incarnation = xcalloc(UINT16_MAX + 1, sizeof(*j->incarnation)),
	};
	for (size_t i = 0; i < c->services; i++)
		if (c->service[i].track != RINGLB_TRACK_NONE) {
			j->table[s->service_index[i]] = state_table(s, i);
			j->always[s->service_index[i]] = c->service[i].track == RINGLB_TRACK_ALWAYS;
		}
	for (size_t i = 0; i < state_tables(s); i++) {
		const struct state_pool *p = state_table_at(s, i);

		for (size_t k = 0; k < p->backends; k++)
			j->incarnation[p->backend[k].index] = p->backend[k].incarnation;
	}
}

void aftermath(struct datapath *dp, const struct state *s)
{
	uint32_t count, buckets;
	size_t bytes;
	struct ringlb_backend *backend = datapath_backends(dp, &count);
	struct ringlb_tables *t = datapath_tables(dp, &bytes);
	struct flows flows = { .bucket = datapath_flows(dp, &buckets) };
	struct judge j;

	flows.buckets = buckets;
	judge_init(&j, s);
	for (uint32_t i = 0; i < count; i++) {
		if (!j.incarnation[i])
			backend[i].flags = 0;
		else
			__atomic_store_n(&backend[i].incarnation, j.incarnation[i], __ATOMIC_RELEASE);
	}
	flows_sweep(&flows, keep, &j);
	__atomic_fetch_and(&t->pending, ~RINGLB_PENDING_AFTERMATH, __ATOMIC_SEQ_CST);
	free(j.table);
	free(j.always);
	free(j.incarnation);
}
