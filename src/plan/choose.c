/* choose.c - the kernel of each step: the first candidate that does not decline, the reference last. */
#include <string.h>

#include "plan/inside.h"

static tdi_split split_of(const void *context, const tdi_node *node)
{
    const tdi_plan *plan = context;
    return tdi_placed_of(plan, tdi_root(node))->split;
}

/* Updates are shared by all lanes of all replicas, or follow their gradient when there is but one part. Statistics, and
 * other once nodes that cannot be shared, are the first replica's. */
static tdi_split choose_split(const tdi_plan *plan, const tdi_node *node, unsigned splits)
{
    const tdi_plan_spec *spec = &plan->spec;
    if (node->once && spec->graph->parts > 1)
        return node->op->reads && (splits & TDI_CAN_FLAT) ? TDI_FLAT : TDI_WHOLE;
    return tdi_place(node, &tdi_placed_of(plan, node)->shape, splits, spec->lanes, split_of, plan);
}

static void set_range(const tdi_plan *plan, tdi_call *call, const tdi_node *node, tdi_split split, int lane)
{
    const tdi_plan_spec *spec = &plan->spec;
    bool all_replicas = node->once && spec->graph->parts > 1;
    int sharers = all_replicas ? spec->lanes * spec->replicas : spec->lanes;
    int index = all_replicas ? spec->replica * spec->lanes + lane : lane;
    call->split = (int)split;
    call->lane = lane;
    call->lanes = spec->lanes;
    tdi_range(split, tdi_split_extent(split, &call->out.shape), index, sharers, &call->begin, &call->end);
}

static td_status describe_call(const tdi_plan *plan, const tdi_node *node, tdi_call *call, tdi_error *error)
{
    tdi_value *in = TDI_NEW_ARRAY(plan->arena, tdi_value, node->n_in);
    if (!in)
        return tdi_no_memory(error);
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i])
            in[i] = (tdi_value){NULL, tdi_placed_of(plan, node->in[i])->shape, node->in[i]->dtype};
    *call = (tdi_call){.in = in,
                       .n_in = node->n_in,
                       .out = {NULL, tdi_placed_of(plan, node)->shape, node->dtype},
                       .attrs = node->attrs,
                       .node_id = node->id,
                       .offset = node->variable ? node->variable->offset : 0};
    return TD_OK;
}

static void release_states(const tdi_kernel *kernel, tdi_call *calls, int lanes)
{
    for (int lane = 0; lane < lanes; lane++)
        if (kernel->release && calls[lane].state) {
            kernel->release(calls[lane].state);
            calls[lane].state = NULL;
        }
}

static td_status prepare_lane(tdi_plan *plan, const tdi_kernel *kernel, const tdi_node *node, tdi_call *call,
                              tdi_split split, int lane, tdi_error *error)
{
    TDI_TRY(describe_call(plan, node, call, error));
    set_range(plan, call, node, split, lane);
    if (call->begin >= call->end)
        return TD_OK;
    size_t scratch = 0;
    if (kernel && kernel->prepare)
        TDI_TRY(kernel->prepare(call, &call->state, &scratch, error));
    if (scratch > plan->scratch_bytes)
        plan->scratch_bytes = scratch;
    call->run = kernel ? kernel->run : node->op->reference;
    return TD_OK;
}

static td_status try_kernel(tdi_plan *plan, const tdi_kernel *kernel, tdi_planned *step, tdi_error *error)
{
    const tdi_node *node = step->node;
    unsigned splits = kernel ? kernel->splits : node->once ? TDI_CAN_FLAT : 0;
    tdi_split split = choose_split(plan, node, splits);
    for (int lane = 0; lane < plan->spec.lanes; lane++) {
        td_status status = prepare_lane(plan, kernel, node, &step->calls[lane], split, lane, error);
        if (status != TD_OK) {
            if (kernel)
                release_states(kernel, step->calls, lane);
            return status;
        }
    }
    step->kernel = kernel;
    tdi_placed_of(plan, node)->split = split;
    return TD_OK;
}

static void note(const tdi_plan *plan, tdi_planned *step, const char *kernel, const char *why)
{
    if (plan->spec.explain)
        tdi_text_format(&step->notes, "%s%s: %s", step->notes.length ? "; " : "", kernel, why);
}

/* A part without rows only contributes zeros. */
static void run_zeros(const tdi_call *call)
{
    memset(call->out.data, 0, (size_t)tdi_shape_elements(&call->out.shape) * td_dtype_size(call->out.dtype));
}

static td_status choose_zeros(tdi_plan *plan, tdi_planned *step, tdi_error *error)
{
    const tdi_node *node = step->node;
    bool contributes = node->home == TDI_HOME_GRADIENT || tdi_placed_of(plan, node)->exchange >= 0;
    for (int lane = 0; lane < plan->spec.lanes; lane++) {
        TDI_TRY(describe_call(plan, node, &step->calls[lane], error));
        if (lane == 0 && contributes && node->op != &tdi_op_all_gather)
            step->calls[lane].run = run_zeros;
    }
    return TD_OK;
}

td_status tdi_choose_kernel(tdi_plan *plan, int index, tdi_error *error)
{
    tdi_planned *step = &plan->planned[index];
    step->calls = TDI_NEW_ARRAY(plan->arena, tdi_call, plan->spec.lanes);
    if (!step->calls)
        return tdi_no_memory(error);
    if (plan->spec.rows == 0 && !step->node->once)
        return choose_zeros(plan, step, error);
    tdi_call query;
    TDI_TRY(describe_call(plan, step->node, &query, error));
    for (const tdi_kernel *const *k = plan->spec.device->kernels; *k; k++) {
        if ((*k)->op != step->node->op)
            continue;
        const char *why = (*k)->declines ? (*k)->declines(&query) : NULL;
        if (why) {
            note(plan, step, (*k)->name, why);
            continue;
        }
        tdi_error declined = {0};
        td_status status = try_kernel(plan, *k, step, &declined);
        if (status != TD_UNSUPPORTED)
            return status == TD_OK ? status : tdi_fail(error, status, "%s", declined.message);
        note(plan, step, (*k)->name, declined.message);
    }
    return try_kernel(plan, NULL, step, error);
}
