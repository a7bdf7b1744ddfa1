// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "entries.h"
#include "page_private.h"

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static double number_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void escape(FILE *to, const char *text)
{
	for (const char *c = text; *c; c++)
		switch (*c) {
		case '<':
			fputs("&lt;", to);
			break;
		case '>':
			fputs("&gt;", to);
			break;
		case '&':
			fputs("&amp;", to);
			break;
		case '"':
			fputs("&quot;", to);
			break;
		default:
			fputc(*c, to);
		}
}

/* heads: ended by NULL. */
static void table(FILE *to, const char *caption, ...)
{
	const char *head;
	va_list heads;

	fputs("<div class=\"wide\"><table><caption>", to);
	escape(to, caption);
	fputs("</caption><thead><tr>", to);
	va_start(heads, caption);
	while ((head = va_arg(heads, const char *)))
		fprintf(to, "<th scope=\"col\">%s</th>", head);
	va_end(heads);
	fputs("</tr></thead><tbody>\n", to);
}

static void table_end(FILE *to)
{
	fputs("</tbody></table></div>\n", to);
}

static void head_cell(FILE *to, const char *text)
{
	fputs("<tr><th scope=\"row\">", to);
	escape(to, text);
	fputs("</th>", to);
}

static void cell(FILE *to, const char *text)
{
	fputs("<td>", to);
	escape(to, text);
	fputs("</td>", to);
}

/* digits behind the point; empty where it is no number. */
static void number_cell(FILE *to, const json_t *value, double factor, int digits, const char *unit)
{
	fputs("<td class=\"n\">", to);
	if (json_is_number(value))
		fprintf(to, "%.*f%s", digits, json_number_value(value) * factor, unit);
	fputs("</td>", to);
}

static void row_end(FILE *to)
{
	fputs("</tr>\n", to);
}

static void summary(FILE *to, const json_t *s)
{
	const json_t *show = json_object_get(s, "show");
	const json_t *drift = json_object_get(show, "drift");
	json_t *line;
	size_t i;

	fputs("<p>Instance <b>", to);
	escape(to, text_of(s, "instance"));
	if (!show) {
		fputs("</b>: nothing is attached.</p>\n", to);
		return;
	}
	fprintf(to, "</b>: generation %.0f, revision %.0f, digest <code>", number_of(show, "generation"),
		number_of(show, "revision"));
	escape(to, text_of(show, "digest"));
	fputs("</code>. As of ", to);
	escape(to, text_of(s, "time"));
	fputs(".</p>\n", to);
	if (!json_array_size(drift))
		return;
	fputs("<h2>Drift between what runs and its file</h2><ul>\n", to);
	json_array_foreach(drift, i, line)
	{
		fputs("<li>", to);
		escape(to, json_string_value(line) ? json_string_value(line) : "");
		fputs("</li>\n", to);
	}
	fputs("</ul>\n", to);
}

/* What is known of a backend or service elsewhere in the snapshot: indexes of these lists. */
struct known {
	json_t *stats, *rates, *health;
};

static struct known known_of(const json_t *s, const char *what)
{
	return (struct known){
		.stats = entries_index(json_object_get(json_object_get(s, "stats"), what)),
		.rates = entries_index(json_object_get(json_object_get(s, "rates"), what)),
		.health = entries_index(json_object_get(json_object_get(s, "health"), what)),
	};
}

static void known_free(struct known *k)
{
	json_decref(k->stats);
	json_decref(k->rates);
	json_decref(k->health);
}

/* Lists of services know their names alone. */
static const json_t *named(const json_t *index, const json_t *service)
{
	json_t *name = json_object();
	const json_t *found;

	json_object_set(name, "name", json_object_get(service, "name"));
	found = entries_find(index, NULL, name);
	json_decref(name);
	return found;
}

static void services(FILE *to, const json_t *s)
{
	const json_t *list = json_object_get(json_object_get(s, "show"), "services");
	struct known known = known_of(s, "services");
	json_t *one;
	size_t i;

	table(to, "Services", "service", "address", "port", "protocol", "pool", "forward", "ready", "why", "packets",
	      "packets/s", NULL);
	json_array_foreach(list, i, one)
	{
		const json_t *ready = json_object_get(json_object_get(s, "ready"), text_of(one, "name"));
		const json_t *port = json_object_get(one, "port");

		head_cell(to, text_of(one, "name"));
		cell(to, text_of(one, "address"));
		if (json_is_integer(port))
			number_cell(to, port, 1, 0, "");
		else
			cell(to, "any");
		cell(to, text_of(one, "protocol"));
		cell(to, text_of(one, "pool"));
		cell(to, text_of(one, "forward"));
		cell(to, json_is_true(json_object_get(one, "ready")) ? "yes" : "NO");
		cell(to, text_of(ready, "reason"));
		number_cell(to, json_object_get(named(known.stats, one), "packets"), 1, 0, "");
		number_cell(to, json_object_get(named(known.rates, one), "packets"), 1, 1, "");
		row_end(to);
	}
	table_end(to);
	known_free(&known);
}

static void backend(FILE *to, const struct known *known, const char *pool, const json_t *b, double weights)
{
	const json_t *stats = entries_find(known->stats, pool, b);
	const json_t *rates = entries_find(known->rates, pool, b);
	const json_t *health = entries_find(known->health, pool, b);
	bool takes = number_of(b, "points") > 0;

	head_cell(to, text_of(b, "name"));
	cell(to, text_of(b, "address"));
	cell(to, text_of(b, "state"));
	cell(to, text_of(b, "health"));
	cell(to, text_of(health, "reason"));
	number_cell(to, json_object_get(b, "weight"), 1, 0, "");
	number_cell(to, json_object_get(b, "share"), 100, 2, " %");
	if (takes && weights > 0)
		fprintf(to, "<td class=\"n\">%.2f %%</td>", 100 * number_of(b, "weight") / weights);
	else
		cell(to, "");
	number_cell(to, json_object_get(stats, "packets"), 1, 0, "");
	number_cell(to, json_object_get(rates, "packets"), 1, 1, "");
	number_cell(to, json_object_get(stats, "flows"), 1, 0, "");
	number_cell(to, json_object_get(b, "last_old_packet"), 1, 0, " s ago");
	number_cell(to, json_object_get(b, "safe_to_remove_in"), 1, 0, " s");
	row_end(to);
}

static void pool(FILE *to, const struct known *known, const json_t *p)
{
	const json_t *list = json_object_get(p, "backends");
	double weights = 0;
	char caption[160], points[32] = "";
	json_t *b;
	size_t i;

	json_array_foreach(list, i, b) weights += number_of(b, "points") > 0 ? number_of(b, "weight") : 0;
	if (!strcmp(text_of(p, "placement"), "ring"))
		snprintf(points, sizeof(points), ", %.0f points", number_of(p, "points"));
	snprintf(caption, sizeof(caption), "Pool %.60s: %.20s%s, %.2f %% still moving", text_of(p, "name"),
		 text_of(p, "placement"), points, 100 * number_of(p, "moved"));
	table(to, caption, "backend", "address", "state", "health", "last check", "weight", "share", "by weight",
	      "packets", "packets/s", "flows", "last old packet", "safe to remove in", NULL);
	json_array_foreach(list, i, b) backend(to, known, text_of(p, "name"), b, weights);
	table_end(to);
}

static void verdicts(FILE *to, const json_t *s)
{
	json_t *list = json_object_get(json_object_get(s, "stats"), "verdicts"), *count;
	const json_t *meanings = json_object_get(json_object_get(s, "meanings"), "verdicts");
	const char *name;

	table(to, "Packets by verdict", "verdict", "packets", "meaning", "what to do", NULL);
	json_object_foreach(list, name, count)
	{
		const json_t *m = json_object_get(meanings, name);

		head_cell(to, name);
		number_cell(to, count, 1, 0, "");
		cell(to, text_of(m, "meaning"));
		cell(to, json_number_value(count) > 0 ? text_of(m, "remedy") : "");
		row_end(to);
	}
	table_end(to);
}

static void counts(FILE *to, const char *caption, json_t *list, const json_t *meanings)
{
	const char *name;
	json_t *count;

	table(to, caption, "", "count", "meaning", NULL);
	json_object_foreach(list, name, count)
	{
		head_cell(to, name);
		number_cell(to, count, 1, 0, "");
		cell(to, text_of(json_object_get(meanings, name), "meaning"));
		row_end(to);
	}
	table_end(to);
}

static void generations(FILE *to, const json_t *s)
{
	const json_t *list = json_object_get(s, "history");

	table(to, "Generations", "", "generation", "time", "digest", "summary", NULL);
	for (size_t i = json_array_size(list); i > 0; i--) {
		const json_t *g = json_array_get(list, i - 1);

		head_cell(to, json_is_true(json_object_get(g, "active")) ? "runs" : "");
		number_cell(to, json_object_get(g, "generation"), 1, 0, "");
		cell(to, text_of(g, "time"));
		cell(to, text_of(g, "digest"));
		cell(to, text_of(g, "summary"));
		row_end(to);
	}
	table_end(to);
}

void page_tables(FILE *to, const json_t *snapshot)
{
	const json_t *show = json_object_get(snapshot, "show"), *stats = json_object_get(snapshot, "stats");
	const json_t *meanings = json_object_get(snapshot, "meanings");
	json_t *interface, *p;
	struct known known;
	size_t i;

	summary(to, snapshot);
	if (show) {
		table(to, "Interfaces", "interface", "mode", NULL);
		json_array_foreach(json_object_get(show, "interfaces"), i, interface)
		{
			head_cell(to, text_of(interface, "name"));
			cell(to, text_of(interface, "mode"));
			row_end(to);
		}
		table_end(to);
		services(to, snapshot);
		known = known_of(snapshot, "backends");
		json_array_foreach(json_object_get(show, "pools"), i, p) pool(to, &known, p);
		known_free(&known);
	}
	if (stats) {
		verdicts(to, snapshot);
		counts(to, "Flow table", json_object_get(stats, "flow_table"), json_object_get(meanings, "flow_table"));
		counts(to, "Flow table: what happened", json_object_get(stats, "flow_events"),
		       json_object_get(meanings, "flow_events"));
	}
	generations(to, snapshot);
}

void page_title(FILE *to, const json_t *snapshot)
{
	escape(to, text_of(snapshot, "instance"));
	fputs(" - ringlb", to);
}
