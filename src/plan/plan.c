/* plan.c - making a plan and binding it to memory. */
#include "plan/choose.h"
#include "plan/threads/threads.h"

/* A leaf is there already, a view is its input's bytes, a gather's value has been written by its inputs' steps, and an
 * extra output is written by its producer. */
static bool is_computed(const tdi_node *node)
{
    const tdi_op *op = node->op;
    return !op->leaf && !op->view && !op->gathers && !op->extra_output;
}

static td_status resolve_shapes(tdi_plan *plan, tdi_error *error)
{
    const tdi_graph *graph = plan->spec.graph;
    plan->placed = TDI_NEW_ARRAY(plan->arena, tdi_placed, graph->nodes.count);
    plan->n_steps = plan->spec.schedule->count;
    plan->planned = TDI_NEW_ARRAY(plan->arena, tdi_planned, plan->n_steps);
    plan->threads = TDI_NEW_ARRAY(plan->arena, tdi_thread_items, plan->spec.threads);
    if (!plan->placed || !plan->planned || !plan->threads)
        return tdi_no_memory(error);
    for (int i = 0; i < graph->nodes.count; i++)
        plan->placed[i] = (tdi_placed){.shape = tdi_shape_at(&graph->nodes.at[i]->shape, plan->spec.rows),
                                       .by = {.threads = 1},
                                       .storage = -1,
                                       .exchange = -1,
                                       .constant = -1,
                                       .position = -1};
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_node *node = plan->spec.schedule->at[s].node;
        if (!node)
            continue;
        tdi_placed_of(plan, node)->position = s;
        if (is_computed(node))
            plan->planned[s] =
                (tdi_planned){.node = node, .constant = node->op->constant && node->home == TDI_HOME_ACTIVATIONS};
    }
    return TD_OK;
}

static td_status choose_kernels(tdi_plan *plan, tdi_error *error)
{
    for (int s = 0; s < plan->n_steps; s++)
        if (plan->planned[s].node) {
            td_status status = tdi_choose_kernel(plan, s, error);
            if (status != TD_OK) {
                tdi_error_prefix(error, "%s (%s)", plan->planned[s].node->scope, plan->planned[s].node->op->name);
                return status;
            }
        }
    return TD_OK;
}

/* Each step has its own: threads count alike only where the same threads share. */
static td_status make_locksteps(tdi_plan *plan, tdi_error *error)
{
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        if (tdi_is_lockstep(plan, step))
            TDI_TRY(tdi_lockstep_create(&step->lockstep, tdi_placed_of(plan, step->node)->by.threads, plan->spec.spin,
                                        error));
    }
    return TD_OK;
}

/* ---- making it ---- */

static td_status make(tdi_plan *plan, tdi_error *error)
{
    TDI_TRY(resolve_shapes(plan, error));
    tdi_lay_out_exchange(plan);
    TDI_TRY(tdi_choose_layout(plan, error));
    td_status chosen = choose_kernels(plan, error);
    tdi_spares_release(plan);
    TDI_TRY(chosen);
    TDI_TRY(make_locksteps(plan, error));
    TDI_TRY(tdi_lay_out(plan, error));
    TDI_TRY(tdi_insert_barriers(plan, error));
    return tdi_list_items(plan, error);
}

td_status tdi_plan_create(const tdi_plan_spec *spec, tdi_plan **plan, tdi_error *error)
{
    *plan = NULL;
    tdi_plan *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->spec = *spec;
    made->arena = tdi_arena_create();
    td_status status = made->arena ? make(made, error) : tdi_no_memory(error);
    if (status != TD_OK) {
        tdi_plan_free(made);
        return status;
    }
    *plan = made;
    return TD_OK;
}

static void free_step(const tdi_plan *plan, tdi_planned *step)
{
    if (step->calls)
        tdi_calls_release(plan, step->kernel, step->calls);
    tdi_lockstep_release(&step->lockstep);
    tdi_text_free(&step->remarks);
}

void tdi_plan_free(tdi_plan *plan)
{
    if (!plan)
        return;
    for (int s = 0; plan->planned && s < plan->n_steps; s++)
        free_step(plan, &plan->planned[s]);
    for (int thread = 0; plan->threads && thread < plan->spec.threads; thread++) {
        tdi_vec_free(&plan->threads[thread].items);
        tdi_vec_free(&plan->threads[thread].segments);
        tdi_vec_free(&plan->threads[thread].inputs);
        free(plan->threads[thread].labels);
    }
    if (plan->constants)
        plan->spec.device->release(plan->spec.device, plan->constants);
    tdi_arena_free(plan->arena);
    free(plan);
}

size_t tdi_plan_activation_bytes(const tdi_plan *plan)
{
    return (size_t)plan->activation_bytes;
}

int tdi_plan_sharing(const tdi_plan *plan)
{
    return tdi_sharing_of(plan);
}

size_t tdi_plan_scratch_bytes(const tdi_plan *plan)
{
    return plan->scratch_bytes;
}

size_t tdi_plan_packed_bytes(const tdi_plan *plan)
{
    return plan->packed_bytes;
}

size_t tdi_plan_exchange_bytes(const tdi_plan *plan)
{
    return (size_t)plan->exchange_bytes;
}

/* ---- addresses ---- */

static void *address(const tdi_plan *plan, const tdi_bindings *b, const tdi_node *value)
{
    const tdi_node *node = tdi_root(value);
    const tdi_placed *placed = tdi_placed_of(plan, node);
    if (placed->exchange >= 0)
        return b->exchange + placed->exchange;
    if (placed->constant >= 0)
        return plan->constants + placed->constant;
    if (placed->storage >= 0)
        return b->activations + plan->storages[placed->storage].offset;
    switch (node->home) {
    case TDI_HOME_VARIABLE:
        return b->values + node->variable->offset;
    case TDI_HOME_SLOT:
        return b->slots[node->slot] + node->variable->offset;
    case TDI_HOME_GRADIENT:
        /* A gradient that is a leaf was reduced before the step began. */
        return (node->update_phase || tdi_is_leaf(node) ? b->reduced : b->gradients) + node->variable->offset;
    case TDI_HOME_METRIC:
        return b->metrics + 2 * node->slot;
    default:
        return NULL;
    }
}

static void bind_call(const tdi_plan *plan, const tdi_bindings *b, tdi_planned *step, tdi_call *call, int thread)
{
    const tdi_node *node = step->node;
    tdi_value *in = (tdi_value *)(uintptr_t)call->in;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i])
            in[i].data = address(plan, b, node->in[i]);
    call->out.data = address(plan, b, node);
    call->scratch = b->scratch[thread];
    call->control = &b->control[thread];
    call->failed = b->failed;
    call->shard = &b->shard[thread];
    call->lockstep = &step->lockstep;
}

static void bind_sums(const tdi_plan *plan, const tdi_bindings *b, tdi_planned *step, int thread)
{
    bind_call(plan, b, step, &step->finish[thread], thread);
    float *sums = (float *)(void *)(b->activations + plan->storages[step->sums].offset);
    step->calls[thread].sums = step->finish[thread].sums = sums;
}

void tdi_plan_bind(tdi_plan *plan, const tdi_bindings *bindings)
{
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        for (int thread = 0; step->node && thread < plan->spec.threads; thread++) {
            bind_call(plan, bindings, step, &step->calls[thread], thread);
            if (step->finish)
                bind_sums(plan, bindings, step, thread);
            if (step->constant && step->calls[thread].run)
                step->calls[thread].run(&step->calls[thread]);
        }
    }
}

void tdi_plan_set_input(tdi_plan *plan, int thread, int slot, const void *data)
{
    for (int i = 0; i < plan->threads[thread].inputs.count; i++) {
        const tdi_input_use *use = &plan->threads[thread].inputs.at[i];
        if (use->slot == slot)
            use->operand->data = (void *)(uintptr_t)data;
    }
}
