/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the benchmark's BPF programs and its user space both see. */
#ifndef BENCH_ABI_H
#define BENCH_ABI_H

#include <linux/types.h>

#include "ringlb_abi.h"

#define BENCH_FRAME_IPV4 64u /* bytes of the client's frame, whole 64-bit words */
#define BENCH_FRAME_IPV6 80u
#define BENCH_CLIENT_AT_IPV4 26u /* the client address's last 4 bytes in the frame */
#define BENCH_CLIENT_AT_IPV6 34u
#define BENCH_PORT_AT_IPV4 34u
#define BENCH_PORT_AT_IPV6 54u
#define BENCH_SERVICE_AT_IPV4 32u /* the service address's last 2 bytes */
#define BENCH_SERVICE_AT_IPV6 52u
#define BENCH_MAX_FLOWS (1u << 24) /* that bench_client() tells apart */

/* The driver's settings and notes: its global variable `drive`. */
struct bench_drive {
	__u64 frame[BENCH_FRAME_IPV6 / 8]; /* the driver fills in what the flow has of its own, which is 0 here */
	__u32 flow, flows;                 /* the flow that comes next, of how many */
	__u32 left;       /* frame's length as the program under test should leave it, and as the first one comes in */
	__u32 keep_frame; /* a planted fault: every second frame is what the program made of the one before */
	__u32 service;    /* the service address's last 2 bytes, host order, of flow 0; */
	__u32 service_mask; /* of others it has, on top, these bits of the flow's number */
	__u64 wrong;        /* frames of another length */
	__u64 received;     /* by the program `receive` */
};

/* The client of flow i: its address's last 4 bytes, and its port, in host order. Neighbours look nothing alike. */
static inline __attribute__((always_inline)) __u32 bench_client(__u32 i)
{
	return 0x0a000000u | ((i * 0x9e3779b1u) & 0xffffffu);
}

static inline __attribute__((always_inline)) __u16 bench_port(__u32 i)
{
	return (__u16)(0x8000u | (i & 0x3fffu));
}

#define BENCH_FLAT_SLOTS 65537u /* a prime, as Katran's tables have it */
#define BENCH_RINGS 4u
#define BENCH_KEYS 4096u /* look-ups in one run of a program */

/* Of the look-up programs: their global variable `look`. */
struct bench_look {
	struct ringlb_service ring[BENCH_RINGS]; /* where in the map `tables` each table is */
	__u32 which;                             /* of ring */
	__u32 key;                               /* the state of the keys' generator, carried on */
	__u64 sum; /* of the answers: says that they were right, and keeps the compiler from dropping them */
};

/* The next key; answer counts only in dependent runs. */
static inline __attribute__((always_inline)) __u32 bench_next_key(__u32 key, __u32 answer)
{
	return (key + answer) * 0x9e3779b1u + 0x7f4a7c15u;
}

/* What is looked up: the generator's state, mixed, since its low bits have short periods. */
static inline __attribute__((always_inline)) __u32 bench_position(__u32 key)
{
	key = (key ^ key >> 15) * 0x85ebca6bu;
	return key ^ key >> 13;
}

#endif
