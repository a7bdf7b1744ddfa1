// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "breaktest_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define HEAD sizeof(uint16_t)

struct link links[PORTS];
uint16_t live[PORTS];
size_t lives;
struct traffic traffic;

static size_t cursor;
static double credit;
static uint64_t dice = 0x2545f4914f6cdd1dull;

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static uint32_t throw_dice(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 32);
}

static uint16_t port_of(const struct link *l)
{
	return (uint16_t)(l - links);
}

void link_drop(struct link *l, bool reset)
{
	struct linger linger = { .l_onoff = reset };

	setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(l->fd);
	l->phase = GONE;
	for (size_t i = 0; i < lives; i++) {
		if (live[i] != port_of(l))
			continue;
		live[i] = live[--lives];
		break;
	}
}

static void broken(struct link *l, const char *why)
{
	l->why = why;
	link_drop(l, true);
}

static void watch(struct link *l, int operation, bool writable)
{
	struct epoll_event e = { .events = EPOLLIN | (writable ? EPOLLOUT : 0), .data.u32 = port_of(l) };

	if (epoll_ctl(traffic.poller, operation, l->fd, &e))
		broken(l, strerror(errno));
}

/* As much of the present chunk as goes. */
static void put_chunk(struct link *l)
{
	static uint8_t buffer[HEAD + UINT16_MAX];
	uint16_t length = (uint16_t)l->chunk;
	uint32_t whole = HEAD + l->chunk;

	memcpy(buffer, &length, HEAD);
	stream_fill(l->seed ^ STREAM_UP, l->up, buffer + HEAD, l->chunk);
	while (l->put < whole) {
		ssize_t put = send(l->fd, buffer + l->put, whole - l->put, MSG_NOSIGNAL);

		if (put < 0 && errno != EAGAIN) {
			broken(l, strerror(errno));
			return;
		}
		if (put < 0) {
			watch(l, EPOLL_CTL_MOD, true);
			return;
		}
		l->put += (uint32_t)put;
	}
	l->up += l->chunk;
	watch(l, EPOLL_CTL_MOD, false);
}

/* Mostly a packet or two; now and then so much that a window of them is under way. */
static void begin_chunk(struct link *l, uint32_t length)
{
	l->chunk = length;
	l->due = length;
	l->put = 0;
	l->since = now_ms();
	l->fresh = true;
	put_chunk(l);
}

static uint32_t some_length(void)
{
	return throw_dice() % 64 ? 1 + throw_dice() % 2000 : 1 + throw_dice() % 40000;
}

static void connected(struct link *l)
{
	int err = 0;
	socklen_t size = sizeof(err);

	getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &err, &size);
	if (!err && send(l->fd, &l->seed, sizeof(l->seed), MSG_NOSIGNAL) != sizeof(l->seed))
		err = errno;
	if (err) {
		broken(l, strerror(err));
		return;
	}
	l->phase = NAMING;
	watch(l, EPOLL_CTL_MOD, false);
}

/* The server's name, which comes first: how many of the bytes were its. */
static size_t take_name(struct link *l, const uint8_t *data, size_t length)
{
	size_t n = NAME_BYTES - l->named < length ? NAME_BYTES - l->named : length;

	memcpy(l->name + l->named, data, n);
	l->named += n;
	if (l->named == NAME_BYTES && l->phase == NAMING) {
		l->name[NAME_BYTES - 1] = '\0';
		l->phase = OPEN;
		l->beaten = false;
	}
	return n;
}

static void take(struct link *l, const uint8_t *data, size_t length)
{
	size_t name = l->named < NAME_BYTES ? take_name(l, data, length) : 0;
	double took;

	data += name;
	length -= name;
	if (length > l->due || !stream_matches(l->seed ^ STREAM_DOWN, l->down, data, length)) {
		broken(l, "other bytes than the server's");
		return;
	}
	l->down += length;
	l->due -= length;
	traffic.bytes += 2 * length;
	if (!length || l->due)
		return;
	took = now_ms() - l->since;
	traffic.slowest = took > traffic.slowest ? took : traffic.slowest;
	l->beaten |= l->fresh;
}

void link_ready(struct link *l, uint32_t events)
{
	static uint8_t buffer[65536];

	if (l->phase == CONNECTING) {
		connected(l);
		return;
	}
	while (l->phase != GONE) {
		ssize_t got = recv(l->fd, buffer, sizeof(buffer), 0);

		if (got < 0 && errno == EAGAIN)
			break;
		if (got < 0)
			broken(l, strerror(errno));
		else if (!got && l->phase == FINISHING && !l->due)
			link_drop(l, false);
		else if (!got)
			broken(l, "closed by the server");
		else
			take(l, buffer, (size_t)got);
	}
	if (l->phase >= OPEN && events & EPOLLOUT)
		put_chunk(l);
}

void link_tick(void)
{
	double now = now_ms();
	size_t turns;

	for (size_t i = lives; i-- > 0;) {
		struct link *l = &links[live[i]];

		if (now - l->since > traffic.stall && (l->due || l->phase != OPEN))
			broken(l, "stalled");
	}
	credit += (double)lives * TICK_MS / traffic.interval;
	turns = (size_t)credit;
	credit -= (double)turns;
	for (size_t i = 0; i < turns && lives; i++) {
		struct link *l = &links[live[cursor++ % lives]];

		if (l->phase == OPEN && !l->due && !traffic.paused)
			begin_chunk(l, some_length());
	}
}

static int bind_and_connect(int fd, const char *address, uint16_t to, uint16_t from)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6 };
	bool six = inet_pton(AF_INET6, address, &a6.sin6_addr) == 1;
	struct sockaddr *a = six ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
	struct sockaddr_in6 any = { .sin6_family = six ? AF_INET6 : AF_INET, .sin6_port = htons(from) };
	socklen_t size = six ? sizeof(a6) : sizeof(a4);

	a4.sin_port = htons(to);
	a6.sin6_port = htons(to);
	if (!six && inet_pton(AF_INET, address, &a4.sin_addr) != 1) {
		errno = EINVAL;
		return -1;
	}
	if (bind(fd, (struct sockaddr *)&any, size))
		return -1;
	return connect(fd, a, size) && errno != EINPROGRESS ? -1 : 0;
}

void link_open(struct link *l, const char *address, uint16_t to)
{
	int one = 1;

	memset(l, 0, sizeof(*l));
	l->fd = socket(strchr(address, ':') ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	l->seed = (uint64_t)throw_dice() << 32 | throw_dice();
	l->phase = CONNECTING;
	l->listed = true;
	l->since = now_ms();
	live[lives++] = port_of(l);
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind_and_connect(l->fd, address, to, port_of(l)))
		broken(l, strerror(errno));
	else
		watch(l, EPOLL_CTL_ADD, true);
}

void link_finish(struct link *l)
{
	l->phase = FINISHING;
	begin_chunk(l, 0);
}
