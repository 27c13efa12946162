/* losses.h - losses: their Keras names and numbers, and the ops that they emit. */
#ifndef TDI_LAYERS_LOSSES_H
#define TDI_LAYERS_LOSSES_H

#include <tandem/model.h>

#include "graph/graph.h"
#include "ops/ops.h"

typedef enum tdi_loss_kind {
    TDI_LOSS_NONE = 0,
    TDI_LOSS_SPARSE_CATEGORICAL,
    TDI_LOSS_CATEGORICAL,
    TDI_LOSS_BINARY, /* the kinds up to this one are cross-entropies and read from_logits */
    TDI_LOSS_MSE,
    TDI_LOSS_MAE,
    TDI_LOSS_HUBER,
    TDI_LOSS_KINDS
} tdi_loss_kind;

typedef struct tdi_loss {
    tdi_loss_kind kind;
    bool from_logits;
    float label_smoothing;   /* categorical and binary, from 0 to 1 */
    tdi_ignore_attrs ignore; /* sparse categorical: positions of this class do not count in the mean */
    float delta;             /* Huber: above 0 */
    bool classes;            /* without a loss: the output's metrics take class numbers */
} tdi_loss;

tdi_loss tdi_loss_from_public(td_loss loss);
/* Sets the class to ignore. TD_INVALID_ARGUMENT when the loss knows no such class, or `number` is no class number. */
td_status tdi_loss_ignore(tdi_loss *loss, float number, tdi_error *error);
/* Sets Huber's delta. TD_INVALID_ARGUMENT when the loss is another one, or delta is not above 0. */
td_status tdi_loss_set_delta(tdi_loss *loss, float delta, tdi_error *error);
/* "SparseCategoricalCrossentropy"; NULL for TDI_LOSS_NONE. */
const char *tdi_loss_class(tdi_loss_kind kind);
/* Takes a class name, a snake-case name or an alias ("mse"); TDI_LOSS_NONE when the name is unknown. */
tdi_loss_kind tdi_loss_parse(const char *name);
/* True when the target holds int32 class numbers, in the prediction's shape less its last axis; without a loss by what
 * the metrics take. */
bool tdi_loss_wants_classes(const tdi_loss *loss);
/* The target's shape per sample that belongs to a prediction's shape per sample. */
td_shape tdi_loss_target_shape(const tdi_loss *loss, const td_shape *prediction);
/* Emits the losses, [batch, ...], in the prediction's shape less its last axis. The caller takes their mean, as Keras
 * does after it has weighted them. NULL after a failure. */
tdi_node *tdi_loss_emit(tdi_graph *graph, const tdi_loss *loss, tdi_node *prediction, tdi_node *target);

#endif
