/* plan.h - a frozen step of one part: kernels chosen and prepared, places in memory settled, addresses resolved.
 *
 * Made once per (graph, rows); then a step is a walk down a list. All parts of a graph have plans with the same
 * segments in the same order, whatever their rows. */
#ifndef TDI_PLAN_PLAN_H
#define TDI_PLAN_PLAN_H

#include "base/thread.h"
#include "base/trace.h"
#include "comm/communicator.h"
#include "device/device.h"
#include "passes/passes.h"
#include "tune/tuning_cache.h"

typedef struct tdi_plan tdi_plan;

/* What it takes to let the clock choose between kernels. */
typedef struct tdi_chooser {
    tdi_choices *choices; /* made and remembered so far */
    td_context *context;
    tdi_team *team; /* idle while plans are made; at least workers * lanes threads */
    int workers;    /* that run such a plan at the same time */
} tdi_chooser;

typedef struct tdi_plan_spec {
    const tdi_graph *graph;
    const tdi_schedule *schedule;
    tdi_device *device;
    int64_t rows; /* of the part; 0: it only contributes zeros */
    int part;
    int replica, replicas;
    int lanes;
    int sharing;                /* of them share ops, the others wait; 0: all */
    size_t most_packed;         /* bytes of weights as kernels want them that may be kept; the rest is made each time */
    const tdi_chooser *chooser; /* NULL: rules alone choose kernels */
    bool spin;                  /* lanes that wait spin: each has a core of its own */
    bool explain;               /* keep the sentences of kernels that declined */
} tdi_plan_spec;

/* Where things are, for one part. Sizes come from the plan's accessors. */
typedef struct tdi_bindings {
    char *activations;          /* tdi_plan_activation_bytes */
    char *const *scratch;       /* per lane, tdi_plan_scratch_bytes each */
    float *values;              /* variables */
    float *const *slots;        /* optimizer state */
    float *gradients;           /* the part's own arena */
    float *reduced;             /* part 0's: where reduced gradients go */
    char *exchange;             /* tdi_plan_exchange_bytes, shared by all parts */
    double *metrics;            /* [slots][2] */
    const tdi_control *control; /* [lanes]: each lane writes its own between steps */
    atomic_bool *failed;        /* [2]: set by calls that fail, by their control's turn; NULL: nobody asks */
    const tdi_part *part;       /* [lanes] */
} tdi_bindings;

td_status tdi_plan_create(const tdi_plan_spec *spec, tdi_plan **plan, tdi_error *error);
void tdi_plan_free(tdi_plan *plan);

size_t tdi_plan_activation_bytes(const tdi_plan *plan);
size_t tdi_plan_scratch_bytes(const tdi_plan *plan);
size_t tdi_plan_packed_bytes(const tdi_plan *plan); /* its own, of all lanes: what kernels make of weights once */
size_t tdi_plan_exchange_bytes(const tdi_plan *plan);

int tdi_plan_sharing(const tdi_plan *plan); /* lanes that share its ops */
double tdi_plan_flops(const tdi_plan *plan);
double tdi_plan_bytes(const tdi_plan *plan); /* read and written */
/* Those of bfloat16 numbers by kernels that compute in bfloat16 and were not in doubt. */
double tdi_plan_sure_bfloat16_flops(const tdi_plan *plan);
uint64_t tdi_plan_hash(const tdi_plan *plan); /* of its ops, their attributes and shapes, whatever the batch */

/* Resolves every address but those of the inputs. May be called again with others. */
void tdi_plan_bind(tdi_plan *plan, const tdi_bindings *bindings);
/* Where lane `lane` finds a step's input `slot` from now on; called by that lane. */
void tdi_plan_set_input(tdi_plan *plan, int lane, int slot, const void *data);

/* The value of an output after a step: [rows, ...]. */
const float *tdi_plan_output(const tdi_plan *plan, int slot);

/* Gives the lane's items names for a trace; nothing to do when they have them. */
td_status tdi_plan_label(tdi_plan *plan, tdi_trace *trace, tdi_error *error);

/* Where a lane's run is noted, and what meetings are called; all NULL: nowhere. */
typedef struct tdi_step_trace {
    tdi_track *track;
    const tdi_label *lanes, *begin, *finish;
    int64_t step;
} tdi_step_trace;

/* Runs lane `lane`'s share of a replica's step: its parts' plans side by side, segment by segment. `barrier` is the
 * replica's lanes'; `step` counts the runs with this communicator, from 1. Nothing is allocated, locked or decided.
 * With `notes` (NULL: none) the plans have been labelled. Returns behind the first collective that is broken, as all
 * threads do, with its status: the step has computed nothing that may be used. */
td_status tdi_plans_run(tdi_plan *const *plans, int count, int lane, uint32_t step, tdi_barrier *barrier,
                        tdi_communicator *communicator, const tdi_step_trace *notes);

/* What all lanes of all workers run so, by the calling thread alone: each in turn from one meeting to the next. The
 * same values, bit for bit. `plans` are those of all parts, dealt out to the workers as evenly as possible. */
td_status tdi_plans_run_in_turn(tdi_plan *const *plans, int parts, int workers, uint32_t step,
                                tdi_communicator *const *communicators);

/* Per op: kernel, share, who declined and why, bytes, FLOPs. */
void tdi_plan_explain(const tdi_plan *plan, FILE *out);

/* What one step of a plan is, for reports: of one part, all lanes together. Texts are the plan's. */
typedef struct tdi_plan_op {
    const char *layer;    /* "dense_1", "loss", ... */
    const char *variable; /* what it makes, a gradient or new values, is this weight's: "kernel"; NULL: no weight's */
    const char *op, *kernel;
    const tdi_choice *choice; /* between kernels, by the clock; NULL: nothing was in doubt */
    const char *pass;         /* "forward", "backward" or "update" */
    const char *share;        /* among the lanes: "rows", "columns", "flat", "depth" or "whole" */
    int lanes;                /* that share it: the first so many */
    td_shape shape;
    double flops, bytes; /* read and written */
    double kept_bytes;   /* of them, of weights and slots */
    bool bfloat16;       /* products of bfloat16 numbers */
    bool once;           /* for all parts of a replica */
    bool barrier;        /* the lanes meet before it */
    bool fused;          /* runs with the op before it, a stretch of elements at a time */
} tdi_plan_op;

int tdi_plan_steps(const tdi_plan *plan);
/* false: step `s` computes nothing, or what it makes was made with the plan. */
bool tdi_plan_op_at(const tdi_plan *plan, int s, tdi_plan_op *op);

#endif
