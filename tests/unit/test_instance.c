/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names, directories and the lock of an instance. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "instance.h"

struct fixture {
	char dir[64];
	char *run_dir;
	char *lock;
	struct instance i;
	struct diag d;
};

/* A file to be removed just before the next flock(), as a holder that lets go does. */
static const char *remove_before_flock;

/* Stands in for the C library's. */
int flock(int fd, int operation)
{
	if (remove_before_flock)
		unlink(remove_before_flock);
	remove_before_flock = NULL;
	return (int)syscall(SYS_flock, fd, operation);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	unsetenv("RINGLB_BPFFS");
	unsetenv("RINGLB_STATE_DIR");
	unsetenv("RINGLB_RUN_DIR");
	strcpy(f->dir, "/tmp/ringlb-instance-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	f->run_dir = xasprintf("%s/run", f->dir);
	f->lock = xasprintf("%s/web.lock", f->run_dir);
	*state = f;
	return instance_init(&f->i, "web", NULL, NULL, f->run_dir, &f->d);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	unlink(f->lock);
	rmdir(f->run_dir);
	rmdir(f->dir);
	instance_free(&f->i);
	diag_free(&f->d);
	free(f->run_dir);
	free(f->lock);
	free(f);
	return 0;
}

static void names(void **state)
{
	static const char *const good[] = { "a", "Web-1_b", "12345678901234567890123456789012" };
	static const char *const bad[] = { "",    ".",        "..",
					   "a/b", "a b",      "a~new",
					   "a.b", "\xc3\xa4", "123456789012345678901234567890123" };
	struct diag d = { 0 };
	struct instance i;

	(void)state;
	for (size_t n = 0; n < sizeof(good) / sizeof(*good); n++) {
		assert_int_equal(instance_init(&i, good[n], NULL, NULL, NULL, &d), 0);
		assert_string_equal(i.name, good[n]);
		instance_free(&i);
	}
	assert_int_equal(d.count, 0);
	for (size_t n = 0; n < sizeof(bad) / sizeof(*bad); n++) {
		assert_int_equal(instance_init(&i, bad[n], NULL, NULL, NULL, &d), -EINVAL);
		assert_int_equal(d.errors, n + 1);
		instance_free(&i);
	}
	diag_free(&d);
}

static void assert_directories(const struct instance *i, const char *bpffs, const char *state_dir, const char *run_dir)
{
	char *pins = xasprintf("%s/%s", bpffs, i->name);

	assert_string_equal(i->bpffs, bpffs);
	assert_string_equal(i->pins, pins);
	assert_string_equal(i->state_dir, state_dir);
	assert_string_equal(i->run_dir, run_dir);
	free(pins);
}

static void directories(void **state)
{
	struct diag d = { 0 };
	struct instance i;

	(void)state;
	assert_int_equal(instance_init(&i, NULL, NULL, NULL, NULL, &d), 0);
	assert_string_equal(i.name, "default");
	assert_directories(&i, "/sys/fs/bpf/ringlb", "/var/lib/ringlb", "/run/ringlb");
	instance_free(&i);

	setenv("RINGLB_BPFFS", "/e/bpf/", 1);
	setenv("RINGLB_STATE_DIR", "/e/state", 1);
	setenv("RINGLB_RUN_DIR", "", 1);
	assert_int_equal(instance_init(&i, "x", NULL, NULL, NULL, &d), 0);
	assert_directories(&i, "/e/bpf", "/e/state", "/run/ringlb");
	instance_free(&i);

	assert_int_equal(instance_init(&i, "x", "/o/bpf", "/o/state//", "/", &d), 0);
	assert_directories(&i, "/o/bpf", "/o/state", "/");
	instance_free(&i);
	assert_int_equal(d.count, 0);
}

static void lock_and_unlock(void **state)
{
	struct fixture *f = *state;
	char text[64] = "", wanted[64];
	int fd = instance_lock(&f->i, "ringlb apply\nx", 0, &f->d), file;
	struct stat st;

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(stat(f->run_dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(stat(f->lock, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	file = open(f->lock, O_RDONLY);
	assert_true(read(file, text, sizeof(text) - 1) > 0);
	close(file);
	snprintf(wanted, sizeof(wanted), "%ld ringlb apply", (long)getpid());
	assert_string_equal(text, wanted);

	instance_unlock(&f->i, fd);
	assert_int_equal(stat(f->lock, &st), -1);
	/* A directory that was chosen stays. */
	assert_int_equal(stat(f->run_dir, &st), 0);
	assert_int_equal(f->d.count, 0);
}

/*
 * A process that holds the lock until `release` says otherwise; returns when it has it. It lets go, by unlocking or
 * only by its end, when the descriptor returned is closed.
 */
static pid_t holder(const struct fixture *f, const char *command, bool unlocks, int *release)
{
	int ready[2], done[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(done), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct diag d = { 0 };
		int fd = instance_lock(&f->i, command, 0, &d);

		close(done[1]);
		if (fd < 0 || write(ready[1], "x", 1) != 1 || read(done[0], &byte, 1) != 0)
			_exit(1);
		if (unlocks)
			instance_unlock(&f->i, fd);
		_exit(0);
	}
	close(ready[1]);
	close(done[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*release = done[1];
	return pid;
}

static void reap(pid_t pid, int signal)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (signal)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signal);
	else
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void names_the_holder(void **state)
{
	struct fixture *f = *state;
	struct timespec before, after;
	char wanted[256];
	int release;
	pid_t pid = holder(f, "ringlb apply /etc/ringlb/ringlb.yaml", true, &release);

	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(instance_lock(&f->i, "ringlb show", 0.06, &f->d), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true((double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9 >= 0.06);
	snprintf(wanted, sizeof(wanted),
		 "instance web is locked by PID %ld (ringlb apply /etc/ringlb/ringlb.yaml): try again or raise --wait",
		 (long)pid);
	assert_int_equal(f->d.errors, 1);
	assert_string_equal(f->d.entry[0].message, wanted);
	assert_string_equal(f->d.entry[0].code, "locked");
	close(release);
	reap(pid, 0);
}

/* In each round the holder lets go at another point of the waiter's loop; with unlocks it removes the file under it. */
static void waits_for_its_turn(void **state)
{
	struct fixture *f = *state;
	struct stat st, mine;

	for (int round = 0; round < 8; round++) {
		struct timespec delay = { .tv_nsec = round * 7000000L };
		int release, fd;
		pid_t pid = holder(f, "ringlb apply", round % 2, &release), closer = fork();

		assert_true(closer >= 0);
		if (!closer) {
			nanosleep(&delay, NULL);
			_exit(0); /* the last descriptor of the pipe that keeps the holder */
		}
		close(release);
		fd = instance_lock(&f->i, "ringlb detach", 60, &f->d);
		assert_true(fd >= 0);
		/* What is held is the file that the next one will find. */
		assert_int_equal(fstat(fd, &mine), 0);
		assert_int_equal(stat(f->lock, &st), 0);
		assert_int_equal(st.st_ino, mine.st_ino);
		reap(pid, 0);
		reap(closer, 0);
		instance_unlock(&f->i, fd);
	}
	assert_int_equal(f->d.count, 0);
}

static void survives_a_killed_holder(void **state)
{
	struct fixture *f = *state;
	int release, fd;
	pid_t pid = holder(f, "ringlb apply", true, &release);

	kill(pid, SIGKILL);
	reap(pid, SIGKILL);
	close(release);
	fd = instance_lock(&f->i, "ringlb show", 0, &f->d);
	assert_true(fd >= 0);
	instance_unlock(&f->i, fd);
}

static void notices_a_removed_file(void **state)
{
	struct fixture *f = *state;
	struct stat there, mine;
	int fd;

	remove_before_flock = f->lock;
	fd = instance_lock(&f->i, "ringlb apply", 0, &f->d);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &mine), 0);
	assert_int_equal(stat(f->lock, &there), 0);
	assert_int_equal(mine.st_ino, there.st_ino);
	instance_unlock(&f->i, fd);
}

/* Many processes, one at a time: each adds one to a file without any other protection than the lock. */
static void excludes(void **state)
{
	enum { PROCESSES = 6, ROUNDS = 8 };
	struct fixture *f = *state;
	char *path = xasprintf("%s/counter", f->dir);
	int file = open(path, O_RDWR | O_CREAT, 0600), count = 0;
	pid_t pid[PROCESSES];

	assert_true(file >= 0);
	unlink(path);
	free(path);
	assert_int_equal(pwrite(file, &count, sizeof(count), 0), sizeof(count));
	for (int p = 0; p < PROCESSES; p++) {
		pid[p] = fork();
		if (pid[p])
			continue;
		for (int round = 0; round < ROUNDS; round++) {
			struct timespec pause = { .tv_nsec = 300000 };
			struct diag d = { 0 };
			int fd = instance_lock(&f->i, "ringlb apply", 60, &d);

			if (fd < 0 || pread(file, &count, sizeof(count), 0) != sizeof(count))
				_exit(1);
			count++;
			nanosleep(&pause, NULL);
			if (pwrite(file, &count, sizeof(count), 0) != sizeof(count))
				_exit(1);
			instance_unlock(&f->i, fd);
		}
		_exit(0);
	}
	for (int p = 0; p < PROCESSES; p++)
		reap(pid[p], 0);
	assert_int_equal(pread(file, &count, sizeof(count), 0), sizeof(count));
	assert_int_equal(count, PROCESSES * ROUNDS);
	close(file);
}

static void says_what_is_wrong_with_the_directory(void **state)
{
	struct fixture *f = *state;
	struct instance i;
	char *missing = xasprintf("%s/none/run", f->dir);
	uid_t user = geteuid();
	int err;

	assert_int_equal(instance_init(&i, "web", NULL, NULL, missing, &f->d), 0);
	assert_int_equal(instance_lock(&i, "ringlb show", 0, &f->d), -ENOENT);
	assert_non_null(strstr(f->d.entry[0].message, "its parent directory is missing"));
	instance_free(&i);
	free(missing);

	assert_int_equal(chmod(f->dir, 0500), 0);
	if (!user)
		assert_int_equal(seteuid(65534), 0);
	err = instance_lock(&f->i, "ringlb show", 0, &f->d);
	if (!user)
		assert_int_equal(seteuid(user), 0);
	assert_int_equal(chmod(f->dir, 0700), 0);
	assert_int_equal(err, -EACCES);
	assert_non_null(strstr(f->d.entry[1].message, "run it as root, or choose another directory with --run-dir"));
	assert_int_equal(f->d.errors, 2);
}

/* The lock's place may lie in a directory that others write to: a symbolic link there leads nowhere. */
static void follows_no_link(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(mkdir(f->run_dir, 0755), 0);
	assert_int_equal(symlink("/dev/null", f->lock), 0);
	assert_int_equal(instance_lock(&f->i, "ringlb show", 0, &f->d), -ELOOP);
	assert_int_equal(f->d.errors, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(directories),
		cmocka_unit_test_setup_teardown(lock_and_unlock, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_the_holder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waits_for_its_turn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(survives_a_killed_holder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(notices_a_removed_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(excludes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(says_what_is_wrong_with_the_directory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(follows_no_link, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("instance", tests, NULL, NULL);
}
