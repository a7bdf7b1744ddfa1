/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "grow_case.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>

#include "change.h"
#include "datapath_private.h"
#include "flows.h"
#include "lookup.h"

#define CONNECTIONS 120u

struct instance grow_instance;
static uint64_t sent; /* packets for the service since the attach */
static char root[] = "/tmp/ringlb-grow-XXXXXX";
/* A connection: where its packets go. */
static struct connection {
	uint16_t port, backend;
} connection[4 * CONNECTIONS];
static unsigned int connections;

static void run(const char *command)
{
	if (system(command))
		fail_msg("failed: %s", command);
}

static void neighbours(void)
{
	FILE *f = popen("ip -batch -", "we");

	assert_non_null(f);
	for (unsigned int i = 0; i < GROW_MANY; i++)
		fprintf(f, "neighbour replace 10.0.1.%u lladdr 02:00:00:00:01:%02x dev ra nud permanent\n", i, i);
	assert_int_equal(pclose(f), 0);
}

int grow_enter(void **state)
{
	struct diag d = { 0 };
	char *bpffs, *state_dir, *run_dir;

	(void)state;
	if (unshare(CLONE_NEWNS | CLONE_NEWNET) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(root))
		return -1;
	bpffs = xasprintf("%s/bpf", root);
	state_dir = xasprintf("%s/state", root);
	run_dir = xasprintf("%s/run", root);
	if (mkdir(bpffs, 0700) || mount("bpf", bpffs, "bpf", 0, NULL) ||
	    instance_init(&grow_instance, NULL, bpffs, state_dir, run_dir, &d))
		return -1;
	free(bpffs);
	free(state_dir);
	free(run_dir);
	run("ip link set lo up");
	run("ip link add ra type veth peer name rb && ip link add rc type veth peer name rd");
	run("ip address add 10.0.0.1/16 dev ra && ip link set ra up && ip link set rb up && ip link set rc up");
	neighbours();
	return 0;
}

int grow_leave(void **state)
{
	(void)state;
	umount(grow_instance.bpffs);
	rmdir(grow_instance.bpffs);
	rmdir(root);
	instance_free(&grow_instance);
	return 0;
}

void grow_quiet(struct diag *d)
{
	if (d->errors)
		fail_msg("%s", d->entry[0].message);
	diag_free(d);
	memset(d, 0, sizeof(*d));
}

static struct config *config(unsigned int backends, const char *flow_table)
{
	struct diag d = { 0 };
	struct config *c;
	char *text = NULL;
	size_t length;
	FILE *f = open_memstream(&text, &length);

	fprintf(f,
		"interfaces: [ra, rc]\nhash_key: 00112233445566778899aabbccddeeff\nflows: %s\n"
		"services: [{name: www, address: 192.0.2.10, port: 80, protocol: tcp, pool: web, forward: l2}]\n"
		"pools:\n  - name: web\n    vnodes: 500\n    backends:\n",
		flow_table);
	for (unsigned int i = 0; i < backends; i++)
		fprintf(f, "      - {name: b%u, address: 10.0.1.%u}\n", i, i);
	fclose(f);
	c = config_parse("test", text, length, &d);
	grow_quiet(&d);
	free(text);
	return c;
}

int grow_apply(unsigned int backends, const char *flow_table, struct diag *d)
{
	struct change c;
	int err = change_open(&grow_instance, &c, d);

	if (!err || err == -ENOENT)
		err = change_plan(&c, config(backends, flow_table), d);
	if (!err)
		err = change_commit(&c, NULL, false, d);
	change_close(&c);
	return err;
}

void grow_applied(unsigned int backends, const char *flow_table)
{
	struct diag d = { 0 };
	int err = grow_apply(backends, flow_table, &d);

	grow_quiet(&d);
	assert_int_equal(err, 0);
}

struct running grow_opened(void)
{
	struct diag d = { 0 };
	struct running r;
	int err = running_open(&grow_instance, &r, &d);

	grow_quiet(&d);
	assert_int_equal(err, 0);
	return r;
}

int grow_attached(size_t i)
{
	struct datapath_link *link;
	size_t links;
	int fd;

	assert_int_equal(datapath_links(grow_instance.pins, &link, &links), 0);
	assert_int_equal(links, 2);
	fd = bpf_prog_get_fd_by_id(link[i].prog_id);
	assert_true(fd >= 0);
	free(link);
	return fd;
}

/* Sends a packet of a connection from this port through a program; the backend that it goes to. */
static uint16_t sends(int prog, uint16_t port, bool established)
{
	static struct config *c;
	struct lookup_target target;
	struct lookup_source source = { .port = port };
	uint8_t frame[LOOKUP_FRAME], out[LOOKUP_FRAME];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_out = out, .data_size_out = sizeof(out));
	uint32_t sequence = htonl(port * 1000u + established);
	struct diag d = { 0 };

	if (!c)
		c = config(1, GROW_SMALL);
	assert_int_equal(lookup_target_find(c, "www", &target, &d), 0);
	assert_int_equal(address_parse("198.51.100.7", &source.address), 0);
	opts.data_size_in = (uint32_t)lookup_frame(&target, &source, established, frame);
	memcpy(frame + 38, &sequence, sizeof(sequence));
	assert_int_equal(bpf_prog_test_run_opts(prog, &opts), 0);
	assert_int_equal(opts.retval, 4); /* XDP_REDIRECT */
	assert_memory_equal(out, "\2\0\0\0\1", 5);
	sent++;
	return out[5];
}

void grow_opens(unsigned int count)
{
	int prog[2] = { grow_attached(0), grow_attached(1) };

	for (unsigned int i = 0; i < count; i++) {
		struct connection *f = &connection[connections];

		f->port = (uint16_t)(20000 + connections++);
		f->backend = sends(prog[connections % 2], f->port, false);
		assert_int_equal(sends(prog[~connections % 2], f->port, true), f->backend);
	}
	close(prog[0]);
	close(prog[1]);
}

void grow_go_on_through(int prog)
{
	for (unsigned int i = 0; i < connections; i++)
		assert_int_equal(sends(prog, connection[i].port, true), connection[i].backend);
}

void grow_go_on(void)
{
	for (size_t i = 0; i < 2; i++) {
		int prog = grow_attached(i);

		grow_go_on_through(prog);
		close(prog);
	}
}

void grow_add_up(void)
{
	struct running r = grow_opened();
	uint32_t count;
	struct ringlb_counter *c;
	struct ringlb_verdict_counters v;
	uint64_t sum = 0;

	datapath_backends(r.dp, &count);
	c = xcalloc(count, sizeof(*c));
	assert_int_equal(datapath_verdicts(r.dp, &v), 0);
	assert_int_equal(v.packets[RINGLB_VERDICT_FORWARDED], sent);
	assert_int_equal(datapath_backend_counters(r.dp, c, count), 0);
	for (uint32_t i = 0; i < count; i++)
		sum += c[i].packets;
	assert_int_equal(sum, sent);
	assert_int_equal(datapath_service_counters(r.dp, c, 1), 0);
	assert_int_equal(c->packets, sent);
	free(c);
	running_close(&r);
}

void grow_is_whole(void)
{
	struct running r = grow_opened();
	char *site = datapath_site(grow_instance.pins);
	struct bpf_prog_info info = { 0 };
	uint32_t length = sizeof(info);
	struct stat st;
	size_t bytes;

	assert_int_equal(datapath_tables(r.dp, &bytes)->pending, 0);
	assert_int_equal(datapath_tables(r.dp, &bytes)->frozen, 0);
	assert_int_equal(bpf_obj_get_info_by_fd(r.dp->prog, &info, &length), 0);
	for (size_t i = 0; i < r.links; i++)
		assert_int_equal(r.link[i].prog_id, info.id);
	assert_int_equal(stat(site, &st), -1);
	free(site);
	running_close(&r);
}

unsigned int grow_remembered(void)
{
	struct running r = grow_opened();
	struct flows f = { 0 };
	uint32_t used, openings;

	f.bucket = datapath_flows(r.dp, &f.buckets);
	flows_use(&f, 0, &used, &openings);
	running_close(&r);
	return used;
}

void grow_begin(void)
{
	sent = connections = 0;
	grow_applied(3, GROW_SMALL);
	grow_opens(CONNECTIONS);
	grow_applied(4, GROW_SMALL);
	grow_opens(CONNECTIONS);
	grow_go_on();
	grow_add_up();
	assert_true(grow_remembered() > 0);
}

int grow_end(void **state)
{
	struct diag d = { 0 };

	(void)state;
	datapath_unpin(grow_instance.pins, &d);
	diag_free(&d);
	return 0;
}
