/* callbacks.h - what happens between the steps and epochs of td_fit: Keras's callbacks, and one's own.
 *
 *     td_fit(model, data, .epochs = 100, .validation = test,
 *            .callbacks = TD_CALLBACKS(td_early_stopping(.patience = 5, .restore_best_weights = TD_YES),
 *                                      td_model_checkpoint("best-{epoch:02d}.keras", .save_best_only = TD_YES)));
 *
 * td_fit adopts its callbacks and frees them when it returns. They are called in the order of the list, from the thread
 * that called td_fit. A callback may evaluate, predict with and save the model; while td_fit is under way another of
 * the same model, td_compile, td_train_on_batch, td_compute_gradients, td_apply_gradients and td_model_free are
 * refused.
 */
#ifndef TANDEM_CALLBACKS_H
#define TANDEM_CALLBACKS_H

#include <tandem/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one's own ---- */

TD_API td_model *td_training_model(const td_training *training);
TD_API int td_training_epoch(const td_training *training);     /* from 0 */
TD_API int64_t td_training_steps(const td_training *training); /* done in this epoch */
TD_API double td_training_learning_rate(const td_training *training);
/* From the next step on; TD_INVALID_ARGUMENT unless it is a number not below 0, and when the optimizer has a schedule.
 */
TD_API td_status td_training_set_learning_rate(td_training *training, double learning_rate);
/* Keras's model.stop_training: td_fit ends after this step or epoch, with TD_OK. */
TD_API void td_training_stop(td_training *training);
/* Keeps `sentence` as the reason of a failure and returns `status`, for a callback to return. */
TD_API td_status td_training_fail(td_training *training, td_status status, const char *sentence);
/* Writes a line to td_fit's .progress, when it has one. */
TD_API void td_training_say(td_training *training, const char *line);

/* 1 when td_fit goes on from a backup; td_training_epoch and td_training_steps then say where, from train_begin on. */
TD_API int td_training_resumed(const td_training *training);

/* What a callback remembers, on its way into a backup or, when a run is resumed, out of it: the same calls do both,
 * each under a name of its own. A value that the backup lacks makes td_fit fail. */
typedef struct td_state td_state;
TD_API int td_state_restoring(const td_state *state);
TD_API void td_state_number(td_state *state, const char *name, double *value);
TD_API void td_state_count(td_state *state, const char *name, int64_t *value);
TD_API void td_state_floats(td_state *state, const char *name, float *values, size_t count);
/* A log that the callback writes to, opened for reading too ("a+", "w+"): where it ends is remembered, and it is cut
 * back to there. A file that does not hold what it held is kept as "path.1" (or .2, ...), and `file` becomes an empty
 * one at `path`; without a path it is left as it is. Either is logged as a warning. `file` may be NULL. */
TD_API void td_state_file(td_state *state, const char *name, const char *path, FILE *file);

/* What a callback does. Every function is called from the thread that called td_fit, between two steps, before the
 * first or after the last one, and never while a step is under way: it may block, and the training waits for it. Where
 * a function is NULL, nothing is called. A status other than TD_OK ends td_fit with that status, and with the sentence
 * that td_training_fail was given. */
typedef struct td_callback_functions {
    /* Before the first step. In a resumed run the model and the position are the backup's already
     * (td_training_resumed), and what the callback remembers comes afterwards, by `state`. */
    td_status (*train_begin)(void *user, td_training *training);
    /* Before an epoch's first step; not in an epoch that a resumed run continues in its midst. */
    td_status (*epoch_begin)(void *user, td_training *training);
    /* After every `every` steps, counted across epochs (0: after each): `logs` holds the loss and metrics so far in the
     * epoch, and is valid during the call. Steps between two calls run without coming back to the host, so that a large
     * `every` costs nothing. */
    td_status (*batch_end)(void *user, td_training *training, const td_logs *logs);
    int64_t every;
    /* After a step whose loss is not a finite number. TD_OK ends the training as td_training_stop does. Where no
     * callback has this function td_fit fails with TD_NOT_FINITE. */
    td_status (*not_finite)(void *user, td_training *training);
    /* After an epoch's last step and its validation. Entries that a callback adds to epoch->logs are seen by the
     * callbacks behind it and by td_fit's caller. */
    td_status (*epoch_end)(void *user, td_training *training, td_epoch *epoch);
    /* After the last epoch; for every callback, even if the train_end of another has failed. Not called when the
     * training itself has failed. */
    td_status (*train_end)(void *user, td_training *training);
    /* Frees `user`, when td_fit returns or td_callback_free is called; the last call. */
    void (*release)(void *user);
    /* The name by which a backup knows the callback: "EarlyStopping". A constant; NULL: "callback". */
    const char *name;
    /* Visits by td_state_... what the callback remembers from one call to the next: into each backup that is saved,
     * and, in a resumed run, out of the backup, after train_begin. NULL: it remembers nothing. */
    void (*state)(void *user, td_training *training, td_state *state);
} td_callback_functions;

/* A callback of one's own; `functions` is copied, `user` is passed to each. Poison, never NULL, when memory is out;
 * like every poisoned callback it makes td_fit fail with the reason. */
TD_API td_callback *td_callback_create(const td_callback_functions *functions, void *user);
/* Frees a callback that no td_fit has adopted. NULL is accepted. */
TD_API void td_callback_free(td_callback *callback);

/* ---- Keras's ---- */

/* By TD_AUTO a loss and an error are to fall and any other metric to rise. */
typedef enum td_monitor_mode { TD_AUTO = 0, TD_MIN, TD_MAX } td_monitor_mode;

/* Stops when `monitor` has not improved for `patience` epochs. */
typedef struct td_early_stopping_args {
    const char *monitor; /* "val_loss"; copied */
    double min_delta;    /* 0: the least change that counts as improvement */
    int patience;        /* 0 */
    td_monitor_mode mode;
    td_choice restore_best_weights; /* no: the weights stay as the last epoch left them */
    int start_from_epoch;           /* 0 */
    td_optional baseline;           /* epochs count as waiting until this is beaten */
    td_choice verbose;              /* no */
} td_early_stopping_args;
TD_API td_callback *td_early_stopping_(const td_early_stopping_args *args);

/* Multiplies the learning rate by `factor` when `monitor` has not improved for `patience` epochs. */
typedef struct td_reduce_lr_on_plateau_args {
    const char *monitor;  /* "val_loss"; copied */
    td_optional factor;   /* 0.1; below 1 */
    td_optional patience; /* 10 */
    td_monitor_mode mode;
    td_optional min_delta; /* 1e-4 */
    int cooldown;          /* 0: epochs after a reduction in which none is counted */
    double min_lr;         /* 0 */
    td_choice verbose;
} td_reduce_lr_on_plateau_args;
TD_API td_callback *td_reduce_lr_on_plateau_(const td_reduce_lr_on_plateau_args *args);

/* Sets the learning rate of each epoch (from 0) to what `schedule` makes of the one before. */
typedef struct td_learning_rate_scheduler_args {
    double (*schedule)(void *user, int epoch, double learning_rate);
    void *user;
    td_choice verbose;
} td_learning_rate_scheduler_args;
TD_API td_callback *td_learning_rate_scheduler_(const td_learning_rate_scheduler_args *args);

/* Writes a line per epoch: epoch, then the logs by name, as Keras's file. */
typedef struct td_csv_logger_args {
    const char *filename;  /* copied */
    const char *separator; /* "," ; copied */
    td_choice append;      /* no: an old file is overwritten */
} td_csv_logger_args;
TD_API td_callback *td_csv_logger_(const td_csv_logger_args *args);

/* Saves the model, optimizer's state included, after each epoch or every `save_freq` steps. */
typedef struct td_model_checkpoint_args {
    const char *filepath;     /* ends in ".keras"; {epoch:02d}, {batch} with save_freq, and logs as {val_loss:.2f} are
                                 filled in by Python's rules, the learning rate as {learning_rate:g}; copied */
    const char *monitor;      /* "val_loss"; copied */
    td_choice save_best_only; /* no */
    td_choice save_weights_only; /* no; yes: by td_save_weights, and filepath ends in ".weights.h5" */
    td_monitor_mode mode;
    int64_t save_freq; /* 0: each epoch */
    td_optional initial_value_threshold;
    td_choice verbose;
} td_model_checkpoint_args;
TD_API td_callback *td_model_checkpoint_(const td_model_checkpoint_args *args);

/* Saves the whole run into a folder of its own, and goes on from there when the folder holds a backup: weights,
 * optimizer, epoch and step, metrics so far, random draws, what the other callbacks remember, the kernels chosen. The
 * result has the bits of a run that never ended. The first backup is written before the first step; from then on a
 * thread writes while the training goes on; td_request_stop saves too. td_fit refuses, naming what was and what is, a
 * backup of other data (docs/backup.md says by what they are known), another model, optimizer, loss, metric, precision,
 * batch size or seed, of other shards, or whose learning rate was scaled or warmed up otherwise; devices may change. A
 * save that fails is logged: the training goes on, and the backup before it stands. */
typedef struct td_backup_and_restore_args {
    const char *backup_dir;      /* made when missing; copied */
    int64_t save_freq;           /* 0: each epoch; else steps */
    td_choice double_checkpoint; /* yes, unlike Keras: the last two are kept, lest a damaged one be the only one */
    td_choice delete_checkpoint; /* yes: the backup is removed when the training has ended well */
} td_backup_and_restore_args;
TD_API td_callback *td_backup_and_restore_(const td_backup_and_restore_args *args);
/* Removes a folder's backups, and the folder when nothing else is in it: for who saves a result first. TD_IO. */
TD_API td_status td_backup_remove(const char *backup_dir);

/* Writes what TensorBoard shows, without TensorFlow: under log_dir/train epoch_loss, epoch_<metric> and
 * epoch_learning_rate by epoch (from 0), under log_dir/validation the same of the validation, in log_dir the
 * hyper-parameters. A disk that is full ends the writing, not the training. */
typedef struct td_tensorboard_args {
    const char *log_dir;   /* "logs"; copied */
    int histogram_freq;    /* 0: none; else each so many epochs histograms of the weights, and of the gradients on one
                              batch of the training data (weights and statistics stay as they are) */
    td_choice write_graph; /* yes: the layers, as Keras writes them, and the ops of a training step */
    td_choice
        write_images; /* no; yes: with the histograms, kernels as images, each from its least value to its greatest */
    td_choice write_steps_per_second; /* no: epoch_steps_per_second */
    int64_t update_freq;              /* 0: by epoch only; N: batch_loss and batch_<metric> after every Nth step, too */
    td_choice write_hparams;          /* yes: optimizer, learning rate, batch size, ... and the summary as text */
} td_tensorboard_args;
TD_API td_callback *td_tensorboard_(const td_tensorboard_args *args);

/* Ends the training when a loss is NaN or infinite, as td_training_stop does: the epoch is logged, and what others do
 * at the end is done. Without it td_fit fails. */
typedef struct td_terminate_on_nan_args {
    td_choice raise_error; /* no; yes: td_fit fails with TD_NOT_FINITE */
} td_terminate_on_nan_args;
TD_API td_callback *td_terminate_on_nan_(const td_terminate_on_nan_args *args);

/* All give poison, never NULL, when an argument is wrong. */
#ifndef __cplusplus
#define td_terminate_on_nan(...)     td_terminate_on_nan_(&(td_terminate_on_nan_args){__VA_ARGS__})
#define td_early_stopping(...)       td_early_stopping_(&(td_early_stopping_args){__VA_ARGS__})
#define td_reduce_lr_on_plateau(...) td_reduce_lr_on_plateau_(&(td_reduce_lr_on_plateau_args){__VA_ARGS__})
#define td_learning_rate_scheduler(...)                                                                                \
    td_learning_rate_scheduler_(&(td_learning_rate_scheduler_args){.schedule = __VA_ARGS__})
#define td_csv_logger(...)         td_csv_logger_(&(td_csv_logger_args){.filename = __VA_ARGS__})
#define td_backup_and_restore(...) td_backup_and_restore_(&(td_backup_and_restore_args){.backup_dir = __VA_ARGS__})
#define td_tensorboard(...)        td_tensorboard_(&(td_tensorboard_args){.log_dir = __VA_ARGS__})
#define td_model_checkpoint(...)   td_model_checkpoint_(&(td_model_checkpoint_args){.filepath = __VA_ARGS__})
#endif
TD_BY_NAME_(td_callback *, td_early_stopping, td_early_stopping_args)
TD_BY_NAME_(td_callback *, td_terminate_on_nan, td_terminate_on_nan_args)
TD_BY_NAME_(td_callback *, td_reduce_lr_on_plateau, td_reduce_lr_on_plateau_args)
TD_BY_NAME_(td_callback *, td_learning_rate_scheduler, td_learning_rate_scheduler_args)
TD_BY_NAME_(td_callback *, td_csv_logger, td_csv_logger_args)
TD_BY_NAME_(td_callback *, td_model_checkpoint, td_model_checkpoint_args)
TD_BY_NAME_(td_callback *, td_backup_and_restore, td_backup_and_restore_args)
TD_BY_NAME_(td_callback *, td_tensorboard, td_tensorboard_args)

#ifdef __cplusplus
}
#endif
#endif
