/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service notification: what a supervisor that set $NOTIFY_SOCKET is told, sd_notify(3). Without one nothing happens. */
#ifndef RINGLB_NOTIFY_H
#define RINGLB_NOTIFY_H

#include <stdint.h>

/* "READY=1\nSTATUS=..." as one datagram. 0, or -errno; nobody needs to care. */
__attribute__((format(printf, 1, 2))) int notify_send(const char *format, ...);
/* Milliseconds after which the watchdog wants to hear again, half of what it allows; 0: there is none for this process. */
uint64_t notify_watchdog_ms(void);
/* Forgets the supervisor, for a child. */
void notify_end(void);

#endif
