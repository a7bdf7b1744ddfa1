// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "cmd.h"
#include "replace.h"

struct upgrade {
	struct cmd_change change; /* of FILE */
	const char *file;         /* NULL: none */
	struct config *config;    /* what it says */
};

/* The configuration of the file, handed over. */
static int want(struct cmd_change *x, struct change *c, struct config **wanted)
{
	struct upgrade *u = x->arg;

	(void)c;
	*wanted = u->config;
	u->config = NULL;
	return EXIT_DONE;
}

/* That FILE can be applied afterwards, so that all is refused where a part would be. */
static int rehearse(struct upgrade *u, const struct running *r)
{
	struct cmd_context *cx = u->change.cx;
	struct plan_input in = { 0 };
	struct diag again = { 0 };
	struct plan plan;
	int status = EXIT_DONE, err;

	if (!u->file)
		return EXIT_DONE;
	in.config = config_load(u->file, &again);
	diag_free(&again);
	if (!in.config)
		return EXIT_BAD; /* only where it was changed this moment */
	in.cut = u->change.cut;
	err = running_input(r, &in, &cx->diag);
	if (err) {
		config_free(in.config);
		status = EXIT_FAILED;
	} else {
		err = plan_make(&in, &plan, &cx->diag);
		if (err)
			status = err == -EINVAL || err == -E2BIG ? EXIT_BAD : EXIT_FAILED;
		else if (!guard_check(&u->change.guard, r->state, &plan, &cx->diag))
			status = EXIT_REFUSED;
		if (!err)
			plan_free(&plan);
	}
	running_input_free(&in);
	return status;
}

static void report(struct cmd_context *cx, const struct running *r, const char *version, uint32_t abi)
{
	struct out *o = cx->out;
	char now[DATAPATH_VERSION];

	datapath_version(r->dp, now);
	out_object(o, "upgrade");
	out_object(o, "version");
	out_string(o, "from", version);
	out_string(o, "to", now);
	out_end(o);
	out_object(o, "layout");
	out_integer(o, "from", abi);
	out_integer(o, "to", datapath_abi(r->dp));
	out_end(o);
	out_integer(o, "generation", r->state->generation);
	out_end(o);
	out_text(o, "instance %s: the program of ringlb %s took over from that of %s; generation %u still runs\n",
		 cx->instance.name, now, version, r->state->generation);
}

static int swap(struct upgrade *u, struct running *r)
{
	struct cmd_context *cx = u->change.cx;
	char version[DATAPATH_VERSION];
	uint32_t abi = datapath_abi(r->dp);
	int status = rehearse(u, r);

	if (status)
		return status;
	datapath_version(r->dp, version);
	if (replace_repair(&cx->instance, r, &cx->diag) || replace_program(&cx->instance, r, &cx->diag))
		return EXIT_FAILED;
	cx->changed = true;
	report(cx, r, version, abi);
	return EXIT_DONE;
}

static int upgrade_locked(struct upgrade *u)
{
	struct cmd_context *cx = u->change.cx;
	size_t errors = cx->diag.errors;
	struct running running;
	int err = running_open_older(&cx->instance, &running, &cx->diag), status;

	if (err)
		return cmd_open_failed(cx, u->change.command, err, errors);
	status = swap(u, &running);
	running_close(&running);
	return status || !u->file ? status : cmd_change_locked(&u->change);
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { CMD_APPLY_OPTIONS, { 0 } };
	struct upgrade u = { .change = { .cx = cx, .command = argv[0], .guard = GUARD_NONE, .want = want } };
	int c, lock, status;

	u.change.arg = &u;
	while ((c = cmd_getopt(cx, argc, argv, options)) != -1)
		if (cmd_change_option(&u.change, c))
			return EXIT_BAD;
	if (optind < argc) {
		if (cmd_file(cx, argc, argv, &u.file))
			return EXIT_BAD;
		u.config = cmd_load(cx, u.file);
		if (!u.config)
			return EXIT_BAD;
	}
	if (!cmd_privileged(cx, argv[0])) {
		config_free(u.config);
		return EXIT_FAILED;
	}
	lock = instance_lock(&cx->instance, cx->command_line, cx->wait_seconds, &cx->diag);
	status = lock < 0 ? EXIT_FAILED : upgrade_locked(&u);
	if (lock >= 0)
		instance_unlock(&cx->instance, lock);
	config_free(u.config);
	return status;
}

const struct cmd cmd_upgrade = {
	.name = "upgrade",
	.usage = "[FILE] [OPTIONS]",
	.summary = "put this ringlb's program in the place of the one that runs",
	.help = "For after an update of the package: the program changes under traffic, and no packet and no\n"
		"connection is lost. What runs stays as it is: tables, flows, counters, generation. Where the\n"
		"layout of the maps has changed, too, everything is copied: for up to two seconds new flows in\n"
		"moved arcs then go to their old owners, as with a full flow table.\n"
		"With FILE, what it says is applied in the same go, under the same guards as \"ringlb apply\":\n"
		"refused, nothing is changed. An older ringlb leaves alone what a newer one attached.\n\n" CMD_APPLY_HELP
		"\n"
		"Exit status: 0 done; 1 failed, what was running still runs; 2 bad usage or configuration;\n"
		"3 refused by a guard; nothing was changed.\n",
	.run = run,
};
