// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "commit.h"
#include "pool_trial.h"
#include "svg.h"

/* A --with or --without. */
struct wish {
	char *name;
	uint32_t weight; /* 0: without */
};

struct ring_command {
	struct cmd_context *cx;
	const char *pool, *file, *svg;
	bool compare;
	struct wish *wish;
	size_t wishes;

	struct running running;
	struct config *config;
	struct pool_view view;
	char *source; /* for people: where the pool stands */
};

/* ---- what is asked for ---- */

static bool read_wish(struct ring_command *r, const char *text, bool with)
{
	const char *equals = with ? strrchr(text, '=') : NULL;
	struct wish w = { 0 };
	unsigned long weight = 0;
	char *end = NULL;

	if (with) {
		if (equals)
			weight = strtoul(equals + 1, &end, 10);
		if (!equals || equals == text || equals[1] < '0' || equals[1] > '9' || *end || weight > 65535) {
			cmd_usage(r->cx, "ring", "--with %s: NAME=WEIGHT is wanted, WEIGHT from 1 to 65535", text);
			return false;
		}
		if (!weight) {
			cmd_usage(r->cx, "ring", "--with %s: a weight of 0 is --without %.*s", text,
				  (int)(equals - text), text);
			return false;
		}
	}
	w.weight = (uint32_t)weight;
	w.name = with ? xasprintf("%.*s", (int)(equals - text), text) : xstrdup(text);
	r->wish = xreallocarray(r->wish, r->wishes + 1, sizeof(*r->wish));
	for (size_t i = 0; i < r->wishes; i++)
		if (!strcmp(r->wish[i].name, w.name)) {
			cmd_usage(r->cx, "ring", "what is to become of backend %s is said twice", w.name);
			free(w.name);
			return false;
		}
	r->wish[r->wishes++] = w;
	return true;
}

static bool read_options(struct ring_command *r, int argc, char **argv)
{
	static const struct option options[] = {
		{ "file", required_argument, NULL, 'f' },    { "compare", no_argument, NULL, 'c' },
		{ "svg", required_argument, NULL, 's' },     { "with", required_argument, NULL, 'w' },
		{ "without", required_argument, NULL, 'W' }, { 0 },
	};
	int c;

	while ((c = cmd_getopt(r->cx, argc, argv, options)) != -1) {
		if (c == '?' || ((c == 'w' || c == 'W') && !read_wish(r, optarg, c == 'w')))
			return false;
		r->compare |= c == 'c';
		if (c == 'f')
			r->file = optarg;
		if (c == 's')
			r->svg = optarg;
	}
	if (argc - optind != 1)
		cmd_usage(r->cx, argv[0], "one POOL is wanted");
	else if (r->compare && r->wishes)
		cmd_usage(r->cx, argv[0], "--compare makes changes of its own: without --with and --without");
	else if (r->svg && !strcmp(r->svg, "-") && r->cx->json)
		cmd_usage(r->cx, argv[0], "--svg - and --json would both be standard output");
	else
		return r->pool = argv[optind], true;
	return false;
}

/* ---- the pool: as it runs, or from a file ---- */

static int find_pool(struct ring_command *r, const struct config *c, const struct state *state)
{
	const struct config_pool *p = config_find_pool(c, r->pool);
	char *list = xstrdup(""), *longer;

	if (p) {
		pool_view_make(p, state ? &state->pool[p - c->pool] : NULL, &r->view);
		free(list);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < c->pools; i++, list = longer) {
		longer = xasprintf("%s%s%s", list, i ? ", " : "", c->pool[i].name);
		free(list);
	}
	diag_error(&r->cx->diag, "unknown-pool", "", "no pool \"%s\" in %s: there %s %s", r->pool, r->source,
		   c->pools == 1 ? "is" : "are", *list ? list : "none");
	free(list);
	return EXIT_BAD;
}

static int open_pool(struct ring_command *r)
{
	size_t errors = r->cx->diag.errors;
	int err;

	if (!r->file) {
		if (!cmd_privileged(r->cx, "ring"))
			return EXIT_FAILED;
		err = running_open(&r->cx->instance, &r->running, &r->cx->diag);
		if (!err) {
			r->source = xasprintf("what runs, generation %u", r->running.state->generation);
			return find_pool(r, r->running.state->config, r->running.state);
		}
		if (err != -ENOENT)
			return cmd_open_failed(r->cx, "ring", err, errors);
		r->file = CMD_DEFAULT_FILE;
	}
	r->source = xstrdup(strcmp(r->file, "-") ? r->file : "standard input");
	r->config = cmd_config(r->cx, r->file);
	return r->config ? find_pool(r, r->config, NULL) : EXIT_BAD;
}

/* ---- what is said ---- */

static void change_fields(struct cmd_context *cx, const struct pool_trial *t, const struct pool_shares *after,
			  const struct share_change *change)
{
	struct out *o = cx->out;

	out_object(o, "after");
	cmd_shares_fields(cx, t, t->after, after, true);
	out_end(o);
	cmd_moves_fields(cx, change, t->name);
}

static void cell_change(struct out *o, uint32_t was, uint32_t is)
{
	if (was == is)
		out_cell(o, OUT_PLAIN, "%u", is);
	else
		out_cell(o, OUT_PLAIN, "%u -> %u", was, is);
}

/* after NULL: no change is asked about. */
static void shares_text(struct out *o, const struct pool_trial *t, const struct pool_shares *before,
			const struct pool_shares *after)
{
	const struct pool_shares *is = after ? after : before;

	out_table(o, "lrrrrrr");
	out_head(o, "backend");
	out_head(o, "weight");
	out_head(o, "points");
	out_head(o, "share");
	out_head(o, after ? "after" : "");
	out_head(o, "expected");
	out_head(o, "ratio");
	for (size_t i = 0; i < t->members; i++) {
		out_cell(o, OUT_PLAIN, "%s", t->name[i]);
		cell_change(o, before->weight[i], is->weight[i]);
		cell_change(o, before->points[i], is->points[i]);
		out_cell(o, OUT_PLAIN, "%.2f %%", 100 * before->share[i].share);
		if (after)
			out_cell(o, OUT_PLAIN, "%.2f %%", 100 * after->share[i].share);
		else
			out_cell(o, OUT_PLAIN, "%s", "");
		out_cell(o, OUT_PLAIN, "%.2f %%", 100 * is->share[i].expected);
		if (is->weight[i])
			out_cell(o, OUT_PLAIN, "%.4f", is->share[i].ratio);
		out_row(o);
	}
	out_table_end(o);
	if (!is->arcs.count)
		out_text(o, "no backend takes flows%s\n", after ? " after this change" : "");
	else if (after)
		out_text(o, "max/mean %.4f -> %.4f, min/mean %.4f -> %.4f\n", before->balance.max, after->balance.max,
			 before->balance.min, after->balance.min);
	else
		out_text(o, "max/mean %.4f, min/mean %.4f\n", before->balance.max, before->balance.min);
}

/* "Pool web, with web-4=1, without web-2" */
static char *picture_title(const struct ring_command *r)
{
	char *title = xasprintf("Pool %s", r->pool), *longer;

	for (size_t i = 0; i < r->wishes; i++, title = longer) {
		if (r->wish[i].weight)
			longer = xasprintf("%s, with %s=%u", title, r->wish[i].name, r->wish[i].weight);
		else
			longer = xasprintf("%s, without %s", title, r->wish[i].name);
		free(title);
	}
	return title;
}

static char *picture(const struct ring_command *r, const struct pool_trial *t, const struct pool_shares *before,
		     const struct pool_shares *after, const struct share_change *change)
{
	const struct pool_shares *is = after ? after : before;
	char *title = picture_title(r), *subtitle, *svg, points[32], backends[32];
	size_t takers = 0;
	struct svg_ring picture = {
		.name = t->name,
		.owners = t->members,
		.weight = is->weight,
		.share = is->share,
		.arcs = &is->arcs,
		.balance = is->balance,
		.before = after ? &before->arcs : NULL,
		.share_before = after ? before->share : NULL,
		.change = change,
	};

	for (size_t i = 0; i < t->members; i++)
		takers += is->weight[i] != 0;
	subtitle = xasprintf("placement %s, %s points, %s backend%s (%s)", config_placement_name(t->config->placement),
			     svg_count(is->all_points, points), svg_count(takers, backends), takers == 1 ? "" : "s",
			     r->source);
	picture.title = title;
	picture.subtitle = subtitle;
	svg = svg_ring(&picture);
	free(title);
	free(subtitle);
	return svg;
}

static void say(const struct ring_command *r, const struct pool_trial *t, const struct pool_shares *before,
		const struct pool_shares *after, const struct share_change *change)
{
	struct out *o = r->cx->out;

	out_string(o, "pool", t->config->name);
	out_string(o, "source", r->source);
	out_string(o, "placement", config_placement_name(t->config->placement));
	cmd_shares_fields(r->cx, t, t->before, before, false);
	if (change)
		change_fields(r->cx, t, after, change);
	if (r->svg && !strcmp(r->svg, "-"))
		return;
	out_text(o, "pool %s (%s): %s, %llu", t->config->name, r->source, config_placement_name(t->config->placement),
		 (unsigned long long)before->all_points);
	if (after && after->all_points != before->all_points)
		out_text(o, " -> %llu", (unsigned long long)after->all_points);
	out_text(o, " points\n");
	shares_text(o, t, before, after);
	if (change && before->arcs.count && !after->arcs.count)
		out_text(o, "with this change 100.00 %% of the hash space goes to nobody: new flows are dropped\n");
	else if (change)
		cmd_moves_text(r->cx, "with this change", change, t->name);
}

/* ---- the work ---- */

static int build(struct ring_command *r, const struct pool_trial *t, const struct placement_member *member,
		 struct pool_shares *out)
{
	const struct placement *p = placement_of(t->config->placement);
	char *why = NULL;
	int err = pool_shares_make(t, member, p, out, &why);

	if (err)
		diag_error(&r->cx->diag, "placement", "", "pool %s can't have placement %s%s: %s", t->config->name,
			   p->name, member == t->after ? " after this change" : "", why ? why : strerror(-err));
	free(why);
	return !err ? EXIT_DONE : err == -ENOMEM ? EXIT_FAILED : EXIT_BAD;
}

static int make_wishes(struct ring_command *r, struct pool_trial *t)
{
	for (size_t i = 0; i < r->wishes; i++) {
		if (r->wish[i].weight) {
			pool_trial_with(t, r->wish[i].name, r->wish[i].weight);
		} else if (pool_trial_without(t, r->wish[i].name)) {
			diag_error(&r->cx->diag, "unknown-backend", "", "--without %s: pool %s has no such backend",
				   r->wish[i].name, r->pool);
			return EXIT_BAD;
		}
	}
	return EXIT_DONE;
}

static int show(struct ring_command *r)
{
	struct pool_shares before = { 0 }, after = { 0 };
	struct share_change change = { 0 };
	struct pool_trial t;
	int status;

	pool_trial_make(&r->view, &t);
	status = make_wishes(r, &t);
	if (!status)
		status = build(r, &t, t.before, &before);
	if (!status && t.changed) {
		status = build(r, &t, t.after, &after);
		shares_change(&before.arcs, &after.arcs, t.members, &change);
	}
	if (!status) {
		say(r, &t, &before, t.changed ? &after : NULL, t.changed ? &change : NULL);
		if (r->svg)
			status = cmd_write_svg(r->cx, r->svg,
					       picture(r, &t, &before, t.changed ? &after : NULL,
						       t.changed ? &change : NULL));
	}
	share_change_free(&change);
	pool_shares_free(&before);
	pool_shares_free(&after);
	pool_trial_free(&t);
	return status;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	struct ring_command r = { .cx = cx };
	int status = EXIT_BAD;

	if (read_options(&r, argc, argv))
		status = open_pool(&r);
	if (!status)
		status = r.compare ? cmd_ring_compare(cx, &r.view, r.source, r.svg) : show(&r);
	if (r.view.config)
		pool_view_free(&r.view);
	running_close(&r.running);
	config_free(r.config);
	for (size_t i = 0; i < r.wishes; i++)
		free(r.wish[i].name);
	free(r.wish);
	free(r.source);
	return status;
}

const struct cmd cmd_ring = {
	.name = "ring",
	.usage = "POOL [--file FILE] [--with NAME=WEIGHT] [--without NAME] [--compare] [--svg OUT]",
	.summary = "each backend's exact share, and what a change would move",
	.help = "Of what runs; of FILE (default " CMD_DEFAULT_FILE ") where nothing is attached, or with --file.\n"
		"Shares are exact, of the whole hash space; expected is the weight over the sum of the weights,\n"
		"ratio the one over the other, max/mean and min/mean the largest and smallest ratio.\n\n"
		"  --with NAME=WEIGHT   what if this backend had that weight; a new NAME is added\n"
		"  --without NAME       what if this backend were gone; both any number of times\n"
		"  --compare            every placement side by side, for this pool\n"
		"  --svg OUT            a picture, too: the ring, shares against weights, what moves; with\n"
		"                       --compare, balance against movement (-: the picture instead of text)\n"
		"  --file FILE          from FILE alone, without privileges\n"
		"  -v                   every move; without it the ten largest\n\n"
		"Exit status: 0 shown; 1 failed; 2 bad usage or configuration, or a pool that can't be so.\n",
	.run = run,
};
