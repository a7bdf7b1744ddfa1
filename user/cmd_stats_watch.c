// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stats --watch: a reading now and then, and how fast the counters grew since the one before. Each reading opens what runs
 * anew, so that it makes no difference what became of it meanwhile: detached, attached, upgraded, with a daemon or without.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "commit.h"
#include "out_screen.h"
#include "rates.h"
#include "report.h"

#define NANOSECONDS 1000000000.0

struct watcher {
	struct cmd_context *cx;
	double period;  /* seconds */
	uint64_t count; /* of readings; 0: no limit */
	bool live;      /* on a terminal, in one place */
	sigset_t signals;
	json_t *before; /* the reading before, or NULL */
	double before_at;
	bool done;
};

static double monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / NANOSECONDS;
}

static void time_text(char text[32], const char *format, bool utc)
{
	time_t now = time(NULL);
	struct tm tm;

	strftime(text, 32, format, utc ? gmtime_r(&now, &tm) : localtime_r(&now, &tm));
}

/* `stats --json` with the head that a line of its own needs. NULL with errors in d. */
static json_t *read_stats(const struct running *r, const char *instance, const char *time, struct diag *d)
{
	struct out *o = out_new(true, true);
	json_t *stats = NULL;
	char *text;

	out_string(o, "time", time);
	out_string(o, "instance", instance);
	out_boolean(o, "attached", true);
	out_integer(o, "generation", r->state->generation);
	out_integer(o, "revision", (int64_t)r->state->revision);
	if (!report_stats(o, r, d)) {
		text = out_take(o);
		stats = text ? json_loads(text, 0, NULL) : NULL;
		free(text);
	}
	out_free(o);
	return stats;
}

/* What is said where nothing can be read. */
static json_t *no_stats(const char *instance, const char *time, int err, const struct diag *d)
{
	const char *why = err == -ENOENT ? "not attached" : strerror(-err);

	for (size_t i = d->count; i-- && err != -ENOENT;)
		if (d->entry[i].level == DIAG_ERROR)
			why = d->entry[i].message;
	return json_pack("{s:s, s:s, s:b, s:s}", "time", time, "instance", instance, "attached", 0, "reason", why);
}

static json_t *reading(struct watcher *w)
{
	const struct instance *i = &w->cx->instance;
	struct running running;
	struct diag d = { 0 };
	char time[32];
	json_t *stats = NULL;
	int err = running_open(i, &running, &d);
	double at = monotonic();

	time_text(time, "%Y-%m-%dT%H:%M:%SZ", true);
	if (!err) {
		stats = read_stats(&running, i->name, time, &d);
		running_close(&running);
	}
	if (stats && w->before)
		json_object_set_new(stats, "rates", rates_between(stats, w->before, at - w->before_at));
	json_decref(w->before);
	w->before = json_incref(stats);
	w->before_at = at;
	if (!stats)
		stats = no_stats(i->name, time, err ? err : -EIO, &d);
	diag_free(&d);
	return stats;
}

static void text(struct watcher *w, const json_t *stats, size_t rows)
{
	const char *instance = w->cx->instance.name, *reason = json_string_value(json_object_get(stats, "reason"));
	struct out *o = w->cx->out;
	char time[32];

	time_text(time, "%H:%M:%S", false);
	if (reason) {
		out_text(o, "%s  instance %s: %s\n", time, instance, reason);
		return;
	}
	out_text(o, "%s  instance %s: generation %lld, revision %lld; every %g s%s\n\n", time, instance,
		 (long long)json_integer_value(json_object_get(stats, "generation")),
		 (long long)json_integer_value(json_object_get(stats, "revision")), w->period,
		 w->live ? "; Ctrl-C ends" : "");
	cmd_stats_text(o, stats, rows);
}

/* On a terminal: the same reading again after a change of its size. */
static void draw(struct watcher *w, const json_t *stats)
{
	size_t rows, columns;
	char *block;

	screen_size(&rows, &columns);
	out_capture(w->cx->out);
	text(w, stats, rows);
	block = out_captured(w->cx->out);
	screen_draw(block ? block : "");
	free(block);
}

static void show(struct watcher *w, json_t *stats, bool first)
{
	struct out *o = w->cx->out;

	if (w->live) {
		draw(w, stats);
	} else if (w->cx->json) {
		out_json(o, stats);
		out_flush_line(o);
	} else {
		out_text(o, "%s", first ? "" : "\n");
		text(w, stats, 0);
	}
	w->done |= !out_flush(o);
}

/* As the shell's other programs do: the terminal is left as it was while this one is stopped. */
static void stop_and_go(const struct watcher *w)
{
	if (w->live)
		screen_leave();
	raise(SIGSTOP);
	if (w->live)
		screen_enter();
}

/* Until the time; draws again meanwhile where that is wanted. */
static void wait_until(struct watcher *w, double due, const json_t *stats)
{
	double left;

	while (!w->done && (left = due - monotonic()) > 0) {
		struct timespec t = { .tv_sec = (time_t)left };

		t.tv_nsec = (long)((left - (double)t.tv_sec) * NANOSECONDS);
		switch (sigtimedwait(&w->signals, NULL, &t)) {
		case SIGINT:
		case SIGTERM:
		case SIGHUP:
			w->done = true;
			break;
		case SIGTSTP:
			stop_and_go(w);
			/* fall through */
		case SIGWINCH:
			if (w->live)
				draw(w, stats);
			w->done |= !out_flush(w->cx->out);
			break;
		default:
			break;
		}
	}
}

static void block_signals(struct watcher *w)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH };

	sigemptyset(&w->signals);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		sigaddset(&w->signals, wanted[i]);
	sigprocmask(SIG_BLOCK, &w->signals, NULL);
}

static void follow(struct watcher *w)
{
	double due = monotonic();

	for (uint64_t i = 1; !w->done; i++) {
		json_t *stats = reading(w);

		show(w, stats, i == 1);
		if (i == w->count)
			w->done = true;
		due += w->period;
		if (due < monotonic()) /* reading takes longer, or the machine slept */
			due = monotonic() + w->period;
		wait_until(w, due, stats);
		json_decref(stats);
	}
}

int cmd_stats_watch(struct cmd_context *cx, double seconds, uint64_t count)
{
	struct watcher w = {
		.cx = cx, .period = seconds, .count = count, .live = !cx->json && !cx->quiet && screen_possible()
	};
	struct running running;
	int status = cmd_running(cx, "stats", &running); /* what is wrong from the start ends it */

	if (status)
		return status;
	running_close(&running);
	block_signals(&w);
	if (w.live)
		screen_enter();
	follow(&w);
	if (w.live)
		screen_leave();
	json_decref(w.before);
	return EXIT_DONE;
}
