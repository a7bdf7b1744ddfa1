/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "balancer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "place.h"

static char ringlb[PATH_MAX];

static void put_last(struct address *a, uint32_t value)
{
	a->byte[14] = (uint8_t)(value >> 8);
	a->byte[15] = (uint8_t)value;
}

void balancer_locate(const char *given)
{
	char own[PATH_MAX] = "", path[PATH_MAX];

	if (given) {
		snprintf(path, sizeof(path), "%s", given);
	} else {
		if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
			bench_die(errno, "/proc/self/exe");
		/* build/tests/bench/bench, build/ringlb */
		if (snprintf(path, sizeof(path), "%s/../../ringlb", dirname(own)) >= (int)sizeof(path))
			bench_die(ENAMETOOLONG, "%s", own);
	}
	if (!realpath(path, ringlb))
		bench_die(errno, "%s", path);
}

const char *balancer_ringlb(void)
{
	return ringlb;
}

void balancer_backend_address(const struct balancer *b, bool ipv6, uint32_t backend, struct address *address)
{
	char text[64];

	if (ipv6)
		snprintf(text, sizeof(text), b->spec->routed ? PLACE_BEHIND6 ":0:0:1:%x" : PLACE_NET6 ":0:0:1:%x",
			 b->number, backend);
	else
		snprintf(text, sizeof(text), PLACE_NET4 ".%u.%u",
			 b->spec->routed ? PLACE_BEHIND4(b->number) : PLACE_NUMBER4(b->number), 16 + backend / 256,
			 backend % 256);
	if (address_parse(text, address))
		bench_die(0, "address %s", text);
}

/* Of the IPv4 services: addresses follow each other. */
static uint32_t first_address(const struct balancer *b, unsigned int service)
{
	uint32_t first = 0;

	for (unsigned int i = 0; i < service; i++)
		first += b->spec->service[i].addresses;
	return first;
}

void balancer_service_address(const struct balancer *b, const struct stream *s, uint32_t flow, struct address *address)
{
	const bool other = s->service == BALANCER_OTHER;
	const uint32_t last = flow & balancer_address_mask(b, s);
	const uint8_t ipv6[16] = { 0x20, 1, 0xd, 0xb8, 0, 0, 0, other ? 0xff : (uint8_t)s->service };
	const uint8_t ipv4[16] = { [10] = 0xff, 0xff, 198, 18 };

	memcpy(address->byte, balancer_is_ipv6(b, s) ? ipv6 : ipv4, 16);
	if (balancer_is_ipv6(b, s))
		put_last(address, last);
	else
		put_last(address, other ? UINT16_MAX : first_address(b, s->service) + last);
}

static void write_backend(FILE *out, const struct balancer *b, const struct pool_spec *p, uint32_t i, bool drained)
{
	char text[ADDRESS_TEXT];
	struct address address;

	balancer_backend_address(b, p->ipv6, i, &address);
	fprintf(out, "      - {name: b%u, address: \"%s\"%s}\n", i, address_text(&address, text),
		drained ? ", state: drain" : "");
}

static void write_pool(FILE *out, const struct balancer *b, unsigned int pool, bool changed)
{
	const struct pool_spec *p = &b->spec->pool[pool];
	uint32_t backends = p->backends + (changed ? p->added : 0);

	fprintf(out, "  - name: pool%u\n    vnodes: %u\n    backends:\n", pool, p->vnodes);
	for (uint32_t i = 0; i < backends; i++)
		write_backend(out, b, p, i, changed && i < p->drained);
}

static void write_service(FILE *out, const struct balancer *b, unsigned int service)
{
	const struct service_spec *spec = &b->spec->service[service];
	struct stream s = { .service = service };
	char text[ADDRESS_TEXT];
	struct address address;

	for (uint32_t i = 0; i < spec->addresses; i++) {
		balancer_service_address(b, &s, i, &address);
		fprintf(out, "  - {address: \"%s\", port: %d, protocol: %s, pool: pool%u, forward: %s, track: %s}\n",
			address_text(&address, text), SERVICE_PORT, config_protocol_name(spec->protocol), spec->pool,
			config_forward_name(spec->forward), config_track_name(spec->track));
	}
}

static void write_configuration(FILE *out, const struct balancer *b, bool changed)
{
	char name[PLACE_NAME];

	place_interface(b->number, name);
	fprintf(out,
		"interfaces: [%s]\nxdp: native\nhash_key: 000102030405060708090a0b0c0d0e0f\n"
		"tunnel_source: {ipv4: " PLACE_NET4 ".0.1, ipv6: \"" PLACE_NET6 "::1\"}\n",
		name, PLACE_NUMBER4(b->number), b->number);
	if (b->spec->flows)
		fprintf(out, "flows: {established: %u}\n", b->spec->flows);
	fputs("pools:\n", out);
	for (unsigned int i = 0; i < b->spec->pools; i++)
		write_pool(out, b, i, changed);
	fputs("services:\n", out);
	for (unsigned int i = 0; i < b->spec->services; i++)
		write_service(out, b, i);
}

static void write_routed(FILE *out, unsigned int n)
{
	fprintf(out,
		"neighbour replace " PLACE_NET4 ".0.2 lladdr 02:00:00:00:00:02 nud permanent dev rlb%u\n"
		"neighbour replace " PLACE_NET6 "::2 lladdr 02:00:00:00:00:02 nud permanent dev rlb%u\n"
		"route add " PLACE_NET4 ".0.0/16 via " PLACE_NET4 ".0.2\n"
		"route add " PLACE_BEHIND6 "::/64 via " PLACE_NET6 "::2\n",
		PLACE_NUMBER4(n), n, n, n, PLACE_BEHIND4(n), PLACE_NUMBER4(n), n, n);
}

/* Entries that never expire: nobody answers here. */
static void make_neighbours(const struct balancer *b)
{
	const struct balancer_spec *s = b->spec;
	char *text, address[ADDRESS_TEXT];
	uint32_t most[2] = { 0 };
	struct address at;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (unsigned int i = 0; i < s->pools; i++)
		if (s->pool[i].backends + s->pool[i].added > most[s->pool[i].ipv6])
			most[s->pool[i].ipv6] = s->pool[i].backends + s->pool[i].added;
	if (s->routed)
		write_routed(out, b->number);
	for (unsigned int ipv6 = 0; ipv6 < 2 && !s->routed; ipv6++)
		for (uint32_t i = 0; i < most[ipv6]; i++) {
			balancer_backend_address(b, ipv6, i, &at);
			fprintf(out, "neighbour replace %s lladdr 02:00:00:0%u:%02x:%02x nud permanent dev rlb%u\n",
				address_text(&at, address), ipv6, i / 256, i % 256, b->number);
		}
	fclose(out);
	place_ip(text);
	free(text);
}

static void run_ringlb(const struct balancer *b, const char *verb, bool changed)
{
	char *command = xasprintf("'%s' --quiet --instance bench%u %s -", ringlb, b->number, verb);
	FILE *pipe = popen(command, "w");

	if (!pipe)
		bench_die(errno, "%s", command);
	write_configuration(pipe, b, changed);
	if (pclose(pipe))
		bench_die(0, "failed: %s", command);
	free(command);
}

static bool changes(const struct balancer_spec *s)
{
	for (unsigned int i = 0; i < s->pools; i++)
		if (s->pool[i].drained || s->pool[i].added)
			return true;
	return false;
}

static void open_running(struct balancer *b)
{
	char *name = xasprintf("bench%u", b->number);

	if (instance_init(&b->at, name, NULL, NULL, NULL, &b->diag) || running_open(&b->at, &b->running, &b->diag))
		bench_die(0, "what runs: %s", b->diag.count ? b->diag.entry[0].message : "nothing");
	free(name);
	datapath_backends(b->running.dp, &b->backends);
	b->services = datapath_services(b->running.dp);
	b->backend = xcalloc(b->backends, sizeof(*b->backend));
	b->backend_now = xcalloc(b->backends, sizeof(*b->backend));
	b->service = xcalloc(b->services, sizeof(*b->service));
	b->service_now = xcalloc(b->services, sizeof(*b->service));
}

struct balancer *balancer_start(unsigned int number, const struct balancer_spec *spec)
{
	struct balancer *b = xcalloc(1, sizeof(*b));

	b->spec = spec;
	b->number = number;
	place_pair(number);
	b->ifindex = place_ifindex(number);
	make_neighbours(b);
	run_ringlb(b, "attach", false);
	if (changes(spec))
		run_ringlb(b, "apply", true);
	open_running(b);
	return b;
}

void balancer_stop(struct balancer *b)
{
	if (!b)
		return;
	balancer_due_free(b);
	free(b->backend);
	free(b->backend_now);
	free(b->service);
	free(b->service_now);
	running_close(&b->running);
	instance_free(&b->at);
	diag_free(&b->diag);
	free(b);
}

int balancer_prog(const struct balancer *b)
{
	char *path = xasprintf("%s/prog", b->at.pins);
	int fd = bpf_obj_get(path);

	if (fd < 0)
		bench_die(errno, "%s", path);
	free(path);
	return fd;
}

unsigned int balancer_ifindex(const struct balancer *b)
{
	return b->ifindex;
}

struct balancer_size balancer_size_of(const struct balancer *b)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = balancer_prog(b);

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		bench_die(errno, "the program's size");
	close(fd);
	return (struct balancer_size){
		.verified = info.verified_insns,
		.loaded = info.xlated_prog_len / 8,
		.bytes = info.jited_prog_len,
	};
}

bool balancer_is_ipv6(const struct balancer *b, const struct stream *s)
{
	return s->service == BALANCER_OTHER ? s->ipv6 : b->spec->pool[b->spec->service[s->service].pool].ipv6;
}

uint32_t balancer_address_mask(const struct balancer *b, const struct stream *s)
{
	return s->service == BALANCER_OTHER ? 0 : b->spec->service[s->service].addresses - 1;
}

uint32_t balancer_outer(const struct balancer *b, const struct stream *s)
{
	const enum ringlb_forward forward = s->service == BALANCER_OTHER ? RINGLB_FORWARD_L2 :
									   b->spec->service[s->service].forward;
	const size_t ip = balancer_is_ipv6(b, s) ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);

	if (forward == RINGLB_FORWARD_L2)
		return 0;
	return (uint32_t)(forward == RINGLB_FORWARD_GUE ? ip + sizeof(struct udphdr) : ip);
}

static void write_transport(const struct stream *s, void *at, size_t rest)
{
	struct tcphdr *tcp = at;
	struct udphdr *udp = at;

	if (s->kind == PACKET_UDP) {
		udp->dest = htons(SERVICE_PORT);
		udp->len = htons((uint16_t)rest);
		return;
	}
	tcp->dest = htons(SERVICE_PORT);
	tcp->doff = sizeof(*tcp) / 4;
	tcp->syn = s->kind == PACKET_SYN;
	tcp->ack = s->kind != PACKET_SYN;
}

size_t balancer_frame(const struct balancer *b, const struct stream *s, uint8_t frame[BENCH_FRAME_IPV6])
{
	const bool ipv6 = balancer_is_ipv6(b, s);
	const uint8_t protocol = s->kind == PACKET_UDP ? IPPROTO_UDP : IPPROTO_TCP;
	const size_t length = ipv6 ? BENCH_FRAME_IPV6 : BENCH_FRAME_IPV4;
	struct ethhdr *eth = (void *)frame;
	struct iphdr *ip = (void *)(eth + 1);
	struct ipv6hdr *ip6 = (void *)(eth + 1);
	void *transport = ipv6 ? (void *)(ip6 + 1) : (void *)(ip + 1);
	const size_t rest = (size_t)(frame + length - (uint8_t *)transport);
	struct address to;

	memset(frame, 0, BENCH_FRAME_IPV6);
	balancer_service_address(b, s, 0, &to);
	*eth = (struct ethhdr){ .h_dest = { 2, 1 },
				.h_source = { 2, 2 },
				.h_proto = htons(ipv6 ? ETH_P_IPV6 : ETH_P_IP) };
	if (ipv6) {
		*ip6 = (struct ipv6hdr){ .version = 6, .nexthdr = protocol, .hop_limit = 64 };
		ip6->payload_len = htons((uint16_t)rest);
		inet_pton(AF_INET6, CLIENTS_IPV6, &ip6->saddr);
		memcpy(&ip6->daddr, to.byte, 16);
	} else {
		*ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 64, .protocol = protocol };
		ip->tot_len = htons((uint16_t)(length - sizeof(*eth)));
		memcpy(&ip->daddr, to.byte + 12, 4);
	}
	write_transport(s, transport, rest);
	return length;
}
