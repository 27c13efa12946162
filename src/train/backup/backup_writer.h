/* backup_writer.h - a thread that writes backups, so that a step waits for no disk.
 *
 * There are two states. One may be in the writer's hands while the other is filled; a filled one that the writer has
 * not begun gives way to a newer. So the training never waits for longer than it takes to copy its state, and what is
 * written next is always the newest.
 *
 * Files are written in turn, backup-0.npz and backup-1.npz, each beside and renamed: the last good one is never
 * touched. */
#ifndef TDI_TRAIN_BACKUP_BACKUP_WRITER_H
#define TDI_TRAIN_BACKUP_BACKUP_WRITER_H

#include "train/backup/state.h"

enum { TDI_BACKUP_PATH = 4200 };

typedef struct tdi_backup_writer tdi_backup_writer;

/* "folder/backup-0.npz" or "folder/backup-1.npz". */
void tdi_backup_path(const char *folder, int which, char path[TDI_BACKUP_PATH]);

/* `good`: which file holds a backup that must stand until another is written, or -1; `twice`: keep two. `folder` is
 * borrowed. */
td_status tdi_backup_writer_create(const char *folder, int good, bool twice, tdi_backup_writer **writer,
                                   tdi_error *error);
/* Finishes what it has and frees it. NULL is accepted. */
void tdi_backup_writer_free(tdi_backup_writer *writer);

/* A state to fill; then it is to be handed over. */
td_state *tdi_backup_writer_take(tdi_backup_writer *writer);
void tdi_backup_writer_give(tdi_backup_writer *writer, td_state *state);
/* Waits until all that was handed over is written. */
void tdi_backup_writer_finish(tdi_backup_writer *writer);
/* How the last write went; TD_OK before the first. */
td_status tdi_backup_writer_outcome(tdi_backup_writer *writer, tdi_error *error);

/* Which file holds the last good backup; -1: none. */
int tdi_backup_writer_good(tdi_backup_writer *writer);

#endif
