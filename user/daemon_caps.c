// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "daemon_caps.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cap-ng.h>

#define NOBODY 65534u

static bool has(unsigned int capability)
{
	return capng_have_capability(CAPNG_EFFECTIVE, capability);
}

/* What is in libcap-ng's hands becomes true: the bounding set where this process may change it; a unit keeps it narrow. */
static int apply(bool bounds)
{
	if (bounds && capng_apply(CAPNG_SELECT_BOUNDS))
		return -EPERM;
	return capng_apply(CAPNG_SELECT_CAPS) ? -EPERM : 0;
}

int caps_keep(void)
{
	bool bounds;
	int err;

	if (capng_get_caps_process())
		return -EPERM;
	bounds = has(CAP_SETPCAP);
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET, CAP_BPF, CAP_NET_ADMIN,
			  CAP_PERFMON, -1))
		return -EPERM;
	err = apply(bounds);
	return !err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : err;
}

/* Where it may not it stays who it is: without capabilities, and with what its unit lets it see. */
static int become_nobody(void)
{
	if (!has(CAP_SETUID) || !has(CAP_SETGID))
		return 0;
	return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ? -errno :
													      0;
}

int caps_none(void)
{
	bool bounds;
	int err;

	if (capng_get_caps_process())
		return -EPERM;
	bounds = has(CAP_SETPCAP);
	err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
	if (!err && bounds) {
		capng_clear(CAPNG_SELECT_BOUNDS);
		err = capng_apply(CAPNG_SELECT_BOUNDS) ? -EPERM : 0;
	}
	if (!err)
		err = become_nobody();
	capng_clear(CAPNG_SELECT_CAPS);
	return err ? err : apply(false);
}
