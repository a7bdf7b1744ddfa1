/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A change of one backend: made to a configuration, noted as a live edit, and told to the file. */
#ifndef RINGLB_BACKEND_EDIT_H
#define RINGLB_BACKEND_EDIT_H

#include "state.h"
#include "yaml_edit.h"

enum backend_verb { BACKEND_ADD, BACKEND_DELETE, BACKEND_SET };

struct backend_edit {
	enum backend_verb verb;
	const char *pool, *name, *zone, *identity; /* the last two NULL: not given */
	struct address address;                    /* to add */
	uint32_t weight;                           /* 0: not given */
	int state;                                 /* enum config_state; -1: not given */
	uint32_t points;                           /* once made: exact ones, scaled with the weight; 0: none */
};

/* The configuration with the edit made, held against all rules of the file; takes c. NULL with errors in d. */
struct config *backend_edit_make(struct backend_edit *e, struct config *c, struct diag *d);
/* Notes it in the list of live edits, as far as it changes what was. file: what the file says, NULL: not known. */
void backend_edit_note(const struct backend_edit *e, const struct config *was, const struct config *file,
		       struct state *next);
/* Takes it off that list: the file has it. */
void backend_edit_saved(const struct backend_edit *e, struct state *next);
/* The same for the file, once it is made; returns how many of them. added has to live as long. */
#define BACKEND_FILE_EDITS 3
size_t backend_edit_of_file(const struct backend_edit *e, struct config_backend *added,
			    struct yaml_edit out[BACKEND_FILE_EDITS]);
/* What the file says about the backend where that is something else, NULL where it says the same. Owned by the caller. */
char *backend_edit_file_says(const struct backend_edit *e, const struct config *file);

#endif
