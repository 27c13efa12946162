/* backup_writer.c - the thread that writes backups, and the two states that it and the training exchange. */
#include "train/backup/backup_writer.h"

#include <pthread.h>
#include <stdio.h>

#include "base/thread.h"

enum { NONE = -1 };

struct tdi_backup_writer {
    const char *folder;
    bool twice;
    int good; /* the file that holds the last good backup; -1: none */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    td_state states[2];
    int given, writing; /* states, or NONE */
    bool ending;
    tdi_error failed; /* of the last write */
};

void tdi_backup_path(const char *folder, int which, char path[TDI_BACKUP_PATH])
{
    snprintf(path, TDI_BACKUP_PATH, "%.4096s/backup-%d.npz", folder, which);
}

/* ---- the thread ---- */

/* The next state to write; NULL at the end. */
static const td_state *next(tdi_backup_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    while (writer->given == NONE && !writer->ending)
        pthread_cond_wait(&writer->changed, &writer->mutex);
    writer->writing = writer->given;
    writer->given = NONE;
    int index = writer->writing;
    pthread_mutex_unlock(&writer->mutex);
    return index == NONE ? NULL : &writer->states[index];
}

static void done(tdi_backup_writer *writer, int which, const tdi_error *error)
{
    pthread_mutex_lock(&writer->mutex);
    writer->writing = NONE;
    writer->failed = *error;
    if (error->status == TD_OK)
        writer->good = which;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
}

static void *write_all(void *argument)
{
    tdi_backup_writer *writer = argument;
    const td_state *state;
    while ((state = next(writer))) {
        char path[TDI_BACKUP_PATH];
        tdi_error error = {0};
        int which = writer->twice && writer->good == 0 ? 1 : 0;
        tdi_backup_path(writer->folder, which, path);
        tdi_state_write(state, path, &error);
        done(writer, which, &error);
    }
    return NULL;
}

/* ---- the training's side ---- */

td_status tdi_backup_writer_create(const char *folder, int good, bool twice, tdi_backup_writer **writer,
                                   tdi_error *error)
{
    *writer = NULL;
    tdi_backup_writer *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->folder = folder;
    made->twice = twice;
    made->good = good;
    made->given = made->writing = NONE;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    td_status status = tdi_thread_start(&made->thread, write_all, made, error);
    if (status == TD_OK)
        *writer = made;
    else
        free(made);
    return status;
}

void tdi_backup_writer_free(tdi_backup_writer *writer)
{
    if (!writer)
        return;
    pthread_mutex_lock(&writer->mutex);
    writer->ending = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    tdi_state_release(&writer->states[0]);
    tdi_state_release(&writer->states[1]);
    free(writer);
}

td_state *tdi_backup_writer_take(tdi_backup_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    int free_one = writer->writing == 0 ? 1 : 0;
    int index = writer->given != NONE ? writer->given : free_one;
    writer->given = NONE;
    pthread_mutex_unlock(&writer->mutex);
    return &writer->states[index];
}

void tdi_backup_writer_give(tdi_backup_writer *writer, td_state *state)
{
    pthread_mutex_lock(&writer->mutex);
    writer->given = (int)(state - writer->states);
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
}

void tdi_backup_writer_finish(tdi_backup_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    while (writer->given != NONE || writer->writing != NONE)
        pthread_cond_wait(&writer->changed, &writer->mutex);
    pthread_mutex_unlock(&writer->mutex);
}

td_status tdi_backup_writer_outcome(tdi_backup_writer *writer, tdi_error *error)
{
    pthread_mutex_lock(&writer->mutex);
    *error = writer->failed;
    pthread_mutex_unlock(&writer->mutex);
    return error->status;
}

int tdi_backup_writer_good(tdi_backup_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    int good = writer->good;
    pthread_mutex_unlock(&writer->mutex);
    return good;
}
