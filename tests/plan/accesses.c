/* accesses.c - which thread accesses which bytes: what counts as the same elements, what conflicts, and where threads
 * therefore meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/threads/accesses.h"
#include "support/lone_plan.h"

enum { ROWS = 6, WIDTH = 256 }; /* enough elements that threads share them */

static const td_shape matrix = {2, {ROWS, WIDTH}}, transposed = {2, {WIDTH, ROWS}}, flat = {1, {ROWS * WIDTH}};

static bool are_same(tdi_dividing a, tdi_dividing b)
{
    bool same = tdi_same_dividing(&a, &b);
    assert_true(same == tdi_same_dividing(&b, &a));
    return same;
}

static void the_same_elements(void **state)
{
    (void)state;
    assert_true(are_same((tdi_dividing){TDI_ROWS, 2, matrix}, (tdi_dividing){TDI_ROWS, 2, matrix}));
    assert_true(are_same((tdi_dividing){TDI_WHOLE, 1, matrix}, (tdi_dividing){TDI_ROWS, 1, flat}));
}

static void other_elements(void **state)
{
    (void)state;
    const tdi_dividing rows = {TDI_ROWS, 2, matrix};
    assert_false(are_same(rows, (tdi_dividing){TDI_COLUMNS, 2, matrix}));
    assert_false(are_same(rows, (tdi_dividing){TDI_ROWS, 3, matrix}));
    assert_false(are_same(rows, (tdi_dividing){TDI_ROWS, 2, transposed}));
    assert_false(are_same(rows, (tdi_dividing){TDI_ROWS, 2, {2, {ROWS, 2 * WIDTH}}}));
    assert_false(are_same(rows, (tdi_dividing){TDI_WHOLE, 1, matrix}));
    assert_false(are_same((tdi_dividing){TDI_WHOLE, 2, matrix}, (tdi_dividing){TDI_WHOLE, 2, matrix}));
}

static void bytes_in_common_that_one_writes(void **state)
{
    (void)state;
    const tdi_access read = {.arena = TDI_HOME_ACTIVATIONS, .begin = 64, .end = 128};
    tdi_access write = read;
    write.writes = true;
    assert_false(tdi_accesses_conflict(&read, &read));
    assert_true(tdi_accesses_conflict(&read, &write) && tdi_accesses_conflict(&write, &read));
    assert_true(tdi_accesses_conflict(&write, &write) && tdi_same_bytes(&read, &write));
    write.begin = 127;
    assert_true(tdi_accesses_conflict(&read, &write) && !tdi_same_bytes(&read, &write));
    write.begin = 128;
    write.end = 192;
    assert_false(tdi_accesses_conflict(&read, &write));
    write = (tdi_access){.arena = TDI_CONSTANTS, .begin = 64, .end = 128, .writes = true};
    assert_false(tdi_accesses_conflict(&read, &write));
}

/* How often `threads` threads meet in a function of tanh(x): a normalization by the whole batch, or element by element.
 */
static int meetings(bool whole, int threads)
{
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->shards = 1;
    tdi_node *y = tdi_unary(graph, tdi_input(graph, 0, &(td_shape){2, {TDI_BATCH, WIDTH}}, TD_FLOAT32), TD_TANH);
    y = whole ? tdi_batch_norm(graph, y, tdi_batch_norm_stats(graph, y, 1), NULL, NULL, 1e-3f)
              : tdi_affine(graph, y, 2.0f, 1.0f);
    lone_plan_output(graph, y);
    lone_plan p = lone_plan_create(graph, ROWS, threads);
    tdi_plan_op op;
    int count = 0;
    for (int s = 0; s < tdi_plan_steps(p.plan); s++)
        count += tdi_plan_op_at(p.plan, s, &op) && op.barrier;
    lone_plan_free(&p);
    tdi_graph_free(graph);
    return count;
}

static void threads_meet_where_they_read_what_others_wrote(void **state)
{
    (void)state;
    assert_int_equal(meetings(true, 1), 0);
    assert_int_equal(meetings(false, 2), 0);
    assert_true(meetings(true, 2) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_elements),
        cmocka_unit_test(other_elements),
        cmocka_unit_test(bytes_in_common_that_one_writes),
        cmocka_unit_test(threads_meet_where_they_read_what_others_wrote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
