/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where an instance lives, and its lock. */
#ifndef RINGLB_INSTANCE_H
#define RINGLB_INSTANCE_H

#include "diag.h"

struct instance {
	char *name;      /* [A-Za-z0-9_-]{1,32} */
	char *bpffs;     /* directory that holds instances, on a bpffs */
	char *pins;      /* bpffs/NAME */
	char *state_dir; /* of all instances */
	char *run_dir;
};

/*
 * Fills in defaults and RINGLB_* variables where an option is NULL. 0, or -EINVAL with a message in d. To be freed with
 * instance_free in both cases.
 */
int instance_init(struct instance *i, const char *name, const char *bpffs, const char *state_dir, const char *run_dir,
		  struct diag *d);
/*
 * Takes the instance's lock, waiting up to wait_seconds; the descriptor, close-on-exec, to be given to
 * instance_unlock, or closed by exit. -ETIMEDOUT with a message that names the holder and its command, or -errno with
 * a message.
 */
int instance_lock(const struct instance *i, const char *command, double wait_seconds, struct diag *d);
/*
 * Lets go of the lock and removes its file, and the default run directory when it is empty, so that nothing is left
 * behind. A lock's file that stays because its holder was killed does no harm.
 */
void instance_unlock(const struct instance *i, int fd);
void instance_free(struct instance *i);

#endif
