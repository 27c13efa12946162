/* share_results.h - at a job's end every process of a group comes to have all shards' results. */
#ifndef TDI_RUNTIME_SHARE_RESULTS_H
#define TDI_RUNTIME_SHARE_RESULTS_H

#include "runtime/runtime_struct.h"

/* Gives the others this process's accumulators, and what its rows have left in stateful layers, and takes theirs.
 * TD_STOPPED where any process was `stopped`, in all of them; else the exchange's failure. */
td_status tdi_share_results(tdi_runtime *runtime, const tdi_job *job, bool stopped, tdi_error *error);

#endif
