// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The generations that are kept. */
#include <stdio.h>

#include "report.h"

static void print_one(struct out *o, const struct generation *g, bool active, bool recorded)
{
	out_object(o, NULL);
	out_integer(o, "generation", g->number);
	out_string(o, "time", *g->time ? g->time : NULL);
	out_string(o, "digest", *g->digest ? g->digest : NULL);
	out_string(o, "summary", g->summary);
	out_boolean(o, "active", active);
	out_boolean(o, "recorded", recorded && !g->damaged);
	out_end(o);
	out_cell(o, active ? OUT_GOOD : OUT_PLAIN, "%s", active ? "*" : "");
	out_cell(o, OUT_PLAIN, "%u", g->number);
	out_cell(o, OUT_PLAIN, "%s", g->time);
	out_cell(o, OUT_PLAIN, "%.12s", g->digest);
	out_cell(o, g->damaged ? OUT_BAD : OUT_PLAIN, "%s", g->damaged ? "damaged: can't be returned to" : g->summary);
	out_row(o);
}

void report_history(struct out *o, const char *key, const struct generation *list, size_t count,
		    const struct state *running)
{
	static const char *const head[] = { "", "generation", "time", "digest", "summary" };
	struct generation own = { .summary = (char *)"not recorded: can't be returned to" };
	bool found = !running;

	out_array(o, key);
	out_table(o, "lrlll");
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		out_head(o, "%s", head[i]);
	for (size_t i = 0; i < count; i++) {
		bool active = running && list[i].number == running->generation;

		found |= active;
		print_one(o, &list[i], active, true);
	}
	if (!found) {
		own.number = running->generation;
		snprintf(own.digest, sizeof(own.digest), "%s", running->digest);
		print_one(o, &own, true, false);
	}
	out_table_end(o);
	out_end(o);
	if (!count && !running)
		out_text(o, "no generation is kept, and nothing runs\n");
}
