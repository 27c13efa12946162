/* gather_update.c - SGD's step for the rows of a table that a gather read: no gradient of the table's size is made, and
 * rows that were not read are left alone. Without momentum and weight decay a gradient of 0 changes no weight, so that
 * this is what scatter_add and sgd do. Only the fuse pass makes it. */
#include "ops/update/optimizer.h"

static td_status gather_update_infer(tdi_node *node, tdi_error *error)
{
    const tdi_optimizer_attrs *attrs = node->attrs;
    if (attrs->momentum != 0.0f || attrs->weight_decay != 0.0f)
        return tdi_fail(error, TD_INTERNAL, "momentum %g and weight decay %g change rows that were not gathered",
                        (double)attrs->momentum, (double)attrs->weight_decay);
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    return tdi_want_gathered(node, 1, &node->shape, error);
}

/* In the order in which scatter_add adds. */
static float gradient_of(const tdi_call *call, int64_t at)
{
    const int32_t *indices = call->in[1].data;
    const float *dy = call->in[2].data;
    int64_t count = tdi_shape_elements(&call->in[1].shape);
    int64_t width = tdi_shape_elements(&call->out.shape) / call->out.shape.dim[0];
    float sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (indices[i] == at / width)
            sum += dy[i * width + at % width];
    return sum;
}

static void gather_update_reference(const tdi_call *call)
{
    const tdi_matmul_update_attrs sgd = {&tdi_op_sgd, *(const tdi_optimizer_attrs *)call->attrs};
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = runs.first + r * runs.stride, end = i + runs.length; i < end; i++) {
            float gradient = gradient_of(call, i);
            tdi_reference_update(call, &sgd, call->n_in, i, 1, &gradient);
        }
}

static void gather_update_numbers(const void *attrs, tdi_control *control)
{
    tdi_update_numbers(attrs, control);
}

static double gather_update_flops(const tdi_call *call)
{
    return 3.0 * (double)tdi_shape_elements(&call->in[2].shape);
}

static tdi_split gather_update_reads(const tdi_node *node, int i, tdi_split split)
{
    bool columns = split == TDI_COLUMNS && node->shape.rank > 1;
    return i == 0 || (i == 2 && columns) ? split : TDI_WHOLE;
}

static void gather_update_describe(const tdi_node *node, char *text, size_t size)
{
    (void)node;
    snprintf(text, size, "sgd of the rows that were read");
}

const tdi_op tdi_op_gather_update = {.name = "gather_update",
                                     .min_in = 3,
                                     .max_in = 3,
                                     .attrs_size = sizeof(tdi_optimizer_attrs),
                                     .infer = gather_update_infer,
                                     .no_gradient = "it is an update",
                                     .reference = gather_update_reference,
                                     .numbers = gather_update_numbers,
                                     .flops = gather_update_flops,
                                     .reads = gather_update_reads,
                                     .in_place = 1,
                                     .touches = 2,
                                     .describe = gather_update_describe,
                                     .share = TDI_SHARE_SCATTER};
