/* label.c - labels for a plan's items in a trace: layer and op, then shape, kernel and share. Each thread notes into a
 * ring of its own what it ran and when; run.c looks once a segment whether there is a trace. */
#include <stdio.h>

#include "plan/plan_struct.h"

static const tdi_planned *planned_of(const tdi_plan *plan, int thread, const tdi_call *call)
{
    for (int s = 0; s < plan->n_steps; s++) {
        const tdi_planned *step = &plan->planned[s];
        if (step->node && (call == &step->calls[thread] || (step->finish && call == &step->finish[thread])))
            return step;
    }
    return NULL;
}

static const tdi_label *label_of(const tdi_plan *plan, int thread, const tdi_call *call, tdi_trace *trace)
{
    const tdi_planned *step = planned_of(plan, thread, call);
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

static td_status label_thread(const tdi_plan *plan, int thread, tdi_trace *trace, tdi_error *error)
{
    tdi_thread_items *list = &plan->threads[thread];
    if (!list->labels)
        list->labels = calloc((size_t)list->items.count + 1, sizeof *list->labels);
    if (!list->labels)
        return tdi_no_memory(error);
    for (int i = 0; i < list->items.count; i++) {
        const tdi_item *item = &list->items.at[i];
        if (item->call && !(list->labels[i] = label_of(plan, thread, item->call, trace)))
            return tdi_no_memory(error);
    }
    return TD_OK;
}

td_status tdi_plan_label(tdi_plan *plan, tdi_trace *trace, tdi_error *error)
{
    if (plan->labelled == tdi_trace_id(trace))
        return TD_OK;
    for (int thread = 0; thread < plan->spec.threads; thread++)
        TDI_TRY(label_thread(plan, thread, trace, error));
    plan->labelled = tdi_trace_id(trace);
    return TD_OK;
}
