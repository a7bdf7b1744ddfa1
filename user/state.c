/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../include/flow_hash.h"
#include "placement.h"

void backend_clear(struct state_backend *b)
{
	free(b->name);
	free(b->identity);
	free(b->zone);
	free(b->reason);
}

void state_pool_clear(struct state_pool *p)
{
	for (size_t i = 0; i < p->backends; i++)
		backend_clear(&p->backend[i]);
	free(p->backend);
	free(p->name);
	arcs_free(&p->arcs);
	arcs_free(&p->ring);
	arcs_free(&p->whole);
	memset(p, 0, sizeof(*p));
}

static void edit_clear(struct state_edit *e)
{
	free(e->pool);
	free(e->backend);
	free(e->value);
}

void state_free(struct state *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->pools; i++)
		state_pool_clear(&s->pool[i]);
	free(s->pool);
	for (size_t i = 0; i < s->owns; i++)
		state_pool_clear(&s->own[i].table);
	free(s->own);
	for (size_t i = 0; i < s->edits; i++)
		edit_clear(&s->edit[i]);
	free(s->edit);
	free(s->ifindex);
	free(s->service_index);
	config_free(s->config);
	free(s);
}

const char *backend_state_name(enum backend_state s)
{
	static const char *const name[] = {
		[BACKEND_UP] = "up",
		[BACKEND_DRAIN] = "drain",
		[BACKEND_MAINT] = "maint",
		[BACKEND_LEAVING] = "leaving",
	};

	return name[s];
}

const char *state_edit_kind_name(enum state_edit_kind k)
{
	static const char *const name[] = {
		[EDIT_ADD] = "add",     [EDIT_DELETE] = "delete",     [EDIT_WEIGHT] = "weight",
		[EDIT_STATE] = "state", [EDIT_ROLLBACK] = "rollback",
	};

	return name[k];
}

static bool edit_is_about(const struct state_edit *e, const char *pool, const char *backend)
{
	return e->kind != EDIT_ROLLBACK && pool && backend && !strcmp(e->pool, pool) && !strcmp(e->backend, backend);
}

/* Drops what a new edit makes void. Returns whether the backend was added by an edit that is dropped. */
static bool drop_edits(struct state *s, enum state_edit_kind kind, const char *pool, const char *backend)
{
	bool was_added = false;
	size_t kept = 0;

	for (size_t i = 0; i < s->edits; i++) {
		struct state_edit *e = &s->edit[i];
		bool whole = kind == EDIT_ADD || kind == EDIT_DELETE;

		if (kind == EDIT_ROLLBACK || (edit_is_about(e, pool, backend) && (whole || e->kind == kind))) {
			was_added |= e->kind == EDIT_ADD;
			edit_clear(e);
		} else {
			s->edit[kept++] = *e;
		}
	}
	s->edits = kept;
	return was_added;
}

void state_edit_add(struct state *s, enum state_edit_kind kind, const char *pool, const char *backend,
		    const char *value)
{
	bool was_added = drop_edits(s, kind, pool, backend);

	if (kind == EDIT_DELETE && was_added) /* as if nothing had happened */
		return;
	s->edit = xreallocarray(s->edit, s->edits + 1, sizeof(*s->edit));
	s->edit[s->edits++] = (struct state_edit){
		.kind = kind,
		.pool = pool ? xstrdup(pool) : NULL,
		.backend = backend ? xstrdup(backend) : NULL,
		.value = value ? xstrdup(value) : NULL,
	};
}

void state_edit_drop(struct state *s, enum state_edit_kind kind, const char *pool, const char *backend)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->edits; i++) {
		struct state_edit *e = &s->edit[i];

		if (e->kind == kind && (kind == EDIT_ROLLBACK || edit_is_about(e, pool, backend)))
			edit_clear(e);
		else
			s->edit[kept++] = *e;
	}
	s->edits = kept;
}

char *state_edit_text(const struct state_edit *e)
{
	switch (e->kind) {
	case EDIT_ADD:
		return xasprintf("pool %s: backend %s added (%s)", e->pool, e->backend, e->value);
	case EDIT_DELETE:
		return xasprintf("pool %s: backend %s deleted", e->pool, e->backend);
	case EDIT_WEIGHT:
		return xasprintf("pool %s: backend %s: weight %s", e->pool, e->backend, e->value);
	case EDIT_STATE:
		return xasprintf("pool %s: backend %s: state %s", e->pool, e->backend, e->value);
	case EDIT_ROLLBACK:
		break;
	}
	return xasprintf("rollback to generation %s", e->value);
}

size_t state_tables(const struct state *s)
{
	return s->pools + s->owns;
}

struct state_pool *state_table_at(const struct state *s, size_t i)
{
	return i < s->pools ? &s->pool[i] : &s->own[i - s->pools].table;
}

const struct state_pool *state_table(const struct state *s, size_t service)
{
	for (size_t i = 0; i < s->owns; i++)
		if (s->own[i].service == service)
			return &s->own[i].table;
	return &s->pool[s->config->service[service].pool];
}

struct state_backend backend_copy(const struct state_backend *b)
{
	struct state_backend copy = *b;

	copy.name = xstrdup(b->name);
	copy.identity = xstrdup(b->identity);
	copy.zone = b->zone ? xstrdup(b->zone) : NULL;
	copy.reason = b->reason ? xstrdup(b->reason) : NULL;
	return copy;
}

void backend_forget_health(struct state_backend *b)
{
	b->health = HEALTH_UNCHECKED;
	b->use = HEALTH_USED;
	b->withheld = 0;
	free(b->reason);
	b->reason = NULL;
}

bool backend_alive(const struct state_backend *b)
{
	return b->state != BACKEND_MAINT && !b->cut && b->use != HEALTH_CUT;
}

bool backend_takes_flows(const struct state_backend *b)
{
	return b->state == BACKEND_UP && b->use == HEALTH_USED;
}

uint32_t backend_points(const struct state_backend *b)
{
	uint64_t points = (uint64_t)b->points * (BACKEND_WHOLE - b->withheld) / BACKEND_WHOLE;

	if (!backend_takes_flows(b))
		return 0;
	return points ? (uint32_t)points : 1;
}

size_t state_pool_healthy(const struct state_pool *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->backends; i++)
		n += p->backend[i].state == BACKEND_UP && p->backend[i].health != HEALTH_DOWN;
	return n;
}

bool backend_same(const struct state_backend *a, const struct state_backend *b)
{
	return address_equal(&a->address, &b->address) && !strcmp(a->identity, b->identity);
}

int backend_order(const struct state_backend *a, const struct state_backend *b)
{
	int order = strcmp(a->identity, b->identity);

	return order ? order : address_compare(&a->address, &b->address);
}

struct state_backend *state_pool_find(const struct state_pool *p, const char *name)
{
	for (size_t i = 0; i < p->backends; i++)
		if (!strcmp(p->backend[i].name, name))
			return &p->backend[i];
	return NULL;
}

/* What a pool's arcs say about new flows, whatever the backends are called and however they are numbered. */
static XXH128_hash_t pool_digest(const struct state_pool *p, bool effective)
{
	const struct arcs *ring = effective || !p->whole.count ? &p->ring : &p->whole;
	XXH3_state_t *x = XXH3_createState();
	XXH64_hash_t *owner = xcalloc(p->backends + 1, sizeof(*owner));
	XXH128_hash_t digest;

	for (size_t i = 0; i < p->backends; i++) {
		const struct state_backend *b = &p->backend[i];

		owner[i] = XXH3_64bits_withSeed(b->identity, strlen(b->identity),
						XXH3_64bits(b->address.byte, sizeof(b->address.byte)));
	}
	XXH3_128bits_reset(x);
	for (size_t i = 0; i < ring->count; i++) {
		const struct arc *a = &ring->arc[i];
		struct {
			uint64_t last;
			XXH64_hash_t owner;
		} piece = { a->last, owner[a->owner] };

		XXH3_128bits_update(x, &piece, sizeof(piece));
	}
	digest = XXH3_128bits_digest(x);
	XXH3_freeState(x);
	free(owner);
	return digest;
}

struct service_digest {
	uint8_t address[16];
	uint16_t port;
	uint8_t protocol, affinity, prefix4, prefix6;
	uint8_t zero[2];
	XXH128_hash_t pool;
};

/* What most services have nothing of, so that it leaves no trace in the digests of those. */
static uint64_t special_digest(const struct config *c, const struct config_service *v)
{
	const struct config_pool *p = &c->pool[v->pool];
	uint8_t special[] = { v->free_bits,  (uint8_t)(v->port_to >> 8), (uint8_t)v->port_to,
			      v->cid_length, v->server_offset,           v->server_length };
	uint64_t sum = 0, bits = 0;

	for (size_t i = 0; i < sizeof(special); i++)
		bits |= special[i];
	if (bits)
		sum = XXH3_64bits(special, sizeof(special));
	for (size_t i = 0; v->server_length && i < p->backends; i++) /* in any order */
		sum += XXH3_64bits_withSeed(p->backend[i].identity, strlen(p->backend[i].identity), p->backend[i].id);
	return sum;
}

static int service_digest_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct service_digest));
}

static void digest(const struct state *s, bool effective, char out[33])
{
	static const char label[16] = "ringlb digest 1";
	const struct config *c = s->config;
	XXH128_hash_t *pool = xcalloc(s->pools + 1, sizeof(*pool)), sum;
	struct service_digest *service = xcalloc(c->services + 1, sizeof(*service));
	struct {
		uint64_t fingerprint; /* keyed, so that it says nothing about the key */
		uint64_t services;
	} head = { .services = c->services };
	__u64 key[2], text[2];
	XXH3_state_t *x = XXH3_createState();

	memcpy(key, c->hash_key, sizeof(key));
	memcpy(text, label, sizeof(text));
	head.fingerprint = flow_hash_siphash13(key, text, 2);
	for (size_t i = 0; i < s->pools; i++)
		pool[i] = pool_digest(&s->pool[i], effective);
	for (size_t i = 0; i < c->services; i++) {
		const struct config_service *v = &c->service[i];
		struct service_digest *d = &service[i];

		memcpy(d->address, v->address.byte, sizeof(d->address));
		d->port = v->port;
		d->protocol = v->protocol;
		d->affinity = (uint8_t)placement_affinity(&c->pool[v->pool], v);
		if (v->affinity == RINGLB_AFFINITY_SOURCE) {
			d->prefix4 = v->source_prefix4;
			d->prefix6 = v->source_prefix6;
		}
		d->pool = pool[v->pool];
		d->pool.low64 ^= special_digest(c, v);
	}
	qsort(service, c->services, sizeof(*service), service_digest_order);
	XXH3_128bits_reset(x);
	XXH3_128bits_update(x, &head, sizeof(head));
	XXH3_128bits_update(x, service, c->services * sizeof(*service));
	sum = XXH3_128bits_digest(x);
	snprintf(out, 33, "%016llx%016llx", (unsigned long long)sum.high64, (unsigned long long)sum.low64);
	XXH3_freeState(x);
	free(service);
	free(pool);
}

void state_digest(const struct state *s, char out[33])
{
	digest(s, false, out);
}

void state_effective_digest(const struct state *s, char out[33])
{
	digest(s, true, out);
}
