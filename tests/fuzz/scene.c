/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An instance of every kind of service, attached by the program itself, and changed once, so that arcs are moved. The
 * interfaces' other ends are silent, and neighbours never expire:
 *
 *   fuzz0 10.77.0.1/16 fd77::1/64      pools four (10.77.1.N) and six (fd77::1:N)
 *   fuzz1 10.78.0.1/16                 pool second (10.78.1.N)
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "commit.h"

#define INSTANCE "fuzz"

enum { FOUR, SECOND, SIX, EMPTY4, EMPTY6, POOLS };
struct pool pools[POOLS] = { [FOUR] = { .name = "four" },
			     [SECOND] = { .name = "second" },
			     [SIX] = { .name = "six" },
			     [EMPTY4] = { .name = "empty4" },
			     [EMPTY6] = { .name = "empty6" } };

#define SERVICE(where, first, last, which, whose, how, rest)                                                           \
	{                                                                                                              \
		.address = where, .from = first, .to = last, .protocol = which, .pool = whose, .forward = how,         \
		.more = rest                                                                                           \
	}
struct service services[] = {
	SERVICE("192.0.2.1", 443, 443, IPPROTO_TCP, FOUR, L2, ""),
	SERVICE("192.0.2.1", 53, 53, IPPROTO_UDP, FOUR, IPIP, ""),
	SERVICE("192.0.2.1", 54, 54, IPPROTO_UDP, FOUR, L2, ", track: always"),
	SERVICE("192.0.2.2", 443, 443, IPPROTO_TCP, SIX, IPIP, ", track: always"),
	SERVICE("192.0.2.2", 8000, 8999, IPPROTO_TCP, FOUR, GUE, ""),
	SERVICE("192.0.2.3", 0, 65535, IPPROTO_TCP, FOUR, IPIP, ", affinity: {source: {ipv4: 24, ipv6: 56}}"),
	SERVICE("192.0.2.4", 0, 65535, 0, FOUR, IPIP, ""),
	SERVICE("192.0.2.5", 80, 80, IPPROTO_TCP, EMPTY4, L2, ""),
	SERVICE("192.0.2.6", 443, 443, IPPROTO_UDP, FOUR, GUE, ", affinity: quic"),
	SERVICE("192.0.2.128/25", 80, 80, IPPROTO_TCP, SECOND, L2, ""),
	SERVICE("192.0.2.128/26", 100, 199, IPPROTO_UDP, SECOND, IPIP, ", track: always"),
	SERVICE("2001:db8::1", 443, 443, IPPROTO_TCP, SIX, L2, ""),
	SERVICE("2001:db8::1", 53, 53, IPPROTO_UDP, SIX, GUE, ""),
	SERVICE("2001:db8::2", 443, 443, IPPROTO_TCP, FOUR, IPIP, ", track: always"),
	SERVICE("2001:db8::3", 0, 65535, 0, SIX, IPIP, ""),
	SERVICE("2001:db8::4", 443, 443, IPPROTO_UDP, SIX, IPIP, ", affinity: quic"),
	SERVICE("2001:db8::5", 80, 80, IPPROTO_TCP, EMPTY6, IPIP, ""),
	SERVICE("2001:db8:1::/48", 0, 65535, IPPROTO_UDP, SIX, L2, ", affinity: source"),
};
const size_t service_count = sizeof(services) / sizeof(services[0]);
const uint8_t scene_mac[2][6] = { { 2, 0x77, 0, 0, 0, 1 }, { 2, 0x78, 0, 0, 0, 1 } };

static struct {
	char path[PATH_MAX]; /* of ringlb */
	struct instance at;
	struct running running;
	struct diag diag;
	int prog, verdicts, cpus;
	unsigned int ifindex;
	uint32_t poison;
	struct ringlb_verdict_counters *counted; /* of each CPU */
	struct ringlb_verdict_counters before;
	struct ringlb_counter *service, *service_now, *backend, *backend_now;
	uint32_t backends, services;
} self;

void scene_locate(void)
{
	char own[PATH_MAX - 32] = "";

	/* build/tests/fuzz/packets, build/ringlb */
	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		fuzz_die(errno, "/proc/self/exe");
	snprintf(self.path, sizeof(self.path), "%s/../../ringlb", dirname(own));
}

static void ip_commands(const char *commands)
{
	FILE *ip = popen("ip -batch -", "w");

	if (!ip || fputs(commands, ip) < 0 || pclose(ip))
		fuzz_die(0, "ip(8) failed");
}

static void write_setting(const char *file, const char *value)
{
	FILE *f = fopen(file, "we");

	if (!f || fputs(value, f) < 0 || fclose(f))
		fuzz_die(errno, "%s", file);
}

/* Everything is gone with this process. */
static void enter(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWNET))
		fuzz_die(errno, "a namespace of its own: run it as root");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("fuzz", "/run", "tmpfs", 0, NULL) ||
	    mkdir("/run/bpf", 0700) || mount("fuzz", "/run/bpf", "bpf", 0, NULL))
		fuzz_die(errno, "a place for pins");
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("RINGLB_BPFFS", "/run/bpf", 1);
	setenv("RINGLB_STATE_DIR", "/run/state", 1);
	setenv("RINGLB_RUN_DIR", "/run/lock", 1);
	write_setting("/proc/sys/net/ipv4/ip_forward", "1");
	write_setting("/proc/sys/net/ipv6/conf/all/forwarding", "1");
	ip_commands("link set lo up\n"
		    "link add fuzz0 address 02:77:00:00:00:01 type veth peer name peer0\n"
		    "link add fuzz1 address 02:78:00:00:00:01 type veth peer name peer1\n"
		    "address add 10.77.0.1/16 dev fuzz0\n"
		    "address add fd77::1/64 dev fuzz0 nodad\n"
		    "address add 10.78.0.1/16 dev fuzz1\n");
	write_setting("/proc/sys/net/ipv6/conf/peer0/disable_ipv6", "1");
	write_setting("/proc/sys/net/ipv6/conf/peer1/disable_ipv6", "1");
	ip_commands("link set fuzz0 up\nlink set fuzz1 up\nlink set peer0 up\nlink set peer1 up\n");
	self.ifindex = if_nametoindex("fuzz0");
}

static void parse_address(const char *text, uint8_t out[16])
{
	memset(out, 0, 16);
	if (strchr(text, ':')) {
		inet_pton(AF_INET6, text, out);
		return;
	}
	out[10] = out[11] = 0xff;
	inet_pton(AF_INET, text, out + 12);
}

/* The oracle's view of a pool, and neighbours for it. */
static void add_backends(int pool, const char *format, uint8_t mac, bool second)
{
	struct pool *p = &pools[pool];
	char text[64], *commands;
	size_t size;
	FILE *out = open_memstream(&commands, &size);

	for (p->backends = 0; p->backends < POOL_BACKENDS; p->backends++) {
		struct backend *b = &p->backend[p->backends];
		const uint8_t number = (uint8_t)(p->backends + 1);

		snprintf(text, sizeof(text), format, number);
		parse_address(text, b->address);
		memcpy(b->mac, (uint8_t[]){ 2, mac, 0, 0, 1, number }, 6);
		b->second = second;
		fprintf(out, "neighbour replace %s lladdr 02:%02x:00:00:01:%02x nud permanent dev fuzz%d\n", text, mac,
			number, second);
	}
	fclose(out);
	ip_commands(commands);
	free(commands);
}

static void write_pool(FILE *out, int pool, const char *format, bool changed)
{
	fprintf(out, "  - name: %s\n    vnodes: 40\n    backends:\n", pools[pool].name);
	/* The first goes, the second drains, the third gets more; the last two are new. */
	for (unsigned int i = changed ? 2 : 1; i <= (changed ? POOL_BACKENDS : POOL_BACKENDS - 2); i++) {
		fprintf(out, "      - {name: b%u, address: \"", i);
		fprintf(out, format, i);
		fprintf(out, "\", weight: %d%s}\n", changed && i == 3 ? 2 : 1,
			changed && i == 2 ? ", state: drain" : "");
	}
}

static void write_services(FILE *out)
{
	static const char *const forward[] = { "l2", "ipip", "gue" };

	fputs("services:\n", out);
	for (size_t i = 0; i < service_count; i++) {
		const struct service *s = &services[i];
		char port[24];

		if (!s->from)
			snprintf(port, sizeof(port), "any");
		else
			snprintf(port, sizeof(port), s->from == s->to ? "%u" : "%u-%u", s->from, s->to);
		fprintf(out, "  - {name: s%zu, address: \"%s\", port: %s, protocol: %s, pool: %s, forward: %s%s}\n", i,
			s->address, port,
			s->protocol == IPPROTO_TCP ? "tcp" :
			s->protocol                ? "udp" :
						     "any",
			pools[s->pool].name, forward[s->forward], s->more);
	}
}

/* By the command that people use. */
static void configure(const char *verb, bool changed)
{
	char command[PATH_MAX + 64];
	FILE *out;

	snprintf(command, sizeof(command), "'%s' --quiet --instance " INSTANCE " %s - 2>/run/complaints", self.path,
		 verb);
	out = popen(command, "w");
	if (!out)
		fuzz_die(errno, "%s", command);
	fputs("interfaces: [fuzz0, fuzz1]\nxdp: native\nhash_key: 000102030405060708090a0b0c0d0e0f\n"
	      "tunnel_source: {ipv4: 10.77.0.1, ipv6: \"fd77::1\"}\nflows: {established: 4096, opening: 1024}\npools:\n",
	      out);
	write_pool(out, FOUR, "10.77.1.%u", changed);
	write_pool(out, SECOND, "10.78.1.%u", changed);
	write_pool(out, SIX, "fd77::1:%x", changed);
	fputs("  - {name: empty4, backends: [{name: a, address: 10.77.1.99, state: maint}]}\n"
	      "  - {name: empty6, backends: [{name: a, address: \"fd77::1:99\", state: maint}]}\n",
	      out);
	write_services(out);
	if (pclose(out)) {
		if (system("cat /run/complaints >&2"))
			fuzz_die(0, "no complaints");
		fuzz_die(0, "failed: %s", command);
	}
}

static void find_indices(void)
{
	const struct state *s = self.running.state;

	for (size_t i = 0; i < s->config->services; i++)
		for (size_t j = 0; j < service_count; j++) {
			char name[16];

			snprintf(name, sizeof(name), "s%zu", j);
			if (!strcmp(name, s->config->service[i].name))
				services[j].index = s->service_index[i];
		}
	for (size_t i = 0; i < s->pools; i++)
		for (int j = 0; j < POOLS; j++)
			for (uint32_t k = 0; k < pools[j].backends; k++)
				for (size_t l = 0; l < s->pool[i].backends; l++)
					if (!strcmp(s->pool[i].name, pools[j].name) &&
					    !memcmp(s->pool[i].backend[l].address.byte, pools[j].backend[k].address,
						    16))
						pools[j].backend[k].index = s->pool[i].backend[l].index;
	for (size_t j = 0; j < service_count; j++) {
		struct service *v = &services[j];
		char text[64], *slash;

		snprintf(text, sizeof(text), "%s", v->address);
		slash = strchr(text, '/');
		v->prefix = 128;
		if (slash) {
			*slash = '\0';
			v->prefix = (uint32_t)atoi(slash + 1) + (strchr(text, ':') ? 0 : 96);
		}
		parse_address(text, v->bytes);
	}
}

static int pinned(const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", self.at.pins, name);
	fd = bpf_obj_get(path);
	if (fd < 0)
		fuzz_die(errno, "%s", path);
	return fd;
}

static void read_counters(struct ringlb_counter *service, struct ringlb_counter *backend)
{
	int err = datapath_service_counters(self.running.dp, service, self.services);

	if (!err)
		err = datapath_backend_counters(self.running.dp, backend, self.backends);
	if (err)
		fuzz_die(-err, "counters");
}

static void *zeroed(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		fuzz_die(ENOMEM, "counters");
	return p;
}

void scene_start(void)
{
	enter();
	add_backends(FOUR, "10.77.1.%u", 4, false);
	add_backends(SECOND, "10.78.1.%u", 5, true);
	add_backends(SIX, "fd77::1:%x", 6, false);
	configure("attach", false);
	configure("apply", true);
	if (instance_init(&self.at, INSTANCE, NULL, NULL, NULL, &self.diag) ||
	    running_open(&self.at, &self.running, &self.diag))
		fuzz_die(0, "what runs: %s", self.diag.count ? self.diag.entry[0].message : "nothing");
	find_indices();
	self.prog = pinned("prog");
	self.verdicts = pinned("verdicts");
	self.cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	self.poison = POISON;
	datapath_backends(self.running.dp, &self.backends);
	self.services = datapath_services(self.running.dp);
	self.counted = zeroed((size_t)self.cpus, sizeof(*self.counted));
	self.service = zeroed(self.services, sizeof(*self.service));
	self.service_now = zeroed(self.services, sizeof(*self.service));
	self.backend = zeroed(self.backends, sizeof(*self.backend));
	self.backend_now = zeroed(self.backends, sizeof(*self.backend));
	read_counters(self.service, self.backend);
	scene_verdict();
}

void scene_stop(void)
{
	free(self.counted);
	free(self.service);
	free(self.service_now);
	free(self.backend);
	free(self.backend_now);
	close(self.prog);
	close(self.verdicts);
	running_close(&self.running);
	instance_free(&self.at);
	diag_free(&self.diag);
}

/* What is in front of the frame comes as XDP metadata; the rest of a test run's headroom is zero. */
uint32_t scene_run(const struct frame *f, struct frame *out)
{
	static uint8_t in[FRAME_ROOM], result[FRAME_ROOM];
	struct xdp_md md = { .data = self.poison, .ingress_ifindex = self.ifindex }, md_out = { 0 };
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in, .data_out = result, .data_size_out = sizeof(result),
			    .repeat = 1, .ctx_in = &md, .ctx_size_in = sizeof(md), .ctx_out = &md_out,
			    .ctx_size_out = sizeof(md_out));
	int err;

	memset(in, 0xa5, self.poison);
	memcpy(in + self.poison, f->data, f->length);
	opts.data_size_in = self.poison + (uint32_t)f->length;
	md.data_end = opts.data_size_in;
	err = bpf_prog_test_run_opts(self.prog, &opts);
	if (err == -EINVAL && self.poison > 32) {
		self.poison = 32;
		return scene_run(f, out);
	}
	if (err)
		fuzz_die(-err, "BPF_PROG_TEST_RUN of %zu bytes", f->length);
	out->length = opts.data_size_out - md_out.data;
	memcpy(out->data, result + md_out.data, out->length);
	return opts.retval;
}

const char *scene_verdict(void)
{
	static const char *const name[] = {
#define X(id, text, meaning, remedy) text,
		RINGLB_VERDICTS(X)
#undef X
	};
	struct ringlb_verdict_counters now = { 0 };
	const uint32_t zero = 0;
	const char *found = NULL;
	uint64_t risen = 0;

	if (bpf_map_lookup_elem(self.verdicts, &zero, self.counted))
		fuzz_die(errno, "verdicts");
	for (int cpu = 0; cpu < self.cpus; cpu++)
		for (int i = 0; i < RINGLB_VERDICT_COUNT; i++)
			now.packets[i] += self.counted[cpu].packets[i];
	for (int i = 0; i < RINGLB_VERDICT_COUNT; i++) {
		risen += now.packets[i] - self.before.packets[i];
		if (now.packets[i] != self.before.packets[i])
			found = name[i];
	}
	self.before = now;
	return risen == 1 ? found : NULL;
}

void scene_expect(uint32_t service, uint32_t backend, size_t bytes)
{
	self.service[service].packets++;
	self.service[service].bytes += bytes;
	self.backend[backend].packets++;
	self.backend[backend].bytes += bytes;
}

bool scene_counted(uint32_t service, size_t bytes)
{
	const struct ringlb_counter *due = &self.service[service], *now = &self.service_now[service];

	read_counters(self.service_now, self.backend_now);
	return now->packets == due->packets + 1 && now->bytes == due->bytes + bytes;
}

static bool same(const char *what, uint32_t count, const struct ringlb_counter *due, const struct ringlb_counter *now,
		 FILE *out)
{
	bool good = true;

	for (uint32_t i = 0; i < count; i++) {
		if (due[i].packets == now[i].packets && due[i].bytes == now[i].bytes)
			continue;
		fprintf(out, "%s %u: %llu packets, %llu bytes were counted where %llu and %llu are due\n", what, i,
			(unsigned long long)now[i].packets, (unsigned long long)now[i].bytes,
			(unsigned long long)due[i].packets, (unsigned long long)due[i].bytes);
		good = false;
	}
	return good;
}

bool scene_counters(FILE *out)
{
	bool good;

	read_counters(self.service_now, self.backend_now);
	good = same("service", self.services, self.service, self.service_now, out);
	return same("backend", self.backends, self.backend, self.backend_now, out) && good;
}
