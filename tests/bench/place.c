/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "bench.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "place.h"

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
	place_ip("link set lo up\n");
}

void place_interface(unsigned int number, char name[PLACE_NAME])
{
	snprintf(name, PLACE_NAME, "rlb%u", number);
}

/* The other end is silent, or the program would count what it says. */
void place_pair(unsigned int number)
{
	char commands[512], file[64];

	snprintf(commands, sizeof(commands),
		 "link add rlb%u type veth peer name peer%u\n"
		 "address add " PLACE_NET4 ".0.1/16 dev rlb%u\n"
		 "address add " PLACE_NET6 "::1/64 dev rlb%u nodad\n",
		 number, number, PLACE_NUMBER4(number), number, number, number);
	place_ip(commands);
	snprintf(file, sizeof(file), "/proc/sys/net/ipv6/conf/peer%u/disable_ipv6", number);
	write_setting(file, "1");
	snprintf(commands, sizeof(commands), "link set rlb%u up\nlink set peer%u up\n", number, number);
	place_ip(commands);
}

unsigned int place_ifindex(unsigned int number)
{
	char name[PLACE_NAME];

	place_interface(number, name);
	return if_nametoindex(name);
}

unsigned int place_other_end(unsigned int number)
{
	char name[PLACE_NAME];

	snprintf(name, sizeof(name), "peer%u", number);
	return if_nametoindex(name);
}
