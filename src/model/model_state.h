/* model_state.h - what training changes in a model: the values of its variables, the optimizer's slots, the numbers of
 * the optimizer and of dropout, the iteration and the seed. Many states may share an architecture, and take turns under
 * one runtime (tdi_runtime_put_state).
 *
 * Values and slots are reached through accessors alone: a device with memory of its own may hold newer ones, which an
 * accessor to read would bring, and which an accessor to write makes outdated. A pointer that one of them gave is good
 * until the next step. */
#ifndef TDI_MODEL_MODEL_STATE_H
#define TDI_MODEL_MODEL_STATE_H

#include "device/call.h"
#include "model/architecture.h"

#define TDI_MAX_SLOTS 5

typedef struct tdi_model_state {
    const tdi_architecture *architecture;
    float *host_values;               /* [architecture->total]; for the accessors below and whoever binds plans */
    float *host_slots[TDI_MAX_SLOTS]; /* [architecture->trained] each; NULL where the optimizer has none, and before
                                         tdi_model_state_make_slots; the same */
    uint64_t version;                 /* names the values: another one, unique in the process, since they may differ */

    /* Resolved. Of one architecture compiled once, states may differ in its numbers (tdi_optimizer_reckon) and its
     * learning rate or schedule. */
    td_optimizer optimizer;
    float dropout[TDI_DROPOUT_NUMBERS]; /* rates, by tdi_dropout_attrs' number; below 0: as the layer says */
    float last_rate;                    /* the learning rate of the last step; 0: not known */
    int64_t iteration;                  /* steps taken, those that accumulate gradients included: Keras's iteration */
    uint64_t seed;
} tdi_model_state;

/* All values 0; no optimizer. */
td_status tdi_model_state_create(const tdi_architecture *architecture, uint64_t seed, tdi_model_state **state,
                                 tdi_error *error);
/* *copy: the same, with slots where `slots`, which only a state that trains needs. */
td_status tdi_model_state_copy(const tdi_model_state *from, bool slots, tdi_model_state **copy, tdi_error *error);
void tdi_model_state_free(tdi_model_state *state); /* NULL too */
/* Takes a resolved optimizer whose lists outlive the state; iteration is 0, and slots are not made. */
void tdi_model_state_set_optimizer(tdi_model_state *state, const td_optimizer *optimizer);
/* Makes the optimizer's slots, of zeros, where they are not made. What only predicts or evaluates has none. */
td_status tdi_model_state_make_slots(tdi_model_state *state, tdi_error *error);
void tdi_model_state_drop_slots(tdi_model_state *state);

/* TD_NO_MEMORY: what needs so many floats. */
td_status tdi_model_short(const char *what, int64_t floats, tdi_error *error);

static inline const float *tdi_model_state_values(const tdi_model_state *state)
{
    return state->host_values;
}
static inline const float *tdi_model_state_slots(const tdi_model_state *state, int slot)
{
    return state->host_slots[slot];
}

/* To write there, and whenever a step has: gives the values another version. */
float *tdi_model_state_write_values(tdi_model_state *state);
static inline float *tdi_model_state_write_slots(tdi_model_state *state, int slot)
{
    return state->host_slots[slot];
}

#endif
