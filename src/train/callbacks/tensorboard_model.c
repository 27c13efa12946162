/* tensorboard_model.c - a model for TensorBoard: its weights and gradients, its graph, how it is trained. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/program.h"
#include "ops/ops.h"
#include "train/batch_feed.h"
#include "train/callbacks/tensorboard.h"

enum { MOST_IMAGES = 3, TAG = 256 }; /* as many as tf.summary.image keeps */

/* ---- weights ---- */

static const tdi_layer *layer_of(const td_model *model, const tdi_variable *variable)
{
    for (int i = 0; i < model->architecture->layers.count; i++)
        if (strcmp(model->architecture->layers.at[i]->name, variable->layer) == 0)
            return model->architecture->layers.at[i];
    return NULL;
}

/* Keras's path of a variable: a Sequential's name stands in front, a cell's between. */
static void path_of(const td_model *model, const tdi_weight *weight, char path[TAG])
{
    const tdi_variable *variable = &weight->variable;
    const tdi_layer *layer = layer_of(model, variable);
    char cell[64] = "";
    if (layer && layer->type->cell)
        snprintf(cell, sizeof cell, "%s_%s/", layer->type->base_name, layer->type->cell);
    snprintf(path, TAG, "%s%s%s/%s%s", model->architecture->sequential ? model->architecture->name : "",
             model->architecture->sequential ? "/" : "", variable->layer, cell, variable->name);
}

/* Keras's _log_weight_as_image: what a weight of up to three extents that are not 1 looks like. */
typedef struct picture {
    int64_t count, height, width;
    int64_t stride[3]; /* of image, row and column, in elements */
} picture;

static bool as_picture(const td_shape *shape, picture *p)
{
    int64_t dim[TD_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] != 1)
            dim[rank++] = shape->dim[i];
    if (rank == 1)
        *p = (picture){1, dim[0], 1, {0, 1, 1}};
    else if (rank == 2 && dim[0] > dim[1])
        *p = (picture){1, dim[1], dim[0], {0, 1, dim[1]}};
    else if (rank == 2)
        *p = (picture){1, dim[0], dim[1], {0, dim[1], 1}};
    else if (rank == 3)
        *p = (picture){dim[2], dim[0], dim[1], {1, dim[1] * dim[2], dim[2]}};
    return rank >= 1 && rank <= 3;
}

static float at(const picture *p, const float *values, int64_t image, int64_t row, int64_t column)
{
    return values[image * p->stride[0] + row * p->stride[1] + column * p->stride[2]];
}

/* Not as Keras, whose pictures of weights are clipped to [0, 1] and with that nearly black. */
static void shade(const picture *p, const float *values, float least, float greatest, uint8_t *shades)
{
    float scale = greatest > least ? 255.0f / (greatest - least) : 0;
    for (int64_t i = 0; i < p->count; i++)
        for (int64_t r = 0; r < p->height; r++)
            for (int64_t c = 0; c < p->width; c++) {
                float value = at(p, values, i, r, c);
                *shades++ = isfinite(value) ? (uint8_t)lrintf((value - least) * scale) : 0;
            }
}

static td_status write_images(tdi_events *events, const char *path, int64_t step, const td_shape *shape,
                              const float *values, tdi_error *error)
{
    picture p;
    char tag[TAG + 16];
    float least = INFINITY, greatest = -INFINITY;
    if (!as_picture(shape, &p))
        return TD_OK;
    p.count = p.count < MOST_IMAGES ? p.count : MOST_IMAGES;
    uint8_t *shades = malloc((size_t)(p.count * p.height * p.width));
    if (!shades)
        return tdi_no_memory(error);
    for (int64_t i = 0; i < tdi_shape_elements(shape); i++)
        if (isfinite(values[i])) {
            least = fminf(least, values[i]);
            greatest = fmaxf(greatest, values[i]);
        }
    shade(&p, values, least, greatest, shades);
    snprintf(tag, sizeof tag, "%s/image", path);
    tdi_events_images(events, tag, step, p.count, p.height, p.width, shades);
    free(shades);
    return TD_OK;
}

static void write_histogram(tdi_events *events, const char *path, const char *kind, int64_t step, const float *values,
                            int64_t count)
{
    char tag[TAG + 32];
    snprintf(tag, sizeof tag, "%s/%s", path, kind);
    tdi_events_histogram(events, tag, step, values, count);
}

/* ---- gradients ---- */

/* The gradients of the mean loss over the epoch's first batch, at the present weights. */
static td_status compute_gradients(td_training *training, tdi_error *error)
{
    tdi_runtime *runtime;
    int64_t samples = training->source->samples, rows = training->batch < samples ? training->batch : samples;
    tdi_source_feed feed = {
        .source = training->source, .order = training->order, .batch = rows, .model = training->model};
    tdi_job job = {.mode = TDI_GRADIENTS,
                   .feed = tdi_feed_source(&feed),
                   .steps = 1,
                   .batch = rows,
                   .samples = rows,
                   .seed = training->seed};
    TDI_TRY(tdi_runtime_alone_for(training->model, TDI_GRADIENTS, rows, &runtime, error));
    tdi_runtime_reset_sums(runtime, TDI_GRADIENTS);
    return tdi_runtime_run(runtime, &job, error);
}

static void write_gradients(tdi_events *events, const td_training *training)
{
    const td_model *model = training->model;
    for (int i = 0; i < model->architecture->weights.count; i++) {
        char path[TAG];
        const tdi_variable *variable = &model->architecture->weights.at[i]->variable;
        if (!variable->trainable)
            continue;
        path_of(model, model->architecture->weights.at[i], path);
        write_histogram(events, path, "gradient", training->epoch,
                        tdi_runtime_gradient(tdi_runtime_own(model), variable), tdi_shape_elements(&variable->shape));
    }
}

/* A forward step in training changes batch statistics and states, which are restored. */
static td_status look_at_gradients(tdi_events *events, td_training *training, tdi_error *error)
{
    td_model *model = training->model;
    size_t bytes = (size_t)(model->architecture->total - model->architecture->trained) * sizeof(float);
    float *moved = tdi_model_write_values(model) + model->architecture->trained, *kept = malloc(bytes + 1);
    if (!kept)
        return tdi_no_memory(error);
    memcpy(kept, moved, bytes);
    td_status status = compute_gradients(training, error);
    memcpy(moved, kept, bytes);
    free(kept);
    if (status == TD_NOT_FINITE)
        return TD_OK; /* the training itself will say so */
    if (status == TD_OK)
        write_gradients(events, training);
    return status;
}

td_status tdi_tensorboard_weights(tdi_events *events, td_training *training, bool images, tdi_error *error)
{
    const td_model *model = training->model;
    for (int i = 0; i < model->architecture->weights.count; i++) {
        char path[TAG];
        const tdi_variable *variable = &model->architecture->weights.at[i]->variable;
        const float *values = tdi_model_value(model, variable);
        path_of(model, model->architecture->weights.at[i], path);
        write_histogram(events, path, "histogram", training->epoch, values, tdi_shape_elements(&variable->shape));
        if (images)
            TDI_TRY(write_images(events, path, training->epoch, &variable->shape, values, error));
    }
    return look_at_gradients(events, training, error);
}

/* ---- graph ---- */

static char *name_of(tdi_arena *arena, const tdi_node *node)
{
    char *name = tdi_alloc(arena, TAG);
    const char *scope = node->scope ? node->scope : "graph";
    if (name && node->variable && node->op == &tdi_op_parameter)
        snprintf(name, TAG, "%s/%s", node->variable->layer, node->variable->name);
    else if (name)
        snprintf(name, TAG, "%s/%s_%d", scope, node->op->name, node->id);
    return name;
}

static const char *words_of(tdi_arena *arena, const tdi_node *node)
{
    char *words = node->op->describe ? tdi_alloc(arena, TAG) : NULL;
    if (words)
        node->op->describe(node, words, TAG);
    return words;
}

static td_status fill_graph(const tdi_graph *graph, tdi_arena *arena, tdi_events_node *nodes, tdi_error *error)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        const tdi_node *from = graph->nodes.at[i];
        const char **inputs = TDI_NEW_ARRAY(arena, const char *, from->n_in);
        nodes[i] = (tdi_events_node){.name = name_of(arena, from),
                                     .op = from->op->name,
                                     .inputs = inputs,
                                     .shape = from->shape,
                                     .words = words_of(arena, from)};
        if (!nodes[i].name || !inputs)
            return tdi_no_memory(error);
        for (int k = 0; k < from->n_in; k++)
            for (int j = 0; from->in[k] && j < i; j++)
                if (graph->nodes.at[j] == from->in[k])
                    inputs[nodes[i].n_inputs++] = nodes[j].name;
    }
    return TD_OK;
}

static td_status write_graph(tdi_events *events, const tdi_graph *graph, tdi_error *error)
{
    tdi_arena *arena = tdi_arena_create();
    tdi_events_node *nodes = arena ? TDI_NEW_ARRAY(arena, tdi_events_node, graph->nodes.count) : NULL;
    td_status status = nodes ? fill_graph(graph, arena, nodes, error) : tdi_no_memory(error);
    if (status == TD_OK)
        tdi_events_graph(events, graph->nodes.count, nodes);
    tdi_arena_free(arena);
    return status;
}

td_status tdi_tensorboard_graph(tdi_events *events, td_model *model, tdi_error *error)
{
    tdi_program program;
    TDI_TRY(tdi_program_create(model, TDI_TRAIN, &(tdi_target){.shards = 1, .groups = 1}, &program, error));
    td_status status = write_graph(events, program.graph, error);
    tdi_program_release(&program);
    return status;
}

/* ---- hyper-parameters ---- */

static char *summary_text(td_model *model)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    fputs("```\n", file);
    td_status status = td_summary(model, file);
    fputs("```\n", file);
    if (fclose(file) == 0 && status == TD_OK)
        return text;
    free(text);
    return NULL;
}

/* 0.001, not the 0.0010000000474974513 that the float is. */
static double decimal(float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value);
    return strtod(text, NULL);
}

static const char *first_loss(const td_model *model)
{
    int o = 0;
    while (o < model->architecture->n_outputs - 1 && model->compiled.outputs[o].loss.kind == TDI_LOSS_NONE)
        o++;
    return tdi_loss_class(model->compiled.outputs[o].loss.kind);
}

td_status tdi_tensorboard_hparams(tdi_events *events, const td_training *training, const char *group)
{
    td_model *model = training->model;
    const tdi_config_type *optimizer = tdi_config_type_of(tdi_optimizer_types, model->state->optimizer.kind);
    tdi_hparam hparams[] = {
        {"model", model->architecture->name, 0},
        {"optimizer", optimizer ? optimizer->class_name : "none", 0},
        {"learning_rate", NULL, decimal(model->state->optimizer.learning_rate)},
        {"weight_decay", NULL, decimal(model->state->optimizer.weight_decay)},
        {"batch_size", NULL, (double)training->batch},
        {"epochs", NULL, (double)training->epochs},
        {"parameters", NULL, (double)td_parameter_count(model, NULL)},
        {"loss", first_loss(model), 0},
        {"data", training->source->name, 0},
    };
    tdi_events_session_start(events, group, (int)(sizeof hparams / sizeof *hparams), hparams);
    char *summary = summary_text(model);
    if (summary)
        tdi_events_text(events, "summary", 0, summary);
    free(summary);
    return TD_OK;
}
