/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What commands say: text for people, or one JSON value for programs, behind one interface. Fields go to the JSON value
 * and are ignored for text; out_text goes to standard output and is ignored for JSON. Only cmd_*.c, main.c and log.c use it.
 */
#ifndef RINGLB_OUT_H
#define RINGLB_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "diag.h"

struct out;

struct out *out_new(bool json, bool quiet);
bool out_is_json(const struct out *o);
/* The root is an object, or an array when out_array comes first with key NULL; inside an array keys are NULL. */
void out_object(struct out *o, const char *key);
void out_array(struct out *o, const char *key);
void out_end(struct out *o);
void out_string(struct out *o, const char *key, const char *value);	/* NULL: null */
void out_integer(struct out *o, const char *key, int64_t value);
void out_real(struct out *o, const char *key, double value);
void out_boolean(struct out *o, const char *key, bool value);
__attribute__((format(printf, 2, 3))) void out_text(struct out *o, const char *format, ...);
/* JSON lines: prints the root value on a line of its own and starts anew. */
void out_flush_line(struct out *o);
/*
 * Ends the output: warnings and errors of d go to standard error as "ringlb: WHERE: message", or into the JSON value as
 * {"errors": [{"code", "message", "where"}], "warnings": [...]}; the latter replaces everything else when d has errors.
 * Returns false when standard output could not be written (full disk, closed pipe), after saying so.
 */
bool out_finish(struct out *o, const struct diag *d);

#endif
