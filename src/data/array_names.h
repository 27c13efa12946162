/* array_names.h - which arrays of a file are inputs, targets and weights, as td_open's `features` and `sample_weight`
 * name them. */
#ifndef TDI_DATA_ARRAY_NAMES_H
#define TDI_DATA_ARRAY_NAMES_H

#include "data/source.h"

/* Adds the array `name` as a column of this role. */
typedef td_status tdi_add_array(void *to, tdi_column_role role, const char *name, tdi_error *error);

/* A file of named arrays that fills a source. */
typedef struct tdi_named_arrays {
    const td_open_args *args;
    tdi_source *source;
    bool (*has)(void *of, const char *name);
    tdi_add_array *add;
    void *of; /* argument of `has` and `add` */
} tdi_named_arrays;

/* Adds the inputs, targets and weights that the arguments name, else those with the usual names: x_train and y_train,
 * or x_test and y_test (x_val, y_val), by role; else x and y; else x0, x1, ... and y0, y1, ... Weights of the losses
 * have the names sample_weight_train, sample_weight, ... TD_OK without any column: there is no input. */
td_status tdi_add_arrays(const tdi_named_arrays *arrays, tdi_error *error);
/* The part of the data whose arrays have it behind their names: "train", "test" or "val". */
const char *tdi_arrays_part(const tdi_named_arrays *arrays);

/* Adds the arrays of "a,b" as weights. */
td_status tdi_add_weights(const char *names, tdi_add_array *add, void *to, tdi_error *error);

/* The arrays that the arguments name as weights; NULL: they name none, or no weights are wanted. */
const char *tdi_named_weights(const td_open_args *args);

/* The features with the named weights, which may be NULL, behind them as w=a, or w0=a,w1=b; the caller frees them.
 * NULL: there is no memory. */
char *tdi_features_and_weights(const char *features, const char *weights);

/* The arrays or files that nobody uses, gathered one by one, and the note that names the first of them. */
typedef struct tdi_unused {
    int count, named;
    bool more; /* there may be others */
    char names[600];
} tdi_unused;
void tdi_unused_add(tdi_unused *unused, const char *name);
/* `what` is "arrays", `advice` ends the sentence in brackets. */
void tdi_note_unused(tdi_source *source, const tdi_unused *unused, const char *what, const char *advice);

/* Gathers an array that is no column of the source, unless it is as it should be: it is of another part (x_test beside
 * x_train), or it is a target or weight and none is wanted, or the arguments name it. */
void tdi_unused_array(const tdi_named_arrays *arrays, const char *name, tdi_unused *unused);
void tdi_note_unused_arrays(tdi_source *source, const tdi_unused *unused);

#endif
