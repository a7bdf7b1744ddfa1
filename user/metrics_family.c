// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_family.h"

#include <stdarg.h>
#include <stdlib.h>

static const char *const types[] = { "counter", "gauge", "info", "histogram" };

/* Text's counters are named with their suffix from the first line on, and it knows no info. */
static const char *family_suffix(const struct metrics_writer *w)
{
	if (w->format == METRICS_OPENMETRICS)
		return "";
	return w->type == METRICS_COUNTER ? "_total" : w->type == METRICS_INFO ? "_info" : "";
}

static const char *sample_suffix(const struct metrics_writer *w)
{
	return w->type == METRICS_COUNTER ? "_total" : w->type == METRICS_INFO ? "_info" : "";
}

void metrics_begin(struct metrics_writer *w, const char *name, enum metrics_type type, const char *unit,
		   const char *help)
{
	const char *type_name = types[type];

	w->name = name;
	w->type = type;
	w->samples = json_object();
	if (w->format == METRICS_TEXT && type == METRICS_INFO)
		type_name = "gauge";
	/* kept with the samples, so that a family without any leaves no trace */
	json_object_set_new(w->samples, "",
			    json_sprintf("# TYPE %s%s %s\n%s%s%s%s%s# HELP %s%s %s\n", name, family_suffix(w),
					 type_name, w->format == METRICS_OPENMETRICS && unit ? "# UNIT " : "",
					 w->format == METRICS_OPENMETRICS && unit ? name : "",
					 w->format == METRICS_OPENMETRICS && unit ? " " : "",
					 w->format == METRICS_OPENMETRICS && unit ? unit : "",
					 w->format == METRICS_OPENMETRICS && unit ? "\n" : "", name, family_suffix(w),
					 help));
}

static void write_value(FILE *to, const char *value)
{
	for (const char *c = value; *c; c++)
		if (*c == '\n')
			fputs("\\n", to);
		else if (*c == '\\' || *c == '"')
			fprintf(to, "\\%c", *c);
		else
			fputc(*c, to);
}

static char *key_of(const char *suffix, va_list labels)
{
	char *key = NULL;
	size_t size;
	FILE *to = open_memstream(&key, &size);
	const char *name, *before = "{";

	if (!to)
		return NULL;
	fputs(suffix, to);
	while ((name = va_arg(labels, const char *))) {
		const char *value = va_arg(labels, const char *);

		if (!value)
			continue;
		fprintf(to, "%s%s=\"", before, name);
		write_value(to, value);
		fputc('"', to);
		before = ",";
	}
	if (*before == ',')
		fputc('}', to);
	fputc(' ', to);
	fclose(to);
	return key;
}

static void add(struct metrics_writer *w, const char *key, const json_t *value)
{
	json_t *before = key ? json_object_get(w->samples, key) : NULL;

	if (!key)
		return;
	if (json_is_boolean(value))
		json_object_set_new(w->samples, key, json_integer(json_is_true(value)));
	else if (json_is_integer(before) && json_is_integer(value))
		json_integer_set(before, json_integer_value(before) + json_integer_value(value));
	else if (before)
		json_object_set_new(w->samples, key, json_real(json_number_value(before) + json_number_value(value)));
	else
		json_object_set_new(w->samples, key, json_copy((json_t *)value));
}

void metrics_sample(struct metrics_writer *w, const json_t *value, ...)
{
	va_list labels;
	char *key;

	if (!json_is_number(value) && !json_is_boolean(value))
		return;
	va_start(labels, value);
	key = key_of(sample_suffix(w), labels);
	va_end(labels);
	add(w, key, value);
	free(key);
}

static void add_new(struct metrics_writer *w, json_t *value, va_list labels)
{
	char *key = key_of(sample_suffix(w), labels);

	add(w, key, value);
	json_decref(value);
	free(key);
}

void metrics_integer(struct metrics_writer *w, json_int_t value, ...)
{
	va_list labels;

	va_start(labels, value);
	add_new(w, json_integer(value), labels);
	va_end(labels);
}

void metrics_real(struct metrics_writer *w, double value, ...)
{
	va_list labels;

	va_start(labels, value);
	add_new(w, json_real(value), labels);
	va_end(labels);
}

void metrics_histogram(struct metrics_writer *w, const json_t *bounds, const json_t *counts, double sum)
{
	json_int_t total = 0;
	char key[64];

	for (size_t i = 0; i < json_array_size(counts); i++) {
		total += json_integer_value(json_array_get(counts, i));
		if (i < json_array_size(bounds))
			snprintf(key, sizeof(key), "_bucket{le=\"%.15g\"} ",
				 json_number_value(json_array_get(bounds, i)));
		else
			snprintf(key, sizeof(key), "_bucket{le=\"+Inf\"} ");
		json_object_set_new(w->samples, key, json_integer(total));
	}
	json_object_set_new(w->samples, "_sum ", json_real(sum));
	json_object_set_new(w->samples, "_count ", json_integer(total));
}

void metrics_end(struct metrics_writer *w)
{
	const char *key;
	json_t *value;

	if (json_object_size(w->samples) > 1)
		json_object_foreach(w->samples, key, value)
		{
			if (!*key)
				fputs(json_string_value(value), w->to);
			else if (json_is_integer(value))
				fprintf(w->to, "%s%s%" JSON_INTEGER_FORMAT "\n", w->name, key,
					json_integer_value(value));
			else
				fprintf(w->to, "%s%s%.15g\n", w->name, key, json_real_value(value));
		}
	json_decref(w->samples);
	w->samples = NULL;
}
