// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"

static int not_attached(struct cmd_context *cx)
{
	diag_error(&cx->diag, "not-attached", "", "instance %s is not attached: nothing to detach in %s",
		   cx->instance.name, cx->instance.pins);
	return EXIT_FAILED;
}

/* Only what an attach left that was killed before it was done. Nobody sees it but the next attach. */
static int remove_unfinished(struct cmd_context *cx)
{
	size_t errors = cx->diag.errors;
	int err = datapath_check_bpffs(cx->instance.bpffs, &cx->diag);

	if (err)
		return EXIT_FAILED;
	err = commit_detach(&cx->instance, NULL, &cx->diag);
	if (err == -ENOENT)
		return not_attached(cx);
	if (err && cx->diag.errors == errors)
		diag_error(&cx->diag, "detach", "", "cannot remove %s: %s", cx->instance.pins, strerror(-err));
	if (err)
		return EXIT_FAILED;
	cx->changed = true;
	out_string(cx->out, "instance", cx->instance.name);
	out_integer(cx->out, "generation", 0);
	out_text(cx->out, "instance %s: what an interrupted attach left is removed\n", cx->instance.name);
	return EXIT_DONE;
}

/* With the lock held. Works on pins that can't be read, too. */
static int detach_locked(struct cmd_context *cx)
{
	struct diag unread = { 0 };
	struct running running, part = { 0 };
	size_t errors = cx->diag.errors;
	bool whole;
	int err = running_open(&cx->instance, &running, &unread);

	if (err == -ENOENT) {
		diag_free(&unread);
		return remove_unfinished(cx);
	}
	whole = !err;
	/* Neighbours that the kernel keeps fresh for it are in the tables. */
	if (!whole && running_open_tables(&cx->instance, &part, &unread))
		diag_warning(&cx->diag, "neighbours", "",
			     "what ran can't be read: neighbours that the kernel keeps fresh for it may be left: \"ip "
			     "neigh\" shows them as managed");
	err = commit_detach(&cx->instance, whole ? &running : part.state ? &part : NULL, &cx->diag);
	if (err && cx->diag.errors == errors)
		diag_error(&cx->diag, "detach", "", "cannot remove %s: %s", cx->instance.pins, strerror(-err));
	cx->changed = !err;
	if (!err) {
		out_string(cx->out, "instance", cx->instance.name);
		out_integer(cx->out, "generation", whole ? running.state->generation : 0);
		if (whole)
			out_text(cx->out, "instance %s: detached, generation %u no longer runs\n", cx->instance.name,
				 running.state->generation);
		else
			out_text(cx->out, "instance %s: incomplete pins removed\n", cx->instance.name);
	}
	if (whole)
		running_close(&running);
	running_close(&part);
	diag_free(&unread);
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { 0 } };
	int lock, status;

	if (cmd_getopt(cx, argc, argv, options) != -1)
		return EXIT_BAD;
	if (argc > optind)
		return cmd_usage(cx, argv[0], "it takes no arguments, and \"%s\" is one (-i NAME chooses the instance)",
				 argv[optind]);
	if (!cmd_privileged(cx, argv[0]))
		return EXIT_FAILED;
	lock = instance_lock(&cx->instance, cx->command_line, cx->wait_seconds, &cx->diag);
	if (lock < 0)
		return EXIT_FAILED;
	status = detach_locked(cx);
	instance_unlock(&cx->instance, lock);
	return status;
}

const struct cmd cmd_detach = {
	.name = "detach",
	.usage = "",
	.summary = "take the program off, remove every pin",
	.help = "Packets for the services are the host's again from then on. History stays. Pins that an\n"
		"interrupted attach left behind are removed too.\n\n"
		"Exit status: 0 detached; 1 failed, or not attached; 2 bad usage.\n",
	.run = run,
};
