/* backup.h - BackupAndRestore: what a td_fit does to be resumed. */
#ifndef TDI_TRAIN_BACKUP_BACKUP_H
#define TDI_TRAIN_BACKUP_BACKUP_H

#include "train/backup/run_identity.h"
#include "train/backup/state.h"
#include "train/callbacks/callbacks.h"

/* Before the callbacks' train_begin: when there is a backup callback, and its folder holds a backup of this run, brings
 * the model and `training` (epoch, steps, seed, ...) back to it. TD_INVALID_ARGUMENT when it is another run's or in
 * use, TD_BAD_FILE when none in the folder can be read. */
td_status tdi_backup_begin(td_training *training, const tdi_run *run, tdi_error *error);
/* Saves a run that was stopped between two steps; returns when it is written. */
void tdi_backup_stopped(td_training *training);

/* Brings the model and `training` back to what was read, but for the callbacks. A weight or a number that is not there,
 * or cannot be, leaves both unchanged: TD_BAD_FILE. */
td_status tdi_backup_restore(td_state *state, td_training *training, const tdi_run *run, tdi_error *error);
/* What the callbacks remember, either way. */
void tdi_backup_visit_callbacks(td_state *state, td_training *training);

#endif
