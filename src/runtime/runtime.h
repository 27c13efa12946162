/* runtime.h - a compiled model at work: jobs of steps that train, evaluate or predict, on its devices and threads. */
#ifndef TDI_RUNTIME_RUNTIME_H
#define TDI_RUNTIME_RUNTIME_H

#include "device/device.h"
#include "model/program.h"

/* Devices, threads and plans of a model, in one configuration. */
typedef struct tdi_runtime tdi_runtime;

/* Where a step's rows come from. Inputs are numbered by slots, the targets behind the model's inputs. All functions are
 * called by the runtime's threads, several at once, each for its share of rows; `context` is their first argument and
 * belongs to who made the feed, as all memory does that they return. A failure ends the job before the step that lacks
 * the rows; its sentence is the job's. */
typedef struct tdi_feed {
    void *context;
    /* Writes rows [first, first + count) of step `step`'s batch for a slot: packed, as float32 or int32. May block on
     * files, but not on other steps: that is await's. */
    td_status (*rows)(void *context, int64_t step, int slot, int64_t first, int64_t count, void *to, td_dtype as,
                      tdi_error *error);
    /* Row `first` of step `step`'s batch where it lies in memory, packed and in dtype `as`, with the others behind it;
     * they stay as they are until the step has run. NULL: they do not lie so, which is the same for all steps of a
     * job. Never blocks. */
    const void *(*in_place)(void *context, int64_t step, int slot, int64_t first, td_dtype as);
    /* Blocks until step `step`'s rows can be read, for feeds that make them meanwhile. Called by every thread before it
     * reads; rows of steps before the one before it are not read any more. NULL: rows can always be read. */
    td_status (*await)(void *context, int64_t step, tdi_error *error);
    /* Which sample row `row` of step `step`'s batch is, for messages: its number in the data of that name. Never
     * blocks. NULL: samples have no numbers. */
    int64_t (*sample)(void *context, int64_t step, int64_t row, const char **name);
    /* The least and the greatest class number of a target among the data's first samples, for messages. False when they
     * are not known. NULL: they never are. */
    bool (*class_range)(void *context, int slot, int32_t *least, int32_t *most);
} tdi_feed;

/* What the optimizer's learning rate is multiplied by: from `first` on to `last` in equal increments over `steps`
 * steps, and `last` from then on. */
typedef struct tdi_ramp {
    float first, last; /* last 0: the rate as it is */
    int64_t steps;
    int64_t done;   /* before the job's step 0 */
    bool corrected; /* momentum is corrected when the rate changes */
} tdi_ramp;
float tdi_ramp_factor(const tdi_ramp *ramp, int64_t step);

/* A run of steps without coming back to the host. */
typedef struct tdi_job {
    tdi_mode mode;
    tdi_feed feed;
    int64_t first_step, steps; /* named to the feed */
    int64_t batch;             /* rows of each step but the last */
    int64_t samples;           /* of all steps: the last of them may be short */
    uint64_t seed;
    tdi_ramp ramp; /* TRAIN */
    /* PREDICT: receives rows [first, first + count) of a step's output, behind each step, from the first thread of each
     * worker, several at once; the worker waits meanwhile. `values` are overwritten by the next step. A failure ends
     * the job behind this step, with its sentence. NULL: nobody takes outputs. */
    td_status (*take)(void *context, int64_t step, int64_t first, int64_t count, int output, const float *values,
                      tdi_error *error);
    void *take_context;
    const atomic_int *stop; /* NULL, or: once it is not 0 no other step begins */
    int64_t done;           /* the result: steps run, after a failure too */
    bool timed;             /* fill `waited` */
    double waited; /* a result too: the seconds that the first thread brought rows together and waited for them */
} tdi_job;

/* The runtime for steps of `rows` rows, made on first use; the model owns it. It has the configuration of these steps
 * (configuration.c), which is chosen here if it was not, by timing where that is allowed: that may take minutes. The
 * runtimes of other configurations may then be freed, and with them gradients that were not applied. */
td_status tdi_runtime_for(td_model *model, tdi_mode mode, int64_t rows, tdi_runtime **runtime, tdi_error *error);
/* The same for steps that this process makes on its own, whatever group it trains in. */
td_status tdi_runtime_alone_for(td_model *model, tdi_mode mode, int64_t rows, tdi_runtime **runtime, tdi_error *error);
/* The runtime that steps that train use or, before there are any, predictions; NULL: there is none yet. */
tdi_runtime *tdi_runtime_own(const td_model *model);
/* Frees what the model's runtimes have for steps that train, or for those that evaluate: the next ones are made anew,
 * as when their losses are weighted otherwise. Configurations and gradients stay. Called between jobs of these kinds.
 */
void tdi_runtimes_drop_steps(const td_model *model, bool trains);
void tdi_runtime_free(tdi_runtime *runtime);

/* Puts another state of its model's architecture under the runtime: from now on jobs read and change that one. Nothing
 * is copied: plans are bound to other addresses before their next run. The state outlives its turn; its optimizer may
 * differ from the model's in numbers alone (model_state.h). Accumulators stay, and gradients that were not applied are
 * lost. Called between jobs. */
void tdi_runtime_put_state(tdi_runtime *runtime, tdi_model_state *state);

/* What the rows of a slot are fed as in a mode: the number of slots, their type, float32 or int32, and a row's size, 0
 * for the target of an output that has neither loss nor metrics. */
int tdi_input_slots(const td_model *model, tdi_mode mode);
td_dtype tdi_input_type(const td_model *model, int slot);
int64_t tdi_input_bytes_per_row(const td_model *model, tdi_mode mode, int slot);
/* Whole numbers of a slot, indices or classes, are below this. */
int64_t tdi_input_limit(const td_model *model, int slot);

/* Which shards of all the runtime's own process computes: [*first, *end). */
void tdi_runtime_own_shards(const tdi_runtime *runtime, int *first, int *end);
/* The device that the first shard runs on. */
tdi_device *tdi_runtime_device(const tdi_runtime *runtime);

/* Runs a job. Training advances the state's iteration by the steps done, job->done, whatever ends it:
 * - TD_STOPPED: `stop` was set. The model is as the last whole step left it.
 * - The feed's failure: the same.
 * - A communicator's failure, when a collective breaks: the same, with gradients of a TDI_GRADIENTS step lost if the
 *   step was to apply them. Gradients accumulated over steps whose norm is clipped may be lost (passes/passes.h).
 * - TD_NOT_FINITE naming the step whose loss is not a number: that step has been done.
 * - TD_NO_MEMORY: a kernel's library had none inside a step, which has been done with what it had: the weights are not
 *   to be used. When the memory was wanted before the first step, the model is as it was. */
td_status tdi_runtime_run(tdi_runtime *runtime, tdi_job *job, tdi_error *error);

/* An output's matrix, [actual][predicted], after TDI_CONFUSION steps: its slot's classes in square. */
void tdi_runtime_confusion(const tdi_runtime *runtime, int output, double *counts);
/* The mode's loss and metrics since the last reset, each name with `prefix`, added to `logs`. */
void tdi_runtime_logs(const tdi_runtime *runtime, tdi_mode mode, const char *prefix, td_logs *logs);
void tdi_runtime_reset_sums(tdi_runtime *runtime, tdi_mode mode);

/* What the logs are made of, for a backup: each shard's accumulators, [shards][tdi_runtime_sums][2], of which there are
 * none before the first step. Those of another number of shards are added up. */
int tdi_runtime_sums(const tdi_runtime *runtime, tdi_mode mode);
int tdi_runtime_shards(const tdi_runtime *runtime);
void tdi_runtime_get_sums(const tdi_runtime *runtime, tdi_mode mode, double *sums);
td_status tdi_runtime_put_sums(tdi_runtime *runtime, tdi_mode mode, int shards, int count, const double *sums,
                               tdi_error *error);

/* Whether the configuration of steps that train is chosen; its number of shards, and whether it computes in float32
 * although bfloat16 is wished for. */
bool tdi_runtime_is_chosen(const td_model *model, int *shards, bool *float32);
/* Chooses that configuration, before the first step, for steps of `rows` rows. Where no division of these cores has so
 * many shards, nothing is chosen. */
td_status tdi_runtime_resume(td_model *model, int shards, bool float32, int64_t rows, tdi_error *error);

/* Are there gradients of a TDI_GRADIENTS step that no step has consumed since? */
bool tdi_runtime_has_gradients(const tdi_runtime *runtime);
/* The reduced gradient of a trained variable after a TDI_GRADIENTS step. */
float *tdi_runtime_gradient(const tdi_runtime *runtime, const tdi_variable *variable);

#endif
