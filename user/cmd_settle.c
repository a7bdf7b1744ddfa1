// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "cmd.h"
#include "moved.h"

struct settle {
	const char *pool; /* NULL: every pool */
	bool force;
};

static int want(struct cmd_change *x, struct change *c, struct config **wanted)
{
	const struct settle *s = x->arg;

	if (s->pool && !config_find_pool(c->running.state->config, s->pool)) {
		diag_error(&x->cx->diag, "unknown-pool", "", "no pool \"%s\": \"ringlb show\" lists them", s->pool);
		return EXIT_BAD;
	}
	c->in.keep_edits = true;
	c->in.settle_pool = s->pool;
	c->in.settle_force = s->force;
	*wanted = change_config(c, &x->cx->diag);
	return *wanted ? EXIT_DONE : EXIT_FAILED;
}

static void say(struct out *o, const struct change *c, const char *what, const char *name, const struct state_pool *now,
		const struct config_pool *config, double settled)
{
	uint32_t seconds = arcs_settled_in(&now->arcs, c->in.now, (uint32_t)((config->settle_after_ms + 999) / 1000));
	double moving = 100 * (double)arcs_moved(&now->arcs) / 4294967296.0;
	char text[OUT_SECONDS_TEXT];

	out_text(o, "%s %s: ", what, name);
	if (settled > 0)
		out_text(o, "%.2f %% of its hash space has settled, ", 100 * settled);
	if (moving > 0)
		out_text(o, "%.2f %% still moves, until %s from now at the earliest\n", moving,
			 out_seconds_text(seconds, text));
	else
		out_text(o, "nothing moves%s\n", settled > 0 ? " any more" : "");
}

static double settled_of_own(const struct change *c, size_t service)
{
	const struct state *was = c->running.state, *is = c->plan.next;
	const struct state_pool *a = state_table(was, service), *b = state_table(is, service);

	return (double)arcs_moved(&a->arcs) / 4294967296.0 - (double)arcs_moved(&b->arcs) / 4294967296.0;
}

static void report(struct cmd_change *x, struct change *c)
{
	const struct settle *s = x->arg;
	const struct state *was = c->running.state, *is = c->plan.next;
	struct out *o = x->cx->out;
	double forced = 0;

	cmd_report_plan_fields(o, &c->in, &c->plan);
	for (size_t i = 0; i < is->pools; i++) {
		if (s->pool && strcmp(s->pool, is->pool[i].name))
			continue;
		say(o, c, "pool", is->pool[i].name, &is->pool[i], &is->config->pool[i], c->plan.pool[i].settled);
		forced += c->plan.pool[i].settled;
	}
	for (size_t i = 0; i < was->owns; i++) {
		const struct config_service *v = &was->config->service[was->own[i].service];

		if (s->pool && strcmp(s->pool, is->pool[v->pool].name))
			continue;
		say(o, c, "service", v->name, state_table(is, was->own[i].service), &is->config->pool[v->pool],
		    settled_of_own(c, was->own[i].service));
		forced += settled_of_own(c, was->own[i].service);
	}
	for (size_t i = 0; i < c->plan.operations; i++)
		if (c->plan.operation[i].kind == PLAN_BACKEND_GONE)
			out_text(o, "%s\n", c->plan.operation[i].text);
	if (s->force && forced > 0)
		out_text(
			o,
			"established flows there that another backend had go to their arc's owner from now on, and break\n");
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { "force", no_argument, NULL, 'f' }, { 0 } };
	struct settle s = { 0 };
	struct cmd_change x = {
		.cx = cx, .command = argv[0], .guard = GUARD_NONE, .arg = &s, .want = want, .report = report
	};
	int c;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1) {
		if (c == '?')
			return EXIT_BAD;
		s.force = true;
	}
	if (argc - optind > 1)
		return cmd_usage(cx, argv[0], "one POOL at most");
	s.pool = argv[optind];
	return cmd_change(&x);
}

const struct cmd cmd_settle = {
	.name = "settle",
	.usage = "[POOL] [--force]",
	.summary = "end the moved state of what no old flow uses",
	.help = "Where nothing has come for the previous owner of an arc for settle_after, the arc becomes an\n"
		"ordinary one again, and backends that were leaving go once nothing is left of their flows.\n"
		"Every command that changes something does the same by the way. Says what still moves, and\n"
		"until when at the earliest.\n\n"
		"  --force   what still moves, too: the established flows in it break\n\n"
		"Exit status: 0 done, also where there was nothing to settle; 1 failed; 2 bad usage or no such pool.\n",
	.run = run,
};
