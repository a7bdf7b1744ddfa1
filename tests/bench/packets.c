/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs under test behind the driver, and what must hold after each of their runs. */
#include "bench.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "tests/bench/driver.skel.h"

#define MAX_CASES 32
#define SELF_TEST_PACKETS 5000u

enum under_test { FLOOR_BARE, FLOOR_EMPTY, FLOOR_SWAP, FLOOR_OUTER, BALANCER };

struct packet_case {
	enum under_test what;
	bool ipv6;
	enum traffic traffic; /* BALANCER */
	uint32_t flows;
	uint32_t next; /* flow that comes next */
	struct figure *figure;
};

static struct {
	struct driver_bpf *driver;
	int balancer;
	struct packet_case item[MAX_CASES];
	size_t cases;
} self;

/* What a figure of a program behind the driver is made of: the driver costs what it adds to the empty program. */
static struct figure *add(struct packet_case c, const struct figure *bare, const struct figure *empty)
{
	if (self.cases == MAX_CASES)
		bench_die(0, "MAX_CASES");
	c.figure->frame = empty ? empty : bare ? c.figure : NULL;
	c.figure->frame_floor = bare;
	c.figure->empty = bare ? bare : c.figure;
	self.item[self.cases++] = c;
	return c.figure;
}

static void add_balancer(bool ipv6, enum traffic traffic, const struct figure *bare, const struct figure *empty)
{
	static const struct {
		uint32_t flows;
		const char *name;
	} kind[] = { { 1, "1 flow" }, { 100000, "100,000 flows" }, { 1000000, "1,000,000 flows" } };
	const char *family = ipv6 ? "IPv6" : "IPv4", *forward = traffic == TRAFFIC_L2 ? "l2" : "ipip";
	struct packet_case c = { .what = BALANCER, .ipv6 = ipv6, .traffic = traffic, .flows = 1000000 };

	if (traffic == TRAFFIC_OTHER) {
		c.figure = figure_new("ns", "%s for no service", family);
		add(c, bare, empty);
		return;
	}
	for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		c.flows = kind[i].flows;
		c.figure = figure_new("ns", "%s %s, %s", family, forward, kind[i].name);
		add(c, bare, empty);
	}
}

static void add_family(bool ipv6, const struct figure *bare)
{
	const char *family = ipv6 ? "IPv6" : "IPv4";
	struct packet_case c = { .what = FLOOR_EMPTY, .ipv6 = ipv6, .flows = 1 };
	const struct figure *empty;

	c.figure = figure_new("ns", "%s floor: empty program behind the driver", family);
	empty = add(c, bare, NULL);
	c.what = FLOOR_SWAP;
	c.figure = figure_new("ns", "%s floor: parse, swap MACs", family);
	add(c, bare, empty);
	c.what = FLOOR_OUTER;
	c.figure = figure_new("ns", "%s floor: parse, constant outer header", family);
	add(c, bare, empty);
	for (int traffic = 0; traffic < TRAFFIC_KINDS; traffic++)
		add_balancer(ipv6, (enum traffic)traffic, bare, empty);
}

void packets_load(void)
{
	struct packet_case c = { .what = FLOOR_BARE, .flows = 1 };

	self.driver = driver_bpf__open_and_load();
	if (!self.driver)
		bench_die(errno, "the driver");
	self.balancer = instance_prog();
	instance_figures();
	c.figure = figure_new("ns", "floor: empty program");
	add(c, NULL, NULL);
	add_family(false, c.figure);
	add_family(true, c.figure);
}

void packets_free(void)
{
	close(self.balancer);
	driver_bpf__destroy(self.driver);
}

static int program_of(const struct packet_case *c)
{
	switch (c->what) {
	case FLOOR_BARE:
	case FLOOR_EMPTY:
		return bpf_program__fd(self.driver->progs.floor_empty);
	case FLOOR_SWAP:
		return bpf_program__fd(self.driver->progs.floor_swap);
	case FLOOR_OUTER:
		return bpf_program__fd(self.driver->progs.floor_outer);
	case BALANCER:
		break;
	}
	return self.balancer;
}

static uint32_t length_left(const struct packet_case *c, uint32_t frame)
{
	if (c->what == FLOOR_OUTER)
		return frame + (uint32_t)sizeof(struct iphdr);
	if (c->what == BALANCER && c->traffic == TRAFFIC_IPIP)
		return frame + (uint32_t)(c->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	return frame;
}

/* The last frame as it left: its action, its length, and, where it says so, its backend. */
static void check_last(const struct packet_case *c, const struct bench_run *r, uint32_t last_flow)
{
	const uint32_t action = c->what == BALANCER && c->traffic == TRAFFIC_OTHER ? XDP_PASS : XDP_TX;
	const size_t address = ETH_HLEN + (c->ipv6 ? offsetof(struct ipv6hdr, daddr) : offsetof(struct iphdr, daddr));

	if (r->action != action)
		bench_wrong(c->figure->name, "action %u instead of %u", r->action, action);
	if (r->out_length != r->in_length)
		bench_wrong(c->figure->name, "the last frame has %u bytes instead of %u", r->out_length, r->in_length);
	if (c->what == BALANCER && c->traffic == TRAFFIC_IPIP) {
		const uint8_t *backend = instance_backend(c->ipv6, c->traffic, last_flow);

		if (memcmp(&r->out[address], c->ipv6 ? backend : backend + 12, c->ipv6 ? 16 : 4))
			bench_wrong(c->figure->name, "the last frame goes to another backend");
	}
}

static double run_bare(const struct packet_case *c, uint32_t count)
{
	static const uint8_t frame[BENCH_FRAME_IPV4];
	struct bench_run r = { .prog = program_of(c), .in = frame, .in_length = sizeof(frame) };
	double ns = bench_run(&r, count);

	check_last(c, &r, 0);
	return ns;
}

static void prepare(const struct packet_case *c, struct bench_run *r, bool keep_frame)
{
	const uint32_t zero = 0;
	const int prog = program_of(c), slot = bpf_map__fd(self.driver->maps.under_test);
	struct bench_drive *drive = &self.driver->bss->drive;
	uint8_t frame[BENCH_FRAME_IPV6];
	uint32_t length = (uint32_t)instance_frame(c->ipv6, c->traffic, frame);

	r->prog = bpf_program__fd(c->ipv6 ? self.driver->progs.drive_ipv6 : self.driver->progs.drive_ipv4);
	r->ifindex = place_ifindex();
	r->in_length = length_left(c, length);
	*drive = (struct bench_drive){
		.flow = c->next,
		.flows = c->flows,
		.left = r->in_length,
		.keep_frame = keep_frame,
	};
	memcpy(drive->frame, frame, sizeof(frame));
	if (bpf_map_update_elem(slot, &zero, &prog, BPF_ANY))
		bench_die(errno, "the program under test");
}

static double run_driven(struct packet_case *c, uint32_t count, bool keep_frame)
{
	static const uint8_t in[BENCH_FRAME_IPV6 + sizeof(struct ipv6hdr)];
	const volatile struct bench_drive *drive = &self.driver->bss->drive;
	const char *name = c->figure->name;
	const uint32_t first = c->next;
	struct bench_run r = { .in = in };
	double ns;

	prepare(c, &r, keep_frame);
	instance_mark();
	ns = bench_run(&r, count);
	c->next = (uint32_t)(((uint64_t)first + count) % c->flows);
	if (drive->flow != c->next)
		bench_wrong(name, "the driver stands at flow %u instead of %u", drive->flow, c->next);
	if (drive->wrong)
		bench_wrong(name, "%llu frames left with another length", (unsigned long long)drive->wrong);
	check_last(c, &r, (c->next + c->flows - 1) % c->flows);
	if (c->what == BALANCER)
		instance_check(name, c->ipv6, c->traffic, first, c->flows, count);
	return ns;
}

void packets_round(uint32_t count, bool record)
{
	for (size_t i = 0; i < self.cases; i++) {
		struct packet_case *c = &self.item[i];
		double ns;

		if (c->what == FLOOR_BARE) {
			ns = run_bare(c, count);
		} else {
			/* Brings what the flows use into the caches, as far as it fits. */
			run_driven(c, count / 4, false);
			ns = run_driven(c, count, false);
		}
		if (record)
			figure_add(c->figure, ns);
	}
}

void packets_self_test(void)
{
	for (size_t i = 0; i < self.cases; i++) {
		struct packet_case *c = &self.item[i];
		const char *name = c->figure->name;

		/* What is for no service has no backend, and leaves as it came: there is nothing to plant. */
		if (c->what != BALANCER || c->traffic == TRAFFIC_OTHER || c->flows == 1)
			continue;
		bench_plant();
		run_driven(c, SELF_TEST_PACKETS, true);
		bench_noticed(name, "a frame that was fed what it had left");
		instance_plant(true);
		bench_plant();
		run_driven(c, SELF_TEST_PACKETS, false);
		bench_noticed(name, "a wrong backend");
		instance_plant(false);
	}
}
