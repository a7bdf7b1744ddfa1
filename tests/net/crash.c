// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * crash STOP STEPS COMMAND...: runs a command and kills it (SIGKILL) when it has stopped STOP times at the entry to or
 * the exit from a system call, and has then executed STEPS more instructions. STOP 0: the command is left alone.
 *
 * crash pending STEPS COMMAND...: the same, counted from the moment when it writes the word `pending` of the tables
 * that it has mapped, which comes just before it publishes. x86 only.
 *
 * On standard error, as its last line: "killed at STOP STEPS", or "ended STATUS STOPS" where the command was faster.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ringlb_abi.h"

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "crash: %s: %s\n", what, strerror(errno));
	exit(125);
}

static pid_t start(char **argv)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execvp(*argv, argv);
		die(*argv);
	}
	/* It stops when it has become the command. */
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		exit(125);
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)))
		die("PTRACE_SETOPTIONS");
	return pid;
}

/* Goes on until the next stop of its own; false when the command has ended, with its wait status. */
static bool resume(pid_t pid, enum __ptrace_request how, int *status)
{
	long signal = 0;

	for (;;) {
		if (ptrace(how, pid, NULL, (void *)signal) && errno != ESRCH)
			die("ptrace");
		if (waitpid(pid, status, 0) != pid)
			die("waitpid");
		if (!WIFSTOPPED(*status))
			return false;
		if (WSTOPSIG(*status) == (SIGTRAP | 0x80) || WSTOPSIG(*status) == SIGTRAP)
			return true;
		signal = WSTOPSIG(*status); /* one for the command */
	}
}

static int ended(int status, unsigned long stops)
{
	fprintf(stderr, "ended %d %lu\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), stops);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is_tables(pid_t pid, unsigned long at)
{
	long abi_hz = ptrace(PTRACE_PEEKDATA, pid, (void *)(at + offsetof(struct ringlb_tables, abi)), NULL);

	return (abi_hz & 0xffffffff) == RINGLB_ABI_VERSION && abi_hz >> 32 >= 100 && abi_hz >> 32 <= 1000;
}

/* Where the command has mapped `tables`; 0: nowhere yet. */
static unsigned long find_tables(pid_t pid)
{
	unsigned long start, found = 0;
	char path[64], line[512];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	if (!maps)
		die(path);
	while (!found && fgets(line, sizeof(line), maps))
		if (strstr(line, "bpf-map") && strstr(line, "rw-s") && sscanf(line, "%lx", &start) == 1 &&
		    is_tables(pid, start))
			found = start;
	fclose(maps);
	return found;
}

#ifdef __x86_64__
/* Stops behind the next instruction that writes these four bytes. */
static void watch(pid_t pid, unsigned long address)
{
	const unsigned long enable = 1, on_write = 1ul << 16, four_bytes = 3ul << 18;

	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[0]), address) ||
	    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]), enable | on_write | four_bytes))
		die("debug registers");
}
#else
static void watch(pid_t pid, unsigned long address)
{
	(void)pid;
	(void)address;
	errno = ENOTSUP;
	die("debug registers");
}
#endif

/* Until `pending` was written. */
static bool run_to_pending(pid_t pid, int *status, unsigned long *stops)
{
	bool watched = false;

	for (;; ++*stops) {
		if (!resume(pid, PTRACE_SYSCALL, status))
			return false;
		if (WSTOPSIG(*status) == SIGTRAP)
			return true;
		if (!watched) {
			unsigned long tables = find_tables(pid);

			watched = tables;
			if (tables)
				watch(pid, tables + offsetof(struct ringlb_tables, pending));
		}
	}
}

static bool run_to_stop(pid_t pid, unsigned long stop, int *status, unsigned long *stops)
{
	while (!stop || *stops < stop) {
		if (!resume(pid, PTRACE_SYSCALL, status))
			return false;
		++*stops;
	}
	return true;
}

int main(int argc, char **argv)
{
	unsigned long steps, stops = 0;
	int status = 0;
	bool there;
	pid_t pid;

	if (argc < 4)
		return 2;
	steps = strtoul(argv[2], NULL, 10);
	pid = start(argv + 3);
	if (!strcmp(argv[1], "pending"))
		there = run_to_pending(pid, &status, &stops);
	else
		there = run_to_stop(pid, strtoul(argv[1], NULL, 10), &status, &stops);
	for (unsigned long i = 0; there && i < steps; i++)
		there = resume(pid, PTRACE_SINGLESTEP, &status);
	if (!there)
		return ended(status, stops);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	fprintf(stderr, "killed at %s %lu\n", argv[1], steps);
	return 137;
}
