// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "netlink_private.h"

#define RECEIVE_BYTES 32768
#define SOCKET_BYTES (4 << 20) /* of events that may wait */
#define READS 64               /* at once; then others have their turn */

struct watch {
	struct mnl_socket *socket;
	char buffer[RECEIVE_BYTES] __attribute__((aligned(8)));
};

static int join(struct mnl_socket *s)
{
	static const int group[] = {
		RTNLGRP_LINK,      RTNLGRP_NEIGH,     RTNLGRP_IPV4_ROUTE,  RTNLGRP_IPV6_ROUTE,
		RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
	};

	for (size_t i = 0; i < sizeof(group) / sizeof(*group); i++) {
		int g = group[i];

		if (mnl_socket_setsockopt(s, NETLINK_ADD_MEMBERSHIP, &g, sizeof(g)) < 0)
			return -errno;
	}
	return 0;
}

int watch_open(struct watch **out)
{
	struct watch *w = calloc(1, sizeof(*w));
	int err = 0, bytes = SOCKET_BYTES;

	*out = NULL;
	if (!w)
		return -ENOMEM;
	w->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!w->socket || mnl_socket_bind(w->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		err = -errno;
	if (!err)
		err = join(w->socket);
	if (err) {
		watch_close(w);
		return err;
	}
	if (setsockopt(watch_fd(w), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(watch_fd(w), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	*out = w;
	return 0;
}

void watch_close(struct watch *w)
{
	if (!w)
		return;
	if (w->socket)
		mnl_socket_close(w->socket);
	free(w);
}

int watch_fd(const struct watch *w)
{
	return mnl_socket_get_fd(w->socket);
}

static void neighbour_event(const struct nlmsghdr *h, const struct watch_handler *to)
{
	const struct ndmsg *m = mnl_nlmsg_get_payload(h);
	struct watch_neighbour n = { .ifindex = (unsigned int)m->ndm_ifindex };
	const struct nlattr *a;
	bool has_address = false;

	if ((m->ndm_family != AF_INET && m->ndm_family != AF_INET6) || m->ndm_flags & NTF_PROXY || !to->neighbour)
		return;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		switch (mnl_attr_get_type(a)) {
		case NDA_DST:
			has_address = netlink_address(a, m->ndm_family, &n.address);
			break;
		case NDA_LLADDR:
			n.usable = mnl_attr_get_payload_len(a) == sizeof(n.mac);
			if (n.usable)
				memcpy(n.mac, mnl_attr_get_payload(a), sizeof(n.mac));
			break;
		}
	}
	if (h->nlmsg_type != RTM_NEWNEIGH || m->ndm_state & (NUD_FAILED | NUD_INCOMPLETE) || m->ndm_state == NUD_NONE)
		n.usable = false;
	if (has_address)
		to->neighbour(to->context, &n);
}

static void event(const struct nlmsghdr *h, const struct watch_handler *to)
{
	switch (h->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		if (to->link)
			to->link(to->context);
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		neighbour_event(h, to);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
	case RTM_NEWRULE:
	case RTM_DELRULE:
	case RTM_NEWADDR:
	case RTM_DELADDR:
		if (to->route)
			to->route(to->context);
		break;
	}
}

int watch_read(struct watch *w, const struct watch_handler *h)
{
	for (int i = 0; i < READS; i++) {
		ssize_t received = mnl_socket_recvfrom(w->socket, w->buffer, sizeof(w->buffer));
		const struct nlmsghdr *m = (const void *)w->buffer;
		int left = (int)received;

		if (received < 0 && errno == EINTR)
			continue;
		if (received < 0 && errno == EAGAIN)
			return 0;
		if (received < 0 && errno == ENOBUFS) {
			if (h->lost)
				h->lost(h->context);
			continue;
		}
		if (received < 0)
			return -errno;
		for (; mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left))
			event(m, h);
	}
	return 0;
}
