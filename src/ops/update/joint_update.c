/* joint_update.c - an optimizer's step of several shards whose gradient is a product over the batch, a' . b.
 *
 * Where a shard has few rows, a and b are much smaller than a gradient as large as the weight, which would go from core
 * to core. So each shard leaves its factors (leave_gradient), and the update computes the rows of the gradient that its
 * replica updates, shard by shard, and adds them up in the tree of reduce_scatter: the bits are the same. Only the fuse
 * pass makes the two ops.
 *
 * Where other processes have some of the shards, the factors are gathered in place of gradients being reduced. Then it
 * is settled with the program whether a shard leaves them, since all have to know what travels. */
#include "ops/update/optimizer.h"

/* ---- leave_gradient ---- */

static td_status leave_gradient_infer(tdi_node *node, tdi_error *error)
{
    const tdi_matmul_attrs *attrs = node->attrs;
    if (!attrs->transpose_a || attrs->transpose_b)
        return tdi_fail(error, TD_INTERNAL, "a product other than a' . b");
    TDI_TRY(tdi_op_matmul.infer(node, error));
    if (attrs->factors > 0)
        node->shape = (td_shape){.rank = 1, .dim = {attrs->factors}};
    return TD_OK;
}

/* Are a and b, of so many rows, left? A large product is left as a product: its sums are then added up in one order,
 * whichever kernel computes it. */
static bool are_few(const td_shape *gradient, int64_t depth)
{
    int64_t rows = gradient->dim[0], columns = gradient->dim[1];
    bool large = rows > TDI_LARGE_PRODUCT && columns > TDI_LARGE_PRODUCT;
    return !large && 2 * depth * (rows + columns) <= rows * columns;
}

bool tdi_leaves_factors(const tdi_call *call)
{
    int64_t factors = ((const tdi_matmul_attrs *)call->attrs)->factors;
    return factors > 0 || (factors == 0 && are_few(&call->out.shape, tdi_outer_extent(&call->in[0].shape)));
}

void tdi_leave_factors(const tdi_call *call)
{
    float *to = call->out.data;
    for (int i = 0; i < 2; i++) {
        int64_t elements = tdi_shape_elements(&call->in[i].shape);
        memcpy(to, call->in[i].data, (size_t)elements * sizeof *to);
        to += elements;
    }
}

static void leave_gradient_reference(const tdi_call *call)
{
    (tdi_leaves_factors(call) ? tdi_leave_factors : tdi_op_matmul.reference)(call);
}

/* The operations of the shard's share of the product, whichever op computes it. */
static double leave_gradient_flops(const tdi_call *call)
{
    return 2.0 * (double)tdi_shape_elements(&call->in[0].shape) * (double)tdi_last_extent(&call->in[1].shape);
}

/* Any element of the factors may go into any element of the gradient. */
static tdi_split leave_gradient_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node, (void)i, (void)split;
    return TDI_WHOLE;
}

static void leave_gradient_describe(const tdi_node *node, char *text, size_t size)
{
    int64_t factors = ((const tdi_matmul_attrs *)node->attrs)->factors;
    snprintf(text, size, "%s",
             factors > 0   ? "a and b, for the update to multiply"
             : factors < 0 ? "a' . b"
                           : "a' . b; of few rows, a and b, for the update to multiply");
}

const tdi_op tdi_op_leave_gradient = {.name = "leave_gradient",
                                      .min_in = 2,
                                      .max_in = 2,
                                      .attrs_size = sizeof(tdi_matmul_attrs),
                                      .infer = leave_gradient_infer,
                                      .no_gradient = "it is one",
                                      .reference = leave_gradient_reference,
                                      .flops = leave_gradient_flops,
                                      .reads = leave_gradient_reads,
                                      .describe = leave_gradient_describe};

/* ---- joint_update ---- */

static td_status joint_update_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_rank(node, 0, 2, error));
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    bool gathered = ((const tdi_joint_update_attrs *)node->attrs)->factors > 0;
    for (int i = gathered ? 2 : 1; i < node->n_in; i++)
        TDI_TRY(tdi_want_shape(node, i, &node->shape, error));
    return TD_OK;
}

bool tdi_gathers_factors(const tdi_graph *graph, const td_shape *weight, int64_t positions, int64_t *factors)
{
    int64_t rows = weight->dim[0], columns = weight->dim[1], most = 0;
    for (int s = 0; s < graph->shards; s++) {
        int64_t own =
            tdi_shard_first_row(graph->rows, s + 1, graph->shards) - tdi_shard_first_row(graph->rows, s, graph->shards);
        most = own > most ? own : most;
    }
    bool large = rows > TDI_LARGE_PRODUCT && columns > TDI_LARGE_PRODUCT;
    *factors = most * positions * (rows + columns);
    return !large && most > 0 && graph->shards * *factors <= rows * columns;
}

tdi_left_gradient tdi_left_by(const tdi_call *call, int shard)
{
    const tdi_joint_update_attrs *attrs = call->attrs;
    int64_t rows = call->control->rows, shards = attrs->shards;
    int64_t own = tdi_shard_first_row(rows, shard + 1, shards) - tdi_shard_first_row(rows, shard, shards);
    int64_t depth = own * attrs->positions;
    const float *data = attrs->factors ? (const float *)call->in[1].data + shard * attrs->factors
                                       : call->shard->gradients[shard] + call->offset;
    if (!attrs->factors && !are_few(&call->out.shape, depth))
        return (tdi_left_gradient){.gradient = data};
    return (tdi_left_gradient){.a = data, .b = data + depth * call->out.shape.dim[0], .depth = depth};
}

enum { STRETCH = 256 };

static double gradient_left_by(const tdi_call *call, int shard, int64_t i)
{
    int64_t rows = call->out.shape.dim[0], columns = call->out.shape.dim[1];
    tdi_left_gradient left = tdi_left_by(call, shard);
    double sum = left.gradient ? (double)left.gradient[i] : 0;
    for (int64_t k = 0; k < left.depth; k++)
        sum += (double)left.a[k * rows + i / columns] * (double)left.b[k * columns + i % columns];
    return sum;
}

static void joint_update_reference(const tdi_call *call)
{
    const tdi_joint_update_attrs *attrs = call->attrs;
    float gradient[STRETCH];
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = 0; i < runs.length; i += STRETCH) {
            int64_t first = runs.first + r * runs.stride + i, n = runs.length - i < STRETCH ? runs.length - i : STRETCH;
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int p = 0; p < attrs->shards; p++)
                    sum += gradient_left_by(call, p, first + j);
                gradient[j] = (float)sum;
            }
            tdi_reference_update(call, &attrs->of, 2, first, n, gradient);
        }
}

static void joint_update_numbers(const void *attributes, tdi_control *control)
{
    const tdi_joint_update_attrs *attrs = attributes;
    attrs->of.update->numbers(&attrs->of.optimizer, control);
}

static double joint_update_flops(const tdi_call *call)
{
    return 11.0 * (double)tdi_shape_elements(&call->out.shape);
}

static tdi_split joint_update_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    return i == 1 ? TDI_WHOLE : split;
}

static void joint_update_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "%s of the shards' sums", ((const tdi_joint_update_attrs *)node->attrs)->of.update->name);
}

const tdi_op tdi_op_joint_update = {.reduces = true,
                                    .name = "joint_update",
                                    .min_in = 2,
                                    .max_in = 5,
                                    .attrs_size = sizeof(tdi_joint_update_attrs),
                                    .infer = joint_update_infer,
                                    .no_gradient = "it is an update",
                                    .reference = joint_update_reference,
                                    .numbers = joint_update_numbers,
                                    .flops = joint_update_flops,
                                    .reads = joint_update_reads,
                                    .in_place = 1,
                                    .describe = joint_update_describe,
                                    .update_rows = true};
