// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is known of the health of backends. */
#include "snapshot_private.h"

static double seconds(uint64_t ms)
{
	return (double)ms / 1000;
}

static const char *use_name(enum health_use u)
{
	return u == HEALTH_USED ? "used" : u == HEALTH_WAITS ? "waits" : "cut";
}

static void backend(struct out *o, const struct snapshot_source *s, const struct health_pool *p,
		    const struct health_backend *b)
{
	uint64_t now = s->health_now, ups = b->ups, downs = b->downs;
	char address[ADDRESS_TEXT];

	if (s->totals)
		totals_get(s->totals, p->name, b, &ups, &downs);
	out_object(o, NULL);
	out_string(o, "pool", p->name);
	out_string(o, "name", b->name);
	out_string(o, "identity", b->identity);
	out_string(o, "address", address_text(&b->address, address));
	out_string(o, "status", health_status_name(b->status));
	out_boolean(o, "waiting", b->waiting);
	out_boolean(o, "stale", health_stale(p, b, now));
	out_real(o, "since", seconds(now - b->since));
	if (b->checked) {
		out_real(o, "checked", seconds(now - b->checked));
		out_real(o, "latency", (double)b->latency_us / 1e6);
	} else {
		out_string(o, "checked", NULL);
		out_string(o, "latency", NULL);
	}
	out_string(o, "reason", b->reason);
	out_integer(o, "ups", (int64_t)ups);
	out_integer(o, "downs", (int64_t)downs);
	out_boolean(o, "held", b->held);
	out_string(o, "use", use_name(b->use));
	out_real(o, "factor", b->factor);
	out_end(o);
}

void snapshot_health(struct out *o, const struct snapshot_source *s)
{
	const struct health *h = s->health;

	out_object(o, "health");
	out_array(o, "pools");
	for (size_t i = 0; i < h->pools; i++) {
		out_object(o, NULL);
		out_string(o, "name", h->pool[i].name);
		out_boolean(o, "checked", h->pool[i].check != NULL);
		out_integer(o, "takers", (int64_t)h->pool[i].takers);
		out_integer(o, "healthy", (int64_t)h->pool[i].healthy);
		out_boolean(o, "all_down", h->pool[i].all_down);
		out_boolean(o, "panic", h->pool[i].panic);
		out_end(o);
	}
	out_end(o);
	out_array(o, "backends");
	for (size_t i = 0; i < h->pools; i++)
		for (size_t j = 0; j < h->pool[i].backends && h->pool[i].check; j++)
			backend(o, s, &h->pool[i], &h->pool[i].backend[j]);
	out_end(o);
	out_end(o);
}
