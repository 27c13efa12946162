/* sharing.c - how many of a worker's lanes share the ops of a step.
 *
 * Lanes that share an op must meet, and read what the others wrote; where a step is short that costs more than it
 * brings. Then whole steps are timed, on memory of their own, with one lane, with all, and with numbers between. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "dist/inside.h"

enum { ROUNDS = 5, MOST_STEPS = 200, LARGEST_MODEL = 1 << 22 /* floats */ };
static const double shortest_round = 5e-4; /* seconds */
static const double sure_flops = 20e6;     /* of a lane: a tenth of a millisecond */

typedef struct rehearsal {
    tdi_runtime *runtime;
    const tdi_plan_spec *spec;
    tdi_plan *plans[TDI_MAX_CANDIDATES];
    tdi_vec(void *) buffers;
    tdi_bindings bindings;
    tdi_control *control; /* [lanes] */
    tdi_part *part;       /* [lanes] */
    float *gradients[1], *slots[TDI_MAX_SLOTS];
    void *inputs[2 * TDI_MAX_IO];
    char **scratch;
    tdi_barrier lanes;
    tdi_communicator *communicator;
    const tdi_plan *turn;
    int steps;
    uint32_t done;
    double seconds; /* of the last turn's steps, lane 0's */
} rehearsal;

/* ---- memory ---- */

static void *buffer(rehearsal *r, size_t size)
{
    tdi_device *device = r->spec->device;
    void *memory = device->allocate(device, size);
    if (memory && tdi_push(&r->buffers, memory))
        return memory;
    device->release(device, memory);
    return NULL;
}

static size_t most(const rehearsal *r, int count, size_t (*size_of)(const tdi_plan *plan))
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size = size_of(r->plans[i]) > size ? size_of(r->plans[i]) : size;
    return size;
}

static bool make_inputs(rehearsal *r)
{
    const td_model *model = r->runtime->model;
    for (int slot = 0; slot < model->n_inputs + model->n_outputs; slot++) {
        r->inputs[slot] = buffer(r, (size_t)(r->spec->rows * tdi_input_bytes_per_row(model, slot)));
        if (!r->inputs[slot])
            return false;
    }
    return true;
}

/* The model's values, and a learning rate of zero: numbers stay what they are. */
static bool make_state(rehearsal *r)
{
    const td_model *model = r->runtime->model;
    float *values = buffer(r, (size_t)model->total * sizeof *values);
    r->gradients[0] = buffer(r, (size_t)model->trained * sizeof(float));
    for (int s = 0; s < TDI_MAX_SLOTS; s++)
        if (model->slots[s] && !(r->slots[s] = buffer(r, (size_t)model->trained * sizeof(float))))
            return false;
    if (!values || !r->gradients[0])
        return false;
    memcpy(values, model->values, (size_t)model->total * sizeof *values);
    r->bindings.values = values;
    r->bindings.slots = r->slots;
    r->bindings.gradients = r->bindings.reduced = r->gradients[0];
    return true;
}

static size_t metric_bytes(const rehearsal *r)
{
    const tdi_mode_state *mode = r->runtime->modes;
    while (mode->program.graph != r->spec->graph)
        mode++;
    return tdi_metric_bytes(&mode->program.slots);
}

static bool make_memory(rehearsal *r, int count)
{
    r->scratch = buffer(r, (size_t)r->spec->lanes * sizeof *r->scratch);
    for (int lane = 0; r->scratch && lane < r->spec->lanes; lane++)
        if (!(r->scratch[lane] = buffer(r, most(r, count, tdi_plan_scratch_bytes))))
            return false;
    r->bindings.scratch = r->scratch;
    r->bindings.activations = buffer(r, most(r, count, tdi_plan_activation_bytes));
    r->bindings.exchange = buffer(r, most(r, count, tdi_plan_exchange_bytes));
    r->bindings.metrics = buffer(r, metric_bytes(r));
    r->control = buffer(r, (size_t)r->spec->lanes * sizeof *r->control);
    r->part = buffer(r, (size_t)r->spec->lanes * sizeof *r->part);
    for (int lane = 0; r->control && r->part && lane < r->spec->lanes; lane++) {
        r->control[lane] = (tdi_control){.inverse_count = 1.0f / (float)r->spec->rows};
        r->part[lane] = (tdi_part){.parts = 1, .group_count = 1, .gradients = r->gradients};
    }
    r->bindings.control = r->control;
    r->bindings.part = r->part;
    return r->control && r->part && r->scratch && r->bindings.activations && r->bindings.exchange &&
           r->bindings.metrics && make_inputs(r) && make_state(r);
}

static void bind(const rehearsal *r, tdi_plan *plan)
{
    const td_model *model = r->runtime->model;
    tdi_plan_bind(plan, &r->bindings);
    for (int lane = 0; lane < r->spec->lanes; lane++)
        for (int slot = 0; slot < model->n_inputs + model->n_outputs; slot++)
            tdi_plan_set_input(plan, lane, slot, r->inputs[slot]);
}

/* ---- the clock ---- */

static void run_turn(void *argument, int lane)
{
    rehearsal *r = argument;
    tdi_device *device = r->spec->device;
    tdi_plan *plan = (tdi_plan *)(uintptr_t)r->turn;
    int state = device->enter_thread ? device->enter_thread(device) : 0;
    bool alone = tdi_plan_sharing(plan) == 1;
    double begun = tdi_seconds();
    for (int i = 0; i < r->steps && (lane == 0 || !alone); i++) {
        tdi_plans_run(&plan, 1, lane, r->done + (uint32_t)i + 1, &r->lanes, r->communicator);
        if (!alone)
            r->communicator->end_step(r->communicator);
    }
    if (lane == 0)
        r->seconds = tdi_seconds() - begun;
    if (device->leave_thread)
        device->leave_thread(device, state);
}

static double seconds_of(rehearsal *r, const tdi_plan *plan, int steps)
{
    r->turn = plan;
    r->steps = steps;
    tdi_team_run(r->runtime->team, run_turn, r);
    r->done += (uint32_t)steps;
    return r->seconds / steps;
}

static void compete(rehearsal *r, int count, tdi_candidate *candidates)
{
    int steps = 0;
    for (int i = 0; i < count; i++) {
        bind(r, r->plans[i]);
        seconds_of(r, r->plans[i], 1);
        double wanted = shortest_round / (seconds_of(r, r->plans[i], 2) + 1e-9) + 1;
        steps = wanted < MOST_STEPS ? (wanted > steps ? (int)wanted : steps) : MOST_STEPS;
        candidates[i].us = 1e12;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < count; i++) {
            double us = seconds_of(r, r->plans[i], steps) * 1e6;
            candidates[i].us = us < candidates[i].us ? us : candidates[i].us;
        }
}

static td_status make_plans(rehearsal *r, int count, const int *sharing, tdi_error *error)
{
    for (int i = 0; i < count; i++) {
        tdi_plan_spec spec = *r->spec;
        spec.sharing = sharing[i];
        TDI_TRY(tdi_plan_create(&spec, &r->plans[i], error));
    }
    return TD_OK;
}

static td_status rehearse(tdi_runtime *runtime, const tdi_plan_spec *spec, const int *sharing, tdi_choice *choice,
                          tdi_error *error)
{
    rehearsal r = {.runtime = runtime, .spec = spec};
    r.lanes = (tdi_barrier){.count = (uint32_t)spec->lanes, .spin = tdi_team_spins(runtime->team)};
    td_status status = make_plans(&r, choice->count, sharing, error);
    if (status == TD_OK)
        status = make_memory(&r, choice->count) ? TD_OK : TD_NO_MEMORY;
    if (status == TD_OK)
        status = tdi_local_group_create(1, spec->lanes, tdi_team_spins(runtime->team), 0, &r.communicator, error);
    if (status == TD_OK)
        compete(&r, choice->count, choice->candidates);
    if (r.communicator)
        r.communicator->release(r.communicator);
    for (int i = 0; i < choice->count; i++)
        tdi_plan_free(r.plans[i]);
    for (int i = 0; i < r.buffers.count; i++)
        spec->device->release(spec->device, r.buffers.at[i]);
    tdi_vec_free(&r.buffers);
    return status;
}

/* ---- the choice ---- */

/* One lane, all, and between them halves of all: fewest first. */
static int list_candidates(int lanes, int *sharing, char names[][16], tdi_choice *choice)
{
    int count = 0, some[TDI_MAX_CANDIDATES];
    for (int n = lanes; n > 1 && count < TDI_MAX_CANDIDATES - 1; n /= 2)
        some[count++] = n;
    some[count++] = 1;
    for (int i = 0; i < count; i++) {
        sharing[i] = some[count - 1 - i];
        snprintf(names[i], sizeof *names, "%d lane%s", sharing[i], sharing[i] == 1 ? "" : "s");
        choice->candidates[i].name = names[i];
    }
    return choice->count = count;
}

bool tdi_sharing_in_doubt(const tdi_runtime *runtime, const tdi_plan *plan)
{
    const tdi_division *d = &runtime->division;
    return runtime->chooser.choices && d->parts == 1 && d->lanes > 1 && runtime->model->total <= LARGEST_MODEL &&
           tdi_plan_flops(plan) < sure_flops * d->lanes;
}

td_status tdi_choose_sharing(tdi_runtime *runtime, const tdi_plan_spec *spec, const tdi_plan *plan, int *lanes,
                             const tdi_choice **chosen, tdi_error *error)
{
    tdi_choices *choices = runtime->chooser.choices;
    char names[TDI_MAX_CANDIDATES][16], key[128];
    const char *pointers[TDI_MAX_CANDIDATES];
    int sharing[TDI_MAX_CANDIDATES];
    tdi_choice asked = {.machine = spec->device->identity, .key = key, .measured = true};
    int count = list_candidates(spec->lanes, sharing, names, &asked);
    for (int i = 0; i < count; i++)
        pointers[i] = names[i];
    snprintf(key, sizeof key, "step %016llx, %d lanes", (unsigned long long)tdi_plan_hash(plan), spec->lanes);
    tdi_choice *choice = tdi_choices_find(choices, asked.machine, key, count, pointers);
    if (!choice) {
        TDI_TRY(rehearse(runtime, spec, sharing, &asked, error));
        asked.chosen = tdi_fastest(asked.candidates, count);
        choice = tdi_choices_keep(choices, &asked);
        choices->changed = true;
    }
    if (!choice)
        return TD_NO_MEMORY;
    choice->used = true;
    *chosen = choice;
    *lanes = sharing[choice->chosen];
    return TD_OK;
}
