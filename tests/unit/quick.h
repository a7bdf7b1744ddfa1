/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `make check` leaves to `make test`, which is not in a hurry. */
#ifndef TESTS_QUICK_H
#define TESTS_QUICK_H

#include <stdlib.h>

/* First line of a test that takes a second or more. */
#define LEAVE_IF_QUICK()                                                                                               \
	do {                                                                                                           \
		if (getenv("RINGLB_QUICK"))                                                                            \
			skip();                                                                                        \
	} while (0)

#endif
