/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "release.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "nexthop.h"

static void add(struct netlink *nl, const struct state *s, struct nexthops **hops, size_t *count)
{
	*hops = xreallocarray(*hops, *count + 1, sizeof(**hops));
	nexthops_resolve(nl, s, 0, &(*hops)[(*count)++]);
}

/* What the other instances of this host go through. */
static void add_others(const struct instance *i, struct netlink *nl, struct nexthops **hops, size_t *count)
{
	DIR *dir = opendir(i->bpffs);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char *pins = xasprintf("%s/%s", i->bpffs, e->d_name);
		struct instance other = { .name = e->d_name, .bpffs = i->bpffs, .pins = pins };
		struct diag ignored = { 0 };
		struct running r;

		if (e->d_name[0] != '.' && strcmp(e->d_name, i->name) && !running_open(&other, &r, &ignored)) {
			add(nl, r.state, hops, count);
			running_close(&r);
		}
		diag_free(&ignored);
		free(pins);
	}
	if (dir)
		closedir(dir);
}

void release_neighbours(const struct instance *i, struct netlink *nl, const struct state *old, const struct state *keep)
{
	struct nexthops *hops = NULL;
	size_t count = 0;

	if (keep && nexthops_covered(old, keep))
		return;
	if (keep)
		add(nl, keep, &hops, &count);
	add_others(i, nl, &hops, &count);
	nexthops_release(nl, old, hops, count);
	for (size_t j = 0; j < count; j++)
		nexthops_free(&hops[j]);
	free(hops);
}
