// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Next hops kept as they are: looked up anew when the kernel says that something changed that they depend on, all of them
 * at once, as a look-up costs microseconds and what depends on what is not known beforehand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_private.h"

#define COALESCE_MS 20u   /* events of one cause come together */
#define SHARE_OF_TIME 10u /* under a storm of events a tenth of the time at most goes into look-ups */

int daemon_hops_open(struct daemon *d)
{
	int err = netlink_open(&d->nl);

	return err ? err : watch_open(&d->watch);
}

void daemon_hops_close(struct daemon *d)
{
	nexthops_free(&d->hops);
	watch_close(d->watch);
	netlink_close(d->nl);
}

static void want_refresh(struct daemon *d)
{
	uint64_t due = d->now + COALESCE_MS + SHARE_OF_TIME * d->hops_took;

	if (d->hops_due > due)
		d->hops_due = due;
}

static void link_changed(void *context)
{
	struct daemon *d = context;

	d->links = true;
	want_refresh(d);
}

static void route_changed(void *context)
{
	want_refresh(context);
}

static bool is_as_known(const struct nexthop *h, const struct watch_neighbour *n)
{
	return n->usable ? !h->error && !memcmp(h->mac, n->mac, sizeof(h->mac)) : h->error != 0;
}

/* Most of what happens to neighbours is no news: they are checked, and grow stale, all the time. */
static void neighbour_changed(void *context, const struct watch_neighbour *n)
{
	struct daemon *d = context;

	for (size_t i = 0; i < d->hops.count; i++) {
		const struct nexthop *h = &d->hops.hop[i];

		if (h->has_route && h->route.ifindex == n->ifindex && address_equal(&h->route.gateway, &n->address) &&
		    !is_as_known(h, n)) {
			want_refresh(d);
			return;
		}
	}
}

void daemon_hops_event(struct daemon *d)
{
	const struct watch_handler handler = {
		.context = d,
		.link = link_changed,
		.neighbour = neighbour_changed,
		.route = route_changed,
		.lost = link_changed,
	};
	int err = watch_read(d->watch, &handler);

	if (!err)
		return;
	log_line(LOG_LEVEL_ERROR, "the kernel's events can't be read: %s", strerror(-err));
	daemon_unpoll(d, watch_fd(d->watch));
	watch_close(d->watch);
	d->watch = NULL;
	if (!watch_open(&d->watch))
		daemon_poll(d, watch_fd(d->watch), false);
	link_changed(d);
}

static const char *mac_text(const struct nexthop *h, char text[18])
{
	static const char hex[] = "0123456789abcdef";

	for (int i = 0; i < 6; i++) {
		text[3 * i] = hex[h->mac[i] >> 4];
		text[3 * i + 1] = hex[h->mac[i] & 15];
		text[3 * i + 2] = i < 5 ? ':' : '\0';
	}
	return text;
}

static const char *why(const struct nexthop *h)
{
	if (!h->has_route)
		return "there is no route to it";
	return h->error == -EHOSTUNREACH ? "its next hop does not answer" : "its next hop is being asked for";
}

/* What is new of one, against what was known. */
static void say_hop(struct daemon *d, const struct nexthop *was, const struct nexthop *is)
{
	char address[ADDRESS_TEXT], gateway[ADDRESS_TEXT], mac[18];
	bool news = !was || !was->error != !is->error ||
		    (!is->error && (was->route.ifindex != is->route.ifindex ||
				    !address_equal(&was->route.gateway, &is->route.gateway) ||
				    memcmp(was->mac, is->mac, sizeof(is->mac))));

	if (!news || is->route.local || (!was && !is->error) || !log_limit(&d->transitions, d->now))
		return;
	address_text(&is->address, address);
	if (is->error)
		log_line(LOG_LEVEL_WARNING, "backend %s (%s) can't be reached: %s", is->name, address, why(is));
	else
		log_line(LOG_LEVEL_INFO, "backend %s (%s) is reached through %s, %s, interface %u", is->name, address,
			 address_text(&is->route.gateway, gateway), mac_text(is, mac), is->route.ifindex);
}

static void take_hops(struct daemon *d, struct nexthops *new)
{
	d->unresolved = 0;
	for (size_t i = 0; i < new->count; i++) {
		const struct nexthop *h = &new->hop[i];

		d->unresolved += h->error != 0;
		say_hop(d, nexthops_find(&d->hops, &h->address), h);
	}
	nexthops_free(&d->hops);
	d->hops = *new;
}

static int refresh_locked(struct daemon *d)
{
	struct diag diag = { 0 };
	struct nexthops new;
	int err = nexthops_resolve(d->nl, d->running.state, 0, &new);

	if (!err)
		err = nexthops_outputs(d->nl, d->running.dp, &new, &diag);
	if (!err)
		nexthops_write(d->running.dp, d->running.state, &new);
	take_hops(d, &new);
	log_diag(&diag, NULL);
	diag_free(&diag);
	return err;
}

int daemon_hops_refresh(struct daemon *d)
{
	struct diag diag = { 0 };
	uint64_t start = daemon_clock();
	int lock;

	d->hops_due = NEVER;
	if (!d->running.dp)
		return 0;
	/* Outputs' slots are given out under the lock, and what is written is for the backends that run. */
	lock = instance_lock(d->instance, d->options->command, 0, &diag);
	diag_free(&diag);
	if (lock >= 0) {
		daemon_look(d);
		if (d->running.dp)
			refresh_locked(d);
		instance_unlock(d->instance, lock);
		d->hops_due = NEVER;
	} else {
		d->hops_due = d->now;
	}
	d->hops_took = daemon_clock() - start;
	return lock >= 0 ? 0 : -EAGAIN;
}

/* "eth0, eth1", of those that are gone; NULL: none. */
static char *missing(const struct plan_interface *v, size_t count)
{
	char *text = NULL;

	for (size_t i = 0; i < count; i++) {
		char *old = text;

		if (!v[i].gone)
			continue;
		text = old ? xasprintf("%s, %s", old, v[i].name) : xstrdup(v[i].name);
		free(old);
	}
	return text;
}

bool daemon_interfaces(struct daemon *d)
{
	struct plan_interface *v;
	bool attach = false;
	size_t count;
	char *gone;

	d->links = false;
	if (!d->running.dp)
		return false;
	free(d->running.link);
	d->running.link = NULL;
	d->running.links = 0;
	if (datapath_links(d->instance->pins, &d->running.link, &d->running.links))
		return false;
	v = running_interfaces(&d->running, &count);
	for (size_t i = 0; i < count; i++)
		attach |= !v[i].gone && (!v[i].attached || !v[i].alive);
	gone = missing(v, count);
	if (gone && (!d->missing || strcmp(gone, d->missing)))
		log_line(LOG_LEVEL_ERROR, "interface %s is gone: packets no longer come through it; not ready", gone);
	else if (!gone && d->missing)
		log_line(LOG_LEVEL_NOTICE, "interface %s is back", d->missing);
	if (!gone != !d->missing)
		daemon_snapshot(d); /* ready, or not */
	free(d->missing);
	d->missing = gone;
	free(v);
	return attach;
}
