// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Many questions at once: --from LIST. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

int cmd_from(struct cmd_context *cx, const char *list, cmd_answer answer, void *data)
{
	bool standard = !strcmp(list, "-");
	FILE *f = standard ? stdin : fopen(list, "re");
	const char *name = standard ? "standard input" : list;
	int status = EXIT_DONE, one = EXIT_DONE;
	unsigned long number = 0;
	size_t size = 0;
	ssize_t length;
	char *line = NULL, *where;

	if (!f) {
		diag_error(&cx->diag, "from", list, "%s", strerror(errno));
		return EXIT_BAD;
	}
	while (one != EXIT_FAILED && (length = getline(&line, &size, f)) >= 0) {
		number++;
		if (length && line[length - 1] == '\n')
			length--;
		if (length && line[length - 1] == '\r')
			length--;
		line[length] = '\0';
		where = xasprintf("%s:%lu", name, number);
		one = answer(data, line, (size_t)length, where);
		free(where);
		if (one)
			status = one;
	}
	if (ferror(f)) {
		diag_error(&cx->diag, "from", list, "cannot be read: %s", strerror(errno));
		status = EXIT_FAILED;
	}
	free(line);
	if (!standard)
		fclose(f);
	/* Also where the list was empty: JSON lines, of which there are none. */
	out_flush_line(cx->out);
	return status;
}
