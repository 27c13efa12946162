/* Updates honour their range: made in pieces they give the bits of the whole, and touch nothing outside. The tree of a
 * sum is the promised one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "passes/passes.h"
#include "plan/threads/place.h"
#include "support/op_case.h"

static op_run *before_update(const op_case *c)
{
    op_run *run = op_run_create(c, (op_run_options){.rows = -1});
    evaluation_run_before(run->evaluation, run->node);
    return run;
}

static void run_range(op_run *run, tdi_split split, int64_t begin, int64_t end)
{
    tdi_call call = *evaluation_call(run->evaluation, run->node, 0);
    call.split = (int)split;
    call.begin = begin;
    call.end = end;
    call.run(&call);
}

static bool inside(const td_shape *shape, tdi_split split, int64_t end, int64_t i)
{
    int64_t per_row = tdi_shape_elements(shape) / shape->dim[0];
    if (split == TDI_ROWS)
        return i / per_row < end;
    return (split == TDI_COLUMNS ? i % shape->dim[shape->rank - 1] : i) < end;
}

static void check_pieces(const op_case *c, tdi_split split)
{
    op_run *whole = before_update(c), *pieces = before_update(c), *fresh = before_update(c);
    const tdi_call *call = evaluation_call(pieces->evaluation, pieces->node, 0);
    const float *expected = evaluation_value(whole->evaluation, whole->node, 0);
    const float *untouched = evaluation_value(fresh->evaluation, fresh->node, 0), *given = call->out.data;
    int64_t extent = tdi_split_extent(split, &call->out.shape), middle = extent / 3 + 1;
    int64_t count = tdi_shape_elements(&call->out.shape);
    run_range(whole, TDI_WHOLE, 0, 1);
    middle = middle < extent ? middle : extent;
    run_range(pieces, split, 0, middle);
    for (int64_t i = 0; i < count; i++)
        assert_memory_equal(inside(&call->out.shape, split, middle, i) ? &expected[i] : &untouched[i], &given[i],
                            sizeof(float));
    run_range(pieces, split, middle, extent);
    assert_memory_equal(expected, given, (size_t)count * sizeof(float));
    for (int s = 0; s < 3; s++)
        assert_memory_equal(whole->slots[s], pieces->slots[s], (size_t)whole->variable_floats * sizeof(float));
    op_run_free(whole);
    op_run_free(pieces);
    op_run_free(fresh);
}

static void pieces_make_the_whole(void **state)
{
    (void)state;
    static const tdi_op *const ranged[] = {&tdi_op_sgd,
                                           &tdi_op_adam,
                                           &tdi_op_regularize,
                                           &tdi_op_reduce_scatter,
                                           &tdi_op_batch_norm_moving,
                                           &tdi_op_gather_update,
                                           &tdi_op_matmul_update,
                                           &tdi_op_joint_update};
    int checked = 0;
    for (int i = 0; op_case_at(i); i++)
        for (size_t r = 0; r < sizeof ranged / sizeof *ranged; r++)
            for (int split = TDI_ROWS; op_case_at(i)->op == ranged[r] && split <= TDI_FLAT; split++, checked++)
                check_pieces(op_case_at(i), (tdi_split)split);
    assert_true(checked >= 30);
}

/* Numbers whose sum depends on the order. */
static void trees_are_balanced(void **state)
{
    (void)state;
    float v[7] = {1.0f, 0x1p-24f, 0x1p-24f, 0x1p-24f, -1.0f, 0x1p-25f, 0x1p-26f};
    float *of[7] = {&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6]};
    assert_true(tdi_tree_sum(of, 1, 0) == v[0]);
    assert_true(tdi_tree_sum(of, 2, 0) == v[0] + v[1]);
    assert_true(tdi_tree_sum(of, 3, 0) == (v[0] + v[1]) + v[2]);
    assert_true(tdi_tree_sum(of, 4, 0) == (v[0] + v[1]) + (v[2] + v[3]));
    assert_true(tdi_tree_sum(of, 5, 0) == ((v[0] + v[1]) + (v[2] + v[3])) + v[4]);
    assert_true(tdi_tree_sum(of, 6, 0) == ((v[0] + v[1]) + (v[2] + v[3])) + (v[4] + v[5]));
    assert_true(tdi_tree_sum(of, 7, 0) == ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6]));
    assert_true(tdi_tree_sum(of, 4, 0) != ((v[0] + v[1]) + v[2]) + v[3]);
}

static const op_case *case_named(const tdi_op *op, const char *name)
{
    for (int i = 0; op_case_at(i); i++)
        if (op_case_at(i)->op == op && !strcmp(op_case_at(i)->name, name))
            return op_case_at(i);
    fail_msg("no case \"%s\" of %s", name, op->name);
    return NULL;
}

/* The shards' gradients x' . dy add up to that of the whole batch. */
static void reduction_equals_one_shard(void **state)
{
    (void)state;
    op_run *run = op_run_create(case_named(&tdi_op_reduce_scatter, "uneven parts"), (op_run_options){.rows = -1});
    evaluation_run(run->evaluation);
    const float *sum = evaluation_value(run->evaluation, run->node, 0);
    int64_t count;
    const float *x = op_run_leaf(run, 0, &count), *dy = op_run_leaf(run, 1, &count);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 7; j++) {
            double expected = 0;
            for (int64_t r = 0; r < run->all_rows; r++)
                expected += (double)x[r * 5 + i] * (double)dy[r * 7 + j];
            assert_true(fabs((double)sum[i * 7 + j] - expected) <= 1e-5);
        }
    op_run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_make_the_whole), cmocka_unit_test(trees_are_balanced),
                                       cmocka_unit_test(reduction_equals_one_shard)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
