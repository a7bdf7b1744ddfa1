// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How fast what is counted grows, as tables for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "datapath.h"
#include "entries.h"

#define NUMBER_TEXT 24

struct entry {
	const json_t *counted, *rate; /* rate: NULL: there is none yet */
	size_t place;                 /* in the list */
};

/* "0", "9.3", "482", "1.23 k": three digits. */
static const char *short_number(double n, char text[NUMBER_TEXT])
{
	static const char *const step[] = { "", " k", " M", " G", " T", " P", " E" };
	size_t i = 0;

	while (n >= 999.5 && i + 1 < sizeof(step) / sizeof(*step)) {
		n /= 1000;
		i++;
	}
	snprintf(text, NUMBER_TEXT, "%.*f%s", n >= 99.95 || n == 0 ? 0 : n >= 9.995 ? 1 : i ? 2 : 1, n, step[i]);
	return text;
}

static void cell_rate(struct out *o, enum out_style style, const json_t *value, double times)
{
	char text[NUMBER_TEXT];

	out_cell(o, style, "%s", value ? short_number(times * json_number_value(value), text) : "-");
}

static void cell_integer(struct out *o, enum out_style style, const json_t *from, const char *key)
{
	out_cell(o, style, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(from, key)));
}

static double packets_of(const struct entry *e)
{
	return json_number_value(json_object_get(e->rate, "packets"));
}

static int busiest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (packets_of(x) != packets_of(y))
		return packets_of(x) < packets_of(y) ? 1 : -1;
	return x->place < y->place ? -1 : 1;
}

/* A list with the rates of its entries; only the busiest where there is no place for all. */
static struct entry *entries_of(const json_t *stats, const char *what, size_t places, size_t *count)
{
	const json_t *list = json_object_get(stats, what), *rates = json_object_get(stats, "rates"), *one;
	json_t *index = entries_index(json_object_get(rates, what));
	struct entry *e = xcalloc(json_array_size(list) + 1, sizeof(*e));
	size_t i;

	*count = json_array_size(list);
	json_array_foreach(list, i, one) e[i] = (struct entry){ one, entries_find(index, NULL, one), i };
	if (*count > places)
		qsort(e, *count, sizeof(*e), busiest_first);
	json_decref(index);
	return e;
}

static void heads(struct out *o, const char *aligns, const char *const *head)
{
	out_table(o, aligns);
	for (; *head; head++)
		out_head(o, "%s", *head);
}

static void say_more(struct out *o, size_t count, size_t places, const char *what)
{
	if (count > places)
		out_text(o, "  and %zu more %s\n", count - places, what);
}

static void services(struct out *o, const json_t *stats, size_t places)
{
	static const char *const head[] = { "service", "packets/s", "bit/s", "packets", "flows", NULL };
	size_t count;
	struct entry *e = entries_of(stats, "services", places, &count);

	heads(o, "lrrrr", head);
	for (size_t i = 0; i < count && i < places; i++) {
		out_cell(o, OUT_PLAIN, "%s", json_string_value(json_object_get(e[i].counted, "name")));
		cell_rate(o, OUT_PLAIN, json_object_get(e[i].rate, "packets"), 1);
		cell_rate(o, OUT_PLAIN, json_object_get(e[i].rate, "bytes"), 8);
		cell_integer(o, OUT_PLAIN, e[i].counted, "packets");
		cell_integer(o, OUT_PLAIN, e[i].counted, "flows");
		out_row(o);
	}
	out_table_end(o);
	say_more(o, count, places, "services");
	free(e);
}

/* What is worth a word: that it is down, or takes no new flow. */
static void cell_state(struct out *o, const json_t *backend)
{
	const char *state = json_string_value(json_object_get(backend, "state")),
		   *health = json_string_value(json_object_get(backend, "health"));

	if (strcmp(state, "up") != 0)
		out_cell(o, OUT_WARN, "%s", state);
	else if (!strcmp(health, "down"))
		out_cell(o, OUT_BAD, "down");
	else
		out_cell(o, OUT_PLAIN, "%s", "");
}

static void backends(struct out *o, const json_t *stats, size_t places)
{
	static const char *const head[] = {
		"pool", "backend", "packets/s", "bit/s", "packets", "flows", "state", NULL
	};
	size_t count;
	struct entry *e = entries_of(stats, "backends", places, &count);

	heads(o, "llrrrrl", head);
	for (size_t i = 0; i < count && i < places; i++) {
		out_cell(o, OUT_PLAIN, "%s", json_string_value(json_object_get(e[i].counted, "pool")));
		out_cell(o, OUT_PLAIN, "%s", json_string_value(json_object_get(e[i].counted, "name")));
		cell_rate(o, OUT_PLAIN, json_object_get(e[i].rate, "packets"), 1);
		cell_rate(o, OUT_PLAIN, json_object_get(e[i].rate, "bytes"), 8);
		cell_integer(o, OUT_PLAIN, e[i].counted, "packets");
		cell_integer(o, OUT_PLAIN, e[i].counted, "flows");
		cell_state(o, e[i].counted);
		out_row(o);
	}
	out_table_end(o);
	say_more(o, count, places, "backends");
	free(e);
}

static const struct {
	const char *name, *meaning, *remedy;
} verdict[] = {
#define X(id, name, meaning, remedy) { name, meaning, remedy },
	RINGLB_VERDICTS(X)
#undef X
};

#define VERDICTS (sizeof(verdict) / sizeof(*verdict))

static bool is_counted(const json_t *stats, size_t i)
{
	return json_integer_value(json_object_get(json_object_get(stats, "verdicts"), verdict[i].name)) != 0;
}

/* Those that there were; what is to be done about a bad one while there are more of it. */
static void verdicts(struct out *o, const json_t *stats)
{
	static const char *const head[] = { "verdict", "packets/s", "packets", "meaning", NULL };
	const json_t *rates = json_object_get(json_object_get(stats, "rates"), "verdicts");

	heads(o, "lrrl", head);
	for (size_t i = 0; i < VERDICTS; i++) {
		const json_t *rate = json_object_get(rates, verdict[i].name);
		bool bad = *verdict[i].remedy && json_number_value(rate) > 0;
		enum out_style style = bad ? OUT_WARN : OUT_PLAIN;

		if (!is_counted(stats, i))
			continue;
		out_cell(o, style, "%s", verdict[i].name);
		cell_rate(o, style, rate, 1);
		cell_integer(o, style, json_object_get(stats, "verdicts"), verdict[i].name);
		out_cell(o, OUT_PLAIN, "%s%s%s", verdict[i].meaning, bad ? ": " : "", bad ? verdict[i].remedy : "");
		out_row(o);
	}
	out_table_end(o);
}

static void flow_table(struct out *o, const json_t *stats)
{
	const json_t *table = json_object_get(stats, "flow_table");

	out_text(o,
		 "flow table: %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " used, %" JSON_INTEGER_FORMAT
		 " of them mere openings\n",
		 json_integer_value(json_object_get(table, "used")),
		 json_integer_value(json_object_get(table, "capacity")),
		 json_integer_value(json_object_get(table, "openings")));
}

/* How many services and backends there is place for, beside everything else. */
static void share_out(const json_t *stats, size_t rows, size_t *of_services, size_t *of_backends)
{
	size_t fixed = 9, left,
	       wanted = json_array_size(json_object_get(stats, "services")); /* heads, blanks, flow table */

	for (size_t i = 0; i < VERDICTS; i++)
		fixed += is_counted(stats, i);
	left = rows > fixed + 4 ? rows - fixed : 4;
	*of_services = wanted <= left / 2 ? wanted : left / 2 - 1; /* and the line that says how many more */
	left -= wanted <= left / 2 ? wanted : left / 2;
	wanted = json_array_size(json_object_get(stats, "backends"));
	*of_backends = wanted <= left ? wanted : left - 1;
}

void cmd_stats_text(struct out *o, const json_t *stats, size_t rows)
{
	size_t of_services = SIZE_MAX, of_backends = SIZE_MAX;

	if (rows)
		share_out(stats, rows, &of_services, &of_backends);
	services(o, stats, of_services);
	out_text(o, "\n");
	backends(o, stats, of_backends);
	out_text(o, "\n");
	verdicts(o, stats);
	out_text(o, "\n");
	flow_table(o, stats);
}
