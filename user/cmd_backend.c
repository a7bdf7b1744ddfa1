// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One backend at a time, on what is running. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "cmd.h"
#include "yaml_edit.h"

enum verb { VERB_ADD, VERB_DELETE, VERB_SET };
enum { OPTION_WEIGHT = 1, OPTION_ZONE, OPTION_IDENTITY, OPTION_STATE };

struct edit {
	enum verb verb;
	const char *pool, *name, *zone, *identity;
	struct address address;
	uint32_t weight; /* 0: not given */
	int state;       /* -1: not given */

	/* of the wanted configuration, and what the file says; NULL where it can't be told */
	uint32_t points; /* exact ones, scaled; 0: none */
	struct config *file;
	char *file_fault;
};

static struct config_pool *find_pool(struct config *c, const char *name)
{
	for (size_t i = 0; c && i < c->pools; i++)
		if (!strcmp(c->pool[i].name, name))
			return &c->pool[i];
	return NULL;
}

static struct config_backend *find_backend(struct config_pool *p, const char *name)
{
	for (size_t i = 0; p && i < p->backends; i++)
		if (!strcmp(p->backend[i].name, name))
			return &p->backend[i];
	return NULL;
}

static void add_backend(struct config_pool *p, const struct edit *e)
{
	p->backend = xreallocarray(p->backend, p->backends + 1, sizeof(*p->backend));
	p->backend[p->backends++] = (struct config_backend){
		.name = xstrdup(e->name),
		.identity = xstrdup(e->identity ? e->identity : e->name),
		.zone = e->zone ? xstrdup(e->zone) : NULL,
		.address = e->address,
		.weight = e->weight ? e->weight : 1,
	};
}

static void delete_backend(struct config_pool *p, struct config_backend *b)
{
	size_t i = (size_t)(b - p->backend);

	free(b->name);
	free(b->identity);
	free(b->zone);
	memmove(b, b + 1, (--p->backends - i) * sizeof(*b));
}

/* The count at the new weight of what was tuned for the old one. */
static uint32_t scaled(uint32_t points, uint32_t from, uint32_t to)
{
	uint64_t n = ((uint64_t)points * to + from / 2) / from;

	return n < 1 ? 1 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void set_backend(struct config_backend *b, struct edit *e)
{
	if (e->weight && b->points)
		b->points = scaled(b->points, b->weight, e->weight);
	if (e->weight)
		b->weight = e->weight;
	if (e->state >= 0)
		b->state = (enum config_state)e->state;
	e->points = b->points;
}

static int make_edit(struct cmd_change *x, struct config *c)
{
	struct edit *e = x->arg;
	struct config_pool *p = find_pool(c, e->pool);
	struct config_backend *b = find_backend(p, e->name);
	struct diag *d = &x->cx->diag;

	if (!p)
		diag_error(d, "unknown-pool", "", "no pool \"%s\": \"ringlb show\" lists them", e->pool);
	else if (e->verb == VERB_ADD && b)
		diag_error(
			d, "duplicate-name", "",
			"pool %s has a backend %s already: \"backend set\" changes it; for a new address delete it first",
			e->pool, e->name);
	else if (e->verb != VERB_ADD && !b)
		diag_error(d, "unknown-backend", "", "pool %s has no backend \"%s\": \"ringlb show %s\" lists them",
			   e->pool, e->name, e->pool);
	else if (e->verb == VERB_ADD)
		add_backend(p, e);
	else if (e->verb == VERB_DELETE)
		delete_backend(p, b);
	else
		set_backend(b, e);
	return !p || (e->verb == VERB_ADD) == (b != NULL) ? EXIT_BAD : EXIT_DONE;
}

/* Through the parser, so that the rules of the file hold. Takes c. */
static struct config *validated(struct config *c, struct diag *d)
{
	char *key_file = c->hash_key_file, *text;
	struct diag mine = { 0 };
	struct config *checked;

	c->hash_key_file = NULL; /* what runs has the key: not read again */
	text = config_emit(c, true);
	checked = config_parse(c->file, text, strlen(text), &mine);
	explicit_bzero(text, strlen(text));
	free(text);
	config_free(c);
	/* Lines are those of a text that nobody sees. */
	for (size_t i = 0; !checked && i < mine.count; i++)
		if (mine.entry[i].level == DIAG_ERROR)
			diag_error(d, mine.entry[i].code, "", "%s", mine.entry[i].message);
	diag_free(&mine);
	if (checked)
		checked->hash_key_file = key_file;
	else
		free(key_file);
	return checked;
}

/* For the file: at most two changes. */
static size_t file_edits(const struct edit *e, struct config_backend *added, struct yaml_edit out[3])
{
	struct yaml_edit to = { .pool = e->pool, .backend = e->name };
	size_t n = 0;

	*added = (struct config_backend){ .name = (char *)e->name,
					  .identity = (char *)(e->identity ? e->identity : e->name),
					  .zone = (char *)e->zone,
					  .address = e->address,
					  .weight = e->weight ? e->weight : 1 };
	to.add = added;
	to.kind = e->verb == VERB_ADD ? YAML_EDIT_ADD : e->verb == VERB_DELETE ? YAML_EDIT_DELETE : YAML_EDIT_SET;
	if (e->verb != VERB_SET) {
		out[n++] = to;
		return n;
	}
	to.key = YAML_EDIT_WEIGHT;
	to.value = e->weight;
	if (e->weight)
		out[n++] = to;
	to.key = YAML_EDIT_POINTS;
	to.value = e->points;
	if (e->weight && e->points)
		out[n++] = to;
	to.key = YAML_EDIT_STATE;
	to.value = e->state > 0 ? (uint32_t)e->state : CONFIG_UP;
	to.kind = to.value == CONFIG_UP ? YAML_EDIT_UNSET : YAML_EDIT_SET;
	if (e->state >= 0)
		out[n++] = to;
	return n;
}

/* That --save will succeed, as far as can be told beforehand. */
static int rehearse_save(struct cmd_change *x, const struct state *running)
{
	struct yaml_edit edit[3];
	struct config_backend added;
	size_t edits = file_edits(x->arg, &added, edit);
	int status = cmd_change_savable(x, running);

	if (status)
		return status;
	return yaml_edit_rehearse(running->config->file, edit, edits, &x->cx->diag) ? EXIT_FAILED : EXIT_DONE;
}

static void read_file(struct edit *e, const char *file)
{
	struct diag d = { 0 };

	if (*file != '/')
		return;
	e->file = config_load(file, &d);
	for (size_t i = 0; i < d.count && !e->file && !e->file_fault; i++)
		if (d.entry[i].level == DIAG_ERROR)
			e->file_fault = xstrdup(d.entry[i].message);
	diag_free(&d);
}

static int want(struct cmd_change *x, struct change *c, struct config **wanted)
{
	struct edit *e = x->arg;
	int status;

	c->in.keep_edits = true;
	*wanted = change_config(c, &x->cx->diag);
	status = *wanted ? make_edit(x, *wanted) : EXIT_FAILED;
	if (!status) {
		*wanted = validated(*wanted, &x->cx->diag);
		status = *wanted ? EXIT_DONE : EXIT_BAD;
	}
	if (!status && x->save)
		status = rehearse_save(x, c->running.state);
	if (!status)
		read_file(e, c->running.state->config->file);
	if (status) {
		config_free(*wanted);
		*wanted = NULL;
	}
	return status;
}

/* Live edits that the file says, too, are none. */
static void forget_what_file_says(const struct edit *e, struct state *s)
{
	struct config_backend *f = find_backend(find_pool(e->file, e->pool), e->name);

	if (!e->file)
		return;
	if (!f)
		state_edit_drop(s, EDIT_DELETE, e->pool, e->name);
	if (f && e->verb == VERB_ADD && address_equal(&f->address, &e->address))
		state_edit_drop(s, EDIT_ADD, e->pool, e->name);
	if (f && e->weight == f->weight)
		state_edit_drop(s, EDIT_WEIGHT, e->pool, e->name);
	if (f && e->state == (int)f->state)
		state_edit_drop(s, EDIT_STATE, e->pool, e->name);
}

static void planned(struct cmd_change *x, struct change *c)
{
	struct edit *e = x->arg;
	struct state *next = c->plan.next;
	const struct config_backend *was = find_backend(find_pool(c->running.state->config, e->pool), e->name);
	char weight[16], address[ADDRESS_TEXT];

	snprintf(weight, sizeof(weight), "%" PRIu32, e->weight);
	if (e->verb == VERB_ADD)
		state_edit_add(next, EDIT_ADD, e->pool, e->name, address_text(&e->address, address));
	if (e->verb == VERB_DELETE)
		state_edit_add(next, EDIT_DELETE, e->pool, e->name, NULL);
	if (e->weight && (!was || was->weight != e->weight))
		state_edit_add(next, EDIT_WEIGHT, e->pool, e->name, weight);
	if (e->state >= 0 && (!was || (int)was->state != e->state))
		state_edit_add(next, EDIT_STATE, e->pool, e->name, config_state_name((enum config_state)e->state));
	forget_what_file_says(e, next);
}

/* What the file says about the backend where that is something else; NULL where it says the same. Owned by the caller. */
static char *file_says(const struct edit *e)
{
	struct config_pool *p = find_pool(e->file, e->pool);
	struct config_backend *f = find_backend(p, e->name);
	char text[ADDRESS_TEXT];

	if (!e->file)
		return e->file_fault ? xasprintf("can't be read: %s", e->file_fault) : NULL;
	if (!p)
		return xasprintf("has no pool %s", e->pool);
	if (e->verb == VERB_DELETE)
		return f ? xasprintf("still has backend %s in pool %s", e->name, e->pool) : NULL;
	if (!f)
		return xasprintf("has no backend %s in pool %s", e->name, e->pool);
	if (e->verb == VERB_ADD && !address_equal(&f->address, &e->address))
		return xasprintf("says address %s for backend %s of pool %s", address_text(&f->address, text), e->name,
				 e->pool);
	if (e->weight && f->weight != e->weight)
		return xasprintf("still says weight %" PRIu32 " for backend %s of pool %s", f->weight, e->name,
				 e->pool);
	if (e->state >= 0 && (int)f->state != e->state)
		return xasprintf("still says state %s for backend %s of pool %s", config_state_name(f->state), e->name,
				 e->pool);
	return NULL;
}

static void forget(struct cmd_change *x, struct state *next)
{
	const struct edit *e = x->arg;

	if (e->verb == VERB_ADD || e->verb == VERB_DELETE) {
		state_edit_drop(next, EDIT_ADD, e->pool, e->name);
		state_edit_drop(next, EDIT_DELETE, e->pool, e->name);
	}
	if (e->weight)
		state_edit_drop(next, EDIT_WEIGHT, e->pool, e->name);
	if (e->state >= 0)
		state_edit_drop(next, EDIT_STATE, e->pool, e->name);
}

static int save(struct cmd_change *x, const char *file)
{
	struct yaml_edit edit[3];
	struct config_backend added;
	size_t edits = file_edits(x->arg, &added, edit);

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
	const char *file = c->running.state->config->file;
	char *says;

	out_string(x->cx->out, "file", *file == '/' ? file : NULL);
	if (x->save)
		return save(x, file);
	says = file_says(x->arg);
	out_boolean(x->cx->out, "saved", false);
	out_string(x->cx->out, "file_says", says);
	if (says)
		out_text(x->cx->out, "%s %s (--save changes it, too)\n", file, says);
	free(says);
	return EXIT_DONE;
}

static int take_weight(struct cmd_change *x, const char *text)
{
	struct edit *e = x->arg;
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
	struct edit *e = x->arg;

	for (int s = CONFIG_UP; s <= CONFIG_MAINT; s++)
		if (!strcmp(text, config_state_name((enum config_state)s)))
			e->state = s;
	return e->state >= 0 ? EXIT_DONE : cmd_usage(x->cx, x->command, "--state %s: up, drain or maint", text);
}

static int take_option(struct cmd_change *x, int option)
{
	struct edit *e = x->arg;

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
	const struct edit *e = x->arg;

	if (e->verb != VERB_ADD && (e->zone || e->identity))
		return cmd_usage(x->cx, x->command, "--zone and --identity are for \"add\"");
	if (e->verb != VERB_SET && e->state >= 0)
		return cmd_usage(x->cx, x->command, "--state is for \"set\"");
	if (e->verb == VERB_DELETE && e->weight)
		return cmd_usage(x->cx, x->command, "--weight is for \"add\" and \"set\"");
	if (e->verb == VERB_ADD && x->cut)
		return cmd_usage(x->cx, x->command, "--cut is for \"del\" and \"set\"");
	if (e->verb == VERB_SET && !e->weight && e->state < 0)
		return cmd_usage(x->cx, x->command, "\"set\" wants --weight or --state");
	return EXIT_DONE;
}

static int arguments(struct cmd_change *x, int argc, char **argv)
{
	static const char *const verb[] = { [VERB_ADD] = "add", [VERB_DELETE] = "del", [VERB_SET] = "set" };
	static const int count[] = { [VERB_ADD] = 4, [VERB_DELETE] = 3, [VERB_SET] = 3 };
	struct edit *e = x->arg;
	char **arg = argv + optind;

	while (argc > optind && e->verb <= VERB_SET && strcmp(arg[0], verb[e->verb]))
		e->verb++;
	if (argc == optind || e->verb > VERB_SET)
		return cmd_usage(x->cx, x->command, "add, del or set is wanted first");
	if (argc - optind != count[e->verb])
		return cmd_usage(x->cx, x->command, "%s takes POOL NAME%s", verb[e->verb],
				 e->verb == VERB_ADD ? " ADDRESS" : "");
	e->pool = arg[1];
	e->name = arg[2];
	if (e->verb == VERB_ADD && address_parse(arg[3], &e->address))
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
	struct edit e = { .state = -1 };
	struct cmd_change x = { .cx = cx,
				.command = argv[0],
				.guard = GUARD_NONE,
				.arg = &e,
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
	config_free(e.file);
	free(e.file_fault);
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
		"  --cut                del, set --state drain: its established flows are given up at once\n"
		"  --save               make the change in the configuration file, too; the rest of it stays as it is\n" CMD_CHANGE_HELP
		"\nExit status: 0 done; 1 failed, what was running still runs; 2 bad usage, no such pool or backend;\n"
		"3 refused: too much would move, another generation runs, or the pool would be empty.\n",
	.run = run,
};
