/* optimizers.h - optimizers and learning rate schedules: their Keras names and fields, the updates that optimizers
 * emit, and the rate that a schedule gives for a step.
 *
 * A trained variable has these slots, in this order: the update's own (SGD: 1 with momentum, else 0; Adam: 2, with
 * amsgrad 3), the average that use_ema keeps, the accumulator of gradient_accumulation_steps. */
#ifndef TDI_LAYERS_OPTIMIZERS_H
#define TDI_LAYERS_OPTIMIZERS_H

#include <tandem/model.h>

#include "device/call.h"
#include "graph/graph.h"
#include "layers/field_table.h"

/* One kind of optimizer or of schedule. */
typedef struct tdi_config_type {
    unsigned kind;           /* a td_optimizer_kind or td_schedule_kind */
    const char *class_name;  /* "Adam", "CosineDecayRestarts" */
    const char *name;        /* Keras's default name: "adam", "SGDRDecay" */
    const tdi_field *fields; /* of td_optimizer or td_schedule, without PiecewiseConstantDecay's lists */
} tdi_config_type;

extern const tdi_config_type tdi_optimizer_types[], tdi_schedule_types[]; /* both end with {0} */
/* The type of a kind; NULL: there is none. */
const tdi_config_type *tdi_config_type_of(const tdi_config_type *types, unsigned kind);
/* The type of a class name or default name; NULL: there is none. */
const tdi_config_type *tdi_config_type_find(const tdi_config_type *types, const char *name);

/* TD_INVALID_ARGUMENT naming the number that is out of range. */
td_status tdi_schedule_check(const td_schedule *schedule, tdi_error *error);
/* The learning rate of a step, counted from 0, by a resolved schedule. */
float tdi_schedule_rate(const td_schedule *schedule, int64_t step);

int tdi_optimizer_slots(const td_optimizer *optimizer);            /* all of them */
int tdi_optimizer_update_slots(const td_optimizer *optimizer);     /* the update's own */
int tdi_optimizer_average_slot(const td_optimizer *optimizer);     /* -1: there is none */
int tdi_optimizer_accumulator_slot(const td_optimizer *optimizer); /* -1: there is none */
/* Sets every default. TD_INVALID_ARGUMENT for a kind that does not exist. */
td_status tdi_optimizer_resolve(td_optimizer *optimizer, tdi_error *error);
/* The learning rate of a step, counted from 0 as Keras counts iterations. */
float tdi_optimizer_rate(const td_optimizer *optimizer, int64_t step);
/* TD_INVALID_ARGUMENT naming the number that is out of range (a learning rate below 0, beta_1 of 1). */
td_status tdi_optimizer_check(const td_optimizer *optimizer, tdi_error *error);
/* Writes a step's numbers into the control block, from the optimizer as it is set now: momentum, betas, epsilon, decay,
 * clips and averages may have changed since the updates were emitted; which slots and which clips there are may not. */
void tdi_optimizer_reckon(const td_optimizer *optimizer, tdi_control *control);
/* Emits the updates of `count` variables, in the update phase. gradients[i] is the reduced gradient of variables[i], or
 * NULL where it has none; the array is overwritten. */
td_status tdi_optimizer_emit(tdi_graph *graph, const td_optimizer *optimizer, int count, tdi_variable *const *variables,
                             tdi_node **gradients);

#endif
