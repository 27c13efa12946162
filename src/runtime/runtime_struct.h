/* runtime_struct.h - the inside of a runtime, for this folder, profile/, the bench and the tests. */
#ifndef TDI_RUNTIME_RUNTIME_STRUCT_H
#define TDI_RUNTIME_RUNTIME_STRUCT_H

#include "plan/plan.h"
#include "runtime/runtime.h"
#include "runtime/thread_governor.h"
#include "strategy/strategy.h"

enum { PLANS_KEPT = 64 }; /* per shard and mode */

typedef struct tdi_kept_plan {
    int64_t rows;
    uint64_t used; /* the runtime's clock at the last use */
    tdi_plan *plan;
    uint64_t bound; /* the runtime's `bindings` when the plan's addresses were resolved; 0: they were not yet */
    const tdi_tuned *sharing; /* between numbers of threads; NULL: nothing was asked, all share its ops */
} tdi_kept_plan;

/* Where rows of one input are brought together. */
typedef struct tdi_batch_buffer {
    void *data;
    int64_t bytes;
} tdi_batch_buffer;

/* One shard of the global batch: its memory and its plans. */
typedef struct tdi_shard_state {
    tdi_shard *shard;  /* [threads]: a copy for each thread */
    char *activations; /* shared by the modes */
    size_t activation_bytes;
    float *gradients;
    tdi_batch_buffer inputs[2][TDI_MAX_FED]; /* [step % 2][slot], see inputs.c */
    double *metrics[TDI_MODES];
    tdi_vec(tdi_kept_plan) plans[TDI_MODES];
} tdi_shard_state;

/* What one kind of step has for all shards. */
typedef struct tdi_mode_state {
    bool made;
    tdi_program program;
    tdi_control control; /* what the program's attributes say of the numbers that its steps read */
    char *exchange;
    tdi_communicator **communicators; /* [workers]; NULL: not connected, or a step has broken them */
    uint32_t steps;                   /* run with them so far */
    double *sums;                     /* over all shards' accumulators, for tdi_runtime_logs */
    tdi_thread_governor governor;
    tdi_short_calls calls;
} tdi_mode_state;

typedef struct tdi_worker {
    tdi_barrier threads;
    tdi_control *control; /* [threads] */
    char **scratch;       /* [threads] */
    size_t scratch_bytes;
} tdi_worker;

/* Where this runtime's threads note what they do in a trace. */
typedef struct tdi_traced {
    uint64_t id;        /* of the trace that tracks and labels belong to; 0: there are none yet */
    tdi_track **tracks; /* [workers * threads] */
    const tdi_label *threads, *begin, *finish, *meet, *feed, *take, *step;
} tdi_traced;

struct tdi_runtime {
    td_model *model;
    tdi_model_state *state; /* under it now: what its plans read and write */
    tdi_device *devices[TDI_MAX_SHARDS];
    int n_devices;
    const tdi_strategy *strategy; /* the model's; mirrored where its configuration is of this process alone */
    tdi_division division;        /* of its configuration */
    tdi_team *team;               /* the context's */
    tdi_idle_threads idle;
    bool is_trial; /* its threads are used as tdi_fix_threads says, and not as the governor would */
    tdi_shard_state *shards;
    float **gradients; /* [shards]: every shard's arena; NULL of those of other processes */
    float *sums;       /* where an exchange brings the sums over all shards; NULL: shard 0's arena serves */
    tdi_worker *workers;
    tdi_mode_state modes[TDI_MODES];
    uint64_t clock;
    uint64_t bindings;    /* how often addresses that plans are bound to have changed; from 1 on */
    bool fresh_gradients; /* of a TDI_GRADIENTS step, not applied yet */
    tdi_traced traced;
    tdi_chooser chooser; /* cache NULL: rules alone choose kernels */
    /* Set when a kernel's library had no memory for its work; taken in turns by steps, since some threads are in the
     * next step before others have looked. */
    atomic_bool out_of_memory[2];
    /* Its configuration, which never changes. */
    bool float32;           /* although bfloat16 is wished for and the device has it */
    int sharing;            /* threads of a worker that share its ops; 0: each plan asks */
    const tdi_tuned *tuned; /* the trial of whole steps that chose it; NULL: rules did */
    double trial_bytes;     /* the most memory that trials of its steps took in this process */
    int64_t memory;         /* bytes that the process may use */
};

/* How a model's steps are run. Chosen once for its key (configuration.c), never changed afterwards. */
typedef struct tdi_configuration {
    tdi_division division;
    bool float32;           /* although bfloat16 is wished for and the device has it */
    int sharing;            /* threads of a worker that share its ops; 0: each plan asks */
    bool few;               /* divided for steps of fewer rows than the rules' division has shards */
    bool alone;             /* steps of this process, with which the others of its group have nothing to do */
    const tdi_tuned *tuned; /* the trial that chose it; NULL: rules did */
    double trial_bytes;     /* memory that the trial took, for a while */
} tdi_configuration;

/* Makes a runtime of the configuration, by rules where it is NULL. The caller frees it. */
td_status tdi_runtime_open(td_model *model, const tdi_configuration *configuration, tdi_runtime **runtime,
                           tdi_error *error);
/* The same for trials: all its threads run its steps, until tdi_fix_threads says otherwise. */
td_status tdi_runtime_create(td_model *model, const tdi_configuration *configuration, tdi_runtime **runtime,
                             tdi_error *error);
/* From now on steps of this mode are run by all its threads, or by one in their place. */
void tdi_fix_threads(tdi_runtime *runtime, tdi_mode mode, bool in_turn);

/* Commits the configuration that steps of `rows` rows train in, whatever was chosen before. */
td_status tdi_configure(td_model *model, tdi_configuration configuration, int64_t rows, tdi_error *error);
/* The configuration chosen for steps of this mode; NULL: none yet. */
const tdi_configuration *tdi_configuration_of(const td_model *model, tdi_mode mode);
/* Lets the clone run its steps in the configurations that the model has chosen. */
td_status tdi_configure_clone(td_model *clone, const td_model *model, tdi_error *error);
/* As tdi_runtime_for, but never chooses again for steps that train. */
td_status tdi_runtime_for_report(td_model *model, tdi_mode mode, int64_t rows, tdi_runtime **runtime, tdi_error *error);

/* When the context has a trace: gives names to the items of plans[shards] and a track to each thread. */
td_status tdi_runtime_trace(tdi_runtime *runtime, tdi_plan *const *plans, tdi_error *error);

/* Bytes of the devices' memory that its shards and workers hold. */
double tdi_runtime_bytes(const tdi_runtime *runtime);
/* Gives that memory back; the next tdi_runtime_prepare takes it anew. Gradients are lost. */
void tdi_runtime_give_back(tdi_runtime *runtime);
/* Weights, and of a step that trains their gradients and slots. */
double tdi_state_bytes(const tdi_runtime *runtime, tdi_mode mode);

bool tdi_computes_bfloat16(const tdi_runtime *runtime);

tdi_device *tdi_shard_device(const tdi_runtime *runtime, int shard);
/* NULL, with a sentence, when the device has too little memory. */
void *tdi_device_memory(tdi_device *device, size_t size, tdi_error *error);

/* Releases the communicators of a mode; the next tdi_runtime_prepare makes others. */
void tdi_runtime_disconnect(tdi_runtime *runtime, tdi_mode mode);

/* Frees the mode's program, plans and accumulators; its next step makes them anew. */
void tdi_runtime_drop_mode(tdi_runtime *runtime, tdi_mode mode);

/* Makes the mode's program and every shard's accumulators, before its first step. */
td_status tdi_need_sums(tdi_runtime *runtime, tdi_mode mode, tdi_error *error);

/* Makes the mode's program, for steps of `rows` rows (0: it is not known of how many) and fewer, and communicators for
 * it: new ones when a step has broken those before. Where a program is not for so many rows, another takes its place.
 */
td_status tdi_make_mode(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_error *error);
/* Memory for a step of these plans, [shards]; *grown: addresses have changed. */
td_status tdi_grow_memory(tdi_runtime *runtime, tdi_mode mode, tdi_plan *const *plans, bool *grown, tdi_error *error);
/* Bytes of packed weights that a shard's plans hold. */
size_t tdi_packed_bytes(const tdi_shard_state *shard);

/* The plans of all shards for a step of `rows` rows, without memory. */
td_status tdi_plans_of(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error);
/* Says once a model that float32 takes bfloat16's place, and why. */
void tdi_say_float32(td_model *model, const char *why);

/* Makes everything that a job of this mode needs for batches of `rows`; plans[shards] receives the shards' plans. */
td_status tdi_runtime_prepare(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error);

/* Binds the plans, [shards], to the runtime's state and memory where they are not yet. Called last before a run. */
void tdi_runtime_bind(tdi_runtime *runtime, tdi_mode mode, tdi_plan *const *plans);

/* Answers in which of several configurations a step such as `plan` is one of is the fastest. `question` has the
 * candidates' names and, as its key, what is asked. *answer NULL: nothing is known. */
void tdi_step_trial(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan,
                    const tdi_configuration *configurations, tdi_tuned *question, const tdi_tuned **answer);
/* How many threads of a worker had best share the ops of such a step; *answer NULL: all, and nothing was asked. */
void tdi_choose_sharing(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan, int *threads,
                        const tdi_tuned **answer);
/* Chooses the configuration for steps of `rows` rows, such as `plan` is one of on a runtime of the rules'
 * configuration, by the tuning cache, a trial, or rules. */
void tdi_choose_configuration(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan,
                              tdi_configuration *configuration);

/* Of all workers. */
static inline int tdi_runtime_threads(const tdi_runtime *runtime)
{
    return runtime->division.workers * runtime->division.threads;
}

/* Each has a core of its own, so that it may spin where it waits. */
static inline bool tdi_runtime_spins(const tdi_runtime *runtime)
{
    return tdi_team_spins(runtime->team, tdi_runtime_threads(runtime));
}

/* No shard of this process has more rows than its last one: reports are of it. */
static inline int tdi_last_shard(const tdi_runtime *runtime)
{
    return tdi_own_end(&runtime->division) - 1;
}

/* A worker's shards are those from its first one up to the next worker's. */
static inline int tdi_worker_first_shard(const tdi_runtime *runtime, int worker)
{
    const tdi_division *d = &runtime->division;
    return d->own_first + tdi_own_shards(d) * worker / d->workers;
}

/* Another process computes the shard. Here it has accumulators, which are brought when a job ends. */
static inline bool tdi_is_remote(const tdi_runtime *runtime, int shard)
{
    return shard < runtime->division.own_first || shard >= tdi_own_end(&runtime->division);
}

/* Where reduced gradients stand, in the layout of the gradient arenas. */
static inline float *tdi_reduced_gradients(const tdi_runtime *runtime)
{
    return runtime->sums ? runtime->sums : runtime->gradients[0];
}

static inline int tdi_worker_of(const tdi_runtime *runtime, int shard)
{
    int worker = 0;
    while (worker + 1 < runtime->division.workers && tdi_worker_first_shard(runtime, worker + 1) <= shard)
        worker++;
    return worker;
}

static inline int64_t tdi_shard_rows(const tdi_runtime *runtime, int shard, int64_t rows)
{
    int shards = runtime->division.shards;
    return tdi_shard_first_row(rows, shard + 1, shards) - tdi_shard_first_row(rows, shard, shards);
}

#endif
