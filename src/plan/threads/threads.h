/* threads.h - what making a plan asks of this folder, behind the choice of kernels and the layout of memory. */
#ifndef TDI_PLAN_THREADS_THREADS_H
#define TDI_PLAN_THREADS_THREADS_H

#include "plan/plan_struct.h"

/* Sets `barrier` of the steps before which the threads must meet. */
td_status tdi_insert_barriers(tdi_plan *plan, tdi_error *error);

#endif
