/* choose.c - which kernel computes a step.
 *
 * A device's kernels are asked in order. Each that declines leaves a remark for explain. The first that is sure ends
 * the list of candidates.
 *
 * One candidate is taken as it is. Between several the tuning cache answers, or a kernel trial (kernel_trial.c); where
 * nothing may be timed, the first that is not unlikely is taken. Without candidates the op's reference serves.
 *
 * Layouts are chosen before kernels: a value is batch-interleaved when the kernels around it can have it so. */
#include "plan/choose.h"

#include <string.h>

#include "base/text.h"
#include "plan/threads/batch_interleaved.h"

static void commit(tdi_plan *plan, tdi_planned *step, const tdi_prepared *prepared)
{
    step->kernel = prepared->kernel;
    step->calls = prepared->calls;
    step->finish = prepared->finish;
    tdi_placed_of(plan, step->node)->by = prepared->by;
    for (int i = 0; i < step->node->n_in; i++)
        if (tdi_fills(step->node, i) && prepared->by.split != TDI_WHOLE)
            tdi_placed_of(plan, step->node->in[i])->by =
                (tdi_placement){step->node->op->reads(step->node, i, prepared->by.split), prepared->by.threads, 0};
    if (prepared->scratch_bytes > plan->scratch_bytes)
        plan->scratch_bytes = prepared->scratch_bytes;
    plan->packed_bytes += prepared->packed_bytes;
}

static void remark(const tdi_plan *plan, tdi_planned *step, const char *kernel, const char *why)
{
    if (plan->spec.explain)
        tdi_text_format(&step->remarks, "%s%s: %s", step->remarks.length ? "; " : "", kernel, why);
}

/* A shard without rows contributes zeros to gradients and exchanges. */
static void run_zeros(const tdi_call *call)
{
    memset(call->out.data, 0, (size_t)tdi_shape_elements(&call->out.shape) * td_dtype_size(call->out.dtype));
}

static td_status choose_zeros(tdi_plan *plan, tdi_planned *step, tdi_error *error)
{
    const tdi_node *node = step->node;
    step->calls = TDI_NEW_ARRAY(plan->arena, tdi_call, plan->spec.threads);
    if (!step->calls)
        return tdi_no_memory(error);
    bool contributes = node->home == TDI_HOME_GRADIENT || tdi_placed_of(plan, node)->exchange >= 0;
    for (int thread = 0; thread < plan->spec.threads; thread++) {
        TDI_TRY(tdi_describe_call(plan, node, plan->arena, &step->calls[thread], error));
        if (thread == 0 && contributes && !node->op->gathers)
            step->calls[thread].run = run_zeros;
    }
    return TD_OK;
}

/* ---- candidates ---- */

/* The kernels that take a call, in the device's order, up to the first that is sure. */
typedef struct candidates {
    const tdi_kernel *kernels[TDI_MAX_CANDIDATES];
    int count, rule; /* rule: the candidate to take when nothing may be timed; -1: none yet */
    int threads;     /* threads that would share the first candidate's step */
    bool packed;     /* some have packed-weight caches */
    bool bfloat16;   /* some round operands that others do not */
} candidates;

static void add_candidate(candidates *all, const tdi_kernel *kernel, tdi_confidence confidence)
{
    if (confidence != TDI_UNLIKELY && all->rule < 0)
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

/* *sure: the first candidate is sure, and *prepared. Otherwise nothing is left prepared. */
static td_status find_candidates(tdi_plan *plan, tdi_planned *step, candidates *all, tdi_prepared *prepared, bool *sure,
                                 tdi_error *error)
{
    tdi_call query;
    TDI_TRY(tdi_describe_call(plan, step->node, plan->arena, &query, error));
    bool interleaved = tdi_is_batch_interleaved(&query);
    all->bfloat16 = has_bfloat16(&query);
    for (const tdi_kernel *const *k = plan->spec.device->kernels; *k && all->count < TDI_MAX_CANDIDATES; k++) {
        if ((*k)->op != step->node->op)
            continue;
        const char *why = interleaved && !(*k)->interleaving ? "batch-interleaved samples" : refuses_types(*k, &query);
        if (!why && (*k)->declines)
            why = (*k)->declines(&query);
        if (why) {
            remark(plan, step, (*k)->name, why);
            continue;
        }
        tdi_error declined = {0};
        td_status status = tdi_prepare_kernel(plan, *k, step->node, plan->arena, prepared, &declined);
        if (status != TD_OK && status != TD_UNSUPPORTED)
            return tdi_fail(error, status, "%s", declined.message);
        if (status == TD_UNSUPPORTED) {
            remark(plan, step, (*k)->name, declined.message);
            continue;
        }
        tdi_confidence confidence = (*k)->confidence ? (*k)->confidence(&query) : TDI_SURE;
        *sure = confidence == TDI_SURE && all->count == 0;
        if (*sure)
            return TD_OK;
        if (all->count == 0)
            all->threads = prepared->by.threads;
        all->packed = all->packed || prepared->packed_bytes;
        tdi_calls_release(plan, *k, prepared->calls);
        add_candidate(all, *k, confidence);
        if (confidence == TDI_SURE)
            break;
    }
    return TD_OK;
}

/* The tuning cache's key of the question: calls of equal words take equal times. */
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
    if (all->threads > 1 && all->threads < tdi_sharing_of(plan))
        tdi_text_format(key, ", %d of them", all->threads);
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
            remark(plan, step, "timing", "not enough memory");
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

static tdi_batch_interleaving interleaving_of(void *context, const tdi_node *node)
{
    layout_query *q = context;
    tdi_batch_interleaving best = TDI_NO_INTERLEAVING;
    tdi_call call;
    if (q->error.status != TD_OK || tdi_describe_call(q->plan, node, q->plan->arena, &call, &q->error) != TD_OK)
        return best;
    for (const tdi_kernel *const *k = q->plan->spec.device->kernels; *k; k++) {
        if ((*k)->op != node->op || !(*k)->interleaving || has_bfloat16(&call) || refuses_types(*k, &call) ||
            ((*k)->declines && (*k)->declines(&call)))
            continue;
        tdi_batch_interleaving now = (*k)->interleaving(&call);
        best = now > best ? now : best;
    }
    return best;
}

td_status tdi_choose_layout(tdi_plan *plan, tdi_error *error)
{
    const tdi_plan_spec *spec = &plan->spec;
    if (!spec->device->batch_interleaved || !tdi_is_one_threads(plan) || spec->rows == 0)
        return TD_OK;
    layout_query query = {.plan = plan};
    bool *interleaved = TDI_NEW_ARRAY(plan->arena, bool, spec->graph->nodes.count);
    if (!interleaved)
        return tdi_no_memory(error);
    TDI_TRY(tdi_layout_choose(spec->graph, spec->schedule, interleaving_of, &query, interleaved, error));
    if (query.error.status != TD_OK)
        return tdi_no_memory(error);
    for (int i = 0; i < spec->graph->nodes.count; i++)
        plan->placed[i].batch_interleaved = interleaved[i] ? spec->device->batch_interleaved : 0;
    return TD_OK;
}

td_status tdi_choose_kernel(tdi_plan *plan, int index, tdi_error *error)
{
    tdi_planned *step = &plan->planned[index];
    if (plan->spec.rows == 0 && !step->node->update_phase)
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
    commit(plan, step, &prepared);
    return TD_OK;
}
