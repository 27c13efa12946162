/* program.h - what one kind of step computes, as a graph: forward, loss, backward, reduction, update, metrics. */
#ifndef TDI_MODEL_PROGRAM_H
#define TDI_MODEL_PROGRAM_H

#include "device/device.h"
#include "model/model.h"
#include "passes/passes.h"

typedef enum tdi_mode {
    TDI_TRAIN,     /* everything */
    TDI_GRADIENTS, /* up to the reduced gradients */
    TDI_APPLY,     /* from the reduced gradients on */
    TDI_EVALUATE,
    TDI_CONFUSION, /* evaluate, and count which class was taken for which */
    TDI_PREDICT,
    TDI_MODES
} tdi_mode;

/* Does a step change the weights? */
static inline bool tdi_updates(tdi_mode mode)
{
    return mode == TDI_TRAIN || mode == TDI_APPLY;
}

/* Is it a step that trains, or half of one? */
static inline bool tdi_trains(tdi_mode mode)
{
    return mode == TDI_TRAIN || mode == TDI_GRADIENTS || mode == TDI_APPLY;
}

/* Which accumulators, of two doubles each, a program fills. */
typedef struct tdi_metric_slots {
    int count;
    int loss[TDI_MAX_IO];                     /* per output */
    int metrics[TDI_MAX_IO][TDI_MAX_METRICS]; /* per output: where a metric's begin */
    int regularization;                       /* -1: none */
    int classes[TDI_MAX_IO];                  /* per output: of its confusion matrix; 0: it has none */
    int confusion[TDI_MAX_IO];                /* where that begins */
} tdi_metric_slots;

static inline size_t tdi_metric_bytes(const tdi_metric_slots *slots)
{
    return (size_t)(slots->count ? slots->count : 1) * 2 * sizeof(double);
}

typedef struct tdi_program {
    tdi_graph *graph;
    tdi_schedule schedule;
    tdi_collectives collectives;
    tdi_metric_slots slots;
    tdi_text remarks; /* one line per fusion, for explain */
} tdi_program;

/* How a model is divided, and what runs it. */
typedef struct tdi_target {
    int parts;                /* of the global batch */
    int groups;               /* that have batch statistics of their own: some parts each, or several in a part */
    const tdi_device *device; /* NULL: float32 throughout */
    bool float32;             /* although layers wish for bfloat16 */
    bool effects_last;        /* nothing that outlives a step is written before its last collective, which may break */
} tdi_target;

/* Targets are inputs number n_inputs .. of the graph. */
td_status tdi_program_create(const td_model *model, tdi_mode mode, const tdi_target *target, tdi_program *program,
                             tdi_error *error);
/* Does any layer wish to compute in bfloat16? */
bool tdi_model_wishes_bfloat16(const td_model *model);
/* The classes between which output `output` chooses; 0 when its loss is none over classes. */
int tdi_program_classes(const td_model *model, int output);
void tdi_program_release(tdi_program *program);

/* The loss and the metrics from summed accumulators, named as Keras names them, each with `prefix`. */
void tdi_program_logs(const td_model *model, const tdi_metric_slots *slots, const double *sums, const char *prefix,
                      td_logs *logs);
/* Their names, before there are any: the values are 0. */
void tdi_program_log_names(const td_model *model, const char *prefix, td_logs *logs);

/* TD_UNSUPPORTED when the logs of an epoch, with those of its validation, do not fit into td_logs. */
td_status tdi_check_logs(const td_model *model, bool validation, tdi_error *error);

#endif
