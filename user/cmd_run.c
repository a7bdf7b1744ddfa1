// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "change.h"
#include "cmd.h"
#include "daemon.h"
#include "generation.h"
#include "log.h"

enum { RUN_WORKER = 2000 };

/* The last generation of the history that can still be used; NULL: none. */
static struct config *last_generation(const struct change *c, const char *file, uint32_t *number)
{
	struct generation *list;
	struct config *found = NULL;
	struct diag ignored = { 0 };
	size_t count;

	if (generation_list(c->history, &list, &count, &ignored))
		count = 0;
	while (count && !found) {
		const struct generation *g = &list[--count];

		*number = g->number;
		if (!g->damaged)
			found = generation_load(c->history, g->number, &ignored);
	}
	if (found) { /* drift is told against the file that should have been used */
		free(found->file);
		found->file = xstrdup(file);
	}
	generation_list_free(list, count);
	diag_free(&ignored);
	return found;
}

/* Says why FILE is not used, for the log and for the supervisor's status. */
static char *complain(const struct diag *d, const char *file, uint32_t number)
{
	const char *first = "";

	log_diag(d, NULL);
	for (size_t i = d->count; i--;)
		if (d->entry[i].level == DIAG_ERROR)
			first = d->entry[i].message;
	log_line(
		LOG_LEVEL_ERROR,
		"%s CANNOT BE USED: falling back to the last generation of the history, %u; it runs until the file is right "
		"and \"ringlb apply\" was given it",
		file, number);
	return xasprintf("%s can't be used: %s", file, first);
}

/* What was said becomes the command's. */
static void say(struct cmd_context *cx, struct diag *d)
{
	for (size_t i = 0; i < d->count; i++)
		diag_add(&cx->diag, d->entry[i].level, d->entry[i].code, d->entry[i].where, "%s", d->entry[i].message);
	diag_free(d);
}

/* What is to be attached: FILE, or instead of a bad one what ran last. NULL with errors in cx. */
static struct config *choose(struct cmd_context *cx, const struct change *c, const char *file, char **fallback)
{
	struct diag d = { 0 };
	struct config *config = config_load(file, &d);
	uint32_t number = 0;

	if (!config) {
		config = last_generation(c, file, &number);
		if (config)
			*fallback = complain(&d, file, number);
	}
	if (*fallback)
		diag_free(&d);
	else
		say(cx, &d);
	return config;
}

/*
 * Services come first: where the history can't be written, at a boot with a full disk perhaps, what is attached has no
 * record, and that is said.
 */
static int commit(struct cmd_context *cx, struct change *c, const char *summary)
{
	struct diag d = { 0 };
	int err = change_commit(c, summary, true, &d);

	if (err && d.count && !strcmp(d.entry[d.count - 1].code, "not-recorded")) {
		log_line(
			LOG_LEVEL_ERROR,
			"attaching WITHOUT A RECORD, so that rollback and the next boot can't return to this generation: %s",
			d.entry[d.count - 1].message);
		diag_free(&d);
		d = (struct diag){ 0 };
		err = change_commit(c, summary, false, &d);
	}
	say(cx, &d);
	return err;
}

/* With the lock held. */
static int attach(struct cmd_context *cx, struct change *c, const char *file, char **fallback)
{
	struct config *config = choose(cx, c, file, fallback);
	int err;

	if (!config)
		return EXIT_BAD;
	err = change_plan(c, config, &cx->diag);
	if (err)
		return err == -EINVAL || err == -E2BIG ? EXIT_BAD : EXIT_FAILED;
	if (datapath_check_bpffs(cx->instance.bpffs, &cx->diag) ||
	    commit(cx, c, *fallback ? "attach, instead of a bad file" : "attach"))
		return EXIT_FAILED;
	log_line(LOG_LEVEL_NOTICE, "attached: generation %u, digest %s", c->plan.next->generation,
		 c->plan.next->digest);
	return EXIT_DONE;
}

/* Attaches, or leaves what is attached as it is. */
static int begin(struct cmd_context *cx, const char *file, char **fallback)
{
	size_t errors = cx->diag.errors;
	int lock = instance_lock(&cx->instance, cx->command_line, cx->wait_seconds, &cx->diag), err, status;
	struct change c;

	if (lock < 0)
		return EXIT_FAILED;
	err = change_open(&cx->instance, &c, &cx->diag);
	if (err == -ENOENT)
		status = attach(cx, &c, file, fallback);
	else if (err)
		status = cmd_open_failed(cx, "run", err, errors);
	else
		status = EXIT_DONE;
	if (!err)
		log_line(LOG_LEVEL_NOTICE,
			 "instance %s is attached already: going on with generation %u, which is not compared with "
			 "%s: \"ringlb apply\" makes it what that says",
			 cx->instance.name, c.running.state->generation, file);
	change_close(&c);
	instance_unlock(&cx->instance, lock);
	return status;
}

/* As later reloads find it, wherever they are. */
static char *absolute(const char *file)
{
	char *directory = *file == '/' ? NULL : getcwd(NULL, 0), *path;

	path = directory ? xasprintf("%s/%s", directory, file) : xstrdup(file);
	free(directory);
	return path;
}

/* What is wrong at the start is in the log like what is wrong later, and not said twice. */
static void log_all(struct cmd_context *cx, bool errors)
{
	struct diag d = cx->diag;

	if (errors) /* main says them, as for every command */
		return;
	log_diag(&d, NULL);
	diag_free(&cx->diag);
	memset(&cx->diag, 0, sizeof(cx->diag));
}

static int run_daemon(struct cmd_context *cx, const char *file)
{
	char *path = absolute(file), *fallback = NULL;
	int lock = daemon_lock(&cx->instance, &cx->diag), status;
	struct daemon_options o = { &cx->instance, path, cx->command_line, NULL };

	status = lock < 0 ? EXIT_FAILED : begin(cx, path, &fallback);
	log_all(cx, status != EXIT_DONE);
	o.fallback = fallback;
	if (!status && daemon_run(&o))
		status = EXIT_FAILED;
	if (lock >= 0)
		daemon_unlock(&cx->instance, lock);
	free(fallback);
	free(path);
	return status;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = { { "worker", no_argument, NULL, RUN_WORKER }, { 0 } };
	bool worker = false;
	const char *file;
	int c;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1) {
		if (c == '?')
			return EXIT_BAD;
		worker = true;
	}
	if (worker)
		return daemon_worker() ? EXIT_FAILED : EXIT_DONE;
	if (cmd_file(cx, argc, argv, &file))
		return EXIT_BAD;
	if (!strcmp(file, "-"))
		return cmd_usage(cx, argv[0], "FILE is read again at each reload: it can't be standard input");
	if (!cmd_privileged(cx, argv[0]))
		return EXIT_FAILED;
	return run_daemon(cx, file);
}

const struct cmd cmd_run = {
	.name = "run",
	.usage = "[FILE]",
	.summary = "the daemon: health, next hops, metrics and the status page",
	.help = "Attaches as FILE says (default: " CMD_DEFAULT_FILE "), or goes on with what is\n"
		"attached, without applying FILE over it. Then stays in the foreground: checks backends, follows\n"
		"next hops and interfaces, settles, serves metrics and the status page at status_listen, and logs\n"
		"to standard error. Where nothing is attached and FILE is bad it attaches the last generation of\n"
		"the history, and says so.\n\n"
		"SIGHUP applies FILE, as \"ringlb apply\" does, which also tells whether that worked. SIGTERM ends\n"
		"the daemon; packets keep flowing, and connections don't notice.\n\n"
		"Exit status: 0 ended by a signal; 1 failed; 2 bad usage, or a bad FILE and no history.\n",
	.run = run,
};
