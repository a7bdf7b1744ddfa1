// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the daemon changes, by the way that every command goes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "change.h"
#include "daemon_private.h"
#include "guard.h"
#include "moved.h"

#define SAID_OF_A_PLAN 20u
#define UPKEEP_MIN_MS 1000u
#define UPKEEP_MAX_MS 10000u

static bool said_before(const struct daemon *d, const char *text)
{
	for (size_t i = 0; i < d->warnings; i++)
		if (!strcmp(d->warning[i], text))
			return true;
	return false;
}

/* Says the warnings that the commit before this one had not, and remembers them. */
static void say_warnings(struct daemon *d, const struct diag *diag)
{
	char **now = xcalloc(diag->count + 1, sizeof(*now));
	size_t count = 0;

	for (size_t i = 0; i < diag->count; i++) {
		if (diag->entry[i].level != DIAG_WARNING)
			continue;
		if (!said_before(d, diag->entry[i].message))
			log_line(LOG_LEVEL_WARNING, "%s%s%s", diag->entry[i].where, *diag->entry[i].where ? ": " : "",
				 diag->entry[i].message);
		now[count++] = xstrdup(diag->entry[i].message);
	}
	for (size_t i = 0; i < d->warnings; i++)
		free(d->warning[i]);
	free(d->warning);
	d->warning = now;
	d->warnings = count;
}

/* The first error, once: what fails is tried again. */
static void say_failure(struct daemon *d, const struct diag *diag, int err)
{
	const char *text = strerror(-err);

	for (size_t i = diag->count; i--;)
		if (diag->entry[i].level == DIAG_ERROR)
			text = diag->entry[i].message;
	if (!d->failure || strcmp(d->failure, text))
		log_line(LOG_LEVEL_ERROR, "%s (it will be tried again)", text);
	free(d->failure);
	d->failure = xstrdup(text);
}

static void say_plan(const struct plan *p, bool whole)
{
	size_t said = 0, more = 0;

	for (size_t i = 0; i < p->operations; i++) {
		const struct plan_operation *o = &p->operation[i];

		if (!*o->text || (!whole && o->kind == PLAN_HEALTH)) /* health says its own */
			continue;
		if (said++ < SAID_OF_A_PLAN)
			log_line(LOG_LEVEL_INFO, "%s", o->text);
		else
			more++;
	}
	if (more)
		log_line(LOG_LEVEL_INFO, "and %zu more changes", more);
}

/* Interfaces that lack the program are left for later. */
static void leave_interfaces(struct plan_input *in)
{
	struct plan_interface *v = xcalloc(in->interfaces + 1, sizeof(*v));

	memcpy(v, in->interface, in->interfaces * sizeof(*v));
	for (size_t i = 0; i < in->interfaces; i++)
		v[i].gone |= !v[i].attached || !v[i].alive;
	free((void *)in->interface);
	in->interface = v;
}

/* With the lock held. want: the new configuration, taken; NULL: the same. */
static int change_locked(struct daemon *d, struct config *want, bool attach, struct diag *diag)
{
	struct guard guard = GUARD_NONE;
	bool reload = want != NULL;
	struct change c;
	int err = change_open(d->instance, &c, diag);

	if (!err && (!d->running.dp || c.running.state->revision != d->running.state->revision)) {
		config_free(want);
		change_close(&c);
		d->look = d->now;
		return -EAGAIN; /* somebody was faster: look first */
	}
	if (!err && !want)
		want = change_config(&c, diag);
	if (err || !want) {
		config_free(want);
		change_close(&c);
		return err ? err : -EINVAL;
	}
	c.in.health = &d->health;
	c.in.watched = true;
	c.in.keep_edits = !reload;
	if (!attach)
		leave_interfaces(&c.in);
	err = change_plan(&c, want, diag);
	if (!err && reload && !guard_check(&guard, c.running.state, &c.plan, diag))
		err = -EPERM;
	if (!err && c.plan.operations) {
		err = change_commit(&c, NULL, true, diag);
		if (!err)
			say_plan(&c.plan, reload);
	}
	if (!err && reload)
		log_line(LOG_LEVEL_NOTICE, "reloaded %s: generation %u, digest %s%s", d->options->file,
			 c.plan.next->generation, c.plan.next->digest, c.plan.operations ? "" : "; nothing changed");
	reload = !err && c.plan.operations;
	change_close(&c);
	return err ? err : reload;
}

/* 1: something was committed. Takes want. */
static int change(struct daemon *d, struct config *want, bool attach, struct diag *diag)
{
	int err, lock = instance_lock(d->instance, d->options->command, 0, diag);

	if (lock < 0) {
		config_free(want);
		return lock == -ETIMEDOUT ? -EAGAIN : lock;
	}
	err = change_locked(d, want, attach, diag);
	instance_unlock(d->instance, lock);
	return err;
}

int daemon_upkeep(struct daemon *d, bool attach)
{
	struct diag diag = { 0 };
	int err = d->running.dp ? change(d, NULL, attach, &diag) : 0;

	if (err >= 0) {
		say_warnings(d, &diag);
		free(d->failure);
		d->failure = NULL;
		health_committed(&d->health);
		d->said_due = NEVER;
	} else if (err == -EAGAIN || err == -ENOENT) {
		err = -EAGAIN;
	} else {
		say_failure(d, &diag, err);
		health_failed(&d->health, d->now);
	}
	if (err == 1)
		daemon_learn(d, false);
	d->upkeep = err < 0 ? d->now + UPKEEP_MIN_MS : daemon_upkeep_due(d);
	diag_free(&diag);
	return err < 0 ? err : 0;
}

static void note_reload(struct daemon *d, bool ok, const struct diag *diag)
{
	time_t now = time(NULL);
	const char *text = NULL;
	struct tm utc;

	for (size_t i = diag->count; i-- && !ok;)
		if (diag->entry[i].level == DIAG_ERROR)
			text = diag->entry[i].message;
	free(d->reload_message);
	d->reload_message = ok ? NULL : xstrdup(text ? text : "it failed");
	d->reloaded = true;
	d->reload_ok = ok;
	strftime(d->reload_time, sizeof(d->reload_time), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}

int daemon_reload(struct daemon *d)
{
	struct diag diag = { 0 };
	struct config *want;
	int err = -EINVAL;

	if (!d->running.dp) {
		diag_error(&diag, "not-attached", "", "instance %s is not attached: \"ringlb attach FILE\" does that",
			   d->instance->name);
	} else {
		want = config_load(d->options->file, &diag);
		if (want)
			err = change(d, want, true, &diag);
	}
	if (err == -EAGAIN || err == -ENOENT) {
		diag_free(&diag);
		return -EAGAIN;
	}
	log_diag(&diag, err < 0 ? "reload" : NULL);
	if (err < 0)
		log_line(LOG_LEVEL_ERROR, "reload failed: nothing was changed, what ran still runs");
	note_reload(d, err >= 0, &diag);
	if (err == 1)
		daemon_learn(d, true);
	diag_free(&diag);
	return err < 0 ? err : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What settles, leaves or is overdue does so by itself: how often to look after it. */
static uint64_t period_of(const struct config_pool *c, const struct state_pool *p)
{
	uint64_t period = NEVER;

	if (arcs_moved(&p->arcs))
		period = c->settle_after_ms / 4;
	for (size_t i = 0; i < p->backends; i++) {
		const struct state_backend *b = &p->backend[i];

		if (b->state == BACKEND_LEAVING)
			period = least(period, c->settle_after_ms / 4);
		if ((b->state == BACKEND_LEAVING || b->state == BACKEND_DRAIN) && !b->cut && c->drain_max_ms)
			period = least(period, c->drain_max_ms / 4);
	}
	return period;
}

uint64_t daemon_upkeep_due(const struct daemon *d)
{
	const struct state *s = d->running.state;
	uint64_t period = NEVER;

	for (size_t i = 0; d->running.dp && i < s->pools; i++)
		period = least(period, period_of(&s->config->pool[i], &s->pool[i]));
	for (size_t i = 0; d->running.dp && i < s->owns; i++)
		period = least(period, period_of(&s->config->pool[s->config->service[s->own[i].service].pool],
						 &s->own[i].table));
	if (period == NEVER)
		return NEVER;
	return d->now + (period < UPKEEP_MIN_MS ? UPKEEP_MIN_MS : least(period, UPKEEP_MAX_MS));
}
