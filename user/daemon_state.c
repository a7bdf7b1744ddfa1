// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What runs, as the daemon knows it: read anew whenever somebody changed it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon_private.h"

static struct ringlb_tables *header(const struct daemon *d)
{
	size_t bytes;

	return datapath_tables(d->running.dp, &bytes);
}

static struct health_backend *health_of(const struct daemon *d, const struct state_pool *p,
					const struct state_backend *b)
{
	return health_find(&d->health, p->name, b->identity, &b->address);
}

bool daemon_health_differs(const struct daemon *d)
{
	const struct state *s = d->running.state;

	for (size_t i = 0; d->running.dp && i < s->pools; i++)
		for (size_t j = 0; j < s->pool[i].backends; j++) {
			const struct state_backend *b = &s->pool[i].backend[j];
			const struct health_backend *h = health_of(d, &s->pool[i], b);

			if (h && b->state != BACKEND_LEAVING && h->status != b->health)
				return true;
		}
	return false;
}

/* Tells health what runs. first: nothing better is known of the backends than what an earlier daemon left. */
static void tell_health(struct daemon *d, bool first)
{
	const struct state *s = d->running.state;

	health_configure(&d->health, s->config, d->now);
	for (size_t i = 0; i < s->pools; i++)
		for (size_t j = 0; j < s->pool[i].backends; j++) {
			const struct state_backend *b = &s->pool[i].backend[j];
			struct health_backend *h = health_of(d, &s->pool[i], b);

			if (h && b->state != BACKEND_LEAVING)
				health_runs(&d->health, h, b->use, 1 - (double)b->withheld / BACKEND_WHOLE, first,
					    d->now);
		}
	daemon_say_health(d);
	if (daemon_health_differs(d))
		d->said_due = d->now + HEALTH_BATCH_MS;
}

void daemon_say_health(struct daemon *d)
{
	for (size_t i = 0; i < d->health.events; i++) {
		const struct health_event *e = &d->health.event[i];
		bool bad = e->kind == HEALTH_WENT_DOWN || e->kind == HEALTH_POOL;

		if (e->kind == HEALTH_POOL || log_limit(&d->transitions, d->now))
			log_line(bad ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, "%s", e->text);
		if (e->kind != HEALTH_HELD && d->said_due == NEVER)
			d->said_due = d->now + HEALTH_BATCH_MS;
	}
	health_events_clear(&d->health);
}

void daemon_forget(struct daemon *d)
{
	if (d->running.dp)
		running_close(&d->running);
	d->upkeep = NEVER;
	d->inode = 0;
}

void daemon_mark(struct daemon *d, bool runs)
{
	struct ringlb_tables *t;
	uint32_t now;

	if (!d->running.dp || running_now(d->running.dp, &now))
		return;
	t = header(d);
	__atomic_store_n(&t->daemon_stamp, now, __ATOMIC_RELAXED);
	__atomic_store_n(&t->daemon, runs, __ATOMIC_RELEASE);
}

static void open_running(struct daemon *d, bool *gone)
{
	struct diag diag = { 0 };
	struct stat st = { 0 };
	int err;

	daemon_forget(d);
	stat(d->instance->pins, &st); /* before: a replacement in between is noticed the next time */
	err = running_open(d->instance, &d->running, &diag);
	if (err && err != -ENOENT)
		log_diag(&diag, NULL);
	if (err == -EPROTO) { /* another version's: a daemon of that one is to take over */
		log_line(LOG_LEVEL_ERROR, "what runs is another version's: this daemon ends");
		d->err = -EPROTO;
	}
	*gone = err == -ENOENT;
	d->device = st.st_dev;
	d->inode = err ? 0 : st.st_ino;
	diag_free(&diag);
}

void daemon_learn(struct daemon *d, bool learns)
{
	bool was = d->inode != 0, first = !d->known, gone;

	open_running(d, &gone);
	if (!d->running.dp) {
		if (gone && was)
			log_line(LOG_LEVEL_WARNING,
				 "instance %s was detached: nothing is steered any more; waiting for an attach",
				 d->instance->name);
		worker_checks(d);
		return;
	}
	d->known = true;
	daemon_mark(d, true);
	d->upkeep = daemon_upkeep_due(d);
	if (!learns && was)
		return;
	tell_health(d, first);
	d->hops_due = d->now;
	d->links = true;
	worker_checks(d);
	worker_listen(d);
}

void daemon_look(struct daemon *d)
{
	const struct state *s = d->running.state;
	uint64_t revision = d->running.dp ? s->revision : 0;
	struct stat st;
	bool there = !stat(d->instance->pins, &st), had = d->running.dp != NULL;

	if (!there && !had)
		return;
	if (there && had && st.st_ino == d->inode && st.st_dev == d->device &&
	    __atomic_load_n(&header(d)->state, __ATOMIC_ACQUIRE) >> 1 == revision)
		return;
	daemon_learn(d, true);
	if (d->running.dp)
		log_line(LOG_LEVEL_NOTICE, "%s by another command: generation %u, revision %llu runs",
			 had ? "changed" : "attached", d->running.state->generation,
			 (unsigned long long)d->running.state->revision);
}
