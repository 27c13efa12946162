/* batch_feed.c - feeds of batches from sources and from arrays. */
#include "train/batch_feed.h"

#include <stdlib.h>
#include <string.h>

/* ---- sources ---- */

int tdi_target_column(const td_model *model, const tdi_source *source, int output)
{
    int before = 0;
    if (!tdi_model_has_target(model, output))
        return -1;
    for (int o = 0; o < output; o++)
        before += tdi_model_has_target(model, o) || source->n_y == model->architecture->n_outputs;
    return source->n_x + before;
}

bool tdi_weights_shared(const td_model *model, const tdi_source *source)
{
    return source->n_w == 1 && tdi_model_targets(model) > 1;
}

int tdi_weight_column(const td_model *model, const tdi_source *source, int output)
{
    int before = 0;
    if (!tdi_model_is_weighted(model, output))
        return -1;
    for (int o = 0; o < output; o++)
        before += tdi_model_has_target(model, o) || source->n_w == model->architecture->n_outputs;
    return source->n_x + source->n_y + before;
}

static int column_of(const td_model *model, const tdi_source *source, int slot)
{
    int output = slot - model->architecture->n_inputs, weights = output - model->architecture->n_outputs;
    if (output < 0)
        return slot;
    if (weights < 0)
        return tdi_target_column(model, source, output);
    return tdi_weights_shared(model, source) ? source->n_x + source->n_y : tdi_weight_column(model, source, weights);
}

int tdi_columns_read(const td_model *model, const tdi_source *source, tdi_mode mode)
{
    int slot = tdi_input_slots(model, mode) - 1;
    while (slot > 0 && column_of(model, source, slot) < 0)
        slot--;
    return slot < 0 ? 0 : column_of(model, source, slot) + 1;
}

/* A source that makes its columns jointly keeps a sample until each of them is gathered: those before `slot`'s, targets
 * and weights, that no loss and no metric reads are gathered too, and dropped. */
static td_status pass_over(const tdi_source_feed *feed, int slot, const int64_t *rows, int64_t count, tdi_error *error)
{
    tdi_source *source = feed->source;
    int column = column_of(feed->model, source, slot), before = slot - 1;
    while (before > 0 && column_of(feed->model, source, before) < 0)
        before--;
    for (int at = slot ? column_of(feed->model, source, before) + 1 : 0; at < column; at++) {
        void *dropped = malloc((size_t)(tdi_sample_elements(&source->columns[at].shape) * count) * sizeof(float));
        td_status status =
            dropped ? source->gather(source, at, rows, count, dropped, TD_FLOAT32, error) : tdi_no_memory(error);
        free(dropped);
        TDI_TRY(status);
    }
    return TD_OK;
}

int64_t tdi_own_rows_of(const tdi_own_rows *own, int64_t rows, int64_t *count)
{
    int64_t first = own->shards ? tdi_shard_first_row(rows, own->first, own->shards) : 0;
    *count = (own->shards ? tdi_shard_first_row(rows, own->end, own->shards) : rows) - first;
    return first;
}

/* Where a row of a step's batch stands in the epoch's order. */
static int64_t place_of(const tdi_source_feed *feed, int64_t step, int64_t row)
{
    int64_t each, first = tdi_own_rows_of(&feed->own, feed->batch, &each);
    return step * each + row - first;
}

static td_status source_rows(void *context, int64_t step, int slot, int64_t first, int64_t count, void *to, td_dtype as,
                             tdi_error *error)
{
    const tdi_source_feed *feed = context;
    tdi_source *source = feed->source;
    int64_t place = place_of(feed, step, first);
    const int64_t *rows = feed->order ? feed->order + place : &place;
    int column = column_of(feed->model, source, slot);
    TDI_TRY(pass_over(feed, slot, rows, count, error));
    if (!source->columns[column].values || as != TD_FLOAT32 || !feed->convert_bytes)
        return source->gather(source, column, rows, count, to, as, error);
    tdi_gather_floats(&source->columns[column], rows, count, to, feed->convert_bytes);
    return TD_OK;
}

static const void *source_in_place(void *context, int64_t step, int slot, int64_t first, td_dtype as)
{
    const tdi_source_feed *feed = context;
    const tdi_column *column = &feed->source->columns[column_of(feed->model, feed->source, slot)];
    if (!feed->in_order || !column->values || column->dtype != as || column->scale != 1)
        return NULL;
    int64_t row_bytes = tdi_sample_elements(&column->shape) * (int64_t)td_dtype_size(as);
    return (const char *)column->values + place_of(feed, step, first) * row_bytes;
}

static int64_t source_sample(void *context, int64_t step, int64_t row, const char **name)
{
    const tdi_source_feed *feed = context;
    int64_t place = place_of(feed, step, row), sample = feed->order ? feed->order[place] : place;
    *name = tdi_source_origin(feed->source, &sample)->name;
    return sample;
}

enum { MOST_LOOKED_AT = 100000, MOST_DECODED = 1000 }; /* samples: in all, and of those made one by one */

static bool source_class_range(void *context, int slot, int32_t *least, int32_t *most)
{
    const tdi_source_feed *feed = context;
    tdi_source *source = feed->source;
    int column = column_of(feed->model, source, slot);
    int64_t elements = tdi_sample_elements(&source->columns[column].shape), known = source->samples;
    int64_t samples = source->on_demand ? MOST_DECODED : MOST_LOOKED_AT;
    int32_t *classes = source->sequential ? NULL : malloc((size_t)elements * sizeof *classes);
    *least = INT32_MAX;
    *most = INT32_MIN;
    for (int64_t row = 0; classes && row < known && row < samples; row++) {
        if (source->gather(source, column, &row, 1, classes, TD_INT32, NULL) != TD_OK)
            continue;
        for (int64_t i = 0; i < elements; i++) {
            *least = classes[i] < *least ? classes[i] : *least;
            *most = classes[i] > *most ? classes[i] : *most;
        }
    }
    free(classes);
    return *least <= *most;
}

tdi_feed tdi_feed_source(tdi_source_feed *feed)
{
    return (tdi_feed){.context = feed,
                      .rows = source_rows,
                      .in_place = source_in_place,
                      .sample = source_sample,
                      .class_range = source_class_range};
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
    const float *from = feed->slots[slot] + (first - feed->first) * per_row;
    if (as == TD_INT32)
        return to_classes(from, count * per_row, to, first, error);
    memcpy(to, from, (size_t)(count * per_row) * sizeof *from);
    return TD_OK;
}

static const void *array_in_place(void *context, int64_t step, int slot, int64_t first, td_dtype as)
{
    (void)step;
    const tdi_array_feed *feed = context;
    return as == TD_FLOAT32 && feed->slots[slot] ? feed->slots[slot] + (first - feed->first) * feed->per_row[slot]
                                                 : NULL;
}

tdi_feed tdi_feed_arrays(tdi_array_feed *feed)
{
    return (tdi_feed){.context = feed, .rows = array_rows, .in_place = array_in_place};
}
