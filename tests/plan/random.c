/* random.c - graphs made at random of convolutions, normalizations, sums and activations, whose values are read once or
 * several times, now or later: plans of one and more threads make what the references make. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "passes/passes.h"
#include "support/evaluate.h"
#include "support/lone_plan.h"

enum { ROWS = 3, H = 7, W = 9, WIDEST = 96, MOST_VALUES = 24, MOST_INPUTS = 64, GRAPHS = 60, OPS = 16 };

typedef struct maker {
    tdi_graph *graph;
    uint64_t random;
    tdi_node *values[MOST_VALUES];
    int n_values;
    float *inputs[MOST_INPUTS];
    int n_inputs;
} maker;

/* Knuth's linear congruential generator, the high bits: below n. */
static int pick(maker *m, int n)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (int)((m->random >> 33) % (uint64_t)n);
}

static tdi_node *input(maker *m, td_shape shape, float from, float to)
{
    td_shape there = tdi_shape_at(&shape, ROWS);
    int64_t count = tdi_shape_elements(&there);
    assert_true(m->n_inputs < MOST_INPUTS);
    float *numbers = calloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = from + (to - from) * (float)pick(m, 1000) / 1000;
    m->inputs[m->n_inputs] = numbers;
    return tdi_input(m->graph, m->n_inputs++, &shape, TD_FLOAT32);
}

static int64_t channels_of(const tdi_node *value)
{
    return value->shape.dim[3];
}

/* One of the last values, mostly. */
static tdi_node *any_value(maker *m)
{
    int back = pick(m, 4) ? pick(m, m->n_values < 3 ? m->n_values : 3) : pick(m, m->n_values);
    return m->values[m->n_values - 1 - back];
}

static tdi_node *convolution(maker *m, tdi_node *x)
{
    static const int64_t widths[] = {8, 32, 64, 64, WIDEST};
    int64_t side = pick(m, 2) ? 1 : 3, c = channels_of(x), f = widths[pick(m, 5)];
    float most = 1 / sqrtf((float)(side * side * c));
    tdi_conv2d_attrs attrs = {
        .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1, .padding = TD_SAME};
    return tdi_conv2d(m->graph, x, input(m, (td_shape){4, {side, side, c, f}}, -most, most), &attrs);
}

static tdi_node *normalization(maker *m, tdi_node *x)
{
    td_shape channels = {1, {channels_of(x)}};
    bool scales = pick(m, 2);
    tdi_node *gamma = scales ? input(m, channels, 0.5f, 1) : NULL, *beta = scales ? input(m, channels, -1, 1) : NULL;
    if (pick(m, 3) == 0)
        return tdi_batch_norm(m->graph, x, tdi_batch_norm_stats(m->graph, x, 1 + pick(m, ROWS + 1)), gamma, beta,
                              1e-3f);
    return tdi_batch_norm_inference(m->graph, x, input(m, channels, -1, 1), input(m, channels, 1, 2), gamma, beta,
                                    1e-3f);
}

/* With another value of the same shape, where there is one. */
static tdi_node *sum(maker *m, tdi_node *x)
{
    for (int i = 0; i < MOST_VALUES; i++) {
        tdi_node *other = m->values[pick(m, m->n_values)];
        if (other != x && channels_of(other) == channels_of(x))
            return pick(m, 2) ? tdi_binary(m->graph, TDI_ADD, x, other) : tdi_binary(m->graph, TDI_ADD, other, x);
    }
    return tdi_unary(m->graph, x, TD_TANH);
}

static tdi_node *next_value(maker *m)
{
    tdi_node *x = any_value(m);
    switch (pick(m, 6)) {
    case 0:
    case 1:
        return convolution(m, x);
    case 2:
    case 3:
        return normalization(m, x);
    case 4:
        return sum(m, x);
    default:
        return tdi_unary(m->graph, x, TD_RELU);
    }
}

static void keep(maker *m, tdi_node *value)
{
    assert_string_equal(m->graph->error.message, "");
    m->values[m->n_values++] = value;
}

/* Of the values that are left over the last are added too, so that more is computed than one path. */
static const tdi_node *build(maker *m)
{
    keep(m, input(m, (td_shape){4, {TDI_BATCH, H, W, 32}}, -1, 1));
    keep(m, convolution(m, m->values[0]));
    for (int i = 0; i < OPS; i++)
        keep(m, next_value(m));
    tdi_node *last = sum(m, m->values[m->n_values - 1]);
    assert_non_null(last);
    return lone_plan_output(m->graph, tdi_unary(m->graph, last, TD_RELU));
}

/* Returns how often the threads meet. */
static int check_threads(const maker *m, int threads, const float *expected, size_t count)
{
    static float values[ROWS * H * W * WIDEST];
    lone_plan p = lone_plan_create(m->graph, ROWS, threads);
    char *text = lone_plan_explain(&p);
    tdi_plan_op op;
    int meetings = 0;
    for (int s = 0; s < tdi_plan_steps(p.plan); s++)
        meetings += tdi_plan_op_at(p.plan, s, &op) && op.barrier;
    float most = 1;
    lone_plan_run(&p, (const float *const *)m->inputs, m->n_inputs, values, count);
    for (size_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(expected[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(values[i] - expected[i]) <= 1e-4f * most))
            fail_msg("%d threads, element %zu: %.8g, not %.8g\n%s", threads, i, (double)values[i], (double)expected[i],
                     text);
    lone_plan_free(&p);
    free(text);
    return meetings;
}

static int check_graph(int number)
{
    static const int threads[] = {1, 2, 3, ROWS + 1};
    maker m = {.graph = tdi_graph_create(), .random = (uint64_t)number};
    int64_t rows = ROWS;
    int meetings = 0;
    assert_non_null(m.graph);
    m.graph->shards = 1;
    const tdi_node *node = build(&m);
    assert_int_equal(tdi_fold(m.graph, NULL), TD_OK);
    evaluation *e = evaluation_create(
        &(evaluation_spec){.graph = m.graph, .shards = 1, .rows = &rows, .inputs = (const void *const *)m.inputs});
    evaluation_run(e);
    size_t count = (size_t)(ROWS * H * W * channels_of(node));
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        meetings += check_threads(&m, threads[i], evaluation_value(e, node, 0), count);
    evaluation_free(e);
    tdi_graph_free(m.graph);
    for (int i = 0; i < m.n_inputs; i++)
        free(m.inputs[i]);
    return meetings;
}

static void random_graphs(void **state)
{
    (void)state;
    int meetings = 0;
    for (int i = 1; i <= GRAPHS; i++)
        meetings += check_graph(i);
    assert_true(meetings > GRAPHS); /* else the graphs are of little use */
    print_message("%d graphs, %d meetings of threads\n", GRAPHS, meetings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
