/* options.c - parses options strictly: a number must be a whole word and in range. */
#include "options.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "nearest_word.h"
#include "option_words.h"
#include "output_path.h"
#include "parse_number.h"

#define AT(member) offsetof(struct options, member)

/* ---- numbers ---- */

/* Options with a whole number, stored in an int64_t. */
static const struct count_option {
    int key;
    const char *name;
    size_t at;
    int64_t least, most;
    const char *example;
} count_options[] = {
    {KEY_EPOCHS, "epochs", AT(epochs), 1, INT_MAX, "5"},
    {KEY_INITIAL_EPOCH, "initial-epoch", AT(initial_epoch), 0, INT_MAX - 1, "3"},
    {KEY_STEPS_PER_EPOCH, "steps-per-epoch", AT(steps_per_epoch), 1, INT64_MAX, "100"},
    {KEY_BASE_BATCH_SIZE, "base-batch-size", AT(base_batch_size), 1, INT_MAX, "256"},
    {KEY_WARMUP_EPOCHS, "warmup-epochs", AT(warmup_epochs), 1, INT_MAX, "5"},
    {KEY_BATCH_SIZE, "batch-size", AT(batch_size), 1, INT_MAX, "32"},
    {KEY_SHARDS, "shards", AT(shards), 1, INT_MAX, "8"},
    {KEY_SEED, "seed", AT(seed), 1, INT64_MAX, "7"},
    {KEY_EMA_OVERWRITE_FREQUENCY, "ema-overwrite-frequency", AT(ema_overwrite_frequency), 1, INT_MAX, "100"},
    {KEY_GRADIENT_ACCUMULATION_STEPS, "gradient-accumulation-steps", AT(gradient_accumulation_steps), 2, INT_MAX, "4"},
    {KEY_HISTOGRAM_FREQ, "histogram-freq", AT(histogram_freq), 1, INT_MAX, "1"},
    {KEY_WINDOW, "window", AT(window), 1, INT_MAX, "24"},
    {KEY_HORIZON, "horizon", AT(horizon), 1, INT_MAX, "1"},
    {KEY_OUTPUTS, "outputs", AT(outputs), 1, INT_MAX, "1"},
    {KEY_SHUFFLE_BUFFER, "shuffle-buffer", AT(shuffle_buffer), 1, INT64_MAX, "10000"},
    {KEY_INPUT_THREADS, "input-threads", AT(input_threads), 1, 1024, "2"},
    {KEY_STEPS, "steps", AT(steps), 20, 1000000, "200"},
    {KEY_BATCHES, "steps", AT(batches), 1, INT64_MAX, "100"},
    {KEY_VALIDATION_STEPS, "validation-steps", AT(validation_steps), 1, INT64_MAX, "100"},
    {KEY_LENGTH, "length", AT(length), 1, INT64_MAX, "500"},
    {KEY_REPEAT, "repeat", AT(repeat), 1, INT_MAX, "2"},
    {KEY_INTERLEAVE, "interleave", AT(interleave), 1, INT64_MAX, "1"},
    {KEY_CONFUSION_OUTPUT, "confusion-output", AT(confusion_output), 0, INT_MAX, "1"},
    {KEY_TOP_K, "top-k", AT(top_k), 1, INT_MAX, "10"},
    {KEY_PROCESSES, "processes", AT(processes), 1, 256, "2"},
    {KEY_START_TIMEOUT, "start-timeout", AT(start_timeout), 1, 1000000, "60"},
};

/* Options with a number of steps, or a word that means a number, stored in an int64_t. */
static const struct steps_option {
    int key;
    const char *name;
    size_t at;
    const char *word;
    int64_t meant;
    const char *example;
} steps_options[] = {
    {KEY_STEPS_PER_EXECUTION, "steps-per-execution", AT(steps_per_execution), "auto", TD_AUTOMATIC_STEPS, "100"},
    {KEY_SAVE_FREQ, "save-freq", AT(save_freq), "epoch", 0, "1000"},
};

/* Options with a number, stored in a td_optional. */
static const struct real_option {
    int key;
    const char *name;
    size_t at;
    float least, most;
    const char *expected, *example;
} real_options[] = {
    {KEY_SCALE, "scale", AT(scale), FLT_TRUE_MIN, FLT_MAX, "a number above 0", "0.00392157"},
    {KEY_LEARNING_RATE, "learning-rate", AT(learning_rate), FLT_TRUE_MIN, FLT_MAX, "a number above 0", "0.001"},
    {KEY_START_LR, "start-lr", AT(start_lr), FLT_MIN, FLT_MAX, "a number above 0", "1e-7"},
    {KEY_END_LR, "end-lr", AT(end_lr), FLT_MIN, FLT_MAX, "a number above 0", "10"},
    {KEY_TEMPERATURE, "temperature", AT(temperature), 0, FLT_MAX, "a number not below 0", "0.7"},
    {KEY_MOMENTUM, "momentum", AT(momentum), 0, 1, "a number from 0 to 1", "0.9"},
    {KEY_BETA_1, "beta-1", AT(beta_1), 0, 1 - FLT_EPSILON / 2, "a number from 0 to below 1", "0.9"},
    {KEY_BETA_2, "beta-2", AT(beta_2), 0, 1 - FLT_EPSILON / 2, "a number from 0 to below 1", "0.999"},
    {KEY_EPSILON, "epsilon", AT(epsilon), 0, FLT_MAX, "a number not below 0", "1e-7"},
    {KEY_WEIGHT_DECAY, "weight-decay", AT(weight_decay), 0, FLT_MAX, "a number not below 0", "0.004"},
    {KEY_IGNORE_CLASS, "ignore-class", AT(ignore_class), -(1 << 24), 1 << 24, "a class number", "255"},
    {KEY_CONFUSION_IGNORE, "ignore-class", AT(confusion_ignore), -(1 << 24), 1 << 24, "a class number", "255"},
    {KEY_CLIPVALUE, "clipvalue", AT(clipvalue), FLT_TRUE_MIN, FLT_MAX, "a number above 0", "0.5"},
    {KEY_CLIPNORM, "clipnorm", AT(clipnorm), FLT_TRUE_MIN, FLT_MAX, "a number above 0", "1"},
    {KEY_GLOBAL_CLIPNORM, "global-clipnorm", AT(global_clipnorm), FLT_TRUE_MIN, FLT_MAX, "a number above 0", "1"},
    {KEY_EMA_MOMENTUM, "ema-momentum", AT(ema_momentum), 0, 1, "a number from 0 to 1", "0.999"},
    {KEY_LOSS_SCALE_FACTOR, "loss-scale-factor", AT(loss_scale_factor), FLT_TRUE_MIN, FLT_MAX, "a number above 0",
     "1024"},
};

static int set_count(const struct count_option *option, const char *text, struct options *options)
{
    int64_t value;
    if (!read_count(text, &value) || value < option->least || value > option->most)
        return tool_refuse("--%s: expected a whole number from %lld to %lld, got '%s'; try --%s %s", option->name,
                           (long long)option->least, (long long)option->most, text, option->name, option->example);
    *(int64_t *)((char *)options + option->at) = value;
    return TOOL_DONE;
}

static int set_steps(const struct steps_option *option, const char *text, struct options *options)
{
    int64_t value = option->meant;
    if (strcmp(text, option->word) != 0 && (!read_count(text, &value) || value < 1))
        return tool_refuse("--%s: expected %s or a whole number of steps, got '%s'; try --%s %s", option->name,
                           option->word, text, option->name, option->example);
    *(int64_t *)((char *)options + option->at) = value;
    return TOOL_DONE;
}

static int set_real(const struct real_option *option, const char *text, struct options *options)
{
    double value;
    if (!read_real(text, &value) || fabs(value) > FLT_MAX || (float)value < option->least ||
        (float)value > option->most)
        return tool_refuse("--%s: expected %s, got '%s'; try --%s %s", option->name, option->expected, text,
                           option->name, option->example);
    *(td_optional *)((char *)options + option->at) = TD_SET((float)value);
    return TOOL_DONE;
}

static int set_validation_split(const char *text, struct options *options)
{
    int64_t count;
    if (read_count(text, &count) && count >= 1)
        options->validation_split = (double)count;
    else if (!read_real(text, &options->validation_split) || options->validation_split <= 0 ||
             options->validation_split >= 1)
        return tool_refuse("--validation-split: expected a fraction between 0 and 1 or a whole number of samples, got "
                           "'%s'; try --validation-split 0.2",
                           text);
    return TOOL_DONE;
}

static int set_update_freq(const char *text, struct options *options)
{
    options->update_freq = strcmp(text, "batch") == 0;
    if (!options->update_freq && strcmp(text, "epoch") != 0 &&
        (!read_count(text, &options->update_freq) || options->update_freq < 1))
        return tool_refuse("--update-freq: expected epoch, batch or a whole number of steps, got '%s'; try "
                           "--update-freq 100",
                           text);
    return TOOL_DONE;
}

/* Parses "120x160": two whole numbers from `least` to `most`, with the character `between` between them. */
static bool read_pair(const char *text, char between, int64_t least, int64_t most, int64_t *first, int64_t *second)
{
    char before[16] = "";
    size_t length = strcspn(text, (char[]){between, '\0'});
    memcpy(before, text, length < sizeof before ? length : 0);
    return text[length] && read_count(before, first) && read_count(text + length + 1, second) && *first >= least &&
           *second >= least && *first <= most && *second <= most;
}

static int set_shape(const char *text, struct options *options)
{
    if (!read_pair(text, 'x', 1, INT_MAX, &options->steps, &options->per_step))
        return tool_refuse("--shape: expected STEPSxNUMBERS, got '%s'; try --shape 50x8", text);
    return TOOL_DONE;
}

static int set_image_size(const char *text, struct options *options)
{
    if (!read_pair(text, 'x', 1, 65500, &options->image_size.height, &options->image_size.width))
        return tool_refuse("--image-size: expected HEIGHTxWIDTH in pixels, got '%s'; try --image-size 120x160", text);
    return TOOL_DONE;
}

static int set_shard(const char *text, struct options *options)
{
    if (!read_pair(text, '/', 0, INT_MAX, &options->shard_index, &options->shard_count) ||
        options->shard_index >= options->shard_count)
        return tool_refuse("--shard: expected I/N, with I from 0 to N-1, got '%s'; try --shard 0/4", text);
    return TOOL_DONE;
}

static int set_train(const char *text, struct options *options)
{
    if (!*text)
        return tool_refuse("--train: expected the path of the data, got an empty word");
    if (options->n_train == TOOL_MAX_ARGUMENTS)
        return tool_refuse("--train: expected at most %d of them, got '%s' too; several files may stand in one, by a "
                           "quoted pattern or commas",
                           TOOL_MAX_ARGUMENTS, text);
    options->train[options->n_train++] = text;
    return TOOL_DONE;
}

/* ---- augmentation ---- */

static bool set_flip(const char *text, td_augment_args *augment)
{
    if (!*text || strcmp(text, "horizontal") == 0)
        augment->flip = TD_FLIP_HORIZONTAL;
    else if (strcmp(text, "vertical") == 0)
        augment->flip = TD_FLIP_VERTICAL;
    else
        augment->flip = TD_FLIP_BOTH;
    return augment->flip != TD_FLIP_BOTH || strcmp(text, "horizontal_and_vertical") == 0;
}

static bool set_fill(const char *text, td_augment_args *augment)
{
    static const char *const names[] = {"constant", "reflect", "nearest", "wrap"};
    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0)
            augment->fill = (td_fill)(TD_FILL_ZEROS + i);
    return augment->fill != TD_FILL_DEFAULT;
}

static bool set_crop(const char *text, td_augment_args *augment)
{
    int64_t pixels;
    if (!read_count(text, &pixels) || pixels < 1 || pixels > 1 << 16)
        return false;
    augment->crop = (int)pixels;
    return true;
}

static const struct augment_fraction {
    const char *name;
    size_t at;
} augment_fractions[] = {{"shift", offsetof(td_augment_args, shift)},
                         {"rotation", offsetof(td_augment_args, rotation)},
                         {"contrast", offsetof(td_augment_args, contrast)},
                         {"brightness", offsetof(td_augment_args, brightness)}};

static bool set_fraction(const char *name, const char *text, td_augment_args *augment)
{
    double value;
    for (size_t i = 0; i < sizeof augment_fractions / sizeof *augment_fractions; i++)
        if (strcmp(name, augment_fractions[i].name) == 0 && read_real(text, &value) && value > 0 && value <= 1) {
            *(float *)((char *)augment + augment_fractions[i].at) = (float)value;
            return true;
        }
    return false;
}

/* Parses one word of the list: "flip", "crop=4". */
static bool set_augment_word(char *word, td_augment_args *augment)
{
    char *value = strchr(word, '=');
    if (value)
        *value++ = '\0';
    if (strcmp(word, "flip") == 0)
        return set_flip(value ? value : "", augment);
    if (!value)
        return false;
    if (strcmp(word, "crop") == 0)
        return set_crop(value, augment);
    return strcmp(word, "fill") == 0 ? set_fill(value, augment) : set_fraction(word, value, augment);
}

static int set_augment(const char *text, struct options *options)
{
    char list[256], *rest = list;
    bool good = strlen(text) < sizeof list;
    snprintf(list, sizeof list, "%s", text);
    for (char *word; good && (word = strsep(&rest, ","));)
        good = set_augment_word(word, &options->augment);
    options->augmented = true;
    if (good)
        return TOOL_DONE;
    return tool_refuse("--augment: expected a list of flip, flip=vertical, flip=horizontal_and_vertical, crop=PIXELS, "
                       "shift=F, rotation=F, contrast=F, brightness=F (F above 0, up to 1), fill=constant, reflect, "
                       "nearest or wrap, got '%s'; try --augment flip,crop=4",
                       text);
}

/* ---- names ---- */

struct choice {
    const char *name;
    int value;
};

#define MAX_CHOICES 24

static const struct choice optimizers[] = {{"sgd", TD_OPTIMIZER_SGD}, {"adam", TD_OPTIMIZER_ADAM}, {NULL, 0}};
static const struct choice precisions[] = {
    {"file", TD_PRECISION_FILE}, {"float32", TD_PRECISION_FLOAT32}, {"bfloat16", TD_PRECISION_BFLOAT16}, {NULL, 0}};
static const struct choice auto_shards[] = {
    {"data", TD_SHARD_DATA}, {"file", TD_SHARD_FILE}, {"off", TD_SHARD_OFF}, {NULL, 0}};
static const struct choice modes[] = {
    {"train", TD_MODE_TRAIN}, {"evaluate", TD_MODE_EVALUATE}, {"predict", TD_MODE_PREDICT}, {NULL, 0}};
static const struct choice losses[] = {{"sparse_categorical_crossentropy", TD_SPARSE_CATEGORICAL_CROSSENTROPY},
                                       {"categorical_crossentropy", TD_CATEGORICAL_CROSSENTROPY},
                                       {"binary_crossentropy", TD_BINARY_CROSSENTROPY},
                                       {"mean_squared_error", TD_MEAN_SQUARED_ERROR},
                                       {"mse", TD_MEAN_SQUARED_ERROR},
                                       {"mean_absolute_error", TD_MEAN_ABSOLUTE_ERROR},
                                       {"mae", TD_MEAN_ABSOLUTE_ERROR},
                                       {"huber", TD_HUBER},
                                       {"none", TD_LOSS_NONE},
                                       {NULL, 0}};
static const struct choice metrics[] = {
    {"accuracy", TD_METRIC_ACCURACY},
    {"acc", TD_METRIC_ACCURACY},
    {"sparse_categorical_accuracy", TD_METRIC_SPARSE_CATEGORICAL_ACCURACY},
    {"categorical_accuracy", TD_METRIC_CATEGORICAL_ACCURACY},
    {"binary_accuracy", TD_METRIC_BINARY_ACCURACY},
    {"sparse_top_k_categorical_accuracy", TD_METRIC_SPARSE_TOP_K_CATEGORICAL_ACCURACY},
    {"top_k_categorical_accuracy", TD_METRIC_TOP_K_CATEGORICAL_ACCURACY},
    {"precision", TD_METRIC_PRECISION},
    {"recall", TD_METRIC_RECALL},
    {"mean_io_u", TD_METRIC_MEAN_IOU},
    {"binary_io_u", TD_METRIC_BINARY_IOU},
    {"auc", TD_METRIC_AUC},
    {"f1_score", TD_METRIC_F1_SCORE},
    {"mean_squared_error", TD_METRIC_MEAN_SQUARED_ERROR},
    {"mse", TD_METRIC_MEAN_SQUARED_ERROR},
    {"root_mean_squared_error", TD_METRIC_ROOT_MEAN_SQUARED_ERROR},
    {"mean_absolute_error", TD_METRIC_MEAN_ABSOLUTE_ERROR},
    {"mae", TD_METRIC_MEAN_ABSOLUTE_ERROR},
    {NULL, 0}};

static const struct choice error_choices[] = {{"stop", false}, {"skip", true}, {NULL, 0}};

static const struct choice missing_choices[] = {{"mean", TD_MISSING_MEAN},
                                                {"zero", TD_MISSING_ZERO},
                                                {"previous", TD_MISSING_PREVIOUS},
                                                {"drop", TD_MISSING_DROP},
                                                {NULL, 0}};

static const struct choice header_choices[] = {{"yes", TD_YES}, {"no", TD_NO}, {NULL, 0}};

static int refuse_choice(const char *option, const char *word, const struct choice *choices)
{
    const char *names[MAX_CHOICES];
    char list[640] = "";
    int count = 0;
    for (size_t used = 0; choices[count].name && count < MAX_CHOICES; count++) {
        const char *before = count == 0 ? "" : choices[count + 1].name ? ", " : " or ";
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", before, choices[count].name);
        names[count] = choices[count].name;
    }
    const char *near = nearest_word(word, names, count);
    return tool_refuse("--%s: expected %s, got '%s'; try --%s %s", option, list, word, option, near ? near : names[0]);
}

static int set_choice(const char *option, const char *word, const struct choice *choices, int *value)
{
    for (const struct choice *choice = choices; choice->name; choice++)
        if (strcasecmp(choice->name, word) == 0) {
            *value = choice->value;
            return TOOL_DONE;
        }
    return refuse_choice(option, word, choices);
}

/* Splits "NAME", "OUTPUT=NAME"; NULL when there are more than TOOL_MAX_OUTPUTS of them. Points `word` at the text
 * behind the output's name, and returns where the next entry begins, or the end. */
static const char *next_entry(const char *at, struct output_option *entry, char word[64])
{
    size_t length = strcspn(at, ","), name = length;
    while (name > 0 && at[name - 1] != '=')
        name--;
    *entry = (struct output_option){.output = name ? at : NULL, .length = name ? (int)name - 1 : 0};
    snprintf(word, 64, "%.*s", (int)(length - name), at + name);
    return at + length + (at[length] == ',' && at[length + 1]);
}

static int set_losses(const char *text, struct options *options)
{
    int status = TOOL_DONE, value = 0;
    char word[64];
    options->n_losses = 0;
    for (const char *at = text; status == TOOL_DONE && (*at || !options->n_losses);) {
        if (options->n_losses == TOOL_MAX_OUTPUTS)
            return tool_refuse("--loss: expected at most %d names, got '%s'", TOOL_MAX_OUTPUTS, text);
        struct output_option *entry = &options->losses[options->n_losses++];
        at = next_entry(at, entry, word);
        status = set_choice("loss", word, losses, &value);
        entry->loss = (td_loss)value;
    }
    if (status == TOOL_DONE && options->n_losses == 1 && !options->losses->output && !options->losses->loss)
        return tool_refuse("--loss: none leaves nothing to train; name a loss, or with several outputs OUTPUT=none");
    return status;
}

static int set_loss_weights(const char *text, struct options *options)
{
    double value;
    char word[64];
    options->n_loss_weights = 0;
    for (const char *at = text; *at || !options->n_loss_weights;) {
        if (options->n_loss_weights == TOOL_MAX_OUTPUTS)
            return tool_refuse("--loss-weights: expected at most %d numbers, got '%s'", TOOL_MAX_OUTPUTS, text);
        struct output_option *entry = &options->loss_weights[options->n_loss_weights++];
        at = next_entry(at, entry, word);
        if (!read_real(word, &value) || !(value >= -FLT_MAX / 2 && value <= FLT_MAX / 2))
            return tool_refuse("--loss-weights: expected a number for each output, got '%s'; try --loss-weights 1,0.5",
                               text);
        entry->weight = (float)value;
    }
    return TOOL_DONE;
}

/* Sets list[TOOL_MAX_METRICS + 1]. */
static int set_metrics(const char *option, const char *text, td_metric *list)
{
    int count = 0, status = TOOL_DONE;
    for (const char *at = text; strcmp(text, "none") != 0 && status == TOOL_DONE; at++) {
        char word[64] = "";
        size_t length = strcspn(at, ",");
        memcpy(word, at, length < sizeof word ? length : sizeof word - 1);
        if (count == TOOL_MAX_METRICS)
            return tool_refuse("--%s: expected at most %d names, got '%s'", option, TOOL_MAX_METRICS, text);
        int metric = TD_METRIC_END;
        status = set_choice(option, word, metrics, &metric);
        list[count++] = (td_metric){.kind = (td_metric_kind)metric};
        at += length;
        if (!*at)
            break;
    }
    list[count] = (td_metric){.kind = TD_METRIC_END};
    return status;
}

/* ---- texts and flags ---- */

static const struct text_option {
    int key;
    const char *name;
    size_t at;
    const char *expected;
} text_options[] = {
    {KEY_VALIDATION, "validation", AT(validation), "the path of the data"},
    {KEY_DATA, "data", AT(data), "the path of the data"},
    {KEY_FEATURES, "features", AT(features),
     "which feature is what, as x=image/encoded,y=image/class/label, or which column, as x=a,b,y=c"},
    {KEY_SAMPLE_WEIGHT, "sample-weight", AT(sample_weight), "the name of an array or a column, or none"},
    {KEY_CLASS_WEIGHT, "class-weight", AT(class_weight), "classes and weights, as 0:1,1:5, or balanced"},
    {KEY_OUTPUT, "output", AT(output), "the path of a file"},
    {KEY_LOG, "log", AT(log), "the path of a file"},
    {KEY_CSV_LOG, "csv-log", AT(csv_log), "the path of a file"},
    {KEY_CHECKPOINT, "checkpoint", AT(checkpoint), "a name as best.keras or {epoch:02d}-{val_loss:.2f}.keras"},
    {KEY_BACKUP_DIR, "backup-dir", AT(backup_dir), "the path of a folder"},
    {KEY_CONFUSION_FILE, "confusion-file", AT(confusion_file), "the path of a file"},
    {KEY_CLASS_NAMES, "class-names", AT(class_names), "names with commas between them"},
    {KEY_CURVES, "curves", AT(curves), "names and commas, as loss,accuracy"},
    {KEY_TRACE, "trace", AT(trace), "the path of a file"},
    {KEY_PROMPT, "prompt", AT(prompt), "text, as ROMEO:"},
    {KEY_TEXT, "text", AT(text), "the path of a text"},
    {KEY_WEIGHTS, "weights", AT(weights), "the path of a file"},
    {KEY_TENSORBOARD, "tensorboard", AT(tensorboard), "the path of a folder"},
    {KEY_MONITOR, "monitor", AT(monitor), "the name of a log, as val_loss"},
    {KEY_CACHE, "cache", AT(cache), "memory, or the path of a file"},
    {KEY_DEVICES, "devices", AT(devices), "a list as cpu:0,cpu:1"},
    {KEY_CHIEF, "chief", AT(chief), "the address of a process, as node1:2222"},
    {KEY_WORKERS, "workers", AT(workers), "addresses and commas, as node1:2222,node2:2222"},
    {KEY_PS, "ps", AT(ps), "addresses and commas, as node1:2222,node2:2222"},
    {KEY_CLUSTER_FILE, "cluster", AT(cluster_file), "the path of a file with the JSON of TF_CONFIG"},
    {KEY_TASK, "task", AT(task), "a task, as worker:1"},
    {KEY_SECRET_FILE, "secret-file", AT(secret_file), "the path of a file"},
    {KEY_RUN_NAME, "name", AT(run_name), "a name"},
    {KEY_RENDEZVOUS, "rendezvous", AT(rendezvous), "the address of rank 0, as node1:2222"},
    {KEY_TRANSPORT, "transport", AT(transport), "auto, ucx or tls"},
    {KEY_ENCRYPTION, "encryption", AT(encryption), "auto, on or off"},
    {KEY_BIND, "bind", AT(bind), "an address, as 0.0.0.0"},
    {KEY_EVALUATOR, "evaluator", AT(evaluator), "the address of a process, as node1:2222"},
};

static const struct flag_option {
    int key;
    size_t at;
} flag_options[] = {
    {KEY_QUIET, AT(quiet)},
    {KEY_CLUSTER, AT(cluster)},
    {KEY_CONFUSION, AT(confusion)},
    {KEY_LOG_X, AT(log_x)},
    {KEY_LOG_Y, AT(log_y)},
    {KEY_WRITE_IMAGES, AT(write_images)},
    {KEY_RESTORE_BEST, AT(restore_best_weights)},
    {KEY_TERMINATE_ON_NAN, AT(terminate_on_nan)},
    {KEY_MOMENTUM_CORRECTION, AT(momentum_correction)},
    {KEY_SAVE_BEST_ONLY, AT(save_best_only)},
    {KEY_KEEP_BACKUP, AT(keep_backup)},
    {KEY_ADAPT, AT(adapt)},
    {KEY_ZERO_GAMMA, AT(zero_gamma)},
    {KEY_NO_SHUFFLE, AT(no_shuffle)},
    {KEY_DROP_REMAINDER, AT(drop_remainder)},
    {KEY_RESET_STATES, AT(reset_states)},
    {KEY_JSON, AT(json)},
    {KEY_TIME, AT(time)},
    {KEY_REMATERIALIZE, AT(rematerialize)},
    {KEY_NESTEROV, AT(nesterov)},
    {KEY_AMSGRAD, AT(amsgrad)},
    {KEY_USE_EMA, AT(use_ema)},
    {KEY_FROM_LOGITS, AT(from_logits)},
};

static int set_text(const struct text_option *option, const char *text, struct options *options)
{
    if (!*text)
        return tool_refuse("--%s: expected %s, got an empty word", option->name, option->expected);
    *(const char **)((char *)options + option->at) = text;
    return TOOL_DONE;
}

/* ---- argp ---- */

#define NOT_AN_OPTION (-1)
#define COUNT(array)  (sizeof(array) / sizeof *(array))

static int set_text_or_flag(int key, const char *text, struct options *options)
{
    for (size_t i = 0; i < COUNT(text_options); i++)
        if (text_options[i].key == key)
            return set_text(&text_options[i], text, options);
    for (size_t i = 0; i < COUNT(flag_options); i++)
        if (flag_options[i].key == key) {
            *(bool *)((char *)options + flag_options[i].at) = true;
            return TOOL_DONE;
        }
    return NOT_AN_OPTION;
}

static int set_named(int key, const char *text, struct options *options)
{
    int value = 0, status;
    switch (key) {
    case KEY_OPTIMIZER:
        status = set_choice("optimizer", text, optimizers, &value);
        options->optimizer = (td_optimizer_kind)value;
        return status;
    case KEY_PRECISION:
        status = set_choice("precision", text, precisions, &value);
        options->precision = (td_precision)value;
        return status;
    case KEY_AUTO_SHARD:
        status = set_choice("auto-shard", text, auto_shards, &value);
        options->auto_shard = (td_auto_shard)value;
        return status;
    case KEY_MODE:
        status = set_choice("mode", text, modes, &value);
        options->mode = (td_mode)value;
        return status;
    case KEY_LOSS:
        return set_losses(text, options);
    case KEY_LOSS_WEIGHTS:
        return set_loss_weights(text, options);
    case KEY_METRICS:
        options->metrics_given = true;
        return set_metrics("metrics", text, options->metrics);
    case KEY_WEIGHTED_METRICS:
        options->weighted_metrics_given = true;
        return set_metrics("weighted-metrics", text, options->weighted_metrics);
    case KEY_UPDATE_FREQ:
        return set_update_freq(text, options);
    case KEY_IMAGE_SIZE:
        return set_image_size(text, options);
    case KEY_SHAPE:
        return set_shape(text, options);
    case KEY_TRAIN:
        return set_train(text, options);
    case KEY_SHARD:
        return set_shard(text, options);
    case KEY_SCHEDULE:
        return read_schedule(text, &options->schedule);
    case KEY_EPOCH_RATES:
        return read_epoch_rates(text, &options->epoch_rates);
    case KEY_AUGMENT:
        return set_augment(text, options);
    case KEY_EARLY_STOPPING:
        return read_callback_list(LIST_EARLY_STOPPING, text, &options->callbacks);
    case KEY_REDUCE_LR:
        return read_callback_list(LIST_REDUCE_LR, text, &options->callbacks);
    case KEY_CHECKPOINT_OPTIONS:
        return read_callback_list(LIST_CHECKPOINT, text, &options->callbacks);
    case KEY_CSV_LOG_OPTIONS:
        return read_callback_list(LIST_CSV_LOG, text, &options->callbacks);
    case KEY_TENSORBOARD_OPTIONS:
        return read_callback_list(LIST_TENSORBOARD, text, &options->callbacks);
    case KEY_BACKUP_OPTIONS:
        return read_callback_list(LIST_BACKUP, text, &options->callbacks);
    case KEY_ON_ERROR:
        status = set_choice("on-error", text, error_choices, &value);
        options->skip_errors = value;
        return status;
    case KEY_MISSING:
        status = set_choice("missing", text, missing_choices, &value);
        options->missing = (td_missing)value;
        return status;
    case KEY_HEADER:
        status = set_choice("header", text, header_choices, &value);
        options->header = (td_choice)value;
        return status;
    case KEY_VALIDATION_SPLIT:
        return set_validation_split(text, options);
    default:
        return set_text_or_flag(key, text, options);
    }
}

static int set_option(int key, const char *text, struct options *options)
{
    for (size_t i = 0; i < COUNT(count_options); i++)
        if (count_options[i].key == key)
            return set_count(&count_options[i], text, options);
    for (size_t i = 0; i < COUNT(steps_options); i++)
        if (steps_options[i].key == key)
            return set_steps(&steps_options[i], text, options);
    for (size_t i = 0; i < COUNT(real_options); i++)
        if (real_options[i].key == key)
            return set_real(&real_options[i], text, options);
    return set_named(key, text, options);
}

struct parse {
    const struct command *command;
    struct options *options;
    int status;
};

static int set_argument(const struct parse *parse, const char *word)
{
    const struct command *command = parse->command;
    if (!command->argument)
        return tool_refuse("expected options only, got '%s'; leave it out", word);
    struct options *options = parse->options;
    bool several = strstr(command->argument, "...") || strchr(command->argument, ' ');
    if (several && options->n_arguments == TOOL_MAX_FILES)
        return tool_refuse("expected at most %d files, got '%s' after them", TOOL_MAX_FILES, word);
    if (several)
        options->arguments[options->n_arguments++] = word;
    if (options->argument && !several)
        return tool_refuse("expected one %s, got '%s' after '%s'; data and output are named by options: see "
                           "`tandem help %s`",
                           command->argument, word, options->argument, command->name);
    options->argument = word;
    return TOOL_DONE;
}

/* The words of another command are that command's, its options too. */
static void leave_command(struct argp_state *state, struct options *options)
{
    options->command = state->argv + state->next - 1;
    state->next = state->argc;
}

static error_t parse_key(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    if (key == ARGP_KEY_ARG && tool_takes_command(parse->command))
        leave_command(state, parse->options);
    int status = key == ARGP_KEY_ARG ? set_argument(parse, text) : set_option(key, text, parse->options);
    if (status == NOT_AN_OPTION)
        return ARGP_ERR_UNKNOWN;
    parse->status = status;
    return status == TOOL_DONE ? 0 : EINVAL;
}

/* ---- what belongs together ---- */

static int check_devices(const char *list)
{
    for (const char *at = list;; at++) {
        size_t name = strspn(at, "abcdefghijklmnopqrstuvwxyz");
        at += name;
        size_t digits = *at == ':' ? strspn(at + 1, "0123456789") : 1;
        at += *at == ':' ? 1 + digits : 0;
        if (!name || !digits || (*at && *at != ','))
            return tool_refuse("--devices: expected device names and commas, got '%s'; try --devices cpu:0,cpu:1",
                               list);
        if (!*at)
            return TOOL_DONE;
    }
}

static int check_rates(const struct options *options)
{
    bool schedule = options->schedule.schedule.kind != TD_SCHEDULE_NONE, epochs = options->epoch_rates.count > 0;
    if (!schedule || (!epochs && !options->callbacks.given[LIST_REDUCE_LR]))
        return TOOL_DONE;
    return tool_refuse("expected --schedule or --%s, got both: a schedule sets the learning rate of every step; leave "
                       "one out",
                       epochs ? "learning-rate-scheduler" : "reduce-lr");
}

static int check_checkpoint(const struct options *options)
{
    bool weights = options->callbacks.checkpoint.save_weights_only == TD_YES;
    const char *name = options->checkpoint, *end = weights ? ".weights.h5" : ".keras";
    if (!name || output_ends_in(name, end))
        return TOOL_DONE;
    if (!weights && output_ends_in(name, ".weights.h5"))
        return tool_refuse("--checkpoint: expected a name that ends in .keras, got '%s'; for weights alone give "
                           "--checkpoint-options save_weights_only too",
                           name);
    return tool_refuse("--checkpoint: expected a name that ends in %s%s, got '%s'; try %s%s", end,
                       weights ? " with save_weights_only" : "", name, name, end);
}

static int check_lists(const struct options *options)
{
    const struct {
        enum callback_list list;
        const char *owner, *name, *value;
    } owners[] = {{LIST_CHECKPOINT, options->checkpoint, "checkpoint", "PATTERN"},
                  {LIST_CSV_LOG, options->csv_log, "csv-log", "FILE.csv"},
                  {LIST_TENSORBOARD, options->tensorboard, "tensorboard", "DIR"},
                  {LIST_BACKUP, options->backup_dir, "backup-dir", "DIR"}};
    for (size_t i = 0; i < COUNT(owners); i++)
        if (options->callbacks.given[owners[i].list] && !owners[i].owner)
            return tool_refuse("--%s-options belongs to --%s; give --%s %s too",
                               owners[i].list == LIST_BACKUP ? "backup" : owners[i].name, owners[i].name,
                               owners[i].name, owners[i].value);
    return TOOL_DONE;
}

static int check_together(const struct command *command, const struct options *options)
{
    if (command->argument && command->argument[0] != '[' && !options->argument)
        return tool_refuse("expected %s after the options, got nothing; `tandem help %s` shows examples",
                           command->argument, command->name);
    if (options->no_shuffle && options->shuffle_buffer)
        return tool_refuse("expected --no-shuffle or --shuffle-buffer, got both; leave one out");
    if (options->interleave && options->n_train < 2)
        return tool_refuse("--interleave takes turns among several --train; give another --train DATA too");
    if (options->repeat > 1 && options->validation_split > 0)
        return tool_refuse("--repeat with --validation-split would validate on what is trained on; give --validation "
                           "DATA instead");
    if (options->validation && options->validation_split > 0)
        return tool_refuse("expected --validation or --validation-split, got both; leave one out");
    if (options->validation_steps && !options->validation && !(options->validation_split > 0))
        return tool_refuse(
            "--validation-steps: there is no validation data to take them from; give --validation DATA or "
            "--validation-split too");
    if (options->initial_epoch > 0 && options->initial_epoch >= (options->epochs ? options->epochs : 1))
        return tool_refuse(
            "--initial-epoch: expected a number below --epochs (%lld), got %lld; --epochs counts from the "
            "very first epoch, as in Keras",
            (long long)(options->epochs ? options->epochs : 1), (long long)options->initial_epoch);
    if (options->clipvalue.is_set + options->clipnorm.is_set + options->global_clipnorm.is_set > 1)
        return tool_refuse(
            "expected one of --clipvalue, --clipnorm and --global-clipnorm, got more; leave the others out");
    if (options->restore_best_weights && !options->callbacks.given[LIST_EARLY_STOPPING])
        return tool_refuse("--restore-best-weights belongs to --early-stopping; give --early-stopping PATIENCE too");
    if (options->monitor && !options->callbacks.given[LIST_EARLY_STOPPING] &&
        !options->callbacks.given[LIST_REDUCE_LR] && !options->checkpoint)
        return tool_refuse("--monitor belongs to --early-stopping, --reduce-lr and --checkpoint; give one of them too");
    if (options->save_best_only && !options->checkpoint)
        return tool_refuse("--save-best-only belongs to --checkpoint; give --checkpoint PATTERN too");
    if (options->save_freq && !options->checkpoint && !options->backup_dir)
        return tool_refuse(
            "--save-freq belongs to --checkpoint and --backup-dir; give --checkpoint PATTERN or --backup-dir DIR too");
    if (options->keep_backup && !options->backup_dir)
        return tool_refuse("--keep-backup belongs to --backup-dir; give --backup-dir DIR too");
    if ((options->histogram_freq || options->update_freq || options->write_images) && !options->tensorboard)
        return tool_refuse("--histogram-freq, --write-images and --update-freq belong to --tensorboard; give "
                           "--tensorboard DIR too");
    if (options->write_images && !options->histogram_freq)
        return tool_refuse("--write-images comes with the histograms; give --histogram-freq N too");
    int status = check_lists(options);
    if (status == TOOL_DONE)
        status = check_checkpoint(options);
    if (status == TOOL_DONE)
        status = check_rates(options);
    return status == TOOL_DONE && options->devices ? check_devices(options->devices) : status;
}

int tool_parse(const struct command *command, int argc, char **argv, struct options *options)
{
    struct parse parse = {command, options, TOOL_DONE};
    struct argp argp = {command->options, parse_key, command->argument, command->help, NULL, NULL, NULL};
    int status = tool_check_words(command, argc, argv);
    if (status != TOOL_DONE)
        return status;
    unsigned flags = tool_takes_command(command) ? ARGP_IN_ORDER : 0;
    if (argp_parse(&argp, argc, argv, flags, NULL, &parse) != 0)
        return parse.status == TOOL_DONE ? TOOL_REFUSED : parse.status;
    return check_together(command, options);
}
