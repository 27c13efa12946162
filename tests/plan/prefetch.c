/* prefetch.c - the first convolution asks for the rows of later weights that other workers update: all of those, none
 * of its own worker's, in the order in which they are multiplied with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/plan_struct.h"
#include "runtime/runtime_struct.h"

enum { SIDE = 28, BATCH = 48, CLASSES = 10, WEIGHTS = 2 };

static float x[BATCH * SIDE * SIDE], y[BATCH];

/* Rows of 4 columns, which no convolution of another kind is likely to take. */
static td_model *make_model(td_context *context, td_activation activation, int units, int workers)
{
    td_tensor *in = td_input(context, TD_SHAPE(SIDE, SIDE, 1));
    td_tensor *out = td_conv2d(in, 6, 4, .padding = TD_SAME, .activation = activation);
    out = td_dense(td_flatten(td_average_pooling2d(out, 4)), units, .activation = TD_TANH);
    td_model *model = td_model_create(in, td_dense(out, CLASSES));
    td_compile(model, .optimizer = td_adam(), .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS);
    assert_string_equal(td_error(context), "");
    tdi_way way = {.division = {.replicas = 1, .parts = workers, .groups = 1, .workers = workers, .lanes = 1}};
    assert_int_equal(tdi_runtime_create(model, &way, &model->runtime, NULL), TD_OK);
    model->free_runtime = tdi_runtime_free;
    return model;
}

static const tdi_call *asking_call(const tdi_plan *plan)
{
    for (int s = 0; s < plan->n_steps; s++)
        if (plan->planned[s].kernel && plan->planned[s].kernel->asks)
            return &plan->planned[s].calls[0];
    fail_msg("no kernel can ask");
    return NULL;
}

/* Updates of dense weights, the first layer's first; returns how many there are. */
static int find_updates(const tdi_plan *plan, const tdi_planned **updates)
{
    int count = 0;
    for (int s = plan->n_steps - 1; s >= 0; s--)
        if (plan->planned[s].node && plan->planned[s].node->op == &tdi_op_joint_update && count < WEIGHTS)
            updates[count++] = &plan->planned[s];
    return count;
}

/* Takes the regions of this weight from the front of a list: they and the worker's own rows are the whole of it. */
static void check_weight(const tdi_planned *update, const tdi_soon **soon, const tdi_soon *end)
{
    const tdi_call *call = &update->calls[0];
    const float *values = call->out.data;
    int64_t elements = tdi_shape_elements(&call->out.shape), row = elements / call->out.shape.dim[0], at = 0;
    while (at < elements) {
        if (at == call->begin * row && call->end > call->begin) {
            at = call->end * row;
            continue;
        }
        assert_true(*soon < end);
        assert_ptr_equal((*soon)->at, values + at);
        at += (*soon)++->count;
    }
    assert_int_equal(at, elements);
}

static void check_part(const tdi_plan *plan, int asked)
{
    const tdi_planned *updates[WEIGHTS];
    const tdi_call *asks = asking_call(plan);
    const tdi_soon *soon = asks->soon, *end = asks->soon + asks->n_soon;
    int count = find_updates(plan, updates);
    assert_int_equal(count, WEIGHTS);
    for (int i = WEIGHTS - asked; i < WEIGHTS; i++)
        check_weight(updates[i], &soon, end);
    assert_ptr_equal(soon, end);
}

/* The last `asked` of the weights are asked for. */
static void check(td_activation activation, int units, int workers, int asked)
{
    tdi_plan *plans[TDI_MAX_PARTS];
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, activation, units, workers);
    assert_int_equal(td_train_on_batch(model, BATCH, x, y, NULL), TD_OK);
    assert_int_equal(tdi_runtime_prepare(model->runtime, TDI_TRAIN, BATCH, plans, NULL), TD_OK);
    for (int part = 0; part < workers; part++)
        check_part(plans[part], asked);
    td_context_free(context);
}

static void rows_of_others_are_asked_for(void **state)
{
    (void)state;
    check(TD_TANH, 40, 2, WEIGHTS);
    check(TD_SIGMOID, 40, 3, WEIGHTS);
}

/* What would not fit into the cache. */
static void a_large_weight_is_not(void **state)
{
    (void)state;
    check(TD_TANH, 1000, 2, 1);
}

static void nor_anything_where_nothing_is_computed_meanwhile(void **state)
{
    (void)state;
    check(TD_RELU, 40, 2, 0);
}

static void nor_is_anything_by_one_worker(void **state)
{
    (void)state;
    tdi_plan *plan;
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, TD_TANH, 40, 1);
    assert_int_equal(td_train_on_batch(model, BATCH, x, y, NULL), TD_OK);
    assert_int_equal(tdi_runtime_prepare(model->runtime, TDI_TRAIN, BATCH, &plan, NULL), TD_OK);
    assert_int_equal(asking_call(plan)->n_soon, 0);
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_others_are_asked_for),
        cmocka_unit_test(a_large_weight_is_not),
        cmocka_unit_test(nor_anything_where_nothing_is_computed_meanwhile),
        cmocka_unit_test(nor_is_anything_by_one_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
