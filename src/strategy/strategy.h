/* strategy.h - how a model's steps are spread over devices: what a strategy has to say, and nothing that all share.
 *
 * A strategy divides the global batch, and connects those who compute its shards. Layers, ops and passes do not know
 * it: of a layer it asks properties (tdi_layer_type), never which class it is. What all strategies share is elsewhere:
 * the collectives of a graph follow from the division (model/program.h), steps are run by the runtime, and every
 * process holds the whole model, so that files are written from it as if there were no strategy. */
#ifndef TDI_STRATEGY_STRATEGY_H
#define TDI_STRATEGY_STRATEGY_H

#include "comm/communicator.h"
#include "comm/deal.h"
#include "model/model.h"
#include "strategy/device_list.h"
#include "strategy/division.h"

typedef struct tdi_strategy tdi_strategy;
struct tdi_strategy {
    /* What this process and the others of its group exchange, and who of them computes which shards; NULL: there are no
     * others. */
    struct tdi_exchange *exchange;
    const tdi_deal *deal;
    /* Its collectives can break (tdi_communicator.failure): programs are made so that a broken step leaves the model as
     * it was, which costs the overlap of updates with backpropagation. */
    bool can_break;
    /* All compute in float32, though the model wishes for bfloat16, since one of them is not faster in that. */
    bool float32;
    /* Divides batches of `model` for `replicas` devices that have `cores` cores together. Called by the context's
     * thread, by td_compile to check and whenever a runtime is made; a pure function of its arguments, since a resumed
     * run has to find the same division. TD_INVALID_ARGUMENT with a sentence for users when they asked for what cannot
     * be. */
    td_status (*divide)(const td_model *model, int replicas, int cores, tdi_division *division, tdi_error *error);
    /* Makes the communicators of a program: handles[group->workers], which the caller releases; on a failure none is
     * left. Called by the context's thread before the first step of each kind, and again after a broken step; may
     * block until other processes have come. The list in `group` lives as long as the handles. */
    td_status (*connect)(const tdi_strategy *strategy, const tdi_group_spec *group, tdi_communicator **handles,
                         tdi_error *error);
};

/* The replicas are devices of this process, which share its memory. */
extern const tdi_strategy tdi_mirrored;

static inline const tdi_strategy *tdi_strategy_of(const td_model *model)
{
    return model->compiled.strategy ? model->compiled.strategy : &tdi_mirrored;
}

/* Are steps of the model made together with other processes? Then all end a job alike, and nobody leaves in between. */
static inline bool tdi_in_group(const td_model *model)
{
    return tdi_strategy_of(model)->exchange != NULL;
}

/* The model's division on these devices, as its strategy says: of as many cores as they have, and the process may use.
 */
td_status tdi_divide(const td_model *model, tdi_device *const *devices, int count, tdi_division *division,
                     tdi_error *error);

/* Has the model convolutions, which suit cores with rows of their own? */
bool tdi_has_convolutions(const td_model *model);
/* Has the model statistics that each replica takes on its own? */
bool tdi_has_statistics_per_replica(const td_model *model);

#endif
