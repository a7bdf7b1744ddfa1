// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What commands that change what runs have in common. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "change.h"
#include "cmd.h"

static int take_percent(struct cmd_change *x, const char *text)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || strcmp(*end == '%' ? end + 1 : end, "") || !(percent >= 0 && percent <= 100))
		return cmd_usage(x->cx, x->command, "--max-move %s: a percentage from 0%% to 100%%", text);
	x->guard.max_move = percent / 100;
	return EXIT_DONE;
}

static int take_generation(struct cmd_change *x, const char *text)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number > UINT32_MAX)
		return cmd_usage(x->cx, x->command, "--if-generation %s: the number of a generation", text);
	x->guard.generation = (int64_t)number;
	return EXIT_DONE;
}

int cmd_change_option(struct cmd_change *x, int option)
{
	switch (option) {
	case CMD_MAX_MOVE:
		return take_percent(x, optarg);
	case CMD_IF_GENERATION:
		return take_generation(x, optarg);
	case CMD_ALLOW_EMPTY:
		x->guard.allow_empty = true;
		return EXIT_DONE;
	case CMD_NO_RECORD:
		x->no_record = true;
		return EXIT_DONE;
	case CMD_CUT:
		x->cut = true;
		return EXIT_DONE;
	case CMD_SAVE:
		x->save = true;
		return EXIT_DONE;
	case CMD_DISCARD_LIVE:
		x->guard.discard_live = true;
		return EXIT_DONE;
	}
	return EXIT_BAD; /* cmd_getopt has complained */
}

static int carry_out(struct cmd_change *x, struct change *c, struct config *wanted)
{
	struct diag *d = &x->cx->diag;
	int err;

	c->in.cut = x->cut;
	err = change_plan(c, wanted, d);
	if (err)
		return err == -EINVAL || err == -E2BIG ? EXIT_BAD : EXIT_FAILED;
	if (x->planned)
		x->planned(x, c);
	if (x->report)
		x->report(x, c);
	else
		cmd_report_plan(x->cx, &c->in, &c->plan);
	if (!guard_check(&x->guard, c->running.state, &c->plan, d))
		return EXIT_REFUSED;
	if (change_commit(c, x->summary, !x->no_record, d))
		return EXIT_FAILED;
	x->cx->changed |= c->plan.operations > 0;
	return x->done ? x->done(x, c) : EXIT_DONE;
}

int cmd_change_locked(struct cmd_change *x)
{
	size_t errors = x->cx->diag.errors;
	struct config *wanted = NULL;
	struct change c;
	int err = change_open(&x->cx->instance, &c, &x->cx->diag);
	int status = err ? cmd_open_failed(x->cx, x->command, err, errors) : x->want(x, &c, &wanted);

	if (!status)
		status = carry_out(x, &c, wanted);
	change_close(&c);
	return status;
}

int cmd_change(struct cmd_change *x)
{
	struct cmd_context *cx = x->cx;
	int lock, status;

	if (!cmd_privileged(cx, x->command))
		return EXIT_FAILED;
	lock = instance_lock(&cx->instance, cx->command_line, cx->wait_seconds, &cx->diag);
	if (lock < 0)
		return EXIT_FAILED;
	status = cmd_change_locked(x);
	instance_unlock(&cx->instance, lock);
	return status;
}

static int forget_edits(struct cmd_change *x, struct change *c,
			void (*forget)(struct cmd_change *x, struct state *next))
{
	const struct state *s = c->running.state;
	struct config *same;

	if (!s->edits)
		return 0;
	same = change_config(c, &x->cx->diag);
	if (!same)
		return -EINVAL;
	if (change_plan(c, same, &x->cx->diag)) /* without keep_edits: the plan's list is empty */
		return -EINVAL;
	for (size_t i = 0; i < s->edits; i++)
		state_edit_add(c->plan.next, s->edit[i].kind, s->edit[i].pool, s->edit[i].backend, s->edit[i].value);
	forget(x, c->plan.next);
	return change_commit(c, NULL, false, &x->cx->diag);
}

int cmd_change_saved(struct cmd_change *x, void (*forget)(struct cmd_change *x, struct state *next))
{
	struct change c;
	int err = change_open(&x->cx->instance, &c, &x->cx->diag);

	if (!err)
		err = forget_edits(x, &c, forget);
	change_close(&c);
	if (!err)
		return EXIT_DONE;
	diag_error(
		&x->cx->diag, "live-edit", "",
		"the change is made and saved, but still listed as a live edit: the next apply of the file ends that");
	return EXIT_FAILED;
}

int cmd_change_savable(struct cmd_change *x, const struct state *running)
{
	const char *file = running->config->file;
	struct stat st;

	if (*file != '/') {
		diag_error(&x->cx->diag, "not-saved", "",
			   "--save: what runs came from %s: there is no file to save it to", *file ? file : "no file");
		return EXIT_BAD;
	}
	if (!stat(file, &st) && S_ISREG(st.st_mode))
		return EXIT_DONE;
	diag_error(&x->cx->diag, "not-saved", "",
		   "--save: the file of what runs, %s, is not there any more: nothing was changed; leave "
		   "--save out to change what runs alone",
		   file);
	return EXIT_FAILED;
}
