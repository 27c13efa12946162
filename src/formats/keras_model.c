/* keras_model.c - the architecture in config.json: Sequential and Functional models, both ways.
 *
 * A Functional model lists its layers; each has its calls ("inbound_nodes"), whose tensors name a layer, which of its
 * calls, and which of that call's outputs: "keras_history": ["dense", 0, 0]. Layers may stand in any order. */
#include <stdlib.h>
#include <string.h>

#include "formats/keras_json.h"

/* Weights may be packed, or of smaller numbers than floats: up to ROOM bytes, or PACKED times the file's, are believed.
 */
#define ROOM   ((size_t)16 << 20)
#define PACKED 16

static const char *const layer_keys[] = {"name", "trainable", "dtype", "batch_input_shape", NULL};

/* ---- reading layers ---- */

enum { MOST_NESTED = 256 }; /* for small stacks */

typedef struct pending {
    tdi_layer *layer;
    const json_t *nodes; /* NULL: an input */
    td_tensor **outputs; /* of its calls */
    int n_nodes, n_done;
    bool busy;
} pending;

typedef struct reader {
    td_context *context;
    bool frozen;                   /* the whole model is */
    int n_layers, n_calls, nested; /* calls being made for the inputs of others */
    pending *layers;
    json_t *index;    /* layer's name -> position */
    int64_t elements; /* of all weights */
    tdi_error *error;
} reader;

static td_status unknown_class(const char *module, tdi_error *error)
{
    char known[512] = "";
    size_t used = 0;
    if (module && (strncmp(module, "keras.src.ops", 13) == 0 || strncmp(module, "keras.ops", 9) == 0))
        return tdi_fail(error, TD_UNSUPPORTED,
                        "it is an operation of keras.ops, of which masks are made too (Masking, mask_zero); Tandem "
                        "runs layers alone, without masks");
    for (int i = 0; tdi_layer_types[i] && used < sizeof known; i++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", tdi_layer_types[i]->class_name);
    return tdi_fail(error, TD_UNSUPPORTED, "Tandem does not know this class of layer; it knows %s", known);
}

static td_status check_class(const json_t *object, const char *class_name, const tdi_layer_type *type, tdi_error *error)
{
    const char *module = tdi_keras_text(object, "module");
    if (strcmp(class_name, "Lambda") == 0)
        return tdi_fail(error, TD_UNSUPPORTED, "it holds Python code, which Tandem does not run");
    if (strcmp(class_name, "Sequential") == 0 || strcmp(class_name, "Functional") == 0 ||
        strcmp(class_name, "Model") == 0)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "a model inside a model cannot be read; put its layers in the outer one");
    if (module && strncmp(module, "keras", 5) != 0)
        return tdi_fail(error, TD_UNSUPPORTED, "it is of the module \"%.64s\"; Tandem knows Keras's own layers alone",
                        module);
    if (!type)
        return unknown_class(module, error);
    return TD_OK;
}

/* Older files write an input's shape as "batch_input_shape". */
static td_status read_input_shape(reader *r, const json_t *config, td_input_args *args)
{
    const json_t *shape = json_object_get(config, "batch_shape");
    if (!shape)
        shape = json_object_get(config, "batch_input_shape");
    return tdi_keras_read_batch_shape(shape, &args->shape, &args->batch_size, r->error);
}

static td_status read_layer_args(reader *r, const tdi_layer_type *type, const json_t *config, void *args)
{
    if (strcmp(type->class_name, "InputLayer") == 0) {
        TDI_TRY(tdi_keras_read_dtype(json_object_get(config, "dtype"), &((td_input_args *)args)->dtype, r->error));
        TDI_TRY(read_input_shape(r, config, args));
    }
    return tdi_keras_read_fields(type->fields, config, layer_keys, args, r->error);
}

static td_status make_layer(reader *r, const tdi_layer_type *type, const json_t *config, const char *name,
                            tdi_layer **layer)
{
    bool frozen = r->frozen || json_is_false(json_object_get(config, "trainable"));
    bool bfloat16 = false;
    if (type != &tdi_layer_type_input)
        TDI_TRY(tdi_keras_read_policy(json_object_get(config, "dtype"), &bfloat16, r->error));
    void *args = calloc(1, type->args_size);
    if (!args)
        return tdi_no_memory(r->error);
    td_status status = read_layer_args(r, type, config, args);
    *layer = status == TD_OK ? tdi_layer_create(r->context, type, args, name, frozen ? TD_NO : TD_YES) : NULL;
    free(args);
    if (*layer)
        (*layer)->bfloat16 = bfloat16;
    return status == TD_OK && !*layer ? tdi_no_memory(r->error) : status;
}

static td_status read_layer(reader *r, const json_t *object, tdi_layer **layer)
{
    const char *class_name = tdi_keras_text(object, "class_name");
    const json_t *config = json_object_get(object, "config");
    const char *name = tdi_keras_text(config, "name");
    if (!name)
        name = tdi_keras_text(object, "name");
    if (!class_name || !json_is_object(config) || !name || !name[0])
        return tdi_fail(r->error, TD_BAD_FILE, "a layer has no class, name or config");
    const tdi_layer_type *type = tdi_layer_type_find(class_name);
    td_status status = check_class(object, class_name, type, r->error);
    if (status == TD_OK)
        status = make_layer(r, type, config, name, layer);
    if (status != TD_OK && status != TD_NO_MEMORY)
        tdi_error_prefix(r->error, "layer \"%.64s\" (%.64s)", name, class_name);
    return status;
}

/* A layer's own failure is in the context's error, which is the reader's. */
static td_status call_layer(reader *r, tdi_layer *layer, int n_in, td_tensor *const *in, td_tensor **out)
{
    if (++r->n_calls > TDI_MAX_LAYERS)
        return tdi_fail(r->error, TD_UNSUPPORTED, "the model makes more than %d calls of layers", TDI_MAX_LAYERS);
    bool first = !layer->built;
    *out = tdi_layer_call(layer, n_in, in, &(td_location){0});
    for (int i = 0; first && i < layer->weights.count; i++)
        if (__builtin_add_overflow(r->elements, layer->weights.at[i]->variable.elements, &r->elements))
            r->elements = INT64_MAX;
    return *out ? r->error->status : tdi_no_memory(r->error);
}

/* ---- Sequential ---- */

static td_status read_layer_list(const json_t *config, const json_t **layers, tdi_error *error)
{
    *layers = json_object_get(config, "layers");
    if (!json_is_array(*layers) || json_array_size(*layers) == 0)
        return tdi_fail(error, TD_BAD_FILE, "the model has no list of layers");
    if (json_array_size(*layers) > TDI_MAX_LAYERS)
        return tdi_fail(error, TD_UNSUPPORTED, "the model has %zu layers; at most %d are possible",
                        json_array_size(*layers), TDI_MAX_LAYERS);
    return TD_OK;
}

/* A Sequential that was built by its first data has no InputLayer, but remembers the shape. */
static const json_t *built_shape(const json_t *root, const json_t *layers)
{
    const json_t *config = json_object_get(root, "config");
    const json_t *candidates[] = {
        json_object_get(config, "build_input_shape"),
        json_object_get(json_object_get(root, "build_config"), "input_shape"),
        json_object_get(json_object_get(json_array_get(layers, 0), "config"), "batch_input_shape"),
        json_object_get(json_object_get(json_array_get(layers, 0), "config"), "batch_shape"),
    };
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (json_is_array(candidates[i]))
            return candidates[i];
    return NULL;
}

static td_status make_input(reader *r, const json_t *shape, td_tensor **out)
{
    td_input_args args = {0};
    if (!shape)
        return tdi_fail(
            r->error, TD_UNSUPPORTED,
            "the model was saved without its input's shape; in Keras begin it with keras.Input(shape), or call "
            "it once, and save again");
    TDI_TRY(tdi_keras_read_batch_shape(shape, &args.shape, &args.batch_size, r->error));
    tdi_layer *input = tdi_layer_create(r->context, tdi_layer_type_find("InputLayer"), &args, "input_layer", TD_YES);
    return input ? call_layer(r, input, 0, NULL, out) : tdi_no_memory(r->error);
}

static bool is_input(const json_t *object)
{
    const char *class_name = tdi_keras_text(object, "class_name");
    return class_name && strcmp(class_name, "InputLayer") == 0;
}

static td_status read_sequential(reader *r, const json_t *root, td_tensor **input, td_tensor **output)
{
    const json_t *layers;
    tdi_layer *layer;
    TDI_TRY(read_layer_list(json_object_get(root, "config"), &layers, r->error));
    size_t first = 0;
    if (is_input(json_array_get(layers, 0))) {
        TDI_TRY(read_layer(r, json_array_get(layers, first++), &layer));
        TDI_TRY(call_layer(r, layer, 0, NULL, input));
    } else {
        TDI_TRY(make_input(r, built_shape(root, layers), input));
    }
    *output = *input;
    for (size_t i = first; i < json_array_size(layers); i++) {
        TDI_TRY(read_layer(r, json_array_get(layers, i), &layer));
        if (tdi_layer_outputs(layer) > 1)
            return tdi_fail(r->error, TD_UNSUPPORTED,
                            "layer \"%.64s\" (%s) has several outputs, which a Sequential model cannot pass on",
                            layer->name, layer->type->class_name);
        TDI_TRY(call_layer(r, layer, 1, output, output));
    }
    return TD_OK;
}

/* ---- Functional ---- */

static td_status make_call(reader *r, pending *layer);

/* The tensor ["dense", 0, 0]; makes the calls it depends on. */
static td_status find_tensor(reader *r, const json_t *history, td_tensor **tensor)
{
    char text[TDI_KERAS_TEXT];
    const char *name = json_string_value(json_array_get(history, 0));
    const json_t *node = json_array_get(history, 1), *which = json_array_get(history, 2);
    const json_t *at = name ? json_object_get(r->index, name) : NULL;
    pending *from = at ? &r->layers[json_integer_value(at)] : NULL;
    json_int_t number = json_integer_value(node);
    json_int_t output = json_integer_value(which);
    if (!from || !json_is_integer(node) || !json_is_integer(which) || number < 0 || number >= from->n_nodes ||
        output < 0 || output >= tdi_layer_outputs(from->layer))
        return tdi_fail(r->error, TD_BAD_FILE, "the tensor %s is not the output of any call",
                        tdi_keras_show(history, text));
    while (from->n_done <= number)
        TDI_TRY(make_call(r, from));
    *tensor = from->outputs[number]->site->out[output];
    return TD_OK;
}

/* {"class_name": "__keras_tensor__", "config": {"keras_history": [...]}}, or the bare list of Keras 2. */
static const json_t *history_of(const json_t *value)
{
    const char *class_name = tdi_keras_text(value, "class_name");
    if (class_name && strcmp(class_name, "__keras_tensor__") == 0)
        return json_object_get(json_object_get(value, "config"), "keras_history");
    if (json_is_array(value) && json_is_string(json_array_get(value, 0)))
        return value;
    return NULL;
}

/* Beside `keyword`. Keras notes what "training" was when the model was made, but fit, evaluate and predict each pass
 * their own. */
static bool holds_nothing(const json_t *kwargs, const char *keyword)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)kwargs, key, value)
    {
        bool noted = (strcmp(key, "training") == 0 && json_is_boolean(value)) || (keyword && strcmp(key, keyword) == 0);
        if (!json_is_null(value) && !noted)
            return false;
    }
    return true;
}

/* What is passed by the layer's keyword, or second in its place, LSTM(8)(x, [h, c]): a list, or NULL for nothing. */
static td_status call_keyword(reader *r, const tdi_layer *layer, const json_t *args, const json_t *kwargs,
                              const json_t **list)
{
    char text[TDI_KERAS_TEXT];
    const char *keyword = layer->type->keyword;
    const json_t *value = keyword ? json_object_get(kwargs, keyword) : NULL, *second = json_array_get(args, 1);
    if (!value || json_is_null(value))
        value = second;
    else if (second && !json_is_null(second))
        return tdi_fail(r->error, TD_BAD_FILE, "layer \"%.64s\" is called with %s twice", layer->name, keyword);
    *list = json_is_array(value) ? value : NULL;
    if (!value || json_is_null(value) || *list)
        return TD_OK;
    return tdi_fail(r->error, TD_UNSUPPORTED, "layer \"%.64s\" is called with %s = %s, which is not a list of tensors",
                    layer->name, keyword, tdi_keras_show(value, text));
}

/* The tensors of a call, and those passed by the layer's keyword. */
typedef struct inputs {
    const json_t *list, *named;
    size_t count; /* of the list's first ones */
} inputs;

/* One tensor, or one list of them; x + y is an Add that is called on two. */
static bool find_list(const tdi_layer *layer, const json_t *args, inputs *to)
{
    const json_t *first = json_array_get(args, 0);
    size_t count = json_array_size(args);
    to->list = json_is_array(first) ? first : args;
    to->count = json_is_array(first) ? json_array_size(first) : layer->type->list_input ? count : 1;
    return count == 1 || (count == 2 && layer->type->keyword) || (count > 1 && to->list == args && to->count == count);
}

/* Keras 2 wrote every call as a list. */
static td_status call_arguments(reader *r, const tdi_layer *layer, const json_t *node, inputs *to)
{
    char text[TDI_KERAS_TEXT];
    const json_t *args = json_object_get(node, "args"), *kwargs = json_object_get(node, "kwargs");
    if (json_is_array(node)) {
        *to = (inputs){.list = node, .count = json_array_size(node)};
        return TD_OK;
    }
    if (!holds_nothing(kwargs, layer->type->keyword))
        return tdi_fail(r->error, TD_UNSUPPORTED,
                        "layer \"%.64s\" is called with the arguments %s, which Tandem cannot pass", layer->name,
                        tdi_keras_show(kwargs, text));
    if (!find_list(layer, args, to))
        return tdi_fail(r->error, TD_UNSUPPORTED,
                        "layer \"%.64s\" is called on %zu arguments, %s; Tandem calls it on one tensor or one list",
                        layer->name, json_array_size(args), args ? tdi_keras_show(args, text) : "none");
    return layer->type->list_input ? TD_OK : call_keyword(r, layer, args, kwargs, &to->named);
}

static td_status find_tensors(reader *r, const char *name, const json_t *list, size_t count, td_tensor **in)
{
    char text[TDI_KERAS_TEXT];
    for (size_t i = 0; i < count; i++) {
        const json_t *history = history_of(json_array_get(list, i)), *given = json_array_get(history, 3);
        if (!holds_nothing(given, NULL))
            return tdi_fail(r->error, TD_UNSUPPORTED,
                            "layer \"%.64s\" is called with the arguments %s, which Tandem cannot pass", name,
                            tdi_keras_show(given, text));
        if (!history)
            return tdi_fail(r->error, TD_UNSUPPORTED,
                            "layer \"%.64s\" is called on %s, which is not a tensor of the model", name,
                            tdi_keras_show(json_array_get(list, i), text));
        TDI_TRY(find_tensor(r, history, &in[i]));
    }
    return TD_OK;
}

static td_status make_call_of(reader *r, pending *layer, const json_t *node)
{
    inputs from = {0};
    TDI_TRY(call_arguments(r, layer->layer, node, &from));
    size_t named = json_array_size(from.named), count = from.count + named;
    td_tensor **in = calloc(count + 1, sizeof *in);
    if (!in || count > TDI_MAX_LAYERS) {
        free(in);
        return tdi_no_memory(r->error);
    }
    td_status status = find_tensors(r, layer->layer->name, from.list, from.count, in);
    if (status == TD_OK)
        status = find_tensors(r, layer->layer->name, from.named, named, in + from.count);
    if (status == TD_OK)
        status = call_layer(r, layer->layer, (int)count, in, &layer->outputs[layer->n_done]);
    free(in);
    return status;
}

/* The layer's next call. Calls of a layer are made in order, since their order is their name. */
static td_status make_call(reader *r, pending *layer)
{
    if (layer->busy)
        return tdi_fail(r->error, TD_BAD_FILE, "layer \"%.64s\": its calls form a loop", layer->layer->name);
    if (r->nested == MOST_NESTED)
        return tdi_fail(r->error, TD_UNSUPPORTED,
                        "layer \"%.64s\": what it is called on is made by more than %d layers behind it; list layers "
                        "behind their inputs, as Keras does",
                        layer->layer->name, MOST_NESTED);
    layer->busy = true;
    r->nested++;
    td_status status = layer->nodes ? make_call_of(r, layer, json_array_get(layer->nodes, (size_t)layer->n_done))
                                    : call_layer(r, layer->layer, 0, NULL, &layer->outputs[layer->n_done]);
    r->nested--;
    layer->busy = false;
    layer->n_done += status == TD_OK;
    return status;
}

static td_status list_layer(reader *r, const json_t *object, pending *layer)
{
    const json_t *nodes = json_object_get(object, "inbound_nodes");
    TDI_TRY(read_layer(r, object, &layer->layer));
    bool input = is_input(object);
    layer->nodes = input ? NULL : nodes;
    layer->n_nodes = input ? 1 : (int)json_array_size(nodes);
    layer->outputs = calloc((size_t)layer->n_nodes + 1, sizeof *layer->outputs);
    if (!layer->outputs)
        return tdi_no_memory(r->error);
    if (json_object_get(r->index, layer->layer->name))
        return tdi_fail(r->error, TD_BAD_FILE, "two layers are named \"%.64s\"", layer->layer->name);
    if (json_object_set_new(r->index, layer->layer->name, json_integer(layer - r->layers)) != 0)
        return tdi_no_memory(r->error);
    return TD_OK;
}

/* "input_layers" and "output_layers": one tensor, or a list of them. */
static td_status read_ends(reader *r, const json_t *config, const char *key, int *count, td_tensor **tensors)
{
    char text[TDI_KERAS_TEXT];
    const json_t *ends = json_object_get(config, key);
    bool one = json_is_string(json_array_get(ends, 0));
    size_t n = one ? 1 : json_array_size(ends);
    if (!json_is_array(ends) || n == 0)
        return tdi_fail(r->error, TD_UNSUPPORTED, "\"%s\" is %s; Tandem reads one tensor or a list of them", key,
                        tdi_keras_show(ends, text));
    if (n > TDI_MAX_IO)
        return tdi_fail(r->error, TD_UNSUPPORTED, "\"%s\" names %zu tensors; at most %d are possible", key, n,
                        TDI_MAX_IO);
    for (size_t i = 0; i < n; i++) {
        const json_t *end = one ? ends : json_array_get(ends, i);
        if (!json_is_array(end))
            return tdi_fail(r->error, TD_UNSUPPORTED, "\"%s\" is %s; Tandem reads one tensor or a list of them", key,
                            tdi_keras_show(ends, text));
        TDI_TRY(find_tensor(r, end, &tensors[i]));
    }
    *count = (int)n;
    return TD_OK;
}

typedef struct ends {
    int n_inputs, n_outputs;
    td_tensor *inputs[TDI_MAX_IO], *outputs[TDI_MAX_IO];
} ends;

static td_status read_functional(reader *r, const json_t *config, ends *to)
{
    const json_t *layers;
    TDI_TRY(read_layer_list(config, &layers, r->error));
    r->n_layers = (int)json_array_size(layers);
    r->layers = calloc((size_t)r->n_layers, sizeof *r->layers);
    r->index = json_object();
    if (!r->layers || !r->index)
        return tdi_no_memory(r->error);
    for (int i = 0; i < r->n_layers; i++)
        TDI_TRY(list_layer(r, json_array_get(layers, (size_t)i), &r->layers[i]));
    for (int i = 0; i < r->n_layers; i++) /* in Keras's order, so that none waits for many others */
        if (r->layers[i].n_nodes > 0 && r->layers[i].n_done == 0)
            TDI_TRY(make_call(r, &r->layers[i]));
    TDI_TRY(read_ends(r, config, "input_layers", &to->n_inputs, to->inputs));
    return read_ends(r, config, "output_layers", &to->n_outputs, to->outputs);
}

static void release(reader *r)
{
    for (int i = 0; i < r->n_layers && r->layers; i++)
        free(r->layers[i].outputs);
    free(r->layers);
    json_decref(r->index);
}

static td_status read_by_class(reader *r, const json_t *root, bool *sequential, ends *to)
{
    const char *class_name = tdi_keras_text(root, "class_name");
    const json_t *config = json_object_get(root, "config");
    if (!class_name || !json_is_object(config))
        return tdi_fail(r->error, TD_BAD_FILE, "it describes no Keras model");
    *sequential = strcmp(class_name, "Sequential") == 0;
    if (*sequential) {
        to->n_inputs = to->n_outputs = 1;
        return read_sequential(r, root, &to->inputs[0], &to->outputs[0]);
    }
    if (strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0)
        return read_functional(r, config, to);
    return tdi_fail(r->error, TD_UNSUPPORTED, "the model is a \"%.64s\"; Tandem reads Sequential and functional models",
                    class_name);
}

static bool can_hold(size_t file_size, int64_t elements)
{
    size_t believed = file_size > SIZE_MAX / PACKED ? SIZE_MAX : file_size * PACKED;
    return (size_t)elements <= (believed > ROOM ? believed : ROOM) / sizeof(float);
}

/* Keras 3's hard_sigmoid is relu6(x + 3) / 6; before, it was 0.2 x + 0.5, cut off at 0 and 1. */
td_status tdi_keras_check_version(const json_t *root, const char *version, tdi_error *error)
{
    const json_t *layers = json_object_get(json_object_get(root, "config"), "layers");
    for (size_t i = 0; version && atoi(version) < 3 && i < json_array_size(layers); i++) {
        const json_t *config = json_object_get(json_array_get(layers, i), "config");
        const char *keys[] = {"activation", "recurrent_activation"}, *name = tdi_keras_text(config, "name");
        for (int k = 0; k < 2; k++) {
            const char *activation = tdi_keras_text(config, keys[k]);
            if (activation && strcmp(activation, "hard_sigmoid") == 0)
                return tdi_fail(
                    error, TD_UNSUPPORTED,
                    "layer \"%.64s\": its %s is the hard_sigmoid of Keras %.16s, 0.2 x + 0.5 cut off at 0 and "
                    "1, which is another function since Keras 3",
                    name ? name : "?", keys[k], version);
        }
    }
    return TD_OK;
}

td_status tdi_keras_read_model(td_context *context, const json_t *root, size_t room, td_model **model, tdi_error *error)
{
    const json_t *config = json_object_get(root, "config");
    reader r = {.context = context, .error = error, .frozen = json_is_false(json_object_get(config, "trainable"))};
    ends found = {0};
    bool sequential = false;
    td_status status = read_by_class(&r, root, &sequential, &found);
    release(&r);
    if (status != TD_OK)
        return status;
    if (!can_hold(room, r.elements))
        return tdi_fail(error, TD_BAD_FILE, "the layers have %lld weights; \"%s\" of %zu bytes cannot hold them",
                        (long long)r.elements, TDI_KERAS_WEIGHTS, room);
    bool bfloat16 = false; /* what it says of itself only its layers' policies give effect */
    tdi_keras_read_policy(json_object_get(config, "dtype"), &bfloat16, NULL);
    TDI_TRY(tdi_model_create(context, tdi_keras_text(config, "name"), sequential, found.n_inputs, found.inputs,
                             found.n_outputs, found.outputs, 0, model, error));
    (*model)->bfloat16 = bfloat16;
    return TD_OK;
}

/* ---- writing ---- */

static bool is_input_layer(const tdi_layer *layer)
{
    return strcmp(layer->type->class_name, "InputLayer") == 0;
}

static const td_shape *input_shape(const tdi_layer *layer)
{
    return &((const td_input_args *)layer->args)->shape;
}

static json_t *write_config(const tdi_layer *layer)
{
    json_t *config = json_pack("{s:s}", "name", layer->name);
    if (is_input_layer(layer)) {
        tdi_keras_put(&config, "dtype", json_string(td_dtype_name(((const td_input_args *)layer->args)->dtype)));
    } else {
        tdi_keras_put(&config, "trainable", json_boolean(layer->trainable));
        tdi_keras_put(&config, "dtype", tdi_keras_policy(layer->bfloat16));
    }
    tdi_keras_write_fields(layer->type->fields, layer->args, &config);
    if (is_input_layer(layer))
        tdi_keras_put(&config, "batch_shape", tdi_keras_batch_shape(input_shape(layer), layer->batch));
    return config;
}

static json_t *write_layer(const tdi_layer *layer)
{
    json_t *object = tdi_keras_object("keras.layers", layer->type->class_name, write_config(layer));
    if (layer->weights.count)
        tdi_keras_put(&object, "build_config",
                      json_pack("{s:o}", "input_shape", tdi_keras_batch_shape(&layer->build_shape, layer->batch)));
    return object;
}

/* Which of its layer's calls in this model it is: calls outside the model do not count. */
static int node_index(const td_model *model, const tdi_call_site *site)
{
    int index = 0;
    for (int i = 0; i < model->architecture->sites.count; i++)
        index += model->architecture->sites.at[i]->layer == site->layer &&
                 model->architecture->sites.at[i]->index < site->index;
    return index;
}

static json_t *write_history(const td_model *model, const td_tensor *tensor)
{
    return json_pack("[s, i, i]", tensor->site->layer->name, node_index(model, tensor->site), tensor->which);
}

static json_t *write_tensor(const td_model *model, const td_tensor *tensor)
{
    return json_pack("{s:s, s:{s:o, s:s, s:o}}", "class_name", "__keras_tensor__", "config", "shape",
                     tdi_keras_batch_shape(&tensor->shape, tensor->batch), "dtype",
                     tensor->site->layer->bfloat16 ? "bfloat16" : td_dtype_name(tensor->dtype), "keras_history",
                     write_history(model, tensor));
}

static json_t *write_node(const td_model *model, const tdi_call_site *site)
{
    const tdi_layer_type *type = site->layer->type;
    json_t *tensors = json_array(), *named = json_array(), *kwargs = json_object();
    for (int i = 0; i < site->n_in; i++)
        tdi_keras_append(i && type->keyword ? &named : &tensors, write_tensor(model, site->in[i]));
    if (type->list_input)
        tensors = json_pack("[o]", tensors);
    if (site->n_in > 1 && type->keyword)
        tdi_keras_put(&kwargs, type->keyword, named);
    else
        json_decref(named);
    return json_pack("{s:o, s:o}", "args", tensors, "kwargs", kwargs);
}

/* The layer's calls in the order of their numbers. */
static json_t *write_nodes(const td_model *model, const tdi_layer *layer)
{
    json_t *nodes = json_array();
    for (int number = 0, seen = 0; number < layer->n_calls; number++)
        for (int i = 0; i < model->architecture->sites.count && seen < layer->n_calls; i++) {
            const tdi_call_site *site = model->architecture->sites.at[i];
            if (site->layer == layer && site->index == number && site->n_in > 0) {
                tdi_keras_append(&nodes, write_node(model, site));
                seen++;
            }
        }
    return nodes;
}

static json_t *write_ends(const td_model *model, int count, td_tensor *const *tensors)
{
    if (count == 1)
        return write_history(model, tensors[0]);
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        tdi_keras_append(&list, write_history(model, tensors[i]));
    return list;
}

/* Keras notes the shapes of what the first call passed, by the arguments' names when there are several. */
static json_t *write_shapes(const tdi_call_site *site)
{
    const tdi_layer_type *type = site->layer->type;
    json_t *named = json_array(), *shapes = json_object();
    char first[64], rest[64];
    for (int i = 1; i < site->n_in; i++)
        tdi_keras_append(&named, tdi_keras_batch_shape(&site->in[i]->shape, site->in[i]->batch));
    snprintf(first, sizeof first, "%s_shape", type->argument);
    snprintf(rest, sizeof rest, "%s_shape", type->keyword);
    tdi_keras_put(&shapes, first, tdi_keras_batch_shape(&site->in[0]->shape, site->in[0]->batch));
    tdi_keras_put(&shapes, rest, named);
    return json_pack("{s:o}", "shapes_dict", shapes);
}

static void put_shapes(const td_model *model, const tdi_layer *layer, json_t **object)
{
    for (int i = 0; i < model->architecture->sites.count; i++) {
        const tdi_call_site *site = model->architecture->sites.at[i];
        if (site->layer == layer && layer->type->keyword && site->n_in > 1 && node_index(model, site) == 0)
            tdi_keras_put(object, "build_config", write_shapes(site));
    }
}

static json_t *write_functional(const td_model *model)
{
    json_t *layers = json_array();
    for (int i = 0; i < model->architecture->layers.count; i++) {
        json_t *object = write_layer(model->architecture->layers.at[i]);
        put_shapes(model, model->architecture->layers.at[i], &object);
        tdi_keras_put(&object, "name", json_string(model->architecture->layers.at[i]->name));
        tdi_keras_put(&object, "inbound_nodes", write_nodes(model, model->architecture->layers.at[i]));
        tdi_keras_append(&layers, object);
    }
    json_t *config =
        json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", model->architecture->name, "trainable", 1, "layers", layers,
                  "input_layers", write_ends(model, model->architecture->n_inputs, model->architecture->inputs),
                  "output_layers", write_ends(model, model->architecture->n_outputs, model->architecture->outputs));
    json_t *root = tdi_keras_object("keras.src.models.functional", "Functional", config);
    tdi_keras_put(&root, "registered_name", json_string("Functional"));
    tdi_keras_put(&root, "build_config", json_pack("{s:n}", "input_shape"));
    return root;
}

static json_t *write_sequential(const td_model *model)
{
    json_t *layers = json_array();
    for (int i = 0; i < model->architecture->layers.count; i++)
        tdi_keras_append(&layers, write_layer(model->architecture->layers.at[i]));
    const td_tensor *input = model->architecture->inputs[0];
    json_t *config = json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", model->architecture->name, "trainable", 1, "dtype",
                               tdi_keras_policy(model->bfloat16), "layers", layers, "build_input_shape",
                               tdi_keras_batch_shape(&input->shape, input->batch));
    json_t *root = tdi_keras_object("keras", "Sequential", config);
    tdi_keras_put(&root, "build_config",
                  json_pack("{s:o}", "input_shape", tdi_keras_batch_shape(&input->shape, input->batch)));
    return root;
}

json_t *tdi_keras_write_model(const td_model *model)
{
    return model->architecture->sequential ? write_sequential(model) : write_functional(model);
}
