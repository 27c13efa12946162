/* choose.c - the kernel of each step: the first candidate that does not decline, the reference last; between candidates
 * in doubt, the one that the clock prefers. */
#include <string.h>

#include "base/text.h"
#include "ops/widen.h"
#include "plan/plan_struct.h"
#include "plan/threads/batch_interleaved.h"

static tdi_placement placement_of(const void *context, const tdi_node *node)
{
    const tdi_plan *plan = context;
    return tdi_placed_of(plan, tdi_root(node))->by;
}

/* Updates are shared by all lanes of all replicas, or follow their gradient when there is but one part. Statistics, and
 * other once nodes that cannot be shared, are the first replica's. */
static tdi_placement choose_placement(const tdi_plan *plan, const tdi_node *node, const tdi_call *call, unsigned splits)
{
    const tdi_plan_spec *spec = &plan->spec;
    if (node->once && spec->graph->parts > 1) {
        bool flat = node->op->reads && (splits & TDI_CAN_FLAT);
        bool rows = node->op == &tdi_op_squared_norm || node->op == &tdi_op_joint_update;
        tdi_split split = rows ? TDI_ROWS : flat ? TDI_FLAT : TDI_WHOLE;
        return (tdi_placement){split, split == TDI_WHOLE ? 1 : spec->lanes, 0};
    }
    return tdi_place(node, &(tdi_placing){call, splits, tdi_sharing_of(plan), placement_of, plan});
}

/* Where norms are taken, a replica's range of a gradient is that of the blocks whose norms it takes. */
static void cut_between_blocks(int64_t extent, int index, int sharers, tdi_call *call)
{
    tdi_range(TDI_ROWS, tdi_norm_blocks(extent), index, sharers, &call->begin, &call->end);
    call->begin *= TDI_NORM_BLOCK;
    call->end = call->end * TDI_NORM_BLOCK < extent ? call->end * TDI_NORM_BLOCK : extent;
}

static void set_range(const tdi_plan *plan, tdi_call *call, const tdi_node *node, tdi_split split, int lanes, int lane)
{
    const tdi_plan_spec *spec = &plan->spec;
    bool all_replicas = node->once && spec->graph->parts > 1;
    int sharers = all_replicas ? spec->lanes * spec->replicas : lanes;
    int index = all_replicas ? spec->replica * spec->lanes + lane : lane;
    call->split = (int)split;
    call->lane = lane;
    call->lanes = all_replicas ? spec->lanes : lanes;
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
    return (tdi_value){.shape = placed->shape, .dtype = node->dtype, .abreast = placed->abreast};
}

/* Does no step change it? */
static bool is_steady(const tdi_node *node)
{
    const tdi_graph *graph = node->graph;
    bool steady = node->op == &tdi_op_parameter;
    for (int i = 0; i < graph->nodes.count && steady; i++)
        steady = graph->nodes.at[i] == node || graph->nodes.at[i]->variable != node->variable;
    return steady;
}

static unsigned steady_inputs(const tdi_node *node)
{
    unsigned steady = 0;
    for (int i = 0; i < node->n_in && i < 32; i++)
        if (node->in[i] && is_steady(node->in[i]))
            steady |= 1u << i;
    return steady;
}

static td_status describe_call(const tdi_plan *plan, const tdi_node *node, tdi_arena *arena, tdi_call *call,
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
    for (int lane = 0; kernel && lane < plan->spec.lanes; lane++) {
        if (calls[lane].state && kernel->release)
            kernel->release(calls[lane].state);
        plan->spec.device->release(plan->spec.device, calls[lane].kept);
        calls[lane].state = calls[lane].kept = NULL;
    }
}

/* For as many lanes as this one and those behind it: some would wait for the others otherwise. */
static bool has_room_to_keep(const tdi_plan *plan, tdi_prepared *prepared, tdi_call *call, int lanes)
{
    size_t bytes = call->steady ? prepared->kernel->keeps(call) : 0;
    size_t held = plan->packed_bytes + prepared->packed_bytes;
    if (!bytes)
        return true;
    if (held + bytes * (size_t)lanes > plan->spec.most_packed)
        return false;
    call->kept = plan->spec.device->allocate(plan->spec.device, TDI_KEPT_HEAD + bytes);
    prepared->packed_bytes += call->kept ? bytes : 0;
    return call->kept;
}

/* Where there is no room to keep anything, it is made at each run. */
static td_status prepare_kernel(const tdi_plan *plan, tdi_prepared *prepared, int lane, size_t *scratch,
                                tdi_error *error)
{
    const tdi_kernel *kernel = prepared->kernel;
    tdi_call *call = &prepared->calls[lane];
    call->run = kernel->run;
    if (!kernel->prepare)
        return TD_OK;
    TDI_TRY(kernel->prepare(call, &call->state, scratch, error));
    if (has_room_to_keep(plan, prepared, call, prepared->by.lanes - lane))
        return TD_OK;
    if (kernel->release && call->state)
        kernel->release(call->state);
    call->state = NULL;
    call->steady = 0;
    return kernel->prepare(call, &call->state, scratch, error);
}

static void run_widened(const tdi_call *call)
{
    tdi_widened_run(call->state, call, call->scratch);
}

/* The reference, which is made by one lane. */
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

static td_status prepare_lane(const tdi_plan *plan, const tdi_node *node, tdi_arena *arena, tdi_prepared *prepared,
                              int lane, tdi_error *error)
{
    tdi_call *call = &prepared->calls[lane];
    TDI_TRY(describe_call(plan, node, arena, call, error));
    const tdi_placement *by = &prepared->by;
    set_range(plan, call, node, by->depth ? TDI_DEPTH : by->split, by->depth ? by->depth : by->lanes, lane);
    if (prepared->finish)
        join_halves(call, &prepared->finish[lane]);
    if (call->begin >= call->end)
        return TD_OK;
    if (prepared->kernel && prepared->kernel->keeps)
        call->steady = steady_inputs(node);
    size_t scratch = 0;
    if (prepared->kernel)
        TDI_TRY(prepare_kernel(plan, prepared, lane, &scratch, error));
    else if (tdi_is_abreast(call))
        return tdi_fail(error, TD_INTERNAL, "%s: no kernel takes samples that stand abreast", node->op->name);
    else
        prepare_reference(node->op, call, &scratch);
    if (scratch > prepared->scratch_bytes)
        prepared->scratch_bytes = scratch;
    return TD_OK;
}

/* The second half, which is shared by rows or columns; each lane reads the sums of all that have divided the depth. */
static td_status prepare_finish(const tdi_plan *plan, const tdi_node *node, tdi_arena *arena, tdi_prepared *prepared,
                                tdi_error *error)
{
    int lanes = plan->spec.lanes;
    prepared->finish = TDI_NEW_ARRAY(arena, tdi_call, lanes);
    if (!prepared->finish)
        return tdi_no_memory(error);
    for (int lane = 0; lane < lanes; lane++) {
        tdi_call *call = &prepared->finish[lane];
        TDI_TRY(describe_call(plan, node, arena, call, error));
        set_range(plan, call, node, prepared->by.split, prepared->by.lanes, lane);
        call->lanes = prepared->by.depth;
        if (call->begin < call->end)
            call->run = prepared->kernel->finish;
    }
    return TD_OK;
}

static td_status prepare_shared(const tdi_plan *plan, const tdi_kernel *kernel, const tdi_node *node, tdi_arena *arena,
                                unsigned splits, tdi_prepared *prepared, tdi_error *error)
{
    tdi_call query;
    TDI_TRY(describe_call(plan, node, arena, &query, error));
    *prepared = (tdi_prepared){.kernel = kernel, .by = choose_placement(plan, node, &query, splits)};
    prepared->calls = TDI_NEW_ARRAY(arena, tdi_call, plan->spec.lanes);
    if (!prepared->calls)
        return tdi_no_memory(error);
    if (prepared->by.depth)
        TDI_TRY(prepare_finish(plan, node, arena, prepared, error));
    for (int lane = 0; lane < plan->spec.lanes; lane++) {
        td_status status = prepare_lane(plan, node, arena, prepared, lane, error);
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
    unsigned splits = kernel ? kernel->splits : node->once ? TDI_CAN_FLAT : 0;
    tdi_error refused = {0};
    td_status status = prepare_shared(plan, kernel, node, arena, splits, prepared, &refused);
    if (status == TD_UNSUPPORTED && prepared->by.split == TDI_COLUMNS) /* not every range of columns will do */
        return prepare_shared(plan, kernel, node, arena, splits & ~(unsigned)TDI_CAN_COLUMNS, prepared, error);
    return status == TD_OK ? TD_OK : tdi_fail(error, status, "%s", refused.message);
}

static void settle(tdi_plan *plan, tdi_planned *step, const tdi_prepared *prepared)
{
    step->kernel = prepared->kernel;
    step->calls = prepared->calls;
    step->finish = prepared->finish;
    tdi_placed_of(plan, step->node)->by = prepared->by;
    for (int i = 0; i < step->node->n_in; i++)
        if (tdi_fills(step->node, i) && prepared->by.split != TDI_WHOLE)
            tdi_placed_of(plan, step->node->in[i])->by =
                (tdi_placement){step->node->op->reads(step->node, i, prepared->by.split), prepared->by.lanes, 0};
    if (prepared->scratch_bytes > plan->scratch_bytes)
        plan->scratch_bytes = prepared->scratch_bytes;
    plan->packed_bytes += prepared->packed_bytes;
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
    step->calls = TDI_NEW_ARRAY(plan->arena, tdi_call, plan->spec.lanes);
    if (!step->calls)
        return tdi_no_memory(error);
    bool contributes = node->home == TDI_HOME_GRADIENT || tdi_placed_of(plan, node)->exchange >= 0;
    for (int lane = 0; lane < plan->spec.lanes; lane++) {
        TDI_TRY(describe_call(plan, node, plan->arena, &step->calls[lane], error));
        if (lane == 0 && contributes && node->op != &tdi_op_all_gather)
            step->calls[lane].run = run_zeros;
    }
    return TD_OK;
}

/* ---- candidates ---- */

/* Those that take the call, in order, up to the first that is sure. */
typedef struct candidates {
    const tdi_kernel *kernels[TDI_MAX_CANDIDATES];
    int count, rule; /* rule: the one to take when nothing may be timed; -1: none yet */
    int lanes;       /* that would share what the first makes */
    bool packed;     /* some keep packed weights */
    bool bfloat16;   /* some round operands that others do not */
} candidates;

static void add_candidate(candidates *all, const tdi_kernel *kernel, tdi_doubt doubt)
{
    if (doubt != TDI_UNLIKELY && all->rule < 0)
        all->rule = all->count;
    all->kernels[all->count++] = kernel;
}

static bool has_bfloat16(const tdi_call *call)
{
    bool narrow = call->out.dtype == TD_BFLOAT16;
    for (int i = 0; i < call->n_in; i++)
        narrow = narrow || call->in[i].dtype == TD_BFLOAT16;
    return narrow;
}

static const char *refuses_types(const tdi_kernel *kernel, const tdi_call *call)
{
    bool narrow = has_bfloat16(call);
    if (kernel->takes == TDI_TAKES_BOTH || narrow == (kernel->takes == TDI_TAKES_BFLOAT16))
        return NULL;
    return narrow ? "bfloat16" : "float32";
}

/* *sure: the first one was, and is `prepared`. */
static td_status find_candidates(tdi_plan *plan, tdi_planned *step, candidates *all, tdi_prepared *prepared, bool *sure,
                                 tdi_error *error)
{
    tdi_call query;
    TDI_TRY(describe_call(plan, step->node, plan->arena, &query, error));
    bool abreast = tdi_is_abreast(&query);
    all->bfloat16 = has_bfloat16(&query);
    for (const tdi_kernel *const *k = plan->spec.device->kernels; *k && all->count < TDI_MAX_CANDIDATES; k++) {
        if ((*k)->op != step->node->op)
            continue;
        const char *why = abreast && !(*k)->abreast ? "samples that stand abreast" : refuses_types(*k, &query);
        if (!why && (*k)->declines)
            why = (*k)->declines(&query);
        if (why) {
            note(plan, step, (*k)->name, why);
            continue;
        }
        tdi_error declined = {0};
        td_status status = tdi_prepare_kernel(plan, *k, step->node, plan->arena, prepared, &declined);
        if (status != TD_OK && status != TD_UNSUPPORTED)
            return tdi_fail(error, status, "%s", declined.message);
        if (status == TD_UNSUPPORTED) {
            note(plan, step, (*k)->name, declined.message);
            continue;
        }
        tdi_doubt doubt = (*k)->doubts ? (*k)->doubts(&query) : TDI_SURE;
        *sure = doubt == TDI_SURE && all->count == 0;
        if (*sure)
            return TD_OK;
        if (all->count == 0)
            all->lanes = prepared->by.lanes;
        all->packed = all->packed || prepared->packed_bytes;
        tdi_calls_release(plan, *k, prepared->calls);
        add_candidate(all, *k, doubt);
        if (doubt == TDI_SURE)
            break;
    }
    return TD_OK;
}

/* What was asked, in words: the same words, the same times. */
static bool describe_question(const tdi_plan *plan, const tdi_node *node, const candidates *all, tdi_text *key)
{
    char text[TDI_SHAPE_TEXT], details[96] = "";
    if (node->op->describe)
        node->op->describe(node, details, sizeof details);
    tdi_text_format(key, "%s %s:", node->op->name, details);
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i])
            tdi_text_format(key, " %s %s", tdi_shape_text(&tdi_placed_of(plan, node->in[i])->shape, text),
                            td_dtype_name(node->in[i]->dtype));
    tdi_text_format(key, " -> %s %s", tdi_shape_text(&tdi_placed_of(plan, node)->shape, text),
                    td_dtype_name(node->dtype));
    tdi_text_format(key, ", %d x %d threads", plan->spec.chooser->workers, tdi_sharing_of(plan));
    if (all->lanes > 1 && all->lanes < tdi_sharing_of(plan))
        tdi_text_format(key, ", %d of them", all->lanes);
    if (all->packed)
        tdi_text_format(key, ", weights packed once");
    return !key->failed;
}

/* The fastest candidate, by the tuning cache or a trial. Without memory for a trial, or an answer, *chosen stays. */
static td_status choose_by_trial(tdi_plan *plan, tdi_planned *step, const candidates *all, int *chosen,
                                 tdi_error *error)
{
    tdi_text key = {0};
    tdi_error failed = {0};
    tdi_tuned question = {.machine = plan->spec.device->identity, .count = all->count, .lasting = all->bfloat16};
    for (int i = 0; i < all->count; i++)
        question.candidates[i].name = all->kernels[i]->name;
    td_status status = describe_question(plan, step->node, all, &key) ? TD_OK : tdi_no_memory(error);
    if (status == TD_OK) {
        question.key = key.chars;
        status = tdi_kernel_trial(plan, step->node, all->kernels, &question, &step->tuned, &failed);
        if (status == TD_NO_MEMORY) {
            note(plan, step, "timing", "not enough memory");
            status = TD_OK;
        } else if (status != TD_OK) {
            tdi_fail(error, status, "%s", failed.message);
        }
        if (step->tuned)
            *chosen = step->tuned->chosen;
    }
    tdi_text_free(&key);
    return status;
}

/* ---- layout ---- */

typedef struct layout_query {
    const tdi_plan *plan;
    tdi_error error;
} layout_query;

static tdi_abreast takes_abreast(void *context, const tdi_node *node)
{
    layout_query *q = context;
    tdi_abreast best = TDI_NOT_ABREAST;
    tdi_call call;
    if (q->error.status != TD_OK || describe_call(q->plan, node, q->plan->arena, &call, &q->error) != TD_OK)
        return best;
    for (const tdi_kernel *const *k = q->plan->spec.device->kernels; *k; k++) {
        if ((*k)->op != node->op || !(*k)->abreast || has_bfloat16(&call) || refuses_types(*k, &call) ||
            ((*k)->declines && (*k)->declines(&call)))
            continue;
        tdi_abreast now = (*k)->abreast(&call);
        best = now > best ? now : best;
    }
    return best;
}

td_status tdi_choose_layout(tdi_plan *plan, tdi_error *error)
{
    const tdi_plan_spec *spec = &plan->spec;
    if (!spec->device->abreast || !tdi_is_one_lanes(plan) || spec->rows == 0)
        return TD_OK;
    layout_query query = {.plan = plan};
    bool *abreast = TDI_NEW_ARRAY(plan->arena, bool, spec->graph->nodes.count);
    if (!abreast)
        return tdi_no_memory(error);
    TDI_TRY(tdi_layout_choose(spec->graph, spec->schedule, takes_abreast, &query, abreast, error));
    if (query.error.status != TD_OK)
        return tdi_no_memory(error);
    for (int i = 0; i < spec->graph->nodes.count; i++)
        plan->placed[i].abreast = abreast[i] ? spec->device->abreast : 0;
    return TD_OK;
}

td_status tdi_choose_kernel(tdi_plan *plan, int index, tdi_error *error)
{
    tdi_planned *step = &plan->planned[index];
    if (plan->spec.rows == 0 && !step->node->once)
        return choose_zeros(plan, step, error);
    candidates all = {.rule = -1};
    tdi_prepared prepared;
    bool sure = false;
    TDI_TRY(find_candidates(plan, step, &all, &prepared, &sure, error));
    if (!sure) {
        int chosen = all.rule < 0 ? all.count - 1 : all.rule;
        if (all.count > 1 && plan->spec.chooser)
            TDI_TRY(choose_by_trial(plan, step, &all, &chosen, error));
        TDI_TRY(tdi_prepare_kernel(plan, all.count ? all.kernels[chosen] : NULL, step->node, plan->arena, &prepared,
                                   error));
    }
    settle(plan, step, &prepared);
    return TD_OK;
}
