// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Making the daemon's workers: processes that are nobody and have nothing but their descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon_caps.h"
#include "daemon_private.h"
#include "notify.h"

/* Gives descriptors the numbers from WIRE_STREAM_FD on, -1 for none, and closes all others. */
static void number(int of[4])
{
	int high[4];

	for (int i = 0; i < 4; i++)
		high[i] = of[i] < 0 ? -1 : fcntl(of[i], F_DUPFD_CLOEXEC, 64); /* out of the way */
	for (int i = 0; i < 4; i++) {
		of[i] = WIRE_STREAM_FD + i;
		if (high[i] >= 0) {
			dup2(high[i], of[i]);
		} else {
			close(of[i]);
			of[i] = -1;
		}
	}
	close_range(WIRE_ICMP6_FD + 1, ~0U, 0);
}

/* In a process that has only been forked: what it becomes has nothing of it but these descriptors. */
__attribute__((noreturn)) static void become_worker(int of[4])
{
	static char *const argv[] = { "ringlb", "run", "--worker", NULL };

	number(of);
	if (!prctl(PR_SET_PDEATHSIG, SIGKILL))
		execv("/proc/self/exe", argv);
	_exit(1);
}

static void end_child(pid_t pid)
{
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

/*
 * Makes workers, one after the other, as long as the daemon lives, which itself can't: it has no longer what it takes to
 * become nobody.
 */
__attribute__((noreturn)) static void spawn(int channel, int icmp4, int icmp6)
{
	int of[4] = { -1, -1, icmp4, icmp6 }, fd;
	struct wire_packet p = { 0 };
	pid_t pid = 0;

	for (;;) {
		struct pollfd ready = { .fd = channel, .events = POLLIN };
		int err = poll(&ready, 1, -1) < 0 ? -EAGAIN : wire_packet_read(channel, &p, &fd);

		if (err == -EAGAIN)
			continue;
		if (err || fd < 0 || p.kind > 1)
			break;
		of[p.kind] = fd;
		if (p.kind == 0)
			continue;
		end_child(pid);
		pid = fork();
		if (!pid)
			become_worker(of);
		close(of[0]);
		close(of[1]);
	}
	end_child(pid);
	_exit(0);
}

int spawner_start(struct worker *w)
{
	int channel[2], of[4] = { -1, -1, w->icmp4, w->icmp6 };
	sigset_t none;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel))
		return -errno;
	of[0] = channel[1];
	w->spawner = fork();
	if (!w->spawner) {
		notify_end();
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		number(of);
		if (caps_none() || prctl(PR_SET_PDEATHSIG, SIGKILL))
			_exit(1);
		spawn(of[0], of[2], of[3]);
	}
	close(channel[1]);
	w->channel = channel[0];
	return w->spawner < 0 ? -errno : 0;
}
