/* layers.h - layers as functions from tensors to tensors.
 *
 * Names, arguments and defaults are Keras 3's; a zero argument means Keras's default. Required arguments stand in
 * front, the rest by name: td_conv2d(x, 32, 3, .padding = TD_SAME, .activation = TD_RELU). Tensors are channels-last:
 * [batch, height, width, channels]. A call that fails returns poison and leaves its sentence in the context.
 *
 * In C++ the same calls take one args object: td_dense({.x = x, .units = 10}). */
#ifndef TANDEM_LAYERS_H
#define TANDEM_LAYERS_H

#include <tandem/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Keras's named activations. TD_LINEAR is the default, and TD_NO_ACTIVATION says it where another is (LSTM). GELU is
 * the exact one (erf), as Keras's default. */
typedef enum td_activation {
    TD_NO_ACTIVATION = -1,
    TD_LINEAR = 0,
    TD_RELU,
    TD_TANH,
    TD_SIGMOID,
    TD_SOFTMAX,
    TD_LOG_SOFTMAX,
    TD_LEAKY_RELU, /* slope 0.2 */
    TD_RELU6,
    TD_ELU,
    TD_SELU,
    TD_CELU,
    TD_GELU,
    TD_SILU,
    TD_SOFTPLUS,
    TD_SOFTSIGN,
    TD_EXPONENTIAL,
    TD_HARD_SIGMOID, /* relu6(x + 3) / 6 */
    TD_HARD_SILU,
    TD_HARD_TANH,
    TD_MISH,
    TD_LOG_SIGMOID,
    TD_TANH_SHRINK,
    TD_SQUAREPLUS,
    TD_ACTIVATION_COUNT
} td_activation;

typedef enum td_padding { TD_VALID = 0, TD_SAME } td_padding;

typedef enum td_initializer_kind {
    TD_INIT_DEFAULT = 0, /* what Keras uses for this weight */
    TD_ZEROS,
    TD_ONES,
    TD_CONSTANT,         /* value */
    TD_RANDOM_UNIFORM,   /* minval, maxval */
    TD_RANDOM_NORMAL,    /* mean, stddev */
    TD_TRUNCATED_NORMAL, /* mean, stddev */
    TD_GLOROT_UNIFORM,
    TD_GLOROT_NORMAL,
    TD_HE_UNIFORM,
    TD_HE_NORMAL,
    TD_LECUN_UNIFORM,
    TD_LECUN_NORMAL,
    TD_VARIANCE_SCALING, /* scale, mode, distribution */
    TD_ORTHOGONAL,       /* gain */
    TD_IDENTITY,         /* gain */
    TD_INITIALIZER_COUNT
} td_initializer_kind;

typedef enum td_fan_mode { TD_FAN_IN = 0, TD_FAN_OUT, TD_FAN_AVG } td_fan_mode;
typedef enum td_distribution {
    TD_DISTRIBUTION_TRUNCATED_NORMAL = 0,
    TD_DISTRIBUTION_UNTRUNCATED_NORMAL,
    TD_DISTRIBUTION_UNIFORM
} td_distribution;

/* `a` and `b` are the two numbers of the kind, in the order named above. Random kinds draw from the model's seed (a
 * `seed` in a Keras file is kept and written back, but Keras's own random sequence is not reproduced). */
typedef struct td_initializer {
    td_initializer_kind kind;
    float a, b;
    td_fan_mode mode;
    td_distribution distribution;
    int64_t seed; /* 0: none */
} td_initializer;

/* Adds l1 * sum|w| + l2 * sum w^2 to the loss. */
typedef struct td_regularizer {
    float l1, l2;
} td_regularizer;

/* Every layer's options end with these. `name` is copied; NULL: Keras's automatic one (dense, dense_1, ...). */
#define TD_LAYER_OPTIONS                                                                                               \
    const char *name;                                                                                                  \
    td_choice trainable /* default yes; no freezes the weights, and puts batch normalization in inference mode */

/* An input of `shape` per sample. [ ] -> [batch, shape...]. A batch_size is for stateful layers: without one, and
 * without such layers, batches of any size are taken. */
typedef struct td_input_args {
    td_location at;
    td_context *context;
    td_shape shape;
    td_guard guard;
    td_dtype dtype;     /* TD_FLOAT32; TD_INT32 or TD_INT64 for indices, which an embedding takes */
    int64_t batch_size; /* 0: any */
    const char *name;
} td_input_args;
TD_API td_tensor *td_input_(const td_input_args *args);
#ifndef __cplusplus
#define td_input(...) td_input_(&(td_input_args){.at = TD_HERE, .context = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_input, td_input_args)

/* activation(x . kernel + bias) on the last axis. [batch, ..., n] -> [batch, ..., units] */
typedef struct td_dense_args {
    td_location at;
    td_tensor *x;
    int64_t units;
    td_guard guard;
    td_activation activation;
    td_choice use_bias;                                  /* yes */
    td_initializer kernel_initializer, bias_initializer; /* Glorot uniform, zeros */
    td_regularizer kernel_regularizer, bias_regularizer;
    TD_LAYER_OPTIONS;
} td_dense_args;
TD_API td_tensor *td_dense_(const td_dense_args *args);
#ifndef __cplusplus
#define td_dense(...) td_dense_(&(td_dense_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_dense, td_dense_args)

/* 2-D convolution. [batch, height, width, channels] -> [batch, out_height, out_width, filters]; the kernel is
 * [kernel_height, kernel_width, channels / groups, filters]. `kernel` overrides the square `kernel_size`. */
typedef struct td_conv2d_args {
    td_location at;
    td_tensor *x;
    int64_t filters;
    int kernel_size;
    td_guard guard;
    td_size kernel;
    td_size strides;  /* 1 x 1 */
    td_size dilation; /* 1 x 1 */
    int groups;       /* 1 */
    td_padding padding;
    td_activation activation;
    td_choice use_bias;                                  /* yes */
    td_initializer kernel_initializer, bias_initializer; /* Glorot uniform, zeros */
    td_regularizer kernel_regularizer, bias_regularizer;
    TD_LAYER_OPTIONS;
} td_conv2d_args;
TD_API td_tensor *td_conv2d_(const td_conv2d_args *args);
#ifndef __cplusplus
#define td_conv2d(...) td_conv2d_(&(td_conv2d_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_conv2d, td_conv2d_args)

/* `padding` rows and columns of zeros on each side; `sides` overrides it.
 * [batch, height, width, channels] -> [batch, top + height + bottom, left + width + right, channels] */
typedef struct td_zero_padding2d_args {
    td_location at;
    td_tensor *x;
    int padding;
    td_guard guard;
    td_sides sides;
    TD_LAYER_OPTIONS;
} td_zero_padding2d_args;
TD_API td_tensor *td_zero_padding2d_(const td_zero_padding2d_args *args);
#ifndef __cplusplus
#define td_zero_padding2d(...) td_zero_padding2d_(&(td_zero_padding2d_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_zero_padding2d, td_zero_padding2d_args)

typedef enum td_interpolation { TD_NEAREST = 0, TD_BILINEAR } td_interpolation;

/* Images made `size` times as high and as wide: pixels repeated, or interpolated between their centres. `factors`
 * overrides the square `size`.
 * [batch, height, width, channels] -> [batch, height * size, width * size, channels] */
typedef struct td_up_sampling2d_args {
    td_location at;
    td_tensor *x;
    int size; /* 2 */
    td_guard guard;
    td_size factors;
    td_interpolation interpolation; /* TD_NEAREST */
    TD_LAYER_OPTIONS;
} td_up_sampling2d_args;
TD_API td_tensor *td_up_sampling2d_(const td_up_sampling2d_args *args);
#ifndef __cplusplus
#define td_up_sampling2d(...) td_up_sampling2d_(&(td_up_sampling2d_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_up_sampling2d, td_up_sampling2d_args)

/* The maximum, or the average, over windows; average pooling leaves padding out of its count.
 * [batch, height, width, channels] -> [batch, out_height, out_width, channels]. `pool` overrides `pool_size`. */
typedef struct td_pooling2d_args {
    td_location at;
    td_tensor *x;
    int pool_size; /* 2 */
    td_guard guard;
    td_size pool;
    td_size strides; /* as the pool */
    td_padding padding;
    TD_LAYER_OPTIONS;
} td_pooling2d_args;
typedef td_pooling2d_args td_max_pooling2d_args;
typedef td_pooling2d_args td_average_pooling2d_args;
TD_API td_tensor *td_max_pooling2d_(const td_pooling2d_args *args);
TD_API td_tensor *td_average_pooling2d_(const td_pooling2d_args *args);
#ifndef __cplusplus
#define td_max_pooling2d(...)     td_max_pooling2d_(&(td_pooling2d_args){.at = TD_HERE, .x = __VA_ARGS__})
#define td_average_pooling2d(...) td_average_pooling2d_(&(td_pooling2d_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_max_pooling2d, td_max_pooling2d_args)
TD_BY_NAME_(td_tensor *, td_average_pooling2d, td_average_pooling2d_args)

/* The mean over height and width. [batch, height, width, channels] -> [batch, channels], or [batch, 1, 1, channels] */
typedef struct td_global_average_pooling2d_args {
    td_location at;
    td_tensor *x;
    td_guard guard;
    td_choice keepdims; /* no */
    TD_LAYER_OPTIONS;
} td_global_average_pooling2d_args;
TD_API td_tensor *td_global_average_pooling2d_(const td_global_average_pooling2d_args *args);
#ifndef __cplusplus
#define td_global_average_pooling2d(...)                                                                               \
    td_global_average_pooling2d_(&(td_global_average_pooling2d_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_global_average_pooling2d, td_global_average_pooling2d_args)

/* [batch, ...] -> [batch, product of the rest] */
typedef struct td_flatten_args {
    td_location at;
    td_tensor *x;
    td_guard guard;
    TD_LAYER_OPTIONS;
} td_flatten_args;
TD_API td_tensor *td_flatten_(const td_flatten_args *args);
#ifndef __cplusplus
#define td_flatten(...) td_flatten_(&(td_flatten_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_flatten, td_flatten_args)

/* [batch, ...] -> [batch, target_shape...]; one extent may be -1: what is left. */
typedef struct td_reshape_args {
    td_location at;
    td_tensor *x;
    td_shape target_shape;
    td_guard guard;
    TD_LAYER_OPTIONS;
} td_reshape_args;
TD_API td_tensor *td_reshape_(const td_reshape_args *args);
#ifndef __cplusplus
#define td_reshape(...) td_reshape_(&(td_reshape_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_reshape, td_reshape_args)

/* The activation alone; the shape stays. Softmax and log-softmax are over the last axis. */
typedef struct td_activation_layer_args {
    td_location at;
    td_tensor *x;
    td_activation activation;
    td_guard guard;
    TD_LAYER_OPTIONS;
} td_activation_layer_args;
TD_API td_tensor *td_activation_layer_(const td_activation_layer_args *args);
#ifndef __cplusplus
#define td_activation_layer(...) td_activation_layer_(&(td_activation_layer_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_activation_layer, td_activation_layer_args)

/* Keras's ReLU layer: x above the threshold, at most max_value; below it negative_slope * (x - threshold). */
typedef struct td_relu_args {
    td_location at;
    td_tensor *x;
    td_guard guard;
    float max_value;                 /* 0: none */
    float negative_slope, threshold; /* at least 0; 0 */
    TD_LAYER_OPTIONS;
} td_relu_args;
TD_API td_tensor *td_relu_(const td_relu_args *args);
#ifndef __cplusplus
#define td_relu(...) td_relu_(&(td_relu_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_relu, td_relu_args)

/* Softmax over the last axis: Keras's Softmax layer. */
typedef struct td_softmax_args {
    td_location at;
    td_tensor *x;
    td_guard guard;
    int axis; /* the last: -1, or its number in [batch, ...]; 0: -1 */
    TD_LAYER_OPTIONS;
} td_softmax_args;
TD_API td_tensor *td_softmax_(const td_softmax_args *args);
#ifndef __cplusplus
#define td_softmax(...) td_softmax_(&(td_softmax_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_softmax, td_softmax_args)

/* In training sets a fraction `rate`, [0, 1), of the inputs to 0 and scales the rest by 1 / (1 - rate). */
typedef struct td_dropout_args {
    td_location at;
    td_tensor *x;
    float rate;
    td_guard guard;
    int64_t seed; /* mixed into the model's seed; 0: none */
    TD_LAYER_OPTIONS;
} td_dropout_args;
TD_API td_tensor *td_dropout_(const td_dropout_args *args);
#ifndef __cplusplus
#define td_dropout(...) td_dropout_(&(td_dropout_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_dropout, td_dropout_args)

/* A NULL-terminated list of tensors: td_add(TD_TENSORS(a, b)). */
#define TD_TENSORS(...) TD_LIST_(td_tensor *, __VA_ARGS__, NULL)

/* The element-wise sum of tensors of one shape. */
typedef struct td_add_args {
    td_location at;
    td_tensor *const *inputs;
    td_guard guard;
    TD_LAYER_OPTIONS;
} td_add_args;
TD_API td_tensor *td_add_(const td_add_args *args);
#ifndef __cplusplus
#define td_add(...) td_add_(&(td_add_args){.at = TD_HERE, .inputs = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_add, td_add_args)

/* Tensors joined along an axis of [batch, ...]; their other extents agree. */
typedef struct td_concatenate_args {
    td_location at;
    td_tensor *const *inputs;
    td_guard guard;
    int axis; /* 0 means Keras's default, the last, -1; the batch axis cannot be joined */
    TD_LAYER_OPTIONS;
} td_concatenate_args;
TD_API td_tensor *td_concatenate_(const td_concatenate_args *args);
#ifndef __cplusplus
#define td_concatenate(...) td_concatenate_(&(td_concatenate_args){.at = TD_HERE, .inputs = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_concatenate, td_concatenate_args)

/* (x - mean) / sqrt(variance + epsilon) * gamma + beta per channel (last axis), over the batch of one replica in
 * training (of all replicas when `synchronized`), over the moving statistics otherwise (Ioffe & Szegedy, 1502.03167).
 */
typedef struct td_batch_normalization_args {
    td_location at;
    td_tensor *x;
    td_guard guard;
    int axis;               /* of the channels: the last, -1 or its number in [batch, ...]; 0: -1 */
    td_optional momentum;   /* 0.99 */
    td_optional epsilon;    /* 1e-3 */
    td_choice center;       /* yes */
    td_choice scale;        /* yes */
    td_choice synchronized; /* no */
    td_initializer beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer;
    td_regularizer beta_regularizer, gamma_regularizer;
    TD_LAYER_OPTIONS;
} td_batch_normalization_args;
TD_API td_tensor *td_batch_normalization_(const td_batch_normalization_args *args);
#ifndef __cplusplus
#define td_batch_normalization(...)                                                                                    \
    td_batch_normalization_(&(td_batch_normalization_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_batch_normalization, td_batch_normalization_args)

/* (x - mean) / max(sqrt(variance), 1e-7) per feature (last axis); with `invert` back: x * max(sqrt(variance), 1e-7) +
 * mean. td_fit's .adapt sets mean and variance from the training data: of the input that the layer is called on, or of
 * the target of the output that it gives, inverted. Until then they are 0 and 1. */
typedef struct td_normalization_args {
    td_location at;
    td_tensor *x;
    td_guard guard;
    td_choice invert; /* no */
    TD_LAYER_OPTIONS;
} td_normalization_args;
TD_API td_tensor *td_normalization_(const td_normalization_args *args);
#ifndef __cplusplus
#define td_normalization(...) td_normalization_(&(td_normalization_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_normalization, td_normalization_args)

/* A vector of output_dim numbers for each of input_dim indices: row i of its weight [input_dim, output_dim].
 * [batch, ...] -> [batch, ..., output_dim]. Its input holds whole numbers from 0 to input_dim - 1; where that is the
 * model's input, of any dtype, another number is refused as a batch is read. Elsewhere fractions are cut off, as Keras
 * does, and an index that is out of range gives NaN.
 *
 * A step reads and writes only the rows that its batch names where that changes no weight: for SGD without momentum,
 * weight decay, averages, gradient accumulation and clipping by norms, without a regularizer here, where one shard
 * trains the batch and the layer is called once. Any other step goes through the whole table, as Keras does; td_explain
 * tells which. */
typedef struct td_embedding_args {
    td_location at;
    td_tensor *x;
    int64_t input_dim, output_dim;
    td_guard guard;
    td_initializer embeddings_initializer; /* random uniform from -0.05 to 0.05 */
    td_regularizer embeddings_regularizer;
    TD_LAYER_OPTIONS;
} td_embedding_args;
TD_API td_tensor *td_embedding_(const td_embedding_args *args);
#ifndef __cplusplus
#define td_embedding(...) td_embedding_(&(td_embedding_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_embedding, td_embedding_args)

/* A long short-term memory over a sequence (Hochreiter & Schmidhuber 1997). [batch, time, n] -> [batch, units], h of
 * the last step; with return_sequences [batch, time, units], h of every step. Weights: kernel [n, 4 units],
 * recurrent_kernel [units, 4 units], bias [4 units]; gates in the order i, f, c, o.
 *
 * With return_state the layer has two outputs more, [batch, units]: td_layer_output(y, 1) is the last h, and
 * td_layer_output(y, 2) the last c.
 *
 * With initial_state, TD_TENSORS(h, c) of [batch, units], these are the h and c before the first step, and gradients go
 * to them: the last state of one layer can be another's first.
 *
 * With stateful, and an input of fixed batch_size, h and c are not zeros before the first step but what the batch
 * before has left, row for row, whether it was trained, evaluated or predicted; td_reset_states makes them zeros. No
 * gradient goes to the batch before. Every batch must be of that size, the last one too, and td_fit is to be given
 * .shuffle = TD_NO. Such a layer is called once.
 *
 * In training `dropout` leaves out inputs, `recurrent_dropout` parts of h, each chosen once per sample for all steps.
 * The activations can be any; tanh and sigmoid have the fastest loops. */
typedef struct td_lstm_args {
    td_location at;
    td_tensor *x;
    int64_t units;
    td_guard guard;
    td_tensor *const *initial_state;          /* NULL: zeros */
    td_choice return_sequences, return_state; /* no */
    td_choice unroll;                         /* no; a hint of Keras's, kept and not needed */
    td_choice go_backwards;                   /* no; yes: from the last step to the first, outputs too */
    td_choice stateful; /* no; yes: row i goes on with the h and c that row i of the batch before has left */
    td_activation activation, recurrent_activation; /* TD_TANH, TD_SIGMOID */
    td_choice use_bias;                             /* yes */
    td_initializer kernel_initializer;              /* Glorot uniform */
    td_initializer recurrent_initializer;           /* orthogonal */
    td_initializer bias_initializer;                /* zeros */
    td_choice unit_forget_bias;                     /* yes: the forget gate's bias begins as 1 */
    td_regularizer kernel_regularizer, recurrent_regularizer, bias_regularizer;
    float dropout, recurrent_dropout; /* rates in [0, 1); 0 */
    int64_t seed;                     /* mixed into the model's seed; 0: none */
    TD_LAYER_OPTIONS;
} td_lstm_args;
TD_API td_tensor *td_lstm_(const td_lstm_args *args);
#ifndef __cplusplus
#define td_lstm(...) td_lstm_(&(td_lstm_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_tensor *, td_lstm, td_lstm_args)

/* Output `index` of the call of a layer that gave `tensor`: 0 is its first. */
TD_API td_tensor *td_layer_output(td_tensor *tensor, int index);

#ifdef __cplusplus
}
#endif
#endif
