/* training.h - losses, metrics and optimizers: functions that emit ops, and their Keras names and fields. */
#ifndef TDI_LAYERS_TRAINING_H
#define TDI_LAYERS_TRAINING_H

#include <tandem/model.h>

#include "graph/graph.h"
#include "layers/field.h"
#include "ops/ops.h"

typedef enum tdi_loss_kind {
    TDI_LOSS_NONE = 0,
    TDI_LOSS_SPARSE_CATEGORICAL,
    TDI_LOSS_CATEGORICAL,
    TDI_LOSS_BINARY, /* the cross-entropies, up to here, know from_logits */
    TDI_LOSS_MSE,
    TDI_LOSS_MAE,
    TDI_LOSS_HUBER,
    TDI_LOSS_KINDS
} tdi_loss_kind;

typedef struct tdi_loss {
    tdi_loss_kind kind;
    bool from_logits;
    float label_smoothing;   /* categorical and binary */
    tdi_ignore_attrs ignore; /* sparse categorical: a class whose positions are left out of the mean */
    float delta;             /* Huber: above 0 */
} tdi_loss;

tdi_loss tdi_loss_from_public(td_loss loss);
/* Sets the class to ignore. TD_INVALID_ARGUMENT, naming what does not go, for another loss or no class number. */
td_status tdi_loss_ignore(tdi_loss *loss, float number, tdi_error *error);
/* Sets Huber's delta; the same. */
td_status tdi_loss_set_delta(tdi_loss *loss, float delta, tdi_error *error);
const char *tdi_loss_class(tdi_loss_kind kind); /* "SparseCategoricalCrossentropy"; NULL for none */
tdi_loss_kind tdi_loss_parse(const char *name); /* class or snake-case name, aliases ("mse") too; NONE: unknown */
bool tdi_loss_wants_classes(
    const tdi_loss *loss); /* the target is int32 class numbers of the prediction's shape less its last axis */
/* The target's shape per sample for a prediction's. */
td_shape tdi_loss_target_shape(const tdi_loss *loss, const td_shape *prediction);
/* Per-sample losses [B, ...] (the prediction's shape less its last axis), as Keras computes them, and weighs them
 * before it takes their mean. */
tdi_node *tdi_loss_emit(tdi_graph *graph, const tdi_loss *loss, tdi_node *prediction, tdi_node *target);

typedef struct tdi_metric_type {
    const char *class_name;  /* "MeanIoU"; NULL for "accuracy", which becomes another */
    const char *name;        /* what Keras calls one without a name: "mean_io_u" */
    const char *alias;       /* "mse", and "MSE"; NULL: none */
    const tdi_field *fields; /* of td_metric, but for `lists` */
    const char *lists;       /* the key of a list (thresholds, target_class_ids); NULL: there is none */
} tdi_metric_type;

const tdi_metric_type *tdi_metric_type_of(td_metric_kind kind);
td_metric_kind tdi_metric_parse(const char *name);    /* class or snake-case name, or alias; TD_METRIC_END: unknown */
const char *tdi_metric_name(const td_metric *metric); /* Keras's log key: "accuracy", or a name of its own */
bool tdi_metric_falls(const td_metric *metric);       /* the less the better, as Keras's callbacks see it: an error */
/* Fills in every default for an output of the loss and the sample shape given. TD_INVALID_ARGUMENT naming the number
 * that cannot be. */
td_status tdi_metric_settle(td_metric *metric, const tdi_loss *loss, const td_shape *prediction, tdi_error *error);
/* What is added up, per position [B, ...]. */
tdi_node *tdi_metric_emit(tdi_graph *graph, const td_metric *metric, const tdi_loss *loss, tdi_node *prediction,
                          tdi_node *target);
/* The accumulators that its sums take up, from `slot` on; how many results are made of them, and one of these. */
int tdi_metric_accumulators(const td_metric *metric);
void tdi_metric_accumulate(tdi_graph *graph, const td_metric *metric, tdi_node *values, tdi_node *target, int slot);
int tdi_metric_results(const td_metric *metric);
double tdi_metric_result(const td_metric *metric, const double *sums, int which);

/* A kind of optimizer, or of schedule. */
typedef struct tdi_config_type {
    unsigned kind;           /* td_optimizer_kind, td_schedule_kind */
    const char *class_name;  /* "Adam", "CosineDecayRestarts" */
    const char *name;        /* what Keras calls one without a name: "adam", "SGDRDecay" */
    const tdi_field *fields; /* of td_optimizer, or of td_schedule, PiecewiseConstantDecay's lists apart */
} tdi_config_type;

extern const tdi_config_type tdi_optimizer_types[], tdi_schedule_types[];                    /* both end with {0} */
const tdi_config_type *tdi_config_type_of(const tdi_config_type *types, unsigned kind);      /* NULL: there is none */
const tdi_config_type *tdi_config_type_find(const tdi_config_type *types, const char *name); /* either; NULL: unknown */

/* TD_INVALID_ARGUMENT naming the number that cannot be. */
td_status tdi_schedule_check(const td_schedule *schedule, tdi_error *error);
/* The rate of a step, counted from 0; the schedule is resolved. */
float tdi_schedule_rate(const td_schedule *schedule, int64_t step);

/* Each trained variable has so many slots: those of the update (SGD without momentum 0, with 1; Adam 2, with amsgrad
 * 3), then the average that use_ema keeps, then the accumulator of gradient_accumulation_steps. */
int tdi_optimizer_slots(const td_optimizer *optimizer);
int tdi_optimizer_update_slots(const td_optimizer *optimizer);
int tdi_optimizer_average_slot(const td_optimizer *optimizer);     /* -1: there is none */
int tdi_optimizer_accumulator_slot(const td_optimizer *optimizer); /* -1: there is none */
/* Fills in every default. TD_INVALID_ARGUMENT for a kind that there is not. */
td_status tdi_optimizer_resolve(td_optimizer *optimizer, tdi_error *error);
/* The learning rate of a step, counted from 0 as Keras's iteration. */
float tdi_optimizer_rate(const td_optimizer *optimizer, int64_t step);
/* TD_INVALID_ARGUMENT naming the number that cannot be (a learning rate below 0, beta_1 of 1). */
td_status tdi_optimizer_check(const td_optimizer *optimizer, tdi_error *error);
/* The control block's numbers of one step, from the optimizer as it is set now: momentum, betas, epsilon, decay, clips
 * and averages may have changed since the updates were emitted; which slots there are, and which clips, may not. */
void tdi_optimizer_reckon(const td_optimizer *optimizer, tdi_control *control);
/* The updates of all trained variables from their reduced gradients, NULL where there is none: marked once and effect.
 * gradients[] is overwritten. */
td_status tdi_optimizer_emit(tdi_graph *graph, const td_optimizer *optimizer, int count, tdi_variable *const *variables,
                             tdi_node **gradients);

#endif
