/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel as the program sees it: its helpers, its maps, and a frame in memory of which nothing else may be touched.
 * Included once, behind the program, whose maps it tells by their addresses.
 */
#ifndef RINGLB_TESTS_KERNEL_H
#define RINGLB_TESTS_KERNEL_H

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "world.h"

#define FRAME_MAX 9216u
#define HEADROOM 256u
#define ARENA_AT 0x20000000ul /* the fields of struct xdp_md have 32 bits */
#define ARENA_BYTES (1u << 16)
#define FLOW_BUCKETS 16u
#define ENTRIES 8u

const volatile struct ringlb_sizes sizes = { .tables_bound = WORLD_TABLES - RINGLB_TABLES_SLACK,
					     .flow_buckets = FLOW_BUCKETS };

/* struct header.flags */
#define NO_HEADROOM 1u /* the driver left none */
#define NO_ROUTE 2u    /* the kernel knows no next hop */
#define LOOK_UP 4u     /* the program lookup, not prog */

struct header {
	__u16 length; /* of the frame */
	__u16 first;  /* bytes of it in the first buffer; 0: all */
	__u8 passed;  /* seconds since the packet before */
	__u8 flags;
} __attribute__((packed));

/* Of an LRU map: the oldest goes. */
struct entries {
	__u32 next;
	__u64 used[ENTRIES];
	__u64 key[ENTRIES][2];
	__u64 value[ENTRIES][2];
};

static struct {
	struct ringlb_tables *initial, *tables; /* WORLD_TABLES bytes */
	struct ringlb_backend *initial_backends, *backends;
	struct ringlb_flow_bucket *flows;
	struct ringlb_counter *services, *counters;
	struct ringlb_verdict_counters verdicts;
	struct ringlb_flow_counters flow_stats;
	struct ringlb_trace_rate trace_rate;
	struct ringlb_answer_rate answer_rate;
	struct entries fragments, path_mtus;
	__u64 jiffies;
	__u8 *arena;
	__u8 rest[FRAME_MAX]; /* what is in other buffers than the first */
	__u32 rest_length;
	__u8 flags;
} self;

static void fail(const char *what)
{
	fprintf(stderr, "program: %s\n", what);
	abort();
}

static void check(bool good, const char *what)
{
	if (!good)
		fail(what);
}

/* Only the frame's first buffer may be touched; ASan knows its end to the byte, and its start where that is aligned. */
static void expose(const struct xdp_md *ctx)
{
	ASAN_POISON_MEMORY_REGION(self.arena, ARENA_BYTES);
	ASAN_UNPOISON_MEMORY_REGION((void *)(long)ctx->data, ctx->data_end - ctx->data);
}

static void *array_at(void *base, __u32 count, size_t size, const void *key)
{
	__u32 at;

	memcpy(&at, key, sizeof(at));
	return at < count ? (char *)base + at * size : NULL;
}

static __u64 *entry_of(struct entries *e, const void *key, size_t key_size)
{
	for (__u32 i = 0; i < ENTRIES; i++)
		if (e->used[i] && !memcmp(e->key[i], key, key_size))
			return e->value[i];
	return NULL;
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	if (map == &tables)
		return array_at(self.tables, 1, WORLD_TABLES, key);
	if (map == &backends)
		return array_at(self.backends, WORLD_BACKENDS, sizeof(*self.backends), key);
	if (map == &flows)
		return array_at(self.flows, FLOW_BUCKETS, sizeof(*self.flows), key);
	if (map == &service_stats)
		return array_at(self.services, WORLD_SERVICES, sizeof(*self.services), key);
	if (map == &backend_stats)
		return array_at(self.counters, WORLD_BACKENDS, sizeof(*self.counters), key);
	if (map == &verdicts)
		return array_at(&self.verdicts, 1, sizeof(self.verdicts), key);
	if (map == &flow_stats)
		return array_at(&self.flow_stats, 1, sizeof(self.flow_stats), key);
	if (map == &trace_rate)
		return array_at(&self.trace_rate, 1, sizeof(self.trace_rate), key);
	if (map == &answer_rate)
		return array_at(&self.answer_rate, 1, sizeof(self.answer_rate), key);
	if (map == &fragments)
		return entry_of(&self.fragments, key, sizeof(__u64));
	if (map == &path_mtus)
		return entry_of(&self.path_mtus, key, 16);
	fail("a map that has no elements to look up");
	return NULL;
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	struct entries *e = map == &fragments ? &self.fragments : &self.path_mtus;
	size_t key_size = map == &fragments ? sizeof(__u64) : 16;
	size_t size = map == &fragments ? sizeof(struct ringlb_fragment) : sizeof(struct ringlb_path_mtu);
	__u64 *entry = entry_of(e, key, key_size);

	check((map == &fragments || map == &path_mtus) && flags == BPF_ANY, "an update that is not known here");
	if (!entry) {
		e->used[e->next] = 1;
		memcpy(e->key[e->next], key, key_size);
		entry = e->value[e->next];
		e->next = (e->next + 1) % ENTRIES;
	}
	memcpy(entry, value, size);
	return 0;
}

static __u64 bpf_jiffies64(void)
{
	return self.jiffies;
}

static __u64 bpf_ktime_get_ns(void)
{
	return self.jiffies * (1000000000 / WORLD_HZ);
}

static __u64 bpf_xdp_get_buff_len(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data + self.rest_length;
}

static long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 offset, void *buf, __u32 len)
{
	__u32 linear = ctx->data_end - ctx->data, here = 0;

	if ((__u64)offset + len > linear + self.rest_length)
		return -1;
	if (offset < linear) {
		here = linear - offset < len ? linear - offset : len;
		memcpy(buf, (char *)(long)ctx->data + offset, here);
	}
	if (here < len)
		memcpy((char *)buf + here, self.rest + (offset + here - linear), len - here);
	return 0;
}

/* What comes before the packet is not zero in a kernel either. */
static long bpf_xdp_adjust_head(struct xdp_md *ctx, int delta)
{
	long data = (long)ctx->data + delta;
	__u32 before = ctx->data;

	if ((delta < 0 && self.flags & NO_HEADROOM) || data < (long)self.arena || data > (long)ctx->data_end - ETH_HLEN)
		return -1;
	ctx->data = data;
	expose(ctx);
	if (delta < 0)
		memset((void *)data, 0xa5, before - ctx->data);
	return 0;
}

/* Only ever shorter here; other buffers first. */
static long bpf_xdp_adjust_tail(struct xdp_md *ctx, int delta)
{
	__u32 less = -delta, rest;

	check(delta <= 0, "a tail that grows");
	if (less + ETH_HLEN > bpf_xdp_get_buff_len(ctx))
		return -1;
	rest = less < self.rest_length ? less : self.rest_length;
	self.rest_length -= rest;
	ctx->data_end -= less - rest;
	expose(ctx);
	return 0;
}

static long bpf_check_mtu(void *ctx, __u32 ifindex, __u32 *mtu_len, __s32 len_diff, __u64 flags)
{
	*mtu_len = 1500;
	return bpf_xdp_get_buff_len(ctx) + len_diff > 1500 + ETH_HLEN ? BPF_MTU_CHK_RET_FRAG_NEEDED : 0;
}

static long bpf_fib_lookup(void *ctx, struct bpf_fib_lookup *params, int plen, __u32 flags)
{
	check(plen == sizeof(*params) && !flags, "a question to the routes that is not known here");
	if (self.flags & NO_ROUTE)
		return BPF_FIB_LKUP_RET_NO_NEIGH;
	params->ifindex = WORLD_INTERFACE + (params->family == 2 ? 0 : 1);
	params->mtu_result = 1400;
	memcpy(params->dmac, (__u8[]){ 2, 0, 0, 0, 2, 0 }, sizeof(params->dmac));
	return 0;
}

static long bpf_redirect_map(void *map, __u64 key, __u64 flags)
{
	check(map == &outputs, "a redirect by another map");
	return key < WORLD_INTERFACES ? XDP_REDIRECT : (long)flags;
}

/* RFC 1071, as the kernel's csum_partial(): not folded to 16 bits. */
static __s64 bpf_csum_diff(__be32 *from, __u32 from_size, __be32 *to, __u32 to_size, __u32 seed)
{
	__u64 sum = seed;

	check(!from && !from_size && to_size % 4 == 0, "a difference");
	for (__u32 i = 0; i < to_size / 4; i++)
		sum += to[i];
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (__u32)(sum + (sum >> 32));
}

static void *bpf_ringbuf_reserve(void *ringbuf, __u64 size, __u64 flags)
{
	check(ringbuf == &traces && !flags, "a ring buffer that is not known here");
	return malloc(size);
}

static void bpf_ringbuf_submit(void *data, __u64 flags)
{
	free(data);
}

static void *room(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	check(memory, "out of memory");
	return memory;
}

/* Once, before anything else. */
static void start(void)
{
	void *arena = mmap((void *)ARENA_AT, ARENA_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	check(arena == (void *)ARENA_AT, "no memory below 4 GB");
	self.arena = arena;
	self.initial = room(1, WORLD_TABLES);
	self.tables = room(1, WORLD_TABLES);
	self.initial_backends = room(WORLD_BACKENDS, sizeof(*self.backends));
	self.backends = room(WORLD_BACKENDS, sizeof(*self.backends));
	self.flows = room(FLOW_BUCKETS, sizeof(*self.flows));
	self.services = room(WORLD_SERVICES, sizeof(*self.services));
	self.counters = room(WORLD_BACKENDS, sizeof(*self.counters));
	world_make(self.initial, self.initial_backends);
}

/* The maps as they were at the start. */
static void reset(void)
{
	memcpy(self.tables, self.initial, WORLD_TABLES);
	memcpy(self.backends, self.initial_backends, WORLD_BACKENDS * sizeof(*self.backends));
	memset(self.flows, 0, FLOW_BUCKETS * sizeof(*self.flows));
	memset(&self.fragments, 0, sizeof(self.fragments));
	memset(&self.path_mtus, 0, sizeof(self.path_mtus));
	memset(&self.trace_rate, 0, sizeof(self.trace_rate));
	memset(&self.answer_rate, 0, sizeof(self.answer_rate));
	self.jiffies = (__u64)WORLD_NOW * WORLD_HZ;
}

/* A frame of at most FRAME_MAX bytes. */
static void place(struct xdp_md *ctx, const struct header *h, const __u8 *frame, __u32 length)
{
	__u32 first = h->first >= ETH_HLEN && h->first < length ? h->first : length;

	self.flags = h->flags;
	self.jiffies += h->passed * WORLD_HZ;
	self.rest_length = length - first;
	*ctx = (struct xdp_md){ .data = ARENA_AT + HEADROOM,
				.data_end = ARENA_AT + HEADROOM + first,
				.ingress_ifindex = WORLD_INTERFACE };
	expose(ctx);
	memcpy((void *)(long)ctx->data, frame, first);
	memcpy(self.rest, frame + first, self.rest_length);
}

#endif
