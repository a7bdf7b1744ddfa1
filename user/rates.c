// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rates.h"

#include "entries.h"

static json_int_t count_of(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void copy(json_t *to, const json_t *from, const char *key)
{
	json_t *value = json_object_get(from, key);

	if (value)
		json_object_set(to, key, value);
}

static json_t *rate(const json_t *now, const json_t *before, double seconds)
{
	json_int_t packets = count_of(now, "packets") - count_of(before, "packets");
	json_int_t bytes = count_of(now, "bytes") - count_of(before, "bytes");
	json_t *one;

	if (packets < 0 || bytes < 0)
		return NULL;
	one = json_object();
	copy(one, now, "pool");
	copy(one, now, "name");
	copy(one, now, "address");
	copy(one, now, "identity");
	json_object_set_new(one, "packets", json_real((double)packets / seconds));
	json_object_set_new(one, "bytes", json_real((double)bytes / seconds));
	return one;
}

static json_t *rates_of(const json_t *now, const json_t *before, double seconds)
{
	json_t *index = entries_index(before), *rates = json_array(), *one;
	size_t i;

	json_array_foreach(now, i, one)
	{
		const json_t *was = entries_find(index, NULL, one);
		json_t *r = was ? rate(one, was, seconds) : NULL;

		if (r)
			json_array_append_new(rates, r);
	}
	json_decref(index);
	return rates;
}

/* Of an object of counters. */
static json_t *rates_of_counters(const json_t *now, const json_t *before, double seconds)
{
	json_t *rates = json_object(), *value;
	const char *name;

	json_object_foreach((json_t *)now, name, value)
	{
		json_int_t more = json_integer_value(value) - count_of(before, name);

		if (more >= 0 && json_object_get(before, name))
			json_object_set_new(rates, name, json_real((double)more / seconds));
	}
	return rates;
}

json_t *rates_between(const json_t *now, const json_t *before, double seconds)
{
	json_t *rates = json_object();

	json_object_set_new(rates, "seconds", json_real(seconds));
	json_object_set_new(rates, "services",
			    rates_of(json_object_get(now, "services"), json_object_get(before, "services"), seconds));
	json_object_set_new(rates, "backends",
			    rates_of(json_object_get(now, "backends"), json_object_get(before, "backends"), seconds));
	json_object_set_new(rates, "verdicts",
			    rates_of_counters(json_object_get(now, "verdicts"), json_object_get(before, "verdicts"),
					      seconds));
	return rates;
}
