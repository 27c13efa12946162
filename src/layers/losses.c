/* losses.c - Keras's losses, per position; the caller takes the mean over the batch.
 *
 * With p the prediction, t the target, c the classes of the last axis (keras/src/backend/jax/nn.py, losses/losses.py):
 *   categorical        -sum t log q,  q = clip(p / sum p, 1e-7, 1 - 1e-7); from logits: q = softmax(p)
 *   sparse             the same for a class number t:  -log q[t]
 *   binary             mean of -(t log q + (1 - t) log(1 - q)),  q = clip(p); from logits: q = sigmoid(p)
 *   mean squared error mean of (p - t)^2;  absolute: of |p - t|
 *   Huber              mean of e^2 / 2 for e = |p - t| up to delta, then of delta e - delta^2 / 2
 *   label smoothing s  t (1 - s) + s / c;  binary: t (1 - s) + s / 2
 *   ignored class      0; the other positions are weighted so that the mean over all is the mean over them
 *
 * When the prediction is itself the output of a softmax or a sigmoid, the loss is computed from that op's input, by the
 * exact fused op. The result equals Keras's except where Keras clips (its loss stops at 16.1, with a gradient of 0) and
 * where p is so near 1 that Keras's 1 - p has lost its digits. */
#include <math.h>
#include <string.h>

#include "layers/losses.h"
#include "ops/ops.h"

static const struct {
    const char *class_name, *name, *alias, *other_alias;
} names[] = {
    [TDI_LOSS_SPARSE_CATEGORICAL] = {"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy", NULL, NULL},
    [TDI_LOSS_CATEGORICAL] = {"CategoricalCrossentropy", "categorical_crossentropy", NULL, NULL},
    [TDI_LOSS_BINARY] = {"BinaryCrossentropy", "binary_crossentropy", "bce", "BCE"},
    [TDI_LOSS_MSE] = {"MeanSquaredError", "mean_squared_error", "mse", "MSE"},
    [TDI_LOSS_MAE] = {"MeanAbsoluteError", "mean_absolute_error", "mae", "MAE"},
    [TDI_LOSS_HUBER] = {"Huber", "huber", NULL, NULL},
};

tdi_loss tdi_loss_from_public(td_loss loss)
{
    switch (loss) {
    case TD_SPARSE_CATEGORICAL_CROSSENTROPY:
        return (tdi_loss){.kind = TDI_LOSS_SPARSE_CATEGORICAL};
    case TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS:
        return (tdi_loss){.kind = TDI_LOSS_SPARSE_CATEGORICAL, .from_logits = true};
    case TD_CATEGORICAL_CROSSENTROPY:
        return (tdi_loss){.kind = TDI_LOSS_CATEGORICAL};
    case TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS:
        return (tdi_loss){.kind = TDI_LOSS_CATEGORICAL, .from_logits = true};
    case TD_BINARY_CROSSENTROPY:
        return (tdi_loss){.kind = TDI_LOSS_BINARY};
    case TD_BINARY_CROSSENTROPY_FROM_LOGITS:
        return (tdi_loss){.kind = TDI_LOSS_BINARY, .from_logits = true};
    case TD_MEAN_SQUARED_ERROR:
        return (tdi_loss){.kind = TDI_LOSS_MSE};
    case TD_MEAN_ABSOLUTE_ERROR:
        return (tdi_loss){.kind = TDI_LOSS_MAE};
    case TD_HUBER:
        return (tdi_loss){.kind = TDI_LOSS_HUBER, .delta = 1};
    default:
        return (tdi_loss){.kind = TDI_LOSS_NONE};
    }
}

td_status tdi_loss_ignore(tdi_loss *loss, float number, tdi_error *error)
{
    if (loss->kind != TDI_LOSS_SPARSE_CATEGORICAL)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "ignore_class belongs to %s, and the loss is %s",
                        names[TDI_LOSS_SPARSE_CATEGORICAL].class_name,
                        loss->kind ? names[loss->kind].class_name : "none");
    if (number != floorf(number) || fabsf(number) > (float)TDI_MOST_LABEL)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "ignore_class: %g is not a class number", (double)number);
    loss->ignore = (tdi_ignore_attrs){true, (int32_t)number};
    return TD_OK;
}

td_status tdi_loss_set_delta(tdi_loss *loss, float delta, tdi_error *error)
{
    if (loss->kind != TDI_LOSS_HUBER)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "delta belongs to Huber, and the loss is %s",
                        loss->kind ? names[loss->kind].class_name : "none");
    if (!(delta > 0 && isfinite(delta)))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "delta is %g and must be above 0", (double)delta);
    loss->delta = delta;
    return TD_OK;
}

const char *tdi_loss_class(tdi_loss_kind kind)
{
    return names[kind].class_name;
}

static bool is(const char *name, const char *known)
{
    return known && strcmp(name, known) == 0;
}

tdi_loss_kind tdi_loss_parse(const char *name)
{
    for (tdi_loss_kind kind = TDI_LOSS_SPARSE_CATEGORICAL; kind < TDI_LOSS_KINDS; kind++)
        if (is(name, names[kind].class_name) || is(name, names[kind].name) || is(name, names[kind].alias) ||
            is(name, names[kind].other_alias))
            return kind;
    return TDI_LOSS_NONE;
}

bool tdi_loss_wants_classes(const tdi_loss *loss)
{
    return loss->kind == TDI_LOSS_SPARSE_CATEGORICAL || (loss->kind == TDI_LOSS_NONE && loss->classes);
}

td_shape tdi_loss_target_shape(const tdi_loss *loss, const td_shape *prediction)
{
    td_shape target = *prediction;
    if (tdi_loss_wants_classes(loss) && target.rank > 0)
        target.dim[--target.rank] = 0;
    return target;
}

/* ---- emission ---- */

static unsigned last_axis(const tdi_node *node)
{
    return node ? 1u << (node->shape.rank - 1) : 0;
}

static tdi_node *mean_of_last(tdi_graph *graph, tdi_node *x)
{
    return tdi_reduce(graph, TDI_MEAN, x, last_axis(x), false);
}

static tdi_node *sum_of_last(tdi_graph *graph, tdi_node *x, bool keepdims)
{
    return tdi_reduce(graph, TDI_SUM, x, last_axis(x), keepdims);
}

/* The input of the softmax (binary: sigmoid) that made `prediction`; NULL when another op made it. */
static tdi_node *logits_behind(const tdi_node *prediction, tdi_loss_kind kind)
{
    if (kind != TDI_LOSS_BINARY)
        return prediction->op == &tdi_op_softmax ? prediction->in[0] : NULL;
    if (prediction->op != &tdi_op_unary || ((const tdi_unary_attrs *)prediction->attrs)->kind != TD_SIGMOID)
        return NULL;
    return prediction->in[0];
}

/* clip(p / sum p) */
static tdi_node *distribution(tdi_graph *graph, tdi_node *p)
{
    tdi_node *share = tdi_binary(graph, TDI_DIVIDE, p, sum_of_last(graph, p, true));
    return tdi_unary(graph, share, TDI_UNARY_CLIP_PROBABILITY);
}

/* -log q[t] is computed as the fused loss of log q, which is -log q[t] + log(sum q), minus log(sum q). */
static tdi_node *sparse_from_probabilities(tdi_graph *graph, const tdi_loss *loss, tdi_node *p, tdi_node *classes)
{
    tdi_node *q = distribution(graph, p);
    tdi_node *both = tdi_sparse_softmax_cross_entropy(graph, tdi_unary(graph, q, TDI_UNARY_LOG), classes, loss->ignore);
    tdi_node *second = tdi_unary(graph, sum_of_last(graph, q, false), TDI_UNARY_LOG);
    return tdi_binary(graph, TDI_SUBTRACT, both, second);
}

static tdi_node *categorical_from_probabilities(tdi_graph *graph, tdi_node *p, tdi_node *target)
{
    tdi_node *log_q = tdi_unary(graph, distribution(graph, p), TDI_UNARY_LOG);
    tdi_node *sum = sum_of_last(graph, tdi_binary(graph, TDI_MULTIPLY, target, log_q), false);
    return tdi_unary(graph, sum, TDI_UNARY_NEGATE);
}

static tdi_node *one_less(tdi_graph *graph, tdi_node *x)
{
    return tdi_affine(graph, x, -1, 1);
}

static tdi_node *binary_from_probabilities(tdi_graph *graph, tdi_node *p, tdi_node *target)
{
    tdi_node *q = tdi_unary(graph, p, TDI_UNARY_CLIP_PROBABILITY);
    tdi_node *hit = tdi_binary(graph, TDI_MULTIPLY, target, tdi_unary(graph, q, TDI_UNARY_LOG));
    tdi_node *miss =
        tdi_binary(graph, TDI_MULTIPLY, one_less(graph, target), tdi_unary(graph, one_less(graph, q), TDI_UNARY_LOG));
    return tdi_unary(graph, mean_of_last(graph, tdi_binary(graph, TDI_ADD, hit, miss)), TDI_UNARY_NEGATE);
}

static tdi_node *smooth(tdi_graph *graph, const tdi_loss *loss, tdi_node *target)
{
    float smoothing = loss->label_smoothing;
    if (!target || smoothing == 0)
        return target;
    int64_t classes = loss->kind == TDI_LOSS_BINARY ? 2 : target->shape.dim[target->shape.rank - 1];
    return tdi_affine(graph, target, 1 - smoothing, smoothing / (float)classes);
}

static tdi_node *categorical(tdi_graph *graph, const tdi_loss *loss, tdi_node *prediction, tdi_node *target)
{
    tdi_node *logits = loss->from_logits ? prediction : logits_behind(prediction, loss->kind);
    target = smooth(graph, loss, target);
    return logits ? tdi_softmax_cross_entropy(graph, logits, target)
                  : categorical_from_probabilities(graph, prediction, target);
}

/* Valid positions are counted over all shards of the global batch. */
static tdi_node *weigh_valid(tdi_graph *graph, tdi_node *losses, tdi_node *classes, int32_t ignored)
{
    tdi_node *valid = tdi_all_gather(graph, tdi_count_valid(graph, classes, ignored));
    return tdi_binary(graph, TDI_MULTIPLY, losses, tdi_valid_weights(graph, classes, valid, ignored));
}

static tdi_node *sparse(tdi_graph *graph, const tdi_loss *loss, tdi_node *prediction, tdi_node *classes)
{
    tdi_node *logits = loss->from_logits ? prediction : logits_behind(prediction, loss->kind);
    tdi_node *losses = logits ? tdi_sparse_softmax_cross_entropy(graph, logits, classes, loss->ignore)
                              : sparse_from_probabilities(graph, loss, prediction, classes);
    return loss->ignore.any ? weigh_valid(graph, losses, classes, loss->ignore.number) : losses;
}

static tdi_node *binary(tdi_graph *graph, const tdi_loss *loss, tdi_node *prediction, tdi_node *target)
{
    tdi_node *logits = loss->from_logits ? prediction : logits_behind(prediction, loss->kind);
    target = smooth(graph, loss, target);
    return logits ? mean_of_last(graph, tdi_sigmoid_cross_entropy(graph, logits, target))
                  : binary_from_probabilities(graph, prediction, target);
}

static tdi_node *squared_error(tdi_graph *graph, tdi_node *prediction, tdi_node *target)
{
    tdi_node *error = tdi_binary(graph, TDI_SUBTRACT, prediction, target);
    return mean_of_last(graph, tdi_unary(graph, error, TDI_UNARY_SQUARE));
}

static tdi_node *absolute_error(tdi_graph *graph, tdi_node *prediction, tdi_node *target)
{
    return tdi_unary(graph, tdi_binary(graph, TDI_SUBTRACT, prediction, target), TDI_UNARY_ABS);
}

/* With q = min(e, delta), both pieces are q (e - q / 2). */
static tdi_node *huber(tdi_graph *graph, const tdi_loss *loss, tdi_node *prediction, tdi_node *target)
{
    tdi_node *error = absolute_error(graph, prediction, target);
    tdi_node *q = tdi_binary(graph, TDI_MINIMUM, error, tdi_fill(graph, loss->delta, &(td_shape){0}));
    tdi_node *rest = tdi_binary(graph, TDI_SUBTRACT, error, tdi_affine(graph, q, .5f, 0));
    return mean_of_last(graph, tdi_binary(graph, TDI_MULTIPLY, q, rest));
}

static bool check_shapes(tdi_graph *graph, const tdi_loss *loss, const tdi_node *prediction, const tdi_node *target)
{
    char seen[TDI_SHAPE_TEXT], wanted[TDI_SHAPE_TEXT], given[TDI_SHAPE_TEXT];
    td_shape expected = tdi_loss_target_shape(loss, &prediction->shape);
    const char *name = names[loss->kind].name;
    if (prediction->shape.rank < 2) {
        tdi_fail(&graph->error, TD_INVALID_ARGUMENT,
                 "%s: the prediction %s has no axis but the batch: end the model in a layer whose samples have one",
                 name, tdi_shape_text(&prediction->shape, seen));
        return false;
    }
    if (!tdi_shape_equal(&expected, &target->shape)) {
        tdi_fail(&graph->error, TD_INVALID_ARGUMENT, "%s: for the prediction %s the target must be %s and is %s", name,
                 tdi_shape_text(&prediction->shape, seen), tdi_shape_text(&expected, wanted),
                 tdi_shape_text(&target->shape, given));
        return false;
    }
    return true;
}

tdi_node *tdi_loss_emit(tdi_graph *graph, const tdi_loss *loss, tdi_node *prediction, tdi_node *target)
{
    if (!prediction || !target || !check_shapes(graph, loss, prediction, target))
        return NULL;
    switch (loss->kind) {
    case TDI_LOSS_SPARSE_CATEGORICAL:
        return sparse(graph, loss, prediction, target);
    case TDI_LOSS_CATEGORICAL:
        return categorical(graph, loss, prediction, target);
    case TDI_LOSS_BINARY:
        return binary(graph, loss, prediction, target);
    case TDI_LOSS_MSE:
        return squared_error(graph, prediction, target);
    case TDI_LOSS_MAE:
        return mean_of_last(graph, absolute_error(graph, prediction, target));
    case TDI_LOSS_HUBER:
        return huber(graph, loss, prediction, target);
    default:
        return NULL;
    }
}
