// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One backend at a time, on what is running. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_edit.h"
#include "change.h"
#include "cmd.h"

enum { OPTION_WEIGHT = 1, OPTION_ZONE, OPTION_IDENTITY, OPTION_STATE };

struct backend {
	struct backend_edit edit;
	struct config *file; /* what the file says; NULL where it can't be told, for the reason in file_fault */
	char *file_fault;
};

/* That --save will succeed, as far as can be told beforehand. */
static int rehearse_save(struct cmd_change *x, const struct state *running)
{
	const struct backend *b = x->arg;
	struct yaml_edit edit[BACKEND_FILE_EDITS];
	struct config_backend added;
	size_t edits = backend_edit_of_file(&b->edit, &added, edit);
	int status = cmd_change_savable(x, running);

	if (status)
		return status;
	status = yaml_edit_rehearse(running->config->file, edit, edits, &x->cx->diag);
	if (!status)
		return EXIT_DONE;
	diag_error(&x->cx->diag, "not-saved", "",
		   "nothing was changed: mend the file, or leave --save out to change what runs alone");
	return status == -EINVAL ? EXIT_BAD : EXIT_FAILED;
}

static void read_file(struct backend *b, const char *file)
{
	struct diag d = { 0 };

	if (*file != '/')
		return;
	b->file = config_load(file, &d);
	for (size_t i = 0; i < d.count && !b->file && !b->file_fault; i++)
		if (d.entry[i].level == DIAG_ERROR)
			b->file_fault = xasprintf("is no configuration: %s", d.entry[i].message);
	if (b->file_fault && access(file, R_OK)) {
		free(b->file_fault);
		b->file_fault = xasprintf("can't be read: %s", strerror(errno));
	}
	diag_free(&d);
}

/* Whether it is no longer configured, and its flows have not ended yet. */
static bool is_leaving(const struct backend_edit *e, const struct state *running)
{
	const struct state_pool *p = NULL;
	bool leaving = false;

	for (size_t i = 0; i < running->pools; i++)
		if (!strcmp(running->pool[i].name, e->pool))
			p = &running->pool[i];
	for (size_t i = 0; p && i < p->backends; i++) {
		if (strcmp(p->backend[i].name, e->name))
			continue;
		if (p->backend[i].state != BACKEND_LEAVING)
			return false;
		leaving = true;
	}
	return leaving;
}

/* What is wanted of a backend that is leaving: that its flows end now, or that the file drops it, too. */
static struct config *want_of_leaving(struct cmd_change *x, struct config *config)
{
	const struct backend_edit *e = &((struct backend *)x->arg)->edit;

	if (e->verb == BACKEND_DELETE && (x->cut || x->save))
		return config;
	diag_error(
		&x->cx->diag, "leaving", "",
		"backend %s of pool %s is leaving already: it gets no new flow%s; \"backend del %s %s --cut\" ends its old "
		"ones now",
		e->name, e->pool, e->verb == BACKEND_SET ? ", and \"backend add\" with its address takes it back" : "",
		e->pool, e->name);
	config_free(config);
	return NULL;
}

static int want(struct cmd_change *x, struct change *c, struct config **wanted)
{
	struct backend *b = x->arg;
	struct config *config = change_config(c, &x->cx->diag);
	int status;

	if (!config)
		return EXIT_FAILED;
	if (b->edit.verb != BACKEND_ADD && is_leaving(&b->edit, c->running.state))
		config = want_of_leaving(x, config);
	else
		config = backend_edit_make(&b->edit, config, &x->cx->diag);
	if (!config)
		return EXIT_BAD;
	if (x->cut) {
		c->in.cut_pool = b->edit.pool;
		c->in.cut_backend = b->edit.name;
	}
	status = x->save ? rehearse_save(x, c->running.state) : EXIT_DONE;
	if (status) {
		config_free(config);
		return status;
	}
	read_file(b, c->running.state->config->file);
	c->in.keep_edits = true;
	*wanted = config;
	return EXIT_DONE;
}

static void planned(struct cmd_change *x, struct change *c)
{
	const struct backend *b = x->arg;

	backend_edit_note(&b->edit, c->running.state->config, b->file, c->plan.next);
}

static void forget(struct cmd_change *x, struct state *next)
{
	const struct backend *b = x->arg;

	backend_edit_saved(&b->edit, next);
}

static int save(struct cmd_change *x, const char *file)
{
	const struct backend *b = x->arg;
	struct yaml_edit edit[BACKEND_FILE_EDITS];
	struct config_backend added;
	size_t edits = backend_edit_of_file(&b->edit, &added, edit);

	if (yaml_edit_file(file, edit, edits, &x->cx->diag)) {
		diag_error(&x->cx->diag, "not-saved", file, "what runs has the change; the file has not");
		return EXIT_FAILED;
	}
	out_boolean(x->cx->out, "saved", true);
	out_text(x->cx->out, "%s has the change, too\n", file);
	return cmd_change_saved(x, forget);
}

static int done(struct cmd_change *x, struct change *c)
{
	const struct backend *b = x->arg;
	const char *file = c->running.state->config->file;
	char *says = NULL;

	out_string(x->cx->out, "file", *file == '/' ? file : NULL);
	if (x->save)
		return save(x, file);
	if (b->file)
		says = backend_edit_file_says(&b->edit, b->file);
	else if (b->file_fault)
		says = xstrdup(b->file_fault);
	out_boolean(x->cx->out, "saved", false);
	out_string(x->cx->out, "file_says", says);
	if (says)
		out_text(x->cx->out, "%s %s%s\n", file, says, b->file ? " (--save changes it, too)" : "");
	free(says);
	return EXIT_DONE;
}

static int take_weight(struct cmd_change *x, const char *text)
{
	struct backend_edit *e = &((struct backend *)x->arg)->edit;
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n > 65535)
		return cmd_usage(x->cx, x->command, "--weight %s: a number from 1 to 65535", text);
	if (!n)
		return cmd_usage(x->cx, x->command, "--weight 0: use \"backend set POOL NAME --state drain\"");
	e->weight = (uint32_t)n;
	return EXIT_DONE;
}

static int take_state(struct cmd_change *x, const char *text)
{
	struct backend_edit *e = &((struct backend *)x->arg)->edit;

	for (int s = CONFIG_UP; s <= CONFIG_MAINT; s++)
		if (!strcmp(text, config_state_name((enum config_state)s)))
			e->state = s;
	return e->state >= 0 ? EXIT_DONE : cmd_usage(x->cx, x->command, "--state %s: up, drain or maint", text);
}

static int take_option(struct cmd_change *x, int option)
{
	struct backend_edit *e = &((struct backend *)x->arg)->edit;

	switch (option) {
	case OPTION_WEIGHT:
		return take_weight(x, optarg);
	case OPTION_STATE:
		return take_state(x, optarg);
	case OPTION_ZONE:
		e->zone = optarg;
		return EXIT_DONE;
	case OPTION_IDENTITY:
		e->identity = optarg;
		return EXIT_DONE;
	}
	return cmd_change_option(x, option);
}

/* What the options that were given have to do with the verb. */
static int check_options(struct cmd_change *x)
{
	const struct backend_edit *e = &((struct backend *)x->arg)->edit;

	if (e->verb != BACKEND_ADD && (e->zone || e->identity))
		return cmd_usage(x->cx, x->command, "--zone and --identity are for \"add\"");
	if (e->verb != BACKEND_SET && e->state >= 0)
		return cmd_usage(x->cx, x->command, "--state is for \"set\"");
	if (e->verb == BACKEND_DELETE && e->weight)
		return cmd_usage(x->cx, x->command, "--weight is for \"add\" and \"set\"");
	if (e->verb == BACKEND_ADD && x->cut)
		return cmd_usage(x->cx, x->command, "--cut is for \"del\" and \"set\"");
	if (e->verb == BACKEND_SET && !e->weight && e->state < 0)
		return cmd_usage(x->cx, x->command, "\"set\" wants --weight or --state");
	return EXIT_DONE;
}

static int arguments(struct cmd_change *x, int argc, char **argv)
{
	static const char *const verb[] = { [BACKEND_ADD] = "add", [BACKEND_DELETE] = "del", [BACKEND_SET] = "set" };
	static const int count[] = { [BACKEND_ADD] = 4, [BACKEND_DELETE] = 3, [BACKEND_SET] = 3 };
	struct backend_edit *e = &((struct backend *)x->arg)->edit;
	char **arg = argv + optind;

	while (argc > optind && e->verb <= BACKEND_SET && strcmp(arg[0], verb[e->verb]))
		e->verb++;
	if (argc == optind || e->verb > BACKEND_SET)
		return cmd_usage(x->cx, x->command, "add, del or set is wanted first");
	if (argc - optind != count[e->verb])
		return cmd_usage(x->cx, x->command, "%s takes POOL NAME%s", verb[e->verb],
				 e->verb == BACKEND_ADD ? " ADDRESS" : "");
	e->pool = arg[1];
	e->name = arg[2];
	if (e->verb == BACKEND_ADD && address_parse(arg[3], &e->address))
		return cmd_usage(x->cx, x->command, "\"%s\" is no IPv4 or IPv6 address; there is no port", arg[3]);
	return check_options(x);
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = {
		CMD_CHANGE_OPTIONS,
		{ "cut", no_argument, NULL, CMD_CUT },
		{ "save", no_argument, NULL, CMD_SAVE },
		{ "weight", required_argument, NULL, OPTION_WEIGHT },
		{ "zone", required_argument, NULL, OPTION_ZONE },
		{ "identity", required_argument, NULL, OPTION_IDENTITY },
		{ "state", required_argument, NULL, OPTION_STATE },
		{ 0 },
	};
	struct backend b = { .edit.state = -1 };
	struct cmd_change x = { .cx = cx,
				.command = argv[0],
				.guard = GUARD_NONE,
				.arg = &b,
				.want = want,
				.planned = planned,
				.done = done };
	int c, status;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1)
		if (take_option(&x, c))
			return EXIT_BAD;
	if (arguments(&x, argc, argv))
		return EXIT_BAD;
	status = cmd_change(&x);
	config_free(b.file);
	free(b.file_fault);
	return status;
}

const struct cmd cmd_backend = {
	.name = "backend",
	.usage = "{add POOL NAME ADDRESS | del POOL NAME | set POOL NAME} [OPTIONS]",
	.summary = "add, delete or change one backend of what runs",
	.help = "Changes what runs, as one new generation, and says what moves and what the configuration file\n"
		"still says: an apply of that would undo the change, and asks first. New flows follow the new\n"
		"ring at once, established ones stay where they are until they end. A backend that is deleted\n"
		"is leaving until its flows have ended, or drain_max has passed.\n\n"
		"  --weight W           add, set: 1 to 65535; exact \"points\" are scaled with it\n"
		"  --state STATE        set: up; drain: no new flow; maint: none at all, established ones break\n"
		"  --zone Z             add: a label\n"
		"  --identity I         add: what is hashed onto the ring, instead of the name\n"
		"  --cut                del, set --state drain: its established flows are given up at once, also of one that\n"
		"                       is leaving or draining already\n"
		"  --save               make the change in the configuration file, too; the rest of it stays as it is\n" CMD_CHANGE_HELP
		"\nExit status: 0 done; 1 failed, what was running still runs; 2 bad usage, no such pool or backend;\n"
		"3 refused: too much would move, another generation runs, or the pool would be empty.\n",
	.run = run,
};
