/* synthetic_steps.h - steps that can be run and timed while the model stays as it is: a clone's, on synthetic rows. */
#ifndef TDI_RUNTIME_SYNTHETIC_STEPS_H
#define TDI_RUNTIME_SYNTHETIC_STEPS_H

#include "runtime/runtime.h"

typedef struct tdi_synthetic_steps {
    td_model clone; /* its learning rate is zero, so that its numbers stay what they are */
    tdi_mode mode;
    int64_t rows;
    bool copied; /* rows are copied, as a shuffle's are, and not read in place */
    float *inputs[TDI_MAX_FED];
} tdi_synthetic_steps;

/* Makes the clone and a batch of `rows` rows. The caller releases them, whatever this returns. */
td_status tdi_synthetic_steps_init(const td_model *model, tdi_mode mode, int64_t rows, tdi_synthetic_steps *synthetic,
                                   tdi_error *error);
void tdi_synthetic_steps_release(tdi_synthetic_steps *synthetic); /* after the runtimes of its clone */

/* Bytes of the clone's weights and slots, and of the rows. */
double tdi_synthetic_steps_bytes(const tdi_synthetic_steps *synthetic);

/* Runs steps on a runtime made for the clone; *seconds: the mean of a step. */
td_status tdi_synthetic_steps_run(tdi_synthetic_steps *synthetic, tdi_runtime *runtime, int64_t steps, double *seconds,
                                  tdi_error *error);

#endif
