/* label.c - labels for a plan's items in a trace: layer and op, then shape, kernel and share. Each thread notes into a
 * ring of its own what it ran and when; run.c looks once a segment whether there is a trace. */
#include <stdio.h>

#include "plan/plan_struct.h"

static const tdi_planned *planned_of(const tdi_plan *plan, int lane, const tdi_call *call)
{
    for (int s = 0; s < plan->n_steps; s++) {
        const tdi_planned *step = &plan->planned[s];
        if (step->node && (call == &step->calls[lane] || (step->finish && call == &step->finish[lane])))
            return step;
    }
    return NULL;
}

static const tdi_label *label_of(const tdi_plan *plan, int lane, const tdi_call *call, tdi_trace *trace)
{
    const tdi_planned *step = planned_of(plan, lane, call);
    char name[128], about[256], shape[TDI_SHAPE_TEXT], details[96] = "";
    if (!step)
        return NULL;
    const tdi_node *node = step->node;
    if (node->op->describe)
        node->op->describe(node, details, sizeof details);
    snprintf(name, sizeof name, "%s %s", node->scope, node->op->name);
    snprintf(about, sizeof about, "%s%s%s by %s, shared by %s",
             tdi_shape_text(&tdi_placed_of(plan, node)->shape, shape), *details ? " " : "", details,
             step->kernel ? step->kernel->name : "the reference", tdi_planned_share(plan, step));
    return tdi_trace_step_label(trace, name, "op", about, (int)(step - plan->planned));
}

static td_status label_lane(const tdi_plan *plan, int lane, tdi_trace *trace, tdi_error *error)
{
    tdi_lane_items *list = &plan->lanes[lane];
    if (!list->labels)
        list->labels = calloc((size_t)list->items.count + 1, sizeof *list->labels);
    if (!list->labels)
        return tdi_no_memory(error);
    for (int i = 0; i < list->items.count; i++) {
        const tdi_item *item = &list->items.at[i];
        if (item->call && !(list->labels[i] = label_of(plan, lane, item->call, trace)))
            return tdi_no_memory(error);
    }
    return TD_OK;
}

td_status tdi_plan_label(tdi_plan *plan, tdi_trace *trace, tdi_error *error)
{
    if (plan->labelled == tdi_trace_id(trace))
        return TD_OK;
    for (int lane = 0; lane < plan->spec.lanes; lane++)
        TDI_TRY(label_lane(plan, lane, trace, error));
    plan->labelled = tdi_trace_id(trace);
    return TD_OK;
}
