// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * breaktest_client INTERVAL_MS STALL_MS: the client of the break test. Each of its connections sends a chunk every
 * INTERVAL_MS and checks the answer (breaktest.h); one whose answer is not complete after STALL_MS is broken. It takes
 * a command a line and answers each with a line of JSON; traffic goes on all the time. A connection is named by its
 * source port.
 *
 *   open ADDRESS PORT PORTS   connects from each of PORTS (20000,20005-20009)
 *                             {"opened": {"20000": "b1", ...}, "failed": {"20005": "why"}}
 *   reset PORTS               ends them with a reset          {"closed": N}
 *   finish PORTS              asks the server to end them     {"closed": N}; one that breaks meanwhile is broken
 *   beat                      waits until every connection has had a chunk answered that it began after this:
 *                             {"alive": N, "bytes": N, "slowest_ms": N, "broken": [["20000", "b1", "why"], ...]}
 *                             broken: since the last beat
 *   pause, resume             no new chunks, once every answer is there      {"alive": N}
 *
 * Ends with standard input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "breaktest_link.h"

/* Marks the ports of a list; those that have a connection, or have none, as wanted. */
static void list_ports(char *text, bool want_live)
{
	for (size_t i = 0; i < PORTS; i++)
		links[i].listed = false;
	for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) {
		unsigned int first = 0, last = 0;

		if (sscanf(part, "%u-%u", &first, &last) < 2)
			last = first;
		for (; first && first <= last && last < PORTS; first++)
			links[first].listed = (links[first].phase != GONE) == want_live;
	}
}

/* Connections listed, or with listed false any, in phases from first to last. */
static size_t count(bool listed, enum phase first, enum phase last)
{
	size_t n = 0;

	for (size_t i = 0; i < lives; i++) {
		const struct link *l = &links[live[i]];

		n += l->phase >= first && l->phase <= last && (l->listed || !listed);
	}
	return n;
}

static bool open_done(void)
{
	const char *comma = "";

	if (count(true, CONNECTING, NAMING))
		return false;
	printf("{\"opened\": {");
	for (size_t i = 0; i < PORTS; i++)
		if (links[i].listed && links[i].phase == OPEN) {
			printf("%s\"%zu\": \"%s\"", comma, i, links[i].name);
			comma = ", ";
		}
	comma = "";
	printf("}, \"failed\": {");
	for (size_t i = 0; i < PORTS; i++)
		if (links[i].listed && links[i].phase == GONE) {
			printf("%s\"%zu\": \"%s\"", comma, i, links[i].why ? links[i].why : "gone");
			links[i].why = NULL;
			comma = ", ";
		}
	printf("}}\n");
	return true;
}

static bool close_done(void)
{
	size_t closed = 0;

	if (count(true, OPEN, FINISHING))
		return false;
	for (size_t i = 0; i < PORTS; i++)
		closed += links[i].listed && !links[i].why;
	printf("{\"closed\": %zu}\n", closed);
	return true;
}

/* Connections that have answered the last one close as soon as they can. */
static bool finish_done(void)
{
	for (size_t i = lives; i-- > 0;) {
		struct link *l = &links[live[i]];

		if (l->listed && l->phase == OPEN && !l->due)
			link_finish(l);
	}
	return close_done();
}

static bool beat_done(void)
{
	const char *comma = "";

	for (size_t i = 0; i < lives; i++)
		if (links[live[i]].phase == OPEN && !links[live[i]].beaten)
			return false;
	printf("{\"alive\": %zu, \"bytes\": %llu, \"slowest_ms\": %.0f, \"broken\": [", count(false, OPEN, OPEN),
	       (unsigned long long)traffic.bytes, traffic.slowest);
	traffic.slowest = 0;
	for (size_t i = 0; i < PORTS; i++)
		if (links[i].why) {
			printf("%s[\"%zu\", \"%s\", \"%s\"]", comma, i, links[i].name, links[i].why);
			links[i].why = NULL;
			comma = ", ";
		}
	printf("]}\n");
	return true;
}

static bool pause_done(void)
{
	for (size_t i = 0; i < lives; i++)
		if (links[live[i]].due || links[live[i]].phase != OPEN)
			return false;
	printf("{\"alive\": %zu}\n", lives);
	return true;
}

static bool at_once(void)
{
	printf("{\"alive\": %zu}\n", lives);
	return true;
}

static bool (*unfinished)(void); /* the command under way: true once it has answered */

static void command(char *line)
{
	char address[64] = "", ports[65536] = "";
	unsigned int to = 0;

	if (sscanf(line, "open %63s %u %65535s", address, &to, ports) == 3) {
		list_ports(ports, false);
		for (size_t i = 0; i < PORTS; i++)
			if (links[i].listed)
				link_open(&links[i], address, (uint16_t)to);
		unfinished = open_done;
	} else if (sscanf(line, "reset %65535s", ports) == 1) {
		list_ports(ports, true);
		for (size_t i = lives; i-- > 0;)
			if (links[live[i]].listed)
				link_drop(&links[live[i]], true);
		unfinished = close_done;
	} else if (sscanf(line, "finish %65535s", ports) == 1) {
		list_ports(ports, true);
		unfinished = finish_done;
	} else if (!strcmp(line, "beat")) {
		for (size_t i = 0; i < lives; i++)
			links[live[i]].fresh = links[live[i]].beaten = false;
		unfinished = beat_done;
	} else {
		traffic.paused = !strcmp(line, "pause");
		unfinished = traffic.paused ? pause_done : at_once;
	}
}

/* Standard input as lines; false at its end. */
static bool take_commands(void)
{
	static char text[131072];
	static size_t have;
	ssize_t got = read(0, text + have, sizeof(text) - 1 - have);
	char *end;

	if (got <= 0)
		return false;
	have += (size_t)got;
	text[have] = '\0';
	end = strchr(text, '\n');
	if (!end)
		return true;
	*end = '\0';
	command(text);
	have = 0; /* whoever commands waits for the answer */
	return true;
}

int main(int argc, char **argv)
{
	struct epoll_event e = { .events = EPOLLIN };
	double next = now_ms();

	if (argc != 3)
		return 2;
	traffic.interval = atof(argv[1]);
	traffic.stall = atof(argv[2]);
	traffic.poller = epoll_create1(EPOLL_CLOEXEC);
	if (traffic.poller < 0 || epoll_ctl(traffic.poller, EPOLL_CTL_ADD, 0, &e))
		return 1;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	for (;;) {
		struct epoll_event events[256];
		int n = epoll_wait(traffic.poller, events, 256, TICK_MS);

		for (int i = 0; i < n; i++) {
			if (!events[i].data.u32 && !take_commands())
				return 0;
			if (events[i].data.u32 && links[events[i].data.u32].phase != GONE)
				link_ready(&links[events[i].data.u32], events[i].events);
		}
		for (; next < now_ms(); next += TICK_MS)
			link_tick();
		if (unfinished && unfinished())
			unfinished = NULL;
		fflush(stdout);
	}
}
