/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <string.h>

#include "config_value.h"

#define LONGEST 64u
#define MAX_SUGGESTIONS 50u /* in one file: with thousands of wrong names of thousands, the search is what takes long */

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Insertions, deletions, replacements, and swaps of neighbours (Damerau-Levenshtein, restricted) from a to b, case apart. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[3][LONGEST + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > LONGEST || m > LONGEST)
		return LONGEST;
	for (size_t j = 0; j <= m; j++)
		row[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned int *is = row[i % 3], *was = row[(i + 2) % 3], *before = row[(i + 1) % 3];

		is[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			is[j] = least(least(was[j], is[j - 1]) + 1, was[j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				is[j] = least(is[j], before[j - 2] + 1);
		}
	}
	return row[n % 3][m];
}

const char *near_name(struct faults *f, const char *text, const char *const *names)
{
	unsigned int best = strlen(text) < 3 ? 2 :
			    strlen(text) < 7 ? 3 :
					       4; /* more mistakes than that are no misspelling */
	const char *found = NULL;

	if (f->suggestions >= MAX_SUGGESTIONS)
		return NULL;
	f->suggestions++;
	for (; *names; names++) {
		unsigned int d = distance(text, *names);

		if (d > 1 && strlen(text) > 2 && !strncmp(*names, text, strlen(text)))
			d = 1; /* cut short: proto for protocol */
		if (d < best && d < strlen(*names) && d < strlen(text)) {
			best = d;
			found = *names;
		}
	}
	return found;
}
