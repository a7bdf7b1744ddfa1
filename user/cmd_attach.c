// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>

#include "change.h"
#include "cmd.h"

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
static int attach_locked(struct cmd_context *cx, const char *command, struct config *config, bool record)
{
	size_t errors = cx->diag.errors;
	struct change c;
	int err = change_open(&cx->instance, &c, &cx->diag), status = EXIT_FAILED;

	if (err != -ENOENT) {
		config_free(config);
		if (err)
			cmd_open_failed(cx, command, err, errors);
		else
			diag_error(&cx->diag, "attached", "",
				   "instance %s is attached already, generation %u: \"ringlb apply\" changes what "
				   "runs, \"ringlb detach\" ends it",
				   cx->instance.name, c.running.state->generation);
		goto out;
	}
	err = change_plan(&c, config, &cx->diag);
	if (err) {
		status = err == -EINVAL || err == -E2BIG ? EXIT_BAD : EXIT_FAILED;
		goto out;
	}
	/* Before anything is written to the history: without a place for the pins it is in vain. */
	if (datapath_check_bpffs(cx->instance.bpffs, &cx->diag) || change_commit(&c, "attach", record, &cx->diag))
		goto out;
	cx->changed = true;
	status = report(cx, command);
out:
	change_close(&c);
	return status;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { "no-record", no_argument, NULL, CMD_NO_RECORD }, { 0 } };
	struct config *config;
	bool record = true;
	const char *file;
	int c, lock, status;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1) {
		if (c == '?')
			return EXIT_BAD;
		record = false;
	}
	if (cmd_file(cx, argc, argv, &file))
		return EXIT_BAD;
	config = cmd_load(cx, file);
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
	status = attach_locked(cx, argv[0], config, record);
	instance_unlock(&cx->instance, lock);
	return status;
}

const struct cmd cmd_attach = {
	.name = "attach",
	.usage = "[FILE] [--no-record]",
	.summary = "load the program, steer packets as FILE says",
	.help = "Loads the XDP program, publishes the tables, attaches to each interface of FILE (default:\n" CMD_DEFAULT_FILE
		"), pins everything and exits: packets keep flowing without any\n"
		"process. All or nothing. Prints the mode of each interface and warns of what will hurt:\n"
		"generic mode, an MTU too small for the outer header, a service address that nobody answers\n"
		"ARP for, an output interface outside \"interfaces\". Refuses where the instance is attached.\n\n"
		"  --no-record   leave this generation out of the history\n\n"
		"Exit status: 0 attached; 1 failed, nothing is attached; 2 bad usage or configuration.\n",
	.run = run,
};
