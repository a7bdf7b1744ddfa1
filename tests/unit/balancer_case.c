// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "balancer_case.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "../../include/flow_hash.h"
#include "aftermath.h"
#include "commit.h"
#include "datapath_private.h"
#include "manifest.h"

#define BACKENDS 256u
#define SERVICES 8u
#define LOOPBACK 1u /* where test runs come in from */
#define CLIENTS 0x0a400000u
#define FRAME_ROOM 256u

struct frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct tcphdr tcp;
	uint8_t payload[UINT8_MAX];
} __attribute__((packed));

void balancer_open(struct balancer *b, uint32_t flow_buckets)
{
	const struct datapath_sizes sizes = {
		.tables = 1u << 21, .backends = BACKENDS, .services = SERVICES, .flow_buckets = flow_buckets
	};
	struct diag d = { 0 };
	size_t bytes;

	memset(b, 0, sizeof(*b));
	if (datapath_create(&sizes, &b->dp, &d))
		fail_msg("%s", d.count ? d.entry[0].message : "no datapath");
	b->tables = datapath_tables(b->dp, &bytes);
	b->flows.bucket = datapath_flows(b->dp, &b->flows.buckets);
	balancer_clear(b);
}

void balancer_close(struct balancer *b)
{
	state_free(b->running);
	datapath_free(b->dp);
}

void balancer_clear(struct balancer *b)
{
	const struct ringlb_output loopback = { .ifindex = LOOPBACK, .link = LOOPBACK, .mtu = UINT16_MAX };
	struct ringlb_backend *backend;
	uint32_t count;

	state_free(b->running);
	b->running = NULL;
	memset(b->flows.bucket, 0, b->flows.buckets * sizeof(*b->flows.bucket));
	backend = datapath_backends(b->dp, &count);
	memset(backend, 0, count * sizeof(*backend));
	memset(b->tables->roots, 0, sizeof(b->tables->roots));
	b->tables->outputs[0] = loopback;
	balancer_clock(b, 1000);
}

/* The kernel's clock runs on, but a second of any length makes a stamp of any value: the middle of a second. */
void balancer_clock(struct balancer *b, uint32_t now)
{
	struct ringlb_lookup answer;
	uint8_t frame[64] = { 0 };
	uint32_t stamp;

	assert_int_equal(datapath_lookup(b->dp, frame, sizeof(frame), &answer), 0);
	b->tables->hz = (uint32_t)(answer.jiffies * 2 / (2ull * now + 1));
	assert_int_equal(running_now(b->dp, &stamp), 0);
	assert_int_equal(stamp, now);
	b->now = now;
}

static struct state *read_state(const struct balancer *b)
{
	const struct ringlb_root *root = &b->tables->roots[b->tables->state & 1];
	struct diag d = { 0 };
	struct state *s;
	size_t bytes;

	datapath_tables(b->dp, &bytes);
	s = manifest_read((char *)b->tables + root->manifest_off, root->manifest_len, b->tables, bytes, &d);
	if (!s)
		fail_msg("%s", d.entry[0].message);
	return s;
}

void balancer_plan(struct balancer *b, struct config *config, bool settle_force, struct plan *out)
{
	struct plan_interface interface[4];
	struct plan_input in = { 0 };
	struct running r = { .dp = b->dp, .state = b->running };
	struct diag d = { 0 };

	if (b->running) {
		state_free(b->running);
		r.state = b->running = read_state(b);
		assert_int_equal(running_input(&r, &in, &d), 0);
		free((void *)in.interface);
		in.interfaces = b->running->config->interfaces;
		assert_true(in.interfaces <= 4);
	}
	for (size_t i = 0; i < in.interfaces; i++)
		interface[i] = (struct plan_interface){
			.name = b->running->config->interface[i], .attached = true, .alive = true, .native = true
		};
	in.interface = interface;
	in.config = config;
	in.now = b->now;
	in.settle_force = settle_force;
	if (plan_make(&in, out, &d))
		fail_msg("%s", d.entry[0].message);
	free((void *)in.flows);
}

/* A way to every backend that needs no looking up. */
static void write_next_hops(const struct balancer *b)
{
	struct ringlb_lookup answer;
	uint8_t frame[64] = { 0 };
	uint32_t count;
	struct ringlb_backend *backend = datapath_backends(b->dp, &count);

	assert_int_equal(datapath_lookup(b->dp, frame, sizeof(frame), &answer), 0);
	for (uint32_t i = 0; i < count; i++) {
		backend[i].next_hop = (0x020000000000ull | i) << 16;
		backend[i].next_hop_stamp = (uint32_t)answer.jiffies;
	}
}

static void build(struct encoding *e, const struct plan *p)
{
	for (size_t i = 0; i < p->operations; i++) {
		const struct plan_operation *o = &p->operation[i];

		if (o->kind == PLAN_BACKEND_ADD)
			encode_backend(e, &p->next->pool[o->pool].backend[o->backend]);
		else if (o->kind == PLAN_TABLE_BUILD)
			encode_table(e, &p->next->pool[o->pool]);
		else if (o->kind == PLAN_OWN_BUILD)
			encode_table(e, &p->next->own[o->pool].table);
	}
	for (size_t i = 0; i < p->next->owns; i++)
		for (size_t j = 0; j < p->next->own[i].table.backends; j++) {
			struct state_backend *own = &p->next->own[i].table.backend[j];
			uint32_t count;

			if (!own->incarnation)
				own->incarnation = datapath_backends(e->dp, &count)[own->index].incarnation;
		}
}

void balancer_publish(struct balancer *b, const struct plan *p)
{
	struct encoding e;

	for (size_t i = 0; i < p->next->config->interfaces; i++)
		p->next->ifindex[i] = 2 + (uint32_t)i;
	assert_int_equal(encode_place(&e, b->dp, b->running, p->next), 0);
	build(&e, p);
	assert_int_equal(encode_root(&e), 0);
	write_next_hops(b);
	__atomic_fetch_or(&b->tables->pending, RINGLB_PENDING_AFTERMATH, __ATOMIC_SEQ_CST);
	encode_publish(&e);
	encode_end(&e);
	b->before = b->running;
	b->running = read_state(b);
	if (b->before)
		return;
	memcpy(&b->address, &b->running->config->service[0].address.byte[12], sizeof(b->address));
	b->port = htons(b->running->config->service[0].port);
}

void balancer_after(struct balancer *b, bool killed)
{
	assert_int_equal(b->tables->pending, RINGLB_PENDING_AFTERMATH);
	if (killed)
		aftermath(b->dp, b->running);
	else
		aftermath_of(b->dp, b->before, b->running);
	assert_int_equal(b->tables->pending, 0);
	state_free(b->before);
	b->before = NULL;
}

void balancer_commit(struct balancer *b, struct config *config)
{
	struct plan p;

	balancer_plan(b, config, false, &p);
	balancer_publish(b, &p);
	plan_free(&p);
	balancer_after(b, false);
}

/* As long as what it holds, and never too short for an answer. */
static uint32_t make_frame(const struct balancer *b, const struct case_packet *p, struct frame *f)
{
	const size_t headers = sizeof(f->ip) + sizeof(f->tcp);
	size_t length = sizeof(f->eth) + headers + p->payload;

	memset(f, 0, sizeof(*f));
	f->eth.h_proto = htons(ETH_P_IP);
	f->ip.version = 4;
	f->ip.ihl = 5;
	f->ip.ttl = 64;
	f->ip.protocol = IPPROTO_TCP;
	f->ip.tot_len = htons((uint16_t)(headers + p->payload));
	f->ip.saddr = htonl(CLIENTS + p->client);
	f->ip.daddr = b->address;
	f->tcp.source = htons(p->port);
	f->tcp.dest = b->port;
	f->tcp.seq = htonl(p->sequence);
	f->tcp.doff = 5;
	((uint8_t *)&f->tcp)[13] = p->flags;
	return (uint32_t)(length > sizeof(struct ringlb_lookup) ? length : sizeof(struct ringlb_lookup));
}

uint16_t balancer_send(const struct balancer *b, const struct case_packet *p)
{
	uint8_t out[sizeof(struct frame) + FRAME_ROOM];
	struct frame f;
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = &f, .data_size_in = make_frame(b, p, &f), .data_out = out,
		    .data_size_out = sizeof(out));

	assert_int_equal(bpf_prog_test_run_opts(b->dp->prog, &run), 0);
	if (run.retval == 1 /* XDP_DROP */)
		return RINGLB_NO_BACKEND;
	assert_int_equal(run.retval, 3 /* XDP_TX */);
	assert_int_equal(out[0], 2);
	return (uint16_t)(out[4] << 8 | out[5]);
}

void balancer_lookup(const struct balancer *b, const struct case_packet *p, struct ringlb_lookup *out)
{
	struct frame f;
	uint32_t length = make_frame(b, p, &f);

	assert_int_equal(datapath_lookup(b->dp, &f, length, out), 0);
}

__u64 balancer_fingerprint(const struct balancer *b, const struct case_packet *p)
{
	const struct flow_key4 key = {
		.client = htonl(CLIENTS + p->client),
		.service = b->address,
		.client_port = htons(p->port),
		.service_port = b->port,
		.protocol = IPPROTO_TCP,
	};
	__u64 hash_key[2];

	memcpy(hash_key, b->running->config->hash_key, sizeof(hash_key));
	return flow_fingerprint4(hash_key, &key);
}

struct ringlb_flow *balancer_entry(const struct balancer *b, __u64 fingerprint)
{
	struct ringlb_flow_bucket *bucket = &b->flows.bucket[(__u64)(uint32_t)fingerprint * b->flows.buckets >> 32];

	for (size_t i = 0; i < RINGLB_FLOWS_PER_BUCKET; i++)
		if (bucket->flow[i].fingerprint == fingerprint)
			return &bucket->flow[i];
	return NULL;
}

struct ringlb_flow_counters balancer_flow_counters(const struct balancer *b)
{
	struct ringlb_flow_counters per_cpu[256], sum = { 0 };
	int cpus = libbpf_num_possible_cpus();
	uint32_t zero = 0;

	assert_true(cpus > 0 && cpus <= 256);
	assert_int_equal(bpf_map_lookup_elem(b->dp->map[DATAPATH_MAP_FLOW_STATS], &zero, per_cpu), 0);
	for (int i = 0; i < cpus; i++) {
#define X(member, name, meaning) sum.member += per_cpu[i].member;
		RINGLB_FLOW_EVENTS(X)
#undef X
	}
	return sum;
}
