// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connections: how many, and for how long. */
#include "listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "listener_private.h"

#define BACKLOG 128
/*
 * Deadlines: for a whole request, from the connection or the last answer on, and for a whole answer. libmicrohttpd's own
 * timeout begins anew with every byte, so that a client could hold a place for as long as it likes.
 */
#define REQUEST_MS 10000u
#define ANSWER_MS 30000u
/* When places get scarce. */
#define SCARCE (LISTENER_CONNECTIONS * 3 / 4)
#define REQUEST_SCARCE_MS 1000u
#define ANSWER_SCARCE_MS 5000u
#define CHECK_MS 250 /* how late a deadline may be noticed */

struct connection {
	struct connection *next, **link;
	struct MHD_Connection *mhd;
	uint64_t since; /* of this request or answer */
	bool answering;
	bool ended; /* shut down, soon to be closed */
};

struct listener {
	struct MHD_Daemon *daemon;
	struct connection *connection;
	size_t connections;
	bool closed; /* some of them, since it was last set to false */
	uint64_t checked;
	struct content content;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int listener_bind(const char *where, struct diag *d)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct address address;
	int fd, err, one = 1;
	uint16_t port;
	bool ipv4;

	err = address_parse_port(where, &address, &port);
	if (err) {
		diag_error(d, "listen", "", "status_listen: \"%s\" is not ADDRESS:PORT", where);
		return err;
	}
	ipv4 = address_is_ipv4(&address);
	v4.sin_port = v6.sin6_port = htons(port);
	memcpy(&v4.sin_addr, address.byte + 12, 4);
	memcpy(&v6.sin6_addr, address.byte, 16);
	fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, ipv4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, ipv4 ? sizeof(v4) : sizeof(v6)) ||
	    listen(fd, BACKLOG)) {
		err = -errno;
		diag_error(
			d, "listen", "",
			"status_listen: can't listen at %s: %s; it is tried again until that is free, or this host's",
			where, strerror(-err));
		if (fd >= 0)
			close(fd);
		return err;
	}
	return fd;
}

static void end_connection(struct connection *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

	/* libmicrohttpd then sees the end of the stream and closes. */
	if (info)
		shutdown(info->connect_fd, SHUT_RDWR);
	c->ended = true;
}

static void on_connection(void *arg, struct MHD_Connection *mhd, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct listener *l = arg;
	struct connection *c = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = c = xcalloc(1, sizeof(*c));
		c->mhd = mhd;
		c->since = now_ms();
		c->link = &l->connection;
		c->next = l->connection;
		if (c->next)
			c->next->link = &c->next;
		l->connection = c;
		l->connections++;
	} else if (c) {
		*c->link = c->next;
		if (c->next)
			c->next->link = c->link;
		l->connections--;
		l->closed = true;
		free(c);
		*context = NULL;
	}
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void on_completed(void *arg, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode code)
{
	struct connection *c = connection_of(mhd);
	struct listener *l = arg;

	(void)request;
	(void)code;
	if (!c)
		return;
	c->since = now_ms();
	c->answering = false;
	if (l->connections >= SCARCE)
		end_connection(c);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *mhd, const char *path, const char *method,
				  const char *version, const char *upload, size_t *upload_size, void **request)
{
	bool get = !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
	struct connection *c = connection_of(mhd);
	struct listener *l = arg;
	struct MHD_Response *r;
	enum MHD_Result result;
	uint64_t now = now_ms();
	unsigned int status;
	bool once = true;

	(void)version;
	(void)upload;
	/* An answer at the first call, before the body is read, closes the connection: so for what should have no body. */
	if (get && !*request) {
		*request = l;
		return MHD_YES;
	}
	if (*upload_size)
		return MHD_NO;
	if (c) {
		c->since = now;
		c->answering = true;
	}
	if (get)
		r = content_answer(&l->content, path,
				   MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT), now,
				   &status, &once);
	else
		r = content_wrong_method(&status);
	if (!r)
		return MHD_NO;
	result = MHD_queue_response(mhd, status, r);
	if (once)
		MHD_destroy_response(r);
	return result;
}

/* A path that goes on behind an escaped zero is none. */
static size_t unescape(void *arg, struct MHD_Connection *mhd, char *text)
{
	size_t length = MHD_http_unescape(text);

	(void)arg;
	(void)mhd;
	if (strlen(text) == length)
		return length;
	*text = 0;
	return 0;
}

struct listener *listener_new(int fd)
{
	struct listener *l = xcalloc(1, sizeof(*l));

	l->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, l, MHD_OPTION_LISTEN_SOCKET, fd,
				     MHD_OPTION_CONNECTION_LIMIT, LISTENER_CONNECTIONS,
				     MHD_OPTION_PER_IP_CONNECTION_LIMIT, LISTENER_CONNECTIONS / 2,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LISTENER_MEMORY,
				     MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_NOTIFY_COMPLETED,
				     on_completed, l, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
				     MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	if (l->daemon)
		return l;
	close(fd);
	free(l);
	return NULL;
}

void listener_free(struct listener *l)
{
	if (!l)
		return;
	MHD_stop_daemon(l->daemon); /* closes the socket too */
	content_free(&l->content);
	free(l);
}

int listener_fd(const struct listener *l)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	return info->epoll_fd;
}

int listener_timeout(const struct listener *l)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(l->daemon, &ms) == MHD_YES && ms < CHECK_MS)
		return (int)ms;
	return l->connections ? CHECK_MS : -1;
}

static void check_deadlines(struct listener *l, uint64_t now)
{
	bool scarce = l->connections >= SCARCE;

	for (struct connection *c = l->connection; c; c = c->next) {
		uint64_t limit = c->answering ? (scarce ? ANSWER_SCARCE_MS : ANSWER_MS) :
						(scarce ? REQUEST_SCARCE_MS : REQUEST_MS);

		if (!c->ended && now - c->since >= limit)
			end_connection(c);
	}
}

void listener_step(struct listener *l)
{
	uint64_t now = now_ms();

	if (now - l->checked >= CHECK_MS) {
		l->checked = now;
		check_deadlines(l, now);
	}
	/*
	 * At its limit libmicrohttpd stops listening, and begins again in the first run that finds a place free: the one
	 * after that in which a connection was closed. It would never come when that was the last connection.
	 */
	do {
		l->closed = false;
		MHD_run(l->daemon);
	} while (l->closed);
}

int listener_snapshot(struct listener *l, const char *text, size_t length)
{
	return content_set(&l->content, text, length, now_ms());
}
