// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"
#include "generation.h"

/* What would refuse this change, if it were made without further options: apply has those. */
static void foresee(struct cmd_context *cx, const struct state *running, const struct plan *plan)
{
	const struct guard guard = GUARD_NONE;
	struct diag d = { 0 };

	guard_check(&guard, running, plan, &d);
	for (size_t i = 0; i < d.count; i++)
		diag_warning(&cx->diag, d.entry[i].code, d.entry[i].where, "apply would refuse: %s",
			     d.entry[i].message);
	diag_free(&d);
}

/* What apply would find on the host and fail at, or go on without. */
static void foresee_interfaces(struct cmd_context *cx, const struct plan *plan, const struct plan_input *in)
{
	const struct config *c = plan->next->config;
	char who[128] = "";

	for (size_t i = 0; i < c->interfaces; i++) {
		const struct plan_interface *is = NULL;

		for (size_t j = 0; j < in->interfaces; j++)
			if (!strcmp(in->interface[j].name, c->interface[i]))
				is = &in->interface[j];
		if (if_nametoindex(c->interface[i]))
			continue;
		if (is && *is->now)
			diag_warning(
				&cx->diag, "renamed", "",
				"interface %s is called %s now: packets still come through it, and it stays attached; "
				"name it so in the file",
				is->name, is->now);
		else if (is && is->gone)
			diag_warning(
				&cx->diag, "no-interface", "",
				"interface %s is gone: packets no longer come through it; apply attaches it again when it "
				"is back",
				c->interface[i]);
		else
			diag_warning(
				&cx->diag, "no-interface", "",
				"apply would fail: interface %s: there is none of this name: ip link shows those that there "
				"are",
				c->interface[i]);
	}
	for (size_t i = 0; i < plan->operations; i++) {
		const struct plan_operation *o = &plan->operation[i];
		unsigned int ifindex = o->kind == PLAN_INTERFACE_ATTACH ? if_nametoindex(o->subject) : 0;

		if (ifindex)
			datapath_describe(ifindex, who, sizeof(who));
		if (ifindex && *who)
			diag_warning(&cx->diag, "busy", "",
				     "apply would fail: interface %s already has an XDP program: %s", o->subject, who);
	}
}

/* Settled arcs and backends that have left are no change that anybody asked for. */
static bool changes_something(const struct plan *plan)
{
	for (size_t i = 0; i < plan->operations; i++)
		if (plan->operation[i].kind <= PLAN_INTERFACE_DETACH)
			return true;
	return false;
}

static uint32_t last_generation(const struct instance *i)
{
	char *history = xasprintf("%s/%s", i->state_dir, i->name);
	uint32_t last = generation_last(history);

	free(history);
	return last;
}

static int plan_file(struct cmd_context *cx, const char *file, bool exit_code)
{
	struct running running = { 0 };
	struct config *config = cmd_load(cx, file);
	struct plan_input in = { .config = config };
	struct plan plan;
	int status = EXIT_FAILED, err;

	if (!config)
		return EXIT_BAD;
	err = running_open(&cx->instance, &running, &cx->diag);
	if (err && err != -ENOENT) {
		config_free(config);
		return EXIT_FAILED;
	}
	if (err && datapath_check_bpffs(cx->instance.bpffs, &cx->diag)) {
		config_free(config);
		return EXIT_FAILED;
	}
	if (err)
		in.generation = last_generation(&cx->instance);
	err = err ? 0 : running_input(&running, &in, &cx->diag);
	if (err)
		config_free(config);
	else
		err = plan_make(&in, &plan, &cx->diag);
	if (!err) {
		cmd_report_plan(cx, &in, &plan);
		foresee(cx, running.state, &plan);
		foresee_interfaces(cx, &plan, &in);
		status = exit_code && changes_something(&plan) ? EXIT_CHANGES : EXIT_DONE;
		plan_free(&plan);
	} else if (err == -EINVAL || err == -E2BIG) {
		status = EXIT_BAD;
	}
	running_input_free(&in);
	running_close(&running);
	return status;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { "exit-code", no_argument, NULL, 'e' }, { 0 } };
	bool exit_code = false;
	const char *file;
	int c;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1) {
		if (c == '?')
			return EXIT_BAD;
		exit_code = true;
	}
	if (cmd_file(cx, argc, argv, &file))
		return EXIT_BAD;
	if (!cmd_privileged(cx, argv[0]))
		return EXIT_FAILED;
	return plan_file(cx, file, exit_code);
}

const struct cmd cmd_plan = {
	.name = "plan",
	.usage = "[FILE] [--exit-code]",
	.summary = "what apply would do, and what would move; changes nothing",
	.help = "Compares FILE (default: " CMD_DEFAULT_FILE ") with what runs: the share of each pool's\n"
		"hash space that would move, from whom to whom, the least that any placement with these shares\n"
		"must move, and what happens to established flows. With nothing attached: what attach would do.\n"
		"Warns where apply would refuse it, or fail at an interface.\n\n"
		"  --exit-code   exit with 4 where something would change\n"
		"  -v            every move; without it the ten largest of each pool\n\n"
		"Exit status: 0 planned; 1 failed; 2 bad usage or configuration; 4 see --exit-code.\n",
	.run = run,
};
