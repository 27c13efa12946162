/* options.h - every option of the command, described once. A subcommand's table lists the entries below that it takes;
 * one parser parses them all. */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "callback_options.h"
#include "rate_options.h"
#include "tool.h"

#define TOOL_MAX_METRICS   8
#define TOOL_MAX_OUTPUTS   8
#define TOOL_MAX_ARGUMENTS 16
#define TOOL_MAX_FILES     256

/* An entry of --loss or --loss-weights: of the output of that name, or of all, or by position. */
struct output_option {
    const char *output; /* not terminated; NULL: by position, or for all where there is one entry */
    int length;
    td_loss loss;
    float weight;
};

/* The values of all options; zero means not given. */
struct options {
    const char *argument;                  /* the model's path, or the architecture */
    const char *arguments[TOOL_MAX_FILES]; /* all arguments, where a command takes several */
    int n_arguments;
    char **command; /* of launch: the words after its options; NULL at the end */
    int64_t processes;
    bool cluster;                                 /* of doctor */
    const char *chief, *workers, *ps, *evaluator; /* of cluster config: addresses and commas */
    const char *cluster_file, *task, *secret_file, *run_name, *rendezvous, *bind, *transport,
        *encryption; /* of the cluster to train in */
    int64_t start_timeout;
    td_auto_shard auto_shard;
    int process; /* of the cluster: 0 is the chief */
    const char *curves;
    bool log_x, log_y;
    const char *train[TOOL_MAX_ARGUMENTS];
    int n_train;
    const char *validation, *data, *features, *output, *log, *devices, *checkpoint, *monitor, *csv_log, *backup_dir;
    const char *confusion_file, *class_names, *tensorboard, *trace, *prompt, *text, *weights;
    int64_t histogram_freq, update_freq; /* in epochs; in steps, 0: every epoch */
    int64_t epochs, initial_epoch, batch_size, steps_per_epoch, steps_per_execution, shards, seed, base_batch_size,
        warmup_epochs, confusion_output;
    double validation_split;
    td_optional scale;
    td_image_size image_size;
    const char *cache;                 /* "memory" or a file */
    int64_t steps;                     /* of find-lr, or of new lstm; 0: the default */
    int64_t batches, validation_steps; /* of evaluation or prediction; of validation; 0: all */
    int64_t per_step, outputs;         /* tandem new lstm; 0: the default */
    td_optional start_lr, end_lr;      /* tandem find-lr */
    int64_t length, top_k;             /* tandem generate; 0: the default, all */
    td_optional temperature;
    bool zero_gamma;
    td_augment_args augment;
    bool augmented;
    int64_t input_threads, shuffle_buffer, repeat, interleave, shard_index, shard_count;
    bool drop_remainder;
    struct callback_options callbacks;
    int64_t save_freq; /* in steps; 0: every epoch */
    bool momentum_correction, terminate_on_nan, restore_best_weights, save_best_only, keep_backup;
    td_missing missing;
    td_choice header;
    int64_t window, horizon;
    bool adapt, no_shuffle, reset_states, skip_errors, quiet, json, time, rematerialize, confusion;
    bool write_images;
    td_optional ignore_class, confusion_ignore;

    td_precision precision;
    td_mode mode;
    td_optimizer_kind optimizer;
    td_optional learning_rate, momentum, beta_1, beta_2, epsilon, weight_decay, clipvalue, clipnorm, global_clipnorm,
        ema_momentum, loss_scale_factor;
    int64_t ema_overwrite_frequency, gradient_accumulation_steps;
    bool nesterov, amsgrad, use_ema;
    struct rate_schedule schedule;
    struct epoch_rates epoch_rates;
    struct output_option losses[TOOL_MAX_OUTPUTS], loss_weights[TOOL_MAX_OUTPUTS];
    int n_losses, n_loss_weights;
    bool from_logits, metrics_given, weighted_metrics_given;
    td_metric metrics[TOOL_MAX_METRICS + 1]; /* ends with kind TD_METRIC_END */
    td_metric weighted_metrics[TOOL_MAX_METRICS + 1];
    const char *sample_weight, *class_weight;
};

enum option_key {
    KEY_QUIET = 'q',
    KEY_OUTPUT = 'o',
    KEY_PROCESSES = 'n',
    KEY_TRAIN = 256,
    KEY_VALIDATION,
    KEY_VALIDATION_SPLIT,
    KEY_DATA,
    KEY_SCALE,
    KEY_NO_SHUFFLE,
    KEY_RESET_STATES,
    KEY_EPOCHS,
    KEY_INITIAL_EPOCH,
    KEY_STEPS_PER_EPOCH,
    KEY_STEPS_PER_EXECUTION,
    KEY_BATCH_SIZE,
    KEY_SEED,
    KEY_DEVICES,
    KEY_SHARDS,
    KEY_REMATERIALIZE,
    KEY_PRECISION,
    KEY_LOG,
    KEY_OPTIMIZER,
    KEY_LEARNING_RATE,
    KEY_MOMENTUM,
    KEY_NESTEROV,
    KEY_BETA_1,
    KEY_BETA_2,
    KEY_EPSILON,
    KEY_AMSGRAD,
    KEY_WEIGHT_DECAY,
    KEY_CLIPVALUE,
    KEY_CLIPNORM,
    KEY_GLOBAL_CLIPNORM,
    KEY_USE_EMA,
    KEY_EMA_MOMENTUM,
    KEY_EMA_OVERWRITE_FREQUENCY,
    KEY_GRADIENT_ACCUMULATION_STEPS,
    KEY_LOSS_SCALE_FACTOR,
    KEY_LOSS,
    KEY_LOSS_WEIGHTS,
    KEY_FROM_LOGITS,
    KEY_METRICS,
    KEY_WEIGHTED_METRICS,
    KEY_SAMPLE_WEIGHT,
    KEY_CLASS_WEIGHT,
    KEY_JSON,
    KEY_TIME,
    KEY_MODE,
    KEY_FEATURES,
    KEY_IMAGE_SIZE,
    KEY_SHAPE,
    KEY_OUTPUTS,
    KEY_ZERO_GAMMA,
    KEY_EARLY_STOPPING,
    KEY_RESTORE_BEST,
    KEY_TERMINATE_ON_NAN,
    KEY_BASE_BATCH_SIZE,
    KEY_WARMUP_EPOCHS,
    KEY_MOMENTUM_CORRECTION,
    KEY_REDUCE_LR,
    KEY_CHECKPOINT,
    KEY_CHECKPOINT_OPTIONS,
    KEY_MONITOR,
    KEY_SAVE_BEST_ONLY,
    KEY_SAVE_FREQ,
    KEY_CSV_LOG,
    KEY_CSV_LOG_OPTIONS,
    KEY_BACKUP_DIR,
    KEY_BACKUP_OPTIONS,
    KEY_KEEP_BACKUP,
    KEY_ON_ERROR,
    KEY_ADAPT,
    KEY_MISSING,
    KEY_HEADER,
    KEY_WINDOW,
    KEY_HORIZON,
    KEY_CONFUSION,
    KEY_CONFUSION_FILE,
    KEY_CONFUSION_OUTPUT,
    KEY_CONFUSION_IGNORE,
    KEY_CLASS_NAMES,
    KEY_IGNORE_CLASS,
    KEY_TENSORBOARD,
    KEY_TENSORBOARD_OPTIONS,
    KEY_HISTOGRAM_FREQ,
    KEY_WRITE_IMAGES,
    KEY_UPDATE_FREQ,
    KEY_CURVES,
    KEY_LOG_X,
    KEY_LOG_Y,
    KEY_TRACE,
    KEY_AUGMENT,
    KEY_CACHE,
    KEY_SHUFFLE_BUFFER,
    KEY_DROP_REMAINDER,
    KEY_INPUT_THREADS,
    KEY_START_LR,
    KEY_END_LR,
    KEY_STEPS,
    KEY_BATCHES,
    KEY_VALIDATION_STEPS,
    KEY_PROMPT,
    KEY_TEXT,
    KEY_LENGTH,
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_REPEAT,
    KEY_INTERLEAVE,
    KEY_SHARD,
    KEY_SCHEDULE,
    KEY_EPOCH_RATES,
    KEY_WEIGHTS,
    KEY_CLUSTER,
    KEY_CHIEF,
    KEY_WORKERS,
    KEY_PS,
    KEY_EVALUATOR,
    KEY_CLUSTER_FILE,
    KEY_TASK,
    KEY_SECRET_FILE,
    KEY_RUN_NAME,
    KEY_RENDEZVOUS,
    KEY_BIND,
    KEY_START_TIMEOUT,
    KEY_AUTO_SHARD,
    KEY_TRANSPORT,
    KEY_ENCRYPTION
};

#define OPTION_GROUP(title, number)                                                                                    \
    {                                                                                                                  \
        NULL, 0, NULL, 0, title, number                                                                                \
    }
#define OPTIONS_END                                                                                                    \
    {                                                                                                                  \
        NULL, 0, NULL, 0, NULL, 0                                                                                      \
    }

#define OPTION_DATA                                                                                                    \
    {                                                                                                                  \
        "data", KEY_DATA, "DATA", 0, "The samples: the test split where a path holds both", 0                          \
    }
#define OPTION_TRAIN                                                                                                   \
    {                                                                                                                  \
        "train", KEY_TRAIN, "DATA", 0,                                                                                 \
            "The samples to train on; required. Given several times: these, one behind the other", 0                   \
    }
#define OPTION_ADAPT                                                                                                   \
    {                                                                                                                  \
        "adapt", KEY_ADAPT, NULL, 0, "Set the model's Normalization layers by the training data first", 0              \
    }
#define OPTION_AUGMENT                                                                                                 \
    {                                                                                                                  \
        "augment", KEY_AUGMENT, "LIST", 0,                                                                             \
            "Change the training images at random: flip, crop=PIXELS, shift=F, rotation=F, contrast=F, brightness=F",  \
            0                                                                                                          \
    }
#define OPTION_INTERLEAVE                                                                                              \
    {                                                                                                                  \
        "interleave", KEY_INTERLEAVE, "N", 0, "With several --train: N samples of each in turn", 0                     \
    }
#define OPTION_SHARD                                                                                                   \
    {                                                                                                                  \
        "shard", KEY_SHARD, "I/N", 0, "Only this worker's share, the I-th (from 0) of N: every N-th sample", 0         \
    }
#define OPTION_CACHE                                                                                                   \
    {                                                                                                                  \
        "cache", KEY_CACHE, "memory|FILE", 0, "Keep samples as they are first decoded, in memory or in FILE", 0        \
    }
#define OPTION_SEED                                                                                                    \
    {                                                                                                                  \
        "seed", KEY_SEED, "N", 0, "Fix the shuffles, dropout and augmentation (default: others each time)", 0          \
    }
#define OPTIONS_READING                                                                                                  \
    {"scale", KEY_SCALE, "F", 0, "Multiply the inputs by F (default: 1/255 for images, 1 for arrays)", 0},               \
        {"image-size",                                                                                                   \
         KEY_IMAGE_SIZE,                                                                                                 \
         "HxW",                                                                                                          \
         0,                                                                                                              \
         "Bring all images to this height and width (default: the model's must be theirs)",                              \
         0},                                                                                                             \
        {"features",                                                                                                     \
         KEY_FEATURES,                                                                                                   \
         "LIST",                                                                                                         \
         0,                                                                                                              \
         "TFRecord: which feature is what (default: x=image/encoded,y=image/class/label); CSV: which columns, as "       \
         "x=TEMP,PRES,wind:one-hot,y=pm2.5 or :codes (default: y is the last); npz, HDF5: which arrays, as "             \
         "x0=/a,x1=/b,y=/c",                                                                                             \
         0},                                                                                                             \
        {"missing",                                                                                                      \
         KEY_MISSING,                                                                                                    \
         "HOW",                                                                                                          \
         0,                                                                                                              \
         "CSV: mean, zero, previous or drop where a value is missing (default: such data is refused)",                   \
         0},                                                                                                             \
        {"header", KEY_HEADER, "yes|no", 0, "CSV: whether the first line holds the columns' names (default: found out)", \
         0},                                                                                                             \
        {"window",                                                                                                       \
         KEY_WINDOW,                                                                                                     \
         "T",                                                                                                            \
         0,                                                                                                              \
         "CSV: a sample is T rows in turn, [T, columns] (default: one row); text: T characters (100)",                   \
         0},                                                                                                             \
        {"horizon", KEY_HORIZON, "H", 0, "CSV: its target stands H rows behind the window (default: 1)", 0},             \
    {                                                                                                                    \
        "on-error", KEY_ON_ERROR, "stop|skip", 0, "What to do at a sample that cannot be read (default: stop)", 0        \
    }
#define OPTIONS_LOSS_WEIGHTS                                                                                           \
    {"sample-weight",                                                                                                  \
     KEY_SAMPLE_WEIGHT,                                                                                                \
     "NAME",                                                                                                           \
     0,                                                                                                                \
     "The array, column, feature or .npy file that weighs losses, or none (default: sample_weight, of npz and HDF5)",  \
     0},                                                                                                               \
    {                                                                                                                  \
        "class-weight", KEY_CLASS_WEIGHT, "LIST", 0, "Weights by class: 0:1,1:5 or balanced", 0                        \
    }
#define OPTION_BATCH_SIZE                                                                                              \
    {                                                                                                                  \
        "batch-size", KEY_BATCH_SIZE, "N", 0,                                                                          \
            "Samples per step, over all devices together (default: 32, or a stateful layer's)", 0                      \
    }
#define OPTION_BATCHES                                                                                                 \
    {                                                                                                                  \
        "steps", KEY_BATCHES, "N", 0, "The first N batches only (default: the whole data)", 0                          \
    }
#define OPTION_DEVICES                                                                                                 \
    {                                                                                                                  \
        "devices", KEY_DEVICES, "LIST", 0,                                                                             \
            "cpu (all cores, one replica; the default), or one replica each on cpu:0,cpu:1,...", 0                     \
    }
#define OPTIONS_CLUSTER                                                                                                \
    {"cluster",                                                                                                        \
     KEY_CLUSTER_FILE,                                                                                                 \
     "FILE",                                                                                                           \
     0,                                                                                                                \
     "Train with the processes that FILE describes, by the JSON of TF_CONFIG (default: as TF_CONFIG, mpirun or srun "  \
     "say)",                                                                                                           \
     0},                                                                                                               \
        {"task", KEY_TASK, "TYPE:INDEX", 0, "... as this task of it, as worker:1", 0},                                 \
        {"secret-file",                                                                                                \
         KEY_SECRET_FILE,                                                                                              \
         "FILE",                                                                                                       \
         0,                                                                                                            \
         "... with the secret that all of them have (default: TANDEM_SECRET_FILE)",                                    \
         0},                                                                                                           \
        {"name", KEY_RUN_NAME, "NAME", 0, "... in the run of this name: others are refused", 0},                       \
        {"bind", KEY_BIND, "ADDRESS", 0, "... listening on this address (default: the task's own)", 0},                \
        {"transport",                                                                                                  \
         KEY_TRANSPORT,                                                                                                \
         "auto|ucx|tls",                                                                                               \
         0,                                                                                                            \
         "... gradients by UCX's shared memory within a host, where it is there, else by TLS (auto)",                  \
         0},                                                                                                           \
        {"encryption",                                                                                                 \
         KEY_ENCRYPTION,                                                                                               \
         "auto|on|off",                                                                                                \
         0,                                                                                                            \
         "... off: between hosts by UCX, over TCP or RDMA, unencrypted (auto: so under mpirun and srun)",              \
         0},                                                                                                           \
        {"rendezvous", KEY_RENDEZVOUS, "HOST:PORT", 0, "... where rank 0 listens, if mpirun or srun do not say", 0},   \
    {                                                                                                                  \
        "start-timeout", KEY_START_TIMEOUT, "SECONDS", 0, "... waiting so long for all of them (default: 300)", 0      \
    }
#define OPTION_SHARDS                                                                                                  \
    {                                                                                                                  \
        "shards", KEY_SHARDS, "S", 0,                                                                                  \
            "Cut every batch into S fixed shards: with --seed, 1 to S replicas give the same bits", 0                  \
    }
#define OPTION_REMATERIALIZE                                                                                           \
    {                                                                                                                  \
        "rematerialize", KEY_REMATERIALIZE, NULL, 0,                                                                   \
            "Use less memory: compute cheap values again instead of keeping them", 0                                   \
    }
#define OPTION_PRECISION                                                                                               \
    {                                                                                                                  \
        "precision", KEY_PRECISION, "NAME", 0,                                                                         \
            "file (by each layer's policy; the default), float32, or bfloat16 where the CPU is faster in it", 0        \
    }
#define OPTION_TRACE                                                                                                   \
    {                                                                                                                  \
        "trace", KEY_TRACE, "FILE.json", 0, "Write a timeline of all threads, for ui.perfetto.dev", 0                  \
    }
#define OPTION_WEIGHTS                                                                                                 \
    {                                                                                                                  \
        "weights", KEY_WEIGHTS, "FILE", 0,                                                                             \
            "Begin with the weights in FILE.weights.h5, or in another .keras file of the same layers", 0               \
    }
#define OPTION_QUIET                                                                                                   \
    {                                                                                                                  \
        "quiet", KEY_QUIET, NULL, 0, "No progress on standard output", 0                                               \
    }
#define OPTIONS_CONFUSION                                                                                              \
    {"confusion",                                                                                                      \
     KEY_CONFUSION,                                                                                                    \
     NULL,                                                                                                             \
     0,                                                                                                                \
     "Which class was taken for which; precision, recall and F1 of each, IoU of a segmentation",                       \
     0},                                                                                                               \
        {"confusion-file",                                                                                             \
         KEY_CONFUSION_FILE,                                                                                           \
         "FILE",                                                                                                       \
         0,                                                                                                            \
         "... to a file, too: FILE.csv, or drawn: FILE.png, FILE.svg",                                                 \
         0},                                                                                                           \
        {"confusion-output", KEY_CONFUSION_OUTPUT, "N", 0, "... of output N, counted from 0 (default: 0)", 0},         \
        {"class-names",                                                                                                \
         KEY_CLASS_NAMES,                                                                                              \
         "LIST",                                                                                                       \
         0,                                                                                                            \
         "... with names for the classes; default: the data's, or numbers",                                            \
         0},                                                                                                           \
    {                                                                                                                  \
        "ignore-class", KEY_CONFUSION_IGNORE, "N", 0,                                                                  \
            "Leave samples or pixels of class N out of it; default: what the loss leaves out", 0                       \
    }
#define OPTION_IGNORE_CLASS                                                                                            \
    {                                                                                                                  \
        "ignore-class", KEY_IGNORE_CLASS, "N", 0,                                                                      \
            "sparse_categorical_crossentropy: samples or pixels of class N add nothing to it", 0                       \
    }
#define OPTION_LEARNING_RATE                                                                                           \
    {                                                                                                                  \
        "learning-rate", KEY_LEARNING_RATE, "F", 0, "Default: 0.01 for sgd, 0.001 for adam", 0                         \
    }
#define OPTIONS_OPTIMIZER                                                                                              \
    {"optimizer", KEY_OPTIMIZER, "NAME", 0, "sgd or adam, its state starting afresh", 0},                              \
        {"momentum", KEY_MOMENTUM, "F", 0, "sgd: default 0", 0},                                                       \
        {"nesterov", KEY_NESTEROV, NULL, 0, "sgd: Nesterov's momentum", 0},                                            \
        {"beta-1", KEY_BETA_1, "F", 0, "adam: default 0.9", 0},                                                        \
        {"beta-2", KEY_BETA_2, "F", 0, "adam: default 0.999", 0},                                                      \
        {"epsilon", KEY_EPSILON, "F", 0, "adam: default 1e-7", 0},                                                     \
        {"amsgrad", KEY_AMSGRAD, NULL, 0, "adam: the AMSGrad variant", 0},                                             \
        {"weight-decay", KEY_WEIGHT_DECAY, "F", 0, "Decoupled weight decay; default 0", 0},                            \
        {"clipvalue", KEY_CLIPVALUE, "F", 0, "Clip gradients to [-F, F]; default: no clipping", 0},                    \
        {"clipnorm", KEY_CLIPNORM, "F", 0, "Scale each weight's gradient down to a norm of at most F", 0},             \
        {"global-clipnorm", KEY_GLOBAL_CLIPNORM, "F", 0, "Scale all gradients down to a norm of at most F", 0},        \
        {"use-ema", KEY_USE_EMA, NULL, 0, "Average the weights over the steps; the result has the averages", 0},       \
        {"ema-momentum", KEY_EMA_MOMENTUM, "F", 0, "... which keep F of themselves at each step; default 0.99", 0},    \
        {"ema-overwrite-frequency",                                                                                    \
         KEY_EMA_OVERWRITE_FREQUENCY,                                                                                  \
         "N",                                                                                                          \
         0,                                                                                                            \
         "... and replace the weights every N updates too",                                                            \
         0},                                                                                                           \
        {"gradient-accumulation-steps",                                                                                \
         KEY_GRADIENT_ACCUMULATION_STEPS,                                                                              \
         "N",                                                                                                          \
         0,                                                                                                            \
         "Update every N steps, by the mean of their gradients",                                                       \
         0},                                                                                                           \
    {                                                                                                                  \
        "loss-scale-factor", KEY_LOSS_SCALE_FACTOR, "F", 0,                                                            \
            "Multiply the loss by F for backpropagation, and divide the gradients by it", 0                            \
    }
#define OPTIONS_LOSS                                                                                                   \
    {"loss",                                                                                                           \
     KEY_LOSS,                                                                                                         \
     "NAME",                                                                                                           \
     0,                                                                                                                \
     "sparse_categorical_crossentropy, categorical_crossentropy, binary_crossentropy, mean_squared_error, "            \
     "mean_absolute_error or huber; of several outputs NAME,NAME or OUTPUT=NAME,..., where none leaves one untrained", \
     0},                                                                                                               \
        {"loss-weights",                                                                                               \
         KEY_LOSS_WEIGHTS,                                                                                             \
         "LIST",                                                                                                       \
         0,                                                                                                            \
         "What the losses of several outputs are multiplied by: 1,0.5 or OUTPUT=0.5",                                  \
         0},                                                                                                           \
        {"from-logits",                                                                                                \
         KEY_FROM_LOGITS,                                                                                              \
         NULL,                                                                                                         \
         0,                                                                                                            \
         "The model ends in raw scores (no softmax or sigmoid); for the cross-entropies",                              \
         0},                                                                                                           \
        {"metrics",                                                                                                    \
         KEY_METRICS,                                                                                                  \
         "LIST",                                                                                                       \
         0,                                                                                                            \
         "By Keras's names: accuracy, top_k_categorical_accuracy, precision, recall, auc, mean_io_u, "                 \
         "mean_absolute_error, ..., or none",                                                                          \
         0},                                                                                                           \
    {                                                                                                                  \
        "weighted-metrics", KEY_WEIGHTED_METRICS, "LIST", 0,                                                           \
            "Metrics that count each sample by its weight, as the loss does", 0                                        \
    }

/* The forms of DATA, for help texts. */
#define HELP_DATA                                                                                                      \
    "DATA is a directory of IDX files as MNIST's (gzipped or not), an .npz file with arrays x and y (or x_train, "     \
    "y_train, x_test, y_test), x.npy,y.npy, files.tfrecord[.gz] or files.csv[.gz] by a quoted pattern, "               \
    "file.h5:/x,/y, file.txt, a folder of images (JPEG, PNG, BMP, GIF, WebP) with one folder a class, or "             \
    "images/,labels/ "                                                                                                 \
    "to segment."

/* Parses the words after the subcommand's name; argv[0] is "tandem fit". TOOL_DONE, or TOOL_REFUSED after a sentence on
 * stderr. After --help, --usage and --version it ends the process. */
int tool_parse(const struct command *command, int argc, char **argv, struct options *options);

#endif
