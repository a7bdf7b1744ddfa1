/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Routes and neighbours against the kernel. As root, in network namespaces of its own:
 *
 *   here                                    there (held by a child process)
 *   na  10.7.0.1/24  fd07::1/64  ---------  nb  10.7.0.2/24  fd07::2/64  02:00:00:00:00:02
 *   lo  192.0.2.1/32
 */
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "diag.h"
#include "neighbour.h"

static const uint8_t there_mac[6] = { 2, 0, 0, 0, 0, 2 };
static struct netlink *nl;
static unsigned int na;
static pid_t there;

static void run(const char *command)
{
	if (system(command))
		fail_msg("failed: %s", command);
}

static void run_there(const char *command)
{
	char *line = xasprintf("nsenter --net=/proc/%ld/ns/net sh -ec '%s'", (long)there, command);

	run(line);
	free(line);
}

static struct address ip(const char *text)
{
	struct address a;

	assert_int_equal(address_parse(text, &a), 0);
	return a;
}

static void assert_address(const struct address *a, const char *text)
{
	char buf[ADDRESS_TEXT];

	assert_string_equal(address_text(a, buf), text);
}

/* Until the kernel has an answer that is final; its own timeouts, of three seconds, end this. */
static int resolved(const char *text, uint8_t mac[6])
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	struct address a = ip(text);
	int err;

	while ((err = neighbour_get(nl, na, &a, mac)) == -EAGAIN)
		nanosleep(&pause, NULL);
	return err;
}

static bool is_managed(const char *text)
{
	char *line = xasprintf("ip neigh show to %s dev na | grep -q managed", text);
	int status = system(line);

	free(line);
	return !status;
}

static pid_t start_there(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNET) || write(ready[1], "x", 1) != 1)
			_exit(1);
		close(ready[0]);
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

static int enter(void **state)
{
	char *move;

	(void)state;
	if (unshare(CLONE_NEWNS | CLONE_NEWNET) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	there = start_there();
	if (there < 0 || netlink_open(&nl))
		return -1;
	run("ip link set lo up; ip addr add 192.0.2.1/32 dev lo");
	run("ip link add na mtu 1600 type veth peer name nb mtu 1600 address 02:00:00:00:00:02");
	move = xasprintf("ip link set nb netns %ld", (long)there);
	run(move);
	free(move);
	run("ip link set na up; ip addr add 10.7.0.1/24 dev na; ip addr add fd07::1/64 dev na nodad");
	run_there("ip link set nb up; ip addr add 10.7.0.2/24 dev nb; ip addr add fd07::2/64 dev nb nodad");
	na = if_nametoindex("na");
	return 0;
}

static int leave(void **state)
{
	(void)state;
	netlink_close(nl);
	if (there > 0) {
		kill(there, SIGKILL);
		waitpid(there, NULL, 0);
	}
	return 0;
}

static int clean(void **state)
{
	(void)state;
	return system("ip neigh flush all nud all; ip route flush root 198.51.100.0/24;"
		      "ip route flush root 203.0.113.0/24;"
		      "ip -6 route flush root 2001:db8::/32") < 0;
}

static void reads_links(void **state)
{
	struct link_info l;

	(void)state;
	assert_int_equal(link_by_name(nl, "na", &l), 0);
	assert_string_equal(l.name, "na");
	assert_int_equal(l.ifindex, na);
	assert_int_equal(l.mtu, 1600);
	assert_true(l.up);
	assert_false(l.loopback);
	assert_int_equal(link_by_index(nl, na, &l), 0);
	assert_string_equal(l.name, "na");
	assert_int_equal(link_by_name(nl, "lo", &l), 0);
	assert_true(l.loopback);
	assert_int_equal(l.mtu, 65536);
	run("ip link set na address 02:00:00:00:00:99; ip link set na down");
	assert_int_equal(link_by_name(nl, "na", &l), 0);
	assert_memory_equal(l.mac, ((uint8_t[]){ 2, 0, 0, 0, 0, 0x99 }), 6);
	assert_false(l.up);
	run("ip link set na up; ip addr replace fd07::1/64 dev na nodad");
	assert_int_equal(link_by_name(nl, "none", &l), -ENODEV);
	assert_int_equal(link_by_name(nl, "", &l), -ENODEV);
	assert_int_equal(link_by_name(nl, "a-name-that-is-too-long", &l), -ENODEV);
	assert_int_equal(link_by_index(nl, 4711, &l), -ENODEV);
	assert_int_equal(link_by_index(nl, 0, &l), -ENODEV);
}

static struct route route_to(const char *text)
{
	struct address a = ip(text);
	struct route r;
	int err = route_get(nl, &a, &r);

	if (err)
		fail_msg("route to %s: %s", text, strerror(-err));
	return r;
}

static void assert_no_route(const char *text, int err)
{
	struct address a = ip(text);
	struct route r;

	assert_int_equal(route_get(nl, &a, &r), err);
}

static void finds_routes(void **state)
{
	struct route r;

	(void)state;
	r = route_to("10.7.0.2");
	assert_int_equal(r.ifindex, na);
	assert_address(&r.gateway, "10.7.0.2");
	assert_address(&r.source, "10.7.0.1");
	assert_int_equal(r.mtu, 1600);
	assert_false(r.local);

	run("ip route add 198.51.100.0/25 via 10.7.0.2 mtu 1480 src 192.0.2.1");
	r = route_to("198.51.100.7");
	assert_address(&r.gateway, "10.7.0.2");
	assert_address(&r.source, "192.0.2.1");
	assert_int_equal(r.mtu, 1480);

	run("ip -6 route add 2001:db8:1::/48 via fd07::2 mtu 1400");
	r = route_to("2001:db8:1::5");
	assert_int_equal(r.ifindex, na);
	assert_address(&r.gateway, "fd07::2");
	assert_address(&r.source, "fd07::1");
	assert_int_equal(r.mtu, 1400);
	r = route_to("fd07::9");
	assert_address(&r.gateway, "fd07::9");
	assert_int_equal(r.mtu, 1600);
}

/* A next hop of the other family, multipath and next-hop groups: what this one destination gets counts. */
static void finds_the_next_hop_that_counts(void **state)
{
	struct route r;

	(void)state;
	run("ip route add 198.51.100.128/25 via inet6 fd07::2 dev na");
	r = route_to("198.51.100.200");
	assert_int_equal(r.ifindex, na);
	assert_address(&r.gateway, "fd07::2");

	run("ip route add 203.0.113.0/25 nexthop via 10.7.0.2 nexthop via 10.7.0.3");
	r = route_to("203.0.113.1");
	assert_int_equal(r.ifindex, na);
	if (r.gateway.byte[15] != 2)
		assert_address(&r.gateway, "10.7.0.3");

	run("ip nexthop add id 7 via 10.7.0.4 dev na; ip nexthop add id 8 group 7");
	run("ip route add 203.0.113.128/25 nhid 8");
	r = route_to("203.0.113.200");
	assert_int_equal(r.ifindex, na);
	assert_address(&r.gateway, "10.7.0.4");
	run("ip nexthop flush >/dev/null 2>&1");
}

static void tells_what_has_no_route(void **state)
{
	(void)state;
	assert_no_route("8.8.8.8", -ENETUNREACH);
	assert_no_route("2001:db8:ffff::1", -ENETUNREACH);
	run("ip route add blackhole 198.51.100.9; ip route add unreachable 198.51.100.10");
	run("ip route add prohibit 198.51.100.11");
	assert_no_route("198.51.100.9", -EINVAL); /* what the kernel says of a black hole */
	assert_no_route("198.51.100.10", -EHOSTUNREACH);
	assert_no_route("198.51.100.11", -EACCES);
	assert_no_route("10.7.0.255", -ENETUNREACH); /* broadcast */
}

static void knows_its_own_addresses(void **state)
{
	static const char *const own[] = { "10.7.0.1", "fd07::1", "192.0.2.1", "127.0.0.1", "127.9.9.9", "::1" };
	static const char *const others[] = { "10.7.0.2", "fd07::2", "192.0.2.2", "8.8.8.8" };
	struct address a;

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		a = ip(own[i]);
		if (!address_is_local(nl, &a) || !route_to(own[i]).local)
			fail_msg("%s is not local", own[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		a = ip(others[i]);
		if (address_is_local(nl, &a))
			fail_msg("%s is local", others[i]);
	}
	/* Answered for by proxy. */
	run("ip neigh add proxy 10.7.0.77 dev na; ip -6 neigh add proxy fd07::77 dev na");
	a = ip("10.7.0.77");
	assert_true(address_is_local(nl, &a));
	a = ip("fd07::77");
	assert_true(address_is_local(nl, &a));
	run("ip neigh del proxy 10.7.0.77 dev na; ip -6 neigh del proxy fd07::77 dev na");
	assert_false(address_is_local(nl, &a));
}

static unsigned int subnet_of(const char *text)
{
	struct address a = ip(text);
	unsigned int ifindex = 0;

	return address_in_subnet(nl, &a, &ifindex) ? ifindex : 0;
}

static void finds_the_subnet(void **state)
{
	(void)state;
	assert_int_equal(subnet_of("10.7.0.200"), na);
	assert_int_equal(subnet_of("fd07::abcd"), na);
	assert_int_equal(subnet_of("10.7.1.1"), 0);
	assert_int_equal(subnet_of("fd07:1::1"), 0);
	assert_int_equal(subnet_of("192.0.2.1"), 0); /* an address alone */
	assert_int_equal(subnet_of("127.0.0.5"), 0); /* no link */
	/* The longest prefix decides; its length need not be whole bytes. */
	run("ip link add nc type veth peer name nd; ip link set nc up; ip addr add 10.7.0.129/26 dev nc");
	assert_int_equal(subnet_of("10.7.0.130"), if_nametoindex("nc"));
	assert_int_equal(subnet_of("10.7.0.191"), if_nametoindex("nc"));
	assert_int_equal(subnet_of("10.7.0.192"), na);
	assert_int_equal(subnet_of("10.7.0.127"), na);
	run("ip addr add 10.8.0.1/28 dev na; ip addr add 10.8.0.2/24 dev nc");
	assert_int_equal(subnet_of("10.8.0.5"), na);
	assert_int_equal(subnet_of("10.8.0.16"), if_nametoindex("nc"));
	run("ip addr del 10.8.0.1/28 dev na; ip link del nc");
}

static void keeps_a_neighbour_fresh(void **state)
{
	static const char *const addresses[] = { "10.7.0.2", "fd07::2" };
	uint8_t mac[6];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct address a = ip(addresses[i]);

		assert_int_equal(neighbour_get(nl, na, &a, mac), -ENOENT);
		assert_int_equal(neighbour_unmanage(nl, na, &a), -ENOENT);
		assert_int_equal(neighbour_manage(nl, na, &a), 0);
		assert_true(is_managed(addresses[i]));
		assert_int_equal(resolved(addresses[i], mac), 0);
		assert_memory_equal(mac, there_mac, 6);
		/* Again changes nothing. */
		assert_int_equal(neighbour_manage(nl, na, &a), 0);
		assert_true(is_managed(addresses[i]));
		assert_int_equal(neighbour_get(nl, na, &a, mac), 0);

		assert_int_equal(neighbour_unmanage(nl, na, &a), 0);
		assert_false(is_managed(addresses[i]));
		assert_int_equal(neighbour_get(nl, na, &a, mac), 0);
		assert_memory_equal(mac, there_mac, 6);
		assert_int_equal(neighbour_unmanage(nl, na, &a), -ENOENT);
	}
}

static void takes_over_what_is_known(void **state)
{
	struct address a = ip("10.7.0.2");
	uint8_t mac[6];

	(void)state;
	run("ip neigh add 10.7.0.2 dev na lladdr 02:00:00:00:00:02 nud stale");
	assert_int_equal(neighbour_manage(nl, na, &a), 0);
	assert_true(is_managed("10.7.0.2"));
	assert_int_equal(neighbour_get(nl, na, &a, mac), 0);
	assert_memory_equal(mac, there_mac, 6);
}

static void leaves_permanent_entries(void **state)
{
	struct address a = ip("10.7.0.50");
	uint8_t mac[6];

	(void)state;
	run("ip neigh add 10.7.0.50 dev na lladdr 02:00:00:00:00:50 nud permanent");
	assert_int_equal(neighbour_manage(nl, na, &a), 0);
	assert_false(is_managed("10.7.0.50"));
	run("ip neigh show to 10.7.0.50 dev na | grep -q PERMANENT");
	assert_int_equal(neighbour_get(nl, na, &a, mac), 0);
	assert_memory_equal(mac, ((uint8_t[]){ 2, 0, 0, 0, 0, 0x50 }), 6);
	assert_int_equal(neighbour_unmanage(nl, na, &a), -ENOENT);
	run("ip neigh show to 10.7.0.50 dev na | grep -q PERMANENT");
}

static void tells_who_does_not_answer(void **state)
{
	struct address a = ip("10.7.0.66");
	uint8_t mac[6];
	int err;

	(void)state;
	run("echo 20 > /proc/sys/net/ipv4/neigh/na/retrans_time_ms");
	assert_int_equal(neighbour_manage(nl, na, &a), 0);
	err = neighbour_get(nl, na, &a, mac);
	assert_true(err == -EAGAIN || err == -EHOSTUNREACH);
	assert_int_equal(resolved("10.7.0.66", mac), -EHOSTUNREACH);
	assert_int_equal(neighbour_manage(nl, 4711, &a), -ENODEV);
}

/* A socket that an error was the answer to is as good as new. */
static void goes_on_after_errors(void **state)
{
	struct address a = ip("10.7.0.2");
	struct link_info l;
	unsigned int ifindex;
	struct route r;

	(void)state;
	for (int i = 0; i < 50; i++) {
		assert_no_route("8.8.8.8", -ENETUNREACH);
		assert_int_equal(link_by_name(nl, "none", &l), -ENODEV);
		assert_true(address_in_subnet(nl, &a, &ifindex));
		assert_int_equal(route_get(nl, &a, &r), 0);
		assert_int_equal(r.ifindex, na);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(reads_links, clean),
		cmocka_unit_test_teardown(finds_routes, clean),
		cmocka_unit_test_teardown(finds_the_next_hop_that_counts, clean),
		cmocka_unit_test_teardown(tells_what_has_no_route, clean),
		cmocka_unit_test_teardown(knows_its_own_addresses, clean),
		cmocka_unit_test_teardown(finds_the_subnet, clean),
		cmocka_unit_test_teardown(keeps_a_neighbour_fresh, clean),
		cmocka_unit_test_teardown(takes_over_what_is_known, clean),
		cmocka_unit_test_teardown(leaves_permanent_entries, clean),
		cmocka_unit_test_teardown(tells_who_does_not_answer, clean),
		cmocka_unit_test_teardown(goes_on_after_errors, clean),
	};

	return cmocka_run_group_tests_name("neighbour", tests, enter, leave);
}
