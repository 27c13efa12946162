/* session.c - loads a model and compiles it by the file's configuration, overridden by the options. */
#include "session.h"

#include <stdio.h>
#include <string.h>

#include "output_path.h"

static void log_line(void *user, td_log_level level, const char *line)
{
    const struct options *options = user;
    if (level == TD_LOG_WARNING || !options->quiet)
        fprintf(stderr, "%s: %s%s\n", program_invocation_name, level == TD_LOG_WARNING ? "warning: " : "", line);
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

int session_load(const struct options *options, struct session *session)
{
    int status = session_open(options, session);
    if (status == TOOL_DONE && options->trace)
        status = output_check_folder("--trace", options->trace);
    if (status != TOOL_DONE)
        return status;
    session->model = td_load(session->context, options->argument);
    if (session->model && options->weights && td_load_weights(session->model, options->weights) != TD_OK)
        return session_failed(session);
    if (!session->model || (options->trace && td_trace_begin(session->context, 0) != TD_OK))
        return session_failed(session);
    return TOOL_DONE;
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
    td_context_free(session->context);
    *session = (struct session){0};
}

/* ---- the compile configuration ---- */

static int refuse_uncompiled(const struct options *options, enum purpose purpose)
{
    if (purpose == TO_EVALUATE)
        return tool_refuse("%s was saved without a loss: give one, for example --loss sparse_categorical_crossentropy "
                           "--from-logits --metrics accuracy",
                           options->argument);
    return tool_refuse("%s was saved without a full compile configuration: give --optimizer and --loss, for example "
                       "--optimizer adam --loss sparse_categorical_crossentropy --from-logits --metrics accuracy",
                       options->argument);
}

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

/* Sets the loss to compile with; TD_LOSS_NONE keeps the file's. */
static int merge_loss(const struct options *options, td_loss of_file, td_loss *merged)
{
    *merged = options->loss;
    if (!options->from_logits)
        return TOOL_DONE;
    switch (options->loss != TD_LOSS_NONE ? options->loss : of_file) {
    case TD_SPARSE_CATEGORICAL_CROSSENTROPY:
        *merged = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS;
        return TOOL_DONE;
    case TD_CATEGORICAL_CROSSENTROPY:
        *merged = TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS;
        return TOOL_DONE;
    case TD_BINARY_CROSSENTROPY:
        *merged = TD_BINARY_CROSSENTROPY_FROM_LOGITS;
        return TOOL_DONE;
    case TD_MEAN_SQUARED_ERROR:
    case TD_MEAN_ABSOLUTE_ERROR:
    case TD_HUBER:
        return tool_refuse("--from-logits belongs to the cross-entropies, and the loss is another; leave it out, or "
                           "give another --loss");
    default:
        return TOOL_DONE;
    }
}

/* Copies metrics[TOOL_MAX_METRICS + 1] of the options. Whether an AUC's predictions are logits follows from the loss.
 */
static void choose_metrics(const td_metric *given, td_loss loss, td_metric *metrics)
{
    bool logits = loss == TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS ||
                  loss == TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS || loss == TD_BINARY_CROSSENTROPY_FROM_LOGITS;
    memcpy(metrics, given, (TOOL_MAX_METRICS + 1) * sizeof *metrics);
    for (td_metric *metric = metrics; metric->kind != TD_METRIC_END; metric++)
        if (metric->kind == TD_METRIC_AUC && logits)
            metric->from_logits = TD_YES;
}

int session_compile(const struct options *options, struct session *session, enum purpose purpose)
{
    td_optimizer of_file = td_model_optimizer(session->model), optimizer = merge_optimizer(options, of_file);
    td_loss loss_of_file = td_model_loss(session->model), loss;
    if ((purpose == TO_TRAIN && optimizer.kind == TD_OPTIMIZER_NONE) ||
        (purpose != TO_PREDICT && options->loss == TD_LOSS_NONE && loss_of_file == TD_LOSS_NONE))
        return refuse_uncompiled(options, purpose);
    int status = check_optimizer(options, optimizer.kind);
    if (status == TOOL_DONE)
        status = check_averages(options, &optimizer);
    if (status == TOOL_DONE)
        status = check_schedule(options, &of_file);
    if (status == TOOL_DONE)
        status = merge_loss(options, loss_of_file, &loss);
    if (status != TOOL_DONE)
        return status;
    if (!changes_optimizer(options, &of_file))
        optimizer = (td_optimizer){.kind = TD_OPTIMIZER_NONE};
    td_metric metrics[TOOL_MAX_METRICS + 1], weighted[TOOL_MAX_METRICS + 1];
    choose_metrics(options->metrics, loss == TD_LOSS_NONE ? loss_of_file : loss, metrics);
    choose_metrics(options->weighted_metrics, loss == TD_LOSS_NONE ? loss_of_file : loss, weighted);
    if (td_compile_(&(td_compile_args){.model = session->model,
                                       .optimizer = optimizer,
                                       .loss = loss,
                                       .ignore_class = options->ignore_class,
                                       .metrics = options->metrics_given ? metrics : NULL,
                                       .weighted_metrics = options->weighted_metrics_given ? weighted : NULL,
                                       .strategy = {.devices = options->devices, .shards = (int)options->shards},
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
    return status == TOOL_DONE ? session_train_data(options, td_model_recipe(session->model), train) : status;
}
