/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "netlink_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/netlink.h>

/* What the kernel puts into one datagram of a dump at most. */
#define RECEIVE_BYTES 32768
#define DUMP_ATTEMPTS 8

struct netlink {
	struct mnl_socket *socket;
	unsigned int sequence;
	char buffer[RECEIVE_BYTES] __attribute__((aligned(8)));
};

int netlink_open(struct netlink **out)
{
	struct netlink *nl = calloc(1, sizeof(*nl));
	int err, one = 1;

	*out = NULL;
	if (!nl)
		return -ENOMEM;
	nl->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!nl->socket || mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		err = -errno;
		netlink_close(nl);
		return err;
	}
	/* Without it an error quotes the whole request; nothing here reads that. */
	mnl_socket_setsockopt(nl->socket, NETLINK_CAP_ACK, &one, sizeof(one));
	*out = nl;
	return 0;
}

void netlink_close(struct netlink *nl)
{
	if (!nl)
		return;
	if (nl->socket)
		mnl_socket_close(nl->socket);
	free(nl);
}

void *netlink_request(struct netlink_request *r, uint16_t type, uint16_t flags, size_t length)
{
	memset(r, 0, sizeof(*r));
	mnl_nlmsg_put_header(&r->header);
	r->header.nlmsg_type = type;
	r->header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	return mnl_nlmsg_put_extra_header(&r->header, length);
}

/* Reads what answers the last request. *interrupted: the subject of a dump changed meanwhile, parts may be missing. */
static int read_answers(struct netlink *nl, netlink_answer_fn each, void *data, bool *interrupted)
{
	for (;;) {
		ssize_t received = mnl_socket_recvfrom(nl->socket, nl->buffer, sizeof(nl->buffer));
		const struct nlmsghdr *h = (const void *)nl->buffer;
		int left = (int)received;

		if (received < 0 && errno == EINTR)
			continue;
		if (received < 0)
			return -errno;
		for (; mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left)) {
			if (h->nlmsg_seq != nl->sequence)
				continue;
			if (h->nlmsg_flags & NLM_F_DUMP_INTR)
				*interrupted = true;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(h))->error;
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (each)
				each(h, data);
		}
	}
}

int netlink_talk(struct netlink *nl, struct netlink_request *r, netlink_answer_fn each, void *data)
{
	bool interrupted;
	int err, attempts = 0;

	if ((r->header.nlmsg_flags & NLM_F_DUMP) !=
	    NLM_F_DUMP) /* its bits, one by one, mean other things to a change */
		r->header.nlmsg_flags |= NLM_F_ACK;
	do {
		interrupted = false;
		r->header.nlmsg_seq = ++nl->sequence;
		if (mnl_socket_sendto(nl->socket, r, r->header.nlmsg_len) < 0)
			return -errno;
		err = read_answers(nl, each, data, &interrupted);
	} while (!err && interrupted && ++attempts < DUMP_ATTEMPTS);
	return err;
}

int netlink_family(const struct address *a)
{
	return address_is_ipv4(a) ? AF_INET : AF_INET6;
}

const void *netlink_bytes(const struct address *a, size_t *length)
{
	bool ipv4 = address_is_ipv4(a);

	*length = ipv4 ? 4 : 16;
	return ipv4 ? a->byte + 12 : a->byte;
}

bool netlink_address(const struct nlattr *attribute, int family, struct address *out)
{
	size_t length = family == AF_INET ? 4 : 16;

	if (mnl_attr_get_payload_len(attribute) != length)
		return false;
	memset(out, 0, sizeof(*out));
	if (family == AF_INET)
		memset(out->byte + 10, 0xff, 2);
	memcpy(out->byte + 16 - length, mnl_attr_get_payload(attribute), length);
	return true;
}
