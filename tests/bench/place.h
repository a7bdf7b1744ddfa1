/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Networks of the pairs of interfaces, as formats: of the pair itself, .0.1 being ours, and of what is behind a router. */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#define PLACE_NET4 "10.%u"
#define PLACE_NUMBER4(number) (64 + (number))
#define PLACE_BEHIND4(number) (128 + (number))
#define PLACE_NET6 "fd77:%x:0:0"
#define PLACE_BEHIND6 "fd78:%x:0:0"

/* Runs a command line's worth of ip(8) commands. */
void place_ip(const char *commands);

#endif
