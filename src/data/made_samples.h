/* made_samples.h - a source whose samples are made whole: all columns that a pass gathers by one call, though they are
 * gathered one by one. What the first that is gathered leaves is kept until the others are. */
#ifndef TDI_DATA_MADE_SAMPLES_H
#define TDI_DATA_MADE_SAMPLES_H

#include <pthread.h>

#include "base/vec.h"
#include "data/decoded_items.h"

typedef struct tdi_whole tdi_whole;

struct tdi_whole {
    tdi_items items;
    /* Writes column i of sample `row` to to[i], packed, in its own dtype, where that is not NULL; called by several
     * threads at once. */
    td_status (*make)(tdi_whole *whole, int64_t row, void *const *to, tdi_error *error);
    int columns;                       /* that `make` makes: the source's first */
    size_t begin[TDI_MAX_COLUMNS + 1]; /* of each of them within a sample that is kept, in bytes; then its size */
    atomic_int wanted;                 /* of them, those that a pass gathers; 0: none is under way */
    pthread_mutex_t lock;
    tdi_vec(struct tdi_kept) kept; /* the oldest first */
};

/* Part of a sample that is still to be gathered. */
struct tdi_kept {
    int64_t row;
    unsigned columns; /* a bit for each */
    char *sample;
};

/* Makes one ready whose source is filled but for what follows from its samples being made; it has no columns. */
void tdi_whole_init(tdi_whole *whole);
/* Adds a column behind the others, inputs before targets; `function` is named in the refusal of one that cannot be. */
td_status tdi_whole_add(tdi_whole *whole, const char *function, bool y, const td_column *column, tdi_error *error);
/* The same for a list that ends as TD_COLUMNS does; NULL is accepted. */
td_status tdi_whole_add_list(tdi_whole *whole, const char *function, bool y, const td_column *list, tdi_error *error);

size_t tdi_whole_bytes(const tdi_whole *whole, int column);
/* Where the columns of a sample of begin[columns] bytes are. */
void tdi_whole_places(const tdi_whole *whole, char *sample, void **places);

/* Brackets a pass. */
void tdi_whole_begin(tdi_whole *whole, const tdi_source_pass *pass);
void tdi_whole_end(tdi_whole *whole);
void tdi_whole_release(tdi_whole *whole); /* but for itself */

#endif
