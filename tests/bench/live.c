/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that really travel: one end of a pair of interfaces sends them, as fast as one CPU makes them, the program at
 * the other end sends them back, and the first end counts what arrives. Making, steering and counting share a CPU, so
 * that the figures are of all of it; beside the balancer stand programs that drop, or only send back.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "packets.h"
#include "tests/bench/driver.skel.h"

#define PAIR 6 /* of interfaces, and the next */
#define FLOWS 100000u
#define BATCH 64u
#define MORE 5u /* times as many frames as in a test run */

enum other_end { DROP, EMPTY, STEER_L2, STEER_IPIP, KINDS };

static const struct pool_spec pool = { .backends = 100, .vnodes = 400 };
static const struct service_spec service[] = {
	{ .forward = RINGLB_FORWARD_L2, .track = RINGLB_TRACK_MOVED, .protocol = IPPROTO_TCP, .addresses = 1 },
	{ .forward = RINGLB_FORWARD_IPIP, .track = RINGLB_TRACK_MOVED, .protocol = IPPROTO_TCP, .addresses = 1 },
};
static const struct balancer_spec spec = { &pool, 1, service, 2, .flows = 0 };

static struct {
	struct balancer *balancer;
	struct driver_bpf *driver;
	int link; /* of the program at the other end of the second pair */
	struct figure *rate[KINDS], *lost[KINDS];
} self;

static int attach(int prog, unsigned int ifindex)
{
	DECLARE_LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
	int link = bpf_link_create(prog, (int)ifindex, BPF_XDP, &opts);

	if (link < 0)
		bench_die(-link, "attaching to interface %u", ifindex);
	return link;
}

static void load(void)
{
	static const char *const name[KINDS] = { "dropped", "empty program", "ringlb, l2", "ringlb, ipip" };

	self.balancer = balancer_start(PAIR, &spec);
	place_pair(PAIR + 1);
	self.driver = driver_bpf__open_and_load();
	if (!self.driver)
		bench_die(errno, "the driver");
	attach(bpf_program__fd(self.driver->progs.receive), place_other_end(PAIR));
	attach(bpf_program__fd(self.driver->progs.receive), place_other_end(PAIR + 1));
	self.link = attach(bpf_program__fd(self.driver->progs.floor_drop), place_ifindex(PAIR + 1));
	for (int i = 0; i < KINDS; i++) {
		self.rate[i] = figure_new("Mpps", "live frames: %s", name[i]);
		if (i >= STEER_L2)
			self.lost[i] = figure_new("of a million", "live frames: %s: lost at the balancer", name[i]);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct stream stream_of(enum other_end what, uint32_t count)
{
	return (struct stream){ .service = what == STEER_IPIP, .kind = PACKET_TCP, .flows = FLOWS, .count = count };
}

static void prepare(enum other_end what, const struct stream *s)
{
	struct bench_drive *drive = &self.driver->bss->drive;
	uint8_t frame[BENCH_FRAME_IPV6];
	size_t length = balancer_frame(self.balancer, s, frame);

	*drive = (struct bench_drive){
		.flows = FLOWS,
		.left = (uint32_t)length + (what >= STEER_L2 ? balancer_outer(self.balancer, s) : 0),
		.service = (uint32_t)frame[BENCH_SERVICE_AT_IPV4] << 8 | frame[BENCH_SERVICE_AT_IPV4 + 1],
	};
	memcpy(drive->frame, frame, sizeof(frame));
	memset((uint8_t *)drive->frame + BENCH_SERVICE_AT_IPV4, 0, 2);
	if (what == DROP || what == EMPTY) {
		const struct bpf_program *prog = what == DROP ? self.driver->progs.floor_drop :
								self.driver->progs.floor_empty;

		if (bpf_link_update(self.link, bpf_program__fd(prog), NULL))
			bench_die(errno, "another program");
	}
}

/* Sends count frames; seconds. */
static double send_frames(unsigned int ifindex, uint32_t count)
{
	static const uint8_t frame[BENCH_FRAME_IPV4];
	struct xdp_md md = { .data_end = sizeof(frame), .ingress_ifindex = ifindex };
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame), .ctx_in = &md,
			    .ctx_size_in = sizeof(md), .repeat = (int)count, .batch_size = BATCH,
			    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	double start = now();

	if (bpf_prog_test_run_opts(bpf_program__fd(self.driver->progs.send_ipv4), &opts))
		bench_die(errno, "live frames");
	return now() - start;
}

static uint64_t forwarded(void)
{
	struct ringlb_verdict_counters v;

	if (datapath_verdicts(self.balancer->running.dp, &v))
		bench_die(errno, "counters");
	return v.packets[RINGLB_VERDICT_FORWARDED];
}

/* What came back must be what was forwarded, in its right length. */
static void sample(enum other_end what, uint32_t count, bool record)
{
	const volatile struct bench_drive *drive = &self.driver->bss->drive;
	const struct stream s = stream_of(what, count);
	const bool steered = what >= STEER_L2;
	const char *name = self.rate[what]->name;
	uint64_t before, through;
	double took;

	prepare(what, &s);
	before = forwarded();
	took = send_frames(place_other_end(steered ? PAIR : PAIR + 1), count);
	through = forwarded() - before;
	if (drive->wrong)
		bench_wrong(name, "%llu frames came back in a wrong length", (unsigned long long)drive->wrong);
	if (drive->received > (steered ? through : count) || (what == DROP && drive->received))
		bench_wrong(name, "%llu frames came back", (unsigned long long)drive->received);
	if (what != DROP && drive->received < count / 2)
		bench_wrong(name, "only %llu of %u frames came back", (unsigned long long)drive->received, count);
	if (!record)
		return;
	figure_add(self.rate[what], (steered ? (double)through : (double)count) / took / 1e6);
	if (steered)
		figure_add(self.lost[what], (double)(count - through) / count * 1e6);
}

static void take_round(uint32_t count, bool record)
{
	for (int i = 0; i < KINDS; i++)
		sample((enum other_end)i, MORE * count, record);
}

static void stop(void)
{
	close(self.link);
	driver_bpf__destroy(self.driver);
	balancer_stop(self.balancer);
}

const struct part part_live = { "live", load, take_round, 0, NULL, stop };
