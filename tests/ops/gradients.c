/* Every gradient rule against central differences of the references, with the cases' own rows and with one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/op_case.h"

enum { MOST_ELEMENTS = 60 }; /* of a leaf are tried */

static double element(const tdi_call *call, int64_t i)
{
    return call->out.dtype == TD_FLOAT64 ? ((const double *)call->out.data)[i]
                                         : (double)((const float *)call->out.data)[i];
}

/* sum over shards and elements of the node times the loss's weights, in double precision. */
static double loss(op_run *run)
{
    double sum = 0;
    evaluation_run(run->evaluation);
    for (int p = 0; p < run->shards; p++) {
        const tdi_call *call = evaluation_call(run->evaluation, run->node, p);
        const float *weights = op_run_loss_weights(run, p);
        int64_t count = tdi_shape_elements(&call->out.shape);
        for (int64_t i = 0; i < count; i++)
            sum += element(call, i) * (double)weights[i];
    }
    return sum;
}

static double central(op_run *run, float *x, float h)
{
    float at = *x, above = at + h, below = at - h;
    *x = above;
    double high = loss(run);
    *x = below;
    double low = loss(run);
    *x = at;
    return (high - low) / ((double)above - (double)below);
}

/* Richardson's extrapolation: the error is of fourth order. */
static double numeric(op_run *run, float *x)
{
    return (4 * central(run, x, 0.01f) - central(run, x, 0.02f)) / 3;
}

/* Element i of a leaf's gradient: of a weight, the shards' sum. */
static double analytic(const op_run *run, int leaf, int64_t i)
{
    const tdi_node *node = run->gradient[leaf];
    double sum = 0;
    if (!node)
        return 0;
    for (int p = 0; p < run->shards; p++) {
        const tdi_call *call = evaluation_call(run->evaluation, node, p);
        const float *value = call->out.data;
        int64_t count = tdi_shape_elements(&call->out.shape);
        if (!tdi_shape_has_batch(&node->shape))
            sum += (double)value[i];
        else if (i >= 0 && i < count)
            return (double)value[i];
        else
            i -= count;
    }
    return sum;
}

static void check_leaf(op_run *run, int leaf)
{
    int64_t count;
    float *x = op_run_leaf(run, leaf, &count);
    if (run->gradient[leaf])
        assert_true(tdi_shape_equal(&run->gradient[leaf]->shape, &run->leaf[leaf]->shape));
    int64_t step = count / MOST_ELEMENTS + 1;
    for (int64_t i = 0; i < count; i += step) {
        double expected = numeric(run, &x[i]), size = fabs(expected) > 1 ? fabs(expected) : 1;
        evaluation_run(run->evaluation);
        double given = analytic(run, leaf, i);
        if (!(fabs(given - expected) <= 1e-3 * size))
            fail_msg("case \"%s\" of %s, leaf %d, element %d: gradient %g, differences say %g", run->c->name,
                     run->c->op->name, leaf, (int)i, given, expected);
    }
}

static void check_case(const op_case *c, int64_t rows)
{
    op_run *run = op_run_create(c, (op_run_options){.rows = rows, .gradients = true});
    tdi_error error = {0};
    if (tdi_graph_verify(run->graph, &error) != TD_OK)
        fail_msg("case \"%s\" of %s: %s", c->name, c->op->name, error.message);
    for (int leaf = 0; leaf < c->n_leaves; leaf++)
        if (run->leaf[leaf]->dtype == TD_FLOAT32 && !c->leaf[leaf].constant)
            check_leaf(run, leaf);
    op_run_free(run);
}

static void gradients_agree_with_differences(void **state)
{
    (void)state;
    for (int i = 0; op_case_at(i); i++) {
        if (!op_case_at(i)->op->gradient)
            continue;
        check_case(op_case_at(i), -1);
        check_case(op_case_at(i), 1);
        check_case(op_case_at(i), 0);
    }
}

/* What a tie does cannot be seen by differences: JAX shares the gradient. */
static void ties_share_the_gradient(void **state)
{
    (void)state;
    static const tdi_reduce_attrs attrs = {TDI_MAX, 2u, false};
    static const op_case tie = {.op = &tdi_op_reduce,
                                .name = "tie",
                                .attrs = &attrs,
                                .n_leaves = 1,
                                .leaf = {{.shape = OP_DIMS(TDI_BATCH, 4), .fill = OP_ZERO}}};
    op_run *run = op_run_create(&tie, (op_run_options){.rows = 2, .gradients = true});
    evaluation_run(run->evaluation);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(analytic(run, 0, i) - (double)op_run_loss_weights(run, 0)[i / 4] / 4) <= 1e-7);
    op_run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_agree_with_differences),
                                       cmocka_unit_test(ties_share_the_gradient)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
