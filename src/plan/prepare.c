/* prepare.c - one kernel made ready for every thread of a step: its share, its call, its state.
 *
 * The placement (threads/place.c) says which threads share the node, and by which axis. Each gets a call with its range
 * of that axis and prepares the kernel for it. A product by depth has two calls a thread: the second finishes a range
 * of the result from all threads' sums. */
#include "graph/def_use.h"
#include "ops/widen.h"
#include "plan/choose.h"

static tdi_placement placement_of(const void *context, const tdi_node *node)
{
    const tdi_plan *plan = context;
    return tdi_placed_of(plan, tdi_root(node))->by;
}

/* With several shards, all threads of all replicas share an update; statistics, and what else of the update phase
 * cannot be shared, are the first replica's. With one shard an update is placed like any other node, by its gradient.
 */
static tdi_placement choose_placement(const tdi_plan *plan, const tdi_node *node, const tdi_call *call, unsigned splits)
{
    const tdi_plan_spec *spec = &plan->spec;
    if (node->update_phase && spec->graph->shards > 1) {
        bool flat = node->op->reads && (splits & TDI_CAN_FLAT);
        bool rows = node->op->update_rows;
        tdi_split split = rows ? TDI_ROWS : flat ? TDI_FLAT : TDI_WHOLE;
        return (tdi_placement){split, split == TDI_WHOLE ? 1 : spec->threads, 0};
    }
    return tdi_place(node, &(tdi_placing){call, splits, tdi_sharing_of(plan), placement_of, plan});
}

/* Where norms are taken, a thread's range of a gradient is that of the blocks whose norms it takes. */
static void cut_between_blocks(int64_t extent, int index, int sharers, tdi_call *call)
{
    tdi_range(TDI_ROWS, tdi_norm_blocks(extent), index, sharers, &call->begin, &call->end);
    call->begin *= TDI_NORM_BLOCK;
    call->end = call->end * TDI_NORM_BLOCK < extent ? call->end * TDI_NORM_BLOCK : extent;
}

static void set_range(const tdi_plan *plan, tdi_call *call, const tdi_node *node, tdi_split split, int threads,
                      int thread)
{
    const tdi_plan_spec *spec = &plan->spec;
    bool all_replicas = node->update_phase && spec->graph->shards > 1;
    int sharers = all_replicas ? spec->threads * spec->replicas : threads;
    int index = all_replicas ? spec->replica * spec->threads + thread : thread;
    call->split = (int)split;
    call->thread = thread;
    call->threads = all_replicas ? spec->threads : threads;
    call->begin = call->end = 0;
    if (index >= sharers)
        return;
    int64_t extent = split == TDI_DEPTH ? tdi_split_extent(TDI_COLUMNS, &call->in[0].shape)
                                        : tdi_split_extent(split, &call->out.shape);
    if (all_replicas && spec->graph->norms && split == TDI_FLAT)
        cut_between_blocks(extent, index, sharers, call);
    else
        tdi_range(split, extent, index, sharers, &call->begin, &call->end);
}

tdi_value tdi_value_of(const tdi_plan *plan, const tdi_node *node)
{
    const tdi_placed *placed = tdi_placed_of(plan, node);
    return (tdi_value){.shape = placed->shape, .dtype = node->dtype, .batch_interleaved = placed->batch_interleaved};
}

/* Is it a weight that nothing in the graph changes? */
static bool is_constant_input(const tdi_node *node)
{
    return node->op == &tdi_op_parameter && tdi_nodes_of_variable(node->graph->def_use, node->variable).count == 1;
}

static unsigned constant_inputs_of(const tdi_node *node)
{
    unsigned constant = 0;
    for (int i = 0; i < node->n_in && i < 32; i++)
        if (node->in[i] && is_constant_input(node->in[i]))
            constant |= 1u << i;
    return constant;
}

td_status tdi_describe_call(const tdi_plan *plan, const tdi_node *node, tdi_arena *arena, tdi_call *call,
                            tdi_error *error)
{
    tdi_value *in = TDI_NEW_ARRAY(arena, tdi_value, node->n_in);
    if (!in)
        return tdi_no_memory(error);
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i])
            in[i] = tdi_value_of(plan, node->in[i]);
    *call = (tdi_call){.in = in,
                       .n_in = node->n_in,
                       .out = tdi_value_of(plan, node),
                       .attrs = node->attrs,
                       .offset = node->variable ? node->variable->offset : 0};
    return TD_OK;
}

void tdi_calls_release(const tdi_plan *plan, const tdi_kernel *kernel, tdi_call *calls)
{
    for (int thread = 0; kernel && thread < plan->spec.threads; thread++) {
        if (calls[thread].state && kernel->release)
            kernel->release(calls[thread].state);
        plan->spec.device->release(plan->spec.device, calls[thread].packed_cache);
        calls[thread].state = calls[thread].packed_cache = NULL;
    }
}

/* Allocates the call's packed-weight cache if it wants one; false: it may not have it. There must be room for the
 * threads behind this one too, `threads` in all: those without a cache would keep the others waiting. */
static bool allocate_cache(const tdi_plan *plan, tdi_prepared *prepared, tdi_call *call, int threads)
{
    size_t bytes = call->constant_inputs ? prepared->kernel->packed_cache_bytes(call) : 0;
    size_t held = plan->packed_bytes + prepared->packed_bytes;
    if (!bytes)
        return true;
    if (held + bytes * (size_t)threads > plan->spec.most_packed)
        return false;
    call->packed_cache = plan->spec.device->allocate(plan->spec.device, TDI_PACKED_CACHE_HEAD + bytes);
    prepared->packed_bytes += call->packed_cache ? bytes : 0;
    return call->packed_cache;
}

/* A call that gets no packed-weight cache is prepared once more, without constant inputs: it packs at each run. */
static td_status prepare_kernel(const tdi_plan *plan, tdi_prepared *prepared, int thread, size_t *scratch,
                                tdi_error *error)
{
    const tdi_kernel *kernel = prepared->kernel;
    tdi_call *call = &prepared->calls[thread];
    call->run = kernel->run;
    if (!kernel->prepare)
        return TD_OK;
    TDI_TRY(kernel->prepare(call, &call->state, scratch, error));
    if (allocate_cache(plan, prepared, call, prepared->by.threads - thread))
        return TD_OK;
    if (kernel->release && call->state)
        kernel->release(call->state);
    call->state = NULL;
    call->constant_inputs = 0;
    return kernel->prepare(call, &call->state, scratch, error);
}

static void run_widened(const tdi_call *call)
{
    tdi_widened_run(call->state, call, call->scratch);
}

/* The op's reference, which one thread runs. */
static void prepare_reference(const tdi_op *op, tdi_call *call, size_t *scratch)
{
    bool widen = tdi_needs_widening(op, call);
    call->run = widen ? run_widened : op->reference;
    call->state = widen ? (void *)(uintptr_t)op : NULL;
    *scratch = widen ? tdi_widened_bytes(call) : 0;
}

static void join_halves(tdi_call *first, tdi_call *second)
{
    first->other_half = (tdi_share){second->split, second->begin, second->end};
    second->other_half = (tdi_share){first->split, first->begin, first->end};
}

static td_status prepare_thread(const tdi_plan *plan, const tdi_node *node, tdi_arena *arena, tdi_prepared *prepared,
                                int thread, tdi_error *error)
{
    tdi_call *call = &prepared->calls[thread];
    TDI_TRY(tdi_describe_call(plan, node, arena, call, error));
    const tdi_placement *by = &prepared->by;
    set_range(plan, call, node, by->depth ? TDI_DEPTH : by->split, by->depth ? by->depth : by->threads, thread);
    if (prepared->finish)
        join_halves(call, &prepared->finish[thread]);
    if (call->begin >= call->end)
        return TD_OK;
    if (prepared->kernel && prepared->kernel->packed_cache_bytes)
        call->constant_inputs = constant_inputs_of(node);
    size_t scratch = 0;
    if (prepared->kernel)
        TDI_TRY(prepare_kernel(plan, prepared, thread, &scratch, error));
    else if (tdi_is_batch_interleaved(call))
        return tdi_fail(error, TD_INTERNAL, "%s: no kernel takes batch-interleaved samples", node->op->name);
    else
        prepare_reference(node->op, call, &scratch);
    if (scratch > prepared->scratch_bytes)
        prepared->scratch_bytes = scratch;
    return TD_OK;
}

/* The second half of a product by depth, which is shared by rows or columns. */
static td_status prepare_finish(const tdi_plan *plan, const tdi_node *node, tdi_arena *arena, tdi_prepared *prepared,
                                tdi_error *error)
{
    int threads = plan->spec.threads;
    prepared->finish = TDI_NEW_ARRAY(arena, tdi_call, threads);
    if (!prepared->finish)
        return tdi_no_memory(error);
    for (int thread = 0; thread < threads; thread++) {
        tdi_call *call = &prepared->finish[thread];
        TDI_TRY(tdi_describe_call(plan, node, arena, call, error));
        set_range(plan, call, node, prepared->by.split, prepared->by.threads, thread);
        call->threads = prepared->by.depth;
        if (call->begin < call->end)
            call->run = prepared->kernel->finish;
    }
    return TD_OK;
}

static td_status prepare_shared(const tdi_plan *plan, const tdi_kernel *kernel, const tdi_node *node, tdi_arena *arena,
                                unsigned splits, tdi_prepared *prepared, tdi_error *error)
{
    tdi_call query;
    TDI_TRY(tdi_describe_call(plan, node, arena, &query, error));
    *prepared = (tdi_prepared){.kernel = kernel, .by = choose_placement(plan, node, &query, splits)};
    prepared->calls = TDI_NEW_ARRAY(arena, tdi_call, plan->spec.threads);
    if (!prepared->calls)
        return tdi_no_memory(error);
    if (prepared->by.depth)
        TDI_TRY(prepare_finish(plan, node, arena, prepared, error));
    for (int thread = 0; thread < plan->spec.threads; thread++) {
        td_status status = prepare_thread(plan, node, arena, prepared, thread, error);
        if (status != TD_OK) {
            tdi_calls_release(plan, kernel, prepared->calls);
            return status;
        }
    }
    return TD_OK;
}

td_status tdi_prepare_kernel(const tdi_plan *plan, const tdi_kernel *kernel, const tdi_node *node, tdi_arena *arena,
                             tdi_prepared *prepared, tdi_error *error)
{
    unsigned splits = kernel ? kernel->splits : node->update_phase ? TDI_CAN_FLAT : 0;
    tdi_error refused = {0};
    td_status status = prepare_shared(plan, kernel, node, arena, splits, prepared, &refused);
    if (status == TD_UNSUPPORTED &&
        prepared->by.split == TDI_COLUMNS) /* the kernel may not take every range of columns */
        return prepare_shared(plan, kernel, node, arena, splits & ~(unsigned)TDI_CAN_COLUMNS, prepared, error);
    return status == TD_OK ? TD_OK : tdi_fail(error, status, "%s", refused.message);
}
