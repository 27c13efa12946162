/* backup.h - BackupAndRestore, as td_fit calls it. */
#ifndef TDI_TRAIN_BACKUP_BACKUP_H
#define TDI_TRAIN_BACKUP_BACKUP_H

#include "train/backup/run_identity.h"
#include "train/callbacks/callbacks.h"

/* Called before the callbacks' train_begin. When there is a backup callback whose folder holds a backup of this run,
 * brings the model and `training` (epoch, steps, seed, ...) back to it. TD_INVALID_ARGUMENT when the backup is another
 * run's, or the folder in use; TD_BAD_FILE when no backup in it can be read. */
td_status tdi_backup_begin(td_training *training, const tdi_run *run, tdi_error *error);
/* Saves a run that was stopped between two steps; returns when it is written. */
void tdi_backup_stopped(td_training *training);

#endif
