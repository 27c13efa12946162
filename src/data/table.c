/* table.c - columns in memory. Values stay in the dtype they came in (an image's byte stays a byte) and are converted
 * as they are gathered. */
#include "data/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert.h"

bool tdi_array_size(const tdi_array *array, size_t *size)
{
    int64_t bytes = (int64_t)td_dtype_size(array->dtype);
    bool overflow = array->samples < 0 || __builtin_mul_overflow(bytes, array->samples, &bytes);
    for (int i = 0; i < array->shape.rank; i++)
        overflow |= array->shape.dim[i] < 0 || __builtin_mul_overflow(bytes, array->shape.dim[i], &bytes);
    *size = (size_t)bytes;
    return !overflow;
}

static td_status not_a_class(const tdi_source *source, int column, int64_t row, const char *element, tdi_error *error)
{
    const tdi_column *facts = &source->columns[column];
    char value[48];
    int64_t whole;
    float number;
    if (facts->dtype == TD_INT64) {
        memcpy(&whole, element, sizeof whole);
        snprintf(value, sizeof value, "%" PRId64, whole);
    } else if (facts->dtype == TD_FLOAT32) {
        memcpy(&number, element, sizeof number);
        snprintf(value, sizeof value, "%.9g", (double)number);
    } else {
        double precise;
        memcpy(&precise, element, sizeof precise);
        snprintf(value, sizeof value, "%.17g", precise);
    }
    return tdi_fail(error, TD_BAD_FILE,
                    "%s: %s of sample %" PRId64 " is %s, which is not %s (a whole number that 32 bits hold): %s",
                    source->name, facts->name, row, value, column < source->n_x ? "an index" : "a class number",
                    column < source->n_x ? "the model looks rows up by it"
                                         : "give class numbers, or a loss for such targets");
}

static td_status gather_classes(tdi_table *table, int column, const int64_t *rows, int64_t count, int32_t *to,
                                tdi_error *error)
{
    const tdi_column *stored = &table->source.columns[column];
    int64_t size = (int64_t)td_dtype_size(stored->dtype), elements = tdi_sample_elements(&stored->shape);
    for (int64_t i = 0; i < count; i++) {
        const char *from = (const char *)stored->values + rows[i] * elements * size;
        int64_t bad = tdi_convert_classes(stored->dtype, from, to + i * elements, elements);
        if (bad >= 0)
            return not_a_class(&table->source, column, rows[i], from + bad * size, error);
    }
    return TD_OK;
}

static void gather_stored(const tdi_column *stored, const int64_t *rows, int64_t count, char *to)
{
    size_t size = (size_t)tdi_sample_elements(&stored->shape) * td_dtype_size(stored->dtype);
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * size, (const char *)stored->values + (size_t)rows[i] * size, size);
}

static td_status table_gather(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to, td_dtype as,
                              tdi_error *error)
{
    tdi_table *table = (tdi_table *)source;
    if (as == TD_INT32)
        return gather_classes(table, column, rows, count, to, error);
    if (as == TD_FLOAT32)
        tdi_gather_floats(&source->columns[column], rows, count, to, tdi_convert_bytes);
    else if (as == source->columns[column].dtype)
        gather_stored(&source->columns[column], rows, count, to);
    else
        return tdi_fail(error, TD_INTERNAL, "%s: %s cannot be read as %s", source->name, source->columns[column].name,
                        td_dtype_name(as));
    return TD_OK;
}

static void table_release(tdi_source *source)
{
    tdi_table *table = (tdi_table *)source;
    for (int i = 0; i < TDI_MAX_COLUMNS; i++)
        free(table->owned[i]);
    free(table);
}

td_status tdi_table_create(const char *name, tdi_table **table, tdi_error *error)
{
    *table = calloc(1, sizeof **table);
    if (!*table)
        return tdi_no_memory(error);
    tdi_source *source = &(*table)->source;
    snprintf(source->name, sizeof source->name, "%s", name);
    source->gather = table_gather;
    source->release = table_release;
    return TD_OK;
}

static td_status check_column(const tdi_table *table, int columns, const char *name, const tdi_array *array,
                              tdi_error *error)
{
    const tdi_source *source = &table->source;
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

td_status tdi_table_add(tdi_table *table, bool target, const char *name, float scale, const tdi_array *array,
                        tdi_error *error)
{
    tdi_source *source = &table->source;
    int at = source->n_x + source->n_y;
    if (at == TDI_MAX_COLUMNS) {
        free(array->owned);
        return tdi_fail(error, TD_UNSUPPORTED, "%s: more than %d arrays", source->name, TDI_MAX_COLUMNS);
    }
    table->owned[at] = array->owned;
    TDI_TRY(check_column(table, at, name, array, error));
    tdi_column *facts = &source->columns[at];
    snprintf(facts->name, sizeof facts->name, "%s", name);
    facts->shape = array->shape;
    facts->dtype = array->dtype;
    facts->scale = scale;
    facts->values = array->values;
    source->samples = array->samples;
    source->n_x += !target;
    source->n_y += target;
    return TD_OK;
}
