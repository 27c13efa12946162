/* However a batch is cut, the numbers are those of one device: batch normalization merged over shards, dropout, the
 * mean loss, the penalty of a regularizer. A shard without rows changes nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "passes/passes.h"
#include "support/evaluate.h"

enum { ROWS = 7, WIDTH = 5, COUNT = ROWS * WIDTH, VALUES = 1300 };

#define DIMS(...) ((td_shape){TD_SHAPE_RANK_(__VA_ARGS__), {__VA_ARGS__}})

typedef struct cut {
    int shards;
    int64_t rows[4];
    int group_size;
} cut;

static const cut one = {.shards = 1, .rows = {ROWS}};
static const cut uneven = {.shards = 3, .rows = {3, 0, 4}}, many = {.shards = 4, .rows = {1, 2, 0, 4}};

static float x_data[COUNT], dy_data[COUNT];

static int fill(void **state)
{
    (void)state;
    tdi_random random = tdi_random_create(3, 0);
    for (int i = 0; i < COUNT; i++) {
        x_data[i] = (float)(100 + tdi_random_normal(&random)); /* E[x^2] - E[x]^2 would cancel */
        dy_data[i] = (float)tdi_random_normal(&random);
    }
    return 0;
}

typedef struct program {
    tdi_graph *graph;
    tdi_node *x, *dy;
    tdi_variable variable;
    float values[VALUES];
    evaluation *evaluation;
} program;

static void begin(program *p, const cut *c)
{
    *p = (program){.graph = tdi_graph_create(), .values = {1, 1, 1, 1, 1}};
    assert_non_null(p->graph);
    p->graph->shards = c->shards;
    p->x = tdi_input(p->graph, 0, &DIMS(TDI_BATCH, WIDTH), TD_FLOAT32);
    p->dy = tdi_input(p->graph, 1, &DIMS(TDI_BATCH, WIDTH), TD_FLOAT32);
    p->variable = (tdi_variable){.shape = DIMS(WIDTH), .elements = WIDTH};
}

static void run(program *p, const cut *c, int64_t step)
{
    if (p->graph->error.status != TD_OK)
        fail_msg("%s", p->graph->error.message);
    p->evaluation = evaluation_create(&(evaluation_spec){.graph = p->graph,
                                                         .shards = c->shards,
                                                         .rows = c->rows,
                                                         .group_size = c->group_size,
                                                         .control = {.step = step, .seed = 9},
                                                         .inputs = (const void *const[]){x_data, dy_data},
                                                         .variable_floats = VALUES,
                                                         .values = p->values});
    evaluation_run(p->evaluation);
}

static void end(program *p)
{
    evaluation_free(p->evaluation);
    tdi_graph_free(p->graph);
}

/* A value with a batch, put together from its shards. */
static void collect(const program *p, const cut *c, const tdi_node *node, float out[COUNT])
{
    for (int shard = 0; shard < c->shards; shard++) {
        size_t count = (size_t)(c->rows[shard] * WIDTH);
        if (count)
            memcpy(out, evaluation_value(p->evaluation, node, shard), count * sizeof *out);
        out += count;
    }
}

static void normalize(const cut *c, float y[COUNT], float dx[COUNT])
{
    program p;
    begin(&p, c);
    tdi_node *stats =
                 tdi_batch_norm_merge(p.graph, tdi_all_gather(p.graph, tdi_batch_norm_stats(p.graph, p.x, 1)), false),
             *d;
    tdi_node *node = tdi_batch_norm(p.graph, p.x, stats, NULL, NULL, 1e-3f);
    tdi_node *product = tdi_binary(p.graph, TDI_MULTIPLY, node, p.dy);
    assert_int_equal(tdi_gradients(p.graph, tdi_reduce(p.graph, TDI_SUM, product, 3u, false), 1, &p.x, &d), TD_OK);
    run(&p, c, 0);
    collect(&p, c, node, y);
    collect(&p, c, d, dx);
    end(&p);
}

static void merged_normalization_equals_one_device(void **state)
{
    (void)state;
    float y[COUNT], dx[COUNT], y_cut[COUNT], dx_cut[COUNT];
    const cut *cuts[] = {&uneven, &many};
    normalize(&one, y, dx);
    for (int k = 0; k < 2; k++) {
        normalize(cuts[k], y_cut, dx_cut);
        for (int i = 0; i < COUNT; i++) {
            assert_true(fabs((double)y[i] - (double)y_cut[i]) <= 2e-5);
            assert_true(fabs((double)dx[i] - (double)dx_cut[i]) <= 2e-5);
        }
    }
}

/* moving = 0.75 * 1 + 0.25 * batch, the batch's statistic weighted by rows over the groups. */
static void check_moving(const cut *c, bool variance)
{
    program p;
    begin(&p, c);
    tdi_node *gathered = tdi_all_gather(p.graph, tdi_batch_norm_stats(p.graph, p.x, 1));
    tdi_batch_norm_moving(p.graph, tdi_parameter(p.graph, &p.variable), gathered, 0.75f, variance, false);
    run(&p, c, 0);
    int size = c->group_size ? c->group_size : c->shards;
    for (int j = 0; j < WIDTH; j++) {
        double batch = 0;
        int64_t row = 0;
        for (int first = 0; first < c->shards; first += size) {
            int64_t begins = row;
            for (int shard = first; shard < first + size; shard++)
                row += c->rows[shard];
            double mean = 0, m2 = 0;
            for (int64_t r = begins; r < row; r++)
                mean += (double)x_data[r * WIDTH + j] / (double)(row - begins);
            for (int64_t r = begins; r < row; r++)
                m2 += pow((double)x_data[r * WIDTH + j] - mean, 2);
            batch += variance ? m2 / (double)ROWS : mean * (double)(row - begins) / (double)ROWS;
        }
        assert_true(fabs((double)p.values[j] - (0.75 + 0.25 * batch)) <= (variance ? 1e-5 : 1e-4));
    }
    end(&p);
}

static void moving_statistics_weigh_by_rows(void **state)
{
    (void)state;
    const cut alone = {.shards = 4, .rows = {1, 2, 0, 4}, .group_size = 1};
    const cut pairs = {.shards = 4, .rows = {1, 2, 0, 4}, .group_size = 2};
    const cut *cuts[] = {&one, &many, &alone, &pairs};
    for (int k = 0; k < 4; k++) {
        check_moving(cuts[k], false);
        check_moving(cuts[k], true);
    }
}

/* No rows at all: the statistics stay. */
static void nothing_moves_without_rows(void **state)
{
    (void)state;
    const cut none = {.shards = 2, .rows = {0, 0}};
    program p;
    begin(&p, &none);
    tdi_node *gathered = tdi_all_gather(p.graph, tdi_batch_norm_stats(p.graph, p.x, 1));
    tdi_batch_norm_moving(p.graph, tdi_parameter(p.graph, &p.variable), gathered, 0.75f, false, false);
    run(&p, &none, 0);
    for (int j = 0; j < WIDTH; j++)
        assert_true(p.values[j] == 1.0f);
    end(&p);
}

static void drop(const cut *c, const tdi_dropout_attrs *attrs, int64_t step, float y[COUNT])
{
    program p;
    begin(&p, c);
    tdi_node *node = tdi_dropout(p.graph, p.x, attrs);
    run(&p, c, step);
    collect(&p, c, node, y);
    end(&p);
}

static void dropout_does_not_see_the_cut(void **state)
{
    (void)state;
    float y[COUNT], cut_y[COUNT], other[COUNT];
    tdi_dropout_attrs attrs = {.rate = 0.5f, .stream = 2}, stream = {.rate = 0.5f, .stream = 3};
    drop(&one, &attrs, 4, y);
    drop(&uneven, &attrs, 4, cut_y);
    assert_memory_equal(y, cut_y, sizeof y);
    drop(&many, &attrs, 4, cut_y);
    assert_memory_equal(y, cut_y, sizeof y);
    drop(&one, &attrs, 5, other);
    assert_memory_not_equal(y, other, sizeof y);
    drop(&one, &stream, 4, other);
    assert_memory_not_equal(y, other, sizeof y);
}

/* Kept values are scaled exactly; how many are kept is within four deviations of what is expected. */
static void dropout_keeps_its_rate(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    tdi_control control = {.step = 1, .seed = 1};
    const float rates[] = {0.1f, 0.5f, 0.9f};
    for (int k = 0; k < 3; k++) {
        double kept = 0, keep = 1 - (double)rates[k];
        for (uint64_t quad = 0; quad < DRAWS / 4; quad++) {
            tdi_philox draw = tdi_dropout_draw(&control, 0, quad);
            for (int w = 0; w < 4; w++)
                kept += tdi_uniform(draw.word[w]) >= rates[k];
        }
        assert_true(fabs(kept - keep * (double)DRAWS) < 4 * sqrt((double)DRAWS * keep * (1 - keep)));
    }
    float y[COUNT];
    drop(&one, &(tdi_dropout_attrs){.rate = 0.5f, .stream = 0}, 0, y);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == 0.0f || y[i] == 2 * x_data[i]);
    drop(&one, &(tdi_dropout_attrs){.rate = 0.0f, .stream = 0}, 0, y);
    assert_memory_equal(y, x_data, sizeof y);
}

/* Runs the program, which ends there. */
static double sum_over_shards(program *p, const cut *c, const tdi_node *mean)
{
    double sum = 0;
    run(p, c, 0);
    for (int shard = 0; shard < c->shards; shard++)
        sum += (double)*(const float *)evaluation_value(p->evaluation, mean, shard);
    end(p);
    return sum;
}

static double mean_of_shards(const cut *c)
{
    program p;
    begin(&p, c);
    return sum_over_shards(&p, c, tdi_batch_mean(p.graph, p.x));
}

static void shards_of_a_mean_add_up(void **state)
{
    (void)state;
    double expected = 0;
    for (int i = 0; i < COUNT; i++)
        expected += (double)x_data[i] / (double)COUNT;
    assert_true(fabs(mean_of_shards(&one) - expected) <= 1e-4);
    assert_true(fabs(mean_of_shards(&uneven) - expected) <= 1e-4);
    assert_true(fabs(mean_of_shards(&many) - expected) <= 1e-4);
}

/* The rows' penalties of a weight of so many elements, 1, -2, 3, ..., which depend on no cut; their mean. */
static double penalty_of_rows(const cut *c, int64_t elements, float rows[ROWS])
{
    program p;
    begin(&p, c);
    p.variable = (tdi_variable){.shape = DIMS(elements), .elements = elements};
    for (int64_t i = 0; i < elements; i++)
        p.values[i] = (float)(i % 2 ? -i - 1 : i + 1);
    const tdi_node *penalty = tdi_regularization(p.graph, tdi_parameter(p.graph, &p.variable), 0.5f, 0.25f);
    run(&p, c, 0);
    double sum = 0;
    for (int shard = 0, row = 0; shard < c->shards; shard++)
        for (int64_t r = 0; r < c->rows[shard]; r++, row++) {
            rows[row] = ((const float *)evaluation_value(p.evaluation, penalty, shard))[r];
            sum += (double)rows[row];
        }
    end(&p);
    return sum / ROWS;
}

static void rows_have_the_penalty_on_average(void **state)
{
    (void)state;
    const cut single = {.shards = 3, .rows = {0, 1, 0}};
    const int64_t sizes[] = {1, 256, 257, VALUES};
    for (int k = 0; k < 4; k++) {
        double n = (double)sizes[k], expected = 0.5 * n * (n + 1) / 2 + 0.25 * n * (n + 1) * (2 * n + 1) / 6;
        float rows[ROWS], cut_rows[ROWS];
        assert_true(fabs(penalty_of_rows(&one, sizes[k], rows) / expected - 1) <= 1e-6);
        penalty_of_rows(&uneven, sizes[k], cut_rows);
        assert_memory_equal(rows, cut_rows, sizeof rows);
        penalty_of_rows(&many, sizes[k], cut_rows);
        assert_memory_equal(rows, cut_rows, sizeof rows);
        assert_true(fabs(penalty_of_rows(&single, sizes[k], rows) * ROWS / expected - 1) <= 1e-6);
    }
}

/* However many rows there are: more than float can count. */
static void rows_share_a_penalty_without_gap(void **state)
{
    (void)state;
    enum { ELEMENTS = 1000 * TDI_PENALTY_UNIT + 3 };
    tdi_control control = {.rows = (1 << 24) + 3};
    tdi_value in = {.shape = DIMS(ELEMENTS)};
    tdi_shard shard = {0};
    tdi_call call = {.in = &in, .shard = &shard, .control = &control};
    int64_t end = 0;
    for (int64_t row = 0; row < control.rows; row++) {
        tdi_penalty_range range = tdi_penalty_range_of(&call, row);
        assert_int_equal(range.begin, end);
        end = range.end;
    }
    assert_int_equal(end, ELEMENTS);
}

/* The mean of those that are not 100, rounded towards 0. */
static double valid_mean_of_shards(const cut *c)
{
    program p;
    begin(&p, c);
    tdi_node *labels = tdi_cast(p.graph, p.x, TD_INT32);
    tdi_node *valid = tdi_all_gather(p.graph, tdi_count_valid(p.graph, labels, 100));
    tdi_node *weighted = tdi_binary(p.graph, TDI_MULTIPLY, p.x, tdi_valid_weights(p.graph, labels, valid, 100));
    return sum_over_shards(&p, c, tdi_batch_mean(p.graph, weighted));
}

static void valid_positions_are_counted_over_all_shards(void **state)
{
    (void)state;
    double sum = 0;
    int count = 0;
    for (int i = 0; i < COUNT; i++)
        if ((int)x_data[i] != 100) {
            sum += (double)x_data[i];
            count++;
        }
    assert_true(count > 0 && count < COUNT);
    assert_true(fabs(valid_mean_of_shards(&one) - sum / count) <= 1e-4);
    assert_true(fabs(valid_mean_of_shards(&uneven) - sum / count) <= 1e-4);
    assert_true(fabs(valid_mean_of_shards(&many) - sum / count) <= 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(merged_normalization_equals_one_device),
                                       cmocka_unit_test(moving_statistics_weigh_by_rows),
                                       cmocka_unit_test(nothing_moves_without_rows),
                                       cmocka_unit_test(dropout_does_not_see_the_cut),
                                       cmocka_unit_test(dropout_keeps_its_rate),
                                       cmocka_unit_test(rows_have_the_penalty_on_average),
                                       cmocka_unit_test(rows_share_a_penalty_without_gap),
                                       cmocka_unit_test(shards_of_a_mean_add_up),
                                       cmocka_unit_test(valid_positions_are_counted_over_all_shards)};
    return cmocka_run_group_tests(tests, fill, NULL);
}
