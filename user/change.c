/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aftermath.h"
#include "generation.h"
#include "rendered.h"
#include "replace.h"
#include "totals.h"

/* Links that a killed command attached or left, and that the published configuration does not know. */
static void remove_stray_links(struct change *c, struct diag *d)
{
	const struct state *s = c->running.state;

	for (size_t i = 0; i < c->running.links; i++) {
		const struct datapath_link *l = &c->running.link[i];
		bool known = false;

		for (size_t j = 0; j < s->config->interfaces; j++)
			known |= s->ifindex[j] == l->ifindex;
		if (!known && !datapath_detach(c->instance->pins, l->ifindex))
			diag_warning(
				d, "repaired", "",
				"interface %u was attached, and what runs does not name it: a command was interrupted: "
				"detached",
				l->ifindex);
	}
}

static int repair(struct change *c, struct diag *d)
{
	const struct state *s = c->running.state;
	int err = replace_repair(c->instance, &c->running, d);
	size_t bytes;

	if (err)
		return err;
	if (datapath_tables(c->running.dp, &bytes)->pending & RINGLB_PENDING_AFTERMATH &&
	    !datapath_wait(c->running.dp)) {
		aftermath(c->running.dp, c->running.state);
		diag_warning(
			d, "repaired", "",
			"the command before this one was interrupted at the moment of its change: generation %u, revision "
			"%llu runs, and its records are complete now",
			s->generation, (unsigned long long)s->revision);
	}
	generation_repair(c->history, s->generation, d);
	remove_stray_links(c, d);
	return 0;
}

int change_open(const struct instance *i, struct change *c, struct diag *d)
{
	int err;

	memset(c, 0, sizeof(*c));
	c->instance = i;
	c->history = xasprintf("%s/%s", i->state_dir, i->name);
	err = running_open(i, &c->running, d);
	if (err == -ENOENT)
		c->in.generation = generation_last(c->history);
	if (err)
		return err;
	err = repair(c, d);
	return err ? err : running_input(&c->running, &c->in, d);
}

int change_plan(struct change *c, struct config *wanted, struct diag *d)
{
	c->in.config = wanted;
	return plan_make(&c->in, &c->plan, d);
}

struct config *change_config(const struct change *c, struct diag *d)
{
	struct diag mine = { 0 };
	struct config *copy = rendered_copy(c->running.state->config, &mine);

	rendered_errors(&mine, d); /* what there is to warn of was said when it came to run */
	diag_free(&mine);
	return copy;
}

/* The first change and how many more there are. */
static char *summarise(const struct plan *p)
{
	const char *first = NULL;
	size_t more = 0;

	for (size_t i = 0; i < p->operations; i++) {
		if (!*p->operation[i].text)
			continue;
		more += first != NULL;
		if (!first)
			first = p->operation[i].text;
	}
	if (!first)
		return xstrdup("no change");
	return more ? xasprintf("%s (and %zu more)", first, more) : xstrdup(first);
}

static int record(struct change *c, const char *summary, struct diag *d)
{
	const struct state *next = c->plan.next;
	char *made = summary ? NULL : summarise(&c->plan);
	int err = generation_write(c->history, next->generation, time(NULL), next->digest, summary ? summary : made,
				   next->config, d);

	free(made);
	return err;
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int carry_out(struct change *c, struct diag *d)
{
	double start = seconds_now();
	int err = c->running.dp ? commit_apply(c->instance, &c->running, &c->plan, d) :
				  commit_attach(c->instance, &c->plan, d);

	/* A failed attach leaves nothing behind. */
	if (!err || c->running.dp)
		totals_commit(c->instance, seconds_now() - start, !err);
	return err;
}

int change_commit(struct change *c, const char *summary, bool recorded, struct diag *d)
{
	bool write = recorded && c->plan.generation;
	size_t errors = d->errors;
	int err = 0;

	if (!c->plan.operations)
		return 0;
	if (write)
		err = record(c, summary, d);
	if (!err)
		err = carry_out(c, d);
	if (err && d->errors == errors)
		diag_error(d, "commit", "", "nothing was changed: %s", strerror(-err));
	if (err && write)
		generation_remove(c->history, c->plan.next->generation);
	if (!err && write)
		generation_prune(c->history, GENERATION_KEEP, c->plan.next->generation);
	return err;
}

void change_close(struct change *c)
{
	plan_free(&c->plan);
	running_input_free(&c->in);
	running_close(&c->running);
	free(c->history);
	memset(c, 0, sizeof(*c));
}
