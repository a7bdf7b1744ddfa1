/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interfaces, routes and the host's own addresses. */
#include "neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "netlink_private.h"

#define LOOPBACK_IFINDEX 1u /* in every network namespace */

static void read_vlan(const struct nlattr *data, struct link_info *out)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, data)
	{
		if (mnl_attr_get_type(a) == IFLA_VLAN_ID)
			out->vlan_id = mnl_attr_get_u16(a);
		else if (mnl_attr_get_type(a) == IFLA_VLAN_PROTOCOL)
			out->vlan_protocol = ntohs(mnl_attr_get_u16(a));
	}
}

/* What kind of interface it is; `below`, which other kinds have too, counts for a VLAN's alone. */
static void read_kind(const struct nlattr *info, struct link_info *out)
{
	const struct nlattr *a, *data = NULL;
	bool vlan = false;

	mnl_attr_for_each_nested(a, info)
	{
		if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
			vlan = !strcmp(mnl_attr_get_str(a), "vlan");
		else if (mnl_attr_get_type(a) == IFLA_INFO_DATA)
			data = a;
	}
	if (vlan && data)
		read_vlan(data, out);
}

static void read_link(const struct nlmsghdr *h, void *data)
{
	const struct ifinfomsg *m = mnl_nlmsg_get_payload(h);
	struct link_info *out = data;
	const struct nlattr *a;

	if (h->nlmsg_type != RTM_NEWLINK)
		return;
	memset(out, 0, sizeof(*out));
	out->ifindex = (unsigned int)m->ifi_index;
	out->up = m->ifi_flags & IFF_UP;
	out->loopback = m->ifi_flags & IFF_LOOPBACK;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		switch (mnl_attr_get_type(a)) {
		case IFLA_IFNAME:
			snprintf(out->name, sizeof(out->name), "%s", mnl_attr_get_str(a));
			break;
		case IFLA_MTU:
			out->mtu = mnl_attr_get_u32(a);
			break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(a) == sizeof(out->mac))
				memcpy(out->mac, mnl_attr_get_payload(a), sizeof(out->mac));
			break;
		case IFLA_LINK:
			out->below = mnl_attr_get_u32(a);
			break;
		case IFLA_LINKINFO:
			read_kind(a, out);
			break;
		}
	}
	if (!out->vlan_protocol)
		out->below = 0;
}

static int get_link(struct netlink *nl, unsigned int ifindex, const char *name, struct link_info *out)
{
	struct netlink_request r;
	struct ifinfomsg *m = netlink_request(&r, RTM_GETLINK, 0, sizeof(*m));
	int err;

	memset(out, 0, sizeof(*out));
	m->ifi_index = (int)ifindex;
	mnl_attr_put_u32(&r.header, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	if (name)
		mnl_attr_put_strz(&r.header, IFLA_IFNAME, name);
	err = netlink_talk(nl, &r, read_link, out);
	return err ? err : out->ifindex ? 0 : -ENODEV;
}

int link_by_name(struct netlink *nl, const char *name, struct link_info *out)
{
	if (!*name || strlen(name) >= IFNAMSIZ)
		return -ENODEV;
	return get_link(nl, 0, name, out);
}

int link_by_index(struct netlink *nl, unsigned int ifindex, struct link_info *out)
{
	if (!ifindex)
		return -ENODEV;
	return get_link(nl, ifindex, NULL, out);
}

struct route_answer {
	struct route *route;
	unsigned int type;
};

static uint32_t read_metrics_mtu(const struct nlattr *metrics)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, metrics)
	{
		if (mnl_attr_get_type(a) == RTAX_MTU)
			return mnl_attr_get_u32(a);
	}
	return 0;
}

/* A next hop of another family than the route's. */
static void read_via(const struct nlattr *a, struct address *out)
{
	const struct rtvia *via = mnl_attr_get_payload(a);
	size_t length = mnl_attr_get_payload_len(a);

	if (length == sizeof(*via) + 16 && via->rtvia_family == AF_INET6) {
		memcpy(out->byte, via->rtvia_addr, 16);
	} else if (length == sizeof(*via) + 4 && via->rtvia_family == AF_INET) {
		memset(out->byte, 0, 10);
		memset(out->byte + 10, 0xff, 2);
		memcpy(out->byte + 12, via->rtvia_addr, 4);
	}
}

static void read_route(const struct nlmsghdr *h, void *data)
{
	const struct rtmsg *m = mnl_nlmsg_get_payload(h);
	struct route_answer *answer = data;
	const struct nlattr *a;

	if (h->nlmsg_type != RTM_NEWROUTE)
		return;
	answer->type = m->rtm_type;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		switch (mnl_attr_get_type(a)) {
		case RTA_OIF:
			answer->route->ifindex = mnl_attr_get_u32(a);
			break;
		case RTA_GATEWAY:
			netlink_address(a, m->rtm_family, &answer->route->gateway);
			break;
		case RTA_VIA:
			read_via(a, &answer->route->gateway);
			break;
		case RTA_PREFSRC:
			netlink_address(a, m->rtm_family, &answer->route->source);
			break;
		case RTA_METRICS:
			answer->route->mtu = read_metrics_mtu(a);
			break;
		}
	}
}

int route_get(struct netlink *nl, const struct address *destination, struct route *out)
{
	struct route_answer answer = { .route = out, .type = RTN_UNSPEC };
	struct netlink_request r;
	struct rtmsg *m = netlink_request(&r, RTM_GETROUTE, 0, sizeof(*m));
	struct link_info link;
	const void *bytes;
	size_t length;
	int err;

	memset(out, 0, sizeof(*out));
	out->gateway = *destination;
	bytes = netlink_bytes(destination, &length);
	m->rtm_family = (unsigned char)netlink_family(destination);
	m->rtm_dst_len = (unsigned char)(length * 8);
	mnl_attr_put(&r.header, RTA_DST, length, bytes);
	err = netlink_talk(nl, &r, read_route, &answer);
	if (err)
		return err;
	out->local = answer.type == RTN_LOCAL || answer.type == RTN_ANYCAST;
	if ((answer.type != RTN_UNICAST && !out->local) || !out->ifindex)
		return -ENETUNREACH;
	err = link_by_index(nl, out->ifindex, &link);
	if (!err && !out->mtu)
		out->mtu = link.mtu;
	return err;
}

struct subnet_search {
	const struct address *address;
	unsigned int ifindex;
	unsigned int length; /* of the longest prefix so far; 0: none */
};

static bool prefix_contains(const struct address *prefix, unsigned int length, const struct address *a)
{
	unsigned int whole = length / 8, rest = length % 8;

	if (memcmp(prefix->byte, a->byte, whole))
		return false;
	return !rest || !((prefix->byte[whole] ^ a->byte[whole]) >> (8 - rest));
}

static void compare_subnet(const struct nlmsghdr *h, void *data)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
	struct subnet_search *search = data;
	unsigned int bits = m->ifa_family == AF_INET ? 32 : 128;
	const struct nlattr *a;
	struct address subnet;

	/* An address alone is no subnet, and loopback is no link. */
	if (h->nlmsg_type != RTM_NEWADDR || m->ifa_index == LOOPBACK_IFINDEX)
		return;
	if ((m->ifa_family != AF_INET && m->ifa_family != AF_INET6) || m->ifa_prefixlen >= bits || !m->ifa_prefixlen)
		return;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		/* With a peer this is the peer's, whose subnet is the connected one. */
		if (mnl_attr_get_type(a) != IFA_ADDRESS || !netlink_address(a, m->ifa_family, &subnet))
			continue;
		if (m->ifa_prefixlen > search->length &&
		    prefix_contains(&subnet, m->ifa_prefixlen + 128 - bits, search->address)) {
			search->length = m->ifa_prefixlen;
			search->ifindex = m->ifa_index;
		}
	}
}

bool address_in_subnet(struct netlink *nl, const struct address *address, unsigned int *ifindex)
{
	struct subnet_search search = { .address = address };
	struct netlink_request r;
	struct ifaddrmsg *m = netlink_request(&r, RTM_GETADDR, NLM_F_DUMP, sizeof(*m));

	m->ifa_family = (unsigned char)netlink_family(address);
	if (netlink_talk(nl, &r, compare_subnet, &search) || !search.length)
		return false;
	*ifindex = search.ifindex;
	return true;
}
