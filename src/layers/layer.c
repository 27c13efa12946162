/* layer.c - makes layers, calls them and declares their weights. */
#include "layers/layer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_ELEMENTS ((int64_t)1 << 40) /* of a weight or a sample; a larger one is a mistake or a hostile file */
#define MAX_STATE    ((int64_t)1 << 28) /* of a state, which a small file can ask for since no file has its values */

#define LIST_LAYER(stem) &tdi_layer_type_##stem,
const tdi_layer_type *const tdi_layer_types[] = {TDI_LAYERS(LIST_LAYER) NULL};
#undef LIST_LAYER

const tdi_layer_type *tdi_layer_type_find(const char *class_name)
{
    for (const tdi_layer_type *const *type = tdi_layer_types; *type; type++)
        if (strcmp((*type)->class_name, class_name) == 0)
            return *type;
    return NULL;
}

static void layer_free(void *object)
{
    tdi_layer *layer = object;
    tdi_vec_free(&layer->weights);
    tdi_vec_free(&layer->states);
}

tdi_layer *tdi_layer_create(td_context *context, const tdi_layer_type *type, const void *args, const char *name,
                            td_choice trainable)
{
    tdi_layer *layer = TDI_NEW(context->arena, tdi_layer);
    void *copy = tdi_alloc(context->arena, type->args_size);
    const char *own_name = name ? tdi_strdup(context->arena, name) : tdi_context_name(context, type->base_name);
    if (!layer || !copy || !own_name || !tdi_context_own_part(context, layer, layer_free))
        return NULL;
    memcpy(copy, args, type->args_size);
    tdi_fields_resolve(type->fields, copy);
    layer->type = type;
    layer->context = context;
    layer->name = own_name;
    layer->args = copy;
    layer->trainable = trainable != TD_NO;
    return layer;
}

const char *tdi_sample_text(const td_shape *sample, char text[TDI_SHAPE_TEXT])
{
    td_shape batched = {.rank = 1, .dim = {TDI_BATCH}};
    for (int i = 0; i < sample->rank && batched.rank < TD_MAX_RANK; i++)
        batched.dim[batched.rank++] = sample->dim[i];
    return tdi_shape_text(&batched, text);
}

/* ---- weights ---- */

/* The product of the extents; 0 when an extent is below 1 or the product is above MAX_ELEMENTS. */
static int64_t elements_of(const td_shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 1 || shape->dim[i] > MAX_ELEMENTS / elements)
            return 0;
        elements *= shape->dim[i];
    }
    return elements;
}

td_status tdi_layer_weight(tdi_layer *layer, const char *name, const td_shape *shape, bool trainable,
                           const td_initializer *initializer, const td_regularizer *regularizer, tdi_error *error)
{
    char text[TDI_SHAPE_TEXT];
    int64_t elements = elements_of(shape);
    if (!elements)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "its %s of shape %s is larger than any machine's memory", name,
                        tdi_shape_text(shape, text));
    if (tdi_initializer_check(initializer, shape, error) != TD_OK) {
        tdi_error_prefix(error, "the initializer of its %s", name);
        return error->status;
    }
    if (regularizer &&
        !(regularizer->l1 >= 0 && regularizer->l1 < INFINITY && regularizer->l2 >= 0 && regularizer->l2 < INFINITY))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "the regularizer of its %s has l1 %g and l2 %g: both must be finite and at least 0", name,
                        (double)regularizer->l1, (double)regularizer->l2);
    tdi_weight *weight = TDI_NEW(layer->context->arena, tdi_weight);
    if (!weight || !tdi_push(&layer->weights, weight))
        return tdi_no_memory(error);
    weight->initializer = *initializer;
    bool trained = trainable && layer->trainable;
    weight->variable = (tdi_variable){
        .layer = layer->name,
        .name = name,
        .shape = *shape,
        .trainable = trained,
        .l1 = trained && regularizer ? regularizer->l1 : 0, /* Keras does not regularize frozen weights */
        .l2 = trained && regularizer ? regularizer->l2 : 0,
        .elements = elements,
    };
    return TD_OK;
}

td_status tdi_layer_state(tdi_layer *layer, const char *name, int64_t units, tdi_error *error)
{
    td_shape shape = {2, {layer->batch, units}};
    if (!layer->batch)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "it is stateful, which takes batches of one size: give td_input, or keras.Input, a batch_size");
    int64_t elements = elements_of(&shape);
    if (!elements || elements > MAX_STATE)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "its state for batches of %lld is %lld x %lld floats; at most %lld floats are possible",
                        (long long)layer->batch, (long long)layer->batch, (long long)units, (long long)MAX_STATE);
    tdi_variable *state = TDI_NEW(layer->context->arena, tdi_variable);
    if (!state || !tdi_push(&layer->states, state))
        return tdi_no_memory(error);
    *state = (tdi_variable){.layer = layer->name, .name = name, .shape = shape, .index = -1, .elements = elements};
    return TD_OK;
}

tdi_node *tdi_layer_parameter(const tdi_emit *emit, const tdi_layer *layer, int index)
{
    return tdi_parameter(emit->graph, &layer->weights.at[index]->variable);
}

/* ---- calls ---- */

static td_tensor *poison(td_context *context)
{
    td_tensor *tensor = TDI_NEW(context->arena, td_tensor);
    if (tensor)
        tensor->context = context;
    return tensor;
}

/* Moves a failure to the context, preceded by its place and layer. */
static td_tensor *call_failed(td_context *context, const char *subject, const td_location *at, tdi_error *error)
{
    if (error->status != TD_NO_MEMORY)
        tdi_error_prefix(error, "%s", subject);
    if (at && at->file)
        tdi_error_prefix(error, "%s:%d", at->file, at->line);
    tdi_fail(&context->error, error->status, "%s", error->message);
    return poison(context);
}

/* A layer's name is a folder in the model's file. */
static td_status check_name(const tdi_layer *layer, tdi_error *error)
{
    if (layer->name[0] && !strchr(layer->name, '/'))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "its name must not be empty and must not contain \"/\"");
}

/* The first batch size that is fixed; 0: none is. */
static int64_t batch_of(int n_in, td_tensor *const *in)
{
    int64_t batch = 0;
    for (int i = 0; i < n_in && !batch; i++)
        batch = in[i]->batch;
    return batch;
}

static td_status check_batches(int n_in, td_tensor *const *in, tdi_error *error)
{
    int64_t batch = batch_of(n_in, in);
    for (int i = 0; i < n_in; i++)
        if (in[i]->batch && in[i]->batch != batch)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "its inputs come in batches of %lld and of %lld samples",
                            (long long)batch, (long long)in[i]->batch);
    return TD_OK;
}

static td_status check_inputs(const tdi_layer *layer, int n_in, td_tensor *const *in, tdi_error *error)
{
    const tdi_layer_type *type = layer->type;
    if (n_in < type->min_in || (type->max_in >= 0 && n_in > type->max_in))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "it takes %s%d input%s and was called on %d",
                        type->max_in == type->min_in ? "" : "at least ", type->min_in, type->min_in == 1 ? "" : "s",
                        n_in);
    for (int i = 0; i < n_in; i++)
        if (in[i]->context != layer->context)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "its inputs belong to different contexts: make the whole model in one td_context");
    for (int i = 0; i < n_in; i++)
        if (in[i]->dtype != TD_FLOAT32 && !type->indices)
            return tdi_fail(error, TD_UNSUPPORTED,
                            "it computes in float32 and was called on an input of %s, which Embedding takes: make the "
                            "input float32, to which data of other types is converted when it is read",
                            td_dtype_name(in[i]->dtype));
    return check_batches(n_in, in, error);
}

/* A layer that has weights fits one extent of the last axis only. */
static td_status check_shared(const tdi_layer *layer, const td_shape *in, tdi_error *error)
{
    const td_shape *first = &layer->build_shape;
    char seen[TDI_SHAPE_TEXT], built[TDI_SHAPE_TEXT];
    if (layer->weights.count == 0 || layer->type->indices || in->dim[in->rank - 1] == first->dim[first->rank - 1])
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "its weights were made for inputs like %s and do not fit %s: share it between inputs whose last "
                    "axis agrees, or make a second layer",
                    tdi_sample_text(first, built), tdi_sample_text(in, seen));
}

static td_status check_output(const td_shape *out, tdi_error *error)
{
    char text[TDI_SHAPE_TEXT];
    if (elements_of(out))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "its output of shape %s is empty or larger than any machine's memory",
                    tdi_sample_text(out, text));
}

static td_status layer_build(tdi_layer *layer, int n_in, td_tensor *const *in, const td_shape *shapes, tdi_error *error)
{
    if (layer->built)
        return n_in ? check_shared(layer, &shapes[0], error) : TD_OK;
    if (n_in) {
        layer->build_shape = shapes[0];
        layer->batch = batch_of(n_in, in);
    }
    if (layer->type->build)
        TDI_TRY(layer->type->build(layer, n_in, shapes, error));
    layer->built = true;
    return TD_OK;
}

static td_status infer_and_build(tdi_layer *layer, int n_in, td_tensor *const *in, td_shape *out, tdi_error *error)
{
    TDI_TRY(check_name(layer, error));
    TDI_TRY(check_inputs(layer, n_in, in, error));
    td_shape *shapes = TDI_NEW_ARRAY(layer->context->arena, td_shape, n_in);
    if (!shapes)
        return tdi_no_memory(error);
    for (int i = 0; i < n_in; i++)
        shapes[i] = in[i]->shape;
    TDI_TRY(layer->type->infer(layer, n_in, shapes, out, error));
    for (int i = 0; i < tdi_layer_outputs(layer); i++)
        TDI_TRY(check_output(&out[i], error));
    return layer_build(layer, n_in, in, shapes, error);
}

static td_tensor *new_tensor(tdi_call_site *site, const td_shape *shape, int64_t batch)
{
    const tdi_layer *layer = site->layer;
    td_tensor *tensor = TDI_NEW(layer->context->arena, td_tensor);
    bool input = layer->type == &tdi_layer_type_input;
    if (!tensor)
        return NULL;
    *tensor = (td_tensor){.context = layer->context,
                          .site = site,
                          .which = site->n_out,
                          .shape = *shape,
                          .batch = batch,
                          .dtype = input ? ((const td_input_args *)layer->args)->dtype : TD_FLOAT32};
    return site->out[site->n_out++] = tensor;
}

static td_tensor *record_call(tdi_layer *layer, int n_in, td_tensor *const *in, const td_shape *shapes)
{
    tdi_arena *arena = layer->context->arena;
    tdi_call_site *site = TDI_NEW(arena, tdi_call_site);
    td_tensor **inputs = TDI_NEW_ARRAY(arena, td_tensor *, n_in);
    if (!site || !inputs)
        return NULL;
    for (int i = 0; i < n_in; i++)
        inputs[i] = in[i];
    *site = (tdi_call_site){.layer = layer, .index = layer->n_calls++, .n_in = n_in, .in = inputs};
    for (int i = 0; i < tdi_layer_outputs(layer); i++)
        if (!new_tensor(site, &shapes[i], n_in ? batch_of(n_in, in) : layer->batch))
            return NULL;
    return site->out[0];
}

int tdi_layer_outputs(const tdi_layer *layer)
{
    return layer->type->outputs ? layer->type->outputs(layer) : 1;
}

td_tensor *tdi_layer_call(tdi_layer *layer, int n_in, td_tensor *const *in, const td_location *at)
{
    td_context *context = layer->context;
    tdi_error error = {0};
    td_shape shapes[TDI_MAX_LAYER_OUTPUTS] = {{0}};
    for (int i = 0; i < n_in; i++)
        if (!in[i] || !in[i]->site)
            return poison(context);
    if (infer_and_build(layer, n_in, in, shapes, &error) != TD_OK) {
        char subject[256];
        snprintf(subject, sizeof subject, "layer \"%s\" (%s)", layer->name, layer->type->class_name);
        return call_failed(context, subject, at, &error);
    }
    td_tensor *out = record_call(layer, n_in, in, shapes);
    if (!out)
        tdi_no_memory(&context->error);
    return out;
}

/* ---- public layer functions ---- */

td_shape td_tensor_shape(const td_tensor *tensor)
{
    return tensor ? tensor->shape : (td_shape){0};
}

td_tensor *td_layer_output(td_tensor *tensor, int index)
{
    if (!tensor || !tensor->site)
        return tensor;
    if (index >= 0 && index < tensor->site->n_out)
        return tensor->site->out[index];
    tdi_error error = {0};
    tdi_fail(&error, TD_INVALID_ARGUMENT, "layer \"%s\" (%s) has %d output%s; there is no number %d",
             tensor->site->layer->name, tensor->site->layer->type->class_name, tensor->site->n_out,
             tensor->site->n_out == 1 ? "" : "s", index);
    return call_failed(tensor->context, "td_layer_output", NULL, &error);
}

int tdi_tensor_list_count(td_tensor *const *tensors)
{
    int count = 0;
    while (tensors && tensors[count])
        count++;
    return count;
}

td_context *tdi_tensors_context(int count, td_tensor *const *tensors)
{
    for (int i = 0; i < count; i++)
        if (tensors[i])
            return tensors[i]->context;
    return NULL;
}

td_tensor *tdi_layer_apply(td_context *context, const tdi_layer_type *type, const void *args, const tdi_layer_use *use)
{
    if (!context)
        return NULL;
    if (use->guard != 0) {
        tdi_error error = {0};
        tdi_fail(&error, TD_INVALID_ARGUMENT,
                 "one positional argument too many: name the options, as in .name = \"first\"");
        return call_failed(context, use->function, &use->at, &error);
    }
    tdi_layer *layer = tdi_layer_create(context, type, args, use->name, use->trainable);
    if (!layer) {
        tdi_no_memory(&context->error);
        return NULL;
    }
    return tdi_layer_call(layer, use->n_in, use->in, &use->at);
}
