/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prefixes of addresses as a search can find the longest: the address space in blocks of one longest prefix each. */
#include <stdlib.h>
#include <string.h>

#include "service_table_private.h"

typedef unsigned __int128 number;

static number number_of(const struct address *a)
{
	number n = 0;

	for (size_t i = 0; i < sizeof(a->byte); i++)
		n = n << 8 | a->byte[i];
	return n;
}

static number last_of(const struct config_service *s)
{
	return number_of(&s->address) | (((number)1 << s->free_bits) - 1);
}

static int prefix_order(const void *a, const void *b)
{
	const struct config_service *x = *(const struct config_service *const *)a;
	const struct config_service *y = *(const struct config_service *const *)b;
	int order = address_compare(&x->address, &y->address);

	return order ? order : (y->free_bits > x->free_bits) - (y->free_bits < x->free_bits);
}

/* Appends a block up to last, unless those before reach so far. */
static void add_block(struct service_prefixes *p, number last, uint32_t prefix)
{
	const struct ringlb_block *before = p->blocks ? &p->block[p->blocks - 1] : NULL;

	if (before && ((number)before->last[0] << 64 | before->last[1]) >= last)
		return;
	p->block[p->blocks++] = (struct ringlb_block){ .last = { (__u64)(last >> 64), (__u64)last }, .prefix = prefix };
}

/* p->wider is also the stack of those that the sweep is in. */
static void cut_into_blocks(struct service_prefixes *p)
{
	uint32_t inside = 0; /* number + 1 */

	for (uint32_t i = 0; i < p->count; i++) {
		number first = number_of(&p->prefix[i]->address);

		for (; inside && last_of(p->prefix[inside - 1]) < first; inside = p->wider[inside - 1])
			add_block(p, last_of(p->prefix[inside - 1]), inside);
		if (first)
			add_block(p, first - 1, inside);
		p->wider[i] = inside;
		inside = i + 1;
	}
	for (; inside; inside = p->wider[inside - 1])
		add_block(p, last_of(p->prefix[inside - 1]), inside);
}

void service_prefixes_make(const struct config *c, struct service_prefixes *out)
{
	size_t n = 0;

	*out = (struct service_prefixes){ .prefix = xcalloc(c->services + 1, sizeof(*out->prefix)) };
	for (size_t i = 0; i < c->services; i++)
		if (c->service[i].free_bits)
			out->prefix[n++] = &c->service[i];
	qsort(out->prefix, n, sizeof(*out->prefix), prefix_order);
	for (size_t i = 0; i < n; i++)
		if (!out->count || prefix_order(&out->prefix[out->count - 1], &out->prefix[i]))
			out->prefix[out->count++] = out->prefix[i];
	out->wider = xcalloc(out->count + 1, sizeof(*out->wider));
	out->block = xcalloc(2 * (size_t)out->count + 1, sizeof(*out->block));
	cut_into_blocks(out);
}

void service_prefixes_free(struct service_prefixes *p)
{
	free(p->prefix);
	free(p->wider);
	free(p->block);
	memset(p, 0, sizeof(*p));
}

uint32_t service_prefixes_find(const struct service_prefixes *p, const struct config_service *s)
{
	const struct config_service **found = bsearch(&s, p->prefix, p->count, sizeof(*p->prefix), prefix_order);

	return (uint32_t)(found - p->prefix);
}
