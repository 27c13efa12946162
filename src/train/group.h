/* group.h - what td_fit and td_evaluate do where the model is trained in a group of processes
 * (strategy/multi_worker.h): agree before they begin, take the chief's state, and go through the steps in the same
 * chunks.
 *
 * Without a group each of these does nothing, and succeeds. */
#ifndef TDI_TRAIN_GROUP_H
#define TDI_TRAIN_GROUP_H

#include "train/backup/run_identity.h"
#include "train/batch_feed.h"
#include "train/callbacks/callbacks.h"

/* Does this process write files and show progress? */
bool tdi_is_chief(const td_model *model);

/* The list without the callbacks that write files, but in the chief; malloc'd. NULL: there is no list, or, with `error`
 * set, memory is out. */
td_callback **tdi_group_callbacks(const td_model *model, td_callback *const *callbacks, tdi_error *error);

/* Fails, with the same sentence in all processes, where one has another model, data or numbers than the chief. */
td_status tdi_group_agree_on_run(const td_training *training, const tdi_run *run, tdi_error *error);
/* Brings the model and the training to where the chief's are: its weights, slots, states, numbers, or its backup's. */
td_status tdi_group_share_run(td_training *training, const tdi_run *run, tdi_error *error);
/* Behind the callbacks' train_begin: of a resumed run they come to remember what the chief's do. */
td_status tdi_group_share_callbacks(td_training *training, tdi_error *error);

/* Weights, seed and iteration become the chief's. */
td_status tdi_group_share_weights(td_model *model, tdi_error *error);

/* Agreement as for a run, and the chief's weights, for an evaluation. */
td_status tdi_group_begin_evaluation(td_model *model, const tdi_run *run, tdi_error *error);

/* Says by td_training_say who is in the group and has which rows of each batch; and what was exchanged since, in how
 * many steps. */
void tdi_group_say_begin(td_training *training);
void tdi_group_say_end(td_training *training);

/* Of data of this process alone, `samples`: which rows of each batch they are for, and how many full batches all
 * processes can fill. TD_INVALID_ARGUMENT, naming it, where a process cannot fill one. */
td_status tdi_group_share_out(const td_model *model, int64_t samples, int64_t batch, tdi_own_rows *own, int64_t *steps,
                              tdi_error *error);
/* For a batch whose rows each process brings a part of, `own` here: *rows becomes all of them, *first the first that is
 * this process's. TD_INVALID_ARGUMENT: they are not in proportion to the processes' devices. */
td_status tdi_group_add_rows(const td_model *model, int64_t own, int64_t *rows, int64_t *first, tdi_error *error);

/* How many steps to run next: the chief's number. `training` stops where any process wants it; NULL: nothing stops.
 * Fails, with the same sentence in all processes, where callbacks have given them other learning rates or, looked at
 * when *steps is 0, other weights. */
td_status tdi_group_agree_on_steps(const td_model *model, td_training *training, int64_t *steps, tdi_error *error);

#endif
