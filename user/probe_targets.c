/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engine's making and end, and the targets that it has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe_private.h"

static const struct probe_kind *const kinds[] = {
	[CHECK_TCP] = &probe_kind_tcp, [CHECK_HTTP] = &probe_kind_web, [CHECK_HTTPS] = &probe_kind_web,
	[CHECK_DNS] = &probe_kind_dns, [CHECK_UDP] = &probe_kind_udp,  [CHECK_ICMP] = &probe_kind_echo,
};

struct probe_engine *probe_engine_new(const struct probe_options *o)
{
	struct probe_engine *e = xcalloc(1, sizeof(*e));
	int err;

	e->options = *o;
	e->queue_end = &e->queue;
	e->expected = PROBE_NEVER;
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = e->epoll < 0 ? -errno : probe_web_open(e);
	if (!err)
		err = probe_echo_open(e);
	if (!err)
		return e;
	probe_engine_free(e);
	errno = -err;
	return NULL;
}

struct probe *probe_find(const struct probe_engine *e, uint64_t key)
{
	size_t low = 0, high = e->probes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (e->probe[middle]->key == key)
			return e->probe[middle];
		if (e->probe[middle]->key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void check_release(struct probe_check *c)
{
	if (--c->targets)
		return;
	config_check_free(c->is);
	free(c);
}

/* Nobody hears of it any more; its memory goes when no event and no queue can point to it. */
static void forget(struct probe *p)
{
	struct probe_engine *e = p->e;
	bool queued = p->phase == PROBE_QUEUED;

	probe_heap_take(&e->heap, p);
	probe_drop(p);
	p->phase = PROBE_GONE;
	check_release(p->check);
	p->check = NULL;
	if (!queued) {
		p->next = e->gone;
		e->gone = p;
	}
}

static int by_key(const void *a, const void *b)
{
	const struct probe_target *x = *(const struct probe_target *const *)a;
	const struct probe_target *y = *(const struct probe_target *const *)b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Targets of one pool have one check, which is compared or copied once. It lives: a target that stays has it. */
struct checks {
	const struct config_check *given;
	struct probe_check *check;
};

static struct probe_check *check_for(struct checks *last, const struct config_check *given)
{
	if (last->given != given || !last->check) {
		last->given = given;
		last->check = xcalloc(1, sizeof(*last->check));
		last->check->is = config_check_copy(given);
	}
	last->check->targets++;
	return last->check;
}

static struct probe *make(struct probe_engine *e, const struct probe_target *t, struct checks *last, bool first,
			  uint64_t now)
{
	struct probe *p = xcalloc(1, sizeof(*p));
	uint64_t within = t->check->interval_ms;

	if (!first && within > 1000)
		within = 1000;
	*p = (struct probe){ .e = e,
			     .kind = kinds[t->check->type],
			     .key = t->key,
			     .address = t->address,
			     .fd = -1,
			     .place = NOT_QUEUED };
	p->watch.ready = probe_ready;
	p->check = check_for(last, t->check);
	p->due = now + probe_random(e) % within;
	p->started = p->due;
	probe_heap_put(&e->heap, p);
	return p;
}

static bool same(const struct probe *p, const struct probe_target *t, struct checks *last)
{
	if (!address_equal(&p->address, &t->address))
		return false;
	if (last->given == t->check && last->check == p->check)
		return true; /* compared already */
	if (!config_check_equal(p->check->is, t->check))
		return false;
	*last = (struct checks){ t->check, p->check };
	return true;
}

void probe_engine_set(struct probe_engine *e, const struct probe_target *target, size_t targets, uint64_t now)
{
	const struct probe_target **sorted = xcalloc(targets + 1, sizeof(*sorted));
	struct probe **next = xcalloc(targets + 1, sizeof(*next));
	struct checks last = { 0 };
	bool first = !e->probes;
	size_t old = 0;

	for (size_t i = 0; i < targets; i++)
		sorted[i] = &target[i];
	qsort(sorted, targets, sizeof(*sorted), by_key);
	for (size_t i = 0; i < targets; i++) {
		const struct probe_target *t = sorted[i];

		while (old < e->probes && e->probe[old]->key < t->key)
			forget(e->probe[old++]);
		if (old < e->probes && e->probe[old]->key == t->key) {
			if (same(e->probe[old], t, &last)) {
				next[i] = e->probe[old++];
				continue;
			}
			forget(e->probe[old++]);
		}
		next[i] = make(e, t, &last, first, now);
	}
	while (old < e->probes)
		forget(e->probe[old++]);
	free(e->probe);
	e->probe = next;
	e->probes = targets;
	e->expected = PROBE_NEVER; /* new ones may be due before it */
	free(sorted);
}

void probe_engine_free(struct probe_engine *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->probes; i++)
		forget(e->probe[i]);
	while (e->queue) { /* only what is gone */
		struct probe *p = e->queue;

		e->queue = p->next;
		free(p);
	}
	while (e->gone) {
		struct probe *p = e->gone;

		e->gone = p->next;
		free(p);
	}
	probe_web_close(e);
	probe_echo_close(e);
	if (e->epoll >= 0)
		close(e->epoll);
	free(e->probe);
	free(e->heap.probe);
	free(e);
}
