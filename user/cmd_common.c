// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd.h"
#include "commit.h"

int cmd_usage(struct cmd_context *cx, const char *command, const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	diag_error(&cx->diag, "usage", "", "%s: %s (see \"ringlb help %s\")", command, text ? text : "bad usage",
		   command);
	free(text);
	return EXIT_BAD;
}

int cmd_getopt(struct cmd_context *cx, int argc, char **argv, const struct option *options)
{
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, ":", options, NULL);
	if (c == ':') {
		cmd_usage(cx, argv[0], "%s needs a value", argv[optind - 1]);
		return '?';
	}
	if (c == '?' && optopt && optopt < 256 && strncmp(argv[optind - 1], "--", 2))
		cmd_usage(cx, argv[0], "unknown option -%c", optopt);
	else if (c == '?' && optopt)
		cmd_usage(cx, argv[0], "%s: takes no value", argv[optind - 1]);
	else if (c == '?')
		cmd_usage(cx, argv[0], "unknown option %s", argv[optind - 1]);
	return c;
}

int cmd_file(struct cmd_context *cx, int argc, char **argv, const char **file)
{
	if (argc - optind > 1)
		return cmd_usage(cx, argv[0], "one FILE at most, and \"%s\" is a second one", argv[optind + 1]);
	*file = optind < argc ? argv[optind] : CMD_DEFAULT_FILE;
	return EXIT_DONE;
}

static bool has_capability(const struct __user_cap_data_struct *data, unsigned int cap)
{
	return data[cap / 32].effective & 1u << cap % 32;
}

bool cmd_privileged(struct cmd_context *cx, const char *command)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	bool admin, net, bpf;

	if (syscall(SYS_capget, &header, data))
		return true; /* then the kernel will say what it refuses */
	admin = has_capability(data, CAP_SYS_ADMIN);
	net = has_capability(data, CAP_NET_ADMIN);
	bpf = admin || (has_capability(data, CAP_BPF) && has_capability(data, CAP_PERFMON));
	if (net && bpf)
		return true;
	diag_error(&cx->diag, "privileges", "", "%s needs %s%s%s: run it as root%s", command,
		   net ? "" : "CAP_NET_ADMIN", net || bpf ? "" : ", ", bpf ? "" : "CAP_BPF and CAP_PERFMON",
		   !strcmp(command, "lookup") || !strcmp(command, "ring") ?
			   "; or ask about a file, which needs no privileges: --file FILE" :
			   "");
	return false;
}

struct config *cmd_config(struct cmd_context *cx, const char *file)
{
	struct diag d = { 0 };
	struct config *c = config_load(file, &d);

	for (size_t i = 0; i < d.count; i++)
		if (d.entry[i].level == DIAG_ERROR)
			diag_error(&cx->diag, d.entry[i].code, d.entry[i].where, "%s", d.entry[i].message);
	diag_free(&d);
	return c;
}

struct config *cmd_load(struct cmd_context *cx, const char *file)
{
	struct config *c = config_load(file, &cx->diag);
	char *directory, *absolute;

	if (!c || !strcmp(file, "-") || *file == '/')
		return c;
	directory = getcwd(NULL, 0);
	if (!directory)
		return c;
	absolute = xasprintf("%s/%s", directory, file);
	free(directory);
	free(c->file);
	c->file = absolute;
	return c;
}

int cmd_running(struct cmd_context *cx, const char *command, struct running *out)
{
	size_t errors = cx->diag.errors;
	int err = running_open(&cx->instance, out, &cx->diag);

	return err ? cmd_open_failed(cx, command, err, errors) : EXIT_DONE;
}

int cmd_open_failed(struct cmd_context *cx, const char *command, int err, size_t errors)
{
	if (err == -ENOENT && !datapath_check_bpffs(cx->instance.bpffs, &cx->diag))
		diag_error(&cx->diag, "not-attached", "",
			   "instance %s is not attached: \"ringlb attach FILE\" does that", cx->instance.name);
	else if (cx->diag.errors == errors)
		diag_error(&cx->diag, "open", "", "%s: cannot open instance %s in %s: %s", command, cx->instance.name,
			   cx->instance.pins, strerror(-err));
	return EXIT_FAILED;
}
