/* decoded_items.h - a source that makes each sample when it is asked for: records and images that are decoded, rows of
 * arrays that lie in files. */
#ifndef TDI_DATA_DECODED_ITEMS_H
#define TDI_DATA_DECODED_ITEMS_H

#include "data/source.h"

typedef struct tdi_items {
    tdi_source source; /* gather is tdi_items_gather, or ends in it */
    /* Writes one sample of a column, packed, in the column's own dtype; called by several threads at once. */
    td_status (*read)(struct tdi_items *items, int column, int64_t row, void *to, tdi_error *error);
    /* The same of samples [first, first + count), instead of read: they lie one behind the other. NULL: they do not. */
    td_status (*read_run)(struct tdi_items *items, int column, int64_t first, int64_t count, void *to,
                          tdi_error *error);
    int64_t *kept; /* [samples] the rows that read is asked for, once tdi_items_sift has found some bad; NULL: all */
} tdi_items;

td_status tdi_items_gather(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to, td_dtype as,
                           tdi_error *error);

/* Class numbers of one sample of a column; TD_BAD_FILE naming the sample and the value that is none. */
td_status tdi_sample_classes(const tdi_source *source, int column, int64_t row, const void *from, int32_t *to,
                             tdi_error *error);

/* Reads every sample once, on all cores, and leaves out those that are TD_BAD_FILE: counted in source.skipped, with the
 * first sentence in source.skip_reason. TD_BAD_FILE when none is left. */
td_status tdi_items_sift(tdi_items *items, tdi_error *error);

#endif
