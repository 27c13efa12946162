/* dropout.c - zeroes elements at random and scales the rest, by 1 / (1 - rate).
 *
 * Whether an element is kept is a function of (seed, stream, step, row in the global batch, element). So it does not
 * depend on how the batch is cut into shards, and the gradient is the same op on dy. */
#include "ops/common.h"

static td_status dropout_infer(tdi_node *node, tdi_error *error)
{
    const tdi_dropout_attrs *attrs = node->attrs;
    TDI_TRY(tdi_want_floats(node, error));
    if (!(attrs->rate >= 0.0f && attrs->rate < 1.0f))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "rate %g: it must be at least 0 and less than 1",
                        (double)attrs->rate);
    if (attrs->number >= TDI_DROPOUT_NUMBERS)
        return tdi_fail(error, TD_INTERNAL, "number %d: the control block has %d", attrs->number, TDI_DROPOUT_NUMBERS);
    if (!tdi_shape_has_batch(&node->in[0]->shape))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "of %s, which has no batch: draws are keyed by row",
                        TDI_TEXT(&node->in[0]->shape));
    node->shape = node->in[0]->shape;
    node->dtype = tdi_float_dtype(node);
    return TD_OK;
}

static void dropout_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_dropout(graph, dy, node->attrs);
}

/* splitmix64's finisher: neighbouring streams get unrelated keys. */
static uint64_t mixed(uint64_t stream)
{
    uint64_t z = (stream + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t tdi_dropout_key(const tdi_control *control, uint64_t stream)
{
    return control->seed ^ mixed(stream);
}

tdi_philox tdi_dropout_draw(const tdi_control *control, uint64_t stream, uint64_t quad)
{
    return tdi_philox_block(tdi_dropout_key(control, stream), (uint64_t)control->step, quad);
}

tdi_dropout_numbers tdi_dropout_numbers_of(float rate)
{
    return (tdi_dropout_numbers){.rate = rate, .scale = 1.0f / (1.0f - rate)};
}

static void dropout_numbers(const void *attributes, tdi_control *control)
{
    const tdi_dropout_attrs *attrs = attributes;
    if (attrs->number >= 0)
        control->dropout[attrs->number] = tdi_dropout_numbers_of(attrs->rate);
}

static void dropout_reference(const tdi_call *call)
{
    const tdi_dropout_attrs *attrs = call->attrs;
    const float *x = call->in[0].data;
    float *out = call->out.data;
    tdi_dropout_numbers numbers = tdi_dropout_of(call);
    int64_t count = tdi_shape_elements(&call->out.shape);
    int64_t first = count ? call->shard->first_row * (count / call->out.shape.dim[0]) : 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t element = (uint64_t)(first + i);
        tdi_philox draw = tdi_dropout_draw(call->control, attrs->stream, element / 4);
        out[i] = tdi_uniform(draw.word[element % 4]) >= numbers.rate ? x[i] * numbers.scale : 0.0f;
    }
}

static void dropout_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "rate %g", (double)((const tdi_dropout_attrs *)node->attrs)->rate);
}

const tdi_op tdi_op_dropout = {.name = "dropout",
                               .min_in = 1,
                               .max_in = 1,
                               .attrs_size = sizeof(tdi_dropout_attrs),
                               .bfloat16 = 1,
                               .infer = dropout_infer,
                               .gradient = dropout_gradient,
                               .reference = dropout_reference,
                               .numbers = dropout_numbers,
                               .reads = tdi_reads_same,
                               .in_place = 1,
                               .describe = dropout_describe,
                               .cheap = true};

tdi_node *tdi_dropout(tdi_graph *graph, tdi_node *x, const tdi_dropout_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_dropout, attrs, 1, &x);
}
