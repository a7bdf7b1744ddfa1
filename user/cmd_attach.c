// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"

/* Says what runs now, read back from the kernel. */
static int report(struct cmd_context *cx, const char *command)
{
	struct running running;
	int status = cmd_running(cx, command, &running);

	if (status)
		return status;
	status = cmd_report_running(cx, &running, NULL);
	running_close(&running);
	return status;
}

/* With the lock held. Takes config. */
static int attach_locked(struct cmd_context *cx, const char *command, struct config *config)
{
	struct plan_input in = { .config = config };
	struct running running;
	size_t errors = cx->diag.errors;
	struct plan plan;
	int err = running_open(&cx->instance, &running, &cx->diag);

	if (err != -ENOENT) {
		config_free(config);
		if (err)
			return EXIT_FAILED;
		diag_error(&cx->diag, "attached", "",
			   "instance %s is attached already, generation %u: \"ringlb apply\" changes what "
			   "runs, \"ringlb detach\" ends it",
			   cx->instance.name, running.state->generation);
		running_close(&running);
		return EXIT_FAILED;
	}
	err = plan_make(&in, &plan, &cx->diag);
	if (err)
		return err == -EINVAL || err == -E2BIG ? EXIT_BAD : EXIT_FAILED;
	err = commit_attach(&cx->instance, &plan, &cx->diag);
	plan_free(&plan);
	if (err && cx->diag.errors == errors)
		diag_error(&cx->diag, "attach", "", "nothing was attached: %s", strerror(-err));
	cx->changed = !err;
	return err ? EXIT_FAILED : report(cx, command);
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { 0 } };
	struct config *config;
	const char *file;
	int lock, status;

	if (cmd_getopt(cx, argc, argv, options) != -1 || cmd_file(cx, argc, argv, &file))
		return EXIT_BAD;
	config = config_load(file, &cx->diag);
	if (!config)
		return EXIT_BAD;
	if (!cmd_privileged(cx, argv[0])) {
		config_free(config);
		return EXIT_FAILED;
	}
	lock = instance_lock(&cx->instance, cx->command_line, cx->wait_seconds, &cx->diag);
	if (lock < 0) {
		config_free(config);
		return EXIT_FAILED;
	}
	status = attach_locked(cx, argv[0], config);
	instance_unlock(&cx->instance, lock);
	return status;
}

const struct cmd cmd_attach = {
	.name = "attach",
	.usage = "[FILE]",
	.summary = "load the program, steer packets as FILE says",
	.help = "Loads the XDP program, publishes the tables, attaches to each interface of FILE (default:\n" CMD_DEFAULT_FILE
		"), pins everything and exits: packets keep flowing without any\n"
		"process. All or nothing. Prints the mode of each interface and warns of what will hurt:\n"
		"generic mode, an MTU too small for the outer header, a service address that nobody answers\n"
		"ARP for, an output interface outside \"interfaces\". Refuses where the instance is attached.\n\n"
		"Exit status: 0 attached; 1 failed, nothing is attached; 2 bad usage or configuration.\n",
	.run = run,
};
