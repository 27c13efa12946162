/* confusion_matrix.c - td_confusion: counts of (actual, predicted), and what follows from them.
 *
 * With n[a][p] the counts, t = n[c][c], row = sum_p n[c][p], column = sum_a n[a][c]: recall t / row, precision
 * t / column, F1 2 t / (row + column), IoU t / (row + column - t), as scikit-learn's classification_report and
 * keras.metrics.MeanIoU have them. */
#include "train/confusion_matrix.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "files/atomic_file.h"

struct td_confusion {
    int classes;
    bool positions;
    int64_t total, ignored;
    int64_t counts[]; /* [classes][classes] */
};

/* ---- made of counts ---- */

td_status tdi_confusion_check(const td_model *model, int output, td_optional ignore_class, tdi_error *error)
{
    if (output < 0 || output >= model->architecture->n_outputs)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "confusion_output: %d; model \"%s\" has %d", output,
                        model->architecture->name, model->architecture->n_outputs);
    if (ignore_class.is_set && ignore_class.value != floorf(ignore_class.value))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "ignore_class: %g is not a class number",
                        (double)ignore_class.value);
    if (!tdi_program_classes(model, output))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "there is no confusion of output \"%s\": its loss is not a cross-entropy that chooses one of "
                        "several classes%s",
                        model->architecture->outputs[output]->site->layer->name,
                        model->architecture->n_outputs > 1 ? "; confusion_output names another output, counted from 0"
                                                           : "");
    return TD_OK;
}

/* The class whose positions are left out: the caller's, else the loss's. */
static td_optional ignored_class(const td_model *model, const td_evaluate_args *args)
{
    tdi_ignore_attrs of_loss = model->compiled.outputs[args->confusion_output].loss.ignore;
    if (args->ignore_class.is_set || !of_loss.any)
        return args->ignore_class;
    return TD_SET((float)of_loss.number);
}

static void take_counts(td_confusion *confusion, const double *counts, td_optional ignore)
{
    int classes = confusion->classes;
    for (int actual = 0; actual < classes; actual++)
        for (int predicted = 0; predicted < classes; predicted++) {
            bool ignored = ignore.is_set && (float)actual == ignore.value;
            int64_t count = ignored ? 0 : (int64_t)counts[actual * classes + predicted];
            confusion->counts[actual * classes + predicted] = count;
            confusion->total += count;
        }
}

td_status tdi_confusion_create(const tdi_runtime *runtime, const td_model *model, const td_evaluate_args *args,
                               int64_t samples, td_confusion **confusion, tdi_error *error)
{
    int output = args->confusion_output, classes = tdi_program_classes(model, output);
    const td_shape *shape = &model->architecture->outputs[output]->shape;
    int64_t positions = tdi_shape_elements(shape) / shape->dim[shape->rank - 1];
    size_t cells = (size_t)classes * (size_t)classes;
    double *counts = malloc(cells * sizeof *counts);
    td_confusion *made = calloc(1, sizeof *made + cells * sizeof *made->counts);
    if (counts && made) {
        made->classes = classes;
        made->positions = positions > 1;
        tdi_runtime_confusion(runtime, output, counts);
        take_counts(made, counts, ignored_class(model, args));
        made->ignored = samples * positions - made->total;
    } else {
        free(made);
        made = NULL;
    }
    free(counts);
    *confusion = made;
    return made ? TD_OK : tdi_no_memory(error);
}

void td_confusion_free(td_confusion *confusion)
{
    free(confusion);
}

/* ---- scores ---- */

int td_confusion_classes(const td_confusion *confusion)
{
    return confusion ? confusion->classes : 0;
}

int td_confusion_positions(const td_confusion *confusion)
{
    return confusion ? confusion->positions : 0;
}

static bool is_class(const td_confusion *confusion, int index)
{
    return index >= 0 && index < td_confusion_classes(confusion);
}

int64_t td_confusion_count(const td_confusion *confusion, int actual, int predicted)
{
    bool both = is_class(confusion, actual) && is_class(confusion, predicted);
    return both ? confusion->counts[actual * confusion->classes + predicted] : 0;
}

int64_t td_confusion_total(const td_confusion *confusion)
{
    return confusion ? confusion->total : 0;
}

int64_t td_confusion_ignored(const td_confusion *confusion)
{
    return confusion ? confusion->ignored : 0;
}

static double ratio(double part, double whole, double else_value)
{
    return whole > 0 ? part / whole : else_value;
}

td_class_scores td_confusion_scores(const td_confusion *confusion, int index)
{
    int64_t row = 0, column = 0;
    for (int other = 0; other < td_confusion_classes(confusion); other++) {
        row += td_confusion_count(confusion, index, other);
        column += td_confusion_count(confusion, other, index);
    }
    double right = (double)td_confusion_count(confusion, index, index), both = (double)(row + column);
    return (td_class_scores){.precision = ratio(right, (double)column, 0),
                             .recall = ratio(right, (double)row, 0),
                             .f1 = ratio(2 * right, both, 0),
                             .iou = ratio(right, both - right, NAN),
                             .support = row};
}

static td_class_scores mean(const td_confusion *confusion, bool weighted)
{
    td_class_scores sum = {.support = td_confusion_total(confusion)};
    double weights = 0;
    for (int c = 0; c < td_confusion_classes(confusion); c++) {
        td_class_scores one = td_confusion_scores(confusion, c);
        if (isnan(one.iou))
            continue;
        double weight = weighted ? (double)one.support : 1;
        sum.precision += weight * one.precision;
        sum.recall += weight * one.recall;
        sum.f1 += weight * one.f1;
        sum.iou += weight * one.iou;
        weights += weight;
    }
    sum.precision = ratio(sum.precision, weights, 0);
    sum.recall = ratio(sum.recall, weights, 0);
    sum.f1 = ratio(sum.f1, weights, 0);
    sum.iou = ratio(sum.iou, weights, 0);
    return sum;
}

td_class_scores td_confusion_mean(const td_confusion *confusion)
{
    return mean(confusion, false);
}

td_class_scores td_confusion_weighted_mean(const td_confusion *confusion)
{
    return mean(confusion, true);
}

double td_confusion_accuracy(const td_confusion *confusion)
{
    double right = 0;
    for (int c = 0; c < td_confusion_classes(confusion); c++)
        right += (double)td_confusion_count(confusion, c, c);
    return ratio(right, (double)td_confusion_total(confusion), 0);
}

/* ---- CSV ---- */

static void print_csv(const td_confusion *confusion, tdi_text *text)
{
    tdi_text_add(text, "actual");
    for (int c = 0; c < confusion->classes; c++)
        tdi_text_format(text, ",%d", c);
    for (int actual = 0; actual < confusion->classes; actual++) {
        tdi_text_format(text, "\n%d", actual);
        for (int c = 0; c < confusion->classes; c++)
            tdi_text_format(text, ",%" PRId64, td_confusion_count(confusion, actual, c));
    }
    tdi_text_add(text, "\n");
}

td_status td_confusion_save(td_context *context, const char *path, const td_confusion *confusion)
{
    tdi_text text = {0};
    if (!context)
        return TD_INVALID_ARGUMENT;
    if (!confusion)
        return tdi_fail(&context->error, TD_INVALID_ARGUMENT, "td_confusion_save: there is no confusion matrix: NULL");
    print_csv(confusion, &text);
    td_status status =
        text.failed ? tdi_no_memory(&context->error) : tdi_atomic_save(path, text.chars, text.length, &context->error);
    tdi_text_free(&text);
    return status;
}
