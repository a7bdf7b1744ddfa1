/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the daemon's two processes may do: as little as they need. */
#ifndef RINGLB_DAEMON_CAPS_H
#define RINGLB_DAEMON_CAPS_H

/* CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON stay, for what they can do without others' files. 0 or -errno. */
int caps_keep(void);
/*
 * None stay, and none can come back; the user becomes nobody where this process may still choose. Before an exec: the
 * new program has none either. 0 or -errno.
 */
int caps_none(void);

#endif
