// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"

/* With the lock held. Takes config. */
static int apply_locked(struct cmd_context *cx, const char *command, struct config *config)
{
	struct plan_input in = { .config = config };
	struct running running;
	size_t errors;
	struct plan plan;
	int status, err;

	status = cmd_running(cx, command, &running);
	if (status) {
		config_free(config);
		return status;
	}
	err = running_input(&running, &in, &cx->diag);
	if (err)
		config_free(config);
	else
		err = plan_make(&in, &plan, &cx->diag);
	if (err) {
		status = err == -EINVAL || err == -E2BIG ? EXIT_BAD : EXIT_FAILED;
		goto out;
	}
	cmd_report_plan(cx, &running, &plan);
	errors = cx->diag.errors;
	err = plan.operations ? commit_apply(&cx->instance, &running, &plan, &cx->diag) : 0;
	if (err && cx->diag.errors == errors)
		diag_error(&cx->diag, "commit", "", "nothing was changed: %s", strerror(-err));
	status = err ? EXIT_FAILED : EXIT_DONE;
	cx->changed = !err && plan.operations;
	plan_free(&plan);
out:
	running_input_free(&in);
	running_close(&running);
	return status;
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
	status = apply_locked(cx, argv[0], config);
	instance_unlock(&cx->instance, lock);
	return status;
}

const struct cmd cmd_apply = {
	.name = "apply",
	.usage = "[FILE]",
	.summary = "make what runs equal FILE, atomically for packets",
	.help = "Prints what \"ringlb plan\" prints and does exactly that, as one new generation: a packet meets\n"
		"either the old configuration or the new one. FILE: default " CMD_DEFAULT_FILE ".\n"
		"Attaches what is missing, an interface that was removed and made again too. Where nothing\n"
		"would change there is no new generation.\n\n"
		"Exit status: 0 done; 1 failed, what was running still runs; 2 bad usage or configuration.\n",
	.run = run,
};
