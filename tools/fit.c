/* fit.c - `tandem fit`: trains a model file on data and writes the trained model. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "class_weights.h"
#include "json_log.h"
#include "options.h"
#include "output_conflicts.h"
#include "output_path.h"
#include "session.h"
#include "stop_signals.h"

struct fit {
    const struct options *options;
    struct session session;
    td_data *train, *validation;
    struct class_weights class_weights;
    FILE *log;
    int log_error; /* errno of the first line that could not be written */
    bool begun;    /* the arguments were accepted */
    bool trained;  /* training reached its end, though a callback may have failed there */
    char output[OUTPUT_SIZE];
};

static int open_log(struct fit *fit)
{
    const char *path = fit->options->log;
    if (!path)
        return TOOL_DONE;
    fit->log = fopen(path, "a+");
    return fit->log ? TOOL_DONE : tool_fail("--log: cannot append to %s: %s; name another file", path, strerror(errno));
}

/* Refuses options that change the learning rate of a model whose schedule sets it at every step. */
static int check_rates(const struct options *options, const td_model *model)
{
    const char *option = options->callbacks.given[LIST_REDUCE_LR] ? "reduce-lr" : "learning-rate-scheduler";
    td_schedule_kind kind = td_model_optimizer(model).schedule.kind;
    if (kind == TD_SCHEDULE_NONE || (!options->callbacks.given[LIST_REDUCE_LR] && !options->epoch_rates.count))
        return TOOL_DONE;
    return tool_refuse("--%s: the rate of %s is the schedule %s; give --learning-rate F too, which takes its place, or "
                       "leave --%s out",
                       option, options->argument, schedule_name(kind), option);
}

static int prepare_output(struct fit *fit)
{
    const struct options *options = fit->options;
    int status = output_path(options->output, options->argument, "-trained.keras", ".keras", fit->output);
    return status == TOOL_DONE ? output_conflicts_check(options, fit->output) : status;
}

/* Makes all checks that can be made before training begins. */
static int prepare(struct fit *fit)
{
    const struct options *options = fit->options;
    int status = TOOL_DONE;
    if (td_cluster_is_chief(fit->session.cluster))
        status = prepare_output(fit);
    if (status == TOOL_DONE)
        status = session_prepare(options, &fit->session, &fit->train);
    if (status == TOOL_DONE)
        status = check_rates(options, fit->session.model);
    if (status == TOOL_DONE)
        status = class_weights_read(options->class_weight, td_data_recipe(fit->train),
                                    td_model_recipe(fit->session.model), &fit->class_weights);
    if (status == TOOL_DONE && options->validation)
        status = session_validation_data(options, fit->session.model, fit->train, &fit->validation);
    return status == TOOL_DONE ? open_log(fit) : status;
}

static td_status train_begin(void *user, td_training *training)
{
    struct fit *fit = user;
    (void)training;
    fit->begun = true;
    stop_again();
    return TD_OK;
}

/* True when no name leads to the file any more. */
static bool is_removed(FILE *log)
{
    struct stat facts;
    return fstat(fileno(log), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink == 0;
}

static td_status write_log(void *user, td_training *training, td_epoch *epoch)
{
    struct fit *fit = user;
    (void)training;
    if (fit->log && !fit->log_error && log_epoch(fit->log, epoch) != 0)
        fit->log_error = errno;
    if (fit->log && !fit->log_error && is_removed(fit->log))
        fit->log_error = ENOENT;
    stop_again();
    return TD_OK;
}

static td_status train_end(void *user, td_training *training)
{
    struct fit *fit = user;
    (void)training;
    fit->trained = true;
    return TD_OK;
}

static void log_state(void *user, td_training *training, td_state *state)
{
    struct fit *fit = user;
    (void)training;
    td_state_file(state, "file", fit->options->log, fit->log);
}

enum { MAX_CALLBACKS = 12 };

static td_status reset_states(void *user, td_training *training)
{
    (void)user;
    return td_reset_states(td_training_model(training));
}

/* Fills in from the common options what a callback's own list leaves open. */
static struct callback_options resolve_callbacks(const struct options *options)
{
    struct callback_options all = options->callbacks;
    const char **monitors[] = {&all.early_stopping.monitor, &all.reduce_lr.monitor, &all.checkpoint.monitor};
    for (int i = 0; i < 3; i++)
        if (!*monitors[i])
            *monitors[i] = options->monitor;
    if (options->restore_best_weights)
        all.early_stopping.restore_best_weights = TD_YES;
    if (options->save_best_only)
        all.checkpoint.save_best_only = TD_YES;
    if (!all.checkpoint.save_freq)
        all.checkpoint.save_freq = options->save_freq;
    if (!all.backup.save_freq)
        all.backup.save_freq = options->save_freq;
    all.early_stopping.verbose = all.reduce_lr.verbose = all.checkpoint.verbose = TD_YES;
    all.checkpoint.filepath = options->checkpoint;
    all.csv_log.filename = options->csv_log;
    all.tensorboard.log_dir = options->tensorboard;
    all.tensorboard.histogram_freq = (int)options->histogram_freq;
    all.tensorboard.write_images = options->write_images ? TD_YES : TD_NO;
    all.tensorboard.update_freq = options->update_freq;
    all.backup.backup_dir = options->backup_dir;
    all.backup.delete_checkpoint = TD_NO; /* the backup is removed once the output is saved */
    return all;
}

/* Callbacks that change logs or weights come before those that write them. */
static void make_callbacks(struct fit *fit, td_callback *list[MAX_CALLBACKS])
{
    const struct options *options = fit->options;
    struct callback_options all = resolve_callbacks(options);
    int count = 0;
    if (options->reset_states)
        list[count++] = td_callback_create(&(td_callback_functions){.epoch_begin = reset_states}, NULL);
    if (options->schedule.schedule.kind)
        list[count++] = schedule_reporter(&options->schedule);
    if (options->epoch_rates.count)
        list[count++] = td_learning_rate_scheduler_(&(td_learning_rate_scheduler_args){
            .schedule = epoch_rate, .user = (void *)&options->epoch_rates, .verbose = TD_YES});
    if (all.given[LIST_REDUCE_LR])
        list[count++] = td_reduce_lr_on_plateau_(&all.reduce_lr);
    if (options->terminate_on_nan)
        list[count++] = td_terminate_on_nan_(&(td_terminate_on_nan_args){0});
    if (options->checkpoint)
        list[count++] = td_model_checkpoint_(&all.checkpoint);
    if (options->csv_log)
        list[count++] = td_csv_logger_(&all.csv_log);
    if (options->tensorboard)
        list[count++] = td_tensorboard_(&all.tensorboard);
    if (all.given[LIST_EARLY_STOPPING])
        list[count++] = td_early_stopping_(&all.early_stopping);
    list[count++] = td_callback_create(&(td_callback_functions){.train_begin = train_begin,
                                                                .epoch_end = write_log,
                                                                .train_end = train_end,
                                                                .name = "log",
                                                                .state = log_state},
                                       fit);
    if (options->backup_dir)
        list[count++] = td_backup_and_restore_(&all.backup);
    list[count] = NULL;
}

static td_status train(struct fit *fit)
{
    const struct options *options = fit->options;
    td_data *data = fit->train, *validation = fit->validation;
    td_callback *callbacks[MAX_CALLBACKS];
    fit->train = fit->validation = NULL; /* td_fit adopts them */
    make_callbacks(fit, callbacks);
    return td_fit_(&(td_fit_args){.model = fit->session.model,
                                  .data = data,
                                  .validation = validation,
                                  .validation_split = options->validation_split,
                                  .validation_steps = options->validation_steps,
                                  .epochs = (int)options->epochs,
                                  .initial_epoch = (int)options->initial_epoch,
                                  .batch_size = options->batch_size,
                                  .steps_per_epoch = options->steps_per_epoch,
                                  .shuffle = options->no_shuffle ? TD_NO : TD_DEFAULT,
                                  .seed = (uint64_t)options->seed,
                                  .adapt = options->adapt ? TD_YES : TD_NO,
                                  .input_threads = (int)options->input_threads,
                                  .base_batch_size = options->base_batch_size,
                                  .warmup_epochs = (int)options->warmup_epochs,
                                  .momentum_correction = options->momentum_correction ? TD_YES : TD_NO,
                                  .shuffle_buffer = options->shuffle_buffer,
                                  .class_weight = fit->class_weights.list,
                                  .balance_classes = fit->class_weights.balanced ? TD_YES : TD_NO,
                                  .auto_shard = options->auto_shard,
                                  .drop_remainder = options->drop_remainder ? TD_YES : TD_NO,
                                  .progress = options->quiet ? NULL : stdout,
                                  .callbacks = callbacks});
}

/* Saves the model under another name when its own cannot be written. */
static int save_elsewhere(const struct fit *fit, const char *reason)
{
    char folder[OUTPUT_SIZE], path[2 * OUTPUT_SIZE];
    const char *temporary = getenv("TMPDIR"), *name = strrchr(fit->output, '/');
    snprintf(folder, sizeof folder, "%s/tandem-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    td_clear_error(fit->session.context);
    if (!mkdtemp(folder))
        return tool_fail("%s; nor can it be saved in %s: %s", reason, folder, strerror(errno));
    snprintf(path, sizeof path, "%s/%s", folder, name ? name + 1 : fit->output);
    if (td_save(fit->session.model, path) == TD_OK)
        return tool_fail("%s; it is saved in %s instead", reason, path);
    rmdir(folder);
    return tool_fail("%s; nor in %s: %s", reason, folder, td_error(fit->session.context));
}

static int save(struct fit *fit)
{
    char reason[1100];
    if (td_save(fit->session.model, fit->output) != TD_OK) {
        snprintf(reason, sizeof reason, "%s", td_error(fit->session.context));
        return save_elsewhere(fit, reason);
    }
    if (!fit->options->quiet)
        printf("Saved %s.\n", fit->output);
    return TOOL_DONE;
}

static void say_stopped(const struct fit *fit)
{
    const char *backup = fit->options->backup_dir;
    fprintf(stderr, "%s: stopped by %s; %s holds the model as its last step left it%s%s\n", program_invocation_name,
            stop_name(), fit->output, backup ? "; the same command goes on from the backup in " : "",
            backup ? backup : "");
}

/* Appends the log's failure to another one's sentence. */
static void add_log_error(const struct fit *fit, char *reason, size_t size)
{
    size_t length = strlen(reason);
    if (fit->log_error)
        snprintf(reason + length, size - length, "%s--log: %s is incomplete: %s", length ? "; " : "", fit->options->log,
                 strerror(fit->log_error));
}

static int finish(struct fit *fit, td_status status)
{
    char reason[2200] = "";
    if (status == TD_STOPPED && !fit->begun) {
        fprintf(stderr, "%s: stopped by %s before the first step; nothing was written\n", program_invocation_name,
                stop_name());
        return 128 + stop_signal();
    }
    if (status != TD_OK && status != TD_STOPPED && !fit->trained)
        return fit->begun ? session_failed(&fit->session) : session_refused(&fit->session);
    if (status != TD_OK && status != TD_STOPPED)
        snprintf(reason, sizeof reason, "%s", td_error(fit->session.context));
    if (!td_cluster_is_chief(fit->session.cluster))
        return *reason ? tool_fail("%s", reason) : stop_signal() ? 128 + stop_signal() : TOOL_DONE;
    td_clear_error(fit->session.context);
    int saved = save(fit);
    if (saved != TOOL_DONE)
        return saved;
    if (status == TD_STOPPED)
        say_stopped(fit);
    else if (fit->options->backup_dir && !fit->options->keep_backup)
        td_backup_remove(fit->options->backup_dir);
    add_log_error(fit, reason, sizeof reason);
    if (*reason)
        return tool_fail("%s; the model itself is saved in %s", reason, fit->output);
    return stop_signal() ? 128 + stop_signal() : TOOL_DONE;
}

static void say_begun(const struct fit *fit)
{
    const struct options *options = fit->options;
    printf("Training %s on %lld samples of ", options->argument, (long long)td_data_samples(fit->train));
    for (int i = 0; i < options->n_train; i++)
        printf("%s%s", i ? ", " : "", options->train[i]);
    printf("; the result goes to %s.\n", fit->output);
}

static int train_and_save(struct fit *fit)
{
    stop_on_signals(fit->session.context);
    if (!fit->options->quiet)
        say_begun(fit);
    return finish(fit, train(fit));
}

static int run(const struct options *given)
{
    struct options own = *given, *options = &own;
    struct fit fit = {.options = options};
    int status = session_join(options, &fit.session);
    if (status == TOOL_DONE)
        status = prepare(&fit);
    if (status == TOOL_DONE)
        status = train_and_save(&fit);
    if (fit.log)
        fclose(fit.log);
    td_data_release(fit.train);
    td_data_release(fit.validation);
    status = session_end_trace(options, &fit.session, status);
    class_weights_release(&fit.class_weights);
    session_close(&fit.session);
    return status;
}

enum { GROUP_DATA = 1, GROUP_TRAINING, GROUP_CALLBACKS, GROUP_DEVICES, GROUP_COMPILE, GROUP_RESULT };

static const struct argp_option options[] = {
    OPTION_GROUP("Data:", GROUP_DATA),
    OPTION_TRAIN,
    {"validation", KEY_VALIDATION, "DATA", 0, "Samples to evaluate after each epoch", 0},
    {"validation-split", KEY_VALIDATION_SPLIT, "N|F", 0,
     "Keep the last N samples, or the fraction F of them, for validation instead", 0},
    {"validation-steps", KEY_VALIDATION_STEPS, "N", 0,
     "Evaluate the first N batches of the validation data only (default: all of it)", 0},
    OPTION_ADAPT,
    {"no-shuffle", KEY_NO_SHUFFLE, NULL, 0, "Keep the order of the data", 0},
    {"shuffle-buffer", KEY_SHUFFLE_BUFFER, "N", 0,
     "Shuffle among the next N samples only, for files that are slow to read in any order", 0},
    {"drop-remainder", KEY_DROP_REMAINDER, NULL, 0, "Leave out an epoch's last batch when it is not full", 0},
    OPTION_INTERLEAVE,
    OPTION_SHARD,
    OPTION_CACHE,
    {"repeat", KEY_REPEAT, "N", 0, "An epoch has every sample N times", 0},
    OPTION_AUGMENT,
    {"input-threads", KEY_INPUT_THREADS, "N", 0,
     "Decode and augment ahead on at most N threads (default: as many as it takes, up to one a core)", 0},
    OPTIONS_READING,
    OPTIONS_LOSS_WEIGHTS,
    OPTION_GROUP("Training:", GROUP_TRAINING),
    OPTION_WEIGHTS,
    {"epochs", KEY_EPOCHS, "N", 0, "Passes over the data (default: 1)", 0},
    {"initial-epoch", KEY_INITIAL_EPOCH, "N", 0, "Begin at epoch N, counted from 0, to resume", 0},
    {"steps-per-epoch", KEY_STEPS_PER_EPOCH, "N", 0, "End an epoch after N steps (default: the whole data)", 0},
    {"steps-per-execution", KEY_STEPS_PER_EXECUTION, "auto|N", 0,
     "Look at the progress line every N steps, or auto: a terminal's every 0.05 s, else once an epoch (default: as the "
     "file says above Keras's 1, else auto)",
     0},
    OPTION_BATCH_SIZE,
    {"reset-states", KEY_RESET_STATES, NULL, 0, "Begin each epoch with zeros in stateful layers", 0},
    {"base-batch-size", KEY_BASE_BATCH_SIZE, "N", 0,
     "The learning rate is for batches of N: multiply it by --batch-size / N", 0},
    {"warmup-epochs", KEY_WARMUP_EPOCHS, "N", 0,
     "Let the rate rise to that over N epochs, from its own (without --base-batch-size, from 0)", 0},
    {"momentum-correction", KEY_MOMENTUM_CORRECTION, NULL, 0,
     "sgd: multiply the velocity by new rate / old rate when the rate changes", 0},
    OPTION_SEED,
    OPTION_GROUP("Between epochs:", GROUP_CALLBACKS),
    {"early-stopping", KEY_EARLY_STOPPING, "PATIENCE,LIST", 0,
     "Stop when the monitored log has not improved for PATIENCE epochs; behind it Keras's arguments: min_delta=F, "
     "baseline=F, start_from_epoch=N, mode=min, restore_best_weights, monitor=NAME",
     0},
    {"restore-best-weights", KEY_RESTORE_BEST, NULL, 0, "... and go back to the weights of the best epoch", 0},
    {"terminate-on-nan", KEY_TERMINATE_ON_NAN, NULL, 0,
     "Stop when a loss is not a finite number, as after the last epoch, instead of failing", 0},
    {"reduce-lr", KEY_REDUCE_LR, "PATIENCE,LIST", 0,
     "A tenth of the learning rate when it has not improved for PATIENCE epochs; factor=F, min_delta=F, cooldown=N, "
     "min_lr=F, mode=max, monitor=NAME",
     0},
    {"learning-rate-scheduler", KEY_EPOCH_RATES, "LIST", 0,
     "The rates of epochs, counted from 0: 30=0.01,60=0.001 is 0.01 from epoch 30 on", 0},
    {"checkpoint", KEY_CHECKPOINT, "PATTERN", 0, "Save the model after each epoch, as {epoch:02d}-{val_loss:.2f}.keras",
     0},
    {"checkpoint-options", KEY_CHECKPOINT_OPTIONS, "LIST", 0,
     "... with monitor=NAME, mode=max, save_best_only, save_weights_only (PATTERN ends in .weights.h5), save_freq=N, "
     "initial_value_threshold=F",
     0},
    {"save-best-only", KEY_SAVE_BEST_ONLY, NULL, 0, "... only when the monitored log has improved", 0},
    {"monitor", KEY_MONITOR, "NAME", 0, "What is to improve: losses and errors fall, others rise (default: val_loss)",
     0},
    {"backup-dir", KEY_BACKUP_DIR, "DIR", 0,
     "Back the whole run up into DIR, and go on from there: a run that was killed ends with the same bits", 0},
    {"backup-options", KEY_BACKUP_OPTIONS, "LIST", 0, "... with double_checkpoint=no (the newest alone), save_freq=N",
     0},
    {"keep-backup", KEY_KEEP_BACKUP, NULL, 0, "... which is not removed when the training has ended", 0},
    {"save-freq", KEY_SAVE_FREQ, "epoch|N", 0,
     "Back up, and save checkpoints, after every N steps instead of each epoch", 0},
    OPTION_GROUP("Devices:", GROUP_DEVICES),
    OPTION_DEVICES,
    OPTION_SHARDS,
    OPTIONS_CLUSTER,
    {"auto-shard", KEY_AUTO_SHARD, "data|file|off", 0,
     "... which read the same data, each its rows of each batch (data, the default: the answer of one process); of "
     "several files each its own (file); or each what it has itself (off)",
     0},
    OPTION_REMATERIALIZE,
    OPTION_PRECISION,
    OPTION_GROUP("Over the file's compile configuration:", GROUP_COMPILE),
    OPTION_LEARNING_RATE,
    {"schedule", KEY_SCHEDULE, "NAME,LIST", 0,
     "A rate for each step by one of Keras's schedules and its arguments, as cosine_decay,decay_steps=1000; or "
     "cosine_decay_restarts, exponential_decay, inverse_time_decay, piecewise_constant_decay, polynomial_decay: man "
     "tandem-fit lists what they take",
     0},
    OPTIONS_OPTIMIZER,
    OPTIONS_LOSS,
    OPTION_IGNORE_CLASS,
    OPTION_GROUP("Results:", GROUP_RESULT),
    {"output", KEY_OUTPUT, "OUT.keras", 0, "Where the trained model goes (default: MODEL-trained.keras, here)", 0},
    {"log", KEY_LOG, "FILE.jsonl", 0, "Append a JSON object per epoch: losses, metrics, times", 0},
    {"csv-log", KEY_CSV_LOG, "FILE.csv", 0, "Write a line per epoch, as Keras's CSVLogger", 0},
    {"csv-log-options", KEY_CSV_LOG_OPTIONS, "LIST", 0, "... with separator=;, append (to what is there)", 0},
    {"tensorboard", KEY_TENSORBOARD, "DIR", 0, "Write what TensorBoard shows: scalars, graph, hyper-parameters", 0},
    {"tensorboard-options", KEY_TENSORBOARD_OPTIONS, "LIST", 0,
     "... with write_graph=no, write_hparams=no, write_steps_per_second", 0},
    {"histogram-freq", KEY_HISTOGRAM_FREQ, "N", 0, "... and histograms of weights and gradients every N epochs", 0},
    {"write-images", KEY_WRITE_IMAGES, NULL, 0, "... and with them kernels as images", 0},
    {"update-freq", KEY_UPDATE_FREQ, "epoch|batch|N", 0, "... and loss and metrics after every N steps", 0},
    OPTION_TRACE,
    OPTION_QUIET,
    OPTIONS_END};

const struct command fit_command = {
    "fit",
    "MODEL.keras",
    "train a model on data, and write it", /* */
    "Trains MODEL.keras on every core of the machine and writes the trained model, its optimizer's state included, as "
    "a "
    "file that Keras opens. The optimizer, the loss and the metrics are those the file was compiled with, unless "
    "options "
    "say otherwise.\n\n" HELP_DATA "\v"
    "Ctrl-C ends the training after the current step and saves the model; pressed again, it ends at once.\n"
    "\n"
    "Examples:\n"
    "\n"
    "  Two epochs on MNIST, the last 10,000 images kept for validation:\n"
    "    tandem fit mlp.keras --train mnist/ --epochs 2 --validation-split 10000\n"
    "\n"
    "  On two devices, with the bits that one device gives too:\n"
    "    tandem fit mlp.keras --train mnist/ --seed 7 \\\n"
    "      --devices cpu:0,cpu:1 --shards 2\n"
    "\n"
    "  Killed, or stopped by Ctrl-C, the same command goes on where it was:\n"
    "    tandem fit cnn.keras --train images.npz --epochs 50 \\\n"
    "      --backup-dir cnn-backup --save-freq 500\n"
    "\n"
    "  CIFAR-10 from TFRecords, flipped and shifted at random:\n"
    "    tandem fit cnn.keras --train 'cifar10/train-*' --cache memory --augment flip,crop=4\n"
    "\n"
    "  Another optimizer than the file's, and a log to plot:\n"
    "    tandem fit cnn.keras --train images.npz --optimizer sgd --momentum 0.9 \\\n"
    "      --learning-rate 0.05 --log cnn.jsonl --output cnn-sgd.keras\n"
    "\n"
    "  From a rate of 0.1 down to 0 by a cosine in 10,000 steps:\n"
    "    tandem fit cnn.keras --train images.npz --epochs 50 \\\n"
    "      --learning-rate 0.1 --schedule cosine_decay,decay_steps=10000\n"
    "\n"
    "  For TensorBoard, then: tensorboard --logdir logs\n"
    "    tandem fit cnn.keras --train images.npz --validation-split 0.1 \\\n"
    "      --tensorboard logs/first --histogram-freq 1 --update-freq 100\n",
    options,
    run};
