/* backup_writer.h - a thread that writes backups, so that a step waits for no disk.
 *
 * There are two states: while the thread writes one, the training fills the other. A filled one that the thread has not
 * begun to write is replaced by a newer one. So the training waits only while its state is copied, and the newest state
 * is written next.
 *
 * The files backup-0.npz and backup-1.npz are written in turn, each under another name and then renamed: the last good
 * one is never touched. */
#ifndef TDI_TRAIN_BACKUP_BACKUP_WRITER_H
#define TDI_TRAIN_BACKUP_BACKUP_WRITER_H

#include "train/backup/state.h"

enum { TDI_BACKUP_PATH = 4200 };

typedef struct tdi_backup_writer tdi_backup_writer;

/* "folder/backup-0.npz" or "folder/backup-1.npz". */
void tdi_backup_path(const char *folder, int which, char path[TDI_BACKUP_PATH]);

/* `good` is the file whose backup must stay until another is written, or -1; `twice`: two backups are kept. `folder` is
 * borrowed. */
td_status tdi_backup_writer_create(const char *folder, int good, bool twice, tdi_backup_writer **writer,
                                   tdi_error *error);
/* Writes what was handed over, ends the thread and frees the writer. NULL is accepted. */
void tdi_backup_writer_free(tdi_backup_writer *writer);

/* Takes a state to fill, which is then given to the thread. Neither waits for the disk. */
td_state *tdi_backup_writer_take(tdi_backup_writer *writer);
void tdi_backup_writer_give(tdi_backup_writer *writer, td_state *state);
/* Waits until all that was given is written. */
void tdi_backup_writer_finish(tdi_backup_writer *writer);
/* The outcome of the last write; TD_OK before the first. */
td_status tdi_backup_writer_outcome(tdi_backup_writer *writer, tdi_error *error);

/* The file that holds the last good backup; -1: there is none. */
int tdi_backup_writer_good(tdi_backup_writer *writer);

#endif
