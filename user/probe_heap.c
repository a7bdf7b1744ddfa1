/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A binary heap of probes by the time that they are due. */
#include "probe_private.h"

static void place(struct probe_heap *h, size_t at, struct probe *p)
{
	h->probe[at] = p;
	p->place = at;
}

static void up(struct probe_heap *h, size_t at, struct probe *p)
{
	while (at && h->probe[(at - 1) / 2]->due > p->due) {
		place(h, at, h->probe[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	place(h, at, p);
}

static void down(struct probe_heap *h, size_t at, struct probe *p)
{
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < h->count && h->probe[child + 1]->due < h->probe[child]->due)
			child++;
		if (child >= h->count || h->probe[child]->due >= p->due)
			break;
		place(h, at, h->probe[child]);
		at = child;
	}
	place(h, at, p);
}

void probe_heap_take(struct probe_heap *h, struct probe *p)
{
	size_t at = p->place;
	struct probe *last;

	if (at == NOT_QUEUED)
		return;
	p->place = NOT_QUEUED;
	last = h->probe[--h->count];
	if (last == p)
		return;
	if (at && h->probe[(at - 1) / 2]->due > last->due)
		up(h, at, last);
	else
		down(h, at, last);
}

void probe_heap_put(struct probe_heap *h, struct probe *p)
{
	probe_heap_take(h, p);
	if (h->count == h->room) {
		h->room = h->room ? 2 * h->room : 64;
		h->probe = xreallocarray(h->probe, h->room, sizeof(struct probe *));
	}
	up(h, h->count++, p);
}
