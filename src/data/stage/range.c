/* range.c - some samples of another source, as a source: consecutive ones, or those of a list. */
#include <inttypes.h>
#include <stdlib.h>

#include "data/source.h"

#define RANGE_ROWS 64 /* row numbers translated at a time */

typedef struct range_source {
    tdi_source source;
    tdi_source *whole;
    int64_t first;
    const int64_t *rows; /* borrowed: sample i is sample rows[i] of `whole`; NULL: first + i */
    int64_t *order;      /* of the run, in rows of `whole` */
} range_source;

static int64_t whole_row(const range_source *range, int64_t row)
{
    return range->rows ? range->rows[row] : range->first + row;
}

static td_status range_gather(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to, td_dtype as,
                              tdi_error *error)
{
    const range_source *range = (const range_source *)source;
    size_t stride = (size_t)tdi_sample_elements(&source->columns[column].shape) * td_dtype_size(as);
    int64_t translated[RANGE_ROWS];
    for (int64_t done = 0; done < count; done += RANGE_ROWS) {
        int64_t piece = count - done < RANGE_ROWS ? count - done : RANGE_ROWS;
        for (int64_t i = 0; i < piece; i++)
            translated[i] = whole_row(range, rows[done + i]);
        TDI_TRY(range->whole->gather(range->whole, column, translated, piece, (char *)to + (size_t)done * stride, as,
                                     error));
    }
    return TD_OK;
}

static td_status range_begin(tdi_source *source, const tdi_source_run *run, tdi_error *error)
{
    range_source *range = (range_source *)source;
    int64_t *order = malloc((size_t)run->samples * sizeof *order);
    if (!order)
        return tdi_no_memory(error);
    for (int64_t i = 0; i < run->samples; i++)
        order[i] = whole_row(range, run->order[i]);
    tdi_source_run whole = *run;
    whole.order = order;
    td_status status = tdi_source_begin(range->whole, &whole, error);
    if (status == TD_OK)
        range->order = order;
    else
        free(order);
    return status;
}

static void range_end(tdi_source *source)
{
    range_source *range = (range_source *)source;
    tdi_source_end(range->whole);
    free(range->order);
    range->order = NULL;
}

static td_status range_checksum(const tdi_source *source, int column, int64_t first, int64_t count, uint32_t *crc,
                                const atomic_int *stop, tdi_error *error)
{
    const range_source *range = (const range_source *)source;
    return range->whole->checksum(range->whole, column, range->first + first, count, crc, stop, error);
}

static const tdi_source *range_beneath(const tdi_source *source, int index)
{
    return index == 0 ? ((const range_source *)source)->whole : NULL;
}

static const tdi_source *range_origin(const tdi_source *source, int64_t *row)
{
    const range_source *range = (const range_source *)source;
    *row = whole_row(range, *row);
    return range->whole;
}

static void range_release(tdi_source *source)
{
    free(source);
}

td_status tdi_source_range(tdi_source *whole, int64_t first, int64_t count, tdi_source **range, tdi_error *error)
{
    if (first < 0 || count < 1 || first > whole->samples - count)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: %" PRId64 " samples from sample %" PRId64 " on were asked for, of %" PRId64, whole->name,
                        count, first, whole->samples);
    range_source *made = malloc(sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->source = *whole;
    made->source.samples = count;
    made->source.of = NULL;
    made->source.gather = range_gather;
    made->source.begin = whole->begin ? range_begin : NULL;
    made->source.end = whole->end ? range_end : NULL;
    made->source.count = NULL;
    made->source.release = range_release;
    made->source.checksum = whole->checksum ? range_checksum : NULL;
    made->source.beneath = whole->beneath ? range_beneath : NULL;
    made->source.origin = range_origin;
    made->whole = whole;
    made->first = first;
    made->rows = NULL;
    for (int i = 0; i < tdi_source_columns(whole); i++) {
        tdi_column *column = &made->source.columns[i];
        size_t bytes = tdi_column_bytes(column);
        column->values = column->values ? (const char *)column->values + (size_t)first * bytes : NULL;
    }
    made->order = NULL;
    *range = &made->source;
    return TD_OK;
}

td_status tdi_source_rows(tdi_source *whole, const int64_t *rows, int64_t count, tdi_source **range, tdi_error *error)
{
    TDI_TRY(tdi_source_range(whole, 0, count, range, error));
    ((range_source *)*range)->rows = rows;
    (*range)->checksum = NULL;
    for (int i = 0; i < TDI_MAX_COLUMNS; i++)
        (*range)->columns[i].values = NULL; /* which lie in other places */
    return TD_OK;
}
