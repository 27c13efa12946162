/* array_table.c - columns in memory and in stores. Values keep their dtype (an image's byte stays a byte) and are
 * converted when they are gathered. */
#include "data/array_table.h"
#include "base/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert.h"
#include "files/tfrecord_file.h"

bool tdi_array_size(const tdi_array *array, size_t *size)
{
    int64_t bytes = (int64_t)td_dtype_size(array->dtype);
    bool overflow = array->samples < 0;
    for (int i = 0; i < array->shape.rank; i++) /* checked without samples too */
        overflow |= array->shape.dim[i] < 0 || __builtin_mul_overflow(bytes, array->shape.dim[i], &bytes);
    overflow |= __builtin_mul_overflow(bytes, array->samples, &bytes);
    *size = (size_t)bytes;
    return !overflow;
}

void tdi_array_release(tdi_array *array)
{
    free(array->owned);
    tdi_store_free(array->stored.store);
}

/* Stored numbers are never larger than widened ones, so they are read to the end of `to` and widened from there to its
 * begin. */
td_status tdi_stored_read(const tdi_stored *stored, int64_t first, int64_t count, void *to, tdi_error *error)
{
    int64_t stride = stored->numbers.size, size = count * stride;
    unsigned char *from = (unsigned char *)to + count * (int64_t)td_dtype_size(stored->numbers.dtype) - size;
    TDI_TRY(tdi_store_read(stored->store, stored->begin + first * stride, from, size, error));
    tdi_numbers_widen(&stored->numbers, from, to, (uint64_t)count);
    return TD_OK;
}

/* ---- gathering ---- */

static td_status gather_classes(const tdi_source *source, int column, const int64_t *rows, int64_t count, int32_t *to,
                                tdi_error *error)
{
    const tdi_column *stored = &source->columns[column];
    int64_t elements = tdi_sample_elements(&stored->shape), size = (int64_t)tdi_column_bytes(stored);
    for (int64_t i = 0; i < count; i++)
        TDI_TRY(tdi_sample_classes(source, column, rows[i], (const char *)stored->values + rows[i] * size,
                                   to + i * elements, error));
    return TD_OK;
}

static void gather_stored(const tdi_column *stored, const int64_t *rows, int64_t count, char *to)
{
    size_t size = tdi_column_bytes(stored);
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * size, (const char *)stored->values + (size_t)rows[i] * size, size);
}

static td_status table_gather(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to, td_dtype as,
                              tdi_error *error)
{
    const tdi_column *facts = &source->columns[column];
    if (!facts->values)
        return tdi_sample_reader_gather(source, column, rows, count, to, as, error);
    if (as == TD_INT32)
        return gather_classes(source, column, rows, count, to, error);
    if (as == TD_FLOAT32)
        tdi_gather_floats(facts, rows, count, to, tdi_convert_bytes);
    else if (as == facts->dtype)
        gather_stored(facts, rows, count, to);
    else
        return tdi_fail(error, TD_INTERNAL, "%s: %s cannot be read as %s", source->name, facts->name,
                        td_dtype_name(as));
    return TD_OK;
}

static td_status read_run(tdi_sample_reader *reader, int column, int64_t first, int64_t count, void *to,
                          tdi_error *error)
{
    int64_t elements = tdi_sample_elements(&reader->source.columns[column].shape);
    const tdi_stored *stored = &((const tdi_table *)reader)->stored[column];
    return tdi_stored_read(stored, first * elements, count * elements, to, error);
}

static td_status table_checksum(const tdi_source *source, int column, int64_t first, int64_t count, uint32_t *crc,
                                const atomic_int *stop, tdi_error *error)
{
    enum { PIECE = 1 << 20 };
    const tdi_column *facts = &source->columns[column];
    size_t size = tdi_column_bytes(facts);
    int64_t most = 1 + PIECE / (int64_t)size, end = first + count;
    char *piece = malloc((size_t)most * size);
    td_status status = piece ? TD_OK : tdi_no_memory(error);
    for (int64_t run; first < end && status == TD_OK; first += run) {
        run = end - first < most ? end - first : most;
        status = tdi_check_stop(stop, error);
        if (status == TD_OK)
            status = read_run((tdi_sample_reader *)(uintptr_t)source, column, first, run, piece, error);
        if (status == TD_OK)
            *crc = tdi_crc32c(*crc, piece, (size_t)run * size);
    }
    free(piece);
    return status;
}

/* ---- making it ---- */

static void table_release(tdi_source *source)
{
    tdi_table *table = (tdi_table *)source;
    for (int i = 0; i < TDI_MAX_COLUMNS; i++) {
        free(table->owned[i]);
        tdi_store_free(table->stored[i].store);
    }
    free(table);
}

td_status tdi_table_create(const char *name, tdi_table **table, tdi_error *error)
{
    *table = calloc(1, sizeof **table);
    if (!*table)
        return tdi_no_memory(error);
    tdi_source *source = &(*table)->reader.source;
    snprintf(source->name, sizeof source->name, "%s", name);
    source->gather = table_gather;
    source->checksum = table_checksum;
    source->release = table_release;
    (*table)->reader.read_run = read_run;
    return TD_OK;
}

static td_status check_column(const tdi_table *table, int columns, const char *name, const tdi_array *array,
                              tdi_error *error)
{
    const tdi_source *source = &table->reader.source;
    size_t size;
    if (!tdi_array_size(array, &size))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: the size of %s is beyond what memory can hold", source->name,
                        name);
    if (array->samples == 0)
        return tdi_fail(error, TD_BAD_FILE, "%s: %s holds no samples", source->name, name);
    if (size == 0)
        return tdi_fail(error, TD_BAD_FILE, "%s: a sample of %s holds no elements: one of its extents is 0",
                        source->name, name);
    if (columns && array->samples != source->samples)
        return tdi_fail(error, TD_BAD_FILE,
                        "%s: %s holds %" PRId64 " samples but %s %" PRId64 ": both need one per sample", source->name,
                        source->columns[0].name, source->samples, name, array->samples);
    return TD_OK;
}

td_status tdi_table_add(tdi_table *table, tdi_column_role role, const char *name, float scale, tdi_array *array,
                        tdi_error *error)
{
    tdi_source *source = &table->reader.source;
    int at = tdi_source_columns(source);
    if (at == TDI_MAX_COLUMNS) {
        tdi_array_release(array);
        return tdi_fail(error, TD_UNSUPPORTED, "%s: more than %d arrays", source->name, TDI_MAX_COLUMNS);
    }
    table->owned[at] = array->owned;
    table->stored[at] = array->stored;
    TDI_TRY(check_column(table, at, name, array, error));
    tdi_column *facts = &source->columns[at];
    snprintf(facts->name, sizeof facts->name, "%s", name);
    facts->shape = array->shape;
    facts->dtype = array->dtype;
    facts->scale = scale;
    facts->values = array->values;
    source->samples = array->samples;
    *tdi_source_count_of(source, role) += 1;
    return TD_OK;
}
