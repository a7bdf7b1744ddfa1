/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "diag.h"

static struct figure **all;
static size_t count;

struct spread {
	double median, min, max;
};

struct figure *figure_new(const char *unit, const char *format, ...)
{
	struct figure *f = xcalloc(1, sizeof(*f));
	va_list args;

	va_start(args, format);
	vsnprintf(f->name, sizeof(f->name), format, args);
	va_end(args);
	f->unit = unit;
	all = xreallocarray(all, count + 1, sizeof(*all));
	all[count++] = f;
	return f;
}

void figure_add(struct figure *f, double value)
{
	f->sample = xreallocarray(f->sample, f->samples + 1, sizeof(*f->sample));
	f->sample[f->samples++] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the samples: nobody needs their order. */
static struct spread raw_spread(const struct figure *f)
{
	const double *v = f->sample;
	const size_t n = f->samples;

	if (!n)
		return (struct spread){ 0 };
	qsort(f->sample, n, sizeof(*f->sample), by_value);
	return (struct spread){
		.median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2,
		.min = v[0],
		.max = v[n - 1],
	};
}

static double cost_of_frame(const struct figure *f)
{
	double cost = f->frame ? raw_spread(f->frame).median : 0;

	return f->frame_floor ? cost - raw_spread(f->frame_floor).median : cost;
}

static struct spread spread(const struct figure *f)
{
	const double frame = cost_of_frame(f);
	struct spread s = raw_spread(f);

	return (struct spread){ .median = s.median - frame, .min = s.min - frame, .max = s.max - frame };
}

static double multiple(const struct figure *f, const struct figure *of)
{
	return spread(f).median / spread(of).median;
}

static void put_real(json_t *o, const char *key, double value)
{
	json_object_set_new(o, key, json_real(round(value * 1000) / 1000));
}

static json_t *figure_json(const struct figure *f)
{
	const struct spread s = spread(f);
	json_t *o = json_object();

	json_object_set_new(o, "name", json_string(f->name));
	put_real(o, "value", s.median);
	json_object_set_new(o, "unit", json_string(f->unit));
	put_real(o, "min", s.min);
	put_real(o, "max", s.max);
	put_real(o, "measured", raw_spread(f).median);
	json_object_set_new(o, "x_empty", json_null());
	if (f->empty)
		put_real(o, "x_empty", multiple(f, f->empty));
	if (f->flat)
		put_real(o, "x_flat", multiple(f, f->flat));
	if (f->sort)
		put_real(o, "x_sort", multiple(f, f->sort));
	if (f->build)
		put_real(o, "x_build", multiple(f, f->build));
	return o;
}

void figures_json(FILE *out)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		if (all[i]->samples)
			json_array_append_new(list, figure_json(all[i]));
	if (json_dumpf(list, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) || fputc('\n', out) == EOF || fflush(out))
		bench_die(errno, "writing JSON");
	json_decref(list);
}

void figures_free(void)
{
	for (size_t i = 0; i < count; i++) {
		free(all[i]->sample);
		free(all[i]);
	}
	free(all);
	all = NULL;
	count = 0;
}
