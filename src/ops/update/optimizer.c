/* optimizer.c - what the optimizers share: the nodes of a variable's update, and of its gradient's way there. */
#include "ops/update/optimizer.h"

enum { MAX_SLOTS = 3 };

td_status tdi_optimizer_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    for (int i = 1; i < node->n_in; i++)
        TDI_TRY(tdi_want_shape(node, i, &node->shape, error));
    return TD_OK;
}

/* The velocity has the learning rate inside: when the rate changes, Goyal et al. (1706.02677) correct it once. */
static float kept_momentum(const tdi_optimizer_attrs *attrs, const tdi_control *control)
{
    float before = control->rate_before;
    return before > 0.0f ? attrs->momentum * (control->learning_rate / before) : attrs->momentum;
}

void tdi_update_numbers(const tdi_optimizer_attrs *attrs, tdi_control *control)
{
    tdi_optimizer_numbers *numbers = &control->optimizer;
    numbers->rate = control->learning_rate;
    numbers->momentum = attrs->momentum;
    numbers->kept = kept_momentum(attrs, control);
    numbers->decay = attrs->weight_decay * control->learning_rate;
    numbers->clip = attrs->clipvalue > 0.0f ? attrs->clipvalue : INFINITY;
}

void tdi_control_reckon(tdi_control *control, const tdi_graph *graph)
{
    control->inverse_rows = tdi_inverse_rows(control->rows);
    for (int i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.at[i]->op->numbers)
            graph->nodes.at[i]->op->numbers(graph->nodes.at[i]->attrs, control);
}

tdi_node *tdi_reduced_gradient(tdi_node *node, tdi_variable *variable)
{
    if (node) {
        node->home = TDI_HOME_GRADIENT;
        node->variable = variable;
        node->update_phase = true;
    }
    return node;
}

tdi_node *tdi_optimizer_node(tdi_graph *graph, const tdi_op *op, tdi_node *weight, tdi_node *gradient, int n_slots,
                             tdi_node *const *slots, const tdi_optimizer_attrs *attrs)
{
    tdi_node *in[2 + MAX_SLOTS] = {weight, gradient};
    for (int i = 0; i < n_slots && i < MAX_SLOTS; i++) {
        if (!slots[i])
            return NULL;
        in[2 + i] = slots[i];
    }
    tdi_node *node = tdi_node_create(graph, op, attrs, 2 + n_slots, in);
    if (node) {
        node->home = TDI_HOME_VARIABLE;
        node->variable = weight->variable;
        node->update_phase = node->effect = true;
    }
    return node;
}

void tdi_reference_update(const tdi_call *call, const tdi_matmul_update_attrs *attrs, int first_slot, int64_t begin,
                          int64_t n, float *gradient)
{
    tdi_value in[2 + MAX_SLOTS],
        of = {.data = (float *)call->out.data + begin, .shape = {.rank = 1, .dim = {n}}, .dtype = TD_FLOAT32};
    in[0] = in[1] = of;
    in[0].data = (float *)call->in[0].data + begin;
    in[1].data = gradient;
    for (int i = first_slot; i < call->n_in; i++) {
        in[2 + i - first_slot] = of;
        in[2 + i - first_slot].data = (float *)call->in[i].data + begin;
    }
    tdi_call update = *call;
    update.in = in;
    update.n_in = 2 + call->n_in - first_slot;
    update.out = of;
    update.attrs = &attrs->optimizer;
    update.split = TDI_WHOLE;
    attrs->update->reference(&update);
}
