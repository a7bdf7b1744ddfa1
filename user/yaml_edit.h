/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changes the backends in a configuration file and leaves the rest of it as it is, byte for byte: comments, order,
 * layout, line ends. What comes out is read again and must mean exactly what was wanted; where it does not, or where
 * the text is written in a way that is not understood, nothing is written and the message says why.
 */
#ifndef RINGLB_YAML_EDIT_H
#define RINGLB_YAML_EDIT_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "diag.h"

enum yaml_edit_kind { YAML_EDIT_SET, YAML_EDIT_UNSET, YAML_EDIT_ADD, YAML_EDIT_DELETE };
enum yaml_edit_key { YAML_EDIT_WEIGHT, YAML_EDIT_POINTS, YAML_EDIT_STATE };

/*
 * One change. What the file says already is no change: nothing is written for it. Any number in one call, in order; a
 * row of SETs costs one pass, and no key of a backend may be set twice in it.
 */
struct yaml_edit {
	enum yaml_edit_kind kind;
	const char *pool, *backend;       /* names */
	enum yaml_edit_key key;           /* SET, UNSET */
	uint32_t value;                   /* SET: the number, or an enum config_state */
	const struct config_backend *add; /* ADD: a backend of that name, put after the pool's last, written like it */
};

/*
 * The text after all the edits, NUL-terminated, owned by the caller; or NULL with a message in d. file is the name in
 * messages, and where a {file: ...} hash key is looked for.
 */
char *yaml_edit_text(const char *file, const char *text, size_t length, const struct yaml_edit *edit, size_t edits,
		     size_t *out_length, struct diag *d);
/*
 * The same to a file, or to the file that a symbolic link leads to: replaced at once by a new one with the same owner
 * and mode. 0, or -errno with a message in d; the file is then as it was.
 */
int yaml_edit_file(const char *file, const struct yaml_edit *edit, size_t edits, struct diag *d);
/* Whether that could be done, as far as can be told without writing. 0, or -errno with a message in d. */
int yaml_edit_rehearse(const char *file, const struct yaml_edit *edit, size_t edits, struct diag *d);

#endif
