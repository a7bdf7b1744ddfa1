/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What must hold among the pools, and among the backends of one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config_label.h"
#include "config_parse.h"

/* Where a value of item i of a list stands, the item itself where the value has no place of its own. */
static const struct node *value_node(const struct node *list, size_t i, const char *key)
{
	const struct node *n = node_find(list->child[i], key);

	return n ? n : list->child[i];
}

static void pool_names_unique(struct parse *p)
{
	const struct config *c = p->c;
	struct label *label = xcalloc(c->pools, sizeof(*label));
	size_t count = 0, first = 0;

	for (size_t i = 0; i < c->pools; i++) {
		if (c->pool[i].name)
			label[count++] = (struct label){ c->pool[i].name, strlen(c->pool[i].name), i };
	}
	labels_sort(label, count);
	for (size_t i = 1; i < count; i++) {
		if (!labels_equal(&label[first], &label[i])) {
			first = i;
			continue;
		}
		fault(&p->f, value_node(p->pools, label[i].index, "name"), "duplicate-name",
		      "pool %s is already in line %u; give each pool its own name", c->pool[label[i].index].name,
		      c->pool[label[first].index].place.line);
	}
	free(label);
}

/* What two backends of a pool must not, or should not, have in common. */
struct common {
	const char *key, *code;
	void (*label)(const struct config_backend *b, struct label *out); /* leaves bytes NULL where there is none */
	void (*complain)(struct faults *f, const struct node *n, const char *code, const struct config_backend *first,
			 const struct config_backend *b);
};

static void label_name(const struct config_backend *b, struct label *out)
{
	out->bytes = b->name;
	out->length = b->name ? strlen(b->name) : 0;
}

static void label_identity(const struct config_backend *b, struct label *out)
{
	out->bytes = b->identity;
	out->length = b->identity ? strlen(b->identity) : 0;
}

static void label_id(const struct config_backend *b, struct label *out)
{
	out->bytes = b->id ? &b->id : NULL;
	out->length = sizeof(b->id);
}

static void label_address(const struct config_backend *b, struct label *out)
{
	out->bytes = address_given(&b->address) ? &b->address : NULL;
	out->length = sizeof(b->address);
}

static void complain_name(struct faults *f, const struct node *n, const char *code, const struct config_backend *first,
			  const struct config_backend *b)
{
	fault(f, n, code, "backend %s is already in line %u; give each backend of a pool its own name", b->name,
	      first->place.line);
}

static void complain_identity(struct faults *f, const struct node *n, const char *code,
			      const struct config_backend *first, const struct config_backend *b)
{
	/* A name that is there twice is an identity that is there twice: said once. */
	if (first->name && b->name && !strcmp(first->name, b->name))
		return;
	fault(f, n, code, "the identity \"%s\" is already %s's, in line %u; two backends can't share their points",
	      b->identity, first->name ? first->name : "another backend", first->place.line);
}

static void complain_id(struct faults *f, const struct node *n, const char *code, const struct config_backend *first,
			const struct config_backend *b)
{
	fault(f, n, code, "id %u is already in line %u; give each backend of a pool its own", b->id, first->place.line);
}

static void complain_address(struct faults *f, const struct node *n, const char *code,
			     const struct config_backend *first, const struct config_backend *b)
{
	char text[ADDRESS_TEXT];

	fault_warning(f, n, code, "%s is already %s's address, in line %u: one host that gets both shares",
		      address_text(&b->address, text), first->name ? first->name : "another backend",
		      first->place.line);
}

static void check_common(struct parse *p, const struct config_pool *pool, const struct node *list,
			 const struct common *c)
{
	struct label *label = xcalloc(pool->backends, sizeof(*label));
	size_t count = 0, first = 0;

	for (size_t i = 0; i < pool->backends; i++) {
		struct label l = { .index = i };

		c->label(&pool->backend[i], &l);
		if (l.bytes)
			label[count++] = l;
	}
	labels_sort(label, count);
	for (size_t i = 1; i < count; i++) {
		if (labels_equal(&label[first], &label[i]))
			c->complain(&p->f, value_node(list, label[i].index, c->key), c->code,
				    &pool->backend[label[first].index], &pool->backend[label[i].index]);
		else
			first = i;
	}
	free(label);
}

/* Called where the sum passes the limit. */
static void too_many_points(struct parse *p, size_t i, uint64_t total)
{
	const struct config_pool *pool = &p->c->pool[i];
	char need[COUNT_TEXT], limit[COUNT_TEXT], text[COUNT_TEXT];
	const char *name = pool->name ? pool->name : "";
	uint64_t fixed = 0, weights = 0;
	const struct node *n = value_node(p->pools, i, "vnodes");

	for (size_t j = 0; j < pool->backends; j++) {
		if (pool->backend[j].points)
			fixed += pool->backend[j].points;
		else
			weights += pool->backend[j].weight;
	}
	count_text(total, need);
	count_text(RINGLB_MAX_POINTS, limit);
	if (fixed + weights <= RINGLB_MAX_POINTS && weights)
		fault(&p->f, n, "too-many-points",
		      "pool %s needs %s points, the limit is %s: vnodes: %llu is the largest that fits", name, need,
		      limit, (unsigned long long)((RINGLB_MAX_POINTS - fixed) / weights));
	else if (fixed > RINGLB_MAX_POINTS)
		fault(&p->f, n, "too-many-points",
		      "pool %s needs %s points, the limit is %s: the backends' own points alone are %s; lower them",
		      name, need, limit, count_text(fixed, text));
	else
		fault(&p->f, n, "too-many-points",
		      "pool %s needs %s points, the limit is %s: the weights add up to %s and no vnodes fits; lower the "
		      "weights",
		      name, need, limit, count_text(weights, text));
}

/*
 * Tuned counts are spread around some points for each unit of weight as shares are without tuning: by the square root of
 * their number, and this many times that among so many. Farther off a weight was changed, and the count beside it not.
 */
static bool is_far_off(const struct config_pool *pool, const struct config_backend *b, double per_weight)
{
	double usual = per_weight * b->weight, times = sqrt(2 * log((double)pool->backends)) + 2;

	return b->points && fabs(b->points - usual) > times * sqrt(usual) + 2;
}

static int compare_double(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* vnodes; or, where most backends are far off that, the median of their counts for a unit of weight. */
static double points_per_weight(const struct config_pool *pool)
{
	double *each = xcalloc(pool->backends, sizeof(*each)), median = pool->vnodes;
	size_t off = 0, count = 0;

	for (size_t i = 0; i < pool->backends; i++) {
		const struct config_backend *b = &pool->backend[i];

		off += is_far_off(pool, b, pool->vnodes);
		if (b->points)
			each[count++] = (double)b->points / b->weight;
	}
	qsort(each, count, sizeof(*each), compare_double);
	if (2 * off > pool->backends)
		median = each[count / 2];
	free(each);
	return median;
}

static void points_with_weights(struct parse *p, size_t i)
{
	const struct config_pool *pool = &p->c->pool[i];
	const struct node *list = node_find(p->pools->child[i], "backends");
	double per_weight = points_per_weight(pool);
	char usual[COUNT_TEXT];

	for (size_t j = 0; j < pool->backends; j++)
		if (is_far_off(pool, &pool->backend[j], per_weight))
			fault_warning(&p->f, value_node(list, j, "points"), "points-weight",
				      "far from what weight %u asks for, about %s: was the weight changed, and this "
				      "not? \"ringlb tune\" finds the count",
				      pool->backend[j].weight,
				      count_text((uint64_t)(per_weight * pool->backend[j].weight + 0.5), usual));
}

static void check_size(struct parse *p, size_t i)
{
	const struct config_pool *pool = &p->c->pool[i];
	uint64_t total = 0;

	for (size_t j = 0; j < pool->backends; j++)
		total += config_backend_points(pool, &pool->backend[j]);
	if (total > RINGLB_MAX_POINTS && pool->placement == CONFIG_RING)
		too_many_points(p, i, total);
	else if (pool->placement == CONFIG_RING)
		points_with_weights(p, i);
	if (pool->quorum > pool->backends && pool->backends)
		fault_warning(&p->f, value_node(p->pools, i, "quorum"), "quorum",
			      "more than the pool's %zu backends: its services would never be ready", pool->backends);
}

void check_pools(struct parse *p)
{
	static const struct common commons[] = {
		{ "name", "duplicate-name", label_name, complain_name },
		{ "identity", "duplicate-identity", label_identity, complain_identity },
		{ "id", "duplicate-id", label_id, complain_id },
		{ "address", "duplicate-address", label_address, complain_address },
	};
	char total[COUNT_TEXT], limit[COUNT_TEXT];
	size_t backends = 0;

	pool_names_unique(p);
	for (size_t i = 0; i < p->c->pools; i++) {
		const struct config_pool *pool = &p->c->pool[i];
		const struct node *list = node_find(p->pools->child[i], "backends");

		backends += pool->backends;
		if (list && list->kind == NODE_LIST && !pool->backends)
			fault_warning(&p->f, list, "empty-pool",
				      "has no backend: what is sent to its services is dropped");
		for (size_t j = 0; j < sizeof(commons) / sizeof(*commons) && pool->backends; j++)
			check_common(p, pool, list, &commons[j]);
		check_size(p, i);
	}
	if (backends > RINGLB_MAX_BACKENDS - 1)
		fault(&p->f, p->pools, "too-many-backends", "%s backends in all pools together; the limit is %s",
		      count_text(backends, total), count_text(RINGLB_MAX_BACKENDS - 1, limit));
}
