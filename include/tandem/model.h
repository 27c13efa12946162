/* model.h - a model: made of layers or read from a .keras file, compiled, trained, saved. */
#ifndef TANDEM_MODEL_H
#define TANDEM_MODEL_H

#include <stdio.h>
#include <tandem/data.h>
#include <tandem/layers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Owned by its context; td_model_free frees it earlier, and with it the layers of a model that td_load or a td_new
 * made. Tensors and layers that the caller has made live as long as the context. */
typedef struct td_model td_model;

typedef struct td_model_args {
    td_location at;
    td_tensor *x; /* an input */
    td_tensor *y; /* an output */
    td_guard guard;
    td_tensor *const *inputs;  /* instead of x: several, TD_TENSORS(a, b) */
    td_tensor *const *outputs; /* instead of y */
    const char *name;
    uint64_t seed; /* fixes the initial weights, and the default of td_fit; 0: drawn from the clock */
} td_model_args;

/* Makes a model of everything between inputs and outputs, with fresh weights. NULL on failure. */
TD_API td_model *td_model_create_(const td_model_args *args);
#ifndef __cplusplus
#define td_model_create(...) td_model_create_(&(td_model_args){.at = TD_HERE, .x = __VA_ARGS__})
#endif
TD_BY_NAME_(td_model *, td_model_create, td_model_args)
TD_API void td_model_free(td_model *model);

/* A ready-made model with fresh weights: "mlp" (784-256-256-10), "lenet5" ([28, 28, 1], tanh),
 * "cifar" (the Keras tutorial's 32-64-64 on [32, 32, 3]), compiled with Adam and sparse cross-entropy from logits; or
 * "resnet20" and "lstm": td_new_resnet20 and td_new_lstm with their defaults. */
TD_API td_model *td_new(td_context *context, const char *architecture, uint64_t seed);
/* A forecaster: from `steps` (0: 50) steps of `features` (0: 8) numbers, [batch, steps, features], to the `outputs`
 * (0: 1) numbers that come next, [batch, outputs], by an LSTM of 128 units; compiled with Adam and mean squared error.
 */
TD_API td_model *td_new_lstm(td_context *context, int64_t steps, int64_t features, int64_t outputs, uint64_t seed);
/* What writes a text on, character by character: from `window` (0: 100) of its `characters`, as td_recipe_characters
 * counts them, to the scores of each one's next, [batch, window, characters], by an embedding of 64 numbers and an LSTM
 * of 256 units; compiled with Adam, a rate of 0.004, and sparse cross-entropy from logits. */
TD_API td_model *td_new_char_lstm(td_context *context, int64_t characters, int64_t window, uint64_t seed);
/* ResNet-20 for CIFAR-10 (He et al., 1512.03385, section 4.2), [batch, 32, 32, 3] to the logits [batch, 10]: 3 stages
 * of 3 blocks, 16, 32 and 64 channels wide; a shortcut between stages is a 1x1 convolution (option B). With zero_gamma
 * (default no) the last batch normalization of each block begins with a gamma of 0, so that the block begins as its
 * shortcut (Goyal et al., 1706.02677, section 5.1). Compiled with SGD, momentum 0.9, a rate of 0.1, and sparse
 * cross-entropy from logits; the paper's weight decay of 1e-4 is in the kernels' regularizers. */
TD_API td_model *td_new_resnet20(td_context *context, td_choice zero_gamma, uint64_t seed);

/* Reads a .keras file of Keras 3, or of Keras 2 from 2.13 on: layers, weights, and where present the compile
 * configuration and the optimizer's state. Also a whole model in HDF5, which Keras has always written as .h5, without
 * the optimizer's state. NULL on failure: a sentence naming the layer and the property that Tandem cannot do, or what
 * the file is instead.
 *
 * Parts of the compile configuration that Tandem does not know (an optimizer, a loss, a metric) are named in the log
 * and left out; td_compile puts others in their place. A large optimizer's state stays in the file, which is kept open,
 * until the model is trained or saved: to predict and to evaluate takes no memory for it. */
TD_API td_model *td_load(td_context *context, const char *path);

/* Writes a .keras file: beside `path`, which has to end in .keras, fsynced, then renamed; on failure a file already at
 * `path` is untouched. */
TD_API td_status td_save(td_model *model, const char *path);

/* Keras's save_weights: the weights, and of a compiled model the optimizer's state, without the architecture; `path`
 * ends in ".weights.h5". Written as by td_save. */
TD_API td_status td_save_weights(td_model *model, const char *path);
/* Keras's load_weights: takes them from such a file, of Keras 3 or 2, or from a .keras or .h5 file, into a model of the
 * same layers, whatever these are called. The optimizer's state is taken where it is of the same optimizer. TD_BAD_FILE
 * names the layer whose weights are missing or of another shape; then the model is as it was. */
TD_API td_status td_load_weights(td_model *model, const char *path);

/* ---- compile ---- */

typedef enum td_optimizer_kind { TD_OPTIMIZER_NONE = 0, TD_OPTIMIZER_SGD, TD_OPTIMIZER_ADAM } td_optimizer_kind;

typedef enum td_schedule_kind {
    TD_SCHEDULE_NONE = 0,
    TD_EXPONENTIAL_DECAY,
    TD_PIECEWISE_CONSTANT_DECAY,
    TD_POLYNOMIAL_DECAY,
    TD_INVERSE_TIME_DECAY,
    TD_COSINE_DECAY,
    TD_COSINE_DECAY_RESTARTS
} td_schedule_kind;

/* Keras's learning rate schedules, by its names and with its defaults: the rate of each step, counted from 0 over all
 * epochs. Made by the macros below: td_adam(.schedule = td_cosine_decay(1e-3f, .decay_steps = 10000)). */
typedef struct td_schedule {
    td_schedule_kind kind;
    float initial_learning_rate;
    float decay_steps;             /* above 0; CosineDecayRestarts: those of the first period */
    float decay_rate;              /* ExponentialDecay, InverseTimeDecay */
    td_choice staircase;           /* ExponentialDecay, InverseTimeDecay: no */
    td_optional end_learning_rate; /* PolynomialDecay: 1e-4 */
    td_optional power;             /* PolynomialDecay: 1 */
    td_choice cycle;               /* PolynomialDecay: no */
    float alpha;                   /* CosineDecay, CosineDecayRestarts: the least rate, as a fraction; 0 */
    td_optional warmup_target;     /* CosineDecay: reached from initial_learning_rate in warmup_steps; none */
    float warmup_steps;            /* CosineDecay: before the decay_steps */
    td_optional t_mul, m_mul;      /* CosineDecayRestarts: 2, 1 */
    int pieces;                    /* PiecewiseConstantDecay */
    const int64_t *boundaries;     /* [pieces - 1]: each the last step of its piece; copied by td_compile */
    const float *values;           /* [pieces]; copied by td_compile */
} td_schedule;

#define TD_SCHEDULE_(its_kind, ...)                                                                                    \
    (TD_STRUCT_(td_schedule){.kind = TD_##its_kind, .initial_learning_rate = __VA_ARGS__})
#define td_exponential_decay(...)     TD_SCHEDULE_(EXPONENTIAL_DECAY, __VA_ARGS__)
#define td_polynomial_decay(...)      TD_SCHEDULE_(POLYNOMIAL_DECAY, __VA_ARGS__)
#define td_inverse_time_decay(...)    TD_SCHEDULE_(INVERSE_TIME_DECAY, __VA_ARGS__)
#define td_cosine_decay(...)          TD_SCHEDULE_(COSINE_DECAY, __VA_ARGS__)
#define td_cosine_decay_restarts(...) TD_SCHEDULE_(COSINE_DECAY_RESTARTS, __VA_ARGS__)
#define td_piecewise_constant_decay(...)                                                                               \
    (TD_STRUCT_(td_schedule){.kind = TD_PIECEWISE_CONSTANT_DECAY, .pieces = __VA_ARGS__})

/* Made by td_sgd(...) or td_adam(...). Defaults are Keras's. */
typedef struct td_optimizer {
    td_optimizer_kind kind;
    float learning_rate;                 /* SGD 0.01, Adam 0.001 */
    float momentum;                      /* SGD: 0 */
    td_choice nesterov;                  /* SGD: no */
    td_optional beta_1, beta_2, epsilon; /* Adam: 0.9, 0.999, 1e-7 */
    td_choice amsgrad;                   /* Adam: no */
    float weight_decay;                  /* decoupled: w -= learning_rate * weight_decay * w first; 0: none */
    float clipvalue;                     /* gradients are clipped to [-clipvalue, clipvalue]; 0: none */
    float clipnorm;                      /* each weight's gradient is scaled down to at most this norm; 0: none */
    float global_clipnorm;               /* all gradients together are; at most one of the three clips */
    td_choice use_ema;               /* no; yes: averages of the weights are kept, see td_finalize_variable_values */
    td_optional ema_momentum;        /* 0.99: average = 0.99 average + 0.01 weight after each step */
    int ema_overwrite_frequency;     /* every so many updates the weights become their averages; 0: never */
    int gradient_accumulation_steps; /* at least 2: weights change every so many steps, by the mean of the steps'
                                        gradients; 0: at each step */
    float loss_scale_factor; /* the loss is multiplied by it for backpropagation, and gradients are divided; 0: 1 */
    td_schedule schedule;    /* kind NONE: learning_rate; otherwise of each step instead of it, and not to be set */
} td_optimizer;

#define td_sgd(...)  (TD_STRUCT_(td_optimizer){.kind = TD_OPTIMIZER_SGD, __VA_ARGS__})
#define td_adam(...) (TD_STRUCT_(td_optimizer){.kind = TD_OPTIMIZER_ADAM, __VA_ARGS__})

typedef enum td_loss {
    TD_LOSS_UNKNOWN = -1, /* in td_model_output_loss: the file's, which Tandem does not know */
    TD_LOSS_NONE = 0,
    TD_SPARSE_CATEGORICAL_CROSSENTROPY, /* y: class numbers; prediction: probabilities */
    TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
    TD_CATEGORICAL_CROSSENTROPY, /* y: one-hot or probabilities */
    TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
    TD_BINARY_CROSSENTROPY,
    TD_BINARY_CROSSENTROPY_FROM_LOGITS,
    TD_MEAN_SQUARED_ERROR,
    TD_MEAN_ABSOLUTE_ERROR,
    TD_HUBER,
    TD_LOSS_COUNT
} td_loss;

#define TD_LOSSES(...)       TD_LIST_(td_loss, __VA_ARGS__, TD_LOSS_COUNT)
#define TD_LOSS_WEIGHTS(...) TD_LIST_(float, __VA_ARGS__, TD_LOSS_WEIGHTS_END)
#define TD_LOSS_WEIGHTS_END  (-3e38f)

typedef enum td_metric_kind {
    TD_METRIC_END = 0,
    TD_METRIC_ACCURACY, /* becomes sparse, categorical or binary by the shapes, as Keras's "accuracy" */
    TD_METRIC_SPARSE_CATEGORICAL_ACCURACY,
    TD_METRIC_CATEGORICAL_ACCURACY,
    TD_METRIC_BINARY_ACCURACY,
    TD_METRIC_SPARSE_TOP_K_CATEGORICAL_ACCURACY,
    TD_METRIC_TOP_K_CATEGORICAL_ACCURACY,
    TD_METRIC_PRECISION,
    TD_METRIC_RECALL,
    TD_METRIC_MEAN_IOU,
    TD_METRIC_IOU,
    TD_METRIC_BINARY_IOU,
    TD_METRIC_MEAN_SQUARED_ERROR,
    TD_METRIC_ROOT_MEAN_SQUARED_ERROR,
    TD_METRIC_MEAN_ABSOLUTE_ERROR,
    TD_METRIC_AUC,
    TD_METRIC_F1_SCORE,
    TD_METRIC_COUNT
} td_metric_kind;

typedef enum td_auc_curve { TD_ROC = 0, TD_PR, TD_PRGAIN } td_auc_curve;
typedef enum td_auc_summation { TD_INTERPOLATION = 0, TD_MINORING, TD_MAJORING } td_auc_summation;
typedef enum td_average { TD_NO_AVERAGE = 0, TD_MICRO, TD_MACRO, TD_WEIGHTED } td_average;

/* What is measured besides the loss, by Keras's names and with its defaults. Made by the macros below, in a list:
 * TD_METRICS(TD_ACCURACY, td_metric_mean_iou(.ignore_class = TD_SET(255))). */
typedef struct td_metric {
    td_metric_kind kind;
    const char *name;        /* its key in logs; copied; NULL: Keras's, such as "mean_io_u" */
    int k;                   /* top-k accuracies: 5 */
    td_optional threshold;   /* BinaryAccuracy, Precision, Recall, BinaryIoU: 0.5; 0 for predictions that are logits.
                                F1Score: none, but the largest of the last axis is taken */
    const float *thresholds; /* Precision, Recall: TD_THRESHOLDS(0.2f, 0.8f), a result for each, "precision[0]", ...;
                                AUC: those between 0 and 1; copied; NULL: threshold, num_thresholds */
    int num_thresholds;      /* AUC: 200, evenly from 0 to 1 */
    td_auc_curve curve;      /* AUC */
    td_auc_summation summation_method; /* AUC */
    td_choice multi_label;             /* AUC: no; yes: the mean over the labels' own, of the last axis */
    int num_labels;                    /* AUC with multi_label: those of the output */
    const float *label_weights; /* AUC with multi_label: TD_LABEL_WEIGHTS(1, 0.5f), one not below 0 for each label, of
                                   which the mean is a weighted one; copied; NULL: all alike */
    td_choice from_logits;      /* AUC: no; yes: a sigmoid is taken of predictions */
    td_average average;   /* F1Score: none, a result for each class, "f1_score[0]", ...; MICRO over all decisions, MACRO
                             the classes' mean, WEIGHTED by how often each occurs */
    td_optional class_id; /* Precision, Recall: of this entry of the last axis alone; all */
    int num_classes;      /* IoU, MeanIoU: the numbers in the output's last axis */
    const int *target_class_ids; /* IoU, BinaryIoU: TD_CLASSES(1, 4), the mean over these; copied; NULL: over all */
    td_choice fractions;      /* IoU, MeanIoU, BinaryIoU among weighted_metrics: weights count as they are; no: as whole
                               * numbers, their fractions cut off, as Keras counts them unless its dtype is a float */
    td_optional ignore_class; /* IoU, MeanIoU: what is of this class is not counted; none */
    td_choice sparse_y_true, sparse_y_pred; /* IoU, MeanIoU: class numbers, not a number for each class; not Keras's
                                             * default (yes), but what the shapes say */
} td_metric;

#define TD_METRIC_(its_kind, ...)                        (TD_STRUCT_(td_metric){.kind = TD_METRIC_##its_kind, __VA_ARGS__})
#define TD_ACCURACY                                      TD_METRIC_(ACCURACY, .name = NULL)
#define TD_SPARSE_CATEGORICAL_ACCURACY                   TD_METRIC_(SPARSE_CATEGORICAL_ACCURACY, .name = NULL)
#define TD_CATEGORICAL_ACCURACY                          TD_METRIC_(CATEGORICAL_ACCURACY, .name = NULL)
#define TD_BINARY_ACCURACY                               TD_METRIC_(BINARY_ACCURACY, .name = NULL)
#define td_metric_binary_accuracy(...)                   TD_METRIC_(BINARY_ACCURACY, __VA_ARGS__)
#define td_metric_sparse_top_k_categorical_accuracy(...) TD_METRIC_(SPARSE_TOP_K_CATEGORICAL_ACCURACY, __VA_ARGS__)
#define td_metric_top_k_categorical_accuracy(...)        TD_METRIC_(TOP_K_CATEGORICAL_ACCURACY, __VA_ARGS__)
#define td_metric_precision(...)                         TD_METRIC_(PRECISION, __VA_ARGS__)
#define td_metric_recall(...)                            TD_METRIC_(RECALL, __VA_ARGS__)
#define td_metric_mean_iou(...)                          TD_METRIC_(MEAN_IOU, __VA_ARGS__)
#define td_metric_iou(...)                               TD_METRIC_(IOU, __VA_ARGS__)
#define td_metric_binary_iou(...)                        TD_METRIC_(BINARY_IOU, __VA_ARGS__)
#define td_metric_mean_squared_error(...)                TD_METRIC_(MEAN_SQUARED_ERROR, __VA_ARGS__)
#define td_metric_root_mean_squared_error(...)           TD_METRIC_(ROOT_MEAN_SQUARED_ERROR, __VA_ARGS__)
#define td_metric_mean_absolute_error(...)               TD_METRIC_(MEAN_ABSOLUTE_ERROR, __VA_ARGS__)

#define td_metric_auc(...)      TD_METRIC_(AUC, __VA_ARGS__)
#define td_metric_f1_score(...) TD_METRIC_(F1_SCORE, __VA_ARGS__)

#define TD_METRICS(...)    TD_LIST_(td_metric, __VA_ARGS__, TD_METRIC_(END, .name = NULL))
#define TD_CLASSES(...)    TD_LIST_(int, __VA_ARGS__, TD_CLASSES_END)
#define TD_CLASSES_END     (-1)
#define TD_THRESHOLDS(...) TD_LIST_(float, __VA_ARGS__, TD_THRESHOLDS_END)
#define TD_THRESHOLDS_END  (-1.0f)

/* AUC's label_weights. */
#define TD_LABEL_WEIGHTS(...) TD_LIST_(float, __VA_ARGS__, TD_LABEL_WEIGHTS_END)
#define TD_LABEL_WEIGHTS_END  (-1.0f)

struct td_cluster;

/* Where and how to train; made by td_mirrored or td_multi_worker. Zero: all cores, one replica. */
typedef struct td_strategy {
    const char *devices; /* "cpu" (all allowed cores), "cpu:0,cpu:1" (cores dealt out); copied */
    int shards;          /* S > 0: the batch is cut into S fixed parts, so that any number of replicas that divides S
                            gives the same bits, and any number of processes; 0: cut as suits the machine */
    struct td_cluster *cluster; /* the processes that train in step with this one (cluster.h); NULL: none */
} td_strategy;

#define td_mirrored(...)         (TD_STRUCT_(td_strategy){.devices = __VA_ARGS__})
/* The devices of all processes of a cluster: td_multi_worker(cluster, "cpu:0,cpu:1", .shards = 8). Each device has the
 * same share of the rows, so that a process with three has three times those of a process with one. Every process calls
 * td_compile with it, with the same shards and devices of its own; td_compile fails in all of them when they differ. */
#define td_multi_worker(of, ...) (TD_STRUCT_(td_strategy){.cluster = (of), .devices = __VA_ARGS__})

/* What layers compute in. Weights, the optimizer's state, sums of gradients, batch statistics and losses are float32
 * whatever it is, and files keep their layers' own policies. A processor that is not faster in bfloat16 computes in
 * float32 and says so in the log, once, and in td_explain. */
typedef enum td_precision {
    TD_PRECISION_FILE = 0, /* by each layer's own Keras dtype policy, float32 or mixed_bfloat16 */
    TD_PRECISION_FLOAT32,
    TD_PRECISION_BFLOAT16 /* mixed_bfloat16, the layers that make the model's outputs by their own policy */
} td_precision;

enum { TD_AUTOMATIC_STEPS = -1 }; /* steps_per_execution, as Keras's "auto" */

typedef struct td_compile_args {
    td_location at;
    td_model *model;
    td_guard guard;
    td_optimizer optimizer;    /* kind NONE: keep the model's, with its state; without one, predict and evaluate only */
    td_loss loss;              /* of every output; NONE: keep the model's */
    const td_loss *losses;     /* instead of loss: TD_LOSSES(...), one for each output. An output of TD_LOSS_NONE is not
                                * trained, and data need no target for it; at least one must have a loss.
                                * TD_LOSS_UNKNOWN keeps the output's */
    const float *loss_weights; /* TD_LOSS_WEIGHTS(...): by what each output's loss is multiplied; NULL: keep the
                                * model's, which are 1 unless they were set */
    td_optional ignore_class; /* sparse categorical cross-entropy: what is of this class (often 255, or -1) adds nothing
                               * to the loss, which is the mean over the rest of the batch. Not set: as the model has
                               * it, with another loss none */
    float delta;              /* Huber: where it turns from a parabola to a line; 0: as the model has it, else 1 */
    const td_metric *metrics; /* of every output that has a loss; NULL: keep the model's */
    const td_metric *weighted_metrics; /* those that count by sample_weight and class_weight, as the loss does; NULL:
                                        * keep the model's */
    td_strategy strategy;
    td_choice rematerialize; /* no; yes: activations that are cheap to compute again are not kept for backpropagation:
                                less memory, a little more time; in the same precision and by the same kernels, some
                                of which are chosen by the clock, the same numbers */
    td_precision precision;
    int64_t steps_per_execution; /* steps between two looks at the progress line; TD_AUTOMATIC_STEPS: a whole epoch, or
                                  * where the line is drawn on a terminal as many as take a twentieth of a second; 0:
                                  * as before, which is what the file says above Keras's 1, else automatic */
} td_compile_args;

/* Settles how the model is trained. Weights stay; the optimizer's state starts afresh when an optimizer is given. After
 * a failure the model is compiled as it was before. */
TD_API td_status td_compile_(const td_compile_args *args);
#ifndef __cplusplus
#define td_compile(...) td_compile_(&(td_compile_args){.at = TD_HERE, .model = __VA_ARGS__})
#endif
TD_BY_NAME_(td_status, td_compile, td_compile_args)

/* How a model is compiled: its optimizer with every default filled in (kind NONE without one), the loss of an output
 * (NONE without one), and that of the first output that has one. */
TD_API td_optimizer td_model_optimizer(const td_model *model);
TD_API td_loss td_model_output_loss(const td_model *model, int output);
TD_API td_loss td_model_loss(const td_model *model);
/* What the loss of an output is multiplied by: 1 unless it was set. */
TD_API float td_model_loss_weight(const td_model *model, int output);

/* ---- fit, evaluate, predict ---- */

#define TD_MAX_LOGS     64
#define TD_MAX_LOG_NAME 96

/* Named numbers, in Keras's order: loss first. */
typedef struct td_logs {
    int count;
    struct {
        char name[TD_MAX_LOG_NAME];
        double value;
    } entry[TD_MAX_LOGS];
} td_logs;

/* What an epoch gave. */
typedef struct td_epoch {
    int epoch; /* from 0 */
    int64_t steps, samples;
    double seconds;         /* training only */
    double seconds_waiting; /* of them, the devices': for rows to be there, or bringing them together themselves */
    double learning_rate;
    td_logs logs; /* loss, the metrics, val_loss, val_...; learning_rate in a run that changes it */
} td_epoch;

/* callbacks.h: what happens between steps and epochs; the td_fit that they are called from. */
typedef struct td_callback td_callback;
typedef struct td_training td_training;

#define TD_CALLBACKS(...) TD_LIST_(td_callback *, __VA_ARGS__, NULL)

/* The weight of a class's losses, in a list: TD_CLASS_WEIGHTS({0, 1}, {1, 5}). Classes that are not in it have 1. */
typedef struct td_class_weight {
    int number; /* of the class, from 0 */
    float weight;
} td_class_weight;

#define TD_CLASS_WEIGHTS(...) TD_LIST_(td_class_weight, __VA_ARGS__, {.number = TD_CLASS_WEIGHTS_END})
#define TD_CLASS_WEIGHTS_END  (-1)

/* Where data have weights (td_arrays, td_open, td_generator: sample_weight), td_fit and td_evaluate multiply each
 * sample's loss, or each position's, by its weight, as Keras's sample_weight does. A loss of a batch is the sum over
 * all of them divided by how many there are, those of weight 0 too; with an ignored class by how many count. Metrics
 * are not weighted but those of td_compile's weighted_metrics, which are means by weight. */

/* Which samples the processes of a cluster read. */
typedef enum td_auto_shard {
    TD_SHARD_DATA = 0, /* all have the same data, and each reads its rows of each batch: the same answer as one process
                        * that has all rows */
    TD_SHARD_FILE,     /* each has files of its own */
    TD_SHARD_OFF       /* each has data of its own: a stream, a generator */
} td_auto_shard;

typedef struct td_fit_args {
    td_location at;
    td_model *model;
    td_data *data; /* adopted */
    td_guard guard;
    td_data *validation;      /* adopted; NULL: none */
    double validation_split;  /* the last samples are kept for validation: a fraction in (0, 1), or a count >= 1. Of
                               * folders of images, one a class, as many drawn by chance, the same in every run */
    int epochs;               /* 1 */
    int initial_epoch;        /* 0 */
    int64_t batch_size;       /* the global batch; 32, or that of stateful layers */
    int64_t steps_per_epoch;  /* 0: the data's */
    int64_t validation_steps; /* batches of the validation data, from its first on; 0: all, of a stream to its end */
    td_choice shuffle;        /* yes: one permutation an epoch, fixed by seed and epoch; a stream is not shuffled so */
    int64_t shuffle_buffer; /* instead: each time one of the next N samples, by chance; for streams, and for files that
                             * are slow to read in any order. 0: no buffer */
    /* For models of one output: each sample's loss, or with a class for each position that position's, is multiplied by
     * its class's weight, as Keras's class_weight does (of one-hot targets the largest is the class; a single number is
     * rounded), and by the data's weights too. The validation is not weighted so. NULL: no class has a weight. */
    const td_class_weight *class_weight;
    td_choice balance_classes; /* yes, instead: a class that m of n samples are of has n / (classes * m), as
                                * scikit-learn's "balanced"; no */
    td_choice drop_remainder;  /* yes: an epoch leaves out a last batch that is not full; no */
    uint64_t seed;             /* shuffle and dropout; 0: the model's */
    td_choice adapt;           /* yes: Normalization layers take mean and variance of the training part first; no */
    /* For large minibatches (Goyal et al., 1706.02677); what is done to the rate is said, and logged as learning_rate.
     */
    int64_t base_batch_size; /* the optimizer's rate is for so many samples: it is multiplied by batch_size / this */
    int warmup_epochs;       /* the rate rises to that from its own (without base_batch_size, from 0) step by step */
    td_choice momentum_correction; /* no; SGD's velocity is multiplied by new rate / old rate when the rate changes */
    FILE *progress;                /* Keras's progress line is drawn here; NULL: none */
    td_callback *const *callbacks; /* TD_CALLBACKS(...), adopted; see callbacks.h */
    int input_threads; /* that decode and augment ahead, where rows are not in memory; 0: as many as it takes, at most
                        * one a core. Whatever their number, the bits are the same */
    /* FILE, OFF: each process fills its part of each batch, by its devices, from its own data, in an order of its own;
     * an epoch has as many full batches as the process with the fewest samples can fill, and what is left over
     * elsewhere is left out of it. Refused with shards, whose bits do not depend on the processes. */
    td_auto_shard auto_shard;
    td_epoch *last; /* receives the last epoch's numbers; may be NULL */
} td_fit_args;

/* Trains. TD_STOPPED after td_request_stop: the model holds the last whole step. A loss that becomes NaN is
 * reported as TD_NOT_FINITE naming epoch and step, unless a callback has `not_finite` (callbacks.h); the weights are
 * then as that step left them. */
TD_API td_status td_fit_(const td_fit_args *args);
#ifndef __cplusplus
#define td_fit(...) td_fit_(&(td_fit_args){.at = TD_HERE, .model = __VA_ARGS__})
#endif
TD_BY_NAME_(td_status, td_fit, td_fit_args)

/* confusion.h: which class was taken for which. */
typedef struct td_confusion td_confusion;

typedef struct td_evaluate_args {
    td_location at;
    td_model *model;
    td_data *data; /* adopted */
    td_logs *logs; /* receives loss and metrics, exact means over the samples; may be NULL */
    td_guard guard;
    int64_t batch_size; /* as td_fit's */
    int64_t steps;      /* batches, from the data's first on; 0: all, of a stream to its end */
    FILE *progress;
    td_confusion **confusion; /* receives an output's confusion matrix, which the caller frees with td_confusion_free;
                                 the output's loss is a cross-entropy over classes. NULL: none is made */
    int confusion_output;     /* of which output; 0 */
    td_optional ignore_class; /* samples of this class are left out of it; not set: those that the loss leaves out. The
                               * loss and the metrics are as they are compiled */
    const td_class_weight *class_weight; /* as td_fit's; the confusion matrix counts samples, whatever their weights */
} td_evaluate_args;
TD_API td_status td_evaluate_(const td_evaluate_args *args);
#ifndef __cplusplus
#define td_evaluate(...) td_evaluate_(&(td_evaluate_args){.at = TD_HERE, .model = __VA_ARGS__})
#endif
TD_BY_NAME_(td_status, td_evaluate, td_evaluate_args)

typedef struct td_predict_args {
    td_location at;
    td_model *model;
    td_data *data;   /* adopted; y is not needed */
    float *output;   /* [samples, output shape...], written: the first output's */
    size_t capacity; /* floats that fit in `output` */
    td_guard guard;
    float *const *outputs; /* instead of output: every output's, each with room for all samples */
    const char *path;   /* instead of output: the predictions are written as they are made to this .npy file; of a model
                            with several outputs to an .npz file, as y0, y1, ... They need not fit in memory. On
                            failure a file already there is untouched */
    int64_t batch_size; /* as td_fit's */
    int64_t steps;      /* batches, from the data's first on; 0: all, of a stream to its end */
    int64_t *samples;   /* receives how many were predicted; may be NULL */
    FILE *progress;
} td_predict_args;
/* Writes the predictions for every sample. Those for a stream of unknown length go to a path, to an output as far as
 * its capacity reaches, which is refused on the way when it does not suffice, or by `steps`. TD_STOPPED after
 * td_request_stop. */
TD_API td_status td_predict_(const td_predict_args *args);
#ifndef __cplusplus
#define td_predict(...) td_predict_(&(td_predict_args){.at = TD_HERE, .model = __VA_ARGS__})
#endif
TD_BY_NAME_(td_status, td_predict, td_predict_args)

typedef struct td_generate_args {
    td_location at;
    td_model *model;
    const char *prompt; /* UTF-8, of characters that the text had; NULL or "": a line's begin */
    int64_t length;     /* characters to write behind it */
    td_guard guard;
    FILE *output;            /* receives UTF-8, flushed after every character */
    td_optional temperature; /* 1; probabilities ~ p^(1 / temperature); 0: the likeliest character each time */
    int top_k;               /* among the K likeliest characters only; 0: among all */
    uint64_t seed;           /* of the choices; 0: the model's */
    td_choice echo;          /* no; yes: the prompt is written first */
    const char *recipe;      /* td_data_recipe of the text; NULL: td_model_recipe */
} td_generate_args;
/* Writes on behind the prompt, each character chosen by the scores of the model that sees what was written before it.
 * The model takes characters, [batch, window], and gives the scores of each one's next, [batch, window, characters or
 * more], as it was trained by its categorical cross-entropy. It sees the last `window` characters. One that is stateful
 * with a window of 1 sees each character once and remembers: its states are reset first. TD_INVALID_ARGUMENT, with
 * nothing written, for another model or a prompt that cannot be read; TD_STOPPED after td_request_stop; TD_NOT_FINITE
 * when the scores are no numbers, TD_IO when output cannot be written: what was written before stays. */
TD_API td_status td_generate_(const td_generate_args *args);
#ifndef __cplusplus
#define td_generate(...) td_generate_(&(td_generate_args){.at = TD_HERE, .model = __VA_ARGS__})
#endif
TD_BY_NAME_(td_status, td_generate, td_generate_args)

/* ---- the loop inside, for a loop of one's own ---- */

/* One step on one batch: `x` holds rows x the input's elements, `y` rows x the target's (class numbers as floats),
 * floats, row-major, borrowed during the call. `logs` (may be NULL) receives this batch's loss and metrics. A loss of
 * training that is not finite is there too, and TD_NOT_FINITE returned; the step is made all the same, so that the
 * weights may be NaN then.
 *
 * The first call with a number of rows makes a plan for it, which takes some milliseconds, and about a tenth of a
 * second, beside busy processes more, where the clock is asked how many cores are best: once for all numbers up to the
 * same power of two, later processes find the answer in their cache. The plans of the last 64 numbers are kept. A loop
 * that must not wait makes such calls before it begins. */
TD_API td_status td_train_on_batch(td_model *model, int64_t rows, const float *x, const float *y, td_logs *logs);
TD_API td_status td_test_on_batch(td_model *model, int64_t rows, const float *x, const float *y, td_logs *logs);
TD_API td_status td_predict_on_batch(td_model *model, int64_t rows, const float *x, float *output);

/* The same for models of several inputs or outputs: x[i] is input i's rows, y[o] and outputs[o] output o's. */
TD_API td_status td_train_on_batch_lists(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                         td_logs *logs);
TD_API td_status td_test_on_batch_lists(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                        td_logs *logs);
TD_API td_status td_predict_on_batch_lists(td_model *model, int64_t rows, const float *const *x, float *const *outputs);

/* The same with weights of the losses: of each output, sample_weight[o], [rows], or with `positions` a weight for each
 * position of the output's losses, [rows, ...] (of an output [time, classes]: [rows, time]).
 * Of an output that has no loss and no weighted metric it may be NULL. */
TD_API td_status td_train_on_batch_weighted(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                            const float *const *sample_weight, td_choice positions, td_logs *logs);
TD_API td_status td_test_on_batch_weighted(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                           const float *const *sample_weight, td_choice positions, td_logs *logs);
TD_API td_status td_compute_gradients_weighted(td_model *model, int64_t rows, const float *const *x,
                                               const float *const *y, const float *const *sample_weight,
                                               td_choice positions, td_logs *logs);

/* The two halves of td_train_on_batch. Between them td_gradient gives the gradient of the mean loss for a weight, as
 * numbered by td_weight, in place: it may be read and changed. It has the weight's shape, row-major, belongs to the
 * model, and holds until the next step or td_compile. NULL for a weight that is not trained, a number that there is
 * not, and before the model's first step. */
TD_API td_status td_compute_gradients(td_model *model, int64_t rows, const float *x, const float *y, td_logs *logs);
TD_API td_status td_compute_gradients_lists(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                            td_logs *logs);
TD_API float *td_gradient(td_model *model, int index);
/* Each td_compute_gradients can be applied once. */
TD_API td_status td_apply_gradients(td_model *model);

/* With .use_ema the weights become their averages, as td_fit makes them when it ends; for loops of one's own. Without
 * it, and before the first step, nothing changes. */
TD_API void td_finalize_variable_values(td_model *model);

/* ---- states ---- */

/* What a stateful layer (td_lstm's .stateful) has kept for the rows of a batch becomes zeros again: as it was in the
 * new or loaded model. Training, evaluation and prediction go on from, and leave, the same states; files do not hold
 * them. A control loop that predicts a message at a time begins each episode with td_reset_states. */
TD_API td_status td_reset_states(td_model *model);
/* The states of the layer of that name: TD_NOT_FOUND, or TD_INVALID_ARGUMENT when it is not stateful. */
TD_API td_status td_reset_layer_states(td_model *model, const char *layer);

/* ---- weights and facts ---- */

typedef struct td_weight_info {
    const char *layer; /* "dense_1"; both names are borrowed from the model's context */
    const char *name;  /* "kernel" */
    td_shape shape;
    int trainable;
} td_weight_info;

/* Weights in Keras's order: layer by layer, moving statistics included. */
TD_API int td_weight_count(const td_model *model);
TD_API td_status td_weight(const td_model *model, int index, td_weight_info *info);
/* Copies a weight out of, or into, the model; `count` floats must be the weight's size. */
TD_API td_status td_get_weight(td_model *model, int index, float *values, size_t count);
TD_API td_status td_set_weight(td_model *model, int index, const float *values, size_t count);

/* The number of weights' elements; of those, how many are trained. */
TD_API int64_t td_parameter_count(const td_model *model, int64_t *trainable);
/* One sample's shape, without the batch, at input or output `index`; rank 0 with TD_NOT_FOUND when there is none. */
TD_API td_status td_input_shape(const td_model *model, int index, td_shape *shape);
TD_API td_status td_output_shape(const td_model *model, int index, td_shape *shape);
/* The name of the layer that makes an output, as Keras names the output; NULL: there is no such output. Borrowed. */
TD_API const char *td_output_name(const td_model *model, int index);
/* The activation that makes an output, its layer's own: TD_SOFTMAX means that it holds probabilities, and that its loss
 * is not from logits. TD_LINEAR where its layer has none. */
TD_API td_activation td_output_activation(const td_model *model, int index);

/* td_data_recipe of the data that the model was trained on last; borrowed until it is trained again; NULL: none. */
TD_API const char *td_model_recipe(const td_model *model);

/* The rate of the next step. It cannot be set (TD_INVALID_ARGUMENT) in a model without an optimizer, or whose rate is a
 * schedule, nor to what cannot be: the old one stays. */
TD_API float td_learning_rate(const td_model *model);
TD_API td_status td_set_learning_rate(td_model *model, float learning_rate);

/* Keras's table of layers. */
TD_API td_status td_summary(td_model *model, FILE *out);

/* What a step does. */
typedef enum td_mode {
    TD_MODE_DEFAULT = 0, /* trains; of a model without an optimizer or a loss: predicts */
    TD_MODE_TRAIN,
    TD_MODE_EVALUATE,
    TD_MODE_PREDICT
} td_mode;

typedef struct td_explain_args {
    td_location at;
    td_model *model;
    FILE *out;
    td_guard guard;
    int64_t batch_size; /* as td_fit's */
    td_mode mode;
    td_choice time; /* no; yes: where the time of a step goes */
    td_choice json; /* no; yes: for a program */
} td_explain_args;

/* What the plan of one step is: how many replicas and threads and why, what was fused, per op the kernel chosen, who
 * declined and why, bytes and FLOPs.
 *
 * With .time, instead: the ten ops that take most of a step's time, each with its kernel, the calls of it, us a step,
 * and its floor: the least time in which the threads could do its operations and move its bytes, by what loops that do
 * nothing else have just reached on them; measured / floor; what bounds it. Then what the other ops take, feeding and
 * waiting: the times add up to the step's. It runs steps on made-up rows for a second or two, with copies of weights
 * and slots: nothing of the model changes. TD_NOT_FINITE when the model's loss is not a number on them.
 *
 * With .json an object: the name of the "model", "mode", "batch_size", "replicas", "parts" (of the batch), "workers",
 * "lanes" (of a worker), "why" these; "precision" (float32 or bfloat16) and "why_float32" (null where it is not);
 * "choices" between whole steps: of their "way" (precision and division) and of how many "lanes" take part;
 * "peak_bytes" (of a step, besides the library and the data), "state_bytes" (weights; to train, gradients and slots
 * too), "activation_bytes" (of one shard), "scratch_bytes" (of one thread), "packed_bytes" (of one shard: weights as
 * kernels want them, made when they have changed), and "steps", one for each op, of a shard with most rows:
 * "layer", "variable" (the weight whose gradient or new value it makes; else left out), "op", "pass" (forward,
 * backward, update), "kernel", the "choice" between kernels, how threads "share" it (whole, rows, columns, flat, depth)
 * and how many "lanes" do, "shape", "flops", "bytes" (read and written), "kept_bytes" (of them, of weights and slots),
 * whether products are of "bfloat16" numbers, whether it runs "once" for all shards of a replica, and whether the
 * threads meet before it ("barrier").
 * A choice is null where the clock was not asked, else an object: what was "taken", the "us" of each candidate by its
 * name, and whether that is "unsure" and timed again by the next process, as beside other processes.
 *
 * With .time too, each step has "calls", "us", "floor_us" and "bound" (arithmetic or memory), over all shards, and
 * "time" has "threads", "steps" (that were timed), "us" (a step), "waiting_us", "feeding_us", "rest_us", "floor_us",
 * and "roofs", what the "threads" can do at most: operations a second of "all" of them, "fp32_flops" and where it
 * counts "bf16_flops", and pairs of the bytes of each thread's data and the bytes a second at which all read them,
 * "read_all", or read and write, "update_all" (of a thread alone, "read_one" and "update_one").
 */
TD_API td_status td_explain_(const td_explain_args *args);
#ifndef __cplusplus
#define td_explain(...) td_explain_(&(td_explain_args){.at = TD_HERE, .model = __VA_ARGS__})
#endif
TD_BY_NAME_(td_status, td_explain, td_explain_args)

/* What this machine offers: CPU features, cores allowed, libraries found, and what each gives. */
TD_API td_status td_doctor(td_context *context, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
