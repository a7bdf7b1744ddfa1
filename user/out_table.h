/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A grid of text cells, printed in aligned columns. Used by out.c only, which documents it. */
#ifndef RINGLB_OUT_TABLE_H
#define RINGLB_OUT_TABLE_H

#include <stdarg.h>
#include <stdio.h>

#include "out.h"

struct out_grid;

struct out_grid *out_grid_new(const char *aligns);
void out_grid_head(struct out_grid *g, const char *format, va_list ap);
void out_grid_cell(struct out_grid *g, enum out_style style, const char *format, va_list ap);
void out_grid_row(struct out_grid *g);
void out_grid_print(const struct out_grid *g, FILE *to, bool color);
void out_grid_free(struct out_grid *g);

#endif
