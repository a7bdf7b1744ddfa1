/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Of each family a pool, and services that use it in each way to forward. */
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "../../include/flow_hash.h"
#include "commit.h"

#define INSTANCE "bench"
#define SERVICE_PORT 443

static struct {
	struct instance at;
	struct running running;
	struct diag diag;
	struct arcs arcs[2];                /* of each family's pool, built here */
	uint16_t *index[2][TRAFFIC_KINDS];  /* of each flow's backend */
	uint32_t indices[2][TRAFFIC_KINDS]; /* flows that are known */
	uint32_t backends;
	struct ringlb_counter *backend, *backend_now;
	struct ringlb_counter *service, *service_now;
	struct ringlb_verdict_counters verdict;
} self;

static const char *service_address(bool ipv6, enum traffic traffic)
{
	static const char *address[2][TRAFFIC_KINDS] = {
		{ "192.0.2.1", "192.0.2.2", "192.0.2.99" },
		{ "2001:db8::1", "2001:db8::2", "2001:db8::99" },
	};

	return address[ipv6][traffic];
}

static void write_pool(FILE *out, bool ipv6, uint32_t points)
{
	fprintf(out, "  - name: pool%d\n    vnodes: %u\n    backends:\n", ipv6 ? 6 : 4, points);
	for (unsigned int i = 0; i < BENCH_BACKENDS; i++)
		fprintf(out, "      - {name: b%u, address: \"%s%u\"}\n", i, ipv6 ? "fd77::1:" : "10.77.1.", i + 1);
}

static void write_configuration(FILE *out, uint32_t points)
{
	fputs("interfaces: [" BENCH_INTERFACE "]\nxdp: native\nhash_key: 000102030405060708090a0b0c0d0e0f\n"
	      "tunnel_source: {ipv4: 10.77.0.1, ipv6: \"fd77::1\"}\npools:\n",
	      out);
	write_pool(out, false, points);
	write_pool(out, true, points);
	fputs("services:\n", out);
	for (int ipv6 = 0; ipv6 < 2; ipv6++)
		for (int i = 0; i < TRAFFIC_OTHER; i++)
			fprintf(out, "  - {address: \"%s\", port: %d, protocol: tcp, pool: pool%d, forward: %s}\n",
				service_address(ipv6, (enum traffic)i), SERVICE_PORT, ipv6 ? 6 : 4,
				i == TRAFFIC_L2 ? "l2" : "ipip");
}

/* Entries that never expire: nobody answers here. */
static void make_neighbours(void)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (unsigned int i = 0; i < BENCH_BACKENDS; i++)
		fprintf(out,
			"neighbour replace 10.77.1.%u lladdr 02:00:00:00:04:%02x nud permanent dev " BENCH_INTERFACE
			"\nneighbour replace fd77::1:%u lladdr 02:00:00:00:06:%02x nud permanent dev " BENCH_INTERFACE
			"\n",
			i + 1, i, i + 1, i);
	fclose(out);
	place_ip(text);
	free(text);
}

/* From the identities, not from the kernel's table. */
static void build_ring(bool ipv6)
{
	const struct state_pool *p = &self.running.state->pool[ipv6];
	struct ring_member *member = xcalloc(p->backends, sizeof(*member));

	for (size_t i = 0; i < p->backends; i++)
		member[i] = (struct ring_member){ .identity = p->backend[i].identity, .points = p->backend[i].points };
	if (ring_build(member, p->backends, &self.arcs[ipv6]))
		bench_die(0, "the ring can't be built");
	free(member);
}

static char own_path[PATH_MAX];

void instance_locate(void)
{
	if (readlink("/proc/self/exe", own_path, sizeof(own_path) - 1) < 0)
		bench_die(errno, "/proc/self/exe");
}

/* By the command that people use. */
static void attach(uint32_t points)
{
	/* build/tests/bench/bench, build/ringlb */
	char *command = xasprintf("'%s/../../ringlb' --quiet --instance " INSTANCE " attach -", dirname(own_path));
	FILE *ringlb;

	ringlb = popen(command, "w");
	if (!ringlb)
		bench_die(errno, "%s", command);
	write_configuration(ringlb, points);
	if (pclose(ringlb))
		bench_die(0, "failed: %s", command);
	free(command);
}

void instance_start(uint32_t points)
{
	uint32_t services;

	make_neighbours();
	attach(points);
	if (instance_init(&self.at, INSTANCE, NULL, NULL, NULL, &self.diag) ||
	    running_open(&self.at, &self.running, &self.diag))
		bench_die(0, "what runs: %s", self.diag.count ? self.diag.entry[0].message : "nothing");
	build_ring(false);
	build_ring(true);
	datapath_backends(self.running.dp, &self.backends);
	services = datapath_services(self.running.dp);
	self.backend = xcalloc(self.backends, sizeof(*self.backend));
	self.backend_now = xcalloc(self.backends, sizeof(*self.backend));
	self.service = xcalloc(services, sizeof(*self.service));
	self.service_now = xcalloc(services, sizeof(*self.service));
}

void instance_stop(void)
{
	for (int i = 0; i < 2; i++) {
		arcs_free(&self.arcs[i]);
		for (int j = 0; j < TRAFFIC_KINDS; j++)
			free(self.index[i][j]);
	}
	free(self.backend);
	free(self.backend_now);
	free(self.service);
	free(self.service_now);
	running_close(&self.running);
	instance_free(&self.at);
	diag_free(&self.diag);
	memset(&self, 0, sizeof(self));
}

int instance_prog(void)
{
	char *path = xasprintf("%s/prog", self.at.pins);
	int fd = bpf_obj_get(path);

	if (fd < 0)
		bench_die(errno, "%s", path);
	free(path);
	return fd;
}

size_t instance_frame(bool ipv6, enum traffic traffic, uint8_t frame[BENCH_FRAME_IPV6])
{
	const size_t length = ipv6 ? BENCH_FRAME_IPV6 : BENCH_FRAME_IPV4;
	struct ethhdr *eth = (void *)frame;
	struct iphdr *ip = (void *)(eth + 1);
	struct ipv6hdr *ip6 = (void *)(eth + 1);
	struct tcphdr *tcp = ipv6 ? (void *)(ip6 + 1) : (void *)(ip + 1);

	memset(frame, 0, BENCH_FRAME_IPV6);
	*eth = (struct ethhdr){ .h_dest = { 2, 1 },
				.h_source = { 2, 2 },
				.h_proto = htons(ipv6 ? ETH_P_IPV6 : ETH_P_IP) };
	tcp->dest = htons(SERVICE_PORT);
	tcp->doff = sizeof(*tcp) / 4;
	tcp->ack = 1;
	if (ipv6) {
		*ip6 = (struct ipv6hdr){ .version = 6, .nexthdr = IPPROTO_TCP, .hop_limit = 64 };
		ip6->payload_len = htons((uint16_t)(length - sizeof(*eth) - sizeof(*ip6)));
		inet_pton(AF_INET6, "2001:db8:1::", &ip6->saddr);
		inet_pton(AF_INET6, service_address(ipv6, traffic), &ip6->daddr);
	} else {
		*ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_TCP };
		ip->tot_len = htons((uint16_t)(length - sizeof(*eth)));
		inet_pton(AF_INET, service_address(ipv6, traffic), &ip->daddr);
	}
	return length;
}

static uint32_t position_of(bool ipv6, enum traffic traffic, uint32_t flow)
{
	const __u64 *key = (const void *)self.running.state->config->hash_key;
	const uint32_t client = htonl(bench_client(flow));
	struct flow_key4 four = {
		.client = client,
		.client_port = htons(bench_port(flow)),
		.service_port = htons(SERVICE_PORT),
		.protocol = IPPROTO_TCP,
	};
	struct flow_key6 six = {
		.client_port = four.client_port,
		.service_port = four.service_port,
		.protocol = IPPROTO_TCP,
	};

	if (!ipv6) {
		inet_pton(AF_INET, service_address(ipv6, traffic), &four.service);
		return flow_hash4(key, &four);
	}
	inet_pton(AF_INET6, "2001:db8:1::", six.client);
	memcpy(&six.client[12], &client, sizeof(client));
	inet_pton(AF_INET6, service_address(ipv6, traffic), six.service);
	return flow_hash6(key, &six);
}

static const struct state_backend *owner_of(bool ipv6, enum traffic traffic, uint32_t flow)
{
	const struct arcs *arcs = &self.arcs[ipv6];
	size_t arc = arcs_find(arcs, position_of(ipv6, traffic, flow));

	return &self.running.state->pool[ipv6].backend[arcs->arc[arc].owner];
}

const uint8_t *instance_backend(bool ipv6, enum traffic traffic, uint32_t flow)
{
	return owner_of(ipv6, traffic, flow)->address.byte;
}

/* Indices of the backends of at least this many flows, computed once. */
static const uint16_t *indices_of(bool ipv6, enum traffic traffic, uint32_t flows)
{
	uint16_t **index = &self.index[ipv6][traffic];
	uint32_t *known = &self.indices[ipv6][traffic];

	if (flows > *known)
		*index = xreallocarray(*index, flows, sizeof(**index));
	for (; *known < flows; (*known)++)
		(*index)[*known] = owner_of(ipv6, traffic, *known)->index;
	return *index;
}

static void read_counters(struct ringlb_counter *backend, struct ringlb_counter *service,
			  struct ringlb_verdict_counters *verdict)
{
	struct datapath *dp = self.running.dp;
	int err = datapath_backend_counters(dp, backend, self.backends);

	if (!err)
		err = datapath_service_counters(dp, service, datapath_services(dp));
	if (!err)
		err = datapath_verdicts(dp, verdict);
	if (err)
		bench_die(-err, "counters");
}

void instance_mark(void)
{
	read_counters(self.backend, self.service, &self.verdict);
}

static void check_verdicts(const char *who, enum traffic traffic, uint64_t count)
{
	const enum ringlb_verdict wanted = traffic == TRAFFIC_OTHER ? RINGLB_VERDICT_PASSED_NO_SERVICE :
								      RINGLB_VERDICT_FORWARDED;
	static const char *const name[] = {
#define X(id, text, meaning, remedy) text,
		RINGLB_VERDICTS(X)
#undef X
	};
	struct ringlb_verdict_counters now;

	read_counters(self.backend_now, self.service_now, &now);
	for (unsigned int i = 0; i < RINGLB_VERDICT_COUNT; i++) {
		uint64_t rise = now.packets[i] - self.verdict.packets[i];

		if (rise != (i == wanted ? count : 0))
			bench_wrong(who, "verdict %s rose by %llu, %llu packets were %s", name[i],
				    (unsigned long long)rise, (unsigned long long)count, name[wanted]);
	}
}

static void check_counter(const char *who, const char *what, size_t i, const struct ringlb_counter *was,
			  const struct ringlb_counter *now, uint64_t packets, uint64_t frame)
{
	uint64_t rise = now->packets - was->packets;

	if (rise != packets || now->bytes - was->bytes != packets * frame)
		bench_wrong(who, "%s %zu: %llu packets and %llu bytes where %llu and %llu are due", what, i,
			    (unsigned long long)rise, (unsigned long long)(now->bytes - was->bytes),
			    (unsigned long long)packets, (unsigned long long)(packets * frame));
}

void instance_check(const char *who, bool ipv6, enum traffic traffic, uint32_t first, uint32_t flows, uint32_t count)
{
	const uint64_t frame = ipv6 ? BENCH_FRAME_IPV6 : BENCH_FRAME_IPV4;
	const struct state *s = self.running.state;
	uint32_t *due = xcalloc(self.backends, sizeof(*due));

	if (traffic != TRAFFIC_OTHER) {
		const uint16_t *index = indices_of(ipv6, traffic, flows);

		for (uint32_t i = 0, flow = first; i < count; i++) {
			due[index[flow]]++;
			flow = flow + 1 < flows ? flow + 1 : 0;
		}
	}
	check_verdicts(who, traffic, count);
	for (uint32_t i = 0; i < self.backends; i++)
		check_counter(who, "backend", i, &self.backend[i], &self.backend_now[i], due[i], frame);
	for (size_t i = 0; i < s->config->services; i++) {
		const uint16_t slot = s->service_index[i];
		bool mine = i == (size_t)ipv6 * TRAFFIC_OTHER + traffic && traffic != TRAFFIC_OTHER;

		check_counter(who, "service", i, &self.service[slot], &self.service_now[slot], mine ? count : 0, frame);
	}
	free(due);
}

void instance_plant(bool wrong)
{
	size_t bytes;
	char *t = (char *)datapath_tables(self.running.dp, &bytes);

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		const struct state_pool *p = &self.running.state->pool[ipv6];
		uint16_t *owners = (uint16_t *)(void *)(t + p->region + p->layout.owners_off);

		owners[0] = p->backend[wrong ? 1 : 0].index;
	}
}

void instance_figures(void)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = instance_prog();

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		bench_die(errno, "the program's size");
	close(fd);
	figure_add(figure_new("instructions", "program, verified"), info.verified_insns);
	figure_add(figure_new("instructions", "program, loaded"), (double)info.xlated_prog_len / 8);
	figure_add(figure_new("bytes", "program, machine code"), info.jited_prog_len);
}
