// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What ring and tune say alike: shares, and what moves. */
#include "cmd.h"
#include "pool_trial.h"

#define MOVES_SHOWN 10 /* in text without --verbose */

void cmd_shares_fields(struct cmd_context *cx, const struct pool_trial *t, const struct placement_member *member,
		       const struct pool_shares *s, bool new_too)
{
	struct out *o = cx->out;

	out_integer(o, "points", (int64_t)s->all_points);
	out_array(o, "backends");
	for (size_t i = 0; i < (new_too ? t->members : t->config->backends); i++) {
		out_object(o, NULL);
		out_string(o, "name", t->name[i]);
		out_integer(o, "weight", member[i].weight);
		out_integer(o, "points", s->points[i]);
		out_real(o, "share", s->share[i].share);
		out_real(o, "expected", s->share[i].expected);
		if (s->weight[i])
			out_real(o, "ratio", s->share[i].ratio);
		else
			out_string(o, "ratio", NULL);
		out_end(o);
	}
	out_end(o);
	out_real(o, "max_over_mean", s->balance.max);
	out_real(o, "min_over_mean", s->balance.min);
}

void cmd_moves_fields(struct cmd_context *cx, const struct share_change *c, const char *const *name)
{
	struct out *o = cx->out;

	out_real(o, "moved", (double)c->moved / SHARES_ALL);
	out_real(o, "minimum", (double)c->minimum_twice / 2 / SHARES_ALL);
	out_real(o, "excess", share_change_excess(c));
	out_array(o, "moves");
	for (size_t i = 0; i < c->moves; i++) {
		out_object(o, NULL);
		out_string(o, "from", name[c->move[i].from]);
		out_string(o, "to", name[c->move[i].to]);
		out_real(o, "share", (double)c->move[i].length / SHARES_ALL);
		out_end(o);
	}
	out_end(o);
}

void cmd_moves_text(struct cmd_context *cx, const char *when, const struct share_change *c, const char *const *name)
{
	size_t shown = cx->verbose || c->moves <= MOVES_SHOWN ? c->moves : MOVES_SHOWN;
	struct out *o = cx->out;

	out_text(o, "%s %.2f %% of the hash space moves: the minimum is %.2f %%, the excess %.2f %%\n", when,
		 100 * (double)c->moved / SHARES_ALL, 50 * (double)c->minimum_twice / SHARES_ALL,
		 100 * share_change_excess(c));
	if (!shown)
		return;
	out_table(o, "llr");
	out_head(o, "from");
	out_head(o, "to");
	out_head(o, "share");
	for (size_t i = 0; i < shown; i++) {
		out_cell(o, OUT_PLAIN, "%s", name[c->move[i].from]);
		out_cell(o, OUT_PLAIN, "%s", name[c->move[i].to]);
		out_cell(o, OUT_PLAIN, "%.2f %%", 100 * (double)c->move[i].length / SHARES_ALL);
		out_row(o);
	}
	out_table_end(o);
	if (shown < c->moves)
		out_text(o, "  and %zu smaller ones (-v shows them)\n", c->moves - shown);
}
