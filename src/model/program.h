/* program.h - the graph of one kind of step: forward, loss, backward, reduction, update, metrics. */
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

/* Is it a step that trains, or half of one: does it read or make gradients? */
static inline bool tdi_trains(tdi_mode mode)
{
    return mode == TDI_TRAIN || mode == TDI_GRADIENTS || mode == TDI_APPLY;
}

/* The accumulators that a program adds to, two doubles each: [total, count] of a loss or metric. */
typedef struct tdi_metric_slots {
    int count;
    int loss[TDI_MAX_IO];                     /* per output; -1: it has none */
    int metrics[TDI_MAX_IO][TDI_MAX_METRICS]; /* per output: a metric's first */
    int regularization;                       /* -1: none */
    int classes[TDI_MAX_IO];                  /* per output: rows of its confusion matrix; 0: it has none */
    int confusion[TDI_MAX_IO];                /* per output: the matrix's first */
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

/* How the model's batch is divided, and the device that the program is for. */
typedef struct tdi_target {
    int shards; /* shards of the global batch */
    int groups; /* groups of rows with batch statistics of their own: of some shards each, or several in one */
    const tdi_device *device; /* NULL: float32 throughout */
    bool float32;             /* float32 even where layers are to compute in bfloat16 */
    bool effects_last;        /* nothing that outlives a step is written before its last collective, which may break */
    bool exchanged;           /* other processes compute some of the shards */
    int64_t rows;             /* `exchanged`: of the largest batch, which decides what travels; 0: it is not known */
} tdi_target;

/* Emits the graph, runs the passes and schedules it. The graph's inputs are the model's, then the targets,
 * then the columns of the losses' weights. */
td_status tdi_program_create(const td_model *model, tdi_mode mode, const tdi_target *target, tdi_program *program,
                             tdi_error *error);
/* Is any layer to compute in bfloat16? */
bool tdi_model_wishes_bfloat16(const td_model *model);
/* The number of classes that output `output` chooses from; 0 when its loss is not over classes. */
int tdi_program_classes(const td_model *model, int output);
void tdi_program_release(tdi_program *program);

/* Adds the loss and the metrics of these accumulators to `logs`, under Keras's names, each with `prefix`. */
void tdi_program_logs(const td_model *model, const tdi_metric_slots *slots, const double *sums, const char *prefix,
                      td_logs *logs);
/* Adds the same names with the value 0, before any step. */
void tdi_program_log_names(const td_model *model, const char *prefix, td_logs *logs);

/* TD_UNSUPPORTED when the logs of an epoch, with those of its validation, do not fit into td_logs. */
td_status tdi_check_logs(const td_model *model, bool validation, tdi_error *error);

#endif
