/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "aftermath.h"

#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "flows.h"

struct judge {
	const struct state *state;
	const struct state_pool **table; /* by service index; NULL: no such service, or one that keeps no flows */
	bool *always;                    /* by service index: it keeps flows in ordinary arcs, too */
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
			j->always[s->service_index[i]] = c->service[i].track == RINGLB_TRACK_ALWAYS ||
							 c->service[i].affinity == RINGLB_AFFINITY_QUIC;
		}
	for (size_t i = 0; i < state_tables(s); i++) {
		const struct state_pool *p = state_table_at(s, i);

		for (size_t k = 0; k < p->backends; k++)
			j->incarnation[p->backend[k].index] = p->backend[k].incarnation;
	}
}

static void set_incarnations(struct datapath *dp, const struct judge *j)
{
	uint32_t count;
	struct ringlb_backend *backend = datapath_backends(dp, &count);

	for (uint32_t i = 0; i < count; i++) {
		uint16_t next = (uint16_t)(backend[i].incarnation + 1);

		if (j->incarnation[i]) {
			__atomic_store_n(&backend[i].incarnation, j->incarnation[i], __ATOMIC_RELEASE);
		} else if (backend[i].flags & RINGLB_BACKEND_USED) {
			__atomic_store_n(&backend[i].incarnation, next ? next : 1, __ATOMIC_RELEASE);
			__atomic_store_n(&backend[i].flags, 0, __ATOMIC_RELEASE);
		}
	}
}

static void make_void(struct datapath *dp, const struct state *s)
{
	struct flows flows = { .bucket = datapath_flows(dp, &flows.buckets) };
	size_t bytes;
	struct judge j;

	judge_init(&j, s);
	set_incarnations(dp, &j);
	flows_sweep(&flows, keep, &j);
	__atomic_fetch_and(&datapath_tables(dp, &bytes)->pending, ~RINGLB_PENDING_AFTERMATH, __ATOMIC_SEQ_CST);
	free(j.table);
	free(j.always);
	free(j.incarnation);
}

/* Packets may write it at the same time; the later one stays. */
static void raise_stamp(struct ringlb_cold *cold, uint32_t stamp)
{
	uint32_t is = __atomic_load_n(&cold->stamp, __ATOMIC_RELAXED);

	while ((int32_t)(stamp - is) > 0 &&
	       !__atomic_compare_exchange_n(&cold->stamp, &is, stamp, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static uint16_t index_of(const struct state_pool *p, uint16_t number)
{
	return number < p->backends ? p->backend[number].index : RINGLB_NO_BACKEND;
}

/*
 * The last packet before the switch that did not go to a's owner, in the old arcs up to a's end, from *i on. Where the
 * owner was another one, nobody noted packets that went to it: they came until now.
 */
static uint32_t last_before(const struct state_pool *was, const struct arcs *old, size_t *i,
			    const struct state_pool *is, const struct arc *a, uint32_t now)
{
	uint32_t stamp = a->stamp;

	for (; *i < old->count; ++*i) {
		const struct arc *b = &old->arc[*i];
		bool same = b->moved && index_of(was, b->owner) == index_of(is, a->owner);
		uint32_t then = same ? b->stamp : now;

		stamp = (int32_t)(then - stamp) > 0 ? then : stamp;
		if (b->last > a->last)
			break;
		if (b->last == a->last) {
			++*i;
			break;
		}
	}
	return stamp;
}

static void carry_stamps(char *base, const struct state_pool *was, const struct state_pool *is, uint32_t now)
{
	struct ringlb_cold *cold = (struct ringlb_cold *)(base + is->region + is->layout.cold_off);
	struct arcs old = { 0 };
	uint32_t start = 0;
	size_t from = 0;

	/* One table: packets went on writing into it. */
	if (!is->layout.bits || (was && was->region == is->region))
		return;
	if (was && table_decode(&was->layout, base + was->region, &old))
		was = NULL;
	for (size_t i = 0; i < is->arcs.count; i++) {
		const struct arc *a = &is->arcs.arc[i];
		uint32_t stamp = was ? last_before(was, &old, &from, is, a, now) : now;
		uint32_t first = table_search(&is->layout, base + is->region, start);
		uint32_t last = table_search(&is->layout, base + is->region, a->last);

		for (uint32_t j = first; a->moved && j <= last; j++)
			raise_stamp(&cold[j], stamp);
		start = a->last + 1;
	}
	arcs_free(&old);
}

static const struct state_pool *pool_before(const struct state *was, const char *name)
{
	for (size_t i = 0; was && i < was->pools; i++)
		if (!strcmp(was->pool[i].name, name))
			return &was->pool[i];
	return NULL;
}

static const struct state_pool *table_before(const struct state *was, uint16_t service_index)
{
	for (size_t i = 0; was && i < was->config->services; i++)
		if (was->service_index[i] == service_index)
			return state_table(was, i);
	return NULL;
}

static void read_stamps(struct datapath *dp, struct state_pool *p)
{
	size_t bytes;
	char *base = (char *)datapath_tables(dp, &bytes) + p->region;
	const struct ringlb_cold *cold = (const struct ringlb_cold *)(base + p->layout.cold_off);

	for (size_t i = 0; i < p->arcs.count; i++) {
		struct arc *a = &p->arcs.arc[i];

		if (a->moved)
			a->stamp = __atomic_load_n(&cold[table_search(&p->layout, base, a->last)].stamp,
						   __ATOMIC_RELAXED);
	}
}

void aftermath_of(struct datapath *dp, const struct state *was, const struct state *s)
{
	size_t bytes;
	char *base = (char *)datapath_tables(dp, &bytes);
	uint32_t now;

	if (!running_now(dp, &now)) {
		for (size_t i = 0; i < s->pools; i++)
			carry_stamps(base, pool_before(was, s->pool[i].name), &s->pool[i], now);
		for (size_t i = 0; i < s->owns; i++)
			carry_stamps(base, table_before(was, s->service_index[s->own[i].service]), &s->own[i].table,
				     now);
	}
	make_void(dp, s);
}

void aftermath(struct datapath *dp, struct state *s)
{
	aftermath_of(dp, NULL, s);
	for (size_t i = 0; i < state_tables(s); i++)
		read_stamps(dp, state_table_at(s, i));
}
