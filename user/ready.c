// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ready.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void say(char reason[READY_REASON], const char *format, ...)
{
	va_list ap;

	if (!reason)
		return;
	va_start(ap, format);
	vsnprintf(reason, READY_REASON, format, ap);
	va_end(ap);
}

static const struct health_pool *find(const struct health *h, const char *pool)
{
	for (size_t i = 0; h && i < h->pools; i++)
		if (!strcmp(h->pool[i].name, pool))
			return &h->pool[i];
	return NULL;
}

bool service_ready(const struct state *s, size_t service, const struct plan_interface *interface, size_t interfaces,
		   const struct health *health, char reason[READY_REASON])
{
	const struct config_pool *c = &s->config->pool[s->config->service[service].pool];
	const struct state_pool *p = &s->pool[s->config->service[service].pool];
	const struct health_pool *checked = find(health, c->name);
	size_t takers = 0, healthy;

	for (size_t i = 0; i < interfaces; i++)
		if (!interface[i].attached || !interface[i].alive) {
			say(reason, "interface %s is missing", interface[i].name);
			return false;
		}
	if (!interfaces) {
		say(reason, "no interface is configured");
		return false;
	}
	for (size_t i = 0; i < p->backends; i++)
		takers += backend_takes_flows(&p->backend[i]);
	healthy = checked ? checked->healthy : state_pool_healthy(p);
	if (!takers)
		say(reason, "no backend of %s takes flows", c->name);
	else
		say(reason, "%zu of %zu backend%s of %s %s %s, quorum %u", healthy, checked ? checked->takers : takers,
		    (checked ? checked->takers : takers) == 1 ? "" : "s", c->name, healthy == 1 ? "is" : "are",
		    checked && checked->check ? "healthy" : "up", c->quorum);
	return takers && healthy && healthy >= c->quorum;
}
