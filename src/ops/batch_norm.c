/* batch_norm.c - normalization per channel by given statistics, and its gradient.
 *
 * With xhat = (x - mean) / sqrt(M2 / N + epsilon), N elements per channel in the group, and g = dy * gamma:
 * dx = (g - sum(g) / N - xhat * sum(g * xhat) / N) / sqrt(M2 / N + epsilon), where sums are over the group. A shard may
 * have several groups, whose tables stand one after the other.
 *
 * With `relu`, dy counts where the result is above 0. The gradients compute the result anew for that, so that it need
 * not be kept. */
#include "ops/op_helpers.h"

static float epsilon_of(const void *attrs)
{
    return ((const tdi_batch_norm_attrs *)attrs)->epsilon;
}

static bool rectifies(const void *attrs)
{
    return ((const tdi_batch_norm_attrs *)attrs)->relu;
}

static td_status check_x(const tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    return tdi_want_last_axis(node, 0, error);
}

/* Inputs [first, end), if present. */
static td_status check_vectors(const tdi_node *node, int first, int end, tdi_error *error)
{
    for (int i = first; i < end && i < node->n_in; i++)
        if (node->in[i])
            TDI_TRY(tdi_want_vector(node, i, tdi_last_extent(&node->in[0]->shape), error));
    return TD_OK;
}

/* Input i is [rows, c]. */
static td_status check_table(const tdi_node *node, int i, int64_t rows, tdi_error *error)
{
    td_shape shape = {.rank = 2, .dim = {rows, tdi_last_extent(&node->in[0]->shape)}};
    return tdi_want_shape(node, i, &shape, error);
}

/* Input i is [per_group * groups, c]. */
static td_status check_groups(const tdi_node *node, int i, int64_t per_group, tdi_error *error)
{
    int64_t rows = node->in[i]->shape.rank == 2 ? node->in[i]->shape.dim[0] : 0;
    return check_table(node, i, rows && rows % per_group == 0 ? rows : per_group, error);
}

static int64_t groups_of(const td_shape *stats)
{
    return stats->dim[0] / 3;
}

/* The element of x at which group `group` begins. */
static int64_t first_element(const tdi_call *call, const td_shape *x, int64_t group, int64_t groups)
{
    return tdi_group_begin(call, x, group, groups) * tdi_last_extent(x);
}

static double inverse_deviation(const float *stats, int64_t channels, int64_t c, float epsilon)
{
    double count = (double)stats[c], variance = count > 0 ? (double)stats[2 * channels + c] / count : 0;
    return 1 / sqrt(variance + (double)epsilon);
}

/* ---- forward ---- */

/* Input `residual` is added, if present. */
static td_status normalized_infer(tdi_node *node, int residual, tdi_error *error)
{
    if (node->n_in > residual && node->in[residual])
        TDI_TRY(tdi_want_shape(node, residual, &node->in[0]->shape, error));
    node->shape = node->in[0]->shape;
    node->dtype = tdi_float_dtype(node);
    return TD_OK;
}

static td_status batch_norm_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(check_x(node, error));
    TDI_TRY(check_groups(node, 1, 3, error));
    TDI_TRY(check_vectors(node, 2, 4, error));
    return normalized_infer(node, TDI_BATCH_NORM_RESIDUAL, error);
}

/* Row `row` of [rows, c] as a vector. */
static tdi_node *vector_of(tdi_graph *graph, tdi_node *table, int64_t row)
{
    tdi_node *slice = tdi_slice(graph, table, 0, row, 1);
    return slice ? tdi_reshape(graph, slice, &(td_shape){.rank = 1, .dim = {slice->shape.dim[1]}}) : NULL;
}

/* The sum over groups of [2 * groups, c]. */
static tdi_node *over_groups(tdi_graph *graph, tdi_node *sums)
{
    if (!sums || sums->shape.dim[0] == 2)
        return sums;
    td_shape grouped = {.rank = 3, .dim = {sums->shape.dim[0] / 2, 2, sums->shape.dim[1]}};
    return tdi_reduce(graph, TDI_SUM, tdi_reshape(graph, sums, &grouped), 1u, false);
}

/* The gradients of gamma and beta are the shard's own sums; only x's needs those of the group. The residual gets the
 * gradient behind the rectifier, which is computed once, for the others to read. */
static void batch_norm_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    float epsilon = epsilon_of(node->attrs);
    tdi_node *x = node->in[0], *stats = node->in[1], *gamma = node->in[2], *beta = node->in[3];
    tdi_node *residual = node->n_in > TDI_BATCH_NORM_RESIDUAL ? node->in[TDI_BATCH_NORM_RESIDUAL] : NULL;
    bool relu = rectifies(node->attrs);
    if (residual) {
        dy = relu ? tdi_unary_grad(graph, node, dy, TD_RELU) : dy;
        relu = false;
        dx[TDI_BATCH_NORM_RESIDUAL] = dy;
    }
    tdi_node *own = tdi_batch_norm_grad_stats(graph, x, dy, stats, gamma, beta, epsilon, relu), *sums = own;
    tdi_node *whole = over_groups(graph, own);
    if (stats->op == &tdi_op_batch_norm_merge)
        sums = tdi_batch_norm_grad_merge(graph, tdi_all_gather(graph, own),
                                         ((const tdi_batch_norm_attrs *)stats->attrs)->all);
    dx[0] = tdi_batch_norm_grad_input(graph, x, dy, stats, sums, gamma, beta, epsilon, relu);
    dx[2] = gamma ? vector_of(graph, whole, 1) : NULL;
    dx[3] = beta ? vector_of(graph, whole, 0) : NULL;
}

/* The normalized value for element x of channel c, before a residual is added. */
static double normalized(float x, const float *stats, const float *gamma, const float *beta, int64_t channels,
                         int64_t c, float epsilon)
{
    double xhat = ((double)x - (double)stats[channels + c]) * inverse_deviation(stats, channels, c, epsilon);
    return xhat * (gamma ? (double)gamma[c] : 1) + (beta ? (double)beta[c] : 0);
}

static const float *residual_of(const tdi_call *call, int i)
{
    return call->n_in > i ? call->in[i].data : NULL;
}

/* The final value of element i: the residual (NULL: none) is added, and the sum rectified where `relu` is set. */
static float ended(const tdi_call *call, double y, const float *residual, int64_t i)
{
    y += residual ? (double)residual[i] : 0;
    return (float)(rectifies(call->attrs) && y < 0 ? 0 : y);
}

static void batch_norm_reference(const tdi_call *call)
{
    const float *x = call->in[0].data, *stats = call->in[1].data, *gamma = call->in[2].data, *beta = call->in[3].data;
    const float *residual = residual_of(call, TDI_BATCH_NORM_RESIDUAL);
    float *out = call->out.data;
    const td_shape *shape = &call->out.shape;
    int64_t groups = groups_of(&call->in[1].shape), channels = tdi_last_extent(shape);
    for (int64_t g = 0; g < groups; g++, stats += 3 * channels)
        for (int64_t i = first_element(call, shape, g, groups); i < first_element(call, shape, g + 1, groups); i++) {
            double y = normalized(x[i], stats, gamma, beta, channels, i % channels, epsilon_of(call->attrs));
            out[i] = ended(call, y, residual, i);
        }
}

static tdi_split batch_norm_reads(const tdi_node *node, int i, tdi_split split)
{
    if (split == TDI_COLUMNS || tdi_shape_equal(&node->in[i]->shape, &node->shape))
        return split;
    return TDI_WHOLE;
}

static double batch_norm_flops(const tdi_call *call)
{
    return 2.0 * (double)tdi_shape_elements(&call->out.shape);
}

static void batch_norm_describe(const tdi_node *node, char *text, size_t size)
{
    bool adds =
        node->n_in > (node->op == &tdi_op_batch_norm ? TDI_BATCH_NORM_RESIDUAL : TDI_BATCH_NORM_INFERENCE_RESIDUAL);
    snprintf(text, size, "epsilon %g%s%s", (double)epsilon_of(node->attrs), adds ? ", add" : "",
             rectifies(node->attrs) ? ", relu" : "");
}

/* ---- backward ---- */

static td_status grad_stats_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(check_x(node, error));
    TDI_TRY(tdi_want_shape(node, 1, &node->in[0]->shape, error));
    TDI_TRY(check_groups(node, 2, 3, error));
    TDI_TRY(check_vectors(node, 3, 5, error));
    int64_t groups = groups_of(&node->in[2]->shape);
    node->shape = (td_shape){.rank = 2, .dim = {2 * groups, tdi_last_extent(&node->in[0]->shape)}};
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

/* dy[i], or 0 where the rectifier stops it. */
static double passed(const tdi_call *call, int64_t i, const float *stats, const float *gamma, const float *beta,
                     int64_t channels)
{
    const float *x = call->in[0].data, *dy = call->in[1].data;
    bool stops = rectifies(call->attrs) &&
                 !(normalized(x[i], stats, gamma, beta, channels, i % channels, epsilon_of(call->attrs)) > 0);
    return stops ? 0 : (double)dy[i];
}

/* The two sums over the elements [begin, end) of x. */
static void grad_sums_of(const tdi_call *call, int64_t begin, int64_t end, const float *stats, float *out)
{
    const float *x = call->in[0].data, *gamma = call->in[3].data, *beta = call->in[4].data;
    int64_t channels = call->out.shape.dim[1];
    for (int64_t c = 0; c < channels; c++) {
        double inverse = inverse_deviation(stats, channels, c, epsilon_of(call->attrs)), sum = 0, dot = 0;
        for (int64_t i = begin + c; i < end; i += channels) {
            double g = passed(call, i, stats, gamma, beta, channels);
            sum += g;
            dot += g * ((double)x[i] - (double)stats[channels + c]) * inverse;
        }
        out[c] = (float)sum;
        out[channels + c] = (float)dot;
    }
}

static void grad_stats_reference(const tdi_call *call)
{
    const td_shape *shape = &call->in[0].shape;
    int64_t groups = groups_of(&call->in[2].shape), channels = call->out.shape.dim[1];
    for (int64_t g = 0; g < groups; g++)
        grad_sums_of(call, first_element(call, shape, g, groups), first_element(call, shape, g + 1, groups),
                     (const float *)call->in[2].data + 3 * channels * g, (float *)call->out.data + 2 * channels * g);
}

static double grad_stats_flops(const tdi_call *call)
{
    return 5.0 * tdi_flops_per_input(call);
}

static td_status grad_input_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(check_x(node, error));
    TDI_TRY(tdi_want_shape(node, 1, &node->in[0]->shape, error));
    TDI_TRY(check_groups(node, 2, 3, error));
    TDI_TRY(check_table(node, 3, 2 * groups_of(&node->in[2]->shape), error));
    TDI_TRY(check_vectors(node, 4, 6, error));
    node->shape = node->in[0]->shape;
    node->dtype = tdi_float_dtype(node);
    return TD_OK;
}

static void grad_input_reference(const tdi_call *call)
{
    const float *x = call->in[0].data, *stats = call->in[2].data, *sums = call->in[3].data;
    const float *gamma = call->in[4].data, *beta = call->in[5].data;
    const td_shape *shape = &call->out.shape;
    float *out = call->out.data;
    int64_t groups = groups_of(&call->in[2].shape), channels = tdi_last_extent(shape);
    for (int64_t g = 0; g < groups; g++, stats += 3 * channels, sums += 2 * channels)
        for (int64_t i = first_element(call, shape, g, groups); i < first_element(call, shape, g + 1, groups); i++) {
            int64_t c = i % channels;
            double inverse = inverse_deviation(stats, channels, c, epsilon_of(call->attrs)), n = (double)stats[c];
            double xhat = ((double)x[i] - (double)stats[channels + c]) * inverse;
            double d = passed(call, i, stats, gamma, beta, channels) - (double)sums[c] / n -
                       xhat * (double)sums[channels + c] / n;
            out[i] = (float)(d * inverse * (gamma ? (double)gamma[c] : 1));
        }
}

static double grad_input_flops(const tdi_call *call)
{
    return 6.0 * (double)tdi_shape_elements(&call->out.shape);
}

/* ---- inference ---- */

static td_status inference_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(check_x(node, error));
    TDI_TRY(check_vectors(node, 1, 5, error));
    return normalized_infer(node, TDI_BATCH_NORM_INFERENCE_RESIDUAL, error);
}

/* The statistics are constants here. */
static void inference_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    tdi_node *x = node->in[0], *mean = node->in[1], *gamma = node->in[3], *beta = node->in[4];
    dy = rectifies(node->attrs) ? tdi_unary_grad(graph, node, dy, TD_RELU) : dy;
    if (node->n_in > TDI_BATCH_NORM_INFERENCE_RESIDUAL)
        dx[TDI_BATCH_NORM_INFERENCE_RESIDUAL] = dy;
    tdi_node *shifted = tdi_affine(graph, node->in[2], 1.0f, epsilon_of(node->attrs));
    tdi_node *inverse = tdi_unary(graph, shifted, TDI_UNARY_RSQRT);
    tdi_node *scale = gamma ? tdi_binary(graph, TDI_MULTIPLY, inverse, gamma) : inverse;
    dx[0] = tdi_binary(graph, TDI_MULTIPLY, dy, scale);
    if (gamma) {
        tdi_node *centred = tdi_binary(graph, TDI_SUBTRACT, x, mean);
        tdi_node *xhat = tdi_binary(graph, TDI_MULTIPLY, centred, inverse);
        dx[3] = tdi_sum_to(graph, tdi_binary(graph, TDI_MULTIPLY, dy, xhat), &gamma->shape);
    }
    dx[4] = beta ? tdi_sum_to(graph, dy, &beta->shape) : NULL;
}

static void inference_reference(const tdi_call *call)
{
    const float *x = call->in[0].data, *mean = call->in[1].data, *variance = call->in[2].data;
    const float *gamma = call->in[3].data, *beta = call->in[4].data;
    const float *residual = residual_of(call, TDI_BATCH_NORM_INFERENCE_RESIDUAL);
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->out.shape), channels = tdi_last_extent(&call->out.shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t c = i % channels;
        double inverse = 1 / sqrt((double)variance[c] + (double)epsilon_of(call->attrs));
        double xhat = ((double)x[i] - (double)mean[c]) * inverse;
        out[i] = ended(call, xhat * (gamma ? (double)gamma[c] : 1) + (beta ? (double)beta[c] : 0), residual, i);
    }
}

/* ---- the ops ---- */

const tdi_op tdi_op_batch_norm = {.name = "batch_norm",
                                  .min_in = 2,
                                  .max_in = 5,
                                  .attrs_size = sizeof(tdi_batch_norm_attrs),
                                  .bfloat16 = 1u | 1u << TDI_BATCH_NORM_RESIDUAL,
                                  .infer = batch_norm_infer,
                                  .gradient = batch_norm_gradient,
                                  .reference = batch_norm_reference,
                                  .flops = batch_norm_flops,
                                  .reads = batch_norm_reads,
                                  .in_place = 1,
                                  .describe = batch_norm_describe,
                                  .cheap = true,
                                  .residual = TDI_BATCH_NORM_RESIDUAL};

const tdi_op tdi_op_batch_norm_grad_stats = {.name = "batch_norm_grad_stats",
                                             .min_in = 3,
                                             .max_in = 5,
                                             .attrs_size = sizeof(tdi_batch_norm_attrs),
                                             .bfloat16 = 3,
                                             .infer = grad_stats_infer,
                                             .no_gradient = "second derivatives are not built",
                                             .reference = grad_stats_reference,
                                             .flops = grad_stats_flops,
                                             .reads = tdi_reads_columns};

const tdi_op tdi_op_batch_norm_grad_input = {.name = "batch_norm_grad_input",
                                             .min_in = 4,
                                             .max_in = 6,
                                             .attrs_size = sizeof(tdi_batch_norm_attrs),
                                             .bfloat16 = 3,
                                             .infer = grad_input_infer,
                                             .no_gradient = "second derivatives are not built",
                                             .reference = grad_input_reference,
                                             .flops = grad_input_flops,
                                             .reads = batch_norm_reads,
                                             .in_place = 1};

const tdi_op tdi_op_batch_norm_inference = {.name = "batch_norm_inference",
                                            .min_in = 3,
                                            .max_in = 6,
                                            .attrs_size = sizeof(tdi_batch_norm_attrs),
                                            .bfloat16 = 1u | 1u << TDI_BATCH_NORM_INFERENCE_RESIDUAL,
                                            .infer = inference_infer,
                                            .gradient = inference_gradient,
                                            .reference = inference_reference,
                                            .flops = batch_norm_flops,
                                            .reads = batch_norm_reads,
                                            .in_place = 1,
                                            .describe = batch_norm_describe,
                                            .residual = TDI_BATCH_NORM_INFERENCE_RESIDUAL};

tdi_node *tdi_batch_norm(tdi_graph *graph, tdi_node *x, tdi_node *stats, tdi_node *gamma, tdi_node *beta, float epsilon)
{
    return tdi_node_create(graph, &tdi_op_batch_norm, &(tdi_batch_norm_attrs){.epsilon = epsilon}, 4,
                           (tdi_node *[]){x, stats, gamma, beta});
}

tdi_node *tdi_batch_norm_grad_stats(tdi_graph *graph, tdi_node *x, tdi_node *dy, tdi_node *stats, tdi_node *gamma,
                                    tdi_node *beta, float epsilon, bool relu)
{
    return tdi_node_create(graph, &tdi_op_batch_norm_grad_stats,
                           &(tdi_batch_norm_attrs){.epsilon = epsilon, .relu = relu}, 5,
                           (tdi_node *[]){x, dy, stats, gamma, beta});
}

tdi_node *tdi_batch_norm_grad_input(tdi_graph *graph, tdi_node *x, tdi_node *dy, tdi_node *stats, tdi_node *sums,
                                    tdi_node *gamma, tdi_node *beta, float epsilon, bool relu)
{
    return tdi_node_create(graph, &tdi_op_batch_norm_grad_input,
                           &(tdi_batch_norm_attrs){.epsilon = epsilon, .relu = relu}, 6,
                           (tdi_node *[]){x, dy, stats, sums, gamma, beta});
}

tdi_node *tdi_batch_norm_inference(tdi_graph *graph, tdi_node *x, tdi_node *mean, tdi_node *variance, tdi_node *gamma,
                                   tdi_node *beta, float epsilon)
{
    return tdi_node_create(graph, &tdi_op_batch_norm_inference, &(tdi_batch_norm_attrs){.epsilon = epsilon}, 5,
                           (tdi_node *[]){x, mean, variance, gamma, beta});
}
