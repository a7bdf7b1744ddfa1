/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "packets.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "tests/bench/driver.skel.h"

#define SELF_TEST_PACKETS 5000u

static struct driver_bpf *load_driver(bool pieces)
{
	struct driver_bpf *driver = driver_bpf__open();
	struct bpf_program *prog;

	if (!driver)
		bench_die(errno, "the driver");
	bpf_object__for_each_program(prog, driver->obj) if (pieces) bpf_program__set_flags(prog, BPF_F_XDP_HAS_FRAGS);
	if (driver_bpf__load(driver))
		bench_die(errno, "the driver");
	return driver;
}

static int set_under_test(const struct driver_bpf *driver, int prog)
{
	const uint32_t zero = 0;

	return bpf_map_update_elem(bpf_map__fd(driver->maps.under_test), &zero, &prog, BPF_ANY);
}

void packets_open(struct packet_cases *p, const struct balancer *b)
{
	int prog = balancer_prog(b);

	*p = (struct packet_cases){ .driver = load_driver(false) };
	if (set_under_test(p->driver, prog)) {
		driver_bpf__destroy(p->driver);
		p->driver = load_driver(true);
		if (set_under_test(p->driver, prog))
			bench_die(errno, "the program under test");
	}
	close(prog);
}

void packets_close(struct packet_cases *p)
{
	driver_bpf__destroy(p->driver);
	free(p->item);
}

void packets_add(struct packet_cases *p, struct packet_case c, const struct packet_floors *floors)
{
	const bool ipv6 = c.what != FLOOR_BARE && balancer_is_ipv6(c.balancer, &c.stream);
	const struct figure *empty = floors ? floors->empty[ipv6] : NULL, *bare = floors ? floors->bare : NULL;

	c.figure->frame = empty ? empty : bare ? c.figure : NULL;
	c.figure->frame_floor = bare;
	c.figure->empty = bare ? bare : c.figure;
	p->item = xreallocarray(p->item, p->count + 1, sizeof(*p->item));
	p->item[p->count++] = c;
}

static const struct figure *add_floor(struct packet_cases *p, struct balancer *b, bool ipv6, enum under_test what,
				      const struct packet_floors *floors, struct figure *f)
{
	packets_add(p,
		    (struct packet_case){ .what = what,
					  .balancer = b,
					  .stream = { .service = BALANCER_OTHER, .ipv6 = ipv6, .flows = 1 },
					  .figure = f },
		    floors);
	return f;
}

void packets_add_floors(struct packet_cases *p, struct balancer *b, const char *label, struct packet_floors *out)
{
	*out = (struct packet_floors){ 0 };
	out->bare = add_floor(p, b, false, FLOOR_BARE, NULL, figure_new("ns", "%sfloor: empty program", label));
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		const char *family = ipv6 ? "IPv6" : "IPv4";

		out->empty[ipv6] = add_floor(p, b, ipv6, FLOOR_EMPTY, out,
					     figure_new("ns", "%s%s floor: empty program behind the driver", label,
							family));
		if (*label)
			continue;
		add_floor(p, b, ipv6, FLOOR_SWAP, out, figure_new("ns", "%s floor: parse, swap MACs", family));
		add_floor(p, b, ipv6, FLOOR_OUTER, out,
			  figure_new("ns", "%s floor: parse, constant outer header", family));
	}
}

static int program_of(const struct packet_cases *p, const struct packet_case *c)
{
	switch (c->what) {
	case FLOOR_BARE:
	case FLOOR_EMPTY:
		return bpf_program__fd(p->driver->progs.floor_empty);
	case FLOOR_SWAP:
		return bpf_program__fd(p->driver->progs.floor_swap);
	case FLOOR_OUTER:
		return bpf_program__fd(p->driver->progs.floor_outer);
	case BALANCER:
		break;
	}
	return -1;
}

static uint32_t length_left(const struct packet_case *c, uint32_t frame)
{
	if (c->what == FLOOR_OUTER)
		return frame + (uint32_t)sizeof(struct iphdr);
	return c->what == BALANCER ? frame + balancer_outer(c->balancer, &c->stream) : frame;
}

/* The last frame as it left: its action, its length, and, where it says so, its backend. */
static void check_last(const struct packet_case *c, const struct bench_run *r)
{
	const struct stream *s = &c->stream;
	const uint32_t last = (uint32_t)(((uint64_t)s->first + s->count - 1) % s->flows);
	const bool mine = c->what == BALANCER && s->service != BALANCER_OTHER;
	const uint32_t action = c->what == BALANCER && !mine ? XDP_PASS : XDP_TX;
	const bool ipv6 = c->what == BALANCER && balancer_is_ipv6(c->balancer, s);
	const size_t at = ETH_HLEN + (ipv6 ? offsetof(struct ipv6hdr, daddr) : offsetof(struct iphdr, daddr));
	struct address to;

	if (r->action != action)
		bench_wrong(c->figure->name, "action %u instead of %u", r->action, action);
	if (r->out_length != r->in_length)
		bench_wrong(c->figure->name, "the last frame has %u bytes instead of %u", r->out_length, r->in_length);
	/* Which of the SYNs in a bucket was first is checked by the counters. */
	if (!mine || !balancer_outer(c->balancer, s) || c->table == TABLE_EMPTY)
		return;
	balancer_backend(c->balancer, s, c->table, last, &to);
	if (memcmp(&r->out[at], ipv6 ? to.byte : to.byte + 12, ipv6 ? 16 : 4))
		bench_wrong(c->figure->name, "the last frame goes to another backend");
}

static double run_bare(const struct packet_cases *p, struct packet_case *c, uint32_t count)
{
	static const uint8_t frame[BENCH_FRAME_IPV4];
	struct bench_run r = { .prog = program_of(p, c), .in = frame, .in_length = sizeof(frame) };
	double ns = bench_run(&r, count);

	c->stream.count = count;
	check_last(c, &r);
	return ns;
}

static void prepare(struct packet_cases *p, const struct packet_case *c, struct bench_run *r, bool keep_frame)
{
	const struct stream *s = &c->stream;
	const bool ipv6 = balancer_is_ipv6(c->balancer, s);
	const int prog = c->what == BALANCER ? balancer_prog(c->balancer) : program_of(p, c);
	struct bench_drive *drive = &p->driver->bss->drive;
	uint8_t frame[BENCH_FRAME_IPV6];
	uint32_t length = (uint32_t)balancer_frame(c->balancer, s, frame);
	const size_t service_at = ipv6 ? BENCH_SERVICE_AT_IPV6 : BENCH_SERVICE_AT_IPV4;

	r->prog = bpf_program__fd(ipv6 ? p->driver->progs.drive_ipv6 : p->driver->progs.drive_ipv4);
	r->ifindex = balancer_ifindex(c->balancer);
	r->in_length = length_left(c, length);
	*drive = (struct bench_drive){
		.flow = s->first,
		.flows = s->flows,
		.left = r->in_length,
		.keep_frame = keep_frame,
		.service = (uint32_t)frame[service_at] << 8 | frame[service_at + 1],
		.service_mask = balancer_address_mask(c->balancer, s),
	};
	memcpy(drive->frame, frame, sizeof(frame));
	memset((uint8_t *)drive->frame + service_at, 0, 2);
	if (set_under_test(p->driver, prog))
		bench_die(errno, "the program under test");
	if (c->what == BALANCER)
		close(prog);
}

double packets_run_unchecked(struct packet_cases *p, struct packet_case *c, uint32_t count, bool keep_frame)
{
	static const uint8_t in[BENCH_FRAME_IPV6 + sizeof(struct ipv6hdr) + 8];
	const volatile struct bench_drive *drive = &p->driver->bss->drive;
	const char *name = c->figure->name;
	struct bench_run r = { .in = in };
	struct stream *s = &c->stream;
	double ns;

	if (c->what == FLOOR_BARE)
		return run_bare(p, c, count);
	s->first = (uint32_t)(((uint64_t)s->first + s->count) % s->flows);
	s->count = count;
	prepare(p, c, &r, keep_frame);
	ns = bench_run(&r, count);
	if (drive->flow != (uint32_t)(((uint64_t)s->first + count) % s->flows))
		bench_wrong(name, "the driver stands at flow %u", drive->flow);
	if (drive->wrong)
		bench_wrong(name, "%llu frames left with another length", (unsigned long long)drive->wrong);
	check_last(c, &r);
	return ns;
}

double packets_run(struct packet_cases *p, struct packet_case *c, uint32_t count, bool keep_frame)
{
	double ns;

	if (c->what != BALANCER)
		return packets_run_unchecked(p, c, count, keep_frame);
	balancer_table(c->balancer, c->table);
	balancer_mark(c->balancer);
	ns = packets_run_unchecked(p, c, count, keep_frame);
	balancer_check(c->balancer, c->figure->name, &c->stream, c->table);
	return ns;
}

void packets_sample(struct packet_cases *p, uint32_t count, bool record)
{
	for (size_t i = 0; i < p->count; i++) {
		struct packet_case *c = &p->item[i];
		const uint32_t packets = c->most && c->most < count ? c->most : count;
		double ns;

		if (c->what == BALANCER && bench_only && !strstr(c->figure->name, bench_only))
			continue;
		/* Brings what the flows use into the caches, as far as it fits. */
		packets_run(p, c, packets / 4, false);
		ns = packets_run(p, c, packets, false);
		if (record)
			figure_add(c->figure, ns);
	}
}

void packets_plant(struct packet_cases *p)
{
	for (size_t i = 0; i < p->count; i++) {
		struct packet_case *c = &p->item[i];
		const char *name = c->figure->name;

		/* What is for no service has no backend, and leaves as it came: there is nothing to plant. */
		if (c->what != BALANCER || c->stream.service == BALANCER_OTHER || c->stream.flows == 1)
			continue;
		bench_plant();
		packets_run(p, c, SELF_TEST_PACKETS, true);
		bench_noticed(name, "a frame that was fed what it had left");
		if (c->table == TABLE_FLOWS) { /* which the pools' tables don't matter to */
			balancer_table(c->balancer, TABLE_EMPTY);
			bench_plant();
			packets_run(p, c, SELF_TEST_PACKETS, false);
			bench_noticed(name, "forgotten flows");
			continue;
		}
		balancer_plant(c->balancer, true);
		bench_plant();
		packets_run(p, c, SELF_TEST_PACKETS, false);
		bench_noticed(name, "a wrong backend");
		balancer_plant(c->balancer, false);
	}
}
