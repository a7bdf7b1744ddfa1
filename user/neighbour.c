/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "neighbour.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "netlink_private.h"

struct neighbour {
	uint16_t state; /* NUD_* */
	uint32_t flags; /* NTF_EXT_* */
	bool has_mac;
	uint8_t mac[6];
};

static void read_neighbour(const struct nlmsghdr *h, void *data)
{
	const struct ndmsg *m = mnl_nlmsg_get_payload(h);
	struct neighbour *out = data;
	const struct nlattr *a;

	if (h->nlmsg_type != RTM_NEWNEIGH)
		return;
	out->state = m->ndm_state;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		switch (mnl_attr_get_type(a)) {
		case NDA_LLADDR:
			out->has_mac = mnl_attr_get_payload_len(a) == sizeof(out->mac);
			if (out->has_mac)
				memcpy(out->mac, mnl_attr_get_payload(a), sizeof(out->mac));
			break;
		case NDA_FLAGS_EXT:
			out->flags = mnl_attr_get_u32(a);
			break;
		}
	}
}

static struct ndmsg *start(struct netlink_request *r, uint16_t type, uint16_t flags, unsigned int ifindex,
			   const struct address *address)
{
	struct ndmsg *m = netlink_request(r, type, flags, sizeof(*m));
	const void *bytes;
	size_t length;

	m->ndm_family = (unsigned char)netlink_family(address);
	m->ndm_ifindex = (int)ifindex;
	bytes = netlink_bytes(address, &length);
	mnl_attr_put(&r->header, NDA_DST, length, bytes);
	return m;
}

static int find(struct netlink *nl, unsigned int ifindex, const struct address *address, struct neighbour *out)
{
	struct netlink_request r;

	memset(out, 0, sizeof(*out));
	start(&r, RTM_GETNEIGH, 0, ifindex, address);
	return netlink_talk(nl, &r, read_neighbour, out);
}

/* Somebody else's word, or a link without addresses: nothing to resolve, and nothing to change. */
static bool is_fixed(const struct neighbour *n)
{
	return n->state & (NUD_PERMANENT | NUD_NOARP);
}

/* NTF_USE starts the resolving, on kernels too that don't know NTF_EXT_MANAGED. */
static int set(struct netlink *nl, unsigned int ifindex, const struct address *address, uint16_t flags, uint32_t ext)
{
	struct netlink_request r;
	struct ndmsg *m = start(&r, RTM_NEWNEIGH, flags, ifindex, address);

	m->ndm_state = NUD_NONE;
	m->ndm_flags = NTF_USE;
	if (ext)
		mnl_attr_put_u32(&r.header, NDA_FLAGS_EXT, ext);
	return netlink_talk(nl, &r, NULL, NULL);
}

int neighbour_manage(struct netlink *nl, unsigned int ifindex, const struct address *address)
{
	struct neighbour n;
	int err = find(nl, ifindex, address, &n);

	if (err && err != -ENOENT)
		return err;
	/* The kernel would take the permanence from an entry that becomes managed. */
	if (!err && is_fixed(&n))
		return 0;
	return set(nl, ifindex, address, NLM_F_CREATE, NTF_EXT_MANAGED);
}

int neighbour_unmanage(struct netlink *nl, unsigned int ifindex, const struct address *address)
{
	struct neighbour n;
	int err = find(nl, ifindex, address, &n);

	if (err)
		return err;
	if (!(n.flags & NTF_EXT_MANAGED)) /* which no permanent entry is */
		return -ENOENT;
	/* An update without the flag takes it away; the entry stays for who else uses it, and ages. */
	return set(nl, ifindex, address, 0, 0);
}

int neighbour_get(struct netlink *nl, unsigned int ifindex, const struct address *address, uint8_t mac[6])
{
	struct neighbour n;
	int err = find(nl, ifindex, address, &n);

	if (err)
		return err;
	if (n.state & NUD_FAILED)
		return -EHOSTUNREACH;
	if (n.state & NUD_INCOMPLETE)
		return -EAGAIN;
	if (n.state == NUD_NONE || !n.has_mac)
		return -ENOENT;
	memcpy(mac, n.mac, sizeof(n.mac));
	return 0;
}

struct proxy_search {
	const struct address *address;
	bool found;
};

static void compare_proxy(const struct nlmsghdr *h, void *data)
{
	const struct ndmsg *m = mnl_nlmsg_get_payload(h);
	struct proxy_search *search = data;
	const struct nlattr *a;
	struct address proxied;

	if (h->nlmsg_type != RTM_NEWNEIGH || !(m->ndm_flags & NTF_PROXY))
		return;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		if (mnl_attr_get_type(a) == NDA_DST && netlink_address(a, m->ndm_family, &proxied) &&
		    address_equal(&proxied, search->address))
			search->found = true;
	}
}

bool address_is_local(struct netlink *nl, const struct address *address)
{
	struct proxy_search search = { .address = address };
	struct netlink_request r;
	struct ndmsg *m;
	struct route route;

	if (!route_get(nl, address, &route) && route.local)
		return true;
	m = netlink_request(&r, RTM_GETNEIGH, NLM_F_DUMP, sizeof(*m));
	m->ndm_family = (unsigned char)netlink_family(address);
	m->ndm_flags = NTF_PROXY;
	return !netlink_talk(nl, &r, compare_proxy, &search) && search.found;
}
