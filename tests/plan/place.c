/* How threads cut what they share, and how many of them share it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "graph/def_use.h"
#include "passes/passes.h"
#include "plan/threads/place.h"

/* A thread reads as depth, without a meeting, what it made as columns, and updates as rows what it read as depth. */
static void rows_columns_and_depth_are_cut_alike(void **state)
{
    (void)state;
    for (int threads = 2; threads <= 9; threads++)
        for (int64_t extent = 0; extent <= 1200; extent++)
            for (int thread = 0; thread < threads; thread++) {
                int64_t begin[3], end[3];
                const tdi_split splits[3] = {TDI_ROWS, TDI_COLUMNS, TDI_DEPTH};
                for (int i = 0; i < 3; i++)
                    tdi_range(splits[i], extent, thread, threads, &begin[i], &end[i]);
                assert_true(begin[1] == begin[0] && begin[2] == begin[0]);
                assert_true(end[1] == end[0] && end[2] == end[0]);
            }
}

static void shares_are_all_of_it_in_order(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 9; threads++)
        for (int64_t extent = 0; extent <= 1200; extent++) {
            int64_t at = 0, begin, end;
            for (int thread = 0; thread < threads; thread++, at = end) {
                tdi_range(TDI_COLUMNS, extent, thread, threads, &begin, &end);
                assert_true(begin == at && end >= begin);
            }
            assert_true(at == extent);
        }
}

/* ---- how many ---- */

/* Earlier values are made by one thread, but for the one that is said to be. */
static const tdi_node *shared;
static tdi_placement how;

static tdi_placement placement_of(const void *context, const tdi_node *node)
{
    (void)context;
    return node == shared ? how : (tdi_placement){TDI_WHOLE, 1, 0};
}

static tdi_placement place(const tdi_node *node, int threads)
{
    enum { BATCH_SIZE = 32 };
    tdi_value in[3] = {0};
    node->graph->def_use = tdi_def_use_create(node->graph);
    for (int i = 0; i < node->n_in; i++)
        in[i] = (tdi_value){.shape = tdi_shape_at(&node->in[i]->shape, BATCH_SIZE), .dtype = TD_FLOAT32};
    tdi_call call = {.in = in,
                     .n_in = node->n_in,
                     .out = {.shape = tdi_shape_at(&node->shape, BATCH_SIZE), .dtype = TD_FLOAT32},
                     .attrs = node->attrs};
    return tdi_place(node, &(tdi_placing){&call, TDI_CAN_ROWS | TDI_CAN_COLUMNS, threads, placement_of, NULL});
}

static tdi_node *input(tdi_graph *graph, int64_t columns)
{
    return tdi_input(graph, 0, &(td_shape){2, {TDI_BATCH, columns}}, TD_FLOAT32);
}

static tdi_node *product(tdi_graph *graph, int64_t depth, int64_t columns)
{
    return tdi_matmul(graph, input(graph, depth), tdi_input(graph, 1, &(td_shape){2, {depth, columns}}, TD_FLOAT32),
                      false, false);
}

static tdi_placement place_product(int64_t depth, int64_t columns, int threads)
{
    tdi_graph *graph = tdi_graph_create();
    tdi_placement placement = place(product(graph, depth, columns), threads);
    tdi_graph_free(graph);
    return placement;
}

/* Of 32 rows. */
static void a_product_gets_the_threads_it_deserves(void **state)
{
    (void)state;
    const int all[] = {3, 4, 8, 16};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(place_product(8, 8, all[i]).threads, 1);
        assert_int_equal(place_product(2048, 2048, all[i]).threads, all[i]);
    }
    tdi_placement few = place_product(256, 10, 16), wide = place_product(784, 256, 16);
    assert_true(few.split == TDI_ROWS && few.threads > 1 && few.threads < 8);
    assert_true(wide.split == TDI_COLUMNS && wide.threads == 8); /* a thread's columns are 32 at least */
}

static void two_threads_share_what_can_be_shared(void **state)
{
    (void)state;
    for (int64_t depth = 1; depth <= 1024; depth *= 4)
        for (int64_t columns = 1; columns <= 1024; columns *= 4) {
            tdi_placement placement = place_product(depth, columns, 2);
            assert_int_equal(placement.threads, 2);
            assert_int_equal(placement.split, columns >= 64 ? TDI_COLUMNS : TDI_ROWS);
        }
}

/* More threads are there, and more work: never are fewer taken. */
static void more_work_gets_no_fewer_threads(void **state)
{
    (void)state;
    int before = 1;
    for (int64_t depth = 1; depth <= 4096; depth *= 2) {
        tdi_placement placement = place_product(depth, 1024, 16);
        assert_true(placement.threads >= before);
        before = placement.threads;
    }
    assert_int_equal(before, 16);
}

/* What a thread has made it goes on with, however few threads that are. */
static void an_element_wise_op_follows(void **state)
{
    (void)state;
    tdi_graph *graph = tdi_graph_create();
    tdi_node *x = input(graph, 512), *y = tdi_unary(graph, x, TD_TANH);
    shared = x;
    for (int threads = 2; threads <= 16; threads++) {
        how = (tdi_placement){threads % 2 ? TDI_ROWS : TDI_COLUMNS, threads, 0};
        tdi_placement placement = place(y, 16);
        assert_true(placement.split == how.split && placement.threads == threads);
    }
    shared = NULL;
    tdi_graph_free(graph);
}

/* ---- tables ---- */

static tdi_placement place_scatter(int64_t rows, int64_t columns, int64_t numbers)
{
    tdi_graph *graph = tdi_graph_create();
    tdi_node *indices = tdi_input(graph, 0, &(td_shape){2, {TDI_BATCH, numbers}}, TD_INT32);
    tdi_node *dy = tdi_input(graph, 1, &(td_shape){3, {TDI_BATCH, numbers, columns}}, TD_FLOAT32);
    tdi_placement placement = place(tdi_scatter_add(graph, indices, dy, &(td_shape){2, {rows, columns}}), 2);
    tdi_graph_free(graph);
    return placement;
}

/* Of 32 samples of 20 numbers each. */
static void a_table_larger_than_its_rows_is_shared_by_rows(void **state)
{
    (void)state;
    assert_int_equal(place_scatter(20000, 64, 20).split, TDI_ROWS);
    assert_int_equal(place_scatter(2 * 32 * 20, 64, 20).split, TDI_ROWS);
    assert_int_equal(place_scatter(2 * 32 * 20 - 1, 64, 20).split, TDI_COLUMNS);
    assert_int_equal(place_scatter(100, 64, 20).split, TDI_COLUMNS);
}

/* Where rows that are not met cost nothing, those that are met most often would be one thread's. */
static void a_table_whose_rows_alone_are_updated_is_shared_by_columns(void **state)
{
    (void)state;
    static const int64_t widths[] = {16, 64};
    for (int i = 0; i < 2; i++) {
        tdi_graph *graph = tdi_graph_create();
        tdi_variable table = {.shape = {2, {20000, widths[i]}}, .trainable = true};
        tdi_node *in[] = {tdi_parameter(graph, &table), tdi_input(graph, 0, &(td_shape){2, {TDI_BATCH, 20}}, TD_INT32),
                          tdi_input(graph, 1, &(td_shape){3, {TDI_BATCH, 20, widths[i]}}, TD_FLOAT32)};
        const tdi_node *update = tdi_node_create(graph, &tdi_op_gather_update, &(tdi_optimizer_attrs){0}, 3, in);
        assert_int_equal(place(update, 2).split, widths[i] < 64 ? TDI_ROWS : TDI_COLUMNS);
        tdi_graph_free(graph);
    }
}

static tdi_split place_update(int64_t rows, int64_t columns)
{
    tdi_graph *graph = tdi_graph_create();
    tdi_node *gradient = tdi_input(graph, 0, &(td_shape){2, {rows, columns}}, TD_FLOAT32);
    tdi_node *update = tdi_unary(graph, gradient, TD_TANH);
    update->home = TDI_HOME_VARIABLE;
    shared = gradient;
    how = (tdi_placement){TDI_COLUMNS, 2, 0};
    tdi_split split = place(update, 2).split;
    shared = NULL;
    tdi_graph_free(graph);
    return split;
}

static void a_large_update_does_not_follow_in_short_stretches(void **state)
{
    (void)state;
    assert_int_equal(place_update(1024, 128), TDI_ROWS);
    assert_int_equal(place_update(32, 4096), TDI_COLUMNS); /* long ones */
    assert_int_equal(place_update(8, 512), TDI_COLUMNS);   /* few */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_columns_and_depth_are_cut_alike),
        cmocka_unit_test(shares_are_all_of_it_in_order),
        cmocka_unit_test(a_product_gets_the_threads_it_deserves),
        cmocka_unit_test(two_threads_share_what_can_be_shared),
        cmocka_unit_test(more_work_gets_no_fewer_threads),
        cmocka_unit_test(an_element_wise_op_follows),
        cmocka_unit_test(a_table_larger_than_its_rows_is_shared_by_rows),
        cmocka_unit_test(a_table_whose_rows_alone_are_updated_is_shared_by_columns),
        cmocka_unit_test(a_large_update_does_not_follow_in_short_stretches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
