// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon_caps.h"
#include "daemon_private.h"
#include "notify.h"

#define TICK_MS 1000u
#define BLOCKED_MS 50u
#define RETRY_MS 1000u
#define EVENTS 16

uint64_t daemon_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static char *lock_path(const struct instance *i)
{
	return xasprintf("%s/%s.run", i->run_dir, i->name);
}

int daemon_lock(const struct instance *i, struct diag *d)
{
	char *path = lock_path(i), holder[32] = "";
	int fd, err = 0;

	mkdir(i->run_dir, 0755); /* where it is there already, so much the better */
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		err = -errno;
	else if (flock(fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (err == -EBUSY) {
		ssize_t length = pread(fd, holder, sizeof(holder) - 1, 0);

		holder[length > 0 ? length : 0] = '\0';
		diag_error(d, "running", "", "a daemon runs for instance %s already, PID %s", i->name,
			   *holder ? holder : "unknown");
	} else if (err) {
		diag_error(d, "no-lock", "", "cannot lock %s: %s: choose another directory with --run-dir", path,
			   strerror(-err));
	} else {
		int length = snprintf(holder, sizeof(holder), "%ld", (long)getpid());

		if (ftruncate(fd, 0) || pwrite(fd, holder, (size_t)length, 0) < 0)
			err = 0; /* only for the message of others */
	}
	free(path);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

/* The file goes before the lock: who opened it meanwhile has one that nobody else can find. */
void daemon_unlock(const struct instance *i, int fd)
{
	char *path = lock_path(i);

	unlink(path);
	free(path);
	close(fd);
}

void daemon_poll(struct daemon *d, int fd, bool write)
{
	struct epoll_event e = { .events = EPOLLIN | (write ? (uint32_t)EPOLLOUT : 0), .data.fd = fd };

	if (epoll_ctl(d->epoll, EPOLL_CTL_MOD, fd, &e) && errno == ENOENT)
		epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &e);
}

void daemon_unpoll(struct daemon *d, int fd)
{
	epoll_ctl(d->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static int open_signals(void)
{
	static const int wanted[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		signal(wanted[i], SIG_DFL); /* one that is ignored, as nohup leaves SIGHUP, is not told to a signalfd */
		sigaddset(&set, wanted[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_all(struct daemon *d)
{
	int err;

	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	d->signals = open_signals();
	d->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (d->epoll < 0 || d->signals < 0 || d->changes < 0)
		return -errno;
	/* Who changes something lets go of the lock then. Without this it is noticed within a second. */
	inotify_add_watch(d->changes, d->instance->run_dir, IN_DELETE);
	err = daemon_hops_open(d);
	if (err)
		return err;
	daemon_poll(d, d->signals, false);
	daemon_poll(d, d->changes, false);
	daemon_poll(d, watch_fd(d->watch), false);
	return 0;
}

static void take_signals(struct daemon *d)
{
	struct signalfd_siginfo s;

	while (read(d->signals, &s, sizeof(s)) == sizeof(s)) {
		switch (s.ssi_signo) {
		case SIGHUP:
			d->reload = d->now;
			break;
		case SIGCHLD:
			worker_ended(d);
			break;
		default:
			log_line(LOG_LEVEL_NOTICE, "signal %u: the daemon ends, packets keep flowing", s.ssi_signo);
			d->stop = true;
		}
	}
}

static void take_changes(struct daemon *d)
{
	char buffer[4096];

	while (read(d->changes, buffer, sizeof(buffer)) > 0)
		d->look = d->now;
}

static void take(struct daemon *d, int fd)
{
	if (fd == d->signals)
		take_signals(d);
	else if (fd == d->changes)
		take_changes(d);
	else if (d->watch && fd == watch_fd(d->watch))
		daemon_hops_event(d);
	else if (fd == d->worker.stream.fd)
		worker_stream(d);
	else if (fd == d->worker.packets)
		worker_packet(d);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_deadline(const struct daemon *d)
{
	uint64_t commits = least(least(health_next(&d->health), d->said_due), least(d->upkeep, d->reload)), due;

	commits = least(commits, d->hops_due);
	if (d->links)
		commits = least(commits, d->links_due);
	if (commits < d->blocked)
		commits = d->blocked;
	due = least(least(d->tick, d->look), least(commits, log_limit_due(&d->transitions)));
	return least(due, d->worker.restart);
}

static char *status_of(const struct daemon *d)
{
	const struct state *s = d->running.state;

	if (!d->running.dp)
		return xstrdup("nothing is attached");
	if (d->options->fallback)
		return xasprintf("generation %u runs; FALLBACK: %s", s->generation, d->options->fallback);
	return xasprintf("generation %u, revision %llu%s%s", s->generation, (unsigned long long)s->revision,
			 d->missing ? "; gone: " : "", d->missing ? d->missing : "");
}

static void tell_supervisor(struct daemon *d)
{
	char *status = status_of(d);

	if (!d->status || strcmp(d->status, status))
		notify_send("STATUS=%s", status);
	free(d->status);
	d->status = status;
}

static void tick(struct daemon *d)
{
	d->tick = d->now - d->now % TICK_MS + TICK_MS;
	daemon_look(d);
	daemon_mark(d, true);
	if (d->unresolved) /* ask again, which probes */
		d->hops_due = d->now;
	if (d->worker.listener < 0)
		worker_listen(d);
	daemon_snapshot_tick(d);
	worker_watch(d);
	tell_supervisor(d);
}

static int commit_reload(struct daemon *d)
{
	int err;

	if (d->now < d->reload)
		return 0;
	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)d->now * 1000);
	err = daemon_reload(d);
	d->reload = err == -EAGAIN ? d->now : NEVER;
	notify_send("READY=1");
	return err;
}

static int commit_links(struct daemon *d)
{
	int err;

	if (!d->links || d->now < d->links_due || !daemon_interfaces(d))
		return 0;
	err = daemon_upkeep(d, true);
	if (err) {
		d->links = true;
		d->links_due = d->now + (err == -EAGAIN ? 0 : RETRY_MS);
	}
	return err;
}

static int commit_health(struct daemon *d)
{
	int err;

	if (!health_tick(&d->health, d->now) && d->now < d->said_due && d->now < d->upkeep)
		return 0;
	err = daemon_upkeep(d, false);
	if (err == -EAGAIN)
		d->upkeep = d->now;
	return err;
}

/* What goes through the lock. A -EAGAIN ends the round: whoever has it gets time. */
static void commits(struct daemon *d)
{
	uint64_t revision = d->running.dp ? d->running.state->revision : 0;
	int err = commit_reload(d);

	if (err != -EAGAIN)
		err = commit_links(d);
	if (err != -EAGAIN)
		err = commit_health(d);
	if (err != -EAGAIN && d->now >= d->hops_due)
		err = daemon_hops_refresh(d);
	if (err == -EAGAIN)
		d->blocked = d->now + BLOCKED_MS;
	if (d->running.dp && d->running.state->revision != revision)
		daemon_snapshot(d);
}

static void round_of(struct daemon *d)
{
	if (d->now >= d->look) {
		d->look = NEVER;
		daemon_look(d);
	}
	if (d->now >= d->tick)
		tick(d);
	if (d->now >= d->blocked)
		commits(d);
	daemon_say_health(d);
	log_limit_flush(&d->transitions, d->now);
	if (d->now >= d->worker.restart)
		worker_start(d);
	if (d->watchdog && d->now - d->fed >= d->watchdog) {
		d->fed = d->now;
		notify_send("WATCHDOG=1");
	}
}

static void loop(struct daemon *d)
{
	struct epoll_event event[EVENTS];

	while (!d->stop && !d->err) {
		uint64_t due = next_deadline(d);
		int wait, count;

		d->now = daemon_clock();
		if (d->watchdog)
			due = least(due, d->fed + d->watchdog);
		wait = due <= d->now ? 0 : (int)least(due - d->now, TICK_MS);
		count = epoll_wait(d->epoll, event, EVENTS, wait);
		d->now = daemon_clock();
		for (int i = 0; i < count; i++)
			take(d, event[i].data.fd);
		round_of(d);
	}
}

static void close_all(struct daemon *d)
{
	worker_stop(d);
	daemon_mark(d, false);
	probe_path_close(d);
	daemon_snapshot_close(d);
	daemon_hops_close(d);
	daemon_forget(d);
	health_free(&d->health);
	for (size_t i = 0; i < d->warnings; i++)
		free(d->warning[i]);
	free(d->warning);
	free(d->failure);
	free(d->missing);
	free(d->status);
	free(d->reload_message);
	close(d->epoll);
	close(d->signals);
	close(d->changes);
}

int daemon_run(const struct daemon_options *o)
{
	struct daemon d = {
		.options = o,
		.instance = o->instance,
		.epoll = -1,
		.signals = -1,
		.changes = -1,
		.transitions = { .kind = "transitions" },
		.said_due = NEVER,
		.upkeep = NEVER,
		.reload = NEVER,
		.look = NEVER,
		.hops_due = NEVER,
		.watchdog = notify_watchdog_ms(),
		.worker = { .channel = -1,
			    .stream = { .fd = -1 },
			    .packets = -1,
			    .restart = NEVER,
			    .listener = -1,
			    .icmp4 = -1,
			    .icmp6 = -1 },
	};
	int err = open_all(&d);

	d.now = daemon_clock();
	daemon_snapshot_open(&d);
	if (!err)
		err = worker_open(&d);
	if (!err)
		err = caps_keep();
	if (err) {
		log_line(LOG_LEVEL_ERROR, "the daemon can't start: %s", strerror(-err));
		close_all(&d);
		return err;
	}
	worker_start(&d);
	daemon_learn(&d, true);
	if (d.running.dp)
		log_line(LOG_LEVEL_NOTICE, "instance %s: generation %u, revision %llu runs", o->instance->name,
			 d.running.state->generation, (unsigned long long)d.running.state->revision);
	notify_send("READY=1");
	loop(&d);
	notify_send("STOPPING=1");
	close_all(&d);
	return d.err;
}
