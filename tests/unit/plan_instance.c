// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The half of plan_case.h that runs what is planned. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../include/ringlb_abi.h"
#include "manifest.h"
#include "plan_case.h"

#define TABLES_BYTES (1u << 20)

void case_instance_init(struct case_instance *i)
{
	*i = (struct case_instance){ .bytes = TABLES_BYTES, .now = 1000000 };
	i->tables = aligned_alloc(RINGLB_TABLES_HEADER, i->bytes);
	assert_non_null(i->tables);
	memset(i->tables, 0xa5, i->bytes);
	i->incarnation = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*i->incarnation));
}

void case_instance_free(struct case_instance *i)
{
	state_free(i->running);
	free(i->tables);
	free(i->incarnation);
	free(i->manifest);
}

int case_plan(const struct case_instance *i, struct config *config, struct plan *out, struct diag *d)
{
	const struct config *c = i->running ? i->running->config : NULL;
	size_t count = c ? c->interfaces : 0;
	struct plan_interface *interface = xcalloc(count + 1, sizeof(*interface));
	const struct plan_input in = {
		.running = i->running,
		.config = config,
		.interface = interface,
		.interfaces = count,
		.now = i->now,
		.health = i->health,
		.watched = i->watched,
	};
	int err;

	for (size_t j = 0; j < count; j++)
		interface[j] = (struct plan_interface){ c->interface[j], true, true, true, false, "" };
	err = plan_make(&in, out, d);
	free(interface);
	return err;
}

void case_plan_good(const struct case_instance *i, const struct case_config *c, bool shuffled, struct plan *out)
{
	struct diag d = { 0 };

	assert_int_equal(case_plan(i, case_parse(c, shuffled), out, &d), 0);
	assert_int_equal(d.count, 0);
}

static void assert_backends_equal(const struct state_backend *a, const struct state_backend *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->identity, b->identity);
	assert_int_equal(!a->zone, !b->zone);
	if (a->zone)
		assert_string_equal(a->zone, b->zone);
	assert_memory_equal(&a->address, &b->address, sizeof(a->address));
	assert_int_equal(a->weight, b->weight);
	assert_int_equal(a->points, b->points);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->cut, b->cut);
	assert_int_equal(a->health, b->health);
	assert_int_equal(a->use, b->use);
	assert_int_equal(a->withheld, b->withheld);
	assert_int_equal(a->since, b->since);
	assert_int_equal(a->index, b->index);
	assert_int_equal(a->incarnation, b->incarnation);
}

static void assert_arcs_equal(const struct arcs *a, const struct arcs *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_int_equal(a->arc[i].last, b->arc[i].last);
		assert_int_equal(a->arc[i].owner, b->arc[i].owner);
		assert_int_equal(a->arc[i].previous, b->arc[i].previous);
		assert_int_equal(a->arc[i].stamp, b->arc[i].stamp);
		assert_int_equal(a->arc[i].moved, b->arc[i].moved);
	}
}

static void assert_pools_equal(const struct state_pool *a, const struct state_pool *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->region, b->region);
	assert_memory_equal(&a->layout, &b->layout, sizeof(a->layout));
	assert_int_equal(a->backends, b->backends);
	for (size_t i = 0; i < a->backends; i++)
		assert_backends_equal(&a->backend[i], &b->backend[i]);
	assert_arcs_equal(&a->arcs, &b->arcs);
}

void case_assert_states_equal(const struct state *a, const struct state *b)
{
	char *x = config_emit(a->config, true), *y = config_emit(b->config, true);

	assert_string_equal(x, y);
	free(x);
	free(y);
	assert_string_equal(a->config->file, b->config->file);
	assert_int_equal(!a->config->hash_key_file, !b->config->hash_key_file);
	if (a->config->hash_key_file)
		assert_string_equal(a->config->hash_key_file, b->config->hash_key_file);
	assert_int_equal(a->generation, b->generation);
	assert_int_equal(a->revision, b->revision);
	assert_string_equal(a->digest, b->digest);
	assert_string_equal(a->effective_digest, b->effective_digest);
	assert_int_equal(a->pools, b->pools);
	assert_int_equal(a->owns, b->owns);
	for (size_t i = 0; i < state_tables(a); i++)
		assert_pools_equal(state_table_at(a, i), state_table_at(b, i));
	for (size_t i = 0; i < a->owns; i++)
		assert_int_equal(a->own[i].service, b->own[i].service);
	for (size_t i = 0; i < a->config->interfaces; i++)
		assert_int_equal(a->ifindex[i], b->ifindex[i]);
	for (size_t i = 0; i < a->config->services; i++)
		assert_int_equal(a->service_index[i], b->service_index[i]);
}

static void write_table(struct case_instance *i, struct regions *r, struct state_pool *p)
{
	uint16_t *owner = xcalloc(p->backends + 1, sizeof(*owner));

	for (size_t j = 0; j < p->backends; j++)
		owner[j] = p->backend[j].index;
	owner[STATE_NOBODY(p)] = RINGLB_NO_BACKEND;
	p->region = regions_take(r, p->layout.length);
	assert_int_not_equal(p->region, 0);
	table_encode(&p->arcs, owner, p->backends + 1, &p->layout, i->tables + p->region);
	free(owner);
}

static void write_tables(struct case_instance *i, const struct plan *p)
{
	struct regions r;

	regions_init(&r, i->bytes);
	for (size_t j = 0; i->running && j < state_tables(i->running); j++) {
		const struct state_pool *t = state_table_at(i->running, j);

		if (t->layout.bits)
			regions_add(&r, t->region, t->layout.length);
	}
	for (size_t j = 0; j < p->operations; j++) {
		const struct plan_operation *o = &p->operation[j];

		if (o->kind == PLAN_TABLE_BUILD)
			write_table(i, &r, &p->next->pool[o->pool]);
		else if (o->kind == PLAN_OWN_BUILD)
			write_table(i, &r, &p->next->own[o->pool].table);
	}
	regions_free(&r);
}

void case_give_incarnations(struct case_instance *i, const struct plan *p)
{
	for (size_t j = 0; j < p->operations; j++) {
		const struct plan_operation *o = &p->operation[j];

		if (o->kind == PLAN_BACKEND_ADD) {
			struct state_backend *b = &p->next->pool[o->pool].backend[o->backend];

			b->incarnation = b->incarnation ? b->incarnation : ++i->incarnation[b->index];
		}
	}
	for (size_t j = 0; j < state_tables(p->next); j++)
		for (size_t k = 0; k < state_table_at(p->next, j)->backends; k++) {
			struct state_backend *b = &state_table_at(p->next, j)->backend[k];

			if (!b->incarnation)
				b->incarnation = i->incarnation[b->index];
			else
				i->incarnation[b->index] = b->incarnation;
		}
}

void case_commit(struct case_instance *i, const struct plan *p)
{
	struct diag d = { 0 };

	case_give_incarnations(i, p);
	write_tables(i, p);
	p->next->revision++;
	for (size_t j = 0; j < p->next->config->interfaces; j++)
		p->next->ifindex[j] = 2 + (uint32_t)j;
	free(i->manifest);
	i->manifest = manifest_write(p->next);
	state_free(i->running);
	i->running = manifest_read(i->manifest, strlen(i->manifest), i->tables, i->bytes, &d);
	if (!i->running)
		fail_msg("%s\n%s", d.entry[0].message, i->manifest);
	assert_int_equal(d.count, 0);
	case_assert_states_equal(p->next, i->running);
}

void case_apply(struct case_instance *i, const struct case_config *c)
{
	struct plan p;

	case_plan_good(i, c, false, &p);
	case_commit(i, &p);
	plan_free(&p);
}

size_t case_count(const struct plan *p, enum plan_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < p->operations; i++)
		n += p->operation[i].kind == kind;
	return n;
}

const struct plan_operation *case_find(const struct plan *p, enum plan_kind kind, size_t n)
{
	for (size_t i = 0; i < p->operations; i++) {
		if (p->operation[i].kind == kind && !n--)
			return &p->operation[i];
	}
	fail_msg("no operation %d of this kind", (int)kind);
	return NULL;
}

struct state_pool *case_pool(const struct state *s, const char *name)
{
	for (size_t i = 0; i < s->pools; i++) {
		if (!strcmp(s->pool[i].name, name))
			return &s->pool[i];
	}
	return NULL;
}

const struct plan_pool *case_plan_pool(const struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->pools; i++) {
		if (!strcmp(p->pool[i].name, name))
			return &p->pool[i];
	}
	fail_msg("no pool %s in the plan", name);
	return NULL;
}
