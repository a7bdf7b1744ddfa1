/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "drift.h"

#include <stdlib.h>
#include <string.h>

#include "plan.h"

static void add(struct drift *d, char *line)
{
	d->line = xreallocarray(d->line, d->lines + 1, sizeof(*d->line));
	d->line[d->lines++] = line;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_configuration(const struct config *a, const struct config *b)
{
	char *x = config_emit(a, true), *y = config_emit(b, true);
	bool same = !strcmp(x, y) && same_text(a->hash_key_file, b->hash_key_file);

	free(x);
	free(y);
	return same;
}

/* A drain that has come to its end by itself, and nothing that the file says. */
static bool only_time_passed(const struct state *running, const struct plan *plan, const struct plan_operation *op)
{
	const struct state_backend *is = &plan->next->pool[op->pool].backend[op->backend];
	const char *pool = plan->next->pool[op->pool].name;

	if (op->kind != PLAN_BACKEND_CHANGE)
		return false;
	for (size_t i = 0; i < running->pools; i++) {
		const struct state_backend *was;

		if (strcmp(running->pool[i].name, pool))
			continue;
		was = state_pool_find(&running->pool[i], is->name);
		return was && was->weight == is->weight && was->points == is->points && was->state == is->state &&
		       same_text(was->zone, is->zone);
	}
	return false;
}

static void compare(const struct state *running, struct config *file, uint32_t now, struct drift *out)
{
	size_t interfaces = running->config->interfaces;
	struct plan_interface *v = xcalloc(interfaces + 1, sizeof(*v));
	uint32_t *flows = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*flows));
	struct plan_input in = {
		.running = running, .config = file, .interface = v, .interfaces = interfaces, .flows = flows, .now = now
	};
	struct diag d = { 0 };
	struct plan plan;

	/* What the file says does not depend on whose flows there are, */
	for (size_t i = 0; i < RINGLB_MAX_BACKENDS; i++)
		flows[i] = 1;
	/* nor on whether the interfaces are there. */
	for (size_t i = 0; i < interfaces; i++)
		v[i] = (struct plan_interface){ .name = running->config->interface[i],
						.attached = true,
						.alive = true };
	if (plan_make(&in, &plan, &d)) {
		add(out, xasprintf("file: can't be applied: %s", d.count ? d.entry[0].message : "out of memory"));
	} else {
		for (size_t i = 0; i < plan.operations; i++) {
			const struct plan_operation *op = &plan.operation[i];

			if (*op->text && op->kind <= PLAN_INTERFACE_DETACH && op->kind != PLAN_INTERFACE_REATTACH &&
			    !only_time_passed(running, &plan, op))
				add(out, xasprintf("file: %s", op->text));
		}
		plan_free(&plan);
	}
	diag_free(&d);
	free(flows);
	free(v);
}

void drift_find(const struct state *running, struct config *file, const char *unknown, uint32_t now, struct drift *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < running->edits; i++) {
		char *text = state_edit_text(&running->edit[i]);

		add(out, xasprintf("live: %s", text));
		free(text);
	}
	if (!file) {
		if (unknown)
			add(out, xasprintf("file: %s", unknown));
		return;
	}
	if (same_configuration(running->config, file))
		config_free(file);
	else
		compare(running, file, now, out);
}

void drift_free(struct drift *d)
{
	for (size_t i = 0; i < d->lines; i++)
		free(d->line[i]);
	free(d->line);
	memset(d, 0, sizeof(*d));
}
