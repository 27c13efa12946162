/* batch_feed.c - feeds of batches from sources and from arrays. */
#include "train/batch_feed.h"

#include <string.h>

/* ---- sources ---- */

static int column_of(const tdi_source_feed *feed, int slot)
{
    int target = slot - feed->n_inputs, weight = target - feed->n_targets;
    if (target < 0)
        return slot;
    return weight < 0 ? feed->source->n_x + target : feed->source->n_x + feed->source->n_y + weight;
}

static td_status source_rows(void *context, int64_t step, int slot, int64_t first, int64_t count, void *to, td_dtype as,
                             tdi_error *error)
{
    const tdi_source_feed *feed = context;
    tdi_source *source = feed->source;
    int64_t place = step * feed->batch + first;
    const int64_t *rows = feed->order ? feed->order + place : &place;
    int column = column_of(feed, slot);
    if (!source->columns[column].values || as != TD_FLOAT32 || !feed->convert_bytes)
        return source->gather(source, column, rows, count, to, as, error);
    tdi_gather_floats(&source->columns[column], rows, count, to, feed->convert_bytes);
    return TD_OK;
}

static const void *source_in_place(void *context, int64_t step, int slot, int64_t first, td_dtype as)
{
    const tdi_source_feed *feed = context;
    const tdi_column *column = &feed->source->columns[column_of(feed, slot)];
    if (!feed->in_order || !column->values || column->dtype != as || column->scale != 1)
        return NULL;
    int64_t row_bytes = tdi_sample_elements(&column->shape) * (int64_t)td_dtype_size(as);
    return (const char *)column->values + (step * feed->batch + first) * row_bytes;
}

static int64_t source_sample(void *context, int64_t step, int64_t row, const char **name)
{
    const tdi_source_feed *feed = context;
    int64_t place = step * feed->batch + row, sample = feed->order ? feed->order[place] : place;
    *name = tdi_source_origin(feed->source, &sample)->name;
    return sample;
}

tdi_feed tdi_feed_source(tdi_source_feed *feed)
{
    return (tdi_feed){.context = feed, .rows = source_rows, .in_place = source_in_place, .sample = source_sample};
}

/* ---- arrays ---- */

static td_status to_classes(const float *from, int64_t count, int32_t *to, int64_t first, tdi_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        if (!(from[i] > -2147483648.0f && from[i] < 2147483648.0f) || (float)(int32_t)from[i] != from[i])
            return tdi_fail(error, TD_INVALID_ARGUMENT, "row %lld: %g is not a class number or an index",
                            (long long)(first + i), (double)from[i]);
        to[i] = (int32_t)from[i];
    }
    return TD_OK;
}

static td_status to_ones(int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = 1;
    return TD_OK;
}

static td_status array_rows(void *context, int64_t step, int slot, int64_t first, int64_t count, void *to, td_dtype as,
                            tdi_error *error)
{
    (void)step;
    const tdi_array_feed *feed = context;
    int64_t per_row = feed->per_row[slot];
    if (!feed->slots[slot])
        return to_ones(count * per_row, to);
    const float *from = feed->slots[slot] + first * per_row;
    if (as == TD_INT32)
        return to_classes(from, count * per_row, to, first, error);
    memcpy(to, from, (size_t)(count * per_row) * sizeof *from);
    return TD_OK;
}

static const void *array_in_place(void *context, int64_t step, int slot, int64_t first, td_dtype as)
{
    (void)step;
    const tdi_array_feed *feed = context;
    return as == TD_FLOAT32 && feed->slots[slot] ? feed->slots[slot] + first * feed->per_row[slot] : NULL;
}

tdi_feed tdi_feed_arrays(tdi_array_feed *feed)
{
    return (tdi_feed){.context = feed, .rows = array_rows, .in_place = array_in_place};
}
