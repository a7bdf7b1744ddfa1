// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ring --compare: every placement side by side; and where pictures are written to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "compare.h"
#include "pool_trial.h"
#include "svg.h"

struct compared {
	const struct placement *placement;
	char *why; /* it can't express the pool */
	struct pool_shares shares;
	struct comparison figures;
	double seconds; /* to build */
};

int cmd_write_svg(struct cmd_context *cx, const char *file, char *svg)
{
	FILE *f;
	int err = 0;

	if (!strcmp(file, "-")) {
		out_text(cx->out, "%s", svg);
		free(svg);
		return EXIT_DONE;
	}
	f = fopen(file, "we");
	if (!f || fputs(svg, f) < 0)
		err = errno;
	if (f && fclose(f) && !err)
		err = errno;
	free(svg);
	if (err)
		diag_error(&cx->diag, "not-written", file, "%s", strerror(err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* 0 or -ENOMEM. */
static int measure(const struct pool_trial *t, struct compared *c)
{
	const struct placement_pool pool = { t->before, t->members, t->config->maglev_size };
	double start = now();
	int err = pool_shares_make(t, t->before, c->placement, &c->shares, &c->why);

	c->seconds = now() - start;
	if (err == -EINVAL && c->why)
		return 0;
	return err ? err : compare_placement(c->placement, &pool, &c->shares.arcs, c->shares.points, &c->figures);
}

static void cost_fields(struct out *o, const char *what, const struct compare_cost *c)
{
	char moved[40], excess[40];

	snprintf(moved, sizeof(moved), "moved_on_%s", what);
	snprintf(excess, sizeof(excess), "excess_on_%s", what);
	if (c->known) {
		out_real(o, moved, c->moved);
		out_real(o, excess, c->excess);
	} else {
		out_string(o, moved, NULL);
		out_string(o, excess, NULL);
	}
}

static void fields(struct cmd_context *cx, const struct pool_trial *t, const struct compared *c)
{
	struct out *o = cx->out;
	const struct comparison *f = &c->figures;

	out_object(o, NULL);
	out_string(o, "pool", t->config->name);
	out_string(o, "placement", c->placement->name);
	if (c->why) {
		out_string(o, "not_possible", c->why);
		out_end(o);
		return;
	}
	cmd_shares_fields(cx, t, t->before, &c->shares, false);
	cost_fields(o, "add", &f->add);
	cost_fields(o, "remove", &f->remove);
	cost_fields(o, "remove_worst", &f->remove_worst);
	out_integer(o, "removals", (int64_t)f->removals);
	cost_fields(o, "weight", &f->weight);
	out_real(o, "build_seconds", c->seconds);
	if (f->table_bytes)
		out_integer(o, "table_bytes", f->table_bytes);
	else
		out_string(o, "table_bytes", NULL);
	out_end(o);
}

static void cost_cells(struct out *o, const struct compare_cost *c)
{
	if (!c->known) {
		out_cell(o, OUT_PLAIN, "-");
		out_cell(o, OUT_PLAIN, "-");
		return;
	}
	out_cell(o, OUT_PLAIN, "%.2f %%", 100 * c->moved);
	out_cell(o, c->excess > 0 ? OUT_WARN : OUT_GOOD, "%.2f %%", 100 * c->excess);
}

static bool takes_flows(const struct pool_trial *t)
{
	for (size_t i = 0; i < t->members; i++)
		if (t->before[i].weight)
			return true;
	return false;
}

static void row(struct out *o, const struct pool_trial *t, const struct compared *c)
{
	const struct comparison *f = &c->figures;

	if (c->why)
		return;
	out_cell(o, OUT_PLAIN, "%s%s", c->placement->name,
		 c->placement == placement_of(t->config->placement) ? " *" : "");
	out_cell(o, OUT_PLAIN, takes_flows(t) ? "%.4f" : "-", f->balance.max);
	out_cell(o, OUT_PLAIN, takes_flows(t) ? "%.4f" : "-", f->balance.min);
	cost_cells(o, &f->add);
	cost_cells(o, &f->remove);
	if (f->remove_worst.known)
		out_cell(o, OUT_PLAIN, "%.2f %%", 100 * f->remove_worst.excess);
	else
		out_cell(o, OUT_PLAIN, "-");
	cost_cells(o, &f->weight);
	out_cell(o, OUT_PLAIN, "%.2f ms", 1e3 * c->seconds);
	if (f->table_bytes)
		out_cell(o, OUT_PLAIN, "%u", f->table_bytes);
	else
		out_cell(o, OUT_PLAIN, takes_flows(t) ? "too large" : "-");
	out_row(o);
}

static void text(struct out *o, const struct pool_trial *t, const struct compared *c, const char *source)
{
	static const char *const head[] = { "placement", "max/mean", "min/mean", "add",    "excess", "remove",
					    "excess",    "worst",    "weight",   "excess", "build",  "table bytes" };
	size_t takers = 0;

	for (size_t i = 0; i < t->members; i++)
		takers += t->before[i].weight != 0;
	out_text(o, "pool %s (%s): %zu backend%s\n", t->config->name, source, takers, takers == 1 ? "" : "s");
	out_table(o, "lrrrrrrrrrrr");
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		out_head(o, "%s", head[i]);
	for (size_t i = 0; i < placements_count; i++)
		row(o, t, &c[i]);
	out_table_end(o);
	for (size_t i = 0; i < placements_count; i++)
		if (c[i].why)
			out_text(o, "%s is not possible: %s\n", c[i].placement->name, c[i].why);
	out_text(o,
		 "*: the pool's own. add: what one more backend of mean weight moves of the hash space; remove: the\n"
		 "mean over removing each%s; weight: half as much again for the first. excess: what of it any\n"
		 "placement with these shares could leave where it is; worst: the largest on removing one.\n",
		 takers > COMPARE_REMOVALS ? " of 100 spread over the pool" : "");
}

static char *picture(const struct pool_trial *t, const struct compared *c, const char *source)
{
	struct svg_compared *v = xcalloc(placements_count, sizeof(*v));
	char *title = xasprintf("Pool %s: placements compared", t->config->name), *subtitle, *svg;
	size_t takers = 0;
	char text[32];

	for (size_t i = 0; i < t->members; i++)
		takers += t->before[i].weight != 0;
	for (size_t i = 0; i < placements_count; i++)
		v[i] = (struct svg_compared){ c[i].placement->name,
					      c[i].placement == placement_of(t->config->placement), c[i].why,
					      c[i].figures };
	subtitle = xasprintf("%s backend%s (%s)", svg_count(takers, text), takers == 1 ? "" : "s", source);
	svg = svg_compare(title, subtitle, v, placements_count);
	free(subtitle);
	free(title);
	free(v);
	return svg;
}

static void say(struct cmd_context *cx, const struct pool_trial *t, const struct compared *c, const char *source,
		const char *svg)
{
	out_string(cx->out, "pool", t->config->name);
	out_string(cx->out, "source", source);
	out_array(cx->out, "placements");
	for (size_t i = 0; i < placements_count; i++)
		fields(cx, t, &c[i]);
	out_end(cx->out);
	if (!svg || strcmp(svg, "-") != 0)
		text(cx->out, t, c, source);
}

int cmd_ring_compare(struct cmd_context *cx, const struct pool_view *view, const char *source, const char *svg)
{
	struct compared *c = xcalloc(placements_count, sizeof(*c));
	struct pool_trial t;
	int err = 0, status = EXIT_FAILED;

	pool_trial_make(view, &t);
	for (size_t i = 0; i < placements_count && !err; i++) {
		c[i].placement = placements[i];
		err = measure(&t, &c[i]);
	}
	if (err) {
		diag_error(&cx->diag, "compare", "", "the placements can't be compared: %s", strerror(-err));
	} else {
		say(cx, &t, c, source, svg);
		status = svg ? cmd_write_svg(cx, svg, picture(&t, c, source)) : EXIT_DONE;
	}
	for (size_t i = 0; i < placements_count; i++) {
		pool_shares_free(&c[i].shares);
		free(c[i].why);
	}
	free(c);
	pool_trial_free(&t);
	return status;
}
