/* synthetic_steps.h - a model's shadow: its steps can be run and timed, on rows made up, while the model stays what it
 * is. */
#ifndef TDI_RUNTIME_SYNTHETIC_STEPS_H
#define TDI_RUNTIME_SYNTHETIC_STEPS_H

#include "runtime/runtime.h"

/* A shadow of the model (model.h) with a learning rate of zero, so that numbers stay what they are. */
typedef struct tdi_shadow {
    td_model model;
    tdi_mode mode;
    int64_t rows;
    bool copied; /* rows are copied, as a shuffle's are, and not read where they lie */
    float *inputs[2 * TDI_MAX_IO];
} tdi_shadow;

/* For steps of `rows` rows. Whatever it returns, the caller releases it. */
td_status tdi_shadow_create(const td_model *model, tdi_mode mode, int64_t rows, tdi_shadow *shadow, tdi_error *error);
void tdi_shadow_release(tdi_shadow *shadow); /* after the runtimes made for its model */

/* Of its weights, slots and rows. */
double tdi_shadow_bytes(const tdi_shadow *shadow);

/* Runs steps on a runtime made for its model; *seconds: of each. */
td_status tdi_shadow_run(tdi_shadow *shadow, tdi_runtime *runtime, int64_t steps, double *seconds, tdi_error *error);

#endif
