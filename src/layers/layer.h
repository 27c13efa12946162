/* layer.h - layers: their types, instances and calls.
 *
 * A model is a graph of layer calls. Ops are emitted from it once for each mode, because training, evaluation and
 * prediction differ. To add a layer: include/tandem/layers.h (its args), src/layers/<layer>.c (its fields, shape rule,
 * weights and ops), its X(...) in TDI_LAYERS below. */
#ifndef TDI_LAYERS_LAYER_H
#define TDI_LAYERS_LAYER_H

#include "base/context.h"
#include "graph/graph.h"
#include "layers/field_table.h"

typedef struct tdi_layer tdi_layer;
typedef struct tdi_call_site tdi_call_site;

/* What `emit` needs besides the layer. */
typedef struct tdi_emit {
    tdi_graph *graph;
    bool training;
    bool merge_statistics; /* a replica is computed as several shards: batch statistics are merged over its shards even
                              when they are not `synchronized` over replicas */
    int groups; /* replicas computed by one shard; each has batch statistics of its own unless `synchronized` */
} tdi_emit;

enum { TDI_MAX_LAYER_OUTPUTS = 3 };

/* A kind of layer: static data and functions, shared by all layers of the kind.
 *
 * All functions are called on the thread that builds or compiles the model, one at a time; none may block. Each gets a
 * layer whose `args` are resolved. A function that returns a status fails with a sentence in `error` that continues
 * `layer "name" (Class): `, TD_INVALID_ARGUMENT for what can never be and TD_UNSUPPORTED for what Tandem cannot do. */
typedef struct tdi_layer_type {
    const char *class_name; /* Keras's class: "BatchNormalization" */
    const char *base_name;  /* "batch_normalization": stem of automatic names, and folder in model.weights.h5 */
    size_t args_size;
    const tdi_field *fields; /* without name, trainable and dtype, which every layer has */
    int min_in, max_in;      /* numbers of inputs of a call; max_in -1: any number */
    const char *argument;    /* the first input's name in Keras's calls, where more inputs are passed by name */
    const char *keyword;     /* the name under which those others are passed, as a list; NULL: there are none */
    bool list_input;         /* the inputs are one list (Add): [[a, b]] in Keras's inbound_nodes */
    const char *cell;        /* the folder within the layer's own that holds the weights in Keras's files; NULL: none */
    bool convolves;          /* much is computed with few weights: cores had better each have rows of their own */

    /* Each replica takes batch statistics of its own rows only, so that the result depends on the replicas. NULL: the
     * layer has none. */
    bool (*statistics_per_replica)(const tdi_layer *layer);

    /* The number of indices that the layer takes: inputs are whole numbers from 0 to one less than it. Called whenever
     * a model's inputs are typed or checked. NULL: the inputs are numbers. */
    int64_t (*indices)(const tdi_layer *layer);

    /* The number of outputs of a call, from 1 to TDI_MAX_LAYER_OUTPUTS. NULL: one. */
    int (*outputs)(const tdi_layer *layer);

    /* Sets out[0 .. outputs) to the outputs' shapes per sample. Called at each call of the layer, before `build`. Its
     * sentence names the shapes that do not fit. Never NULL. */
    td_status (*infer)(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error);

    /* Declares the weights with tdi_layer_weight, in Keras's order, and states with tdi_layer_state. Called once, at
     * the layer's first call, after `infer` has succeeded. NULL: the layer has neither. */
    td_status (*build)(tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error);

    /* Emits the ops of one call into emit->graph and returns the output. Called for each call of the layer when a mode
     * of the model is compiled. in[i] may be NULL after an earlier failure: constructors of ops take that and return
     * NULL, and a failure of its own is in graph->error. NULL: the layer has emit_all instead. */
    tdi_node *(*emit)(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in);

    /* The same for a layer of several outputs: fills out[0 .. outputs). NULL: the layer has `emit`. */
    void (*emit_all)(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in, tdi_node **out);
} tdi_layer_type;

/* The first members of a type whose names and args follow from the layer's name, and whose table is `fields`. */
#define TDI_LAYER(its_class, stem, least_in, most_in)                                                                  \
    .class_name = (its_class), .base_name = #stem, .args_size = sizeof(td_##stem##_args), .fields = fields,            \
    .min_in = (least_in), .max_in = (most_in)

/* The list of layers. X(dense) stands for the type tdi_layer_type_dense. */
/* clang-format off */
#define TDI_LAYERS(X)                                                                                                  \
    X(input) X(dense) X(conv2d) X(max_pooling2d) X(average_pooling2d) X(global_average_pooling2d) X(flatten)           \
    X(reshape) X(activation) X(dropout) X(add) X(concatenate) X(batch_normalization) X(lstm)                    \
    X(zero_padding2d) X(relu) X(softmax) X(embedding) X(up_sampling2d) X(normalization)
/* clang-format on */

#define TDI_DECLARE_LAYER_(stem) extern const tdi_layer_type tdi_layer_type_##stem;
TDI_LAYERS(TDI_DECLARE_LAYER_)
#undef TDI_DECLARE_LAYER_

extern const tdi_layer_type *const tdi_layer_types[]; /* ends with NULL */
/* The type of a Keras class; NULL: there is none. */
const tdi_layer_type *tdi_layer_type_find(const char *class_name);

typedef struct tdi_weight {
    tdi_variable variable;
    td_initializer initializer; /* resolved */
    int64_t ones, ones_end; /* elements [ones, ones_end) start as 1, whatever the initializer (LSTM's forget bias) */
} tdi_weight;

struct tdi_layer {
    const tdi_layer_type *type;
    td_context *context;
    const char *name;
    void *args; /* of type->args_size, resolved */
    bool trainable;
    bool bfloat16; /* Keras's policy: mixed_bfloat16 rather than float32 */
    bool built;
    td_shape build_shape; /* the first input's, per sample: Keras's build_config */
    int64_t batch;        /* rows of every batch; 0: any number */
    int n_calls;
    const void *owner; /* the model that the layer belongs to */
    tdi_vec(tdi_weight *) weights;
    tdi_vec(tdi_variable *) states; /* [batch, units], kept from one batch to the next; no file has them */
};

struct tdi_call_site {
    tdi_layer *layer;
    int index; /* of this call among the layer's: Keras's node index */
    int n_in;
    td_tensor **in;
    int n_out;
    td_tensor *out[TDI_MAX_LAYER_OUTPUTS];
};

struct td_tensor {
    td_context *context;
    tdi_call_site *site; /* the call that made it; NULL: poison, the result of a failed call */
    int which;           /* its number among the site's outputs */
    td_shape shape;      /* per sample */
    int64_t batch;       /* rows; 0: any number */
    td_dtype dtype;
};

/* Makes a layer with a resolved copy of `args` (type->args_size bytes). A NULL name is replaced by an automatic one.
 * NULL when out of memory. */
tdi_layer *tdi_layer_create(td_context *context, const tdi_layer_type *type, const void *args, const char *name,
                            td_choice trainable);
/* Calls the layer and declares its weights at the first call. A failure puts its sentence, preceded by `at` when that
 * has a file, into the context's error and returns poison. NULL only when out of memory. */
td_tensor *tdi_layer_call(tdi_layer *layer, int n_in, td_tensor *const *in, const td_location *at);

/* The number of outputs of each call. */
int tdi_layer_outputs(const tdi_layer *layer);

/* A user's call of a public layer function. */
typedef struct tdi_layer_use {
    const char *function; /* "td_dense" */
    td_location at;
    td_guard guard;
    const char *name;
    td_choice trainable;
    int n_in;
    td_tensor *const *in;
} tdi_layer_use;

/* The body of every public layer function: checks the guard, makes the layer and calls it. */
td_tensor *tdi_layer_apply(td_context *context, const tdi_layer_type *type, const void *args, const tdi_layer_use *use);
/* The same for a layer whose function, args and type share a name: TDI_LAYER_APPLY(dense, args, 1, &args->x). */
#define TDI_LAYER_APPLY(stem, args, n_in, in)                                                                          \
    tdi_layer_apply(                                                                                                   \
        tdi_tensors_context(n_in, in), &tdi_layer_type_##stem, args,                                                   \
        &(tdi_layer_use){"td_" #stem, (args)->at, (args)->guard, (args)->name, (args)->trainable, n_in, in})
/* The number of tensors in a NULL-terminated list, 0 for NULL. */
int tdi_tensor_list_count(td_tensor *const *tensors);
/* The context of the first tensor that is not NULL; NULL when there is none. */
td_context *tdi_tensors_context(int count, td_tensor *const *tensors);

/* Writes a sample's shape as users see it, "[batch, 28, 28, 1]", into `text` and returns that. */
const char *tdi_sample_text(const td_shape *sample, char text[TDI_SHAPE_TEXT]);

/* Declares a weight. Called by `build`. TD_INVALID_ARGUMENT for a shape, an initializer or a regularizer that cannot
 * be. */
td_status tdi_layer_weight(tdi_layer *layer, const char *name, const td_shape *shape, bool trainable,
                           const td_initializer *initializer, const td_regularizer *regularizer, tdi_error *error);

/* Declares a state of `units` floats a row, which starts as zeros. Called by `build`. Fails when the batch size is not
 * fixed. */
td_status tdi_layer_state(tdi_layer *layer, const char *name, int64_t units, tdi_error *error);

/* The layer's weight number `index` as a node of the graph. */
tdi_node *tdi_layer_parameter(const tdi_emit *emit, const tdi_layer *layer, int index);

/* TD_INVALID_ARGUMENT when a number of the initializer is out of range, or it cannot make a weight of this shape. */
td_status tdi_initializer_check(const td_initializer *initializer, const td_shape *shape, tdi_error *error);
/* Fills values[0 .. elements) with the weight's initial values, a function of (seed, variable.index). */
void tdi_initialize(const tdi_weight *weight, uint64_t seed, float *values);

/* Checks that the activation exists, and that a sample x has the axis that it works on. */
td_status tdi_activation_check(td_activation activation, const td_shape *x, tdi_error *error);
/* Emits any activation, softmax and log-softmax included; linear returns x itself. */
tdi_node *tdi_activation_emit(tdi_graph *graph, tdi_node *x, td_activation activation);

/* Emits dropout. The key of its draws is made of the layer's name, `seed` (0: none) and the number of this call in the
 * graph, so that the draws do not depend on how the rest of the graph was emitted. */
tdi_node *tdi_layer_dropout(const tdi_emit *emit, const tdi_layer *layer, tdi_node *x, float rate, int64_t seed);

#endif
