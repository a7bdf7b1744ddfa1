/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "bench.h"

#include <errno.h>
#include <time.h>

#include <linux/bpf.h>
#include <bpf/bpf.h>

static double thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/*
 * The kernel's own figure is whole nanoseconds of wall time; this thread's time has fractions and leaves out what other
 * processes took.
 */
double bench_run(struct bench_run *r, uint32_t count)
{
	struct xdp_md md = { .data_end = r->in_length, .ingress_ifindex = r->ifindex };
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = r->in, .data_size_in = r->in_length, .data_out = r->out,
			    .data_size_out = sizeof(r->out), .repeat = (int)count);
	double start;
	int err;

	if (r->ifindex) {
		opts.ctx_in = &md;
		opts.ctx_size_in = sizeof(md);
	}
	start = thread_ns();
	err = bpf_prog_test_run_opts(r->prog, &opts);
	start = thread_ns() - start;
	if (err)
		bench_die(-err, "BPF_PROG_TEST_RUN");
	r->out_length = opts.data_size_out;
	r->action = opts.retval;
	return start / count;
}
