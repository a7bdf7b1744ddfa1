// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"
#include "lookup.h"

/* A commit may come between reading the state and asking; this many in a row are not one. */
#define REVISION_RETRIES 100

struct lookup {
	struct cmd_context *cx;
	const char *service_text;
	struct lookup_target target;
	bool established;

	/* attached */
	bool running_is_open;
	struct running running;
	const struct state_backend **by_index; /* RINGLB_MAX_BACKENDS + 1 of them */

	/* from a file alone */
	struct config *config;
	struct ring_member *member;
	struct arcs arcs;
};

struct answer {
	uint32_t position;
	const char *name; /* of the backend, or NULL */
	const struct address *address;
	const char *previous; /* or NULL */
	const char *reason;   /* NULL without a backend */
	enum ringlb_verdict verdict;
};

static const struct {
	const char *name, *meaning, *remedy;
} verdicts[] = {
#define X(id, name, meaning, remedy) { name, meaning, remedy },
	RINGLB_VERDICTS(X)
#undef X
};

static const struct config_pool *target_pool(const struct lookup *l)
{
	return &l->target.config->pool[l->target.service->pool];
}

static void close_running(struct lookup *l)
{
	if (l->running_is_open)
		running_close(&l->running);
	l->running_is_open = false;
}

/* Reads what runs, and finds the service in it. */
static int open_running(struct lookup *l)
{
	const struct state *s;
	int status;

	close_running(l);
	status = cmd_running(l->cx, "lookup", &l->running);
	if (status)
		return status;
	l->running_is_open = true;
	s = l->running.state;
	memset(l->by_index, 0, (RINGLB_MAX_BACKENDS + 1) * sizeof(*l->by_index));
	for (size_t i = 0; i < s->pools; i++)
		for (size_t j = 0; j < s->pool[i].backends; j++)
			l->by_index[s->pool[i].backend[j].index] = &s->pool[i].backend[j];
	return lookup_target_find(s->config, l->service_text, &l->target, &l->cx->diag) ? EXIT_BAD : EXIT_DONE;
}

static int open_file(struct lookup *l, const char *file)
{
	const struct config_pool *p;
	struct diag d = { 0 };
	int err;

	l->config = config_load(file, &d);
	/* Its warnings are check's to tell: here they would stand beside every answer. */
	for (size_t i = 0; i < d.count; i++)
		if (d.entry[i].level == DIAG_ERROR)
			diag_error(&l->cx->diag, d.entry[i].code, d.entry[i].where, "%s", d.entry[i].message);
	diag_free(&d);
	if (!l->config || lookup_target_find(l->config, l->service_text, &l->target, &l->cx->diag))
		return EXIT_BAD;
	p = target_pool(l);
	l->member = xcalloc(p->backends, sizeof(*l->member));
	for (size_t i = 0; i < p->backends; i++) {
		const struct config_backend *b = &p->backend[i];

		l->member[i].identity = b->identity;
		l->member[i].points = b->state == CONFIG_UP ? (uint32_t)config_backend_points(p, b) : 0;
	}
	err = ring_build(l->member, p->backends, &l->arcs);
	if (!err)
		return EXIT_DONE;
	diag_error(&l->cx->diag, "ring", "", "cannot build the ring of pool %s: %s", p->name, strerror(-err));
	return err == -ENOMEM ? EXIT_FAILED : EXIT_BAD;
}

static void answer_from_file(const struct lookup *l, const struct lookup_source *s, struct answer *a)
{
	const struct config_backend *b;

	*a = (struct answer){ .position = lookup_position(&l->target, s),
			      .verdict = RINGLB_VERDICT_DROPPED_NO_BACKEND };
	if (!l->arcs.count)
		return;
	b = &target_pool(l)->backend[l->arcs.arc[arcs_find(&l->arcs, a->position)].owner];
	a->name = b->name;
	a->address = &b->address;
	a->reason = "ring";
	a->verdict = RINGLB_VERDICT_FORWARDED;
}

static int answer_from_kernel(struct lookup *l, const struct lookup_source *s, struct answer *a)
{
	const struct state_backend *b, *previous;
	uint8_t frame[LOOKUP_FRAME];
	struct ringlb_lookup r;
	int err, tries = 0;

	for (;;) {
		err = datapath_lookup(l->running.dp, frame, lookup_frame(&l->target, s, l->established, frame), &r);
		if (err) {
			diag_error(&l->cx->diag, "lookup", "", "the program \"lookup\" of instance %s does not run: %s",
				   l->cx->instance.name, strerror(-err));
			return EXIT_FAILED;
		}
		if (r.revision == (uint32_t)l->running.state->revision)
			break;
		if (++tries > REVISION_RETRIES) {
			diag_error(&l->cx->diag, "busy", "",
				   "the configuration changes faster than it can be read: try again");
			return EXIT_FAILED;
		}
		err = open_running(l);
		if (err)
			return err;
	}
	b = l->by_index[r.backend];
	previous = r.moved ? l->by_index[r.previous] : NULL;
	*a = (struct answer){ .position = r.position,
			      .verdict = r.verdict,
			      .previous = previous ? previous->name : NULL };
	if (r.verdict == RINGLB_VERDICT_DROPPED_NO_BACKEND) /* without a ring the data plane does not hash */
		a->position = lookup_position(&l->target, s);
	if (b) {
		a->name = b->name;
		a->address = &b->address;
		a->reason = r.tracked ? "tracked" : r.moved ? "moved" : "ring";
	}
	return EXIT_DONE;
}

static const char *verdict_name(const struct answer *a)
{
	return a->verdict < RINGLB_VERDICT_COUNT ? verdicts[a->verdict].name : "unknown";
}

static void print_json(const struct lookup *l, const char *source, const struct answer *a)
{
	struct out *o = l->cx->out;
	char text[ADDRESS_TEXT], hash[16];

	snprintf(hash, sizeof(hash), "0x%08x", a->position);
	out_object(o, NULL);
	out_string(o, "source", source);
	out_string(o, "service", l->target.service->name);
	out_string(o, "pool", target_pool(l)->name);
	out_string(o, "hash", hash);
	out_string(o, "backend", a->name);
	out_string(o, "address", a->address ? address_text(a->address, text) : NULL);
	out_array(o, "replicas");
	if (a->name)
		out_string(o, NULL, a->name);
	out_end(o);
	out_string(o, "reason", a->reason);
	out_string(o, "previous", a->previous);
	out_string(o, "verdict", verdict_name(a));
	out_end(o);
}

static void print_one(const struct lookup *l, const struct answer *a)
{
	struct out *o = l->cx->out;
	char text[ADDRESS_TEXT];

	if (a->name)
		out_text(o, "backend  %s (%s)\n", a->name, address_text(a->address, text));
	else
		out_text(o, "backend  none\n");
	out_text(o, "service  %s\npool     %s\nhash     0x%08x\n", l->target.service->name, target_pool(l)->name,
		 a->position);
	if (a->previous)
		out_text(o, "reason   %s: before the last change this arc was %s's\n", a->reason, a->previous);
	else if (a->reason)
		out_text(o, "reason   %s\n", a->reason);
	if (a->verdict != RINGLB_VERDICT_FORWARDED && a->verdict < RINGLB_VERDICT_COUNT)
		out_text(o, "verdict  %s: %s; %s\n", verdicts[a->verdict].name, verdicts[a->verdict].meaning,
			 verdicts[a->verdict].remedy);
}

static int answer(struct lookup *l, const char *text, const char *where, bool line)
{
	struct lookup_source s;
	struct answer a;
	char address[ADDRESS_TEXT];
	int status;

	if (lookup_source_parse(&l->target, text, where, &s, &l->cx->diag))
		return EXIT_BAD;
	if (l->config) {
		answer_from_file(l, &s, &a);
	} else {
		status = answer_from_kernel(l, &s, &a);
		if (status)
			return status;
	}
	print_json(l, text, &a);
	if (!line) {
		print_one(l, &a);
		return EXIT_DONE;
	}
	out_text(l->cx->out, "%s %s %s %s\n", text, a.name ? a.name : "-",
		 a.address ? address_text(a.address, address) : "-", a.reason ? a.reason : verdict_name(&a));
	out_flush_line(l->cx->out);
	return EXIT_DONE;
}

/* Answers what it can: a bad line is reported and does not stop the rest. */
static int answer_list(struct lookup *l, const char *list)
{
	bool standard = !strcmp(list, "-");
	FILE *f = standard ? stdin : fopen(list, "re");
	const char *name = standard ? "standard input" : list;
	int status = EXIT_DONE, one = EXIT_DONE;
	unsigned long number = 0;
	size_t size = 0;
	char *line = NULL, *where;

	if (!f) {
		diag_error(&l->cx->diag, "from", list, "%s", strerror(errno));
		return EXIT_BAD;
	}
	while (one != EXIT_FAILED && getline(&line, &size, f) >= 0) {
		char *start = line + strspn(line, " \t");

		number++;
		start[strcspn(start, " \t\r\n")] = '\0';
		if (!*start)
			continue;
		where = xasprintf("%s:%lu", name, number);
		one = answer(l, start, where, true);
		free(where);
		if (one)
			status = one;
	}
	if (ferror(f)) {
		diag_error(&l->cx->diag, "from", list, "cannot be read: %s", strerror(errno));
		status = EXIT_FAILED;
	}
	free(line);
	if (!standard)
		fclose(f);
	/* Also where the list was empty: JSON lines, of which there are none. */
	out_flush_line(l->cx->out);
	return status;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = {
		{ "established", no_argument, NULL, 'e' },
		{ "file", required_argument, NULL, 'f' },
		{ "from", required_argument, NULL, 'l' },
		{ 0 },
	};
	struct lookup l = { .cx = cx };
	const char *file = NULL, *list = NULL;
	int c, status;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1) {
		if (c == '?')
			return EXIT_BAD;
		if (c == 'e')
			l.established = true;
		else
			*(c == 'f' ? &file : &list) = optarg;
	}
	if (argc - optind != (list ? 1 : 2))
		return cmd_usage(cx, argv[0],
				 list ? "with --from it takes SERVICE alone" : "SERVICE and SOURCE are wanted");
	if (!file && !cmd_privileged(cx, argv[0]))
		return EXIT_FAILED;
	l.service_text = argv[optind];
	l.by_index = xcalloc(RINGLB_MAX_BACKENDS + 1, sizeof(*l.by_index));
	status = file ? open_file(&l, file) : open_running(&l);
	if (!status)
		status = list ? answer_list(&l, list) : answer(&l, argv[optind + 1], "", false);
	close_running(&l);
	arcs_free(&l.arcs);
	free(l.member);
	free(l.by_index);
	config_free(l.config);
	return status;
}

const struct cmd cmd_lookup = {
	.name = "lookup",
	.usage = "SERVICE {SOURCE | --from LIST} [--established] [--file FILE]",
	.summary = "where a packet would go, and why",
	.help = "SERVICE is a name or ADDRESS:PORT/PROTOCOL, SOURCE the client's ADDRESS:PORT; IPv6 addresses\n"
		"stand in brackets. Asks the pinned program, without any effect on flows or counters.\n\n"
		"  --established   a packet of an established connection, instead of one that opens it\n"
		"  --file FILE     from FILE alone: nothing has to be attached, no privileges are needed\n"
		"  --from LIST     many at once: a SOURCE on each line of LIST (-: standard input); a line is\n"
		"                  answered by a line, with --json too: SOURCE BACKEND ADDRESS REASON\n\n"
		"Reasons: ring, the owner of that point; moved, the arc has changed hands lately; tracked, the\n"
		"flow table knows this flow.\n\n"
		"Exit status: 0 answered, also where there is no backend; 1 failed; 2 a bad argument or line.\n",
	.run = run,
};
