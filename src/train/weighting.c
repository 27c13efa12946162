/* weighting.c - makes a model's weighting of its losses: checks the columns of weights against the outputs, and gives a
 * weight to each class.
 *
 * Steps are made for a weighting, so that those of unweighted data compute nothing for it. What was made for another
 * weighting is dropped here. */
#include "train/weighting.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/program.h"
#include "runtime/runtime.h"
#include "train/batch_feed.h"
#include "train/call_checks.h"

/* ---- columns ---- */

static td_shape losses_shape(const td_model *model, int output)
{
    td_shape shape = model->architecture->outputs[output]->shape;
    if (shape.rank)
        shape.dim[--shape.rank] = 0;
    return shape;
}

static td_status check_column(const td_model *model, const tdi_source *source, int column, tdi_weighting *weighting,
                              tdi_error *error)
{
    char given[TDI_SHAPE_TEXT], wanted[TDI_SHAPE_TEXT];
    bool shared = tdi_weights_shared(model, source);
    int at = shared ? source->n_x + source->n_y : tdi_weight_column(model, source, column);
    if (at < 0)
        return TD_OK;
    const tdi_column *facts = &source->columns[at];
    td_shape losses = losses_shape(model, column);
    weighting->by_position[column] = tdi_sample_elements(&facts->shape) > 1;
    if (!weighting->by_position[column] || (!shared && tdi_reads_as(&facts->shape, &losses)))
        return TD_OK;
    if (shared)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: %s holds weights of shape %s a sample; weights that all %d outputs share are one number a "
                        "sample: give each output weights of its own",
                        source->name, facts->name, tdi_shape_text(&facts->shape, given), tdi_model_targets(model));
    return tdi_fail(
        error, TD_INVALID_ARGUMENT,
        "%s: %s holds weights of shape %s a sample, but output \"%s\" takes one number a sample%s%s", source->name,
        facts->name, tdi_shape_text(&facts->shape, given), model->architecture->outputs[column]->site->layer->name,
        losses.rank ? ", or one for each of its positions: " : "", losses.rank ? tdi_shape_text(&losses, wanted) : "");
}

static td_status take_columns(const td_model *model, const tdi_source *source, tdi_weighting *weighting,
                              tdi_error *error)
{
    int outputs = model->architecture->n_outputs, targets = tdi_model_targets(model);
    char fewer[80] = "";
    if (!source->n_w)
        return TD_OK;
    if (targets < outputs)
        snprintf(fewer, sizeof fewer, ", of which %d %s a loss or a metric", targets, targets == 1 ? "has" : "have");
    if (source->n_w > 1 && source->n_w != outputs && source->n_w != targets)
        return tdi_fail(
            error, TD_INVALID_ARGUMENT,
            "%s has %d arrays of weights, but model \"%s\" has %d output%s%s: give one for all, or one for each",
            source->name, source->n_w, model->architecture->name, outputs, outputs == 1 ? "" : "s", fewer);
    weighting->columns = tdi_weights_shared(model, source) ? 1 : outputs;
    for (int i = 0; i < weighting->columns; i++)
        TDI_TRY(check_column(model, source, i, weighting, error));
    return TD_OK;
}

/* ---- classes ---- */

/* Makes room for weights of classes 0 .. classes - 1, all 1. */
static td_status grow_classes(tdi_weighting *weighting, int classes, tdi_error *error)
{
    float *grown = realloc(weighting->class_weights, (size_t)classes * sizeof *grown);
    if (!grown)
        return tdi_no_memory(error);
    weighting->class_weights = grown;
    while (weighting->classes < classes)
        grown[weighting->classes++] = 1;
    return TD_OK;
}

static int most_classes(const td_model *model)
{
    int classes = tdi_program_classes(model, 0);
    return classes ? classes : TDI_MOST_CLASSES;
}

static td_status check_class_weight(const td_model *model, const td_class_weight *list, const td_class_weight *one,
                                    tdi_error *error)
{
    int classes = most_classes(model);
    if (one->number < 0 || one->number >= classes)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "class_weight: class %d; output \"%s\" has classes 0 to %d",
                        one->number, model->architecture->outputs[0]->site->layer->name, classes - 1);
    if (!isfinite(one->weight))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "class_weight: the weight of class %d is not a finite number",
                        one->number);
    for (; list < one; list++)
        if (list->number == one->number)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "class_weight: class %d is given twice", one->number);
    return TD_OK;
}

static td_status take_list(const td_model *model, const td_class_weight *list, tdi_weighting *weighting,
                           tdi_error *error)
{
    for (const td_class_weight *one = list; one->number != TD_CLASS_WEIGHTS_END; one++) {
        TDI_TRY(check_class_weight(model, list, one, error));
        if (one->number >= weighting->classes)
            TDI_TRY(grow_classes(weighting, one->number + 1, error));
        weighting->class_weights[one->number] = one->weight;
    }
    return TD_OK;
}

/* ---- classes in balance ---- */

/* The classes of the first target's rows, counted as the op class_weights reads them. */
typedef struct census {
    const td_model *model;
    tdi_source *source;
    int64_t *counts; /* [classes] */
    int classes;
    int64_t counted;
} census;

static int64_t class_at(const census *of, const float *values, int64_t position, int64_t width)
{
    const float *row = values + position * width;
    int64_t largest = 0;
    if (width == 1)
        return fabsf(*row) < (float)TDI_MOST_LABEL ? (int64_t)rintf(*row) : -1;
    for (int64_t i = 1; i < width; i++)
        largest = row[i] > row[largest] ? i : largest;
    return of->classes > largest ? largest : -1;
}

static void count_values(census *of, const float *values, int64_t elements)
{
    const tdi_loss *loss = &of->model->compiled.outputs[0].loss;
    const td_shape *output = &of->model->architecture->outputs[0]->shape;
    int64_t width = tdi_loss_wants_classes(loss) ? 1 : output->dim[output->rank - 1];
    for (int64_t i = 0; i < elements / width; i++) {
        int64_t class = class_at(of, values, i, width);
        if (class < 0 || class >= of->classes || tdi_ignores(&loss->ignore, (int32_t) class))
            continue;
        of->counts[class]++;
        of->counted++;
    }
}

static td_status count_rows(census *of, const atomic_int *stop, tdi_error *error)
{
    enum { PIECE = 1 << 16 };
    tdi_source *source = of->source;
    int64_t elements = tdi_sample_elements(&source->columns[source->n_x].shape), rows = 1 + PIECE / elements;
    float *values = malloc((size_t)(rows * elements) * sizeof *values);
    int64_t *order = malloc((size_t)rows * sizeof *order);
    td_status status = values && order ? TD_OK : tdi_no_memory(error);
    for (int64_t first = 0; first < source->samples && status == TD_OK; first += rows) {
        int64_t count = source->samples - first < rows ? source->samples - first : rows;
        for (int64_t i = 0; i < count; i++)
            order[i] = first + i;
        status = tdi_check_stop(stop, error);
        if (status == TD_OK)
            status = source->gather(source, source->n_x, order, count, values, TD_FLOAT32, error);
        if (status == TD_OK)
            count_values(of, values, count * elements);
    }
    free(values);
    free(order);
    return status;
}

/* scikit-learn's "balanced": all / (classes that there are * those of the class). */
static void weigh_in_balance(const census *of, tdi_weighting *weighting)
{
    int present = 0;
    for (int c = 0; c < of->classes; c++)
        present += of->counts[c] > 0;
    for (int c = 0; c < of->classes; c++)
        if (of->counts[c])
            weighting->class_weights[c] = (float)((double)of->counted / ((double)present * (double)of->counts[c]));
}

static td_status take_balanced(const td_model *model, tdi_source *source, tdi_weighting *weighting, tdi_error *error)
{
    census of = {.model = model, .source = source, .classes = most_classes(model)};
    if (source->sequential || source->samples == TDI_SAMPLES_UNKNOWN)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s is a stream, whose classes cannot be counted before it is trained on: give class_weight",
                        source->name);
    of.counts = calloc((size_t)of.classes, sizeof *of.counts);
    td_status status = of.counts ? grow_classes(weighting, of.classes, error) : tdi_no_memory(error);
    if (status == TD_OK)
        status = count_rows(&of, &model->context->stop, error);
    if (status == TD_OK)
        weigh_in_balance(&of, weighting);
    free(of.counts);
    return status;
}

static td_status take_classes(const td_model *model, tdi_source *source, const tdi_weights_wanted *wanted,
                              tdi_weighting *weighting, tdi_error *error)
{
    if (!wanted->class_weight && !wanted->balanced)
        return TD_OK;
    if (wanted->class_weight && wanted->balanced)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "class_weight: give weights, or have the classes balanced, not both");
    if (model->architecture->n_outputs > 1)
        return tdi_fail(
            error, TD_INVALID_ARGUMENT,
            "class_weight is for models of one output, and model \"%s\" has %d: give sample weights for each",
            model->architecture->name, model->architecture->n_outputs);
    return wanted->balanced ? take_balanced(model, source, weighting, error)
                            : take_list(model, wanted->class_weight, weighting, error);
}

/* ---- setting it ---- */

static bool same(const tdi_weighting *a, const tdi_weighting *b)
{
    return a->columns == b->columns && a->classes == b->classes &&
           memcmp(a->by_position, b->by_position, sizeof a->by_position) == 0 &&
           (!a->classes || memcmp(a->class_weights, b->class_weights, (size_t)a->classes * sizeof(float)) == 0);
}

/* Adopts the class weights of `wanted`. */
static void set(td_model *model, bool trains, const tdi_weighting *wanted)
{
    tdi_weighting *now = &model->weighting[trains];
    if (same(now, wanted)) {
        free(wanted->class_weights);
        return;
    }
    tdi_runtimes_drop_steps(model, trains);
    free(now->class_weights);
    *now = *wanted;
}

td_status tdi_weigh(td_model *model, bool trains, tdi_source *source, const tdi_weights_wanted *wanted,
                    tdi_error *error)
{
    tdi_weighting weighting = {0};
    td_status status = take_columns(model, source, &weighting, error);
    if (status == TD_OK)
        status = take_classes(model, source, wanted, &weighting, error);
    if (status == TD_OK)
        set(model, trains, &weighting);
    else
        free(weighting.class_weights);
    return status;
}

void tdi_weigh_batch(td_model *model, bool trains, bool weights, bool by_position)
{
    const tdi_weighting *now = &model->weighting[trains];
    tdi_weighting weighting = {0};
    if (weights)
        weighting.columns = model->architecture->n_outputs;
    else if (!now->classes)
        return;
    for (int o = 0; o < weighting.columns; o++) {
        td_shape losses = losses_shape(model, o);
        weighting.by_position[o] = by_position && tdi_sample_elements(&losses) > 1;
    }
    set(model, trains, &weighting);
}
