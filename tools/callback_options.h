/* callback_options.h - options with the arguments of Keras's callbacks, by Keras's names: --early-stopping
 * 5,min_delta=0.01. */
#ifndef TOOL_CALLBACK_OPTIONS_H
#define TOOL_CALLBACK_OPTIONS_H

#include <stdbool.h>
#include <tandem/tandem.h>

enum callback_list {
    LIST_EARLY_STOPPING,
    LIST_REDUCE_LR,
    LIST_CHECKPOINT,
    LIST_CSV_LOG,
    LIST_TENSORBOARD,
    LIST_BACKUP,
    CALLBACK_LISTS
};

/* The arguments; zero where none is given. */
struct callback_options {
    td_early_stopping_args early_stopping;
    td_reduce_lr_on_plateau_args reduce_lr;
    td_model_checkpoint_args checkpoint;
    td_csv_logger_args csv_log;
    td_tensorboard_args tensorboard;
    td_backup_and_restore_args backup;
    bool given[CALLBACK_LISTS];
    char words[CALLBACK_LISTS][256]; /* memory for values that are texts */
};

/* Parses the value of the option of callback `list`. Returns an exit status; prints a sentence when it is not
 * TOOL_DONE. */
int read_callback_list(enum callback_list list, const char *text, struct callback_options *options);

#endif
