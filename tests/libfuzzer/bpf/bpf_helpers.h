/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In the place of libbpf's header where the programs are built for user space: the kernel's helpers as functions, which
 * kernel.h has. Only those that the programs call: another one is a fault of the build.
 */
#ifndef RINGLB_TESTS_BPF_HELPERS_H
#define RINGLB_TESTS_BPF_HELPERS_H

#include <linux/bpf.h>
#include <stddef.h>

#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define SEC(name)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#undef __noinline
#define __noinline static __attribute__((noinline)) /* or names of the library would be the program's */

static void *bpf_map_lookup_elem(void *map, const void *key);
static long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
static __u64 bpf_jiffies64(void);
static __u64 bpf_ktime_get_ns(void);
static __u64 bpf_xdp_get_buff_len(struct xdp_md *ctx);
static long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 offset, void *buf, __u32 len);
static long bpf_xdp_adjust_head(struct xdp_md *ctx, int delta);
static long bpf_xdp_adjust_tail(struct xdp_md *ctx, int delta);
static long bpf_check_mtu(void *ctx, __u32 ifindex, __u32 *mtu_len, __s32 len_diff, __u64 flags);
static long bpf_fib_lookup(void *ctx, struct bpf_fib_lookup *params, int plen, __u32 flags);
static long bpf_redirect_map(void *map, __u64 key, __u64 flags);
static __s64 bpf_csum_diff(__be32 *from, __u32 from_size, __be32 *to, __u32 to_size, __u32 seed);
static void *bpf_ringbuf_reserve(void *ringbuf, __u64 size, __u64 flags);
static void bpf_ringbuf_submit(void *data, __u64 flags);

#endif
