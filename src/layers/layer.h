/* layer.h - layers: their types, instances and calls. A model is a graph of layer calls; ops are emitted from it anew
 * for each mode, since training, evaluation and prediction differ. */
#ifndef TDI_LAYERS_LAYER_H
#define TDI_LAYERS_LAYER_H

#include "base/context.h"
#include "graph/graph.h"
#include "layers/field.h"

typedef struct tdi_layer tdi_layer;
typedef struct tdi_call_site tdi_call_site;

/* What emitting needs to know besides the layer. */
typedef struct tdi_emit {
    tdi_graph *graph;
    bool training;
    bool merge_statistics; /* batch statistics are merged over more than one part even when not `synchronized`: one
                              replica is computed as several parts */
    int groups; /* replicas that a part computes, each with batch statistics of its own when not `synchronized` */
} tdi_emit;

enum { TDI_MAX_LAYER_OUTPUTS = 3 };

typedef struct tdi_layer_type {
    const char *class_name; /* "BatchNormalization" */
    const char *base_name;  /* "batch_normalization": automatic names, and the folder in model.weights.h5 */
    size_t args_size;
    const tdi_field *fields; /* without name, trainable and dtype, which every layer has */
    int min_in, max_in;      /* max_in -1: any number */
    const char *argument;    /* the first input's name in Keras's calls, where others are passed by name, too */
    const char *keyword;     /* the list of those others; NULL: none are */
    bool list_input;         /* called on a list (Add): [[a, b]] in Keras's inbound_nodes */
    const char *cell;        /* the folder below the layer's own that has the weights in Keras's files; NULL: none */
    bool convolves;          /* much is computed with few weights: cores had better each have rows of their own */

    /* Each replica takes batch statistics of its own rows only, so that the result depends on the replicas. NULL: the
     * layer has none. */
    bool (*statistics_per_replica)(const tdi_layer *layer);

    /* The layer takes indices, whole numbers from 0 to one less than this; NULL: it takes numbers. */
    int64_t (*indices)(const tdi_layer *layer);
    /* How many outputs a call has; NULL: one. At most TDI_MAX_LAYER_OUTPUTS. */
    int (*outputs)(const tdi_layer *layer);
    /* The outputs' shapes per sample; fails with a sentence naming the shapes. Called before `build`. */
    td_status (*infer)(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error);
    /* Declares the weights with tdi_layer_weight, in Keras's order; NULL: none. */
    td_status (*build)(tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error);
    /* Emits the ops for one call; NULL after a failure (then graph->error is set). A layer of several outputs has
     * emit_all instead, which fills `out`. */
    tdi_node *(*emit)(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in);
    void (*emit_all)(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in, tdi_node **out);
} tdi_layer_type;

/* The list of layers: X(stem). `tdi_layer_type_<stem>` is the type. */
/* clang-format off */
#define TDI_LAYERS(X)                                                                                                  \
    X(input) X(dense) X(conv2d) X(max_pooling2d) X(average_pooling2d) X(global_average_pooling2d) X(flatten)           \
    X(reshape) X(activation) X(dropout) X(add) X(concatenate) X(batch_normalization) X(lstm)                    \
    X(zero_padding2d) X(relu) X(softmax) X(embedding) X(up_sampling2d) X(normalization)
/* clang-format on */

#define TDI_DECLARE_LAYER_(stem) extern const tdi_layer_type tdi_layer_type_##stem;
TDI_LAYERS(TDI_DECLARE_LAYER_)
#undef TDI_DECLARE_LAYER_

extern const tdi_layer_type *const tdi_layer_types[];              /* NULL-terminated */
const tdi_layer_type *tdi_layer_type_find(const char *class_name); /* NULL: unknown */

typedef struct tdi_weight {
    tdi_variable variable;
    td_initializer initializer; /* resolved */
    int64_t ones, ones_end;     /* elements [ones, ones_end) begin as 1 instead */
} tdi_weight;

struct tdi_layer {
    const tdi_layer_type *type;
    td_context *context;
    const char *name;
    void *args; /* of type->args_size, resolved */
    bool trainable;
    bool bfloat16; /* Keras's policy: mixed_bfloat16 rather than float32 */
    bool built;
    td_shape build_shape; /* of the first input, per sample: Keras's build_config */
    int64_t batch;        /* rows of each batch that it is called on; 0: any */
    int n_calls;
    const void *owner; /* the model it belongs to */
    tdi_vec(tdi_weight *) weights;
    tdi_vec(tdi_variable *) states; /* kept from batch to batch, in no file; [batch, ...] */
};

struct tdi_call_site {
    tdi_layer *layer;
    int index; /* which call of the layer: Keras's node index */
    int n_in;
    td_tensor **in;
    int n_out;
    td_tensor *out[TDI_MAX_LAYER_OUTPUTS];
};

struct td_tensor {
    td_context *context;
    tdi_call_site *site; /* NULL: poison */
    int which;           /* of the site's outputs */
    td_shape shape;      /* per sample */
    int64_t batch;       /* samples; 0: any number */
    td_dtype dtype;
};

/* A layer with a copy of `args` (type->args_size bytes), resolved. `name` NULL: automatic. NULL when memory is out. */
tdi_layer *tdi_layer_create(td_context *context, const tdi_layer_type *type, const void *args, const char *name,
                            td_choice trainable);
/* Calls the layer; on the first call its weights are declared. A failure leaves its sentence, with `at` when it has a
 * file, in the context's error; the result is then poison. Never NULL unless memory is out. */
td_tensor *tdi_layer_call(tdi_layer *layer, int n_in, td_tensor *const *in, const td_location *at);

/* How many outputs each call of the layer has. */
int tdi_layer_outputs(const tdi_layer *layer);

/* A public layer function's call, in its user's words. */
typedef struct tdi_layer_use {
    const char *function; /* "td_dense" */
    td_location at;
    td_guard guard;
    const char *name;
    td_choice trainable;
    int n_in;
    td_tensor *const *in;
} tdi_layer_use;

/* What every public layer function does: checks the guard, makes the layer and calls it. */
td_tensor *tdi_layer_apply(td_context *context, const tdi_layer_type *type, const void *args, const tdi_layer_use *use);
/* The number of tensors in a NULL-terminated list, 0 for NULL. */
int tdi_tensor_list_count(td_tensor *const *tensors);
/* The context of the first tensor that is not NULL; NULL when there is none. */
td_context *tdi_tensors_context(int count, td_tensor *const *tensors);

/* A sample's shape as users see it, "[batch, 28, 28, 1]", into `text`, which is returned. */
const char *tdi_sample_text(const td_shape *sample, char text[TDI_SHAPE_TEXT]);

/* Declares a weight; from `build`. */
td_status tdi_layer_weight(tdi_layer *layer, const char *name, const td_shape *shape, bool trainable,
                           const td_initializer *initializer, const td_regularizer *regularizer, tdi_error *error);

/* Declares a state of `units` floats a row, zeros at first; from `build`. Fails where the batch may have any size. */
td_status tdi_layer_state(tdi_layer *layer, const char *name, int64_t units, tdi_error *error);

/* A layer's weight as a node of the graph. */
tdi_node *tdi_layer_parameter(const tdi_emit *emit, const tdi_layer *layer, int index);

/* TD_INVALID_ARGUMENT when the initializer's numbers cannot be, or it cannot make a weight of this shape. */
td_status tdi_initializer_check(const td_initializer *initializer, const td_shape *shape, tdi_error *error);
/* Draws a weight's initial values: fixed by (seed, variable->index). */
void tdi_initialize(const tdi_weight *weight, uint64_t seed, float *values);

/* It is one of the enumeration, and a sample has an axis for it. */
td_status tdi_activation_check(td_activation activation, const td_shape *x, tdi_error *error);
/* Emits an activation; softmax and log-softmax too; linear is x itself. */
tdi_node *tdi_activation_emit(tdi_graph *graph, tdi_node *x, td_activation activation);

/* Emits dropout for a layer with this seed. Its draws are named by the layer and the seed, so that they do not depend
 * on how the rest of the graph was emitted; each call in a graph draws for itself. */
tdi_node *tdi_layer_dropout(const tdi_emit *emit, const tdi_layer *layer, tdi_node *x, float rate, int64_t seed);

#endif
