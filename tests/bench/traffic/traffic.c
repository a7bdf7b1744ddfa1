/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP traffic for the benchmark, over IPv4: a server, and clients that measure.
 *
 *   traffic server PORT                                  "ready" once it listens; ends with its standard input
 *   traffic MODE ADDRESS PORT CONNECTIONS MILLISECONDS   one line of JSON
 *
 * ask       each connection asks and waits for the answer, over and over: answers a second, and their latency
 * connect   the same with a connection of its own for each question
 * upload, download   as many bytes as go: bits a second, as the receiver counts them
 * A connection's first byte is its mode.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 64
#define QUESTION 64u /* bytes; the answer has as many */
#define CHUNK (1u << 16)
#define MAX_LINKS 256
#define MAX_SAMPLES (4u << 20)
#define MAX_FDS 4096
#define ASK 'a'
#define UPLOAD 'u'
#define DOWNLOAD 'd'

static char chunk[CHUNK];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "traffic: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void watch(int poller, int fd, uint32_t events, int operation)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	if (epoll_ctl(poller, operation, fd, &e))
		die("epoll_ctl");
}

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)))
		die("socket");
	return fd;
}

/* The server: what each of its connections is for, and the bytes of a question that have come. */
static struct {
	char mode;
	uint32_t bytes;
} served[MAX_FDS];

static void serve_accept(int poller, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), yes = 1;

	if (fd < 0)
		return;
	if (fd >= MAX_FDS) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	memset(&served[fd], 0, sizeof(served[fd]));
	watch(poller, fd, EPOLLIN, EPOLL_CTL_ADD);
}

/* False: the connection has ended. */
static bool serve_read(int poller, int fd)
{
	ssize_t got = read(fd, chunk, sizeof(chunk));

	if (got < 0)
		return errno == EAGAIN;
	if (!got)
		return false;
	if (!served[fd].mode) {
		served[fd].mode = chunk[0];
		if (chunk[0] == DOWNLOAD)
			watch(poller, fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
	}
	if (served[fd].mode != ASK)
		return true;
	served[fd].bytes += (uint32_t)got;
	if (served[fd].bytes < QUESTION)
		return true;
	served[fd].bytes -= QUESTION;
	return write(fd, chunk, QUESTION) == QUESTION;
}

static void serve_event(int poller, const struct epoll_event *e)
{
	int fd = e->data.fd;
	bool lives = true;

	if (e->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		lives = serve_read(poller, fd);
	if (lives && e->events & EPOLLOUT)
		lives = write(fd, chunk, sizeof(chunk)) >= 0 || errno == EAGAIN;
	if (!lives)
		close(fd);
}

static int serve(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int poller = epoll_create1(EPOLL_CLOEXEC), listener = new_socket(), yes = 1;
	struct epoll_event event[EVENTS];

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 1024))
		die("bind");
	watch(poller, listener, EPOLLIN, EPOLL_CTL_ADD);
	watch(poller, STDIN_FILENO, EPOLLIN, EPOLL_CTL_ADD);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int count = epoll_wait(poller, event, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			if (event[i].data.fd == STDIN_FILENO)
				return 0;
			if (event[i].data.fd == listener)
				serve_accept(poller, listener);
			else
				serve_event(poller, &event[i]);
		}
	}
}

/* The clients. */
static struct {
	struct sockaddr_in to;
	int poller, links;
	double end; /* microseconds */
	double asked[MAX_FDS];
	float *latency;
	size_t answers;
	uint64_t bytes;
} self;

static int open_link(void)
{
	int fd = new_socket();

	if (fd >= MAX_FDS || connect(fd, (struct sockaddr *)&self.to, sizeof(self.to)))
		die("connect");
	return fd;
}

static void ask(int fd)
{
	char question[QUESTION] = { ASK };

	if (write(fd, question, sizeof(question)) != sizeof(question))
		die("write");
}

static void read_answer(int fd)
{
	char answer[QUESTION];

	if (recv(fd, answer, sizeof(answer), MSG_WAITALL) != sizeof(answer))
		die("the answer");
	if (self.answers < MAX_SAMPLES)
		self.latency[self.answers++] = (float)(now() - self.asked[fd]);
}

static void ask_all(void)
{
	struct epoll_event event[EVENTS];

	for (int i = 0; i < self.links; i++) {
		int fd = open_link();

		watch(self.poller, fd, EPOLLIN, EPOLL_CTL_ADD);
		self.asked[fd] = now();
		ask(fd);
	}
	while (now() < self.end) {
		int count = epoll_wait(self.poller, event, EVENTS, 1000);

		if (count <= 0)
			die("no answer");
		for (int i = 0; i < count; i++) {
			read_answer(event[i].data.fd);
			self.asked[event[i].data.fd] = now();
			ask(event[i].data.fd);
		}
	}
}

/* Closed with a reset, or ports would run out. */
static void connect_one_by_one(void)
{
	const struct linger at_once = { .l_onoff = 1 };

	while (now() < self.end) {
		double start = now();
		int fd = open_link();

		self.asked[fd] = start;
		ask(fd);
		read_answer(fd);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(fd);
	}
}

static void upload_or_download(char mode)
{
	struct epoll_event event[EVENTS];

	chunk[0] = mode;
	for (int i = 0; i < self.links; i++) {
		int fd = open_link();

		if (write(fd, chunk, 1) != 1 || fcntl(fd, F_SETFL, O_NONBLOCK))
			die("write");
		watch(self.poller, fd, mode == UPLOAD ? EPOLLOUT : EPOLLIN, EPOLL_CTL_ADD);
	}
	while (now() < self.end) {
		int count = epoll_wait(self.poller, event, EVENTS, 1000);

		if (count <= 0)
			die("nothing moves");
		for (int i = 0; i < count; i++) {
			int fd = event[i].data.fd;
			ssize_t done = mode == UPLOAD ? write(fd, chunk, sizeof(chunk)) :
							read(fd, chunk, sizeof(chunk));

			if (done <= 0 && errno != EAGAIN)
				die("the connection");
			self.bytes += done > 0 ? (uint64_t)done : 0;
		}
	}
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static double percentile(double which)
{
	return self.answers ? (double)self.latency[(size_t)((double)(self.answers - 1) * which)] : 0;
}

static void report(double seconds)
{
	qsort(self.latency, self.answers, sizeof(*self.latency), by_value);
	printf("{\"rate\": %.1f, \"bits\": %.0f, \"p50\": %.2f, \"p99\": %.2f, \"p999\": %.2f}\n",
	       (double)self.answers / seconds, (double)self.bytes * 8 / seconds, percentile(0.5), percentile(0.99),
	       percentile(0.999));
}

static int run_client(const char *mode, char **argv)
{
	double start;

	self.to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])) };
	self.links = atoi(argv[2]);
	if (inet_pton(AF_INET, argv[0], &self.to.sin_addr) != 1 || self.links < 1 || self.links > MAX_LINKS)
		return 2;
	self.poller = epoll_create1(EPOLL_CLOEXEC);
	self.latency = malloc(MAX_SAMPLES * sizeof(*self.latency));
	if (!self.latency)
		die("malloc");
	start = now();
	self.end = start + atof(argv[3]) * 1e3;
	if (!strcmp(mode, "ask"))
		ask_all();
	else if (!strcmp(mode, "connect"))
		connect_one_by_one();
	else if (!strcmp(mode, "upload"))
		upload_or_download(UPLOAD);
	else if (!strcmp(mode, "download"))
		upload_or_download(DOWNLOAD);
	else
		return 2;
	report((now() - start) / 1e6);
	free(self.latency);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 2;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && !strcmp(argv[1], "server"))
		return serve((uint16_t)atoi(argv[2]));
	if (argc == 6)
		status = run_client(argv[1], argv + 2);
	if (status == 2)
		fputs("usage: traffic server PORT | traffic MODE ADDRESS PORT CONNECTIONS MILLISECONDS\n", stderr);
	return status;
}
