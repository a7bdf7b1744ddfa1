/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What commands say: text for people, or one JSON value for programs, behind one interface. Fields go to the JSON value
 * and are ignored for text; out_text goes to standard output and is ignored for JSON. Only cmd_*.c, main.c, log.c and
 * report_*.c use it, the last also to make JSON for others than standard output.
 */
#ifndef RINGLB_OUT_H
#define RINGLB_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "diag.h"

struct out;

/* quiet: no text and no warnings; errors and JSON stay. */
struct out *out_new(bool json, bool quiet);
void out_free(struct out *o);
bool out_is_json(const struct out *o);

/* The root is an object, or an array when out_array comes first with key NULL; inside an array keys are NULL. */
void out_object(struct out *o, const char *key);
void out_array(struct out *o, const char *key);
void out_end(struct out *o);
void out_string(struct out *o, const char *key, const char *value); /* NULL: null */
void out_integer(struct out *o, const char *key, int64_t value);
void out_real(struct out *o, const char *key, double value);
void out_boolean(struct out *o, const char *key, bool value);

__attribute__((format(printf, 2, 3))) void out_text(struct out *o, const char *format, ...);
/* Colour, on a terminal without NO_COLOR; else nothing. */
enum out_style { OUT_PLAIN, OUT_HEAD, OUT_GOOD, OUT_WARN, OUT_BAD };
/*
 * A table for people: aligns names one letter a column, 'l' left or 'r' right. Cells follow row by row, and a row that
 * ends early has empty cells. Columns in which no cell has text are left out, together with their heads.
 */
void out_table(struct out *o, const char *aligns);
__attribute__((format(printf, 2, 3))) void out_head(struct out *o, const char *format, ...);
__attribute__((format(printf, 3, 4))) void out_cell(struct out *o, enum out_style style, const char *format, ...);
void out_row(struct out *o);       /* ends a row */
void out_table_end(struct out *o); /* prints it */

/* A time in words: "45 s", "11 m", "3 h". Rounded up, so that what is to pass has passed then. */
#define OUT_SECONDS_TEXT 24
const char *out_seconds_text(uint32_t seconds, char buf[OUT_SECONDS_TEXT]);

/* What was said so far, as a JSON value in one line, to be freed; what follows starts anew. NULL where it is not JSON. */
char *out_take(struct out *o);
/* Makes a value, of which the caller keeps a reference, the root value; for text nothing. */
void out_json(struct out *o, json_t *value);
/* Text goes into memory until out_captured, which hands it over, to be freed; NULL where it was not captured. */
void out_capture(struct out *o);
char *out_captured(struct out *o);
/* Of what goes on for long: writes out what was said so far. False: nobody reads it; out_finish says why. */
bool out_flush(struct out *o);
/* JSON lines: prints the root value on a line of its own and starts anew. */
void out_flush_line(struct out *o);
/*
 * Ends the output: warnings and errors of d go to standard error as "ringlb: WHERE: message", or into the JSON value as
 * {"errors": [{"code", "message", "where"}], "warnings": [...]}; the latter replaces everything else when d has errors
 * (among JSON lines it is the last one).
 * Returns false when standard output could not be written, after saying so; of a pipe that was closed nothing is said.
 */
bool out_finish(struct out *o, const struct diag *d);

#endif
