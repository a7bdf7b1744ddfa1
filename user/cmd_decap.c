// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "cmd.h"
#include "config.h"
#include "datapath.h"

struct decap {
	struct cmd_context *cx;
	const char *command;
	struct datapath_prefix *from;
	size_t prefixes;
	const char **interface;
	unsigned int *ifindex;
	size_t interfaces;
	uint16_t gue_port;
};

/* Copies the native attempt's complaints only when they are final. */
static void hand_over(struct diag *to, const struct diag *d)
{
	for (size_t i = 0; i < d->count; i++)
		diag_add(to, d->entry[i].level, d->entry[i].code, d->entry[i].where, "%s", d->entry[i].message);
}

/* Native where it can be had, else generic with a warning. */
static int attach_one(struct decap *x, size_t i, enum datapath_mode *mode)
{
	const char *dir = x->cx->instance.bpffs;
	struct diag *d = &x->cx->diag, first = { 0 };
	size_t errors = d->errors;
	int err, native;

	*mode = DATAPATH_NATIVE;
	native = err = datapath_decap_attach(dir, x->ifindex[i], *mode, x->from, x->prefixes, x->gue_port, &first);
	if (err == -EOPNOTSUPP || err == -EINVAL || err == -ERANGE) {
		*mode = DATAPATH_GENERIC;
		err = datapath_decap_attach(dir, x->ifindex[i], *mode, x->from, x->prefixes, x->gue_port, d);
		if (!err)
			diag_warning(
				d, "generic-mode", "",
				"interface %s: attached in generic mode, which is several times slower, "
				"because native XDP was refused: %s: its driver may lack it, or its MTU is too large for it",
				x->interface[i], strerror(-native));
	} else {
		hand_over(d, &first);
	}
	diag_free(&first);
	if (err == -EBUSY && d->errors == errors) {
		char who[128];

		datapath_describe(x->ifindex[i], who, sizeof(who));
		diag_error(d, "busy", "",
			   "interface %s already has an XDP program%s%s: take it off first (\"ringlb decap --detach\" "
			   "takes off what decap put there)",
			   x->interface[i], *who ? ": " : "", who);
	} else if (err && d->errors == errors) {
		diag_error(d, "decap", "", "interface %s: cannot attach: %s", x->interface[i], strerror(-err));
	}
	return err;
}

static int attach_all(struct decap *x)
{
	struct out *o = x->cx->out;
	enum datapath_mode *mode;
	size_t done;
	int err = datapath_check_bpffs(x->cx->instance.bpffs, &x->cx->diag);

	if (err)
		return EXIT_FAILED;
	mode = xcalloc(x->interfaces, sizeof(*mode));
	for (done = 0; done < x->interfaces && !err; done++)
		err = attach_one(x, done, &mode[done]);
	if (err) {
		struct diag ignored = { 0 };

		for (done--; done > 0; done--)
			datapath_decap_detach(x->cx->instance.bpffs, x->ifindex[done - 1], &ignored);
		diag_free(&ignored);
	}
	out_array(o, "interfaces");
	for (size_t i = 0; i < done; i++) {
		const char *name = mode[i] == DATAPATH_NATIVE ? "native" : "generic";

		out_object(o, NULL);
		out_string(o, "name", x->interface[i]);
		out_string(o, "mode", name);
		out_end(o);
		out_text(o, "interface %s: outer headers are taken off, %s mode\n", x->interface[i], name);
	}
	out_end(o);
	free(mode);
	x->cx->changed = !err;
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int detach_all(struct decap *x)
{
	int status = EXIT_DONE;

	for (size_t i = 0; i < x->interfaces; i++) {
		size_t errors = x->cx->diag.errors;
		int err = datapath_decap_detach(x->cx->instance.bpffs, x->ifindex[i], &x->cx->diag);

		if (!err) {
			x->cx->changed = true;
			out_text(x->cx->out, "interface %s: detached\n", x->interface[i]);
			continue;
		}
		status = EXIT_FAILED;
		if (x->cx->diag.errors > errors)
			continue;
		diag_error(&x->cx->diag, "decap", "", "interface %s: %s", x->interface[i],
			   err == -ENOENT ? "ringlb decap is not attached there" : strerror(-err));
	}
	return status;
}

/* ADDRESS/LENGTH with the bits behind the length cleared; NULL where that is not what is wrong. Owned by the caller. */
static char *meant_prefix(const char *text)
{
	const char *slash = strchr(text, '/');
	char *host = slash ? xasprintf("%.*s", (int)(slash - text), text) : NULL, *end, text_of[ADDRESS_TEXT];
	unsigned long length = slash ? strtoul(slash + 1, &end, 10) : 0;
	struct address a;
	bool is = host && slash[1] >= '0' && slash[1] <= '9' && !*end && !address_parse(host, &a);
	unsigned int bits = is && address_is_ipv4(&a) ? 96 : 0;

	free(host);
	if (!is || length + bits > 128)
		return NULL;
	bits += (unsigned int)length;
	for (unsigned int i = bits; i < 128; i++)
		a.byte[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	return xasprintf("%s/%lu", address_text(&a, text_of), length);
}

static int complain_prefix(struct decap *x, const char *text)
{
	char *meant = meant_prefix(text);

	if (meant)
		cmd_usage(x->cx, x->command, "--from %s: there are bits behind the length: did you mean %s?", text,
			  meant);
	else
		cmd_usage(x->cx, x->command, "--from %s: ADDRESS or ADDRESS/LENGTH is wanted", text);
	free(meant);
	return EXIT_BAD;
}

static int add_prefix(struct decap *x, const char *text)
{
	unsigned int length;
	struct address a;

	if (address_parse_prefix(text, &a, &length))
		return -EINVAL;
	if (!length)
		diag_warning(
			&x->cx->diag, "anyone", "",
			"--from %s: whoever can reach this host can have packets from any address taken in: name the "
			"balancers alone",
			text);
	x->from = xreallocarray(x->from, x->prefixes + 1, sizeof(*x->from));
	memcpy(x->from[x->prefixes].address, a.byte, sizeof(a.byte));
	x->from[x->prefixes++].length = address_is_ipv4(&a) ? 96 + length : length;
	return 0;
}

static int set_port(struct decap *x, const char *text)
{
	unsigned int port;
	char more;

	if (strspn(text, "0123456789") != strlen(text) || sscanf(text, "%6u%c", &port, &more) != 1 ||
	    port > UINT16_MAX || !port)
		return cmd_usage(x->cx, x->command, "--gue-port %s: a port is wanted, 1 to 65535", text);
	x->gue_port = (uint16_t)port;
	return EXIT_DONE;
}

/* Prefixes may follow --from without another --from: what reads as an address is one, the rest are interfaces. */
static int arguments(struct decap *x, int argc, char **argv, bool detach)
{
	for (int i = optind; i < argc; i++) {
		unsigned int ifindex;

		if (x->prefixes && !add_prefix(x, argv[i]))
			continue;
		ifindex = if_nametoindex(argv[i]);
		if (!ifindex) {
			if (x->prefixes && strchr(argv[i], '/'))
				return complain_prefix(x, argv[i]);
			if (strpbrk(argv[i], "/:."))
				return cmd_usage(x->cx, x->command,
						 "\"%s\" is neither a prefix (ADDRESS[/LENGTH], no bits behind it) nor "
						 "an interface",
						 argv[i]);
			diag_error(&x->cx->diag, "no-interface", "", "there is no interface %s: \"ip link\" lists them",
				   argv[i]);
			return EXIT_BAD;
		}
		x->interface = xreallocarray(x->interface, x->interfaces + 1, sizeof(*x->interface));
		x->ifindex = xreallocarray(x->ifindex, x->interfaces + 1, sizeof(*x->ifindex));
		x->interface[x->interfaces] = argv[i];
		x->ifindex[x->interfaces++] = ifindex;
	}
	if (!x->interfaces)
		return cmd_usage(x->cx, x->command, "an INTERFACE is wanted");
	if (!detach && !x->prefixes)
		return cmd_usage(x->cx, x->command,
				 "--from is wanted: whose outer headers to take off, the balancers' addresses");
	if (detach && x->prefixes)
		return cmd_usage(x->cx, x->command, "--detach takes no --from");
	return EXIT_DONE;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = {
		{ "from", required_argument, NULL, 'f' },
		{ "detach", no_argument, NULL, 'd' },
		{ "show", no_argument, NULL, 's' },
		{ "gue-port", required_argument, NULL, 'g' },
		{ 0 },
	};
	struct decap x = { .cx = cx, .command = argv[0], .gue_port = CONFIG_DEFAULT_GUE_PORT };
	bool detach = false, show = false;
	int c, status = EXIT_DONE;

	while (status == EXIT_DONE && (c = cmd_getopt(cx, argc, argv, options)) != -1) {
		if (c == '?')
			status = EXIT_BAD;
		else if (c == 'd')
			detach = true;
		else if (c == 's')
			show = true;
		else if (c == 'g')
			status = set_port(&x, optarg);
		else if (add_prefix(&x, optarg))
			status = complain_prefix(&x, optarg);
	}
	if (!status && show && (detach || x.prefixes || optind < argc))
		status = cmd_usage(cx, argv[0], "--show takes nothing else");
	if (!status && !show)
		status = arguments(&x, argc, argv, detach);
	if (!status && !cmd_privileged(cx, argv[0]))
		status = EXIT_FAILED;
	if (!status)
		status = show ? cmd_decap_show(cx) : detach ? detach_all(&x) : attach_all(&x);
	free(x.from);
	free(x.interface);
	free(x.ifindex);
	return status;
}

const struct cmd cmd_decap = {
	.name = "decap",
	.usage = "{--from PREFIX... [--gue-port PORT] INTERFACE... | --detach INTERFACE... | --show}",
	.summary = "on a backend: take the balancers' outer headers off",
	.help = "For backends without a tunnel device: an XDP program on INTERFACE that takes the outer IPv4 or\n"
		"IPv6 header, and for \"forward: gue\" the UDP header behind it, off packets that come from these\n"
		"balancers, and leaves all others as they are. It stays until --detach or a reboot.\n\n"
		"  --from PREFIX    the balancers' tunnel_source addresses or prefixes; more may follow\n"
		"  --gue-port PORT  where the balancers' GUE goes to (default 6080)\n"
		"  --detach         takes it off again\n"
		"  --show           lists where it is, for whose packets, and how many there were\n\n"
		"Exit status: 0 done; 1 failed, nothing is attached; 2 bad usage.\n",
	.run = run,
};
