/* describe.c - a plan in numbers: per op its layer, kernel, share, cost, and which kernels declined. */
#include "plan/plan_struct.h"

static double planned_flops(const tdi_planned *step)
{
    const tdi_call *call = &step->calls[0];
    double flops = step->node->op->flops ? step->node->op->flops(call) : (double)tdi_shape_elements(&call->out.shape);
    return flops / tdi_dealt_among(step->node);
}

/* An update reads the slots that it writes. `kept`: of weights and slots alone. */
static double bytes_read(const tdi_plan *plan, const tdi_planned *step, bool kept)
{
    const tdi_node *node = step->node;
    double bytes = 0;
    for (int i = 0; i < node->n_in; i++) {
        if (!node->in[i])
            continue;
        tdi_home home = tdi_root(node->in[i])->home;
        if (!kept || home == TDI_HOME_VARIABLE || home == TDI_HOME_SLOT)
            bytes += (double)tdi_node_bytes(plan, node->in[i]) * (home == TDI_HOME_SLOT ? 2 : 1) *
                     (i == 0 ? tdi_share_touched(node, &step->calls[0]) : 1);
    }
    bytes /= tdi_dealt_among(node);
    double made = (double)tdi_node_bytes(plan, node);
    return node->op->moves && bytes > made ? made : bytes;
}

static double bytes_made(const tdi_plan *plan, const tdi_planned *step)
{
    return (double)tdi_node_bytes(plan, step->node) * tdi_share_touched(step->node, &step->calls[0]);
}

static double planned_bytes(const tdi_plan *plan, const tdi_planned *step)
{
    return bytes_read(plan, step, false) + bytes_made(plan, step);
}

static double kept_bytes(const tdi_plan *plan, const tdi_planned *step)
{
    bool writes = step->node->home == TDI_HOME_VARIABLE || step->node->home == TDI_HOME_SLOT;
    return bytes_read(plan, step, true) + (writes ? bytes_made(plan, step) : 0);
}

const char *tdi_planned_share(const tdi_plan *plan, const tdi_planned *step)
{
    static const char *const names[] = {"whole", "rows", "columns", "flat"};
    return step->finish ? "depth" : names[tdi_placed_of(plan, step->node)->by.split];
}

int tdi_planned_threads(const tdi_plan *plan, const tdi_planned *step)
{
    const tdi_placement *by = &tdi_placed_of(plan, step->node)->by;
    return by->depth ? by->depth : by->threads;
}

static const char *pass_of(const tdi_node *node)
{
    const tdi_node *backward = node->graph->backward;
    if (node->update_phase)
        return "update";
    return backward && node->id >= backward->id && node->home != TDI_HOME_METRIC ? "backward" : "forward";
}

static bool is_narrow(const tdi_node *node)
{
    bool narrow = false;
    for (int i = 0; i < node->n_in; i++)
        narrow = narrow || (node->in[i] && node->in[i]->dtype == TD_BFLOAT16);
    return narrow;
}

int tdi_plan_steps(const tdi_plan *plan)
{
    return plan->n_steps;
}

bool tdi_plan_op_at(const tdi_plan *plan, int s, tdi_plan_op *op)
{
    const tdi_planned *step = &plan->planned[s];
    const tdi_node *node = step->node;
    if (!node)
        return false;
    const tdi_placement *by = &tdi_placed_of(plan, node)->by;
    *op = (tdi_plan_op){.layer = node->scope,
                        .variable = node->variable ? node->variable->name : NULL,
                        .op = node->op->name,
                        .pass = pass_of(node),
                        .kernel = step->kernel ? step->kernel->name : "reference",
                        .tuned = step->tuned,
                        .share = tdi_planned_share(plan, step),
                        .threads = tdi_planned_threads(plan, step),
                        .shape = tdi_placed_of(plan, node)->shape,
                        .flops = planned_flops(step),
                        .bytes = planned_bytes(plan, step),
                        .kept_bytes = kept_bytes(plan, step),
                        .bfloat16 = node->op->multiplies && is_narrow(node),
                        .update_phase = node->update_phase,
                        .barrier = step->barrier,
                        .constant = step->constant,
                        .by_depth = step->finish,
                        .ended_by = by->depth && by->threads != by->depth ? by->threads : 0,
                        .batch_interleaved = tdi_placed_of(plan, node)->batch_interleaved,
                        .remarks = step->remarks.length ? step->remarks.chars : NULL};
    if (node->op->describe)
        node->op->describe(node, op->details, sizeof op->details);
    return true;
}

double tdi_plan_flops(const tdi_plan *plan)
{
    double flops = 0;
    for (int s = 0; s < plan->n_steps; s++)
        flops += plan->planned[s].node ? planned_flops(&plan->planned[s]) : 0;
    return flops;
}

double tdi_plan_bytes(const tdi_plan *plan)
{
    double bytes = 0;
    for (int s = 0; s < plan->n_steps; s++)
        bytes += plan->planned[s].node ? planned_bytes(plan, &plan->planned[s]) : 0;
    return bytes;
}

double tdi_plan_sure_bfloat16_flops(const tdi_plan *plan)
{
    double flops = 0;
    for (int s = 0; s < plan->n_steps; s++) {
        const tdi_planned *step = &plan->planned[s];
        bool narrow = step->node && step->node->op->multiplies && is_narrow(step->node);
        if (narrow && step->kernel && !step->kernel->widens && !step->tuned)
            flops += planned_flops(step);
    }
    return flops;
}

/* FNV-1a */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return (hash ^ 0xff) * 1099511628211u;
}

uint64_t tdi_plan_hash(const tdi_plan *plan)
{
    uint64_t hash = 14695981039346656037u;
    for (int s = 0; s < plan->n_steps; s++) {
        const tdi_node *node = plan->planned[s].node;
        char shape[TDI_SHAPE_TEXT], details[96] = "";
        if (!node)
            continue;
        if (node->op->describe)
            node->op->describe(node, details, sizeof details);
        hash = hash_text(hash, node->op->name);
        hash = hash_text(hash, details);
        hash = hash_text(hash, tdi_shape_text(&node->shape, shape));
    }
    return hash;
}
