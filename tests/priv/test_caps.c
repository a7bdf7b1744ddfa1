// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a daemon can do with the capabilities that it keeps, and no others: load every program anew, as it has to for an
 * upgrade or larger tables; and how many instructions the verifier looks at for each. As root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/libbpf.h>
#include <linux/capability.h>

#include "daemon_caps.h"
#include "datapath.h"
#include "decap.skel.h"
#include "probe.skel.h"
#include "ringlb.skel.h"

#define MOST 200000u
#define LOG 65536u
#define BIT(capability) (1ull << (capability))

static uint64_t effective(void)
{
	unsigned long long caps = 0;
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	return caps;
}

/* 0, or what went wrong, as the exit status of a process that has nothing else to lose. */
enum { LOADED, NOT_KEPT, OTHERS_KEPT, NO_DATAPATH, NOT_LOADED, TOO_LARGE };

/* Loads an object's programs, and prints what the verifier says of each. */
static int load(struct bpf_object *object)
{
	static char log[4][LOG];
	struct bpf_program *p;
	unsigned int n = 0, insns;
	int status = LOADED;

	bpf_object__for_each_program(p, object)
	{
		bpf_program__set_log_level(p, 4); /* the statistics alone */
		bpf_program__set_log_buf(p, log[n++], LOG);
	}
	if (bpf_object__load(object))
		return NOT_LOADED;
	n = 0;
	bpf_object__for_each_program(p, object)
	{
		const char *processed = strstr(log[n++], "processed ");

		if (!processed || sscanf(processed, "processed %u insns", &insns) != 1)
			return NOT_LOADED;
		printf("%-8s %7u instructions verified, of at most %u\n", bpf_program__name(p), insns, MOST);
		if (insns >= MOST)
			status = TOO_LARGE;
	}
	fflush(stdout);
	return status;
}

static int load_all(void)
{
	struct ringlb_bpf *ringlb = ringlb_bpf__open();
	struct probe_bpf *probe = probe_bpf__open();
	struct decap_bpf *decap = decap_bpf__open();
	int status = ringlb && probe && decap ? LOADED : NOT_LOADED;

	if (!status)
		status = load(ringlb->obj);
	if (!status)
		status = load(probe->obj);
	if (!status)
		status = load(decap->obj);
	ringlb_bpf__destroy(ringlb);
	probe_bpf__destroy(probe);
	decap_bpf__destroy(decap);
	return status;
}

static int as_daemon(void)
{
	const struct datapath_sizes sizes = { .tables = 100000, .backends = 7, .services = 3, .flow_buckets = 5 };
	struct diag d = { 0 };
	struct datapath *dp;
	int err;

	if (caps_keep())
		return NOT_KEPT;
	if (effective() != (BIT(CAP_NET_ADMIN) | BIT(CAP_PERFMON) | BIT(CAP_BPF)))
		return OTHERS_KEPT;
	err = datapath_create(&sizes, &dp, &d);
	for (size_t i = 0; i < d.count; i++)
		fprintf(stderr, "%s\n", d.entry[i].message);
	diag_free(&d);
	if (err)
		return NO_DATAPATH;
	datapath_free(dp);
	return load_all();
}

static void test_programs_load(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(as_daemon());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), LOADED);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_programs_load) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
