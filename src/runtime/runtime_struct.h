/* runtime_struct.h - the inside of a runtime, shared by the files of src/dist. */
#ifndef TDI_RUNTIME_RUNTIME_STRUCT_H
#define TDI_RUNTIME_RUNTIME_STRUCT_H

#include "plan/plan.h"
#include "runtime/runtime.h"
#include "runtime/thread_governor.h"
#include "strategy/division.h"

enum { PLANS_KEPT = 64 }; /* per part and mode */

typedef struct tdi_kept_plan {
    int64_t rows;
    uint64_t used; /* the runtime's clock at the last use */
    tdi_plan *plan;
    uint64_t bound;            /* the runtime's `bindings` when its addresses were resolved; 0: they are not yet */
    const tdi_choice *sharing; /* NULL: that all lanes share its ops was never in doubt */
} tdi_kept_plan;

/* Rows of one input of a step, where they have to be brought together. */
typedef struct tdi_batch_buffer {
    void *data;
    int64_t rows;
} tdi_batch_buffer;

/* A slice of the global batch, its memory and its plans. */
typedef struct tdi_part_state {
    tdi_part *part;    /* [lanes]: each lane's own copy */
    char *activations; /* shared by the modes */
    size_t activation_bytes;
    float *gradients;
    tdi_batch_buffer inputs[2][2 * TDI_MAX_IO]; /* by slot; steps take turns with two sets */
    double *metrics[TDI_MODES];
    tdi_vec(tdi_kept_plan) plans[TDI_MODES];
} tdi_part_state;

/* What one mode has for all parts. */
typedef struct tdi_mode_state {
    bool made;
    tdi_program program;
    tdi_control control; /* what the program's attributes say of the numbers that its steps read */
    char *exchange;
    tdi_communicator **communicators; /* [workers] */
    uint32_t steps;                   /* run with them so far */
    double *sums;                     /* of the parts' accumulators */
    tdi_pace pace;
    tdi_calls calls;
} tdi_mode_state;

typedef struct tdi_worker {
    tdi_barrier lanes;
    tdi_control *control; /* [lanes] */
    char **scratch;       /* [lanes] */
    size_t scratch_bytes;
} tdi_worker;

/* What a trace of this runtime's threads needs. */
typedef struct tdi_traced {
    uint64_t id;        /* of the trace that the rest belongs to; 0: none yet */
    tdi_track **tracks; /* [workers * lanes] */
    const tdi_label *lanes, *begin, *finish, *meet, *feed, *take, *step;
} tdi_traced;

struct tdi_runtime {
    td_model *model;
    tdi_model_state *state; /* under it now: what its plans read and write */
    tdi_device *devices[TDI_MAX_PARTS];
    int n_devices;
    tdi_division division;
    tdi_team *team;
    tdi_idle idle;
    bool rehearses; /* as tdi_rehearse says, however its threads are best used */
    tdi_part_state *parts;
    float **gradients; /* [parts]: every part's arena */
    tdi_worker *workers;
    tdi_mode_state modes[TDI_MODES];
    uint64_t clock;
    uint64_t bindings;    /* how often addresses that plans are bound to have changed */
    bool fresh_gradients; /* of a TDI_GRADIENTS step, not applied yet */
    tdi_traced traced;
    tdi_chooser chooser; /* choices NULL: rules alone choose kernels */
    /* By turns of steps: a kernel's library had no memory for its work. Two, for some threads are in the next step
     * before others have seen how this one went. */
    atomic_bool lacked[2];
    bool settled;           /* nobody asks the clock for another way any more */
    bool settled_for_now;   /* until the first steps that train: predictions alone have asked it */
    tdi_division by_rules;  /* before the clock was asked */
    bool for_few;           /* divided for steps of fewer rows than cores */
    bool float32;           /* although bfloat16 is wished for and the device has it */
    int sharing;            /* lanes that share ops; 0: each plan finds out for itself */
    const tdi_choice *way;  /* what the clock said of whole steps; NULL: it was not asked */
    double rehearsed_bytes; /* that asking it has taken, for a while; 0: it was not asked in this process */
    int64_t memory;         /* bytes that the process may use */
};

/* How a model could be run. */
typedef struct tdi_way {
    tdi_division division;
    bool float32;
    int sharing;
} tdi_way;

/* A runtime of its own for `model`, which goes the way given, by all its threads: model->runtime is left alone. */
td_status tdi_runtime_create(td_model *model, const tdi_way *way, tdi_runtime **runtime, tdi_error *error);
/* From now on its steps of this mode are made by all its threads, or by one in their place. */
void tdi_rehearse(tdi_runtime *runtime, tdi_mode mode, bool in_turn);

/* Do steps go another way than the runtime's? Predictions and evaluations of fewer rows than it has parts do, and where
 * it is divided for few, those of many. */
bool tdi_goes_apart(const tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_way *way);

/* Makes ready to note what threads do, when the context has a trace: names for the plans, tracks. `plans`: [parts] */
td_status tdi_runtime_trace(tdi_runtime *runtime, tdi_plan *const *plans, tdi_error *error);

/* What its parts and workers hold of the devices' memory. */
double tdi_runtime_bytes(const tdi_runtime *runtime);
/* Gives that back: the next tdi_runtime_prepare takes it anew. Gradients are lost. */
void tdi_runtime_give_back(tdi_runtime *runtime);
/* Weights, and of a step that trains their gradients and slots. */
double tdi_state_bytes(const tdi_runtime *runtime, tdi_mode mode);

bool tdi_computes_bfloat16(const tdi_runtime *runtime);

tdi_device *tdi_part_device(const tdi_runtime *runtime, int part);
/* NULL with a sentence when the device has no room. */
void *tdi_device_memory(tdi_device *device, size_t size, tdi_error *error);

/* The mode's program and every part's accumulators, before its first step. */
td_status tdi_need_sums(tdi_runtime *runtime, tdi_mode mode, tdi_error *error);

/* Everything a job of this mode needs for batches of `rows`: plans of all parts, in plans[parts]. */
td_status tdi_runtime_prepare(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error);

/* Resolves the addresses of the plans, [parts], where they have changed. Called last before a run. */
void tdi_runtime_bind(tdi_runtime *runtime, tdi_mode mode, tdi_plan *const *plans);

/* A job's step: number `index` of the job, of `rows` rows over all parts. */
typedef struct tdi_job_step {
    int64_t index, rows;
} tdi_job_step;

/* Room for the batches of a job whose first step is the largest. */
td_status tdi_inputs_prepare(tdi_runtime *runtime, const tdi_job *job, tdi_job_step first, tdi_error *error);
/* Brings the share of one of `lanes` lanes of its worker's rows together, but for what can be read where it lies. Until
 * the step has run the step after it may be fed, and no other. */
td_status tdi_inputs_feed(tdi_runtime *runtime, const tdi_job *job, tdi_job_step step, int worker, int lane, int lanes,
                          tdi_error *error);
/* Points one lane's kernels at the step's rows. */
void tdi_inputs_set(tdi_runtime *runtime, const tdi_job *job, tdi_job_step step, int worker, int lane,
                    tdi_plan *const *plans);

/* Asks the clock, or what it said before, which of several ways is the best for steps like those of `plan`. `asked`
 * names the candidates, and in `key` what is asked. *chosen NULL: nothing was found out. */
td_status tdi_choose_way(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan, const tdi_way *ways,
                         tdi_choice *asked, tdi_choice **chosen, tdi_error *error);
/* How many lanes are best to share the ops of such a plan; *choice NULL: all, without a doubt. */
td_status tdi_choose_sharing(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan, int *lanes,
                             const tdi_choice **choice, tdi_error *error);
/* Should the runtime go another way than it does? */
td_status tdi_choose_other(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan, tdi_way *way,
                           bool *other, tdi_error *error);

/* It has no fewer rows than any: reports are of it. */
static inline int tdi_last_part(const tdi_runtime *runtime)
{
    return runtime->division.parts - 1;
}

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
