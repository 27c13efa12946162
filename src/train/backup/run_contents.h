/* run_contents.h - what a run consists of, on its way into a backup or out of it: its position, the model's weights,
 * slots and states, how its steps are run, its sums of losses and metrics, what its callbacks remember. */
#ifndef TDI_TRAIN_BACKUP_RUN_CONTENTS_H
#define TDI_TRAIN_BACKUP_RUN_CONTENTS_H

#include "train/backup/run_identity.h"
#include "train/backup/state.h"
#include "train/callbacks/callbacks.h"

/* Visits all of the run into `state`, whose first failure is state->error. Backups of one run have rising numbers. */
void tdi_run_save(td_state *state, td_training *training, int64_t sequence);

/* The number of a backup that was read; -1, with state->error, when it has none. */
int64_t tdi_run_sequence(td_state *state);
/* Brings the model and `training` back to what was read, but for the callbacks. A weight or a number that is missing or
 * out of range leaves both unchanged: TD_BAD_FILE. */
td_status tdi_run_restore(td_state *state, td_training *training, const tdi_run *run, tdi_error *error);
/* The same from another process of the group, whose run it is; `resumed`: by a backup. */
td_status tdi_run_take(td_state *state, td_training *training, const tdi_run *run, bool resumed, tdi_error *error);
/* Visits what the callbacks remember, either way. */
void tdi_run_visit_callbacks(td_state *state, td_training *training);

#endif
