/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "bench.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* A pair, both ends here. The other end is silent, or the program would count what it says. */
static const char links[] = "link set lo up\n"
			    "link add " BENCH_INTERFACE " type veth peer name peer\n"
			    "address add 10.77.0.1/16 dev " BENCH_INTERFACE "\n"
			    "address add fd77::1/64 dev " BENCH_INTERFACE " nodad\n";
static const char up[] = "link set " BENCH_INTERFACE " up\n"
			 "link set peer up\n";

void place_ip(const char *commands)
{
	FILE *ip = popen("ip -batch -", "w");

	if (!ip || fputs(commands, ip) < 0 || pclose(ip))
		bench_die(0, "ip(8) failed");
}

static void write_setting(const char *file, const char *value)
{
	FILE *f = fopen(file, "we");

	if (!f || fputs(value, f) < 0 || fclose(f))
		bench_die(errno, "%s", file);
}

/* Everything lives in a mount and a network namespace that end with this process, however it ends. */
void place_enter(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWNET))
		bench_die(errno, "a namespace of its own: run it as root");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("bench", "/run", "tmpfs", 0, NULL) ||
	    mkdir("/run/bpf", 0700) || mount("bench", "/run/bpf", "bpf", 0, NULL))
		bench_die(errno, "a place for pins");
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("RINGLB_BPFFS", "/run/bpf", 1);
	setenv("RINGLB_STATE_DIR", "/run/state", 1);
	setenv("RINGLB_RUN_DIR", "/run/lock", 1);
	/* As on a balancer: without forwarding the kernel's routes are of no use to the program. */
	write_setting("/proc/sys/net/ipv4/ip_forward", "1");
	write_setting("/proc/sys/net/ipv6/conf/all/forwarding", "1");
	place_ip(links);
	write_setting("/proc/sys/net/ipv6/conf/peer/disable_ipv6", "1");
	place_ip(up);
}

unsigned int place_ifindex(void)
{
	return if_nametoindex(BENCH_INTERFACE);
}
