// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Paths and what is found there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "listener_private.h"
#include "metrics.h"
#include "page.h"
#include "rates.h"

#define TYPE_TEXT "text/plain; charset=utf-8"
#define TYPE_JSON "application/json"
#define TYPE_HTML "text/html; charset=utf-8"
#define RATE_MS 900  /* rates over less would jump */
#define STALE_S 10.0 /* what is older says nothing about now */

static const char places[] = "Here are: / (status page), /metrics (Prometheus), /api/v1/status, /api/v1/show,\n"
			     "/api/v1/stats, /api/v1/history (JSON), and /ready/SERVICE (200 or 503).\n";

/* Takes text, from malloc. */
static struct MHD_Response *response(char *text, const char *type)
{
	struct MHD_Response *r = text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) :
					NULL;

	if (!r) {
		free(text);
		return NULL;
	}
	MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	return r;
}

static struct MHD_Response *line(unsigned int *status, unsigned int code, char *text)
{
	*status = code;
	return response(text, TYPE_TEXT);
}

/* As the command prints it. */
static char *json_of(const json_t *value)
{
	char *text = value ? json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL, *whole;

	whole = text ? xasprintf("%s\n", text) : NULL;
	free(text);
	return whole;
}

static struct MHD_Response *make_page(const struct content *c)
{
	struct MHD_Response *r = response(page_html(c->snapshot), TYPE_HTML);

	if (r) {
		MHD_add_response_header(r, "Content-Security-Policy", page_policy());
		MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	}
	return r;
}

static struct MHD_Response *make_body(const struct content *c, enum content_body b)
{
	switch (b) {
	case BODY_PAGE:
		return make_page(c);
	case BODY_STATUS:
		return response(json_dumps(c->snapshot, JSON_COMPACT | JSON_REAL_PRECISION(15)), TYPE_JSON);
	case BODY_SHOW:
		return response(json_of(json_object_get(c->snapshot, "show")), TYPE_JSON);
	case BODY_STATS:
		return response(json_of(json_object_get(c->snapshot, "stats")), TYPE_JSON);
	case BODY_HISTORY:
		return response(json_of(json_object_get(c->snapshot, "history")), TYPE_JSON);
	case BODY_METRICS_TEXT:
		return response(metrics_text(c->snapshot, METRICS_TEXT), METRICS_TYPE_TEXT);
	case BODY_METRICS_OPENMETRICS:
		return response(metrics_text(c->snapshot, METRICS_OPENMETRICS), METRICS_TYPE_OPENMETRICS);
	case BODIES:
		break;
	}
	return NULL;
}

static void forget_bodies(struct content *c)
{
	for (size_t i = 0; i < BODIES; i++) {
		if (c->body[i])
			MHD_destroy_response(c->body[i]); /* those that are being sent live on */
		c->body[i] = NULL;
	}
}

static void set_rates(struct content *c, json_t *next)
{
	double ms = json_number_value(json_object_get(next, "clock_ms"));
	json_t *stats = json_object_get(next, "stats"), *rates = json_object_get(c->snapshot, "rates");

	if (c->base && stats && ms - c->base_ms >= RATE_MS)
		json_object_set_new(next, "rates", rates_between(stats, c->base, (ms - c->base_ms) / 1000));
	else if (rates && stats)
		json_object_set(next, "rates", rates);
	if (!c->base || !stats || ms - c->base_ms >= RATE_MS || ms < c->base_ms) {
		json_decref(c->base);
		c->base = json_incref(stats);
		c->base_ms = ms;
	}
}

int content_set(struct content *c, const char *text, size_t length, uint64_t now)
{
	json_t *next = json_loadb(text, length, 0, NULL);

	if (!json_is_object(next)) {
		json_decref(next);
		return -EINVAL;
	}
	set_rates(c, next);
	forget_bodies(c);
	json_decref(c->snapshot);
	c->snapshot = next;
	c->arrived = now;
	return 0;
}

void content_free(struct content *c)
{
	forget_bodies(c);
	json_decref(c->snapshot);
	json_decref(c->base);
}

static bool stale(const struct content *c, uint64_t now)
{
	double age = (double)(now - c->arrived) / 1000;
	double interval = json_number_value(json_object_get(c->snapshot, "interval"));

	return age > STALE_S && age > 2 * interval;
}

static struct MHD_Response *ready(const struct content *c, const char *service, uint64_t now, unsigned int *status)
{
	const json_t *list = json_object_get(c->snapshot, "ready"), *one = json_object_get(list, service);
	const char *reason = json_string_value(json_object_get(one, "reason"));

	if (!*service)
		return line(status, MHD_HTTP_NOT_FOUND, xstrdup("Name a service: /ready/SERVICE.\n"));
	if (stale(c, now))
		return line(status, MHD_HTTP_SERVICE_UNAVAILABLE,
			    xasprintf("not known: nothing was heard of what runs for %.0f s\n",
				      (double)(now - c->arrived) / 1000));
	if (!list)
		return line(status, MHD_HTTP_SERVICE_UNAVAILABLE, xstrdup("not ready: nothing is attached\n"));
	if (!one)
		return line(status, MHD_HTTP_NOT_FOUND,
			    xstrdup("No such service. /api/v1/show lists the services that run, and their names.\n"));
	if (json_is_true(json_object_get(one, "ready")))
		return line(status, MHD_HTTP_OK, xasprintf("ready: %s\n", reason ? reason : ""));
	return line(status, MHD_HTTP_SERVICE_UNAVAILABLE, xasprintf("not ready: %s\n", reason ? reason : ""));
}

static enum content_body find(const char *path, const char *accept)
{
	static const struct {
		const char *path;
		enum content_body body;
	} found[] = {
		{ "/", BODY_PAGE },
		{ "/api/v1/status", BODY_STATUS },
		{ "/api/v1/show", BODY_SHOW },
		{ "/api/v1/stats", BODY_STATS },
		{ "/api/v1/history", BODY_HISTORY },
	};

	if (!strcmp(path, "/metrics"))
		return metrics_negotiate(accept) == METRICS_OPENMETRICS ? BODY_METRICS_OPENMETRICS : BODY_METRICS_TEXT;
	for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++)
		if (!strcmp(path, found[i].path))
			return found[i].body;
	return BODIES;
}

/* What a snapshot of an instance that does not run lacks. */
static bool has(const struct content *c, enum content_body b)
{
	return (b != BODY_SHOW || json_object_get(c->snapshot, "show")) &&
	       (b != BODY_STATS || json_object_get(c->snapshot, "stats"));
}

struct MHD_Response *content_answer(struct content *c, const char *path, const char *accept, uint64_t now,
				    unsigned int *status, bool *once)
{
	static const char ready_path[] = "/ready/";
	enum content_body b = find(path, accept);
	bool about_ready = !strncmp(path, ready_path, strlen(ready_path));

	*once = true;
	if (b == BODIES && !about_ready)
		return line(status, MHD_HTTP_NOT_FOUND, xasprintf("Nothing is here. %s", places));
	if (!c->snapshot)
		return line(status, MHD_HTTP_SERVICE_UNAVAILABLE, xstrdup("Not yet: ringlb has just been started.\n"));
	if (about_ready)
		return ready(c, path + strlen(ready_path), now, status);
	if (!has(c, b))
		return line(status, MHD_HTTP_SERVICE_UNAVAILABLE, xstrdup("Nothing is attached.\n"));
	if (!c->body[b])
		c->body[b] = make_body(c, b);
	*once = false;
	*status = MHD_HTTP_OK;
	return c->body[b];
}

struct MHD_Response *content_wrong_method(unsigned int *status)
{
	struct MHD_Response *r =
		line(status, MHD_HTTP_METHOD_NOT_ALLOWED,
		     xstrdup("Only GET and HEAD: nothing can be changed here. The command ringlb does that.\n"));

	if (r)
		MHD_add_response_header(r, "Allow", "GET, HEAD");
	return r;
}
