/* array_names.h - which arrays of a file are inputs, targets and weights, as td_open's `features` and `sample_weight`
 * name them. */
#ifndef TDI_DATA_ARRAY_NAMES_H
#define TDI_DATA_ARRAY_NAMES_H

#include "data/source.h"

/* Adds the array `name` as a column of this role. */
typedef td_status tdi_add_array(void *to, tdi_column_role role, const char *name, tdi_error *error);

/* Adds the arrays of "x0=a,x1=b,y=c": inputs, of which there must be one, and then targets, which are left out unless
 * `targets`. */
td_status tdi_add_features(const char *features, bool targets, tdi_add_array *add, void *to, tdi_error *error);
/* Adds the arrays of "a,b" as weights. */
td_status tdi_add_weights(const char *names, tdi_add_array *add, void *to, tdi_error *error);

/* The arrays that the arguments name as weights; NULL: they name none, or no weights are wanted. */
const char *tdi_named_weights(const td_open_args *args);
/* Whether an array may be taken as weights by its own name. */
bool tdi_finds_weights(const td_open_args *args);

/* The features with the named weights, which may be NULL, behind them as w=a, or w0=a,w1=b; the caller frees them.
 * NULL: there is no memory. */
char *tdi_features_and_weights(const char *features, const char *weights);

/* Notes in the source that its array `name` weighs the losses, which nobody has asked for. */
void tdi_note_weights(tdi_source *source, const char *name);

/* The arrays that nobody uses, gathered one by one, and the note that names them. */
typedef struct tdi_unused_arrays {
    int count;
    char names[600]; /* with commas, as many as fit */
} tdi_unused_arrays;
void tdi_unused_array(tdi_unused_arrays *unused, const char *name);
void tdi_note_unused(tdi_source *source, const tdi_unused_arrays *unused);

#endif
