/* session.c - loads a model and compiles it by the file's configuration, overridden by the options. */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output_path.h"

static void log_line(void *user, td_log_level level, const char *line)
{
    const struct options *options = user;
    if (level == TD_LOG_WARNING || !options->quiet)
        tool_say("%s%s", level == TD_LOG_WARNING ? "warning: " : "", line);
}

int session_open(const struct options *options, struct session *session)
{
    td_context_options context_options = {.log = log_line, .log_user = (void *)options};
    *session = (struct session){.context = td_context_create(&context_options)};
    return session->context ? TOOL_DONE : tool_fail("out of memory");
}

int session_failed(const struct session *session)
{
    return tool_fail("%s", td_error(session->context));
}

int session_refused(const struct session *session)
{
    td_status status = td_error_status(session->context);
    if (status == TD_INVALID_ARGUMENT || status == TD_NOT_FOUND)
        return tool_refuse("%s", td_error(session->context));
    return session_failed(session);
}

static int open_cluster(const struct options *options, struct session *session)
{
    const td_cluster_args args = {.context = session->context,
                                  .cluster = options->cluster_file,
                                  .task = options->task,
                                  .rendezvous = options->rendezvous,
                                  .secret_file = options->secret_file,
                                  .name = options->run_name,
                                  .bind = options->bind,
                                  .transport = options->transport,
                                  .encryption = options->encryption,
                                  .start_timeout = (double)options->start_timeout};
    int tasks = td_cluster_described(&args);
    if (tasks > 1)
        session->cluster = td_cluster_open_(&args);
    return tasks < 0 || (tasks > 1 && !session->cluster) ? session_refused(session) : TOOL_DONE;
}

int session_join(struct options *options, struct session *session)
{
    int status = session_open(options, session);
    if (status == TOOL_DONE)
        status = open_cluster(options, session);
    if (status == TOOL_DONE && session->cluster && options->auto_shard == TD_SHARD_FILE)
        status = session_deal_files(options, session);
    if (status != TOOL_DONE || td_cluster_is_chief(session->cluster))
        return status;
    options->quiet = true;
    options->process = td_cluster_task(session->cluster);
    options->log = options->trace = NULL;
    return TOOL_DONE;
}

static bool read_file(const char *path, void **bytes, size_t *size)
{
    struct stat facts;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fstat(fd, &facts) == 0 && (*bytes = malloc((size_t)facts.st_size + 1));
    *size = 0;
    for (ssize_t got = 1; good && got > 0 && *size<(size_t)facts.st_size; *size += got> 0 ? (size_t)got : 0)
        good = (got = read(fd, (char *)*bytes + *size, (size_t)facts.st_size - *size)) >= 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* The chief has read the model already, so that what is wrong with the file is said once, there. */
static int give_model(const struct options *options, struct session *session)
{
    void *bytes = NULL;
    size_t size = 0;
    int status = read_file(options->argument, &bytes, &size)
                     ? TOOL_DONE
                     : tool_fail("%s cannot be read: %s", options->argument, strerror(errno));
    if (status == TOOL_DONE && td_cluster_broadcast(session->cluster, &bytes, &size) != TD_OK)
        status = session_failed(session);
    free(bytes);
    return status;
}

/* A file in memory: formats are read by their libraries, from files. */
static int file_of(const void *bytes, size_t size, char path[32])
{
    int fd = memfd_create("the chief's model", MFD_CLOEXEC);
    size_t written = 0;
    for (ssize_t put = 1; fd >= 0 && put > 0 && written<size; written += put> 0 ? (size_t)put : 0)
        put = write(fd, (const char *)bytes + written, size - written);
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    if (fd < 0 || written == size)
        return fd;
    close(fd);
    return -1;
}

static int take_model(struct session *session)
{
    void *bytes = NULL;
    size_t size = 0;
    char path[32];
    if (td_cluster_broadcast(session->cluster, &bytes, &size) != TD_OK)
        return session_failed(session);
    int fd = file_of(bytes, size, path);
    free(bytes);
    if (fd < 0)
        return tool_fail("the chief's model finds no room in memory: %s", strerror(errno));
    session->model = td_load(session->context, path);
    close(fd);
    return session->model ? TOOL_DONE : session_failed(session);
}

static int load_file(const struct options *options, struct session *session)
{
    session->model = td_load(session->context, options->argument);
    if (session->model && options->weights && td_load_weights(session->model, options->weights) != TD_OK)
        return session_failed(session);
    if (!session->model)
        return session_failed(session);
    return session->cluster ? give_model(options, session) : TOOL_DONE;
}

int session_load(const struct options *options, struct session *session)
{
    int status = session->context ? TOOL_DONE : session_open(options, session);
    if (status == TOOL_DONE && options->trace)
        status = output_check_folder("--trace", options->trace);
    if (status == TOOL_DONE)
        status = td_cluster_is_chief(session->cluster) ? load_file(options, session) : take_model(session);
    if (status == TOOL_DONE && options->trace && td_trace_begin(session->context, 0) != TD_OK)
        return session_failed(session);
    return status;
}

int session_end_trace(const struct options *options, const struct session *session, int status)
{
    if (!options->trace || !session->model || status == TOOL_REFUSED)
        return status;
    td_clear_error(session->context);
    if (td_trace_end(session->context, options->trace) != TD_OK)
        return tool_fail("--trace: %s%s", td_error(session->context), status == TOOL_DONE ? "; all else is done" : "");
    if (!options->quiet)
        printf("Saved %s: the timeline, for ui.perfetto.dev.\n", options->trace);
    return status;
}

void session_close(struct session *session)
{
    td_cluster_close(session->cluster);
    td_context_free(session->context);
    for (int i = 0; i < TOOL_MAX_ARGUMENTS; i++)
        free(session->dealt[i]);
    *session = (struct session){0};
}

/* ---- the compile configuration ---- */

static int refuse_foreign(const char *option, const char *owner)
{
    return tool_refuse("--%s belongs to %s, and the optimizer is another; leave it out, or add --optimizer %s", option,
                       owner, owner);
}

/* Refuses options that belong to another optimizer. */
static int check_optimizer(const struct options *options, td_optimizer_kind kind)
{
    bool sgd = kind == TD_OPTIMIZER_SGD, adam = kind == TD_OPTIMIZER_ADAM;
    if (!sgd && (options->momentum.is_set || options->nesterov))
        return refuse_foreign(options->nesterov ? "nesterov" : "momentum", "sgd");
    if (!adam && (options->beta_1.is_set || options->beta_2.is_set))
        return refuse_foreign(options->beta_1.is_set ? "beta-1" : "beta-2", "adam");
    if (!adam && (options->epsilon.is_set || options->amsgrad))
        return refuse_foreign(options->amsgrad ? "amsgrad" : "epsilon", "adam");
    return TOOL_DONE;
}

/* Refuses a schedule's initial rate that is given twice. */
static int check_schedule(const struct options *options, const td_optimizer *of_file)
{
    const struct rate_schedule *given = &options->schedule;
    bool said = given->initial_rate_given || given->schedule.kind == TD_PIECEWISE_CONSTANT_DECAY;
    bool of_number = options->optimizer == TD_OPTIMIZER_NONE && of_file->schedule.kind == TD_SCHEDULE_NONE;
    if (given->schedule.kind == TD_SCHEDULE_NONE)
        return TOOL_DONE;
    if (said && options->learning_rate.is_set)
        return tool_refuse("--schedule says which rate it begins with, and so does --learning-rate; leave one out");
    if (said || options->learning_rate.is_set || of_number)
        return TOOL_DONE;
    return tool_refuse("--schedule: expected a rate to begin with; give --learning-rate F too");
}

/* Refuses options of weight averages without averages. */
static int check_averages(const struct options *options, const td_optimizer *merged)
{
    if (merged->use_ema == TD_YES || (!options->ema_momentum.is_set && !options->ema_overwrite_frequency))
        return TOOL_DONE;
    return tool_refuse("--%s belongs to --use-ema, and the optimizer keeps no averages; give --use-ema too",
                       options->ema_momentum.is_set ? "ema-momentum" : "ema-overwrite-frequency");
}

/* True when the options change more of the optimizer than a constant learning rate. That change alone keeps the
 * optimizer's state. */
static bool changes_optimizer(const struct options *options, const td_optimizer *of_file)
{
    return options->schedule.schedule.kind || (options->learning_rate.is_set && of_file->schedule.kind) ||
           options->optimizer != TD_OPTIMIZER_NONE || options->momentum.is_set || options->nesterov ||
           options->beta_1.is_set || options->beta_2.is_set || options->epsilon.is_set || options->amsgrad ||
           options->weight_decay.is_set || options->clipvalue.is_set || options->clipnorm.is_set ||
           options->global_clipnorm.is_set || options->use_ema || options->ema_momentum.is_set ||
           options->ema_overwrite_frequency || options->gradient_accumulation_steps ||
           options->loss_scale_factor.is_set;
}

static void merge_number(td_optional option, float *number)
{
    if (option.is_set)
        *number = option.value;
}

static void merge_optional(td_optional option, td_optional *number)
{
    if (option.is_set)
        *number = option;
}

static void merge_schedule(const struct rate_schedule *given, td_optimizer *merged)
{
    if (given->schedule.kind == TD_SCHEDULE_NONE)
        return;
    merged->schedule = given->schedule;
    merged->schedule.boundaries = given->boundaries;
    merged->schedule.values = given->values;
    if (!given->initial_rate_given)
        merged->schedule.initial_learning_rate = merged->learning_rate;
}

/* A kind of clipping that is given replaces the file's. */
static void merge_clips(const struct options *options, td_optimizer *merged)
{
    if (options->clipvalue.is_set || options->clipnorm.is_set || options->global_clipnorm.is_set)
        merged->clipvalue = merged->clipnorm = merged->global_clipnorm = 0;
    merge_number(options->clipvalue, &merged->clipvalue);
    merge_number(options->clipnorm, &merged->clipnorm);
    merge_number(options->global_clipnorm, &merged->global_clipnorm);
}

static void merge_averages(const struct options *options, td_optimizer *merged)
{
    if (options->use_ema)
        merged->use_ema = TD_YES;
    merge_optional(options->ema_momentum, &merged->ema_momentum);
    if (options->ema_overwrite_frequency)
        merged->ema_overwrite_frequency = (int)options->ema_overwrite_frequency;
}

static td_optimizer merge_optimizer(const struct options *options, td_optimizer of_file)
{
    td_optimizer merged = of_file;
    if (options->optimizer != TD_OPTIMIZER_NONE)
        merged = (td_optimizer){.kind = options->optimizer};
    merge_number(options->learning_rate, &merged.learning_rate);
    if (options->learning_rate.is_set)
        merged.schedule = (td_schedule){.kind = TD_SCHEDULE_NONE};
    merge_schedule(&options->schedule, &merged);
    merge_number(options->momentum, &merged.momentum);
    if (options->nesterov)
        merged.nesterov = TD_YES;
    merge_optional(options->beta_1, &merged.beta_1);
    merge_optional(options->beta_2, &merged.beta_2);
    merge_optional(options->epsilon, &merged.epsilon);
    if (options->amsgrad)
        merged.amsgrad = TD_YES;
    merge_number(options->weight_decay, &merged.weight_decay);
    merge_clips(options, &merged);
    merge_averages(options, &merged);
    if (options->gradient_accumulation_steps)
        merged.gradient_accumulation_steps = (int)options->gradient_accumulation_steps;
    merge_number(options->loss_scale_factor, &merged.loss_scale_factor);
    return merged;
}

/* The outputs' losses and weights to compile with. */
struct losses {
    int count;                          /* outputs */
    td_loss loss[TOOL_MAX_OUTPUTS + 1]; /* ends with TD_LOSS_COUNT; TD_LOSS_UNKNOWN: the file's is kept */
    float weight[TOOL_MAX_OUTPUTS + 1]; /* ends with TD_LOSS_WEIGHTS_END */
    bool changed;
};

/* The output that entry `i` of `count` is for; -1: for all; -2 after a sentence. */
static int output_of(const char *option, const struct output_option *entries, int count, int i, const td_model *model)
{
    int outputs = 0;
    for (const char *name; (name = td_output_name(model, outputs)); outputs++)
        if (entries[i].output && strlen(name) == (size_t)entries[i].length &&
            strncmp(name, entries[i].output, (size_t)entries[i].length) == 0)
            return outputs;
    if (entries[i].output) {
        tool_refuse("--%s: the model has no output '%.*s'; its first is '%s'", option, entries[i].length,
                    entries[i].output, td_output_name(model, 0));
        return -2;
    }
    if (count == 1 || count == outputs)
        return count == 1 ? -1 : i;
    tool_refuse("--%s: expected one entry for each of the %d outputs, or OUTPUT=..., got %d", option, outputs, count);
    return -2;
}

static int take_losses(const struct options *options, const td_model *model, struct losses *losses)
{
    for (int i = 0; i < options->n_losses; i++) {
        int output = output_of("loss", options->losses, options->n_losses, i, model);
        if (output == -2)
            return TOOL_REFUSED;
        for (int o = 0; o < losses->count; o++)
            if (output == -1 || output == o)
                losses->loss[o] = options->losses[i].loss;
    }
    for (int i = 0; i < options->n_loss_weights; i++) {
        int output = output_of("loss-weights", options->loss_weights, options->n_loss_weights, i, model);
        if (output == -2)
            return TOOL_REFUSED;
        for (int o = 0; o < losses->count; o++)
            if (output == -1 || output == o)
                losses->weight[o] = options->loss_weights[i].weight;
    }
    return TOOL_DONE;
}

static td_loss from_logits(td_loss loss)
{
    switch (loss) {
    case TD_SPARSE_CATEGORICAL_CROSSENTROPY:
        return TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS;
    case TD_CATEGORICAL_CROSSENTROPY:
        return TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS;
    case TD_BINARY_CROSSENTROPY:
        return TD_BINARY_CROSSENTROPY_FROM_LOGITS;
    default:
        return loss;
    }
}

static bool is_from_logits(td_loss loss)
{
    return loss == TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS || loss == TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS ||
           loss == TD_BINARY_CROSSENTROPY_FROM_LOGITS;
}

static int merge_losses(const struct options *options, const td_model *model, struct losses *losses)
{
    *losses = (struct losses){.changed = options->n_losses || options->from_logits};
    bool logits = false;
    for (; td_output_name(model, losses->count); losses->count++)
        losses->loss[losses->count] = td_model_output_loss(model, losses->count);
    for (int o = 0; o < losses->count; o++)
        losses->weight[o] = td_model_loss_weight(model, o);
    losses->loss[losses->count] = TD_LOSS_COUNT;
    losses->weight[losses->count] = TD_LOSS_WEIGHTS_END;
    int status = take_losses(options, model, losses);
    for (int o = 0; o < losses->count && options->from_logits; o++) {
        losses->loss[o] = from_logits(losses->loss[o]);
        logits = logits || is_from_logits(losses->loss[o]);
    }
    if (status != TOOL_DONE || !options->from_logits || logits)
        return status;
    return tool_refuse("--from-logits belongs to the cross-entropies, and the loss is another; leave it out, or give "
                       "another --loss");
}

/* Copies metrics[TOOL_MAX_METRICS + 1] of the options. Whether an AUC's predictions are logits follows from the loss.
 */
static void choose_metrics(const td_metric *given, const struct losses *losses, td_metric *metrics)
{
    bool logits = false;
    for (int o = 0; o < losses->count; o++)
        logits = logits || is_from_logits(losses->loss[o]);
    memcpy(metrics, given, (TOOL_MAX_METRICS + 1) * sizeof *metrics);
    for (td_metric *metric = metrics; metric->kind != TD_METRIC_END; metric++)
        if (metric->kind == TD_METRIC_AUC && logits)
            metric->from_logits = TD_YES;
}

static int check_optimizer_options(const struct options *options, const td_optimizer *of_file,
                                   const td_optimizer *merged)
{
    int status = check_optimizer(options, merged->kind);
    if (status == TOOL_DONE)
        status = check_averages(options, merged);
    return status == TOOL_DONE ? check_schedule(options, of_file) : status;
}

/* The words that give an output the loss that most likely belongs to how it ends. */
static const char *example_loss(const td_model *model, int output)
{
    td_shape shape;
    td_activation activation = td_output_activation(model, output);
    int64_t width = td_output_shape(model, output, &shape) == TD_OK && shape.rank ? shape.dim[shape.rank - 1] : 1;
    if (activation == TD_SOFTMAX)
        return "sparse_categorical_crossentropy";
    if (activation == TD_SIGMOID)
        return "binary_crossentropy";
    return width > 1 ? "sparse_categorical_crossentropy --from-logits for classes, or --loss mean_squared_error"
                     : "mean_squared_error";
}

static int refuse_no_optimizer(const struct options *options)
{
    return tool_refuse("%s holds no optimizer that Tandem knows: give one, for example --optimizer adam",
                       options->argument);
}

/* Refuses a model of which no output has a loss, or one an unknown one. */
static int check_losses(const struct options *options, const td_model *model, const struct losses *losses)
{
    bool any = false;
    for (int o = 0; o < losses->count; o++) {
        const char *name = losses->count > 1 ? td_output_name(model, o) : "", *sign = *name ? "=" : "";
        if (losses->loss[o] == TD_LOSS_UNKNOWN)
            return tool_refuse("%s holds a loss%s%s that Tandem does not know: give another, for example --loss %s%s%s",
                               options->argument, *name ? " of output " : "", name, name, sign, example_loss(model, o));
        any = any || losses->loss[o] != TD_LOSS_NONE;
    }
    if (any)
        return TOOL_DONE;
    return tool_refuse("%s was saved without a loss: give one, for example --loss %s", options->argument,
                       example_loss(model, 0));
}

int session_compile(const struct options *options, struct session *session, enum purpose purpose)
{
    td_optimizer of_file = td_model_optimizer(session->model), optimizer = merge_optimizer(options, of_file);
    struct losses losses;
    int status = merge_losses(options, session->model, &losses);
    if (status == TOOL_DONE && purpose == TO_TRAIN && optimizer.kind == TD_OPTIMIZER_NONE)
        status = refuse_no_optimizer(options);
    if (status == TOOL_DONE && purpose != TO_PREDICT)
        status = check_losses(options, session->model, &losses);
    if (status == TOOL_DONE)
        status = check_optimizer_options(options, &of_file, &optimizer);
    if (status != TOOL_DONE)
        return status;
    if (!changes_optimizer(options, &of_file))
        optimizer = (td_optimizer){.kind = TD_OPTIMIZER_NONE};
    td_metric metrics[TOOL_MAX_METRICS + 1], weighted[TOOL_MAX_METRICS + 1];
    choose_metrics(options->metrics, &losses, metrics);
    choose_metrics(options->weighted_metrics, &losses, weighted);
    if (td_compile_(&(td_compile_args){
            .model = session->model,
            .optimizer = optimizer,
            .losses = losses.changed ? losses.loss : NULL,
            .loss_weights = options->n_loss_weights ? losses.weight : NULL,
            .ignore_class = options->ignore_class,
            .metrics = options->metrics_given ? metrics : NULL,
            .weighted_metrics = options->weighted_metrics_given ? weighted : NULL,
            .strategy = {.devices = options->devices, .shards = (int)options->shards, .cluster = session->cluster},
            .steps_per_execution = options->steps_per_execution,
            .rematerialize = options->rematerialize ? TD_YES : TD_NO,
            .precision = options->precision}) != TD_OK)
        return session_refused(session);
    if (optimizer.kind == TD_OPTIMIZER_NONE && options->learning_rate.is_set &&
        td_set_learning_rate(session->model, options->learning_rate.value) != TD_OK)
        return session_refused(session);
    return TOOL_DONE;
}

int session_prepare(const struct options *options, struct session *session, td_data **train)
{
    if (!options->n_train)
        return tool_refuse("--train: expected the data to train on, got none; try --train mnist/");
    int status = session_load(options, session);
    if (status == TOOL_DONE)
        status = session_compile(options, session, TO_TRAIN);
    return status == TOOL_DONE ? session_train_data(options, session->model, train) : status;
}
