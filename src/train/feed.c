/* feed.c - from sources and arrays to batches. */
#include "train/feed.h"

#include <string.h>

/* ---- sources ---- */

static int column_of(const tdi_source_feed *feed, int slot)
{
    return slot < feed->n_inputs ? slot : feed->source->n_x + slot - feed->n_inputs;
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

static td_status array_rows(void *context, int64_t step, int slot, int64_t first, int64_t count, void *to, td_dtype as,
                            tdi_error *error)
{
    (void)step;
    const tdi_array_feed *feed = context;
    int64_t per_row = feed->per_row[slot];
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
    return as == TD_FLOAT32 ? feed->slots[slot] + first * feed->per_row[slot] : NULL;
}

tdi_feed tdi_feed_arrays(tdi_array_feed *feed)
{
    return (tdi_feed){.context = feed, .rows = array_rows, .in_place = array_in_place};
}

/* ---- checks ---- */

static td_shape squeezed(const td_shape *shape)
{
    td_shape out = {0};
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] != 1)
            out.dim[out.rank++] = shape->dim[i];
    return out;
}

/* The same elements in the same order, beyond doubt: equal but for extents of 1, or one of the two flat. */
static bool reads_as(const td_shape *data, const td_shape *wanted)
{
    td_shape a = squeezed(data), b = squeezed(wanted);
    if (tdi_shape_elements(&a) != tdi_shape_elements(&b))
        return false;
    return a.rank < 2 || b.rank < 2 || tdi_shape_equal(&a, &b);
}

static td_status check_inputs(const td_model *model, const tdi_source *source, tdi_error *error)
{
    char data[TDI_SHAPE_TEXT], wanted[TDI_SHAPE_TEXT];
    if (source->n_x != model->architecture->n_inputs)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s has %d input arrays, but model \"%s\" has %d inputs",
                        source->name, source->n_x, model->architecture->name, model->architecture->n_inputs);
    for (int i = 0; i < model->architecture->n_inputs; i++)
        if (!reads_as(&source->columns[i].shape, &model->architecture->inputs[i]->shape))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "%s: %s holds samples of shape %s, but input \"%s\" of model \"%s\" takes %s", source->name,
                            source->columns[i].name, tdi_shape_text(&source->columns[i].shape, data),
                            model->architecture->inputs[i]->site->layer->name, model->architecture->name,
                            tdi_shape_text(&model->architecture->inputs[i]->shape, wanted));
    return TD_OK;
}

static td_status check_target(const td_model *model, const tdi_source *source, int output, tdi_error *error)
{
    char data[TDI_SHAPE_TEXT], wanted[TDI_SHAPE_TEXT];
    const tdi_loss *loss = &model->compiled.outputs[output].loss;
    const tdi_column *column = &source->columns[source->n_x + output];
    td_shape target = tdi_loss_target_shape(loss, &model->architecture->outputs[output]->shape);
    if (reads_as(&column->shape, &target))
        return TD_OK;
    const char *try_this = "";
    if (tdi_loss_wants_classes(loss) && reads_as(&column->shape, &model->architecture->outputs[output]->shape))
        try_this = "; for one-hot targets use categorical_crossentropy";
    else if (loss->kind == TDI_LOSS_CATEGORICAL && tdi_shape_elements(&column->shape) == 1)
        try_this = "; for class numbers use sparse_categorical_crossentropy";
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: %s holds targets of shape %s, but %s on output \"%s\" takes %s%s",
                    source->name, column->name, tdi_shape_text(&column->shape, data), tdi_loss_class(loss->kind),
                    model->architecture->outputs[output]->site->layer->name, tdi_shape_text(&target, wanted), try_this);
}

td_status tdi_check_data(const td_model *model, const tdi_source *source, bool targets, tdi_error *error)
{
    if (source->samples < 1 && source->samples != TDI_SAMPLES_UNKNOWN)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s holds no samples", source->name);
    TDI_TRY(check_inputs(model, source, error));
    if (!targets)
        return TD_OK;
    if (source->n_y == 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s holds no targets, which the loss of model \"%s\" is of: give y too, as its format has it",
                        source->name, model->architecture->name);
    if (source->n_y != model->architecture->n_outputs)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s has %d target arrays, but model \"%s\" has %d outputs",
                        source->name, source->n_y, model->architecture->name, model->architecture->n_outputs);
    for (int o = 0; o < model->architecture->n_outputs; o++)
        TDI_TRY(check_target(model, source, o, error));
    return TD_OK;
}
