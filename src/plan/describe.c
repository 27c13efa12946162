/* describe.c - a plan in words and numbers: per op its layer, kernel, share, cost, and which kernels declined. */
#include "plan/plan_struct.h"

static double planned_flops(const tdi_planned *step)
{
    const tdi_call *call = &step->calls[0];
    double flops = step->node->op->flops ? step->node->op->flops(call) : (double)tdi_shape_elements(&call->out.shape);
    return flops / tdi_dealt_among(step->node);
}

static bool is_forwarded(const tdi_planned *step, int i)
{
    return step->forwarded_inputs && step->forwarded_inputs >> i & 1u;
}

/* An update reads the slots that it writes. A forwarded value never leaves the caches. `kept`: of weights and slots
 * alone. */
static double bytes_read(const tdi_plan *plan, const tdi_planned *step, bool kept)
{
    const tdi_node *node = step->node;
    double bytes = 0;
    for (int i = 0; i < node->n_in; i++) {
        if (!node->in[i] || is_forwarded(step, i))
            continue;
        tdi_home home = tdi_root(node->in[i])->home;
        if (!kept || home == TDI_HOME_VARIABLE || home == TDI_HOME_SLOT)
            bytes += (double)tdi_node_bytes(plan, node->in[i]) * (home == TDI_HOME_SLOT ? 2 : 1);
    }
    bytes /= tdi_dealt_among(node);
    double made = (double)tdi_node_bytes(plan, node);
    return node->op->moves && bytes > made ? made : bytes;
}

static double planned_bytes(const tdi_plan *plan, const tdi_planned *step)
{
    return bytes_read(plan, step, false) + (step->forwards ? 0 : (double)tdi_node_bytes(plan, step->node));
}

static double kept_bytes(const tdi_plan *plan, const tdi_planned *step)
{
    bool writes = step->node->home == TDI_HOME_VARIABLE || step->node->home == TDI_HOME_SLOT;
    return bytes_read(plan, step, true) + (writes ? (double)tdi_node_bytes(plan, step->node) : 0);
}

const char *tdi_planned_share(const tdi_plan *plan, const tdi_planned *step)
{
    static const char *const names[] = {"whole", "rows", "columns", "flat"};
    return step->finish ? "depth" : names[tdi_placed_of(plan, step->node)->by.split];
}

int tdi_planned_lanes(const tdi_plan *plan, const tdi_planned *step)
{
    const tdi_placement *by = &tdi_placed_of(plan, step->node)->by;
    return by->depth ? by->depth : by->lanes;
}

static const char *pass_of(const tdi_node *node)
{
    const tdi_node *backward = node->graph->backward;
    if (node->once)
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
    if (!node || step->constant)
        return false;
    *op = (tdi_plan_op){.layer = node->scope,
                        .variable = node->variable ? node->variable->name : NULL,
                        .op = node->op->name,
                        .pass = pass_of(node),
                        .kernel = step->kernel ? step->kernel->name : "reference",
                        .tuned = step->tuned,
                        .share = tdi_planned_share(plan, step),
                        .lanes = tdi_planned_lanes(plan, step),
                        .shape = tdi_placed_of(plan, node)->shape,
                        .flops = planned_flops(step),
                        .bytes = planned_bytes(plan, step),
                        .kept_bytes = kept_bytes(plan, step),
                        .bfloat16 = node->op->multiplies && is_narrow(node),
                        .once = node->once,
                        .barrier = step->barrier,
                        .fused = step->fused};
    return true;
}

/* Says how many threads share the step, unless it is one or all. */
static void explain_lanes(const tdi_plan *plan, const tdi_planned *step, FILE *out)
{
    const tdi_placement *by = &tdi_placed_of(plan, step->node)->by;
    int lanes = tdi_planned_lanes(plan, step), all = tdi_sharing_of(plan);
    bool ends_otherwise = by->depth && by->lanes != by->depth;
    if ((lanes == 1 || lanes == all) && !ends_otherwise)
        return;
    fprintf(out, "%-22s   %s over %d of %d threads", "", tdi_planned_share(plan, step), lanes, all);
    if (ends_otherwise)
        fprintf(out, ", ended by %d", by->lanes);
    fprintf(out, "\n");
}

static void explain_step(const tdi_plan *plan, const tdi_planned *step, FILE *out)
{
    const tdi_node *node = step->node;
    if (step->barrier)
        fprintf(out, "- the threads meet -\n");
    char shape[TDI_SHAPE_TEXT], details[96] = "";
    if (node->op->describe)
        node->op->describe(node, details, sizeof details);
    fprintf(out, "%-22.22s %-24.24s %-20.20s %-24.24s %-8s %9.1f %11.1f\n", node->scope, node->op->name,
            tdi_shape_text(&tdi_placed_of(plan, node)->shape, shape), step->kernel ? step->kernel->name : "reference",
            tdi_planned_share(plan, step), planned_bytes(plan, step) / 1e3, planned_flops(step) / 1e3);
    if (*details)
        fprintf(out, "%-22s   %s\n", "", details);
    if (tdi_placed_of(plan, node)->batch_interleaved)
        fprintf(out, "%-22s   %d batch-interleaved samples\n", "", tdi_placed_of(plan, node)->batch_interleaved);
    explain_lanes(plan, step, out);
    if (step->fused)
        fprintf(out, "%-22s   fused with the op before it%s\n", "",
                step->forwarded_inputs ? ", whose value is not stored" : "");
    if (step->tuned) {
        fprintf(out, "%-22s   ", "");
        tdi_tuned_print(step->tuned, out);
    }
    if (step->remarks.length)
        fprintf(out, "%-22s   declined: %s\n", "", step->remarks.chars);
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

void tdi_plan_explain(const tdi_plan *plan, FILE *out)
{
    int barriers = 0;
    fprintf(out, "%-22s %-24s %-20s %-24s %-8s %9s %11s\n", "layer", "op", "shape", "kernel", "share", "kB", "kFLOP");
    for (int s = 0; s < plan->n_steps; s++) {
        const tdi_planned *step = &plan->planned[s];
        if (!step->node)
            continue;
        explain_step(plan, step, out);
        barriers += step->barrier + (step->finish != NULL);
    }
    fprintf(
        out,
        "one shard: %.1f MFLOP, %.1f MB read and written, activations %.2f MB, scratch %.2f MB, %d thread barriers\n",
        tdi_plan_flops(plan) / 1e6, tdi_plan_bytes(plan) / 1e6, (double)plan->activation_bytes / 1e6,
        (double)plan->scratch_bytes / 1e6, barriers);
}
