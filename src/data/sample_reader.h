/* sample_reader.h - a source that reads samples one at a time, when they are gathered: decoded images and records, rows
 * of arrays that lie in files. Formats derive from it and supply `read` or `read_run`; such data may be larger than
 * memory. */
#ifndef TDI_DATA_SAMPLE_READER_H
#define TDI_DATA_SAMPLE_READER_H

#include "data/source.h"

typedef struct tdi_sample_reader {
    tdi_source source; /* its gather is tdi_sample_reader_gather, or calls it */
    /* Writes one sample of a column, packed, in the column's own dtype. Called by several threads at once; may block on
     * files. TD_BAD_FILE: this sample cannot be read. NULL: there is read_run. */
    td_status (*read)(struct tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error);
    /* The same for samples [first, first + count), where samples lie one behind the other. NULL: there is `read`. */
    td_status (*read_run)(struct tdi_sample_reader *reader, int column, int64_t first, int64_t count, void *to,
                          tdi_error *error);
    int64_t *kept; /* [samples] the file's number of each row, when some of its samples are left out; NULL: all rows */
} tdi_sample_reader;

/* Allocates a zeroed source of `size` bytes, which begins with a tdi_sample_reader, and sets its name, gather and
 * release. NULL when out of memory. */
void *tdi_sample_reader_create(size_t size, const char *name, void (*release)(tdi_source *source), tdi_error *error);

/* The `gather` of such a source: reads, and converts to `as`. */
td_status tdi_sample_reader_gather(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to,
                                   td_dtype as, tdi_error *error);

/* Converts one stored sample of a column to class numbers. TD_BAD_FILE naming the sample and the value that is no class
 * number. */
td_status tdi_sample_classes(const tdi_source *source, int column, int64_t row, const void *from, int32_t *to,
                             tdi_error *error);

/* Reads every sample once, on all cores, and leaves out those that give TD_BAD_FILE: source.skipped counts them and
 * source.skip_reason has the first one's sentence. TD_BAD_FILE when none is left. */
td_status tdi_sample_reader_drop_bad(tdi_sample_reader *reader, tdi_error *error);

#endif
