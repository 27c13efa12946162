/* model_state.c - making, copying and freeing states of a model. */
#include "model/model_state.h"

#include <stdatomic.h>
#include <string.h>

#include "base/machine.h"
#include "layers/optimizers.h"

td_status tdi_model_short(const char *what, int64_t floats, tdi_error *error)
{
    return tdi_memory_short(error, what, (size_t)floats * sizeof(float), "allow it more");
}

/* Two states never have one version: kernels keep packed copies of weights by it. */
static uint64_t next_version(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

float *tdi_model_state_write_values(tdi_model_state *state)
{
    state->version = next_version();
    return state->host_values;
}

static float *copy_floats(const float *from, int64_t count)
{
    float *to = from ? tdi_buffer_create((size_t)count * sizeof *to) : NULL;
    if (to)
        memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

td_status tdi_model_state_create(const tdi_architecture *architecture, uint64_t seed, tdi_model_state **state,
                                 tdi_error *error)
{
    tdi_model_state *made = *state = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->architecture = architecture;
    made->version = next_version();
    made->seed = seed;
    for (int i = 0; i < TDI_DROPOUT_NUMBERS; i++)
        made->dropout[i] = -1;
    made->host_values = tdi_buffer_create((size_t)architecture->total * sizeof(float));
    if (made->host_values)
        return TD_OK;
    free(made);
    *state = NULL;
    return tdi_model_short("room for the weights", architecture->total, error);
}

/* Every copy is tried, so that what is freed afterwards is never the original's. */
td_status tdi_model_state_copy(const tdi_model_state *from, bool slots, tdi_model_state **copy, tdi_error *error)
{
    const tdi_architecture *architecture = from->architecture;
    int64_t floats = architecture->total;
    tdi_model_state *made = *copy = malloc(sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    *made = *from;
    made->version = next_version();
    made->host_values = copy_floats(from->host_values, architecture->total);
    bool complete = made->host_values;
    for (int s = 0; s < TDI_MAX_SLOTS; s++) {
        made->host_slots[s] = slots ? copy_floats(from->host_slots[s], architecture->trained) : NULL;
        bool needed = slots && from->host_slots[s];
        complete = complete && (made->host_slots[s] || !needed);
        floats += needed ? architecture->trained : 0;
    }
    if (complete && (!slots || tdi_model_state_make_slots(made, NULL) == TD_OK))
        return TD_OK;
    tdi_model_state_free(made);
    *copy = NULL;
    return tdi_model_short(slots ? "a copy of the weights and slots" : "a copy of the weights", floats, error);
}

void tdi_model_state_free(tdi_model_state *state)
{
    if (!state)
        return;
    tdi_buffer_free(state->host_values);
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        tdi_buffer_free(state->host_slots[s]);
    free(state);
}

void tdi_model_state_drop_slots(tdi_model_state *state)
{
    for (int i = 0; i < TDI_MAX_SLOTS; i++) {
        tdi_buffer_free(state->host_slots[i]);
        state->host_slots[i] = NULL;
    }
}

void tdi_model_state_set_optimizer(tdi_model_state *state, const td_optimizer *optimizer)
{
    tdi_model_state_drop_slots(state);
    state->optimizer = *optimizer;
    state->iteration = 0;
    state->last_rate = 0;
}

td_status tdi_model_state_make_slots(tdi_model_state *state, tdi_error *error)
{
    for (int i = 0; i < tdi_optimizer_slots(&state->optimizer); i++) {
        if (!state->host_slots[i])
            state->host_slots[i] = tdi_buffer_create((size_t)state->architecture->trained * sizeof(float));
        if (!state->host_slots[i])
            return tdi_model_short("a slot of the optimizer", state->architecture->trained, error);
    }
    return TD_OK;
}
