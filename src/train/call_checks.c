/* call_checks.c - the checks and reports of public functions. */
#include "train/call_checks.h"

#include "train/batch_feed.h"

td_status tdi_data_source(td_data *data, const char *what, tdi_source **source, tdi_error *error)
{
    if (!data)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: no data was given", what);
    if (!data->source)
        return tdi_fail(error, data->error.status, "%s: %s", what, data->error.message);
    *source = data->source;
    return TD_OK;
}

td_status tdi_report(td_model *model, const td_location *at, td_status status, const tdi_error *error)
{
    if (!model || status == TD_OK || status == TD_STOPPED)
        return status;
    if (at && at->file)
        return tdi_fail(&model->context->error, status, "%s:%d: %s", at->file, at->line, error->message);
    return tdi_fail(&model->context->error, status, "%s", error->message);
}

td_status tdi_check_compiled(const td_model *model, bool to_train, tdi_error *error)
{
    for (int o = 0; o < model->architecture->n_outputs; o++)
        if (model->compiled.outputs[o].unknown_loss)
            return tdi_fail(
                error, TD_INVALID_ARGUMENT,
                "output \"%s\" of model \"%s\" has a loss that Tandem does not know; compile it with another",
                model->architecture->outputs[o]->site->layer->name, model->architecture->name);
    if (!model->compiled.is_set)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "model \"%s\" has no loss; compile it first",
                        model->architecture->name);
    if (to_train && model->state->optimizer.kind == TD_OPTIMIZER_NONE)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "model \"%s\" has no optimizer; compile it with one",
                        model->architecture->name);
    return TD_OK;
}

#define MOST_ROWS INT64_C(0x7fffffff) /* of a batch: offsets of its elements can be reckoned */

td_status tdi_check_batch_size(td_guard guard, const char *function, int64_t batch_size, tdi_error *error)
{
    if (guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: an argument too many; give options by name", function);
    if (batch_size < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "batch_size: %lld; at least 1 was expected", (long long)batch_size);
    return tdi_check_rows("batch_size", batch_size, error);
}

td_status tdi_check_rows(const char *what, int64_t rows, tdi_error *error)
{
    if (rows <= MOST_ROWS)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: %lld; at most %lld was expected", what, (long long)rows,
                    (long long)MOST_ROWS);
}

/* ---- data ---- */

static td_shape squeezed(const td_shape *shape)
{
    td_shape out = {0};
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] != 1)
            out.dim[out.rank++] = shape->dim[i];
    return out;
}

bool tdi_reads_as(const td_shape *data, const td_shape *wanted)
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
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s has %d input arrays, but model \"%s\" has %d inputs%s",
                        source->name, source->n_x, model->architecture->name, model->architecture->n_inputs,
                        source->advice);
    for (int i = 0; i < model->architecture->n_inputs; i++)
        if (!tdi_reads_as(&source->columns[i].shape, &model->architecture->inputs[i]->shape))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "%s: %s holds samples of shape %s, but input \"%s\" of model \"%s\" takes %s%s",
                            source->name, source->columns[i].name, tdi_shape_text(&source->columns[i].shape, data),
                            model->architecture->inputs[i]->site->layer->name, model->architecture->name,
                            tdi_shape_text(&model->architecture->inputs[i]->shape, wanted), source->advice);
    return TD_OK;
}

static td_status check_target(const td_model *model, const tdi_source *source, int output, tdi_error *error)
{
    char data[TDI_SHAPE_TEXT], wanted[TDI_SHAPE_TEXT];
    const tdi_loss *loss = &model->compiled.outputs[output].loss;
    int at = tdi_target_column(model, source, output);
    if (at < 0)
        return TD_OK;
    const tdi_column *column = &source->columns[at];
    td_shape target = tdi_loss_target_shape(loss, &model->architecture->outputs[output]->shape);
    if (tdi_reads_as(&column->shape, &target))
        return TD_OK;
    const char *try_this = "";
    if (tdi_loss_wants_classes(loss) && tdi_reads_as(&column->shape, &model->architecture->outputs[output]->shape))
        try_this = loss->kind ? "; for one-hot targets use categorical_crossentropy"
                              : "; for one-hot targets use the metric categorical_accuracy";
    else if (loss->kind == TDI_LOSS_CATEGORICAL && tdi_shape_elements(&column->shape) == 1)
        try_this = "; for class numbers use sparse_categorical_crossentropy";
    const char *reader = loss->kind ? tdi_loss_class(loss->kind) : "the metric";
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: %s holds targets of shape %s, but %s on output \"%s\" takes %s%s",
                    source->name, column->name, tdi_shape_text(&column->shape, data), reader,
                    model->architecture->outputs[output]->site->layer->name, tdi_shape_text(&target, wanted), try_this);
}

/* One for each output or, as in Keras, one for each that has a loss. */
static td_status check_target_count(const td_model *model, const tdi_source *source, tdi_error *error)
{
    int n_outputs = model->architecture->n_outputs, needed = tdi_model_targets(model);
    char fewer[80] = "";
    if (source->n_y == n_outputs || source->n_y == needed)
        return TD_OK;
    if (needed < n_outputs)
        snprintf(fewer, sizeof fewer, ", of which %d %s a loss or a metric", needed, needed == 1 ? "has" : "have");
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s has %d target arrays, but model \"%s\" has %d outputs%s",
                    source->name, source->n_y, model->architecture->name, n_outputs, fewer);
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
    TDI_TRY(check_target_count(model, source, error));
    for (int o = 0; o < model->architecture->n_outputs; o++)
        TDI_TRY(check_target(model, source, o, error));
    return TD_OK;
}
