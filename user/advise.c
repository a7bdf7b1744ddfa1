/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "advise.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTER_IPV4 20u
#define OUTER_IPV6 40u
#define OUTER_UDP 8u

/* The most that a service of the pool puts around a packet to a backend. */
static uint32_t outer_bytes(const struct state *s, size_t pool, const struct address *backend)
{
	uint32_t ip = address_is_ipv4(backend) ? OUTER_IPV4 : OUTER_IPV6, most = 0;

	for (size_t i = 0; i < s->config->services; i++) {
		enum ringlb_forward forward = s->config->service[i].forward;
		uint32_t bytes = forward == RINGLB_FORWARD_L2 ? 0 : forward == RINGLB_FORWARD_GUE ? ip + OUTER_UDP : ip;

		if (s->config->service[i].pool == pool && bytes > most)
			most = bytes;
	}
	return most;
}

/* The largest packet that clients can send in, by the interfaces' MTU. */
static uint32_t largest_packet(struct netlink *nl, const struct config *c, const char **name)
{
	uint32_t mtu = 0;

	for (size_t i = 0; i < c->interfaces; i++) {
		struct link_info link;

		if (!link_by_name(nl, c->interface[i], &link) && link.mtu > mtu) {
			mtu = link.mtu;
			*name = c->interface[i];
		}
	}
	return mtu;
}

/* Interfaces that were warned of: what is said of one backend behind it holds for the others. */
struct warned {
	unsigned int *ifindex;
	size_t count;
};

/* True the first time. */
static bool first_time(struct warned *w, unsigned int ifindex)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->ifindex[i] == ifindex)
			return false;
	w->ifindex = xreallocarray(w->ifindex, w->count + 1, sizeof(*w->ifindex));
	w->ifindex[w->count++] = ifindex;
	return true;
}

static void advise_mtu(struct netlink *nl, const struct state *s, const struct nexthops *hops, struct diag *d)
{
	const char *in = "";
	uint32_t largest = largest_packet(nl, s->config, &in);
	struct warned warned = { 0 };

	for (size_t i = 0; i < s->pools; i++)
		for (size_t j = 0; j < s->pool[i].backends; j++) {
			const struct state_backend *b = &s->pool[i].backend[j];
			const struct nexthop *h = nexthops_find(hops, &b->address);
			uint32_t outer = outer_bytes(s, i, &b->address);
			char name[IF_NAMESIZE] = "?";

			if (!outer || !h || !h->has_route || h->route.local || largest + outer <= h->route.mtu ||
			    !first_time(&warned, h->route.ifindex))
				continue;
			if_indextoname(h->route.ifindex, name);
			diag_warning(
				d, "mtu", "",
				"pool %s: a packet of %u bytes from %s does not fit the way to backend %s (MTU %u on %s) with "
				"its outer header of %u bytes: clients are told of it, and hang where something on their way "
				"keeps that from them; raise the MTU of %s and of the links behind it to %u, or give the "
				"clients' route to the service an MTU of %u",
				s->pool[i].name, largest, in, b->name, h->route.mtu, name, outer, name, largest + outer,
				h->route.mtu - outer);
		}
	free(warned.ifindex);
}

static void advise_arp(struct netlink *nl, const struct state *s, struct diag *d)
{
	for (size_t i = 0; i < s->config->services; i++) {
		const struct config_service *v = &s->config->service[i];
		char text[CONFIG_ADDRESS_TEXT], name[IF_NAMESIZE] = "?";
		unsigned int ifindex;
		bool seen = false;

		for (size_t j = 0; j < i; j++)
			seen |= address_equal(&s->config->service[j].address, &v->address);
		if (seen || !address_in_subnet(nl, &v->address, &ifindex) || address_is_local(nl, &v->address))
			continue;
		if_indextoname(ifindex, name);
		config_service_address(v, text);
		diag_warning(
			d, "arp", "",
			"service %s: %s lies in a subnet of %s, and this host does not answer %s for it: give the host the "
			"address (ip %s %s%s dev lo), or take one outside the subnet and route it here",
			v->name, text, name, address_is_ipv4(&v->address) ? "ARP" : "neighbour discovery",
			v->free_bits ? "route add local" : "address add", text,
			v->free_bits                 ? "" :
			address_is_ipv4(&v->address) ? "/32" :
						       "/128");
	}
}

static bool configured(const struct config *c, const char *interface)
{
	for (size_t i = 0; i < c->interfaces; i++)
		if (!strcmp(c->interface[i], interface))
			return true;
	return false;
}

/* The interface that frames leave through: of a VLAN's the one below. */
static bool output_name(struct netlink *nl, unsigned int ifindex, char name[IF_NAMESIZE])
{
	struct link_info link;

	if (link_by_index(nl, ifindex, &link))
		return false;
	return if_indextoname(link.below ? link.below : ifindex, name);
}

static void advise_output(struct netlink *nl, const struct state *s, const struct nexthops *hops, struct diag *d)
{
	struct warned warned = { 0 };

	for (size_t i = 0; i < hops->count; i++) {
		const struct nexthop *h = &hops->hop[i];
		char name[IF_NAMESIZE];

		if (!h->has_route || h->route.local || !first_time(&warned, h->route.ifindex) ||
		    !output_name(nl, h->route.ifindex, name) || configured(s->config, name))
			continue;
		diag_warning(
			d, "output-interface", "",
			"backend %s is reached through %s, which is not among the interfaces: many drivers accept redirected "
			"packets only on an interface that has an XDP program: add %s to interfaces",
			h->name, name, name);
	}
	free(warned.ifindex);
}

static void advise_neighbours(const struct nexthops *hops, struct diag *d)
{
	char text[ADDRESS_TEXT], gateway[ADDRESS_TEXT];

	for (size_t i = 0; i < hops->count; i++) {
		const struct nexthop *h = &hops->hop[i];

		address_text(&h->address, text);
		if (!h->has_route)
			diag_warning(
				d, "no-route", "",
				"backend %s: there is no route to %s (%s): its packets are dropped until there is one",
				h->name, text, strerror(-h->error));
		else if (h->error)
			diag_warning(
				d, "no-neighbour", "",
				"backend %s: %s, its next hop, does not answer %s yet: its packets are dropped until it does",
				h->name, address_text(&h->route.gateway, gateway),
				address_is_ipv4(&h->route.gateway) ? "ARP" : "neighbour discovery");
	}
}

/* What is for a backend on this host goes up its own stack, which takes it only if it has the service's address. */
static void advise_local(struct netlink *nl, const struct state *s, const struct nexthops *hops, struct diag *d)
{
	for (size_t i = 0; i < s->config->services; i++) {
		const struct config_service *v = &s->config->service[i];
		const struct state_pool *p = &s->pool[v->pool];
		char text[CONFIG_ADDRESS_TEXT];
		struct route route;

		if (!route_get(nl, &v->address, &route) && route.local)
			continue;
		for (size_t j = 0; j < p->backends; j++) {
			const struct nexthop *h = nexthops_find(hops, &p->backend[j].address);

			if (!h || !h->has_route || !h->route.local)
				continue;
			config_service_address(v, text);
			diag_warning(
				d, "local-backend", "",
				"service %s: backend %s is this host itself, which does not have %s: what the backend is "
				"to answer gets lost; give the host the address (ip %s %s dev lo)",
				v->name, p->backend[j].name, text, v->free_bits ? "route add local" : "address add",
				text);
			break;
		}
	}
}

static int forwarding(const char *family, const char *interface)
{
	char path[128], value = '1';
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/forwarding", family, interface);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (read(fd, &value, 1) < 0)
		value = '1';
	close(fd);
	return value != '0';
}

/* Without forwarding the kernel refuses bpf_fib_lookup: the data plane then keeps what netlink said last. */
static void advise_forwarding(const struct state *s, const struct nexthops *hops, struct diag *d)
{
	bool ipv4 = false, ipv6 = false;

	for (size_t i = 0; i < hops->count; i++) {
		ipv4 |= address_is_ipv4(&hops->hop[i].address);
		ipv6 |= !address_is_ipv4(&hops->hop[i].address);
	}
	for (size_t i = 0; i < s->config->interfaces; i++) {
		const char *name = s->config->interface[i];
		const char *family = ipv4 && !forwarding("ipv4", name) ? "ipv4" :
				     ipv6 && !forwarding("ipv6", name) ? "ipv6" :
									 NULL;

		if (family)
			diag_warning(
				d, "forwarding", "",
				"%s forwarding is off on %s: a changed next hop of a backend is noticed at the next command "
				"only: sysctl -w net.%s.conf.%s.forwarding=1",
				family, name, family, name);
	}
}

void advise(struct netlink *nl, const struct state *s, const struct nexthops *hops, struct diag *d)
{
	advise_mtu(nl, s, hops, d);
	advise_arp(nl, s, d);
	advise_output(nl, s, hops, d);
	advise_local(nl, s, hops, d);
	advise_neighbours(hops, d);
	advise_forwarding(s, hops, d);
}
