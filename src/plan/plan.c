/* plan.c - making a plan, binding it to memory, listing what each lane does. */
#include "plan/plan_struct.h"

/* Leaves are there already, views are their input's bytes, a gather's input was written where it belongs, and a room is
 * filled by another. */
static bool computed(const tdi_node *node)
{
    return !tdi_is_leaf(node) && !node->op->view && node->op != &tdi_op_all_gather && node->op != &tdi_op_room;
}

static td_status resolve_shapes(tdi_plan *plan, tdi_error *error)
{
    const tdi_graph *graph = plan->spec.graph;
    plan->placed = TDI_NEW_ARRAY(plan->arena, tdi_placed, graph->nodes.count);
    plan->n_steps = plan->spec.schedule->count;
    plan->planned = TDI_NEW_ARRAY(plan->arena, tdi_planned, plan->n_steps);
    plan->lanes = TDI_NEW_ARRAY(plan->arena, tdi_lane_items, plan->spec.lanes);
    if (!plan->placed || !plan->planned || !plan->lanes)
        return tdi_no_memory(error);
    for (int i = 0; i < graph->nodes.count; i++)
        plan->placed[i] = (tdi_placed){.shape = tdi_shape_at(&graph->nodes.at[i]->shape, plan->spec.rows),
                                       .by = {.lanes = 1},
                                       .storage = -1,
                                       .exchange = -1,
                                       .constant = -1,
                                       .position = -1};
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_node *node = plan->spec.schedule->at[s].node;
        if (!node)
            continue;
        tdi_placed_of(plan, node)->position = s;
        if (computed(node))
            plan->planned[s] =
                (tdi_planned){.node = node, .constant = node->op == &tdi_op_fill && node->home == TDI_HOME_ACTIVATIONS};
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

/* Do lanes wait for each other inside this step? */
static bool in_lockstep(const tdi_plan *plan, const tdi_planned *step)
{
    return step->kernel && step->kernel->together && tdi_placed_of(plan, step->node)->by.split == TDI_COLUMNS;
}

/* Each step's own: lanes count alike only where the same lanes share. */
static td_status make_locksteps(tdi_plan *plan, tdi_error *error)
{
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        if (in_lockstep(plan, step))
            TDI_TRY(tdi_lockstep_create(&step->lockstep, tdi_placed_of(plan, step->node)->by.lanes, plan->spec.spin,
                                        error));
    }
    return TD_OK;
}

/* ---- lists ---- */

/* Once work belongs to the replica's first part; what cannot be shared, to the first replica. */
static bool has_work(const tdi_plan *plan, const tdi_planned *step, int lane)
{
    const tdi_call *call = &step->calls[lane];
    if (!call->run || step->constant)
        return false;
    bool shared_memory_once = step->node->once && plan->spec.graph->parts > 1 && call->split == TDI_WHOLE;
    return !shared_memory_once || plan->spec.replica == 0;
}

static bool list_inputs(const tdi_node *node, const tdi_call *call, tdi_lane_items *list)
{
    tdi_value *in = (tdi_value *)(uintptr_t)call->in;
    for (int i = 0; i < node->n_in; i++) {
        const tdi_node *root = node->in[i] ? tdi_root(node->in[i]) : NULL;
        if (root && root->op == &tdi_op_input && !tdi_push(&list->inputs, ((tdi_input_use){&in[i], root->slot})))
            return false;
    }
    return true;
}

/* The list's last call goes on with the chain before it. */
static void lengthen_chain(tdi_lane_items *list)
{
    tdi_item *last = &list->items.at[list->items.count - 1], *head = last - 1;
    while (!head->length)
        head--;
    last->length = 0;
    head->kind = TDI_ITEM_CHAIN;
    head->length++;
}

static bool list_call(const tdi_plan *plan, const tdi_planned *step, tdi_lane_items *list, int lane)
{
    const tdi_call *call = &step->calls[lane];
    tdi_item item = {TDI_ITEM_CALL, step->node->once, call, NULL, 1, step->passes, step->taken};
    bool lockstep = in_lockstep(plan, step);
    if (step->maker && call->run)
        return list_inputs(step->node, call, list);
    if (!has_work(plan, step, lane))
        return !lockstep || tdi_push(&list->items, ((tdi_item){.kind = TDI_ITEM_APART}));
    if (lockstep)
        item.together = step->kernel->together;
    if (!list_inputs(step->node, call, list) || !tdi_push(&list->items, item))
        return false;
    if (step->chained)
        lengthen_chain(list);
    return true;
}

static bool list_step(tdi_plan *plan, int s, tdi_lane_items *list, int lane)
{
    const tdi_scheduled *scheduled = &plan->spec.schedule->at[s];
    const tdi_planned *step = &plan->planned[s];
    if (scheduled->kind != TDI_STEP_KERNEL)
        return tdi_push(&list->segments, ((tdi_segment){list->items.count, scheduled->kind, scheduled->collective}));
    if (!step->node)
        return true;
    if (step->barrier && !tdi_push(&list->items, ((tdi_item){.kind = TDI_ITEM_BARRIER})))
        return false;
    if (!list_call(plan, step, list, lane))
        return false;
    if (!step->finish)
        return true;
    const tdi_call *finish = &step->finish[lane];
    return list_inputs(step->node, finish, list) && tdi_push(&list->items, ((tdi_item){.kind = TDI_ITEM_BARRIER})) &&
           (!finish->run ||
            tdi_push(&list->items,
                     ((tdi_item){.kind = TDI_ITEM_CALL, .once = step->node->once, .call = finish, .length = 1})));
}

static td_status list_items(tdi_plan *plan, tdi_error *error)
{
    for (int lane = 0; lane < plan->spec.lanes; lane++) {
        tdi_lane_items *list = &plan->lanes[lane];
        bool ok = tdi_push(&list->segments, ((tdi_segment){0, TDI_STEP_KERNEL, 0}));
        for (int s = 0; ok && s < plan->n_steps; s++)
            ok = list_step(plan, s, list, lane);
        ok = ok && tdi_push(&list->segments, ((tdi_segment){list->items.count, TDI_STEP_KERNEL, 0}));
        if (!ok)
            return tdi_no_memory(error);
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
    tdi_find_followers(plan);
    TDI_TRY(tdi_find_ahead(plan, error));
    TDI_TRY(tdi_lay_out(plan, error));
    TDI_TRY(tdi_insert_barriers(plan, error));
    TDI_TRY(tdi_find_chains(plan, error));
    return list_items(plan, error);
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
    tdi_text_free(&step->notes);
}

void tdi_plan_free(tdi_plan *plan)
{
    if (!plan)
        return;
    for (int s = 0; plan->planned && s < plan->n_steps; s++)
        free_step(plan, &plan->planned[s]);
    for (int lane = 0; plan->lanes && lane < plan->spec.lanes; lane++) {
        tdi_vec_free(&plan->lanes[lane].items);
        tdi_vec_free(&plan->lanes[lane].segments);
        tdi_vec_free(&plan->lanes[lane].inputs);
        free(plan->lanes[lane].labels);
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
        /* A gradient that is there before the step begins, a leaf, has been reduced. */
        return (node->once || tdi_is_leaf(node) ? b->reduced : b->gradients) + node->variable->offset;
    case TDI_HOME_METRIC:
        return b->metrics + 2 * node->slot;
    default:
        return NULL;
    }
}

static void bind_call(const tdi_plan *plan, const tdi_bindings *b, tdi_planned *step, tdi_call *call, int lane)
{
    const tdi_node *node = step->node;
    tdi_value *in = (tdi_value *)(uintptr_t)call->in;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i])
            in[i].data = address(plan, b, node->in[i]);
    call->out.data = address(plan, b, node);
    for (int i = 0; i < call->n_soon; i++)
        call->soon[i].at = b->values + call->soon[i].offset;
    call->scratch = b->scratch[lane];
    call->control = &b->control[lane];
    call->failed = b->failed;
    call->part = &b->part[lane];
    call->lockstep = &step->lockstep;
}

static void bind_sums(const tdi_plan *plan, const tdi_bindings *b, tdi_planned *step, int lane)
{
    bind_call(plan, b, step, &step->finish[lane], lane);
    float *sums = (float *)(void *)(b->activations + plan->storages[step->sums].offset);
    step->calls[lane].sums = step->finish[lane].sums = sums;
}

void tdi_plan_bind(tdi_plan *plan, const tdi_bindings *bindings)
{
    for (int lane = 0; lane < plan->spec.lanes; lane++)
        plan->lanes[lane].passed = bindings->scratch[lane] + plan->passed_at;
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        for (int lane = 0; step->node && lane < plan->spec.lanes; lane++) {
            bind_call(plan, bindings, step, &step->calls[lane], lane);
            if (step->finish)
                bind_sums(plan, bindings, step, lane);
            if (step->constant && step->calls[lane].run)
                step->calls[lane].run(&step->calls[lane]);
        }
    }
}

void tdi_plan_set_input(tdi_plan *plan, int lane, int slot, const void *data)
{
    for (int i = 0; i < plan->lanes[lane].inputs.count; i++) {
        const tdi_input_use *use = &plan->lanes[lane].inputs.at[i];
        if (use->slot == slot)
            use->operand->data = (void *)(uintptr_t)data;
    }
}
