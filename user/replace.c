/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "replace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "encode.h"
#include "flows_copy.h"

#define OPENINGS_POLL_MS 20
#define OPENINGS_WAIT_MS 2000 /* by then a flow that opened has gone on, or hardly ever will */

static struct ringlb_tables *header(struct datapath *dp)
{
	size_t bytes;

	return datapath_tables(dp, &bytes);
}

static void set_pending(struct datapath *dp, uint32_t bits)
{
	__atomic_fetch_or(&header(dp)->pending, bits, __ATOMIC_SEQ_CST);
}

static void clear_pending(struct datapath *dp, uint32_t bits)
{
	__atomic_fetch_and(&header(dp)->pending, ~bits, __ATOMIC_SEQ_CST);
}

static void set_frozen(struct datapath *dp, uint32_t frozen)
{
	__atomic_store_n(&header(dp)->frozen, frozen, __ATOMIC_SEQ_CST);
}

static struct flows flows_of(struct datapath *dp)
{
	struct flows f = { 0 };

	f.bucket = datapath_flows(dp, &f.buckets);
	return f;
}

/* What runs, as it is, into tables that hold nothing yet. */
static int write_tables(struct datapath *dp, struct datapath *former, struct state *s)
{
	const struct ringlb_tables *was = header(former);
	struct ringlb_tables *t = header(dp);
	struct encoding e;
	int err;

	for (size_t i = 0; i < state_tables(s); i++)
		state_table_at(s, i)->region = 0;
	err = encode_place(&e, dp, NULL, s);
	if (!err) {
		for (size_t i = 0; i < state_tables(s); i++)
			encode_table(&e, state_table_at(s, i));
		memcpy(t->outputs, was->outputs, sizeof(t->outputs));
		memcpy(t->quic_refused, was->quic_refused, sizeof(t->quic_refused));
		t->pending = was->pending;
		t->daemon_stamp = was->daemon_stamp;
		t->daemon = was->daemon;
		t->state = ((was->state >> 1) - 1) << 1; /* so that the revision stays */
		err = encode_root(&e);
	}
	if (!err)
		encode_publish(&e);
	encode_end(&e);
	datapath_write_version(dp);
	return err;
}

static void write_backends(struct datapath *dp, struct datapath *former)
{
	uint32_t count, were;
	struct ringlb_backend *to = datapath_backends(dp, &count), *from = datapath_backends(former, &were);

	/* those that are not in use, too: their incarnations go on */
	memcpy(to, from, (count < were ? count : were) * sizeof(*to));
}

/* Flows that opened before the freeze go on soon, and their entries then change: better before they are copied. */
static void await_openings(struct datapath *dp)
{
	const struct timespec pause = { .tv_nsec = OPENINGS_POLL_MS * 1000000L };
	const struct flows f = flows_of(dp);
	uint32_t now, used, openings;

	for (int ms = 0; ms < OPENINGS_WAIT_MS; ms += OPENINGS_POLL_MS) {
		if (running_now(dp, &now))
			return;
		flows_use(&f, now, &used, &openings);
		if (!openings)
			return;
		nanosleep(&pause, NULL);
	}
}

static int write_flows(struct datapath *dp, struct datapath *former, struct diag *d)
{
	const struct flows from = flows_of(former), to = flows_of(dp);
	uint32_t now, lost;
	int err;

	set_frozen(dp, 1);
	set_frozen(former, 1);
	err = datapath_wait(former);
	if (err)
		return err;
	await_openings(former);
	err = running_now(former, &now);
	if (err)
		return err;
	lost = flows_copy(&from, &to, now);
	if (lost) {
		diag_error(
			d, "flows", "",
			"flows: %u of the flows that are remembered find no room in a table of this size: choose one "
			"twice as large as it was, which always has room, or wait until fewer arcs are moved",
			lost);
		return -ENOSPC;
	}
	return 0;
}

/* Step 1, without the pins. */
static int fill(struct datapath *dp, struct running *r, struct diag *d)
{
	size_t errors = d->errors;
	int err = datapath_wait(dp); /* makes what it needs, so that it can't fail later */

	if (!err && !datapath_shares_tables(dp, r->dp))
		err = write_tables(dp, r->dp, r->state);
	if (!err && !datapath_shares_backends(dp, r->dp))
		write_backends(dp, r->dp);
	if (!err)
		err = datapath_copy_outputs(dp, r->dp);
	if (!err)
		err = datapath_carry(dp, r->dp, false);
	if (!err && !datapath_shares_flows(dp, r->dp))
		err = write_flows(dp, r->dp, d);
	if (err && d->errors == errors)
		diag_error(d, "replace", "", "what runs can't be copied into other maps: %s", strerror(-err));
	return err;
}

static bool is_later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* Arcs of a table are the same in both: when was the last old packet in each? */
static void add_arc_stamps(struct datapath *dp, const struct state_pool *p, const struct state_pool *former)
{
	char *base = (char *)header(dp) + p->region;
	struct ringlb_cold *cold = (struct ringlb_cold *)(base + p->layout.cold_off);

	for (size_t i = 0; i < former->arcs.count && p->layout.bits; i++) {
		const struct arc *a = &former->arcs.arc[i];
		struct ringlb_cold *c = &cold[table_search(&p->layout, base, a->last)];

		if (a->moved && is_later(a->stamp, c->stamp))
			__atomic_store_n(&c->stamp, a->stamp, __ATOMIC_RELAXED);
	}
}

/* Of two stamps the one that is less long ago. */
static void add_refusals(struct datapath *dp, struct datapath *former, uint32_t now)
{
	struct ringlb_tables *to = header(dp);
	const struct ringlb_tables *from = header(former);

	for (size_t i = 0; i < RINGLB_QUIC_REFUSED; i++) {
		uint16_t theirs = __atomic_load_n(&from->quic_refused[i], __ATOMIC_RELAXED);
		uint16_t ours = __atomic_load_n(&to->quic_refused[i], __ATOMIC_RELAXED);

		if ((uint16_t)(now - theirs) < (uint16_t)(now - ours))
			__atomic_store_n(&to->quic_refused[i], theirs, __ATOMIC_RELAXED);
	}
}

static int add_stamps(struct datapath *dp, const struct state *s, struct datapath *former, struct diag *d)
{
	struct state *were = running_state(former, d);

	if (!were)
		return -EPROTO;
	for (size_t i = 0; i < state_tables(s) && i < state_tables(were); i++)
		add_arc_stamps(dp, state_table_at(s, i), state_table_at(were, i));
	state_free(were);
	return 0;
}

static void add_backend_stamps(struct datapath *dp, struct datapath *former)
{
	uint32_t count, were;
	struct ringlb_backend *to = datapath_backends(dp, &count), *from = datapath_backends(former, &were);

	for (uint32_t i = 0; i < count && i < were; i++)
		if (from[i].last_old && (!to[i].last_old || is_later(from[i].last_old, to[i].last_old)))
			__atomic_store_n(&to[i].last_old, from[i].last_old, __ATOMIC_RELAXED);
}

/* Step 4, without the pins. */
static int add_rest(struct datapath *dp, const struct state *s, struct datapath *former, struct diag *d)
{
	uint32_t now;
	int err = running_now(former, &now);

	if (!err && !datapath_shares_flows(dp, former)) {
		const struct flows from = flows_of(former), to = flows_of(dp);

		flows_copy(&from, &to, now);
	}
	if (!err && !datapath_shares_tables(dp, former))
		err = add_stamps(dp, s, former, d);
	if (!err && !datapath_shares_tables(dp, former))
		add_refusals(dp, former, now);
	if (!err && !datapath_shares_backends(dp, former))
		add_backend_stamps(dp, former);
	return err ? err : datapath_carry(dp, former, true);
}

/* The former's pins; where they stay, the next command tries again. */
static void remove_former(const char *pins, struct diag *d)
{
	struct diag mine = { 0 };

	if (datapath_unpin_beside(pins, &mine))
		diag_warning(d, "left-over", "", "the pins of the former program can't be removed: %s",
			     mine.count ? mine.entry[0].message : "");
	diag_free(&mine);
}

/* Steps 3 and 4: s is what is published in dp; former may be NULL, when it can't be read. */
static int finish(const char *pins, struct datapath *dp, const struct state *s, struct datapath *former, struct diag *d)
{
	size_t errors = d->errors;
	int err = datapath_update_links(dp, pins, d);

	if (!err)
		err = datapath_wait(dp);
	if (!err && former)
		err = add_rest(dp, s, former, d);
	if (!err) {
		set_frozen(dp, 0);
		clear_pending(dp, RINGLB_PENDING_REPLACED);
		remove_former(pins, d);
	}
	if (err && d->errors == errors)
		diag_error(d, "replace", "", "what runs can't be put into another's place: %s", strerror(-err));
	return err;
}

/* The moment of the change. */
static int take_over(const char *pins, struct datapath *dp, struct diag *d)
{
	int err;

	set_pending(dp, RINGLB_PENDING_REPLACED);
	err = datapath_exchange(pins, d);
	if (err)
		clear_pending(dp, RINGLB_PENDING_REPLACED);
	return err;
}

/* Where the tables of a state lie. */
static uint32_t *regions_of(const struct state *s)
{
	uint32_t *region = xcalloc(state_tables(s) + 1, sizeof(*region));

	for (size_t i = 0; i < state_tables(s); i++)
		region[i] = state_table_at(s, i)->region;
	return region;
}

/* s's tables that lay where one of the state `of` lay in were[] lie where that one lies now. */
static void follow(struct state *s, const struct state *of, const uint32_t *were)
{
	for (size_t i = 0; i < state_tables(s); i++) {
		struct state_pool *p = state_table_at(s, i);
		size_t j = 0;

		while (j < state_tables(of) && were[j] != p->region)
			j++;
		if (p->region && j < state_tables(of))
			p->region = state_table_at(of, j)->region;
	}
}

static void put_back(struct state *s, const uint32_t *were)
{
	for (size_t i = 0; i < state_tables(s); i++)
		state_table_at(s, i)->region = were[i];
}

/* Where an interface refuses the new program: back, in the same way. */
static void back(const char *pins, struct running *r, struct datapath *dp, struct diag *d)
{
	if (!take_over(pins, r->dp, d))
		finish(pins, r->dp, r->state, dp, d);
}

int replace(const struct instance *i, struct running *r, struct state *next, const struct datapath_sizes *sizes,
	    struct diag *d)
{
	uint32_t *were = regions_of(r->state);
	struct datapath *dp, *former = r->dp;
	int err = datapath_create_beside(sizes, former, &dp, d);

	if (!err)
		err = fill(dp, r, d);
	if (!err)
		err = datapath_pin_beside(dp, i->pins, d);
	if (!err) {
		err = take_over(i->pins, dp, d);
		if (err)
			datapath_unpin_beside(i->pins, d);
	}
	if (err) {
		set_frozen(former, 0);
		put_back(r->state, were);
		goto out;
	}
	err = finish(i->pins, dp, r->state, former, d);
	if (err) {
		put_back(r->state, were);
		back(i->pins, r, dp, d);
		goto out;
	}
	datapath_write_version(dp);
	if (next)
		follow(next, r->state, were);
	r->dp = dp;
	dp = former;
out:
	datapath_free(dp);
	free(were);
	return err;
}

int replace_program(const struct instance *i, struct running *r, struct diag *d)
{
	struct datapath_sizes sizes, fresh;

	datapath_get_sizes(r->dp, &sizes);
	if (datapath_abi(r->dp) != RINGLB_ABI_VERSION) {
		commit_sizes(r->state, &fresh);
		sizes.tables = sizes.tables > fresh.tables ? sizes.tables : fresh.tables;
	}
	return replace(i, r, NULL, &sizes, d);
}

int replace_repair(const struct instance *i, struct running *r, struct diag *d)
{
	int err;

	if (!(header(r->dp)->pending & RINGLB_PENDING_REPLACED)) {
		set_frozen(r->dp, 0);
		remove_former(i->pins, d);
		return 0;
	}
	err = finish(i->pins, r->dp, r->state, datapath_former(r->dp), d);
	if (!err)
		diag_warning(d, "repaired", "",
			     "a command was interrupted while another program took over: it runs everywhere now");
	return err;
}
