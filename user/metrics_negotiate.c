// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "metrics.h"

/* The value of parameter `name` in ";a=1; b=2", or NULL; *length is set with it. */
static const char *parameter(const char *text, size_t size, const char *name, size_t *length)
{
	size_t wanted = strlen(name);

	for (const char *p = text, *end = text + size; p && p < end;) {
		const char *next = memchr(p, ';', (size_t)(end - p)), *stop = next ? next : end;

		while (p < stop && (*p == ' ' || *p == '\t'))
			p++;
		if ((size_t)(stop - p) > wanted && !strncasecmp(p, name, wanted) && p[wanted] == '=') {
			*length = (size_t)(stop - p) - wanted - 1;
			return p + wanted + 1;
		}
		p = next ? next + 1 : NULL;
	}
	return NULL;
}

static double quality(const char *parameters, size_t size)
{
	char number[8] = "";
	size_t length;
	const char *q = parameter(parameters, size, "q", &length);

	if (!q)
		return 1;
	memcpy(number, q, length < sizeof(number) ? length : sizeof(number) - 1);
	return strtod(number, NULL);
}

static bool has_version(const char *parameters, size_t size, const char *version)
{
	size_t length;
	const char *v = parameter(parameters, size, "version", &length);

	while (v && length && (v[length - 1] == ' ' || v[length - 1] == '"'))
		length--;
	if (v && length && *v == '"') {
		v++;
		length--;
	}
	return !v || (length == strlen(version) && !strncmp(v, version, length));
}

static bool is_type(const char *range, size_t size, const char *type)
{
	return size == strlen(type) && !strncasecmp(range, type, size);
}

enum metrics_format metrics_negotiate(const char *accept)
{
	double open = 0, text = 0;

	while (accept && *accept) {
		size_t size = strcspn(accept, ","), type;
		const char *range = accept;

		accept += size + (accept[size] == ',');
		while (size && (*range == ' ' || *range == '\t')) {
			range++;
			size--;
		}
		for (type = 0; type < size && range[type] != ';' && range[type] != ' '; type++)
			;
		if (is_type(range, type, "application/openmetrics-text")) {
			if (has_version(range + type, size - type, "1.0.0") &&
			    quality(range + type, size - type) > open)
				open = quality(range + type, size - type);
		} else if (is_type(range, type, "text/plain") || is_type(range, type, "text/*")) {
			if (quality(range + type, size - type) > text)
				text = quality(range + type, size - type);
		}
	}
	return open > 0 && open >= text ? METRICS_OPENMETRICS : METRICS_TEXT;
}
