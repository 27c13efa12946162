/* extra_output.c - a second value of an op. A room is bytes that another op takes as an input and fills while it makes
 * its own value; who wants to read them reads `filled`, which shows them and stands behind that op. Made by the fuse
 * pass. */
#include "ops/common.h"

static td_status room_infer(tdi_node *node, tdi_error *error)
{
    (void)error;
    node->shape = ((const tdi_shape_attrs *)node->attrs)->shape;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static void room_reference(const tdi_call *call)
{
    (void)call;
}

const tdi_op tdi_op_room = {.name = "room",
                            .attrs_size = sizeof(tdi_shape_attrs),
                            .infer = room_infer,
                            .no_gradient = "it has no inputs",
                            .reference = room_reference,
                            .flops = tdi_flops_none};

static td_status filled_infer(tdi_node *node, tdi_error *error)
{
    node->shape = node->in[0]->shape;
    node->dtype = node->in[0]->dtype;
    for (int i = 0; i < node->in[1]->n_in; i++)
        if (node->in[1]->in[i] == node->in[0])
            return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s does not take the room %s", node->in[1]->op->name,
                    TDI_TEXT(&node->shape));
}

static void filled_reference(const tdi_call *call)
{
    memmove(call->out.data, call->in[0].data, (size_t)tdi_shape_elements(&call->out.shape) * sizeof(float));
}

const tdi_op tdi_op_filled = {.name = "filled",
                              .min_in = 2,
                              .max_in = 2,
                              .infer = filled_infer,
                              .no_gradient = "it is made after the gradients are",
                              .reference = filled_reference,
                              .flops = tdi_flops_none,
                              .view = true};

tdi_node *tdi_room(tdi_graph *graph, const td_shape *shape)
{
    return tdi_node_create(graph, &tdi_op_room, &(tdi_shape_attrs){*shape}, 0, NULL);
}

tdi_node *tdi_filled(tdi_graph *graph, tdi_node *room, tdi_node *by)
{
    return tdi_node_create(graph, &tdi_op_filled, NULL, 2, (tdi_node *[]){room, by});
}
