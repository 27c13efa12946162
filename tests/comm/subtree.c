/* Processes that sum their own subtrees, and one that adds these up, get the bits of a single process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "comm/subtree.h"
#include "ops/ops.h"

enum { MOST_SHARDS = 9, MOST_PROCESSES = 5, DRAWS = 4 };

static uint32_t seed;

static uint32_t draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Numbers of very different sizes, so that every other order of additions shows. */
static void draw_values(float *values, float *places[], int count)
{
    for (int i = 0; i < count; i++) {
        values[i] = ((float)draw() - 8388608.0f) * (draw() % 2 ? 1e-6f : 1.0f);
        places[i] = &values[i];
    }
}

static int depth(int count)
{
    int levels = 0;
    while (1 << levels < count)
        levels++;
    return levels;
}

/* Every shard is in one piece, pieces are in a row, and each lies with the process that owns its shards. */
static void check_pieces(const tdi_deal *deal, const tdi_sum_order *order)
{
    int next = 0, of_process[MOST_PROCESSES] = {0};
    for (int i = 0; i < order->pieces; i++) {
        tdi_piece piece = order->piece[i];
        assert_int_equal(piece.subtree.first, next);
        next += piece.subtree.count;
        assert_true(deal->first_shard[piece.process] <= piece.subtree.first);
        assert_true(next <= deal->first_shard[piece.process + 1]);
        of_process[piece.process]++;
    }
    assert_int_equal(next, deal->shards);
    for (int p = 0; p < deal->processes; p++) {
        int mine = deal->first_shard[p + 1] - deal->first_shard[p];
        assert_true(of_process[p] <= (mine > 1 ? 2 * depth(mine) : mine));
    }
}

static bool is_ready(const tdi_sum_order *order, const bool *done, int number)
{
    return number < order->pieces || done[number - order->pieces];
}

/* Makes the additions in the list's order, or drawn among those whose values are there. */
static float add_up(const tdi_sum_order *order, float *pieces, bool drawn)
{
    bool done[MOST_SHARDS] = {false};
    for (int made = 0; made < order->pieces - 1;) {
        int k = drawn ? (int)(draw() % (uint32_t)(order->pieces - 1)) : made;
        const tdi_addition *a = &order->additions[k];
        if (done[k] || !is_ready(order, done, a->left) || !is_ready(order, done, a->right)) {
            assert_true(drawn);
            continue;
        }
        pieces[a->to] = pieces[a->to] + pieces[a->from];
        done[k] = true;
        made++;
    }
    return pieces[0];
}

static void check_sum(const tdi_deal *deal, const tdi_sum_order *order, bool drawn)
{
    float values[MOST_SHARDS], pieces[MOST_SHARDS], *places[MOST_SHARDS];
    draw_values(values, places, deal->shards);
    float whole = tdi_tree_sum(places, deal->shards, 0);
    for (int i = 0; i < order->pieces; i++)
        pieces[i] = tdi_tree_sum(places + order->piece[i].subtree.first, order->piece[i].subtree.count, 0);
    float sum = add_up(order, pieces, drawn);
    assert_memory_equal(&sum, &whole, sizeof sum);
}

static void check_deal(const tdi_deal *deal)
{
    tdi_sum_order *order;
    assert_int_equal(tdi_sum_order_create(deal, &order, NULL), TD_OK);
    check_pieces(deal, order);
    for (int i = 0; i < DRAWS; i++)
        check_sum(deal, order, i > 0);
    tdi_sum_order_free(order);
}

/* Deals `shards` to `processes` in every way, from process `from` on. */
static int try_deals(int shards, int processes, int from, int *first)
{
    if (from == processes - 1) {
        int32_t units[MOST_SHARDS + 1] = {0};
        first[processes] = shards;
        check_deal(&(tdi_deal){.processes = processes, .shards = shards, .first_shard = first, .units = units});
        return 1;
    }
    int tried = 0;
    for (first[from + 1] = first[from]; first[from + 1] <= shards; first[from + 1]++)
        tried += try_deals(shards, processes, from + 1, first);
    return tried;
}

static void sums_have_the_bits_of_one_process(void **state)
{
    (void)state;
    int first[MOST_PROCESSES + 1] = {0}, tried = 0;
    for (int shards = 1; shards <= MOST_SHARDS; shards++)
        for (int processes = 1; processes <= MOST_PROCESSES; processes++)
            tried += try_deals(shards, processes, 0, first);
    assert_int_equal(tried, 2997);
}

static const struct cut {
    int shards, begin, end, count;
    tdi_subtree found[4];
} cuts[] = {
    {8, 0, 8, 1, {{0, 8}}},         {8, 2, 4, 1, {{2, 2}}},         {8, 1, 7, 4, {{1, 1}, {2, 2}, {4, 2}, {6, 1}}},
    {8, 3, 5, 2, {{3, 1}, {4, 1}}}, {9, 8, 9, 1, {{8, 1}}},         {9, 4, 9, 2, {{4, 4}, {8, 1}}},
    {6, 4, 6, 1, {{4, 2}}},         {6, 2, 6, 2, {{2, 2}, {4, 2}}}, {5, 3, 3, 0, {{0, 0}}},
    {1, 0, 1, 1, {{0, 1}}},
};

static void subtrees_are_maximal(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        tdi_subtree found[TDI_MAX_SUBTREES];
        assert_int_equal(tdi_subtrees(cuts[i].shards, cuts[i].begin, cuts[i].end, found), cuts[i].count);
        assert_memory_equal(found, cuts[i].found, sizeof *found * (size_t)cuts[i].count);
    }
}

/* No range of any number of shards has more pieces than there is room for. */
static void the_most_subtrees_fit(void **state)
{
    (void)state;
    tdi_subtree found[TDI_MAX_SUBTREES];
    assert_int_equal(tdi_subtrees(INT32_MAX / 2, 1, INT32_MAX / 2 - 1, found), 57);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_have_the_bits_of_one_process),
                                       cmocka_unit_test(subtrees_are_maximal), cmocka_unit_test(the_most_subtrees_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
