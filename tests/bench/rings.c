/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring's search alone, at several sizes, beside a flat table. */
#include "bench.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "diag.h"
#include "ring.h"
#include "table.h"
#include "tests/bench/lookup.skel.h"

#define FIRST_KEY 12345u
#define MAX_CASES 16
#define BACKENDS 100u
#define FLAT_FROM 1 /* whose owners the flat table has */

enum kind { NOTHING, FLAT, RING };

struct ring_case {
	enum kind kind;
	unsigned int which; /* of the rings */
	bool dependent;
	uint32_t runs; /* that `sum` and `key` are due after */
	uint64_t sum;
	uint32_t key;
	struct figure *figure;
};

static const struct {
	uint32_t points;
	const char *name;
} size_of_ring[BENCH_RINGS] = {
	{ 16384, "16,384" }, { 40000, "40,000" }, { 65536, "65,536" }, { 1u << 20, "1,048,576" }
};

static struct {
	struct lookup_bpf *skel;
	struct arcs arcs[BENCH_RINGS];
	struct table_layout layout[BENCH_RINGS];
	uint32_t offset[BENCH_RINGS];
	size_t bytes; /* of the map `tables` */
	uint16_t *flat;
	struct ring_case item[MAX_CASES];
	size_t cases;
} self;

static void build_ring(unsigned int which)
{
	struct ring_member member[BACKENDS];
	char identity[BACKENDS][8];
	const uint32_t points = size_of_ring[which].points;

	for (unsigned int i = 0; i < BACKENDS; i++) {
		snprintf(identity[i], sizeof(identity[i]), "b%u", i);
		member[i].identity = identity[i];
		member[i].points = points / BACKENDS + (i < points % BACKENDS);
	}
	if (ring_build(member, BACKENDS, &self.arcs[which]) ||
	    table_layout(&self.arcs[which], BACKENDS, &self.layout[which]))
		bench_die(0, "the ring of %s points can't be built", size_of_ring[which].name);
	if (!self.bytes)
		self.bytes = RINGLB_TABLES_HEADER; /* as in an instance; nothing is looked up at 0 */
	self.offset[which] = (uint32_t)self.bytes;
	self.bytes += self.layout[which].length;
}

static void write_ring(unsigned int which, void *memory)
{
	const struct table_layout *l = &self.layout[which];
	const uint32_t at = self.offset[which];
	uint16_t owner[BACKENDS];

	for (uint16_t i = 0; i < BACKENDS; i++)
		owner[i] = i;
	table_encode(&self.arcs[which], owner, BACKENDS, l, memory);
	self.skel->bss->look.ring[which] = (struct ringlb_service){
		.bits = (uint8_t)l->bits,
		.index_off = at + l->index_off,
		.points_off = at + l->points_off,
		.owners_off = at + l->owners_off,
		.points = l->points,
		.owners = l->owners,
	};
}

static void write_flat(void)
{
	const struct arcs *arcs = &self.arcs[FLAT_FROM];
	int fd = bpf_map__fd(self.skel->maps.flat);

	self.flat = xcalloc(BENCH_FLAT_SLOTS, sizeof(*self.flat));
	for (uint32_t slot = 0; slot < BENCH_FLAT_SLOTS; slot++) {
		uint32_t position = (uint32_t)(((uint64_t)slot << 32) / BENCH_FLAT_SLOTS), owner;

		owner = self.flat[slot] = arcs->arc[arcs_find(arcs, position)].owner;
		if (bpf_map_update_elem(fd, &slot, &owner, BPF_ANY))
			bench_die(errno, "the flat table");
	}
}

static void write_tables(void)
{
	const uint32_t zero = 0;
	char *value = xcalloc(1, self.bytes);

	for (unsigned int i = 0; i < BENCH_RINGS; i++)
		write_ring(i, value + self.offset[i]);
	if (bpf_map_update_elem(bpf_map__fd(self.skel->maps.tables), &zero, value, BPF_ANY))
		bench_die(errno, "the rings");
	free(value);
}

static struct figure *add(struct ring_case c, const struct figure *loop, const struct figure *flat)
{
	const char *keys = c.dependent ? "dependent" : "independent";

	if (self.cases == MAX_CASES)
		bench_die(0, "MAX_CASES");
	if (c.kind == NOTHING)
		c.figure = figure_new("ns", "floor: loop without look-up, %s", keys);
	else if (c.kind == FLAT)
		c.figure = figure_new("ns", "look-up, flat, %s", keys);
	else
		c.figure = figure_new("ns", "look-up, %s points, %s", size_of_ring[c.which].name, keys);
	c.figure->frame = loop;
	c.figure->flat = c.kind == FLAT ? c.figure : flat;
	self.item[self.cases++] = c;
	return c.figure;
}

static void add_cases(bool dependent)
{
	struct ring_case c = { .kind = NOTHING, .dependent = dependent };
	const struct figure *loop = add(c, NULL, NULL), *flat;

	c.kind = FLAT;
	flat = add(c, loop, NULL);
	c.kind = RING;
	for (c.which = 0; c.which < BENCH_RINGS; c.which++)
		add(c, loop, flat);
}

/* The data plane's headers bring all of its maps along. */
static void leave_out_maps(void)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, self.skel->obj) if (!bpf_map__is_internal(map) && map != self.skel->maps.tables &&
							  map != self.skel->maps.flat)
		bpf_map__set_autocreate(map, false);
}

static void rings_load(void)
{
	for (unsigned int i = 0; i < BENCH_RINGS; i++)
		build_ring(i);
	self.bytes += RINGLB_TABLES_SLACK;
	self.skel = lookup_bpf__open();
	if (!self.skel || bpf_map__set_value_size(self.skel->maps.tables, (uint32_t)self.bytes))
		bench_die(errno, "the look-ups");
	leave_out_maps();
	self.skel->rodata->sizes.tables_bound = (uint32_t)self.bytes - RINGLB_TABLES_SLACK;
	if (lookup_bpf__load(self.skel))
		bench_die(errno, "the look-ups");
	write_tables();
	write_flat();
	add_cases(true);
	add_cases(false);
}

static void rings_free(void)
{
	for (unsigned int i = 0; i < BENCH_RINGS; i++)
		arcs_free(&self.arcs[i]);
	lookup_bpf__destroy(self.skel);
	free(self.flat);
}

static uint32_t answer(const struct ring_case *c, uint32_t position)
{
	const struct arcs *arcs = &self.arcs[c->which];

	if (c->kind == NOTHING)
		return position & 63;
	if (c->kind == FLAT)
		return self.flat[position % BENCH_FLAT_SLOTS];
	return arcs->arc[arcs_find(arcs, position)].owner;
}

/* Every sample starts from the same key, so that what is due has to be computed once. */
static void compute_due(struct ring_case *c, uint32_t runs)
{
	if (c->runs == runs)
		return;
	c->runs = runs;
	c->sum = 0;
	c->key = FIRST_KEY;
	for (uint64_t i = 0; i < (uint64_t)runs * BENCH_KEYS; i++) {
		uint32_t owner = answer(c, bench_position(c->key));

		c->sum += owner;
		c->key = bench_next_key(c->key, c->dependent ? owner : 0);
	}
}

static int program_of(const struct ring_case *c)
{
	const struct bpf_program *const prog[][2] = {
		[NOTHING] = { self.skel->progs.look_nothing, self.skel->progs.look_nothing_chained },
		[FLAT] = { self.skel->progs.look_flat, self.skel->progs.look_flat_chained },
		[RING] = { self.skel->progs.look_ring, self.skel->progs.look_ring_chained },
	};

	return bpf_program__fd(prog[c->kind][c->dependent]);
}

static double run_case(struct ring_case *c, uint32_t runs)
{
	static const uint8_t frame[BENCH_FRAME_IPV4];
	struct bench_run r = { .prog = program_of(c), .in = frame, .in_length = sizeof(frame) };
	struct bench_look *look = &self.skel->bss->look;
	double ns;

	compute_due(c, runs);
	look->which = c->which;
	look->key = FIRST_KEY;
	look->sum = 0;
	ns = bench_run(&r, runs) / BENCH_KEYS;
	if (r.action != XDP_PASS)
		bench_wrong(c->figure->name, "action %u", r.action);
	if (look->sum != c->sum || look->key != c->key)
		bench_wrong(c->figure->name, "wrong owners: their sum is %llu instead of %llu",
			    (unsigned long long)look->sum, (unsigned long long)c->sum);
	return ns;
}

static void rings_round(uint32_t count, bool record)
{
	/* Twice as many as packets, so that most of a million points are met. */
	const uint32_t runs = (2 * count + BENCH_KEYS - 1) / BENCH_KEYS;

	for (size_t i = 0; i < self.cases; i++) {
		double ns = run_case(&self.item[i], runs);

		if (record)
			figure_add(self.item[i].figure, ns);
	}
}

static void rings_self_test(void)
{
	for (size_t i = 0; i < self.cases; i++) {
		struct ring_case *c = &self.item[i];

		if (c->kind != RING)
			continue;
		/* Another ring's owners are as good as a wrong search. */
		bench_plant();
		compute_due(c, 1);
		c->which = (c->which + 1) % BENCH_RINGS;
		run_case(c, 1);
		bench_noticed(c->figure->name, "wrong owners");
		c->which = (c->which + BENCH_RINGS - 1) % BENCH_RINGS;
	}
}

const struct part part_lookup = { "lookup", rings_load, rings_round, 0, rings_self_test, rings_free };
