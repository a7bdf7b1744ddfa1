// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "daemon_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "diag.h"

#define READ_BYTES 65536u

struct head {
	uint32_t type, length;
};

void wire_init(struct wire *w, int fd, size_t limit)
{
	*w = (struct wire){ .fd = fd, .limit = limit };
}

void wire_free(struct wire *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free(w->in);
	free(w->out);
	*w = (struct wire){ .fd = -1 };
}

static void reserve(char **buffer, size_t *room, size_t need)
{
	if (need <= *room)
		return;
	*room = need > 2 * *room ? need : 2 * *room;
	*buffer = xreallocarray(*buffer, *room, 1);
}

int wire_flush(struct wire *w)
{
	while (w->out_sent < w->out_length) {
		ssize_t done = send(w->fd, w->out + w->out_sent, w->out_length - w->out_sent,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EAGAIN)
			return 0;
		if (done < 0)
			return -errno;
		w->out_sent += (size_t)done;
	}
	w->out_sent = w->out_length = 0;
	return 0;
}

int wire_send(struct wire *w, enum wire_type type, const void *data, size_t length)
{
	const struct head h = { (uint32_t)type, (uint32_t)length };

	if (length > WIRE_LENGTH_MAX)
		return -EMSGSIZE;
	if (w->out_sent) {
		memmove(w->out, w->out + w->out_sent, w->out_length - w->out_sent);
		w->out_length -= w->out_sent;
		w->out_sent = 0;
	}
	reserve(&w->out, &w->out_room, w->out_length + sizeof(h) + length);
	memcpy(w->out + w->out_length, &h, sizeof(h));
	memcpy(w->out + w->out_length + sizeof(h), data, length);
	w->out_length += sizeof(h) + length;
	return wire_flush(w);
}

size_t wire_waiting(const struct wire *w)
{
	return w->out_length - w->out_sent;
}

/* Hands out the whole messages at the front. */
static int take(struct wire *w, wire_fn fn, void *context)
{
	size_t at = 0;

	while (w->in_length - at >= sizeof(struct head)) {
		struct head h;

		memcpy(&h, w->in + at, sizeof(h));
		if (h.length > w->limit)
			return -EMSGSIZE;
		if (w->in_length - at < sizeof(h) + h.length)
			break;
		fn(context, (enum wire_type)h.type, w->in + at + sizeof(h), h.length);
		at += sizeof(h) + h.length;
	}
	memmove(w->in, w->in + at, w->in_length - at);
	w->in_length -= at;
	return 0;
}

int wire_read(struct wire *w, wire_fn fn, void *context)
{
	for (;;) {
		ssize_t received;
		int err;

		reserve(&w->in, &w->in_room, w->in_length + READ_BYTES);
		received = recv(w->fd, w->in + w->in_length, w->in_room - w->in_length, MSG_DONTWAIT);
		if (received < 0 && errno == EINTR)
			continue;
		if (received < 0 && errno == EAGAIN)
			return 0;
		if (received < 0)
			return -errno;
		if (!received)
			return -EPIPE;
		w->in_length += (size_t)received;
		err = take(w, fn, context);
		if (err)
			return err;
	}
}

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

int wire_packet_send(int fd, const struct wire_packet *p, int descriptor)
{
	struct iovec v = { (void *)p, sizeof(*p) };
	union control control = { 0 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	if (descriptor >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
						   .cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
	}
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int wire_packet_read(int fd, struct wire_packet *p, int *descriptor)
{
	struct iovec v = { p, sizeof(*p) };
	union control control = { 0 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	const struct cmsghdr *c;
	ssize_t received;

	*descriptor = -1;
	do
		received = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (received < 0 && errno == EINTR);
	if (received < 0)
		return errno == EAGAIN ? -EAGAIN : -EPIPE;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(descriptor, CMSG_DATA(c), sizeof(*descriptor));
	if (received == (ssize_t)sizeof(*p))
		return 0;
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
	return -EPIPE; /* nothing: it is gone; anything else is not ours */
}
