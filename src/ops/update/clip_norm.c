/* clip_norm.c - gradients scaled down to a norm of at most `limit`, as Keras's clipnorm and global_clipnorm.
 *
 * The squares are added up over fixed blocks of TDI_NORM_BLOCK elements of each variable, then over blocks: so the bits
 * are the same however many threads and replicas compute them. All updates wait for the end of backpropagation and two
 * meetings: one when the blocks' sums are there, one when the factors are. */
#include "ops/update/optimizer.h"

/* ---- squared_norm ---- */

static td_status squared_norm_infer(tdi_node *node, tdi_error *error)
{
    node->shape = (td_shape){.rank = 1, .dim = {tdi_norm_blocks(tdi_shape_elements(&node->in[0]->shape))}};
    node->dtype = TD_FLOAT32;
    return tdi_want_floats(node, error);
}

static void squared_norm_reference(const tdi_call *call)
{
    const float *x = call->in[0].data;
    int64_t elements = tdi_shape_elements(&call->in[0].shape);
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t b = runs.first; b < runs.first + runs.length; b++) {
        double sum = 0;
        for (int64_t i = b * TDI_NORM_BLOCK; i < (b + 1) * TDI_NORM_BLOCK && i < elements; i++)
            sum += (double)x[i] * (double)x[i];
        ((float *)call->out.data)[b] = (float)sum;
    }
}

static double squared_norm_flops(const tdi_call *call)
{
    return 2.0 * tdi_flops_per_input(call);
}

static tdi_split squared_norm_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    (void)i;
    (void)split;
    return TDI_WHOLE;
}

const tdi_op tdi_op_squared_norm = {.name = "squared_norm",
                                    .min_in = 1,
                                    .max_in = 1,
                                    .infer = squared_norm_infer,
                                    .no_gradient = "it is part of an update",
                                    .reference = squared_norm_reference,
                                    .flops = squared_norm_flops,
                                    .reads = squared_norm_reads,
                                    .dealt = true,
                                    .share = TDI_SHARE_ROWS,
                                    .update_rows = true,
                                    .read_by_all = true};

tdi_node *tdi_squared_norm(tdi_graph *graph, tdi_node *gradient, tdi_variable *variable)
{
    tdi_node *node = tdi_node_create(graph, &tdi_op_squared_norm, NULL, 1, &gradient);
    if (node) {
        node->home = TDI_HOME_EXCHANGE;
        node->variable = variable;
        node->update_phase = true;
    }
    return node;
}

/* ---- clip_factor ---- */

static td_status clip_factor_infer(tdi_node *node, tdi_error *error)
{
    node->shape = (td_shape){0};
    node->dtype = TD_FLOAT32;
    return tdi_want_floats(node, error);
}

static void clip_factor_numbers(const void *attrs, tdi_control *control)
{
    control->optimizer.norm = ((const tdi_clip_factor_attrs *)attrs)->limit;
}

/* As in Keras, a global norm that is not finite gives NaN. */
static void clip_factor_reference(const tdi_call *call)
{
    const tdi_clip_factor_attrs *attrs = call->attrs;
    double sum = 0;
    for (int i = 0; i < call->n_in; i++)
        for (int64_t b = 0; b < tdi_shape_elements(&call->in[i].shape); b++)
            sum += (double)((const float *)call->in[i].data)[b];
    float norm = sqrtf((float)sum), limit = tdi_optimizer_of(call)->norm;
    float factor = limit / (norm > limit ? norm : limit);
    *(float *)call->out.data = attrs->global ? factor + (norm - norm) : factor;
}

static void clip_factor_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_clip_factor_attrs *attrs = node->attrs;
    snprintf(text, size, "%sclipnorm %g", attrs->global ? "global_" : "", (double)attrs->limit);
}

const tdi_op tdi_op_clip_factor = {.name = "clip_factor",
                                   .min_in = 1,
                                   .max_in = -1,
                                   .attrs_size = sizeof(tdi_clip_factor_attrs),
                                   .infer = clip_factor_infer,
                                   .no_gradient = "it is part of an update",
                                   .reference = clip_factor_reference,
                                   .numbers = clip_factor_numbers,
                                   .flops = tdi_flops_none,
                                   .describe = clip_factor_describe,
                                   .read_by_all = true};

tdi_node *tdi_clip_factor(tdi_graph *graph, int count, tdi_node *const *squared_norms, float limit, bool global)
{
    tdi_node *node =
        tdi_node_create(graph, &tdi_op_clip_factor, &(tdi_clip_factor_attrs){limit, global}, count, squared_norms);
    if (node) {
        node->home = TDI_HOME_EXCHANGE;
        node->update_phase = true;
    }
    return node;
}

/* ---- clip_by_norm ---- */

static td_status clip_by_norm_infer(tdi_node *node, tdi_error *error)
{
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    TDI_TRY(tdi_want_rank(node, 1, 0, error));
    return tdi_want_floats(node, error);
}

static void clip_by_norm_reference(const tdi_call *call)
{
    const float *gradient = call->in[0].data;
    float *out = call->out.data, factor = *(const float *)call->in[1].data;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = runs.first + r * runs.stride, end = i + runs.length; i < end; i++)
            out[i] = gradient[i] * factor;
}

static tdi_split clip_by_norm_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    return i == 0 ? split : TDI_WHOLE;
}

const tdi_op tdi_op_clip_by_norm = {.name = "clip_by_norm",
                                    .min_in = 2,
                                    .max_in = 2,
                                    .infer = clip_by_norm_infer,
                                    .no_gradient = "it is part of an update",
                                    .reference = clip_by_norm_reference,
                                    .reads = clip_by_norm_reads,
                                    .in_place = 1};

tdi_node *tdi_clip_by_norm(tdi_graph *graph, tdi_node *gradient, tdi_node *factor, tdi_variable *variable)
{
    tdi_node *in[] = {gradient, factor};
    return tdi_reduced_gradient(tdi_node_create(graph, &tdi_op_clip_by_norm, NULL, 2, in), variable);
}
