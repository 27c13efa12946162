/* program.c - emitting a model's graph for each kind of step. */
#include "model/program.h"

#include <stdio.h>
#include <string.h>

typedef struct builder {
    const td_model *model;
    const tdi_architecture *architecture; /* the model's */
    tdi_program *program;
    tdi_graph *graph;
    tdi_mode mode;
    bool bfloat16; /* where a layer wishes it */
    tdi_emit emit;
    tdi_node *(*values)[TDI_MAX_LAYER_OUTPUTS]; /* by position in model->architecture->sites */
    tdi_node *predictions[TDI_MAX_IO], *targets[TDI_MAX_IO], *losses[TDI_MAX_IO];
    tdi_node *sample_weights[TDI_MAX_IO]; /* per column */
    tdi_node *weights[TDI_MAX_IO];        /* of losses and weighted metrics, [batch] or [batch, ...]; NULL: none */
    tdi_node *metrics[TDI_MAX_IO][TDI_MAX_METRICS];
} builder;

static td_shape with_batch(const td_shape *sample)
{
    td_shape shape = {.rank = sample->rank + 1, .dim = {TDI_BATCH}};
    memcpy(shape.dim + 1, sample->dim, (size_t)sample->rank * sizeof *sample->dim);
    return shape;
}

static bool makes_output(const td_model *model, const tdi_call_site *site)
{
    for (int o = 0; o < model->architecture->n_outputs; o++)
        if (model->architecture->outputs[o]->site == site)
            return true;
    return false;
}

/* Where bfloat16 is asked for the model as a whole, its last layers stay float32, as Keras advises, because the loss is
 * computed of their outputs. */
static bool wishes_bfloat16(const td_model *model, const tdi_call_site *site)
{
    bool all = model->compiled.precision == TD_PRECISION_BFLOAT16 && !makes_output(model, site);
    return site->n_in && model->compiled.precision != TD_PRECISION_FLOAT32 && (all || site->layer->bfloat16);
}

bool tdi_model_wishes_bfloat16(const td_model *model)
{
    bool any = false;
    for (int i = 0; i < model->architecture->sites.count; i++)
        any = any || wishes_bfloat16(model, model->architecture->sites.at[i]);
    return any;
}

static tdi_node *value_of(const builder *b, const td_tensor *tensor)
{
    for (int i = 0; i < b->architecture->sites.count; i++)
        if (b->architecture->sites.at[i] == tensor->site)
            return b->values[i][tensor->which];
    return NULL;
}

static tdi_node *emit_input(const builder *b, const tdi_call_site *site)
{
    for (int i = 0; i < b->architecture->n_inputs; i++) {
        const td_tensor *input = b->architecture->inputs[i];
        if (input->site != site)
            continue;
        td_shape shape = with_batch(&input->shape);
        return tdi_input(b->graph, i, &shape, b->architecture->indices[i] ? TD_INT32 : TD_FLOAT32);
    }
    return NULL;
}

static void emit_call(const builder *b, const tdi_call_site *site, tdi_node **out)
{
    const tdi_layer_type *type = site->layer->type;
    tdi_node **in = TDI_NEW_ARRAY(b->graph->arena, tdi_node *, site->n_in);
    if (!in) {
        tdi_no_memory(&b->graph->error);
        return;
    }
    for (int i = 0; i < site->n_in; i++)
        in[i] = value_of(b, site->in[i]);
    if (type->emit_all)
        type->emit_all(&b->emit, site->layer, site->n_in, in, out);
    else
        out[0] = type->emit(&b->emit, site->layer, site->n_in, in);
}

static td_status emit_layers(builder *b)
{
    b->values = tdi_alloc(b->graph->arena, (size_t)b->architecture->sites.count * sizeof *b->values);
    if (!b->values)
        return tdi_no_memory(&b->graph->error);
    for (int i = 0; i < b->architecture->sites.count; i++) {
        const tdi_call_site *site = b->architecture->sites.at[i];
        b->graph->scope = site->layer->name;
        b->graph->bfloat16 = b->bfloat16 && wishes_bfloat16(b->model, site);
        if (site->n_in)
            emit_call(b, site, b->values[i]);
        else
            b->values[i][0] = emit_input(b, site);
        if (!b->values[i][0])
            return b->graph->error.status != TD_OK
                       ? b->graph->error.status
                       : tdi_fail(&b->graph->error, TD_INTERNAL, "layer \"%s\" emitted nothing", site->layer->name);
    }
    b->graph->bfloat16 = false;
    for (int o = 0; o < b->architecture->n_outputs; o++)
        b->predictions[o] = value_of(b, b->architecture->outputs[o]);
    return TD_OK;
}

static tdi_node *emit_outputs(const builder *b)
{
    tdi_node *node = NULL;
    for (int o = 0; o < b->architecture->n_outputs; o++) {
        b->graph->scope = b->architecture->outputs[o]->site->layer->name;
        node = tdi_place_output(b->graph, b->predictions[o], TDI_HOME_OUTPUT, NULL, o);
        if (!node || !tdi_push(&b->graph->outputs, node))
            return NULL;
    }
    return node;
}

/* ---- the loss ---- */

static tdi_node *emit_target(const builder *b, int output)
{
    const tdi_loss *loss = &b->model->compiled.outputs[output].loss;
    td_shape sample = tdi_loss_target_shape(loss, &b->architecture->outputs[output]->shape);
    td_shape shape = with_batch(&sample);
    td_dtype dtype = tdi_loss_wants_classes(loss) ? TD_INT32 : TD_FLOAT32;
    return tdi_input(b->graph, b->architecture->n_inputs + output, &shape, dtype);
}

/* [batch] as [batch, 1, ...], of the rank of what it weighs. */
static tdi_node *with_rank(tdi_graph *graph, tdi_node *weights, int rank)
{
    td_shape shape = weights ? weights->shape : (td_shape){0};
    if (!weights || shape.rank == rank)
        return weights;
    while (shape.rank < rank)
        shape.dim[shape.rank++] = 1;
    return tdi_reshape(graph, weights, &shape);
}

static tdi_node *emit_sample_weights(builder *b, const tdi_weighting *weighting, int output)
{
    int column = weighting->columns > 1 ? output : 0, first = b->architecture->n_inputs + b->architecture->n_outputs;
    td_shape sample = tdi_model_weight_shape(b->model, tdi_trains(b->mode), column), shape = with_batch(&sample);
    if (!b->sample_weights[column])
        b->sample_weights[column] = tdi_input(b->graph, first + column, &shape, TD_FLOAT32);
    return b->sample_weights[column];
}

/* The product of the sample's weight and its class's. */
static tdi_node *emit_weights(builder *b, int output)
{
    const tdi_weighting *weighting = &b->model->weighting[tdi_trains(b->mode)];
    const tdi_class_weights_attrs attrs = {weighting->classes, weighting->class_weights};
    tdi_node *of_sample = weighting->columns ? emit_sample_weights(b, weighting, output) : NULL;
    tdi_node *of_class = weighting->classes ? tdi_class_weights(b->graph, b->targets[output], &attrs) : NULL;
    if (!of_sample || !of_class)
        return of_sample ? of_sample : of_class;
    return tdi_binary(b->graph, TDI_MULTIPLY, of_class, with_rank(b->graph, of_sample, of_class->shape.rank));
}

/* Emits the output's losses as its weights leave them. As in Keras the caller takes their mean over all positions,
 * those of weight 0 too. */
static void emit_losses(builder *b, const tdi_loss *loss, int output)
{
    tdi_node *losses = tdi_loss_emit(b->graph, loss, b->predictions[output], b->targets[output]);
    if (losses && b->weights[output])
        losses =
            tdi_binary(b->graph, TDI_MULTIPLY, losses, with_rank(b->graph, b->weights[output], losses->shape.rank));
    b->losses[output] = losses;
}

/* The shard's share of the total loss over the global batch, without regularization. An output without a loss adds
 * nothing to it. */
static tdi_node *emit_loss(builder *b)
{
    tdi_node *total = NULL;
    b->graph->scope = "loss";
    for (int o = 0; o < b->architecture->n_outputs; o++) {
        const tdi_output_training *training = &b->model->compiled.outputs[o];
        if (tdi_model_has_target(b->model, o))
            b->targets[o] = emit_target(b, o);
        if (tdi_model_is_weighted(b->model, o))
            b->weights[o] = emit_weights(b, o);
        if (training->loss.kind == TDI_LOSS_NONE)
            continue;
        emit_losses(b, &training->loss, o);
        tdi_node *mean = tdi_batch_mean(b->graph, b->losses[o]);
        if (training->loss_weight != 1.0f)
            mean = tdi_affine(b->graph, mean, training->loss_weight, 0.0f);
        total = total ? tdi_binary(b->graph, TDI_ADD, total, mean) : mean;
    }
    return total;
}

/* ---- backward and update ---- */

static tdi_node *emit_reduction(const builder *b, tdi_variable *variable, tdi_node *gradient)
{
    b->graph->scope = variable->layer;
    tdi_node *node = tdi_place_output(b->graph, gradient, TDI_HOME_GRADIENT, variable, 0);
    float scale = b->model->state->optimizer.loss_scale_factor;
    if (b->graph->exchanged)
        node = tdi_all_reduce(b->graph, node, variable);
    else if (b->graph->shards > 1)
        node = tdi_reduce_scatter(b->graph, node, variable);
    if (scale > 0)
        node = tdi_reduced_gradient(tdi_affine(b->graph, node, 1.0f / scale, 0), variable);
    if (variable->l1 != 0.0f || variable->l2 != 0.0f)
        node = tdi_regularize(b->graph, node, tdi_parameter(b->graph, variable), variable->l1, variable->l2);
    return node;
}

/* The trained variables and their reduced gradients, in the same order. */
typedef struct reductions {
    int count;
    tdi_variable **variables;
    tdi_node **gradients; /* NULL where the loss does not depend on the variable */
} reductions;

static td_status make_reductions(const builder *b, reductions *all)
{
    int most = b->architecture->weights.count;
    *all = (reductions){.variables = TDI_NEW_ARRAY(b->graph->arena, tdi_variable *, most),
                        .gradients = TDI_NEW_ARRAY(b->graph->arena, tdi_node *, most)};
    if (!all->variables || !all->gradients)
        return tdi_no_memory(&b->graph->error);
    for (int i = 0; i < most; i++)
        if (b->architecture->weights.at[i]->variable.trainable)
            all->variables[all->count++] = &b->architecture->weights.at[i]->variable;
    return TD_OK;
}

static td_status emit_updates(const builder *b, const reductions *all)
{
    return tdi_optimizer_emit(b->graph, &b->model->state->optimizer, all->count, all->variables, all->gradients);
}

/* A regularizer trains its variable even where no loss depends on it. */
static void add_regularized(const builder *b, const reductions *all)
{
    for (int i = 0; i < all->count; i++) {
        const tdi_variable *variable = all->variables[i];
        if (!all->gradients[i] && (variable->l1 != 0.0f || variable->l2 != 0.0f))
            all->gradients[i] = tdi_fill(b->graph, 0, &variable->shape);
    }
}

static td_status emit_backward(builder *b, tdi_node *loss)
{
    reductions all;
    TDI_TRY(make_reductions(b, &all));
    tdi_node **of = TDI_NEW_ARRAY(b->graph->arena, tdi_node *, all.count);
    if (!of)
        return tdi_no_memory(&b->graph->error);
    for (int i = 0; i < all.count; i++)
        of[i] = tdi_parameter(b->graph, all.variables[i]);
    if (b->model->state->optimizer.loss_scale_factor > 0)
        loss = tdi_affine(b->graph, loss, b->model->state->optimizer.loss_scale_factor, 0);
    TDI_TRY(tdi_gradients(b->graph, loss, all.count, of, all.gradients));
    add_regularized(b, &all);
    for (int i = all.count - 1; i >= 0; i--)
        if (all.gradients[i])
            all.gradients[i] = emit_reduction(b, all.variables[i], all.gradients[i]);
    if (b->mode == TDI_TRAIN)
        return emit_updates(b, &all);
    for (int i = 0; i < all.count; i++)
        if (all.gradients[i])
            all.gradients[i]->effect = true;
    return b->graph->error.status;
}

/* Emits the updates from the reduced gradients that a TDI_GRADIENTS step has left. */
static td_status emit_apply(const builder *b)
{
    reductions all;
    TDI_TRY(make_reductions(b, &all));
    for (int i = 0; i < all.count; i++) {
        b->graph->scope = all.variables[i]->layer;
        all.gradients[i] = tdi_slot(b->graph, all.variables[i], 0);
        if (all.gradients[i])
            all.gradients[i]->home = TDI_HOME_GRADIENT;
    }
    return b->graph->error.status == TD_OK ? emit_updates(b, &all) : b->graph->error.status;
}

/* ---- metrics ---- */

/* Takes `count` more accumulators and returns the first. */
static int take_slots(const builder *b, int count)
{
    int first = b->program->slots.count;
    b->program->slots.count += count;
    return first;
}

static int accumulate(const builder *b, tdi_node *values)
{
    int slot = take_slots(b, 1);
    tdi_accumulate(b->graph, values, NULL, slot);
    return slot;
}

/* Accumulates as many numbers as rows, so that the penalty is weighted by them as Keras weights a batch's loss. */
static void emit_regularization_metric(const builder *b)
{
    tdi_node *sum = NULL;
    for (int i = 0; i < b->architecture->weights.count; i++) {
        tdi_variable *variable = &b->architecture->weights.at[i]->variable;
        if (variable->l1 == 0.0f && variable->l2 == 0.0f)
            continue;
        tdi_node *term = tdi_regularization(b->graph, tdi_parameter(b->graph, variable), variable->l1, variable->l2);
        sum = sum ? tdi_binary(b->graph, TDI_ADD, sum, term) : term;
    }
    if (sum)
        b->program->slots.regularization = accumulate(b, sum);
}

/* Metrics are computed right after the predictions, and accumulated at the end of the step, where no thread waits. */
static void emit_metrics(builder *b)
{
    b->graph->scope = "metrics";
    for (int o = 0; o < b->architecture->n_outputs; o++) {
        const tdi_output_training *training = &b->model->compiled.outputs[o];
        for (int m = 0; m < training->n_metrics; m++)
            b->metrics[o][m] =
                tdi_metric_emit(b->graph, &training->metrics[m], &training->loss, b->predictions[o], b->targets[o]);
    }
}

static void accumulate_metric(const builder *b, int output, int m)
{
    const tdi_output_training *training = &b->model->compiled.outputs[output];
    tdi_node *weights = tdi_is_weighted(training, m) ? b->weights[output] : NULL;
    int slot = take_slots(b, tdi_metric_accumulators(&training->metrics[m]));
    b->program->slots.metrics[output][m] = slot;
    tdi_metric_accumulate(b->graph, &training->metrics[m], b->metrics[output][m], b->targets[output], weights, slot);
}

static void accumulate_metrics(const builder *b)
{
    b->graph->scope = "metrics";
    tdi_metric_slots *slots = &b->program->slots;
    for (int o = 0; o < b->architecture->n_outputs; o++) {
        slots->loss[o] = b->losses[o] ? accumulate(b, b->losses[o]) : -1;
        for (int m = 0; m < b->model->compiled.outputs[o].n_metrics; m++)
            accumulate_metric(b, o, m);
    }
}

int tdi_program_classes(const td_model *model, int output)
{
    const td_shape *shape = &model->architecture->outputs[output]->shape;
    int64_t width = shape->rank > 0 ? shape->dim[shape->rank - 1] : 0;
    switch (model->compiled.outputs[output].loss.kind) {
    case TDI_LOSS_SPARSE_CATEGORICAL:
    case TDI_LOSS_CATEGORICAL:
        return width > 1 ? (int)width : 0;
    case TDI_LOSS_BINARY:
        return width == 1 ? 2 : 0;
    default:
        return 0;
    }
}

static void count_confusion(builder *b, int output)
{
    const tdi_loss *loss = &b->model->compiled.outputs[output].loss;
    tdi_metric_slots *slots = &b->program->slots;
    int classes = tdi_program_classes(b->model, output);
    bool two = loss->kind == TDI_LOSS_BINARY;
    tdi_class_pairs_attrs attrs = {.classes = classes,
                                   .predicted = two ? TDI_ABOVE : TDI_LARGEST,
                                   .actual = two ? TDI_ABOVE : TDI_LARGEST,
                                   .threshold = loss->from_logits ? 0.0f : 0.5f};
    slots->classes[output] = classes;
    if (!classes)
        return;
    slots->confusion[output] = take_slots(b, tdi_count_accumulators(classes));
    tdi_node *pairs = tdi_class_pairs(b->graph, b->predictions[output], b->targets[output], &attrs);
    tdi_count_pairs(b->graph, pairs, NULL, &(tdi_count_pairs_attrs){classes, false}, slots->confusion[output]);
}

static td_status build(builder *b)
{
    if (b->mode == TDI_APPLY)
        return emit_apply(b);
    TDI_TRY(emit_layers(b));
    if (b->mode == TDI_PREDICT) {
        emit_outputs(b);
        return b->graph->error.status != TD_OK ? b->graph->error.status : tdi_fold(b->graph, &b->program->remarks);
    }
    tdi_node *loss = emit_loss(b);
    if (!loss)
        return b->graph->error.status;
    TDI_TRY(tdi_fold(b->graph, &b->program->remarks));
    b->graph->scope = "regularization";
    emit_regularization_metric(b); /* before the update changes the weights */
    emit_metrics(b);
    if (b->mode == TDI_TRAIN || b->mode == TDI_GRADIENTS) {
        int forward = b->graph->nodes.count;
        TDI_TRY(emit_backward(b, loss));
        b->graph->backward = forward < b->graph->nodes.count ? b->graph->nodes.at[forward] : NULL;
    }
    accumulate_metrics(b);
    for (int o = 0; b->mode == TDI_CONFUSION && o < b->architecture->n_outputs; o++)
        count_confusion(b, o);
    return b->graph->error.status;
}

static td_status run_passes(const builder *b, const tdi_device *device, tdi_error *error)
{
    tdi_program *program = b->program;
    TDI_TRY(tdi_graph_verify(program->graph, error));
    if (device)
        TDI_TRY(tdi_precision(program->graph, device->kernels));
    TDI_TRY(tdi_graph_verify(program->graph, error));
    TDI_TRY(tdi_fuse(program->graph, &program->remarks));
    if (b->model->compiled.rematerialize && b->graph->backward)
        TDI_TRY(tdi_rematerialize(program->graph, b->graph->backward->id, &program->remarks));
    TDI_TRY(tdi_graph_verify(program->graph, error));
    return tdi_schedule_make(program->graph, &program->schedule, &program->collectives, error);
}

td_status tdi_check_logs(const td_model *model, bool validation, tdi_error *error)
{
    const char *largest = "";
    int logs = tdi_model_losses(model) > 1 ? tdi_model_losses(model) + 1 : 1, most = 0;
    for (int o = 0; o < model->architecture->n_outputs; o++)
        for (int m = 0; m < model->compiled.outputs[o].n_metrics; m++) {
            const td_metric *metric = &model->compiled.outputs[o].metrics[m];
            int results = tdi_metric_results(metric);
            logs += results;
            if (results > most) {
                most = results;
                largest = tdi_metric_name(metric);
            }
        }
    int all = (validation ? 2 : 1) * logs + 1; /* and the learning rate */
    if (all <= TD_MAX_LOGS)
        return TD_OK;
    return tdi_fail(
        error, TD_UNSUPPORTED,
        "the losses and metrics give %d numbers an epoch, %d of them %s%s; at most %d can be logged: take fewer "
        "thresholds, or an average over the classes (each class's scores: tandem evaluate --confusion)",
        logs, most, largest, validation ? ", and as many of the validation" : "", TD_MAX_LOGS - 1);
}

td_status tdi_program_create(const td_model *model, tdi_mode mode, const tdi_target *target, tdi_program *program,
                             tdi_error *error)
{
    *program = (tdi_program){0};
    if (mode == TDI_TRAIN || mode == TDI_EVALUATE)
        TDI_TRY(tdi_check_logs(model, false, error));
    *program = (tdi_program){.graph = tdi_graph_create(), .slots = {.regularization = -1}};
    if (!program->graph)
        return tdi_no_memory(error);
    program->graph->shards = target->shards;
    program->graph->effects_last = target->effects_last;
    program->graph->exchanged = target->exchanged;
    program->graph->rows = target->exchanged ? target->rows : 0;
    builder b = {
        .model = model, .architecture = model->architecture, .program = program, .graph = program->graph, .mode = mode};
    b.bfloat16 = target->device && !target->device->no_bfloat16 && !target->float32;
    b.emit = (tdi_emit){.graph = b.graph,
                        .training = mode == TDI_TRAIN || mode == TDI_GRADIENTS,
                        .merge_statistics = target->shards > target->groups,
                        .groups = target->groups > target->shards ? target->groups / target->shards : 1};
    td_status status = build(&b);
    if (status == TD_OK)
        status = run_passes(&b, target->device, &b.graph->error);
    if (status != TD_OK) {
        tdi_fail(error, status, "%s", b.graph->error.message);
        tdi_program_release(program);
    }
    return status;
}

void tdi_program_release(tdi_program *program)
{
    tdi_graph_free(program->graph);
    tdi_vec_free(&program->schedule);
    tdi_vec_free(&program->collectives);
    tdi_text_free(&program->remarks);
    *program = (tdi_program){0};
}

/* ---- logs ---- */

typedef const char *const name_parts[8]; /* up to NULL */

/* Joins the name's pieces without printf, which would show in a small step. Outputs of one layer have one name: as in
 * Keras, whose logs are a dict, the last one's value stands. */
static void add_log(td_logs *logs, double value, name_parts parts)
{
    if (logs->count >= TD_MAX_LOGS)
        return;
    char *name = logs->entry[logs->count].name, *to = name, *last = to + sizeof logs->entry[0].name - 1;
    for (int i = 0; parts[i]; i++)
        for (const char *from = parts[i]; *from && to < last; from++)
            *to++ = *from;
    *to = '\0';
    int at = 0;
    while (at < logs->count && strcmp(logs->entry[at].name, name) != 0)
        at++;
    logs->entry[at].value = value;
    logs->count += at == logs->count;
}

static double mean_of(const double *sums, int slot)
{
    return sums && sums[2 * slot + 1] > 0 ? sums[2 * slot] / sums[2 * slot + 1] : 0;
}

/* Keras numbers metrics of one name: precision, precision_1. A weighted one of a name that is taken is called
 * weighted_precision, then weighted_precision_1. */
static int number_of_name(const tdi_output_training *training, int m, bool *weighted)
{
    int before = 0, weighted_before = 0;
    for (int i = 0; i < m; i++) {
        bool same = strcmp(tdi_metric_name(&training->metrics[i]), tdi_metric_name(&training->metrics[m])) == 0;
        before += same;
        weighted_before += same && tdi_is_weighted(training, i);
    }
    *weighted = before && tdi_is_weighted(training, m);
    return *weighted ? weighted_before - (before == weighted_before) : before;
}

/* A metric with a list of results logs precision[0], ... */
static void add_metric(const tdi_output_training *training, int m, const double *sums, const char *prefix,
                       const char *output, td_logs *logs)
{
    const td_metric *metric = &training->metrics[m];
    bool weighted;
    int number_before = number_of_name(training, m, &weighted), results = tdi_metric_results(metric);
    const char *name = tdi_metric_name(metric), *before = weighted ? "weighted_" : "";
    char number[16] = "", entry[16] = "";
    if (number_before)
        snprintf(number, sizeof number, "_%d", number_before);
    for (int i = 0; i < results; i++) {
        if (results > 1)
            snprintf(entry, sizeof entry, "[%d]", i);
        double value = sums ? tdi_metric_result(metric, sums, i) : 0;
        add_log(logs, value, (name_parts){prefix, output, *output ? "_" : "", before, name, number, entry});
    }
}

static void add_metrics(const td_model *model, const tdi_metric_slots *slots, const double *sums, bool weighted,
                        const char *prefix, td_logs *logs)
{
    for (int o = 0; o < model->architecture->n_outputs; o++) {
        const tdi_output_training *training = &model->compiled.outputs[o];
        const char *output =
            model->architecture->n_outputs > 1 ? model->architecture->outputs[o]->site->layer->name : "";
        for (int m = 0; m < training->n_metrics; m++)
            if (tdi_is_weighted(training, m) == weighted)
                add_metric(training, m, sums ? sums + 2 * slots->metrics[o][m] : NULL, prefix, output, logs);
    }
}

static bool has_loss(const td_model *model, int output)
{
    return model->compiled.outputs[output].loss.kind != TDI_LOSS_NONE;
}

/* As in Keras, the losses of single outputs are logged where there are several losses, not several outputs. */
void tdi_program_logs(const td_model *model, const tdi_metric_slots *slots, const double *sums, const char *prefix,
                      td_logs *logs)
{
    double total = slots->regularization >= 0 ? mean_of(sums, slots->regularization) : 0;
    for (int o = 0; o < model->architecture->n_outputs; o++)
        if (has_loss(model, o))
            total += model->compiled.outputs[o].loss_weight * mean_of(sums, slots->loss[o]);
    add_log(logs, total, (name_parts){prefix, "loss"});
    for (int o = 0; o < model->architecture->n_outputs && tdi_model_losses(model) > 1; o++)
        if (has_loss(model, o))
            add_log(logs, mean_of(sums, slots->loss[o]),
                    (name_parts){prefix, model->architecture->outputs[o]->site->layer->name, "_loss"});
    add_metrics(model, slots, sums, false, prefix, logs);
    add_metrics(model, slots, sums, true, prefix, logs);
}

void tdi_program_log_names(const td_model *model, const char *prefix, td_logs *logs)
{
    static const tdi_metric_slots none = {.regularization = -1};
    tdi_program_logs(model, &none, NULL, prefix, logs);
}
