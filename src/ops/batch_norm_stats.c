/* batch_norm_stats.c - batch statistics per channel and their merging over shards: count, mean and M2, the sum of
 * squared distances from the mean (Chan, Golub & LeVeque 1979), which stays exact where E[x^2] - E[x]^2 cancels.
 * They are merged in a fixed balanced tree, ((0,1),(2,3)),..., so that the bits depend on the shards alone. */
#include "ops/op_helpers.h"

typedef struct moments {
    double count, mean, m2;
} moments;

static td_status check_channels(const tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    return tdi_want_last_axis(node, 0, error);
}

/* ---- one shard ---- */

int64_t tdi_group_begin(const tdi_call *call, const td_shape *x, int64_t group, int64_t groups)
{
    int64_t rows = x->dim[0];
    return rows ? tdi_group_first_row(call, rows, group, groups) * (tdi_outer_extent(x) / rows) : 0;
}

static td_status stats_infer(tdi_node *node, tdi_error *error)
{
    int groups = ((const tdi_batch_norm_stats_attrs *)node->attrs)->groups;
    TDI_TRY(check_channels(node, error));
    node->shape = (td_shape){.rank = 2, .dim = {3 * groups, tdi_last_extent(&node->in[0]->shape)}};
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static moments channel_moments(const float *x, int64_t count, int64_t stride)
{
    moments m = {.count = (double)count};
    for (int64_t i = 0; i < count; i++)
        m.mean += (double)x[i * stride];
    m.mean /= count ? (double)count : 1;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)x[i * stride] - m.mean;
        m.m2 += d * d;
    }
    return m;
}

static void store(float *out, int64_t channels, int64_t c, moments m)
{
    out[c] = (float)m.count;
    out[channels + c] = (float)m.mean;
    out[2 * channels + c] = (float)m.m2;
}

static void stats_reference(const tdi_call *call)
{
    const td_shape *shape = &call->in[0].shape;
    const float *x = call->in[0].data;
    float *out = call->out.data;
    int64_t channels = call->out.shape.dim[1], groups = call->out.shape.dim[0] / 3;
    for (int64_t g = 0; g < groups; g++) {
        int64_t begin = tdi_group_begin(call, shape, g, groups), end = tdi_group_begin(call, shape, g + 1, groups);
        for (int64_t c = 0; c < channels; c++)
            store(out + 3 * channels * g, channels, c,
                  channel_moments(x + begin * channels + c, end - begin, channels));
    }
}

static double stats_flops(const tdi_call *call)
{
    return 4.0 * tdi_flops_per_input(call);
}

/* ---- several shards ---- */

/* gathered holds `per_shard` rows of each shard, or of each group where shards have several. */
static td_status check_gathered(const tdi_node *node, int i, int64_t per_shard, bool grouped, tdi_error *error)
{
    const td_shape *gathered = &node->in[i]->shape;
    TDI_TRY(tdi_want_floats(node, error));
    if (gathered->rank == 3 && gathered->dim[0] == node->graph->shards &&
        (gathered->dim[1] == per_shard || (grouped && gathered->dim[1] % per_shard == 0)))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "statistics of %s: they must be [%d, %lld%s, channels], of all %d shards", TDI_TEXT(gathered),
                    node->graph->shards, (long long)per_shard, grouped ? " a group" : "", node->graph->shards);
}

static td_status merge_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(check_gathered(node, 0, 3, false, error));
    node->shape = (td_shape){.rank = 2, .dim = {3, node->in[0]->shape.dim[2]}};
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static moments merge(moments a, moments b)
{
    double count = a.count + b.count, d = b.mean - a.mean;
    if (a.count == 0)
        return b;
    if (b.count == 0)
        return a;
    return (moments){count, a.mean + d * b.count / count, a.m2 + b.m2 + d * d * a.count * b.count / count};
}

/* The merged statistics of shards [first, first + count), channel c. */
static moments merge_shards(const float *gathered, int64_t channels, int64_t c, int first, int count)
{
    if (count == 1) {
        const float *shard = gathered + 3 * channels * first + c;
        return (moments){(double)shard[0], (double)shard[channels], (double)shard[2 * channels]};
    }
    int left = tdi_tree_half(count);
    return merge(merge_shards(gathered, channels, c, first, left),
                 merge_shards(gathered, channels, c, first + left, count - left));
}

/* The shards that share statistics: those of the call's group, or all. */
typedef struct group {
    int first, count;
} group;

static group group_of(const tdi_call *call)
{
    const tdi_batch_norm_attrs *attrs = call->attrs;
    return attrs->all ? (group){0, call->shard->shards} : (group){call->shard->group_first, call->shard->group_count};
}

static void merge_reference(const tdi_call *call)
{
    group group = group_of(call);
    int64_t channels = call->out.shape.dim[1];
    for (int64_t c = 0; c < channels; c++)
        store(call->out.data, channels, c, merge_shards(call->in[0].data, channels, c, group.first, group.count));
}

/* ---- the gradient's two sums ---- */

static td_status grad_merge_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(check_gathered(node, 0, 2, false, error));
    node->shape = (td_shape){.rank = 2, .dim = {2, node->in[0]->shape.dim[2]}};
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static float sum_shards(const float *gathered, int64_t stride, int first, int count)
{
    if (count == 1)
        return gathered[stride * first];
    int left = tdi_tree_half(count);
    return sum_shards(gathered, stride, first, left) + sum_shards(gathered, stride, first + left, count - left);
}

static void grad_merge_reference(const tdi_call *call)
{
    const float *gathered = call->in[0].data;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->out.shape);
    group group = group_of(call);
    for (int64_t i = 0; i < count; i++)
        out[i] = sum_shards(gathered + i, count, group.first, group.count);
}

/* ---- moving statistics ---- */

static td_status moving_infer(tdi_node *node, tdi_error *error)
{
    const td_shape *moving = &node->in[0]->shape;
    TDI_TRY(tdi_want_rank(node, 0, 1, error));
    TDI_TRY(check_gathered(node, 1, 3, true, error));
    if (node->in[1]->shape.dim[2] != moving->dim[0])
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "the moving statistic is %s, but the batch's are %s: channels differ", TDI_TEXT(moving),
                        TDI_TEXT(&node->in[1]->shape));
    node->shape = *moving;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

/* A group is a run of group_count shards, or one of several in a shard. */
static double batch_statistic(const tdi_call *call, int64_t channels, int64_t c, bool variance, double *rows)
{
    double sum = 0;
    int in_shard = (int)(call->in[1].shape.dim[1] / 3), all = call->shard->shards * in_shard;
    int size = in_shard > 1 && !((const tdi_batch_norm_attrs *)call->attrs)->all ? 1 : group_of(call).count * in_shard;
    *rows = 0;
    for (int first = 0; first < all; first += size) {
        int count = first + size < all ? size : all - first;
        moments m = merge_shards(call->in[1].data, channels, c, first, count);
        sum += variance ? m.m2 : m.mean * m.count;
        *rows += m.count;
    }
    return *rows > 0 ? sum / *rows : 0;
}

static void moving_reference(const tdi_call *call)
{
    const tdi_batch_norm_attrs *attrs = call->attrs;
    const float *moving = call->in[0].data;
    float *out = call->out.data, rate = tdi_one_minus(attrs->momentum);
    int64_t channels = call->out.shape.dim[0];
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = runs.first + r * runs.stride, end = i + runs.length; i < end; i++) {
            double rows, batch = batch_statistic(call, channels, i, attrs->variance, &rows);
            out[i] = rows > 0 ? moving[i] * attrs->momentum + (float)batch * rate : moving[i];
        }
}

static tdi_split moving_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    return i == 0 ? split : TDI_WHOLE;
}

static void moving_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_batch_norm_attrs *attrs = node->attrs;
    snprintf(text, size, "%s, momentum %g", attrs->variance ? "variance" : "mean", (double)attrs->momentum);
}

/* ---- the ops ---- */

const tdi_op tdi_op_batch_norm_stats = {.name = "batch_norm_stats",
                                        .attrs_size = sizeof(tdi_batch_norm_stats_attrs),
                                        .min_in = 1,
                                        .max_in = 1,
                                        .bfloat16 = 1,
                                        .infer = stats_infer,
                                        .no_gradient = "batch_norm's gradient goes through the statistics itself",
                                        .reference = stats_reference,
                                        .flops = stats_flops,
                                        .reads = tdi_reads_columns};

const tdi_op tdi_op_batch_norm_merge = {.name = "batch_norm_merge",
                                        .attrs_size = sizeof(tdi_batch_norm_attrs),
                                        .min_in = 1,
                                        .max_in = 1,
                                        .infer = merge_infer,
                                        .no_gradient = "batch_norm's gradient goes through the statistics itself",
                                        .reference = merge_reference,
                                        .flops = tdi_flops_per_input,
                                        .reads = tdi_reads_columns};

const tdi_op tdi_op_batch_norm_grad_merge = {.name = "batch_norm_grad_merge",
                                             .attrs_size = sizeof(tdi_batch_norm_attrs),
                                             .min_in = 1,
                                             .max_in = 1,
                                             .infer = grad_merge_infer,
                                             .no_gradient = "second derivatives are not built",
                                             .reference = grad_merge_reference,
                                             .flops = tdi_flops_per_input,
                                             .reads = tdi_reads_columns};

const tdi_op tdi_op_batch_norm_moving = {.name = "batch_norm_moving",
                                         .min_in = 2,
                                         .max_in = 2,
                                         .attrs_size = sizeof(tdi_batch_norm_attrs),
                                         .infer = moving_infer,
                                         .no_gradient = "it is an update",
                                         .reference = moving_reference,
                                         .reads = moving_reads,
                                         .in_place = 1,
                                         .describe = moving_describe};

tdi_node *tdi_batch_norm_stats(tdi_graph *graph, tdi_node *x, int groups)
{
    return tdi_node_create(graph, &tdi_op_batch_norm_stats, &(tdi_batch_norm_stats_attrs){groups}, 1, &x);
}

tdi_node *tdi_batch_norm_merge(tdi_graph *graph, tdi_node *gathered, bool all)
{
    return tdi_node_create(graph, &tdi_op_batch_norm_merge, &(tdi_batch_norm_attrs){.all = all}, 1, &gathered);
}

tdi_node *tdi_batch_norm_grad_merge(tdi_graph *graph, tdi_node *gathered, bool all)
{
    return tdi_node_create(graph, &tdi_op_batch_norm_grad_merge, &(tdi_batch_norm_attrs){.all = all}, 1, &gathered);
}

tdi_node *tdi_batch_norm_moving(tdi_graph *graph, tdi_node *moving, tdi_node *gathered, float momentum, bool variance,
                                bool all)
{
    tdi_batch_norm_attrs attrs = {.momentum = momentum, .variance = variance, .all = all};
    tdi_node *node = tdi_node_create(graph, &tdi_op_batch_norm_moving, &attrs, 2, (tdi_node *[]){moving, gathered});
    if (node) {
        node->home = moving->home;
        node->variable = moving->variable;
        node->slot = moving->slot;
        node->update_phase = node->effect = true;
    }
    return node;
}
