/* reduction.c - processes that add up pieces of their own shards, exchange slices in any order and add these up have
 * the bits of one process that has all shards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "comm/reduction.h"
#include "ops/ops.h"

enum { MOST_PROCESSES = 5, MOST_SHARDS = 12, ARENA = 300 * 1000, STEPS = 2 };

static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Numbers of very different sizes, so that every other order of additions shows; and zeros of both signs. */
static float draw_value(void)
{
    switch (draw(8)) {
    case 0:
        return -0.0f;
    case 1:
        return 0.0f;
    default:
        return ((float)draw(1 << 24) - 8388608.0f) * (draw(2) ? 1e-6f : 1.0f);
    }
}

typedef struct process {
    tdi_reduction *reduction;
    float *gradients[MOST_SHARDS], *sums; /* the arenas */
    atomic_int begun[MOST_SHARDS];
} process;

/* A frame under way: a piece of a slice, or its sum. */
typedef struct message {
    int to, piece; /* -1: the sum */
    int64_t offset, size;
    const float *values;
} message;

typedef struct world {
    const tdi_deal *deal;
    tdi_sum_order *order;
    const tdi_collective *collective;
    process processes[MOST_PROCESSES];
    float *shards[MOST_SHARDS]; /* what was computed */
    tdi_vec(message) under_way;
    int64_t sent[MOST_PROCESSES], arrived[MOST_PROCESSES];
} world;

static void post(world *w, int from, int to, message added)
{
    added.to = to;
    assert_true(tdi_push(&w->under_way, added));
    w->sent[from]++;
}

static void post_to_all(world *w, int from, message added)
{
    for (int p = 0; p < w->deal->processes; p++)
        if (p != from)
            post(w, from, p, added);
}

static void add_up(world *w, int self, tdi_reduction_slice *slice)
{
    process *p = &w->processes[self];
    if (tdi_slice_add(p->reduction, slice, p->sums + slice->offset) && slice->owner == self)
        post_to_all(w, self, (message){0, -1, slice->offset, slice->size, p->sums + slice->offset});
}

static void begin_slice(world *w, int self, tdi_reduction_slice *slice)
{
    process *p = &w->processes[self];
    const tdi_reduction *r = p->reduction;
    for (int i = r->first_own; i < r->first_own + r->own; i++) {
        const float *values = p->gradients[w->order->piece[i].subtree.first] + slice->offset;
        message piece = {0, i, slice->offset, slice->size, values};
        if (slice->owner == TDI_EVERY_PROCESS)
            post_to_all(w, self, piece);
        else if (slice->owner != self)
            post(w, self, slice->owner, piece);
        if (tdi_adds_up(r, slice))
            tdi_slice_put(slice, i, values);
    }
    if (tdi_adds_up(r, slice))
        add_up(w, self, slice);
}

/* The shards become ready one by one, or by two, in any order; the last one's worker begins. */
static void begin(world *w, int self)
{
    process *p = &w->processes[self];
    int first = w->deal->first_shard[self], end = w->deal->first_shard[self + 1], from[MOST_SHARDS], count = 0;
    const tdi_combining combining = {w->order, self, w->collective, p->gradients, p->begun};
    for (int s = first; s < end; s += 2)
        from[count++] = s;
    for (; count > 0; count--) {
        int k = (int)draw((uint32_t)count), s = from[k];
        tdi_combine(&combining, s, s + 2 < end ? s + 2 : end);
        from[k] = from[count - 1];
    }
    for (int s = 0; s < p->reduction->count; s++)
        begin_slice(w, self, &p->reduction->slices[s]);
}

static void arrive(world *w, message m)
{
    process *p = &w->processes[m.to];
    tdi_reduction_slice *slice = tdi_reduction_find(p->reduction, (uint64_t)m.offset, (uint64_t)m.size);
    assert_non_null(slice);
    w->arrived[m.to]++;
    if (m.piece < 0) {
        memcpy(p->sums + m.offset, m.values, (size_t)m.size * sizeof(float));
        return;
    }
    float *place = tdi_slice_place(p->reduction, slice, m.piece);
    memcpy(place, m.values, (size_t)m.size * sizeof(float));
    tdi_slice_put(slice, m.piece, place);
    add_up(w, m.to, slice);
}

static void draw_gradients(world *w)
{
    for (int t = 0; t < w->collective->count; t++) {
        const tdi_transfer *range = &w->collective->transfers[t];
        for (int s = 0; s < w->deal->shards; s++)
            for (int64_t i = range->offset; i < range->offset + range->size; i++)
                w->shards[s][i] = draw_value();
    }
    for (int p = 0; p < w->deal->processes; p++)
        for (int s = w->deal->first_shard[p]; s < w->deal->first_shard[p + 1]; s++)
            memcpy(w->processes[p].gradients[s], w->shards[s], ARENA * sizeof(float));
}

/* Processes begin, and frames arrive, in any order. */
static void run_step(world *w)
{
    int waiting[MOST_PROCESSES], count = w->deal->processes;
    for (int p = 0; p < count; p++)
        waiting[p] = p;
    while (count > 0 || w->under_way.count > 0) {
        int k = (int)draw((uint32_t)(count + w->under_way.count));
        if (k < count) {
            int self = waiting[k];
            waiting[k] = waiting[--count];
            begin(w, self);
        } else {
            message m = w->under_way.at[k - count];
            w->under_way.at[k - count] = w->under_way.at[--w->under_way.count];
            arrive(w, m);
        }
    }
}

static void check_sums(const world *w)
{
    for (int t = 0; t < w->collective->count; t++) {
        const tdi_transfer *range = &w->collective->transfers[t];
        for (int64_t i = range->offset; i < range->offset + range->size; i++) {
            float whole = tdi_tree_sum(w->shards, w->deal->shards, i);
            for (int p = 0; p < w->deal->processes; p++)
                if (memcmp(&w->processes[p].sums[i], &whole, sizeof whole) != 0)
                    fail_msg("element %lld of process %d of %d, %d shards", (long long)i, p, w->deal->processes,
                             w->deal->shards);
        }
    }
}

/* The number of frames is known before; between owners of slices it is no more than a ring's bytes. */
static void check_frames(const world *w)
{
    for (int p = 0; p < w->deal->processes; p++) {
        assert_int_equal(w->sent[p], STEPS * tdi_reduction_sends(w->processes[p].reduction));
        assert_int_equal(w->arrived[p], STEPS * tdi_reduction_arrivals(w->processes[p].reduction));
    }
}

static float *arena(void)
{
    float *floats = calloc(ARENA, sizeof *floats);
    assert_non_null(floats);
    return floats;
}

static void open_world(world *w)
{
    assert_int_equal(tdi_sum_order_create(w->deal, &w->order, NULL), TD_OK);
    for (int s = 0; s < w->deal->shards; s++)
        w->shards[s] = arena();
    for (int p = 0; p < w->deal->processes; p++) {
        tdi_deal deal = *w->deal;
        deal.self = p;
        w->processes[p].sums = arena();
        for (int s = deal.first_shard[p]; s < deal.first_shard[p + 1]; s++)
            w->processes[p].gradients[s] = arena();
        assert_int_equal(tdi_reduction_create(w->order, &deal, w->collective, &w->processes[p].reduction, NULL), TD_OK);
    }
}

static void close_world(world *w)
{
    for (int p = 0; p < w->deal->processes; p++) {
        tdi_reduction_free(w->processes[p].reduction);
        free(w->processes[p].sums);
        for (int s = 0; s < MOST_SHARDS; s++)
            free(w->processes[p].gradients[s]);
    }
    for (int s = 0; s < w->deal->shards; s++)
        free(w->shards[s]);
    tdi_sum_order_free(w->order);
    tdi_vec_free(&w->under_way);
}

static void check(int processes, const int *first, const tdi_collective *collective)
{
    const tdi_deal deal = {.processes = processes, .shards = first[processes], .first_shard = first};
    world w = {.deal = &deal, .collective = collective};
    open_world(&w);
    for (int step = 0; step < STEPS; step++) {
        draw_gradients(&w);
        run_step(&w);
        check_sums(&w);
        for (int p = 0; p < processes; p++)
            tdi_reduction_clear(w.processes[p].reduction);
    }
    check_frames(&w);
    close_world(&w);
}

static const tdi_transfer few[] = {{32, 7}, {64, 1}, {160, 100}}, many[] = {{0, 5001}, {5008, 3}, {16000, 9000}},
                          large[] = {{16, 250001}};
static const tdi_collective collectives[] = {{TDI_REDUCE, 3, few}, {TDI_REDUCE, 3, many}, {TDI_REDUCE, 1, large}};

static const struct {
    int processes, first[MOST_PROCESSES + 1];
} deals[] = {{2, {0, 1, 2}},          {2, {0, 1, 3}},         {2, {0, 4, 8}}, {3, {0, 1, 4, 8}}, {3, {0, 3, 6, 12}},
             {5, {0, 1, 2, 3, 4, 5}}, {4, {0, 5, 6, 11, 12}}, {2, {0, 0, 3}}, {3, {0, 2, 2, 4}}, {2, {0, 8, 8}}};

static void processes_have_the_bits_of_one(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof collectives / sizeof *collectives; c++)
        for (size_t d = 0; d < sizeof deals / sizeof *deals; d++)
            if (c < 2 || d < 4) /* large ones take their time */
                check(deals[d].processes, deals[d].first, &collectives[c]);
}

static int64_t floats_sent(const tdi_reduction *r)
{
    int64_t floats = 0, peers = r->processes - 1;
    for (int s = 0; s < r->count; s++)
        floats += r->slices[s].size * (r->direct ? r->own * peers : r->slices[s].owner == r->self ? peers : r->own);
    return floats;
}

/* Where every process has one piece, it sends what it would in a ring: 2 (n - 1) / n of the whole, but for lines. */
static void no_more_is_sent_than_in_a_ring(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_PROCESSES; n++) {
        int first[] = {0, 1, 2, 3, 4, 5};
        tdi_deal deal = {.processes = n, .shards = n, .first_shard = first};
        tdi_sum_order *order;
        assert_int_equal(tdi_sum_order_create(&deal, &order, NULL), TD_OK);
        for (deal.self = 0; deal.self < n; deal.self++) {
            tdi_reduction *r;
            assert_int_equal(tdi_reduction_create(order, &deal, &collectives[2], &r, NULL), TD_OK);
            assert_true(floats_sent(r) <= 2 * (n - 1) * large[0].size / n + 32 * n);
            assert_int_equal(r->direct, n == 2);
            tdi_reduction_free(r);
        }
        tdi_sum_order_free(order);
    }
}

static void only_slices_are_found(void **state)
{
    (void)state;
    int first[] = {0, 1, 2, 3};
    const tdi_deal deal = {.processes = 3, .shards = 3, .first_shard = first};
    tdi_sum_order *order;
    tdi_reduction *r;
    assert_int_equal(tdi_sum_order_create(&deal, &order, NULL), TD_OK);
    assert_int_equal(tdi_reduction_create(order, &deal, &collectives[1], &r, NULL), TD_OK);
    for (int s = 0; s < r->count; s++) {
        uint64_t offset = (uint64_t)r->slices[s].offset, size = (uint64_t)r->slices[s].size;
        assert_ptr_equal(tdi_reduction_find(r, offset, size), &r->slices[s]);
        assert_null(tdi_reduction_find(r, offset, size + 1));
        assert_null(tdi_reduction_find(r, offset + 1, size));
    }
    assert_null(tdi_reduction_find(r, UINT64_MAX, 1));
    tdi_reduction_free(r);
    tdi_sum_order_free(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(processes_have_the_bits_of_one),
                                       cmocka_unit_test(no_more_is_sent_than_in_a_ring),
                                       cmocka_unit_test(only_slices_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
