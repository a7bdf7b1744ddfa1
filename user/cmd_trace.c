// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cmd.h"
#include "commit.h"
#include "pcapng.h"
#include "trace_packet.h"

#define POLL_MS 200
#define LIFETIME 3 /* seconds that the data plane goes on if this process is killed */
#define NANOSECONDS UINT64_C(1000000000)
#define COMMENT 512

static const struct {
	const char *name;
} verdicts[] = {
#define X(id, name, meaning, remedy) { name },
	RINGLB_VERDICTS(X)
#undef X
};
_Static_assert(RINGLB_VERDICT_COUNT <= 64, "struct ringlb_tables.trace has a bit for each");

static volatile sig_atomic_t stopped;

/* Who a backend's index, or a service's, belongs to. */
struct names {
	const struct state_backend *backend[RINGLB_MAX_BACKENDS + 1];
	const char *pool[RINGLB_MAX_BACKENDS + 1];
	const char *service[RINGLB_MAX_SERVICES + 1];
};

struct tracer {
	struct cmd_context *cx;
	uint64_t wanted; /* verdicts, a bit each */
	uint64_t count;  /* to be shown; 0: no limit */
	const char *file;

	struct running running;
	bool open;
	uint64_t state_word; /* of what the names are */
	struct stat pin;
	struct names *names;
	struct datapath_trace *trace;
	uint64_t begun;  /* monotonic clock */
	uint64_t offset; /* from that to the clock on the wall */
	uint64_t left_out_before, left_out, shown;

	FILE *pcap;
	unsigned int *interface; /* ifindex of each that is in the file */
	uint32_t interfaces;
	int write_error;
};

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static uint64_t clock_now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NANOSECONDS + (uint64_t)t.tv_nsec;
}

static void learn_names(struct tracer *x)
{
	const struct state *s = x->running.state;

	memset(x->names, 0, sizeof(*x->names));
	for (size_t i = 0; i < state_tables(s); i++) {
		const struct state_pool *p = state_table_at(s, i);

		for (size_t j = 0; j < p->backends; j++) {
			x->names->backend[p->backend[j].index] = &p->backend[j];
			x->names->pool[p->backend[j].index] = p->name;
		}
	}
	for (size_t i = 0; i < s->config->services; i++)
		if (s->service_index[i] <= RINGLB_MAX_SERVICES)
			x->names->service[s->service_index[i]] = s->config->service[i].name;
}

static const char *service_name(const struct tracer *x, uint16_t index)
{
	return index <= RINGLB_MAX_SERVICES ? x->names->service[index] : NULL;
}

static const char *verdict_name(uint32_t verdict)
{
	return verdict < RINGLB_VERDICT_COUNT ? verdicts[verdict].name : "unknown";
}

/* "forwarded to web/web-1, service www" */
static void outcome(const struct tracer *x, const struct ringlb_trace *t, char buf[COMMENT])
{
	const struct state_backend *b = x->names->backend[t->backend];
	const char *service = service_name(x, t->service);

	snprintf(buf, COMMENT, "%s%s%s%s%s%s%s", verdict_name(t->verdict), b ? " to " : "",
		 b ? x->names->pool[t->backend] : "", b ? "/" : "", b ? b->name : "", service ? ", service " : "",
		 service ? service : "");
}

static void interface_name(unsigned int ifindex, char buf[IF_NAMESIZE])
{
	if (!if_indextoname(ifindex, buf))
		snprintf(buf, IF_NAMESIZE, "%u", ifindex);
}

static void write_pcap(struct tracer *x, const struct ringlb_trace *t, const char *comment)
{
	char name[IF_NAMESIZE];
	uint32_t i = 0;
	int err = 0;

	while (i < x->interfaces && x->interface[i] != t->ifindex)
		i++;
	if (i == x->interfaces) {
		x->interface = xreallocarray(x->interface, x->interfaces + 1, sizeof(*x->interface));
		x->interface[x->interfaces++] = t->ifindex;
		interface_name(t->ifindex, name);
		err = pcapng_interface(x->pcap, name);
	}
	if (!err)
		err = pcapng_packet(x->pcap, i, t->time + x->offset, t->data, t->captured, t->frame, comment);
	if (err && !x->write_error)
		x->write_error = err;
}

static void time_text(uint64_t ns, char buf[40])
{
	time_t seconds = (time_t)(ns / NANOSECONDS);
	struct tm tm;
	char clock[16];

	localtime_r(&seconds, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(buf, 40, "%s.%06" PRIu64, clock, ns % NANOSECONDS / 1000);
}

static void print_json(struct tracer *x, const struct ringlb_trace *t, const struct trace_packet *p)
{
	const struct state_backend *b = x->names->backend[t->backend];
	char text[ADDRESS_TEXT], name[IF_NAMESIZE], hash[16];
	struct out *o = x->cx->out;

	interface_name(t->ifindex, name);
	snprintf(hash, sizeof(hash), "0x%08x", t->position);
	out_object(o, NULL);
	out_real(o, "time", (double)(t->time + x->offset) / NANOSECONDS);
	out_string(o, "interface", name);
	out_string(o, "verdict", verdict_name(t->verdict));
	out_string(o, "service", service_name(x, t->service));
	out_string(o, "pool", b ? x->names->pool[t->backend] : NULL);
	out_string(o, "backend", b ? b->name : NULL);
	out_string(o, "hash", b ? hash : NULL);
	out_integer(o, "frame", t->frame);
	if (p->ip) {
		out_string(o, "source", address_text(&p->source, text));
		out_string(o, "destination", address_text(&p->destination, text));
		out_integer(o, "protocol", p->protocol);
		out_integer(o, "length", p->length);
	}
	if (p->ports) {
		out_integer(o, "source_port", p->source_port);
		out_integer(o, "destination_port", p->destination_port);
	}
	out_flush_line(o);
}

static void print(struct tracer *x, const struct ringlb_trace *t, const char *comment)
{
	char line[TRACE_PACKET_TEXT], clock[40], name[IF_NAMESIZE];
	struct trace_packet p;

	trace_packet_read(t, &p);
	if (x->cx->json) {
		print_json(x, t, &p);
		return;
	}
	interface_name(t->ifindex, name);
	time_text(t->time + x->offset, clock);
	out_text(x->cx->out, "%s %s %s: %s\n", clock, name, trace_packet_text(&p, line), comment);
}

/* A record of before is another trace's, which was killed. */
static void packet(const struct ringlb_trace *t, void *arg)
{
	struct tracer *x = arg;
	char comment[COMMENT];

	if (t->time < x->begun || (x->count && x->shown >= x->count))
		return;
	x->shown++;
	outcome(x, t, comment);
	if (x->pcap)
		write_pcap(x, t, comment);
	else
		print(x, t, comment);
}

static void close_running(struct tracer *x)
{
	datapath_trace_close(x->trace);
	x->trace = NULL;
	if (x->open)
		running_close(&x->running);
	x->open = false;
}

static int open_running(struct tracer *x)
{
	char *pin = xasprintf("%s/prog", x->cx->instance.pins);
	size_t bytes;
	int status, err;

	close_running(x);
	if (stat(pin, &x->pin))
		memset(&x->pin, 0, sizeof(x->pin));
	free(pin);
	status = cmd_running(x->cx, "trace", &x->running);
	if (status)
		return status;
	x->open = true;
	x->state_word = datapath_tables(x->running.dp, &bytes)->state;
	learn_names(x);
	err = datapath_trace_open(x->running.dp, packet, x, &x->trace);
	if (!err)
		err = datapath_trace_left_out(x->running.dp, &x->left_out_before);
	if (!err)
		return EXIT_DONE;
	diag_error(&x->cx->diag, "trace", "", "cannot read what is traced: %s", strerror(-err));
	return EXIT_FAILED;
}

static void count_left_out(struct tracer *x)
{
	uint64_t now;

	if (x->open && !datapath_trace_left_out(x->running.dp, &now)) {
		x->left_out += now - x->left_out_before;
		x->left_out_before = now;
	}
}

/* Another program, or other tables, in the place of what ran. */
static bool is_replaced(const struct tracer *x)
{
	char *pin = xasprintf("%s/prog", x->cx->instance.pins);
	struct stat now;
	bool replaced = stat(pin, &now) || now.st_ino != x->pin.st_ino || now.st_dev != x->pin.st_dev;

	free(pin);
	return replaced;
}

/* Asks for LIFETIME seconds more, and looks whether names have changed. */
static int renew(struct tracer *x)
{
	uint32_t now;
	size_t bytes;
	int err, status;

	if (is_replaced(x) || datapath_tables(x->running.dp, &bytes)->state != x->state_word) {
		count_left_out(x);
		status = open_running(x);
		if (status)
			return status;
	}
	err = running_now(x->running.dp, &now);
	if (err) {
		diag_error(&x->cx->diag, "trace", "", "cannot tell the time: %s", strerror(-err));
		return EXIT_FAILED;
	}
	datapath_trace_want(x->running.dp, x->wanted, now + LIFETIME);
	x->offset = clock_now(CLOCK_REALTIME) - clock_now(CLOCK_MONOTONIC);
	return EXIT_DONE;
}

static bool is_done(const struct tracer *x)
{
	return stopped || x->write_error || (x->count && x->shown >= x->count);
}

static int follow(struct tracer *x)
{
	uint64_t renewed = 0;
	int status, n;

	while (!is_done(x)) {
		uint64_t now = clock_now(CLOCK_MONOTONIC);

		if (now - renewed >= NANOSECONDS) {
			status = renew(x);
			if (status)
				return status;
			if (!renewed && !x->cx->json && !x->cx->quiet)
				fprintf(stderr, "tracing, at most %u packets a second on each CPU\n",
					RINGLB_TRACES_A_SECOND);
			renewed = now;
		}
		n = datapath_trace_poll(x->trace, POLL_MS);
		if (n < 0 && n != -EINTR) {
			diag_error(&x->cx->diag, "trace", "", "cannot read what is traced: %s", strerror(-n));
			return EXIT_FAILED;
		}
		if (x->pcap && fflush(x->pcap) && !x->write_error)
			x->write_error = -errno;
		if (!x->pcap && !out_flush(x->cx->out))
			x->write_error = -EPIPE; /* out_finish says what it was */
	}
	return EXIT_DONE;
}

static int open_pcap(struct tracer *x)
{
	int err;

	if (!x->file)
		return EXIT_DONE;
	x->pcap = strcmp(x->file, "-") ? fopen(x->file, "we") : stdout;
	err = x->pcap ? pcapng_begin(x->pcap, "ringlb") : -errno;
	if (!err)
		return EXIT_DONE;
	diag_error(&x->cx->diag, "pcap", x->file, "cannot be written: %s", strerror(-err));
	return EXIT_FAILED;
}

static int close_pcap(struct tracer *x)
{
	int err = x->write_error;

	if (x->pcap && x->pcap != stdout && fclose(x->pcap) && !err)
		err = -errno;
	if (!err || err == -EPIPE)
		return EXIT_DONE;
	diag_error(&x->cx->diag, "pcap", x->file ? x->file : "", "cannot be written: %s", strerror(-err));
	return EXIT_FAILED;
}

static int trace_locked(struct tracer *x)
{
	const struct sigaction action = { .sa_handler = stop };
	int status;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	x->begun = clock_now(CLOCK_MONOTONIC);
	x->names = xcalloc(1, sizeof(*x->names));
	status = open_running(x);
	if (!status)
		status = open_pcap(x);
	if (!status)
		status = follow(x);
	if (x->open)
		datapath_trace_want(x->running.dp, 0, 0);
	count_left_out(x);
	close_running(x);
	if (close_pcap(x))
		status = EXIT_FAILED;
	if (!x->cx->json && !x->cx->quiet)
		fprintf(stderr, "%" PRIu64 " packets, %" PRIu64 " more left out\n", x->shown, x->left_out);
	free(x->names);
	free(x->interface);
	return status;
}

/* One reader at a time: what one takes from the ring buffer the other would not see. */
static int trace(struct tracer *x)
{
	struct instance alone = x->cx->instance;
	struct diag why = { 0 };
	int lock, status;

	alone.name = xasprintf("%s~trace", x->cx->instance.name);
	lock = instance_lock(&alone, x->cx->command_line, 0, &why);
	if (lock == -ETIMEDOUT)
		diag_error(&x->cx->diag, "busy", "",
			   "instance %s is being traced already, and two would take packets from each other%s%s",
			   x->cx->instance.name, why.count ? ": " : "", why.count ? why.entry[0].message : "");
	else if (lock < 0 && why.count)
		diag_error(&x->cx->diag, why.entry[0].code, "", "%s", why.entry[0].message);
	diag_free(&why);
	status = lock < 0 ? EXIT_FAILED : trace_locked(x);
	if (lock >= 0)
		instance_unlock(&alone, lock);
	free(alone.name);
	return status;
}

static int want_verdict(struct tracer *x, const char *command, const char *name)
{
	for (unsigned int i = 0; i < RINGLB_VERDICT_COUNT; i++)
		if (!strcmp(verdicts[i].name, name)) {
			x->wanted |= 1ull << i;
			return EXIT_DONE;
		}
	return cmd_usage(x->cx, command, "there is no verdict \"%s\": \"ringlb stats\" lists them", name);
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	static const struct option options[] = {
		{ "verdict", required_argument, NULL, 'v' },
		{ "pcap", required_argument, NULL, 'p' },
		{ "count", required_argument, NULL, 'c' },
		{ 0 },
	};
	struct tracer x = { .cx = cx };
	int c, status = EXIT_DONE;

	while (status == EXIT_DONE && (c = cmd_getopt(cx, argc, argv, options)) != -1) {
		char more;

		if (c == '?')
			status = EXIT_BAD;
		else if (c == 'v')
			status = want_verdict(&x, argv[0], optarg);
		else if (c == 'p')
			x.file = optarg;
		else if (strspn(optarg, "0123456789") != strlen(optarg) ||
			 sscanf(optarg, "%" SCNu64 "%c", &x.count, &more) != 1 || !x.count)
			status = cmd_usage(cx, argv[0], "--count %s: a number of packets is wanted", optarg);
	}
	if (!status && argc > optind)
		status = cmd_usage(cx, argv[0], "it takes no arguments, and \"%s\" is one", argv[optind]);
	if (status)
		return status;
	if (!x.wanted)
		x.wanted = ~0ull;
	return cmd_privileged(cx, argv[0]) ? trace(&x) : EXIT_FAILED;
}

const struct cmd cmd_trace = {
	.name = "trace",
	.usage = "[--verdict NAME]... [--count N] [--pcap FILE]",
	.summary = "packets with their verdicts, as they pass",
	.help = "tcpdump on the balancer does not see forwarded packets; this shows them, one a line, until it is\n"
		"interrupted. At most 1000 a second on each CPU are taken, the rest is counted. What nobody traces\n"
		"costs nothing.\n\n"
		"  --verdict NAME  only packets with this verdict; may be given again\n"
		"  --count N       end after N packets\n"
		"  --pcap FILE     write them as a pcapng file (-: standard output), which tcpdump and Wireshark read;\n"
		"                  frames are as they left, the first 256 bytes, with the verdict as comment\n\n"
		"Exit status: 0 done, or interrupted; 1 failed, or not attached, or another trace runs; 2 bad usage.\n",
	.run = run,
};
