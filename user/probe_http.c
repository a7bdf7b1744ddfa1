/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HTTP/1.1 and HTTPS, by libcurl on a socket that is made here. Each check is a connection of its own with a whole
 * handshake: one that is reused, or a session that is resumed, proves less.
 */
#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_expect.h"
#include "probe_private.h"

#define BODY_MAX 65536u
#define CA_CACHE_S 60l /* a changed file is noticed after as long */

/*
 * libcurl keeps one parsed file of trusted certificates per multi handle, and reading the system's takes 20 ms: so each
 * file has a multi handle.
 */
struct probe_trust {
	struct probe_trust *next;
	struct probe_engine *e;
	char *ca; /* NULL: the system's, or none is asked for */
	CURLM *multi;
	uint64_t due;
};

struct probe_web {
	struct probe_trust *trust;
};

/* One request. */
struct probe_transfer {
	struct probe *p;
	struct probe_trust *trust;
	CURL *easy;
	int fd; /* curl's */
	struct curl_slist *header, *connect_to;
	char error[CURL_ERROR_SIZE];
	uint8_t *body;
	size_t length;
	bool enough; /* of the body was read, and curl told to stop */
};

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *per_socket)
{
	static const uint32_t events[] = { [CURL_POLL_NONE] = 0,
					   [CURL_POLL_IN] = EPOLLIN,
					   [CURL_POLL_OUT] = EPOLLOUT,
					   [CURL_POLL_INOUT] = EPOLLIN | EPOLLOUT };
	struct probe_trust *t = context;
	struct probe *p;

	(void)per_socket;
	if (what == CURL_POLL_REMOVE) {
		probe_watch_fd(t->e, fd, NULL, 0);
		return 0;
	}
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &p);
	return probe_watch_fd(t->e, fd, &p->watch, events[what]) ? -1 : 0;
}

static int on_timer(CURLM *multi, long ms, void *context)
{
	struct probe_trust *t = context;

	(void)multi;
	t->due = ms < 0 ? PROBE_NEVER : t->e->now + (uint64_t)ms;
	return 0;
}

static struct probe_trust *trust_for(struct probe_engine *e, const char *ca)
{
	struct probe_trust *t;

	for (t = e->web->trust; t; t = t->next) {
		if (ca && t->ca ? !strcmp(ca, t->ca) : ca == t->ca)
			return t;
	}
	t = xcalloc(1, sizeof(*t));
	*t = (struct probe_trust){ .next = e->web->trust, .e = e, .due = PROBE_NEVER, .multi = curl_multi_init() };
	if (!t->multi)
		diag_fatal("out of memory");
	t->ca = ca ? xstrdup(ca) : NULL;
	curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t);
	curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t);
	e->web->trust = t;
	return t;
}

/* Takes the probe's socket; from here on it is curl's. */
static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct probe *p = context;
	int fd = p->fd;

	(void)address;
	if (purpose != CURLSOCKTYPE_IPCXN || fd < 0)
		return CURL_SOCKET_BAD;
	p->fd = -1;
	p->transfer->fd = fd;
	return fd;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
	struct probe_transfer *t = context;
	const char *wanted = t->p->check->is->body;
	size_t length = size * count;

	if (!wanted || length > BODY_MAX - t->length) {
		t->enough = true;
		length = wanted ? BODY_MAX - t->length : 0;
	}
	if (length) {
		t->body = xreallocarray(t->body, t->length + length, 1);
		memcpy(t->body + t->length, bytes, length);
		t->length += length;
	}
	return t->enough ? 0 : size * count;
}

/* "https://example.org:8443/path", and what to connect to where the name is not it. */
static char *url_of(struct probe_transfer *t)
{
	const struct config_check *c = t->p->check->is;
	const char *scheme = c->type == CHECK_HTTPS ? "https" : "http";
	char address[ADDRESS_PORT_TEXT], *text;

	address_port_text(&t->p->address, c->port, address);
	if (!c->host)
		return xasprintf("%s://%s%s", scheme, address, c->path);
	text = xasprintf("::%s", address);
	t->connect_to = curl_slist_append(NULL, text);
	free(text);
	text = xasprintf("Host: %s", c->host);
	t->header = curl_slist_append(t->header, text);
	free(text);
	return xasprintf("%s://%s:%u%s", scheme, c->host, c->port, c->path);
}

static void set_tls(CURL *easy, const struct config_check *c)
{
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, (long)c->verify);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, c->verify ? 2l : 0l);
	curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0l);
	curl_easy_setopt(easy, CURLOPT_SSL_ENABLE_ALPN, 0l);
	curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, CA_CACHE_S);
	curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* with it, nothing is cached */
	if (c->ca || !c->verify)                      /* what is not needed would be read each time */
		curl_easy_setopt(easy, CURLOPT_CAINFO, c->ca);
}

/* Nothing of the environment, nothing that waits, nothing beyond this one request. */
static void set_request(struct probe_transfer *t, CURL *easy)
{
	char *url = url_of(t);

	t->header = curl_slist_append(t->header, "Connection: close");
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_CONNECT_TO, t->connect_to);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->header);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, t->p);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, t->p);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "ringlb");
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1l);
	curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1l);
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1l);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 16384l);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1l);
	free(url);
	if (t->p->check->is->type == CHECK_HTTPS)
		set_tls(easy, t->p->check->is);
}

static void start(struct probe *p)
{
	struct probe_transfer *t = xcalloc(1, sizeof(*t));

	p->transfer = t;
	t->p = p;
	t->fd = -1;
	t->trust = trust_for(p->e, p->check->is->ca);
	t->easy = curl_easy_init();
	if (!t->easy)
		diag_fatal("out of memory");
	set_request(t, t->easy);
	if (curl_multi_add_handle(t->trust->multi, t->easy))
		probe_end(p, PROBE_UNKNOWN, "this host can't check it: libcurl refused");
}

static void stop(struct probe *p)
{
	struct probe_transfer *t = p->transfer;

	curl_multi_remove_handle(t->trust->multi, t->easy); /* closes the connection */
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->header);
	curl_slist_free_all(t->connect_to);
	free(t->body);
	free(t);
	p->transfer = NULL;
}

static const char *where(struct probe *p)
{
	curl_off_t secured = 0, answered = 0;
	CURL *easy = p->transfer->easy;
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);

	curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &secured);
	curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &answered);
	/* libcurl's own time of connecting is set only when TLS is through. */
	if (getpeername(p->transfer->fd, (struct sockaddr *)&peer, &length))
		return "while connecting";
	if (p->check->is->type == CHECK_HTTPS && !secured)
		return "in the TLS handshake";
	return answered ? "reading the answer" : "waiting for the answer";
}

/* An answer came: is it the wanted one? */
static void judge(struct probe_transfer *t)
{
	const struct config_check *c = t->p->check->is;
	uint8_t wanted[EXPECT_MAX_BYTES];
	size_t length = c->body ? expect_bytes(c->body, wanted) : 0;
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (!expect_status(c->expect, (unsigned int)status))
		probe_end(t->p, PROBE_BAD, "status %ld, want %s", status, c->expect);
	else if (length && (!t->body || !memmem(t->body, t->length, wanted, length)))
		probe_end(t->p, PROBE_BAD, "status %ld, and no \"%.60s\" in %s%zu bytes of body", status, c->body,
			  t->enough ? "the first " : "", t->length);
	else
		probe_end(t->p, PROBE_GOOD, "status %ld", status);
}

static void done(struct probe_transfer *t, CURLcode code)
{
	const char *text = *t->error ? t->error : curl_easy_strerror(code);
	long error = 0;

	curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &error);
	if (!code || (code == CURLE_WRITE_ERROR && t->enough))
		judge(t);
	else if (code == CURLE_SSL_CACERT_BADFILE || code == CURLE_FAILED_INIT || code == CURLE_OUT_OF_MEMORY)
		probe_end(t->p, PROBE_UNKNOWN, "this host can't check it: %s", text);
	else if ((code == CURLE_COULDNT_CONNECT || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR) && error)
		probe_end_errno(t->p, (int)error);
	else if (code == CURLE_GOT_NOTHING)
		probe_end(t->p, PROBE_BAD, "closed without an answer");
	else
		probe_end(t->p, PROBE_BAD, "%s", text);
}

static void finish_done(struct probe_trust *trust)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(trust->multi, &left))) {
		CURLcode code = m->data.result; /* m is void when the handle is removed */
		struct probe *p;

		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &p);
		done(p->transfer, code);
	}
}

static void ready(struct probe *p, uint32_t events)
{
	struct probe_trust *trust = p->transfer->trust;
	int mask = 0, running;

	mask |= events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0;
	mask |= events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
	mask |= events & EPOLLERR ? CURL_CSELECT_ERR : 0;
	curl_multi_socket_action(trust->multi, p->transfer->fd, mask, &running);
	finish_done(trust);
}

bool probe_web_step(struct probe_engine *e)
{
	bool any = false;
	int running;

	for (struct probe_trust *t = e->web->trust; t; t = t->next) {
		if (t->due > e->now)
			continue;
		t->due = PROBE_NEVER;
		curl_multi_socket_action(t->multi, CURL_SOCKET_TIMEOUT, 0, &running);
		finish_done(t);
		any = true;
	}
	return any;
}

uint64_t probe_web_next(const struct probe_engine *e)
{
	uint64_t next = PROBE_NEVER;

	for (const struct probe_trust *t = e->web->trust; t; t = t->next)
		next = t->due < next ? t->due : next;
	return next;
}

int probe_web_open(struct probe_engine *e)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return -ENOMEM;
	e->web = xcalloc(1, sizeof(*e->web));
	return 0;
}

void probe_web_close(struct probe_engine *e)
{
	struct probe_trust *t;

	while (e->web && (t = e->web->trust)) {
		e->web->trust = t->next;
		curl_multi_cleanup(t->multi);
		free(t->ca);
		free(t);
	}
	if (e->web)
		curl_global_cleanup();
	free(e->web);
}

const struct probe_kind probe_kind_web = {
	.type = SOCK_STREAM,
	.protocol = IPPROTO_TCP,
	.protocol6 = IPPROTO_TCP,
	.start = start,
	.ready = ready,
	.stop = stop,
	.where = where,
};
