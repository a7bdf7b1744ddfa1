/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any text as a configuration: it is taken, or refused with a fault. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct diag d = { 0 };
	char *text = malloc(size ? size : 1); /* no byte more, so that a read behind the end is seen */
	struct config *c;

	if (!text)
		abort();
	memcpy(text, data, size);
	c = config_parse("fuzz.yaml", text, size, &d);
	if (!c && !d.count)
		abort();
	config_free(c);
	diag_free(&d);
	free(text);
	return 0;
}
