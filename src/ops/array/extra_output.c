/* extra_output.c - a second value of an op, since a node has one.
 *
 * `extra_output` is memory that its producer, another op, takes as one more input and writes beside its own value. Who
 * reads the second value reads `extra_output_of`, a view of that memory which depends on the producer as well, so that
 * it comes after it in every order. The memory has a lifetime like any value, and threads divide it as its producer.
 *
 * Only the fuse pass makes the two: a cross-entropy's gradient writes the losses so, and takes the exponentials once.
 */
#include "ops/op_helpers.h"

static td_status extra_output_infer(tdi_node *node, tdi_error *error)
{
    (void)error;
    node->shape = ((const tdi_shape_attrs *)node->attrs)->shape;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static void extra_output_reference(const tdi_call *call)
{
    (void)call;
}

const tdi_op tdi_op_extra_output = {.name = "extra_output",
                                    .attrs_size = sizeof(tdi_shape_attrs),
                                    .infer = extra_output_infer,
                                    .no_gradient = "it has no inputs",
                                    .reference = extra_output_reference,
                                    .flops = tdi_flops_none,
                                    .extra_output = true};

static td_status extra_output_of_infer(tdi_node *node, tdi_error *error)
{
    const tdi_node *producer = node->in[1];
    node->shape = node->in[0]->shape;
    node->dtype = node->in[0]->dtype;
    for (int i = 0; i < producer->n_in; i++)
        if (producer->in[i] == node->in[0])
            return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s does not take the extra output %s", producer->op->name,
                    TDI_TEXT(&node->shape));
}

static void extra_output_of_reference(const tdi_call *call)
{
    memmove(call->out.data, call->in[0].data, (size_t)tdi_shape_elements(&call->out.shape) * sizeof(float));
}

const tdi_op tdi_op_extra_output_of = {.name = "extra_output_of",
                                       .min_in = 2,
                                       .max_in = 2,
                                       .infer = extra_output_of_infer,
                                       .no_gradient = "it is made after the gradients are",
                                       .reference = extra_output_of_reference,
                                       .flops = tdi_flops_none,
                                       .view = true};

tdi_node *tdi_extra_output(tdi_graph *graph, const td_shape *shape)
{
    return tdi_node_create(graph, &tdi_op_extra_output, &(tdi_shape_attrs){*shape}, 0, NULL);
}

tdi_node *tdi_extra_output_of(tdi_graph *graph, tdi_node *output, tdi_node *producer)
{
    return tdi_node_create(graph, &tdi_op_extra_output_of, NULL, 2, (tdi_node *[]){output, producer});
}
