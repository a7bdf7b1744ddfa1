// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "change.h"
#include "cmd.h"
#include "durable.h"
#include "generation.h"

struct rollback {
	uint32_t number; /* 0: the one before the running one */
	char *summary;
};

/* "3, 5-7", of those that can be returned to. */
static char *kept(const struct generation *list, size_t count)
{
	char *text = xstrdup("");

	for (size_t i = 0, j; i < count; i = j) {
		char *old = text;

		for (j = i + 1;
		     j < count && list[j].number == list[j - 1].number + 1 && !list[j].damaged && !list[i].damaged;)
			j++;
		if (list[i].damaged)
			continue;
		text = j - i == 1 ? xasprintf("%s%s%u", old, *old ? ", " : "", list[i].number) :
				    xasprintf("%s%s%u-%u", old, *old ? ", " : "", list[i].number, list[j - 1].number);
		free(old);
	}
	return text;
}

/* Adds an error unless the generation can be returned to. */
static bool is_kept(struct cmd_change *x, const struct change *c, uint32_t number)
{
	struct generation *list;
	bool found = false;
	size_t count;
	char *text;

	if (generation_list(c->history, &list, &count, &x->cx->diag))
		return false;
	for (size_t i = 0; i < count; i++)
		found |= list[i].number == number;
	text = kept(list, count);
	if (!found)
		diag_error(&x->cx->diag, "no-generation", "",
			   "generation %u is not kept in %s: %s%s (\"ringlb history\" tells more)", number, c->history,
			   *text ? "those are: " : "none is", text);
	free(text);
	generation_list_free(list, count);
	return found;
}

static int want(struct cmd_change *x, struct change *c, struct config **wanted)
{
	struct rollback *r = x->arg;
	const struct state *s = c->running.state;
	int status = x->save ? cmd_change_savable(x, s) : EXIT_DONE;

	if (status)
		return status;
	if (!r->number && s->generation == 1) {
		diag_error(&x->cx->diag, "no-generation", "",
			   "generation 1 runs, the first one: there is none before it to return to");
		return EXIT_FAILED;
	}
	if (!r->number)
		r->number = s->generation - 1;
	c->in.keep_edits = true;
	x->summary = r->summary = xasprintf("rollback to %u", r->number);
	if (r->number == s->generation) {
		*wanted = change_config(c, &x->cx->diag); /* also where it was not recorded */
		return *wanted ? EXIT_DONE : EXIT_FAILED;
	}
	if (!is_kept(x, c, r->number))
		return EXIT_FAILED;
	*wanted = generation_load(c->history, r->number, &x->cx->diag);
	if (!*wanted)
		return EXIT_FAILED;
	free((*wanted)->file);
	(*wanted)->file = xstrdup(s->config->file);
	return EXIT_DONE;
}

static void planned(struct cmd_change *x, struct change *c)
{
	const struct rollback *r = x->arg;
	char number[16];

	snprintf(number, sizeof(number), "%u", r->number);
	if (c->plan.generation)
		state_edit_add(c->plan.next, EDIT_ROLLBACK, NULL, NULL, number);
}

static int write_like(const char *path, const char *text, const struct stat *was)
{
	char *temporary = xasprintf("%s.XXXXXX", path);
	int fd = mkostemp(temporary, O_CLOEXEC), err = fd < 0 ? -errno : 0;

	if (!err && (fchown(fd, was->st_uid, was->st_gid) || fchmod(fd, was->st_mode & 07777))) {
		err = -errno;
		close(fd);
	} else if (!err) {
		err = durable_write(fd, text, strlen(text));
	}
	if (!err && rename(temporary, path))
		err = -errno;
	if (err && fd >= 0)
		unlink(temporary);
	free(temporary);
	return err;
}

/* A further name for the file: of those before, none is taken. NULL with errno. */
static char *keep(const char *path)
{
	char *name = xasprintf("%s.before-rollback", path);

	for (unsigned int i = 2; link(path, name); i++) {
		free(name);
		if (errno != EEXIST)
			return NULL;
		name = xasprintf("%s.before-rollback.%u", path, i);
	}
	return name;
}

/* Whether the file means this configuration already, whatever it looks like. */
static bool says_already(const struct config *c)
{
	struct diag ignored = { 0 };
	struct config *file = config_load(c->file, &ignored);
	char *is = file ? config_emit(file, true) : NULL, *wanted = config_emit(c, true);
	bool same = is && !strcmp(is, wanted);

	if (is)
		explicit_bzero(is, strlen(is));
	explicit_bzero(wanted, strlen(wanted));
	free(is);
	free(wanted);
	config_free(file);
	diag_free(&ignored);
	return same;
}

/* The file's name goes to the new text, the old text gets a name beside it. */
static int replace(const char *path, char **backup, const char *text)
{
	struct stat was;
	char *slash, *directory;
	int err;

	if (stat(path, &was))
		return -errno;
	*backup = keep(path);
	if (!*backup)
		return -errno;
	err = write_like(path, text, &was);
	directory = xstrdup(path);
	slash = strrchr(directory, '/');
	slash[slash == directory] = '\0';
	if (!err)
		durable_directory(directory); /* it stands there in any case */
	free(directory);
	return err;
}

static void forget(struct cmd_change *x, struct state *next)
{
	(void)x;
	state_edit_drop(next, EDIT_ROLLBACK, NULL, NULL);
}

static int save(struct cmd_change *x, const struct config *c)
{
	char *path = realpath(c->file, NULL), *backup = NULL;
	char *text = config_emit(c, !c->hash_key_file);
	bool already = says_already(c);
	int err = already ? 0 : path ? replace(path, &backup, text) : -errno;

	explicit_bzero(text, strlen(text));
	free(text);
	if (err)
		diag_error(&x->cx->diag, "not-saved", c->file,
			   "what runs has the change; the file can't be written: %s", strerror(-err));
	else if (already)
		out_text(x->cx->out, "%s says the same already: it stays as it is\n", c->file);
	else
		out_text(x->cx->out, "%s is written anew, without the comments there were; the old one is %s\n",
			 c->file, backup);
	out_boolean(x->cx->out, "saved", !err);
	out_string(x->cx->out, "backup", err ? NULL : backup);
	free(backup);
	free(path);
	return err ? EXIT_FAILED : cmd_change_saved(x, forget);
}

static int done(struct cmd_change *x, struct change *c)
{
	const char *file = c->running.state->config->file;

	out_string(x->cx->out, "file", *file == '/' ? file : NULL);
	if (x->save)
		return save(x, c->plan.next->config);
	out_boolean(x->cx->out, "saved", false);
	if (c->plan.generation && *file == '/')
		out_text(
			x->cx->out,
			"%s is as it was: \"ringlb show\" tells what an apply of it would change (--save writes it anew)\n",
			file);
	return EXIT_DONE;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = {
		CMD_CHANGE_OPTIONS,
		{ "cut", no_argument, NULL, CMD_CUT },
		{ "save", no_argument, NULL, CMD_SAVE },
		{ 0 },
	};
	struct rollback r = { 0 };
	struct cmd_change x = { .cx = cx,
				.command = argv[0],
				.guard = GUARD_NONE,
				.arg = &r,
				.want = want,
				.planned = planned,
				.done = done };
	unsigned long long number;
	int c, status;
	char *end;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1)
		if (cmd_change_option(&x, c))
			return EXIT_BAD;
	if (argc - optind > 1)
		return cmd_usage(cx, argv[0], "one GENERATION at most");
	if (argc > optind) {
		number = strtoull(argv[optind], &end, 10);
		if (*argv[optind] < '1' || *argv[optind] > '9' || *end || number > UINT32_MAX)
			return cmd_usage(cx, argv[0], "\"%s\" is no number of a generation", argv[optind]);
		r.number = (uint32_t)number;
	}
	status = cmd_change(&x);
	free(r.summary);
	return status;
}

const struct cmd cmd_rollback = {
	.name = "rollback",
	.usage = "[GENERATION] [OPTIONS]",
	.summary = "return to an earlier generation, as a new one",
	.help = "Makes the configuration of GENERATION (default: the one before the running one; \"history\" lists\n"
		"them) run again, as a new generation, and says what moves. Established flows stay where they\n"
		"are until they end, as after every change. The configuration file stays as it is: an apply of it\n"
		"would undo the rollback, and asks first.\n\n"
		"  --save               write the configuration file anew, as what runs then; the old one, with its\n"
		"                       comments, is kept as FILE.before-rollback, or .before-rollback.2 and so on\n"
		"  --cut                what leaves, or starts to drain, loses its flows at once\n" CMD_CHANGE_HELP
		"\nExit status: 0 done; 1 failed, or the generation is not kept; 2 bad usage; 3 refused: too much\n"
		"would move, another generation runs, or a pool would be empty. What was running still runs.\n",
	.run = run,
};
