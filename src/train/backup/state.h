/* state.h - what a run is at one moment: named numbers and arrays, on their way into a file or out of it.
 *
 * The same calls do both ways (callbacks.h has those that callbacks use), so that what is read is what was written. The
 * file is an .npz, that is a zip archive:
 *
 *     state.json      the numbers, by part: "run", "model", "callbacks", and what run it is: "facts"
 *     choices.json    the tuning cache (tune/tuning_cache_file.h); absent where nothing is timed
 *     <name>.npy      the arrays: "weights/dense/kernel.npy", "callbacks/EarlyStopping/best/dense/kernel.npy"
 *
 * Numbers that JSON has no word for are the strings "nan", "inf" and "-inf". */
#ifndef TDI_TRAIN_BACKUP_STATE_H
#define TDI_TRAIN_BACKUP_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <tandem/callbacks.h>

#include "base/text.h"
#include "base/vec.h"
#include "files/npy_file.h"
#include "model/model.h"
#include "train/callbacks/callbacks.h"

typedef struct tdi_state_array {
    char *name; /* of its entry */
    char *npy;  /* the .npy file */
    size_t size, capacity;
    tdi_npy facts; /* restoring */
} tdi_state_array;

/* Zero-initialise. */
struct td_state {
    bool restoring;
    bool looking; /* restoring: only checks that everything is there, and changes nothing */
    json_t *root;
    json_t *part;     /* of `root`, borrowed: where numbers are visited now */
    json_t *tuned;    /* restoring; NULL: none */
    char *tuned_text; /* saving; malloc'd; NULL: none */
    tdi_vec(tdi_state_array) arrays;
    int used; /* saving: arrays in use; those behind are kept for their memory */
    tdi_text prefix, name;
    tdi_error error;       /* the first failure */
    td_training *training; /* restoring: logs that cannot be cut back are reported here */
};

void tdi_state_release(td_state *state);
/* The first failure of a visit, as a status. */
td_status tdi_state_outcome(const td_state *state, tdi_error *error);

/* Empties the state, to be saved into. The memory of its arrays is used again. */
void tdi_state_begin(td_state *state);
/* From here on visits belong to this part, or with a name to one of its members: "callbacks", "EarlyStopping". False
 * when what is restored has no such part. */
bool tdi_state_enter(td_state *state, const char *part, const char *name);

void tdi_state_int(td_state *state, const char *name, int *value);
/* *text is malloc'd; restoring frees what was there. */
void tdi_state_text(td_state *state, const char *name, char **text);
void tdi_state_flag(td_state *state, const char *name, bool *value);
/* Visits an array, which must have this type and shape. */
void tdi_state_array_of(td_state *state, const char *name, td_dtype dtype, const td_shape *shape, void *values);
/* The extents of an array that is restored; rank -1: there is none. */
td_shape tdi_state_shape(td_state *state, const char *name);
/* Visits values that have the layout of a model's, an array for each variable; `trained`: the trained ones alone. */
void tdi_state_variables(td_state *state, const char *name, const td_model *model, bool trained, float *values);

/* Writes the state as a file, atomically (atomic_file.h). */
td_status tdi_state_write(const td_state *state, const char *path, tdi_error *error);
/* Reads a whole file and compares all its checksums. TD_NOT_FOUND; TD_BAD_FILE; TD_UNSUPPORTED for another version.
 * `state` is released on failure. */
td_status tdi_state_read(td_state *state, const char *path, tdi_error *error);

/* The same without a file: malloc'd bytes, to be unpacked by a process of the same version. TD_NO_MEMORY; TD_BAD_FILE:
 * other bytes. */
td_status tdi_state_pack(const td_state *state, void **bytes, size_t *size, tdi_error *error);
td_status tdi_state_unpack(td_state *state, const void *bytes, size_t size, tdi_error *error);

/* May a backup take the place of the file at `path`? TD_OK when there is none, or one that tdi_state_write wrote, whole
 * or damaged, which its first bytes or the directory at its end tell; an empty file counts as damaged. Otherwise
 * TD_INVALID_ARGUMENT, or TD_IO for a file that cannot be read. */
td_status tdi_state_may_replace(const char *path, tdi_error *error);

#endif
