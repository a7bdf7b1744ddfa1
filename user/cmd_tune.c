// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"
#include "pool_tune.h"
#include "yaml_edit.h"

struct tune_command {
	struct cmd_context *cx;
	const char *file, *pool;
	const char **only;
	size_t onlies;
	bool write;
	struct config *config;
	struct running running; /* state NULL: nothing runs, or it can't be read */
	struct yaml_edit *edit;
	size_t edits;
};

/* ---- what is asked for ---- */

/* FILE may stand behind the names: where it can't be meant for one. */
static bool looks_like_file(const char *arg)
{
	const char *dot = strrchr(arg, '.');

	return !strcmp(arg, "-") || strchr(arg, '/') || (dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml")));
}

/* Puts --only before each name that follows one; owned by the caller, the arguments stay argv's. */
static char **repeat_only(int argc, char **argv, int *out_argc)
{
	static char option[] = "--only";
	char **out = xcalloc(2 * (size_t)argc + 1, sizeof(*out));
	bool names = false;
	int n = 0;

	for (int i = 0; i < argc; i++) {
		bool is_option = argv[i][0] == '-' && argv[i][1];

		if (is_option)
			names = false;
		if (names && !looks_like_file(argv[i]) && strcmp(argv[i - 1], option) != 0)
			out[n++] = option;
		out[n++] = argv[i];
		names |= !strncmp(argv[i], option, sizeof(option) - 1);
	}
	*out_argc = n;
	return out;
}

static bool read_options(struct tune_command *x, int argc, char **argv)
{
	static const struct option options[] = {
		{ "pool", required_argument, NULL, 'p' },
		{ "only", required_argument, NULL, 'o' },
		{ "write", no_argument, NULL, 'w' },
		{ 0 },
	};
	int c;

	while ((c = cmd_getopt(x->cx, argc, argv, options)) != -1) {
		if (c == '?')
			return false;
		x->write |= c == 'w';
		if (c == 'p')
			x->pool = optarg;
		if (c == 'o') {
			x->only = xreallocarray(x->only, x->onlies + 1, sizeof(*x->only));
			x->only[x->onlies++] = optarg;
		}
	}
	if (cmd_file(x->cx, argc, argv, &x->file))
		return false;
	if (!x->write || strcmp(x->file, "-") != 0)
		return true;
	cmd_usage(x->cx, argv[0], "--write needs a FILE that can be written");
	return false;
}

static size_t pools_with(const struct tune_command *x, const char *name, const char **pool, bool *up)
{
	size_t n = 0;

	for (size_t i = 0; i < x->config->pools; i++) {
		const struct config_pool *p = &x->config->pool[i];

		if ((x->pool && strcmp(x->pool, p->name) != 0) || p->placement != CONFIG_RING)
			continue;
		for (size_t j = 0; j < p->backends; j++)
			if (!strcmp(p->backend[j].name, name)) {
				n++;
				*pool = p->name;
				*up = p->backend[j].state == CONFIG_UP;
			}
	}
	return n;
}

/* Each of --only is one backend, of one pool, and that pool alone is tuned. */
static bool check_only(struct tune_command *x)
{
	const char *pool = NULL, *first = NULL;
	bool up = false;

	for (size_t i = 0; i < x->onlies; i++) {
		size_t n = pools_with(x, x->only[i], &pool, &up);

		if (!n)
			diag_error(&x->cx->diag, "unknown-backend", "", "--only %s: there is no such backend in %s%s%s",
				   x->only[i], x->file, x->pool ? ", pool " : "", x->pool ? x->pool : "");
		else if (n > 1 || (first && strcmp(first, pool) != 0))
			cmd_usage(x->cx, "tune", "--only %s: more than one pool is meant; say which with --pool",
				  x->only[i]);
		else if (!up)
			diag_error(&x->cx->diag, "not-up", "", "--only %s: takes no flows, so it has no share to tune",
				   x->only[i]);
		if (n != 1 || !up || (first && strcmp(first, pool) != 0))
			return false;
		first = pool;
	}
	if (first)
		x->pool = first;
	return true;
}

static bool check_pool(struct tune_command *x)
{
	const struct config_pool *p = x->pool ? config_find_pool(x->config, x->pool) : NULL;

	if (x->pool && !p)
		diag_error(&x->cx->diag, "unknown-pool", "", "no pool \"%s\" in %s", x->pool, x->file);
	else if (p && p->placement != CONFIG_RING)
		diag_error(&x->cx->diag, "placement", "",
			   "pool %s has placement %s, which gives no points to tune: only ring does", p->name,
			   config_placement_name(p->placement));
	else
		return true;
	return false;
}

/* ---- what is said ---- */

static void fields(struct tune_command *x, const struct pool_tuned *t)
{
	struct out *o = x->cx->out;

	out_object(o, NULL);
	out_string(o, "pool", t->trial.config->name);
	out_object(o, "before");
	cmd_shares_fields(x->cx, &t->trial, t->trial.before, &t->before, true);
	out_end(o);
	cmd_shares_fields(x->cx, &t->trial, t->trial.after, &t->after, true);
	out_string(o, "against", t->against_running ? "running" : "file");
	cmd_moves_fields(x->cx, &t->change, t->name);
	out_end(o);
}

static void text(struct tune_command *x, const struct pool_tuned *t)
{
	static const char *const head[] = { "backend",      "weight", "points before", "points",
					    "share before", "share",  "expected",      "ratio" };
	struct out *o = x->cx->out;

	out_text(o, "pool %s: %llu points, %llu before\n", t->trial.config->name,
		 (unsigned long long)t->after.all_points, (unsigned long long)t->before.all_points);
	out_table(o, "lrrrrrrr");
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		out_head(o, "%s", head[i]);
	for (size_t i = 0; i < t->trial.members; i++) {
		if (!t->after.weight[i])
			continue;
		out_cell(o, OUT_PLAIN, "%s", t->trial.name[i]);
		out_cell(o, OUT_PLAIN, "%u", t->after.weight[i]);
		out_cell(o, OUT_PLAIN, "%u", t->before.points[i]);
		out_cell(o, OUT_PLAIN, "%u", t->after.points[i]);
		out_cell(o, OUT_PLAIN, "%.2f %%", 100 * t->before.share[i].share);
		out_cell(o, OUT_PLAIN, "%.2f %%", 100 * t->after.share[i].share);
		out_cell(o, OUT_PLAIN, "%.2f %%", 100 * t->after.share[i].expected);
		out_cell(o, OUT_PLAIN, "%.4f", t->after.share[i].ratio);
		out_row(o);
	}
	out_table_end(o);
	out_text(o, "max/mean %.4f -> %.4f, min/mean %.4f -> %.4f\n", t->before.balance.max, t->after.balance.max,
		 t->before.balance.min, t->after.balance.min);
	cmd_moves_text(x->cx, t->against_running ? "against what runs" : "against the file as it is", &t->change,
		       t->name);
}

/* What is to be written: counts that FILE does not have already. */
static void note_edits(struct tune_command *x, const struct pool_tuned *t)
{
	const struct config_pool *p = t->trial.config;

	for (size_t i = 0; i < p->backends; i++) {
		if (t->trial.before[i].points == t->trial.after[i].points)
			continue;
		x->edit = xreallocarray(x->edit, x->edits + 1, sizeof(*x->edit));
		x->edit[x->edits++] = (struct yaml_edit){
			.kind = YAML_EDIT_SET,
			.pool = p->name,
			.backend = p->backend[i].name,
			.key = YAML_EDIT_POINTS,
			.value = t->trial.after[i].points,
		};
	}
}

static const struct state_pool *running_pool(const struct tune_command *x, const char *name)
{
	const struct state *s = x->running.state;

	for (size_t i = 0; s && i < s->pools; i++)
		if (!strcmp(s->pool[i].name, name))
			return &s->pool[i];
	return NULL;
}

static int tune_pool(struct tune_command *x, const struct config_pool *p)
{
	struct pool_tuned t;
	int err = pool_tune(p, running_pool(x, p->name), x->only, x->onlies, &t);

	if (!err) {
		note_edits(x, &t);
		fields(x, &t);
		text(x, &t);
	} else {
		diag_error(&x->cx->diag, "tune", "", "pool %s can't be tuned: %s", p->name,
			   err == -E2BIG ? "vnodes times the weights is more than a pool may have; lower vnodes" :
					   strerror(-err));
	}
	pool_tuned_free(&t);
	return !err ? EXIT_DONE : err == -E2BIG ? EXIT_BAD : EXIT_FAILED;
}

static int finish(struct tune_command *x, size_t pools)
{
	struct out *o = x->cx->out;

	if (!pools)
		out_text(o, "nothing to tune: no pool of %s has placement ring\n", x->file);
	else if (!x->edits)
		out_text(o, "%s has these counts already\n", x->file);
	else if (!x->write)
		out_text(o, "nothing is written: --write puts the counts into %s\n", x->file);
	if (x->write && x->edits && yaml_edit_file(x->file, x->edit, x->edits, &x->cx->diag))
		return EXIT_FAILED;
	if (x->write && x->edits)
		out_text(o, "written to %s: \"ringlb apply\" makes them run\n", x->file);
	out_boolean(o, "written", x->write && x->edits);
	return EXIT_DONE;
}

/* What runs is compared with where it can be read: nothing else is done to it. */
static int open_running(struct tune_command *x)
{
	struct diag unprivileged = { 0 };
	size_t errors = x->cx->diag.errors;
	int err = running_open(&x->cx->instance, &x->running, &unprivileged);

	if (err == -EPERM || err == -EACCES)
		err = -ENOENT;
	for (size_t i = 0; i < unprivileged.count && err && err != -ENOENT; i++)
		diag_add(&x->cx->diag, unprivileged.entry[i].level, unprivileged.entry[i].code,
			 unprivileged.entry[i].where, "%s", unprivileged.entry[i].message);
	diag_free(&unprivileged);
	return err && err != -ENOENT ? cmd_open_failed(x->cx, "tune", err, errors) : EXIT_DONE;
}

static int tune_all(struct tune_command *x)
{
	size_t pools = 0;
	int status = open_running(x);

	if (status)
		return status;
	out_string(x->cx->out, "file", x->file);
	out_array(x->cx->out, "pools");
	for (size_t i = 0; i < x->config->pools && !status; i++) {
		const struct config_pool *p = &x->config->pool[i];

		if (p->placement != CONFIG_RING || (x->pool && strcmp(p->name, x->pool) != 0))
			continue;
		pools++;
		status = tune_pool(x, p);
	}
	out_end(x->cx->out);
	return status ? status : finish(x, pools);
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	struct tune_command x = { .cx = cx };
	int n, status = EXIT_BAD;
	char **args = repeat_only(argc, argv, &n);

	if (read_options(&x, n, args))
		x.config = cmd_config(cx, x.file);
	if (x.config && check_pool(&x) && check_only(&x))
		status = tune_all(&x);
	running_close(&x.running);
	config_free(x.config);
	free(x.only);
	free(x.edit);
	free(args);
	return status;
}

const struct cmd cmd_tune = {
	.name = "tune",
	.usage = "[FILE] [--pool POOL] [--only NAME...] [--write]",
	.summary = "find the points for which each backend's share matches its weight",
	.help = "Of each pool in FILE (default " CMD_DEFAULT_FILE ") with placement ring: prints the points that\n"
		"backends should have, the balance before and after, and what would move against what runs, or\n"
		"against FILE where nothing is attached. Names, weights and vnodes alone decide, so every run\n"
		"finds the same. Backends that are not up are left alone.\n\n"
		"  --pool POOL     of this pool only\n"
		"  --only NAME...  of these backends only, a newcomer for example: no point of another changes, so\n"
		"                  nothing moves but to or from them. A FILE behind the names has a / in it, or\n"
		"                  ends in .yaml\n"
		"  --write         puts the counts into FILE as points, and changes nothing else in it\n"
		"  -v              every move; without it the ten largest of each pool\n\n"
		"Exit status: 0 found, and written with --write; 1 failed, FILE is as it was; 2 bad usage or\n"
		"configuration.\n",
	.run = run,
};
