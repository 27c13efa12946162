/* inside.h - the inside of a runtime, shared by the files of src/dist. */
#ifndef TDI_DIST_INSIDE_H
#define TDI_DIST_INSIDE_H

#include "dist/division.h"
#include "dist/runtime.h"
#include "plan/plan.h"

enum { PLANS_KEPT = 16 }; /* per part and mode */

typedef struct tdi_kept_plan {
    int64_t rows;
    uint64_t used; /* the runtime's clock at the last use */
    tdi_plan *plan;
} tdi_kept_plan;

/* A slice of the global batch, its memory and its plans. */
typedef struct tdi_part_state {
    tdi_part part;
    char *activations; /* shared by the modes */
    size_t activation_bytes;
    float *gradients;
    void **inputs; /* by slot */
    int64_t input_rows;
    double *metrics[TDI_MODES];
    tdi_vec(tdi_kept_plan) plans[TDI_MODES];
} tdi_part_state;

/* What one mode has for all parts. */
typedef struct tdi_mode_state {
    bool made;
    tdi_program program;
    char *exchange;
    tdi_communicator **communicators; /* [workers] */
    uint32_t steps;                   /* run with them so far */
} tdi_mode_state;

typedef struct tdi_worker {
    tdi_barrier lanes;
    tdi_lockstep lockstep; /* the lanes again */
    tdi_control control;
    char **scratch; /* [lanes] */
    size_t scratch_bytes;
    tdi_error error; /* of its feed */
} tdi_worker;

struct tdi_runtime {
    td_model *model;
    tdi_device *devices[TDI_MAX_PARTS];
    int n_devices;
    tdi_division division;
    tdi_team *team;
    tdi_part_state *parts;
    float **gradients; /* [parts]: every part's arena */
    tdi_worker *workers;
    tdi_mode_state modes[TDI_MODES];
    uint64_t clock;
    tdi_chooser chooser; /* choices NULL: rules alone choose kernels */
};

/* Everything a job of this mode needs for batches of `rows`: plans of all parts, in plans[parts]. */
td_status tdi_runtime_prepare(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error);

/* Worker w's parts are [first, last). */
static inline int tdi_worker_first_part(const tdi_runtime *runtime, int worker)
{
    return runtime->division.parts * worker / runtime->division.workers;
}

static inline int64_t tdi_part_rows(const tdi_runtime *runtime, int part, int64_t rows)
{
    int parts = runtime->division.parts;
    return tdi_part_first_row(rows, part + 1, parts) - tdi_part_first_row(rows, part, parts);
}

#endif
