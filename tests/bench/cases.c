/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The packet path: which packets, to which service of which pool. */
#include <netinet/in.h>

#include "packets.h"

#define BACKENDS 100u

/* Of each family. */
enum pool { POOL_40K, POOL_16K, POOL_65K, POOL_1M, POOLS };
enum service { L2, IPIP, GUE, UDP, ALWAYS, IPIP_16K, IPIP_65K, IPIP_1M, SERVICES };

#define SETTLED_POOLS(family)                                                                                          \
	{ .ipv6 = (family), .backends = BACKENDS, .vnodes = 400 },                                                     \
		{ .ipv6 = (family), .backends = BACKENDS, .vnodes = 164 },                                             \
		{ .ipv6 = (family), .backends = BACKENDS, .vnodes = 655 },                                             \
	{                                                                                                              \
		.ipv6 = (family), .backends = BACKENDS, .vnodes = 10000                                                \
	}

#define SERVICE(number, how, kept, which)                                                                              \
	{                                                                                                              \
		.pool = (number), .forward = (how), .track = (kept), .protocol = (which), .addresses = 1               \
	}
#define IPIP_TO(number) SERVICE(number, RINGLB_FORWARD_IPIP, RINGLB_TRACK_MOVED, IPPROTO_TCP)

#define SETTLED_SERVICES(first)                                                                                        \
	SERVICE((first) + POOL_40K, RINGLB_FORWARD_L2, RINGLB_TRACK_MOVED, IPPROTO_TCP), IPIP_TO((first) + POOL_40K),  \
		SERVICE((first) + POOL_40K, RINGLB_FORWARD_GUE, RINGLB_TRACK_MOVED, IPPROTO_TCP),                      \
		SERVICE((first) + POOL_40K, RINGLB_FORWARD_IPIP, RINGLB_TRACK_NONE, IPPROTO_UDP),                      \
		SERVICE((first) + POOL_40K, RINGLB_FORWARD_IPIP, RINGLB_TRACK_ALWAYS, IPPROTO_TCP),                    \
		IPIP_TO((first) + POOL_16K), IPIP_TO((first) + POOL_65K), IPIP_TO((first) + POOL_1M)

static const struct pool_spec settled_pools[] = { SETTLED_POOLS(false), SETTLED_POOLS(true) };
static const struct service_spec settled_services[] = { SETTLED_SERVICES(0), SETTLED_SERVICES(POOLS) };
/* A flow table in which a million flows of each family find room. */
static const struct balancer_spec settled = { settled_pools, 2 * POOLS, settled_services, 2 * SERVICES,
					      .flows = 4000000 };

/* A backend of 101 drains; 25 of 100 do, and as many come; all are replaced. */
enum moved { MOVED_1, MOVED_25, MOVED_ALL, MOVED };

#define MOVED_POOLS(family)                                                                                            \
	{ .ipv6 = (family), .backends = BACKENDS + 1, .drained = 1, .vnodes = 400 },                                   \
		{ .ipv6 = (family), .backends = BACKENDS + 33, .drained = 33, .vnodes = 400 },                         \
	{                                                                                                              \
		.ipv6 = (family), .backends = BACKENDS, .drained = BACKENDS, .added = BACKENDS, .vnodes = 400          \
	}

static const struct pool_spec moved_pools[] = { MOVED_POOLS(false), MOVED_POOLS(true) };
static const struct service_spec moved_services[] = { IPIP_TO(0), IPIP_TO(1), IPIP_TO(2),
						      IPIP_TO(3), IPIP_TO(4), IPIP_TO(5) };
static const struct balancer_spec moved = { moved_pools, 2 * MOVED, moved_services, 2 * MOVED, .flows = 0 };

static struct {
	struct balancer *settled, *moved;
	struct packet_cases cases;
	struct packet_floors floors;
} self;

static const struct {
	uint32_t flows;
	const char *name;
} amount[] = { { 1, "1 flow" }, { 100000, "100,000 flows" }, { 1000000, "1,000,000 flows" } };

static void add(struct balancer *b, unsigned int service, enum packet_kind kind, uint32_t flows, struct figure *f)
{
	packets_add(&self.cases,
		    (struct packet_case){ .what = BALANCER,
					  .balancer = b,
					  .stream = { .service = service, .kind = kind, .flows = flows },
					  .figure = f },
		    &self.floors);
}

/* Of amounts first, first + 1, ... */
static void add_amounts(struct balancer *b, unsigned int service, size_t first, const char *family, const char *what)
{
	for (size_t i = first; i < sizeof(amount) / sizeof(amount[0]); i++)
		add(b, service, PACKET_TCP, amount[i].flows,
		    figure_new("ns", "%s %s, %s", family, what, amount[i].name));
}

static struct packet_case *last_case(void)
{
	return &self.cases.item[self.cases.count - 1];
}

/* Each SYN is another flow's; of so many that most find an empty place in a flow table of the default size. */
static void add_openings(unsigned int service, enum table_state table, const char *family, const char *what)
{
	add(self.moved, service, PACKET_SYN, 1000000,
	    figure_new("ns", "%s ipip, SYNs in moved arcs, %s", family, what));
	last_case()->table = table;
	last_case()->most = 20000;
}

static void add_tracked(unsigned int service, const char *family)
{
	size_t first = self.cases.count;

	add_amounts(self.settled, service, 1, family, "ipip, track: always");
	for (size_t i = first; i < self.cases.count; i++)
		self.cases.item[i].table = TABLE_FLOWS;
}

static void add_family(bool ipv6)
{
	const char *family = ipv6 ? "IPv6" : "IPv4";
	const unsigned int first = ipv6 ? SERVICES : 0, first_moved = ipv6 ? MOVED : 0;
	struct packet_case other = { .what = BALANCER,
				     .balancer = self.settled,
				     .stream = { .service = BALANCER_OTHER, .ipv6 = ipv6, .flows = 1000000 },
				     .figure = figure_new("ns", "%s for no service", family) };

	packets_add(&self.cases, other, &self.floors);
	add_amounts(self.settled, first + L2, 0, family, "l2");
	add_amounts(self.settled, first + IPIP, 0, family, "ipip");
	add_amounts(self.settled, first + GUE, 0, family, "gue");
	add_amounts(self.settled, first + IPIP_16K, 2, family, "ipip, 16,400 points");
	add_amounts(self.settled, first + IPIP_65K, 2, family, "ipip, 65,500 points");
	add_amounts(self.settled, first + IPIP_1M, 2, family, "ipip, 1,000,000 points");
	add(self.settled, first + UDP, PACKET_UDP, BENCH_MAX_FLOWS,
	    figure_new("ns", "%s ipip, UDP, every packet a new flow", family));
	add(self.settled, first + IPIP, PACKET_SYN, 1000000, figure_new("ns", "%s ipip, SYNs in settled arcs", family));
	add_openings(first_moved + MOVED_ALL, TABLE_EMPTY, family, "most remembered");
	add_openings(first_moved + MOVED_ALL, TABLE_OPENINGS, family, "none remembered");
	add_amounts(self.moved, first_moved + MOVED_1, 1, family, "ipip, 1 % moved");
	add_amounts(self.moved, first_moved + MOVED_25, 1, family, "ipip, 25 % moved");
	add_tracked(first + ALWAYS, family);
}

/* Each flow of services with track: always is remembered from its first packet on. */
static void fill_flow_table(void)
{
	for (size_t i = 0; i < self.cases.count; i++) {
		struct packet_case *c = &self.cases.item[i];
		struct ringlb_flow_counters before, after;

		if (c->table != TABLE_FLOWS || c->stream.flows < 1000000)
			continue;
		datapath_flow_counters(self.settled->running.dp, &before);
		c->table = TABLE_FILLING;
		packets_run(&self.cases, c, c->stream.flows, false);
		c->table = TABLE_FLOWS;
		datapath_flow_counters(self.settled->running.dp, &after);
		figure_add(figure_new("flows", "%s: remembered", c->figure->name),
			   (double)(after.established - before.established));
	}
}

static void size_figures(struct balancer_size size)
{
	figure_add(figure_new("instructions", "program, verified"), size.verified);
	figure_add(figure_new("instructions", "program, loaded"), size.loaded);
	figure_add(figure_new("bytes", "program, machine code"), size.bytes);
}

void packets_sizes(void)
{
	struct balancer *b = balancer_start(0, &moved);
	struct balancer_size size = balancer_size_of(b);

	printf("{\"verified\": %u, \"loaded\": %u, \"bytes\": %u}\n", size.verified, size.loaded, size.bytes);
	balancer_stop(b);
}

static void load(void)
{
	self.settled = balancer_start(0, &settled);
	self.moved = balancer_start(1, &moved);
	size_figures(balancer_size_of(self.settled));
	packets_open(&self.cases, self.settled);
	packets_add_floors(&self.cases, self.settled, "", &self.floors);
	add_family(false);
	add_family(true);
	fill_flow_table();
}

static void sample(uint32_t count, bool record)
{
	packets_sample(&self.cases, count, record);
}

static void plant(void)
{
	packets_plant(&self.cases);
}

static void stop(void)
{
	packets_close(&self.cases);
	balancer_stop(self.settled);
	balancer_stop(self.moved);
}

const struct part part_packets = { "packets", load, sample, 0, plant, stop };
