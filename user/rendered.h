/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Configurations that were written by the program: nobody sees their text, so no message may speak of its lines. */
#ifndef RINGLB_RENDERED_H
#define RINGLB_RENDERED_H

#include "config.h"
#include "diag.h"

/*
 * A copy by way of text and parser, so that the rules of the file hold for it. Messages name pools, backends and services
 * instead of places. The key is taken as it is: its file is not read again. NULL with errors.
 */
struct config *rendered_copy(const struct config *c, struct diag *d);
/* A message about c's text as one about c; owned by the caller. */
char *rendered_message(const struct config *c, const char *message);
/* Adds the warnings of `after` that `before` does not have: what a change brought about. */
void rendered_new_warnings(const struct diag *before, const struct diag *after, struct diag *d);
/* Adds the errors of from. */
void rendered_errors(const struct diag *from, struct diag *d);

#endif
