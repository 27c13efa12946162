/* joint_columns.h - a source whose columns are made jointly: one call of a user's function gives all columns of a
 * sample.
 *
 * Columns are gathered one by one, so the first gather of a row makes the whole sample and keeps the other columns
 * until they are gathered too. td_generator's `read` and td_map derive from this. */
#ifndef TDI_DATA_JOINT_COLUMNS_H
#define TDI_DATA_JOINT_COLUMNS_H

#include <pthread.h>

#include "base/vec.h"
#include "data/sample_reader.h"

typedef struct tdi_joint_columns tdi_joint_columns;

struct tdi_joint_columns {
    tdi_sample_reader reader;
    /* Makes sample `row`: writes column i to to[i], packed, in its own dtype, unless to[i] is NULL. Called by several
     * threads at once, possibly twice for a row; may block as long as the user's function does. */
    td_status (*make)(tdi_joint_columns *joint, int64_t row, void *const *to, tdi_error *error);
    int columns;                       /* number of columns that `make` makes; they are the source's first */
    size_t begin[TDI_MAX_COLUMNS + 1]; /* bytes: offset of each of them in a kept sample, then the sample's size */
    atomic_int wanted;                 /* number of them that the present run gathers; 0: there is no run */
    pthread_mutex_t lock;              /* guards `kept` */
    tdi_vec(struct tdi_partial_sample) kept; /* oldest first */
};

/* A sample of which some columns are still to be gathered. */
struct tdi_partial_sample {
    int64_t row;
    unsigned columns; /* bits: those to be gathered */
    char *sample;     /* [begin[columns]] bytes, owned */
};

/* Sets what every such source has in common; the source's other members are set before. It has no columns yet. */
void tdi_joint_init(tdi_joint_columns *joint);
/* Appends a column; inputs come before targets, weights last. `function` names the user's call in the sentence of a
 * refusal. */
td_status tdi_joint_add(tdi_joint_columns *joint, const char *function, tdi_column_role role, const td_column *column,
                        tdi_error *error);
/* Appends the columns of a list that ends as TD_COLUMNS does; a NULL list is empty. */
td_status tdi_joint_add_list(tdi_joint_columns *joint, const char *function, tdi_column_role role,
                             const td_column *list, tdi_error *error);

/* Sets places[0 .. columns) to where the columns are in a sample of begin[columns] bytes. */
void tdi_joint_places(const tdi_joint_columns *joint, char *sample, void **places);

/* Called by the source's own begin, end and release; release does not free `joint` itself. */
void tdi_joint_begin(tdi_joint_columns *joint, const tdi_source_run *run);
void tdi_joint_end(tdi_joint_columns *joint);
void tdi_joint_release(tdi_joint_columns *joint);

#endif
