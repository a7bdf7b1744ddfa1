/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening what runs: the pins, and the state that the manifest and the tables describe. */
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "flows.h"
#include "manifest.h"
#include "moved.h"
#include "table.h"

#define TRIES 100 /* a commit takes milliseconds; this many would have to fall into as many reads */

/* Reads the side that the word names; NULL when it changed meanwhile or contradicts itself, the latter with a message. */
static struct state *read_once(struct datapath *dp, bool *changed, struct diag *d)
{
	size_t bytes;
	struct ringlb_tables *t = datapath_tables(dp, &bytes);
	uint64_t word = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE);
	const struct ringlb_root *root = &t->roots[word & 1];
	/* Once: two commits further on they are another's, and may change between the comparison and the use. */
	uint32_t off = __atomic_load_n(&root->manifest_off, __ATOMIC_RELAXED);
	uint32_t length = __atomic_load_n(&root->manifest_len, __ATOMIC_RELAXED);
	struct state *s = NULL;

	if (off < bytes && length <= bytes - off)
		s = manifest_read((const char *)t + off, length, t, bytes, d);
	else
		diag_error(d, "manifest", "",
			   "what runs can't be read back from the kernel: detach and attach to start anew");
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* what was read was read before this */
	*changed = __atomic_load_n(&t->state, __ATOMIC_RELAXED) != word;
	if (s && !*changed)
		s->revision = word >> 1;
	return s;
}

struct state *running_state(struct datapath *dp, struct diag *d)
{
	for (int i = 0; i < TRIES; i++) {
		struct diag mine = { 0 };
		bool changed;
		struct state *s = read_once(dp, &changed, &mine);

		if (s && !changed) {
			diag_free(&mine);
			return s;
		}
		if (!s && !changed)
			for (size_t j = 0; j < mine.count; j++)
				diag_add(d, mine.entry[j].level, mine.entry[j].code, mine.entry[j].where, "%s",
					 mine.entry[j].message);
		diag_free(&mine);
		state_free(s);
		if (!changed)
			return NULL;
	}
	diag_error(d, "busy", "", "the configuration changes faster than it can be read: try again");
	return NULL;
}

static int open_state(const struct instance *i, struct running *out, struct diag *d)
{
	int err;

	out->state = running_state(out->dp, d);
	err = out->state ? datapath_links(i->pins, &out->link, &out->links) : -EPROTO;
	if (err)
		running_close(out);
	return err;
}

int running_open(const struct instance *i, struct running *out, struct diag *d)
{
	int err;

	memset(out, 0, sizeof(*out));
	err = datapath_open(i->pins, &out->dp, d);
	return err ? err : open_state(i, out, d);
}

int running_open_older(const struct instance *i, struct running *out, struct diag *d)
{
	int err;

	memset(out, 0, sizeof(*out));
	err = datapath_open_older(i->pins, &out->dp, d);
	return err ? err : open_state(i, out, d);
}

int running_open_tables(const struct instance *i, struct running *out, struct diag *d)
{
	int err;

	memset(out, 0, sizeof(*out));
	err = datapath_open_tables(i->pins, &out->dp, d);
	if (err)
		return err;
	out->state = running_state(out->dp, d);
	if (!out->state)
		running_close(out);
	return out->state ? 0 : -EPROTO;
}

void running_refresh(struct running *r)
{
	size_t bytes;
	struct ringlb_tables *t = datapath_tables(r->dp, &bytes);

	for (size_t i = 0; i < state_tables(r->state); i++) {
		struct state_pool *p = state_table_at(r->state, i);
		struct arcs arcs;

		if (!arcs_moved(&p->arcs) || table_decode(&p->layout, (const char *)t + p->region, &arcs))
			continue;
		__atomic_thread_fence(__ATOMIC_ACQUIRE); /* what was read was read before this */
		if (__atomic_load_n(&t->state, __ATOMIC_RELAXED) >> 1 == r->state->revision) {
			arcs_free(&p->arcs);
			p->arcs = arcs;
		} else { /* another configuration's by now */
			arcs_free(&arcs);
		}
	}
}

void running_close(struct running *r)
{
	state_free(r->state);
	free(r->link);
	datapath_free(r->dp);
	memset(r, 0, sizeof(*r));
}

const struct datapath_link *running_link_on(const struct running *r, unsigned int ifindex)
{
	for (size_t i = 0; i < r->links; i++)
		if (r->link[i].ifindex == ifindex)
			return &r->link[i];
	return NULL;
}

const struct datapath_link *running_link(const struct running *r, size_t interface)
{
	return running_link_on(r, r->state->ifindex[interface]);
}

_Static_assert(PLAN_INTERFACE_NAME >= IF_NAMESIZE, "struct plan_interface.now");

struct plan_interface *running_interfaces(const struct running *r, size_t *count)
{
	const struct config *c = r->state->config;
	struct plan_interface *v = xcalloc(c->interfaces + 1, sizeof(*v));

	*count = c->interfaces;
	for (size_t i = 0; i < c->interfaces; i++) {
		unsigned int ifindex = if_nametoindex(c->interface[i]);
		const struct datapath_link *here = ifindex ? running_link_on(r, ifindex) : NULL,
					   *l = here ? here : running_link(r, i);
		bool renamed = l && l->alive && l->ifindex != ifindex;

		v[i] = (struct plan_interface){
			.name = c->interface[i],
			.attached = l != NULL,
			.alive = l && l->alive && (!renamed || !ifindex), /* the name may be another one's by now */
			.gone = !ifindex && !renamed,
			.native = l && l->mode == DATAPATH_NATIVE,
		};
		if (renamed && !if_indextoname(l->ifindex, v[i].now))
			*v[i].now = '\0'; /* gone this moment */
	}
	return v;
}

int running_now(struct datapath *dp, uint32_t *stamp)
{
	struct ringlb_lookup answer;
	uint8_t frame[64] = { 0 }; /* for no service: only the clock is asked for */
	size_t bytes;
	int err = datapath_lookup(dp, frame, sizeof(frame), &answer);

	*stamp = err ? 0 : (uint32_t)(answer.jiffies / datapath_tables(dp, &bytes)->hz);
	return err;
}

void running_flows(const struct running *r, uint32_t now, uint32_t *count, uint32_t *left)
{
	const struct state *s = r->state;
	uint16_t *incarnation = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*incarnation));
	struct flows table = { 0 };

	for (size_t i = 0; i < state_tables(s); i++)
		for (size_t j = 0; j < state_table_at(s, i)->backends; j++)
			incarnation[state_table_at(s, i)->backend[j].index] =
				state_table_at(s, i)->backend[j].incarnation;
	table.bucket = datapath_flows(r->dp, &table.buckets);
	flows_count(&table, incarnation, RINGLB_MAX_BACKENDS, now, count, left);
	free(incarnation);
}

bool running_watched(const struct running *r, uint32_t now, uint32_t *silent)
{
	size_t bytes;
	const struct ringlb_tables *t = datapath_tables(r->dp, &bytes);
	uint32_t stamp = __atomic_load_n(&t->daemon_stamp, __ATOMIC_RELAXED);

	*silent = !stamp ? UINT32_MAX : (int32_t)(now - stamp) > 0 ? now - stamp : 0;
	return t->daemon && *silent <= RUNNING_DAEMON_SILENT;
}

int running_input(const struct running *r, struct plan_input *in, struct diag *d)
{
	uint32_t *flows = xcalloc(RINGLB_MAX_BACKENDS, sizeof(*flows));
	int err = running_now(r->dp, &in->now);
	uint32_t silent;

	if (err)
		diag_error(d, "clock", "", "the program lookup can't be run: %s", strerror(-err));
	running_flows(r, in->now, flows, NULL);
	in->running = r->state;
	in->watched = running_watched(r, in->now, &silent);
	in->flows = flows;
	in->interface = running_interfaces(r, &in->interfaces);
	return err;
}

void running_input_free(struct plan_input *in)
{
	free((void *)in->flows);
	free((void *)in->interface);
	in->flows = NULL;
	in->interface = NULL;
}
