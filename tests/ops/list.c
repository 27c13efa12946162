/* Every op has a case, and either a gradient or a reason for having none; every case builds, passes the verifier, and
 * runs with its own rows, with one row and with none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/op_case.h"

static int cases_of(const tdi_op *op)
{
    int count = 0;
    for (int i = 0; op_case_at(i); i++)
        count += op_case_at(i)->op == op;
    return count;
}

static void every_op_is_complete(void **state)
{
    (void)state;
    for (const tdi_op *const *op = tdi_ops; *op; op++) {
        if (!cases_of(*op))
            fail_msg("op %s has no case", (*op)->name);
        if (!(*op)->gradient == !(*op)->no_gradient)
            fail_msg("op %s: either a gradient or a reason for having none", (*op)->name);
        if (!(*op)->infer || !(*op)->reference)
            fail_msg("op %s lacks its shape rule or its reference", (*op)->name);
    }
}

/* What passes and planners take for granted when they ask an op for its properties. */
static void properties_fit_together(void **state)
{
    (void)state;
    for (const tdi_op *const *at = tdi_ops; *at; at++) {
        const tdi_op *op = *at;
        if (op->leaf + op->constant + op->view + op->extra_output + op->gathers > 1)
            fail_msg("op %s: its value comes from two places", op->name);
        if (op->share != TDI_SHARE_AS_INPUT && !op->reads)
            fail_msg("op %s: a share rule, but it cannot be split", op->name);
        if (op->view && op->min_in < 1)
            fail_msg("op %s: a view of nothing", op->name);
        if (op->epilogue && (op->epilogue + sizeof(int) > op->attrs_size || op->max_in < 3))
            fail_msg("op %s: no place for the activation or the bias", op->name);
        if (op->residual && op->residual >= op->max_in)
            fail_msg("op %s: no input for what is added", op->name);
        if (op->made_with && op->made_with->max_in < op->max_in + 2)
            fail_msg("op %s: %s takes no extra output", op->name, op->made_with->name);
    }
}

static void names_are_unique(void **state)
{
    (void)state;
    for (const tdi_op *const *a = tdi_ops; *a; a++)
        for (const tdi_op *const *b = a + 1; *b; b++)
            assert_string_not_equal((*a)->name, (*b)->name);
    for (int i = 0; op_case_at(i); i++)
        for (int j = i + 1; op_case_at(j); j++)
            if (op_case_at(i)->op == op_case_at(j)->op && !strcmp(op_case_at(i)->name, op_case_at(j)->name))
                fail_msg("two cases \"%s\" of %s", op_case_at(i)->name, op_case_at(i)->op->name);
}

static bool finite_value(const tdi_call *call)
{
    int64_t count = tdi_shape_elements(&call->out.shape);
    for (int64_t i = 0; i < count; i++) {
        if (call->out.dtype == TD_FLOAT32 && !isfinite(((const float *)call->out.data)[i]))
            return false;
        if (call->out.dtype == TD_FLOAT64 && !isfinite(((const double *)call->out.data)[i]))
            return false;
    }
    return true;
}

static void run_case(const op_case *c, int64_t rows)
{
    op_run *run = op_run_create(c, (op_run_options){.rows = rows});
    tdi_error error = {0};
    if (tdi_graph_verify(run->graph, &error) != TD_OK)
        fail_msg("case \"%s\" of %s: %s", c->name, c->op->name, error.message);
    assert_ptr_equal(run->node->op, c->op);
    evaluation_run(run->evaluation);
    for (int p = 0; p < run->shards; p++)
        if (!finite_value(evaluation_call(run->evaluation, run->node, p)))
            fail_msg("case \"%s\" of %s, %d rows: not finite", c->name, c->op->name, (int)rows);
    op_run_free(run);
}

static void every_case_runs(void **state)
{
    (void)state;
    for (int i = 0; op_case_at(i); i++) {
        run_case(op_case_at(i), -1);
        run_case(op_case_at(i), 1);
        run_case(op_case_at(i), 0);
    }
}

static void every_op_describes_itself(void **state)
{
    (void)state;
    for (int i = 0; op_case_at(i); i++) {
        op_run *run = op_run_create(op_case_at(i), (op_run_options){.rows = -1});
        char text[128] = "", narrow[6] = "";
        if (run->node->op->describe) {
            run->node->op->describe(run->node, text, sizeof text);
            run->node->op->describe(run->node, narrow, sizeof narrow);
            assert_true(text[0] != '\0' && strlen(text) < sizeof text - 1);
            assert_int_equal(strncmp(text, narrow, strlen(narrow)), 0);
        }
        if (run->node->op->flops)
            assert_true(run->node->op->flops(evaluation_call(run->evaluation, run->node, 0)) >= 0);
        op_run_free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_op_is_complete),
                                       cmocka_unit_test(properties_fit_together), cmocka_unit_test(names_are_unique),
                                       cmocka_unit_test(every_case_runs), cmocka_unit_test(every_op_describes_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
