// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lookup SERVICE: where a packet would go, by the pinned program or from a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "commit.h"
#include "lookup.h"
#include "pool_view.h"
#include "replicas.h"

/* A commit may come between reading the state and asking; this many in a row are not one. */
#define REVISION_RETRIES 100

struct lookup {
	struct cmd_context *cx;
	const struct cmd_lookup_options *options;
	const char *service_text;
	struct lookup_target target;
	struct replicas ring; /* of the arcs below, or of the running ones */
	const char **zone;    /* of its owners */
	const char **name;    /* likewise */

	/* attached */
	bool running_is_open;
	struct running running;
	const struct state_backend **by_index; /* RINGLB_MAX_BACKENDS + 1 of them */

	/* from a file alone */
	struct config *config;
	struct arcs arcs;
};

struct answer {
	uint32_t position;
	const char *service; /* its name: the one that the packet is for */
	const char *name;    /* of the backend, or NULL */
	const struct address *address;
	const char *other;    /* of a packet of the other kind: established where one that opens is asked about */
	const char *previous; /* or NULL */
	bool moved;
	const char *reason; /* NULL without a backend */
	enum ringlb_verdict verdict;
	const char **replica;
	size_t replicas;
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

static void close_ring(struct lookup *l)
{
	replicas_free(&l->ring);
	free(l->zone);
	free(l->name);
	l->zone = l->name = NULL;
}

static void close_running(struct lookup *l)
{
	close_ring(l);
	if (l->running_is_open)
		running_close(&l->running);
	l->running_is_open = false;
}

/* Prepares for replicas; l->zone and l->name are filled in by now. */
static int open_ring(struct lookup *l, const struct arcs *arcs, size_t owners, uint16_t nobody)
{
	if (!replicas_init(&l->ring, arcs, owners, l->options->distinct_zones ? l->zone : NULL, nobody))
		return EXIT_DONE;
	diag_error(&l->cx->diag, "memory", "", "out of memory");
	return EXIT_FAILED;
}

static int open_running_ring(struct lookup *l)
{
	const struct state *s = l->running.state;
	const struct state_pool *p = state_table(s, (size_t)(l->target.service - s->config->service));

	l->zone = xcalloc(p->backends, sizeof(*l->zone));
	l->name = xcalloc(p->backends, sizeof(*l->name));
	for (size_t i = 0; i < p->backends; i++) {
		l->zone[i] = p->backend[i].zone;
		l->name[i] = p->backend[i].name;
	}
	return open_ring(l, &p->arcs, p->backends + 1, (uint16_t)STATE_NOBODY(p));
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
	for (size_t i = 0; i < state_tables(s); i++) {
		const struct state_pool *p = state_table_at(s, i);

		for (size_t j = 0; j < p->backends; j++)
			l->by_index[p->backend[j].index] = &p->backend[j];
	}
	if (lookup_target_find(s->config, l->service_text, &l->target, &l->cx->diag))
		return EXIT_BAD;
	return open_running_ring(l);
}

static int open_file(struct lookup *l)
{
	const struct config_pool *p;
	struct pool_view view;
	char *why;
	int err;

	l->config = cmd_config(l->cx, l->options->file);
	if (!l->config || lookup_target_find(l->config, l->service_text, &l->target, &l->cx->diag))
		return EXIT_BAD;
	p = target_pool(l);
	pool_view_make(p, NULL, &view);
	err = pool_view_build(&view, placement_of(p->placement), &l->arcs, NULL, &why);
	l->zone = view.zone;
	view.zone = NULL;
	pool_view_free(&view);
	l->name = xcalloc(p->backends, sizeof(*l->name));
	for (size_t i = 0; i < p->backends; i++)
		l->name[i] = p->backend[i].name;
	if (!err)
		return open_ring(l, &l->arcs, p->backends, UINT16_MAX);
	diag_error(&l->cx->diag, "placement", "", "pool %s can't have placement %s: %s", p->name,
		   config_placement_name(p->placement), why ? why : strerror(-err));
	free(why);
	return err == -ENOMEM ? EXIT_FAILED : EXIT_BAD;
}

/* The ring's owners from the position on. */
static void find_replicas(struct lookup *l, struct answer *a)
{
	size_t wanted = l->options->replicas < l->ring.distinct ? l->options->replicas : l->ring.distinct;
	uint16_t *owner = xcalloc(wanted, sizeof(*owner));

	a->replica = xcalloc(wanted, sizeof(*a->replica));
	a->replicas = replicas_find(&l->ring, a->position, wanted, owner);
	for (size_t i = 0; i < a->replicas; i++)
		a->replica[i] = l->name[owner[i]];
	free(owner);
}

static void answer_from_file(struct lookup *l, const struct lookup_source *s, struct answer *a)
{
	const struct config_backend *b;

	*a = (struct answer){ .position = lookup_position(&l->target, s),
			      .service = l->target.service->name,
			      .verdict = RINGLB_VERDICT_DROPPED_NO_BACKEND };
	if (!l->arcs.count)
		return;
	b = &target_pool(l)->backend[l->arcs.arc[arcs_find(&l->arcs, a->position)].owner];
	a->name = a->other = b->name;
	a->address = &b->address;
	a->reason = "ring";
	a->verdict = RINGLB_VERDICT_FORWARDED;
}

enum { ASK_CHANGED = -1 }; /* a commit came in between: read anew */

/* EXIT_DONE, EXIT_FAILED with an error, or ASK_CHANGED. */
static int ask(struct lookup *l, const struct lookup_source *s, bool established, struct ringlb_lookup *r)
{
	uint8_t frame[LOOKUP_FRAME];
	int err = datapath_lookup(l->running.dp, frame, lookup_frame(&l->target, s, established, frame), r);

	if (err) {
		diag_error(&l->cx->diag, "lookup", "", "the program \"lookup\" of instance %s does not run: %s",
			   l->cx->instance.name, strerror(-err));
		return EXIT_FAILED;
	}
	return r->revision == (uint32_t)l->running.state->revision ? EXIT_DONE : ASK_CHANGED;
}

/* What the packet that is asked about meets, and the other kind: they differ in moved arcs only. */
static int ask_both(struct lookup *l, const struct lookup_source *s, struct ringlb_lookup *r,
		    struct ringlb_lookup *other)
{
	for (int tries = 0; tries < REVISION_RETRIES; tries++) {
		int status = ask(l, s, l->options->established, r);

		*other = *r;
		if (!status && r->moved)
			status = ask(l, s, !l->options->established, other);
		if (status != ASK_CHANGED)
			return status;
		status = open_running(l);
		if (status)
			return status;
	}
	diag_error(&l->cx->diag, "busy", "", "the configuration changes faster than it can be read: try again");
	return EXIT_FAILED;
}

/* What the program found. That it is the target is not taken for granted: who asks wants to know. */
static const char *service_name(const struct lookup *l, uint16_t index)
{
	const struct state *s = l->running.state;

	if (s->service_index[l->target.service - s->config->service] == index)
		return l->target.service->name;
	for (size_t i = 0; i < s->config->services; i++)
		if (s->service_index[i] == index)
			return s->config->service[i].name;
	return "(none)";
}

static int answer_from_kernel(struct lookup *l, const struct lookup_source *s, struct answer *a)
{
	const struct state_backend *b, *previous, *other;
	struct ringlb_lookup r, r_other;
	int status = ask_both(l, s, &r, &r_other);
	uint32_t count;

	if (status)
		return status;
	b = l->by_index[r.backend];
	other = l->by_index[r_other.backend];
	previous = r.moved && r.previous != r.owner ? l->by_index[r.previous] : NULL;
	*a = (struct answer){ .position = r.position,
			      .service = service_name(l, r.service),
			      .verdict = r.verdict,
			      .moved = r.moved,
			      .other = other ? other->name : NULL,
			      .previous = previous ? previous->name : NULL };
	/* The program asked ends with the choice: whether it can be reached is written beside the backend. */
	if (b && r.verdict == RINGLB_VERDICT_FORWARDED && !datapath_backends(l->running.dp, &count)[r.backend].next_hop)
		a->verdict = RINGLB_VERDICT_DROPPED_NO_NEIGHBOUR;
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
	out_string(o, "service", a->service);
	out_string(o, "pool", target_pool(l)->name);
	out_string(o, "hash", hash);
	out_string(o, "backend", a->name);
	out_string(o, "address", a->address ? address_text(a->address, text) : NULL);
	out_array(o, "replicas");
	for (size_t i = 0; i < a->replicas; i++)
		out_string(o, NULL, a->replica[i]);
	out_end(o);
	out_string(o, "reason", a->reason);
	out_string(o, "previous", a->previous);
	out_string(o, "new_flow", l->options->established ? a->other : a->name);
	out_string(o, "established_flow", l->options->established ? a->name : a->other);
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
	out_text(o, "service  %s\npool     %s\nhash     0x%08x\n", a->service, target_pool(l)->name, a->position);
	if (l->options->replicas > 1)
		for (size_t i = 0; i < a->replicas; i++)
			out_text(o, "replica  %zu %s\n", i + 1, a->replica[i]);
	if (a->moved && a->reason)
		out_text(o, "reason   %s: this arc is still moving%s%s\n", a->reason, a->previous ? ", it was " : "",
			 a->previous ? a->previous : "");
	else if (a->reason)
		out_text(o, "reason   %s\n", a->reason);
	if (a->moved)
		out_text(o, "%s %s\n", l->options->established ? "a new flow goes to" : "an established flow goes to",
			 a->other ? a->other : "none");
	if (a->verdict != RINGLB_VERDICT_FORWARDED && a->verdict < RINGLB_VERDICT_COUNT)
		out_text(o, "verdict  %s: %s; %s\n", verdicts[a->verdict].name, verdicts[a->verdict].meaning,
			 verdicts[a->verdict].remedy);
}

static void print_line(const struct lookup *l, const char *source, const struct answer *a)
{
	struct out *o = l->cx->out;
	char address[ADDRESS_TEXT];

	out_text(o, "%s %s %s %s", source, a->name ? a->name : "-",
		 a->address ? address_text(a->address, address) : "-", a->reason ? a->reason : verdict_name(a));
	for (size_t i = 0; l->options->replicas > 1 && i < a->replicas; i++)
		out_text(o, "%c%s", i ? ',' : ' ', a->replica[i]);
	out_text(o, "\n");
	out_flush_line(o);
}

static int answer(struct lookup *l, const char *text, const char *where)
{
	struct lookup_source s;
	struct answer a;
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
	find_replicas(l, &a);
	print_json(l, text, &a);
	if (l->options->list)
		print_line(l, text, &a);
	else
		print_one(l, &a);
	free(a.replica);
	return EXIT_DONE;
}

static int answer_line(void *data, char *line, size_t length, const char *where)
{
	char *start = line + strspn(line, " \t");

	(void)length;
	start[strcspn(start, " \t\r")] = '\0';
	return *start && *start != '#' ? answer(data, start, where) : EXIT_DONE;
}

int cmd_lookup_service(struct cmd_context *cx, const struct cmd_lookup_options *o, const char *service,
		       const char *source)
{
	struct lookup l = { .cx = cx, .options = o, .service_text = service };
	int status;

	if (!o->file && !cmd_privileged(cx, "lookup"))
		return EXIT_FAILED;
	l.by_index = xcalloc(RINGLB_MAX_BACKENDS + 1, sizeof(*l.by_index));
	status = o->file ? open_file(&l) : open_running(&l);
	if (!status)
		status = o->list ? cmd_from(cx, o->list, answer_line, &l) : answer(&l, source, "");
	close_running(&l);
	arcs_free(&l.arcs);
	free(l.by_index);
	config_free(l.config);
	return status;
}
