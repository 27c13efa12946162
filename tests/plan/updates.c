/* updates.c - what a gradient goes through from its sum over the shards to the update of its weight gives what the
 * references give. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "support/devices.h"
#include "support/evaluate.h"

enum { SHARDS = 2, ROWS = 3, WIDTH = 40009, SLOTS = 3, THREADS = 2 };

static float x[SHARDS * ROWS * WIDTH];

/* A weight, its slots, and the shards' gradients. */
typedef struct memory {
    float weight[WIDTH], slots[SLOTS][WIDTH], gradients[SHARDS][WIDTH];
} memory;

static void memory_init(memory *m)
{
    memset(m, 0, sizeof *m);
    for (int i = 0; i < WIDTH; i++) {
        m->weight[i] = (float)sin(0.7 * i);
        m->slots[0][i] = (float)cos(0.3 * i);
        m->slots[1][i] = 0.5f + (float)(i % 5);
    }
}

static tdi_graph *make_graph(tdi_variable *variable)
{
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->shards = SHARDS;
    *variable = (tdi_variable){
        .layer = "net", .name = "weight", .shape = {1, {WIDTH}}, .trainable = true, .l2 = 0.25f, .elements = WIDTH};
    tdi_node *weight = tdi_parameter(graph, variable), *slots[SLOTS];
    for (int i = 0; i < SLOTS; i++)
        slots[i] = tdi_slot(graph, variable, i);
    tdi_node *gradient =
        tdi_reduce(graph, TDI_SUM, tdi_input(graph, 0, &(td_shape){2, {TDI_BATCH, WIDTH}}, TD_FLOAT32), 1, false);
    gradient = tdi_reduce_scatter(graph, tdi_place_output(graph, gradient, TDI_HOME_GRADIENT, variable, 0), variable);
    gradient = tdi_regularize(graph, gradient, weight, 0, variable->l2);
    tdi_node *updated = tdi_adam(graph, weight, gradient, 2, slots,
                                 &(tdi_optimizer_attrs){.beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f});
    tdi_moving_average(graph, updated, slots[2], &(tdi_moving_average_attrs){0.75f, 0});
    assert_int_equal(tdi_graph_verify(graph, &graph->error), TD_OK);
    return graph;
}

static const tdi_control control = {.learning_rate = 0.01f, .rows = SHARDS * ROWS, .iteration = 2};

static void run_references(const tdi_graph *graph, memory *m)
{
    const void *inputs[] = {x};
    int64_t rows[SHARDS] = {ROWS, ROWS};
    float *slots[] = {m->slots[0], m->slots[1], m->slots[2]};
    evaluation *e = evaluation_create(&(evaluation_spec){.graph = graph,
                                                         .shards = SHARDS,
                                                         .rows = rows,
                                                         .control = control,
                                                         .inputs = inputs,
                                                         .variable_floats = WIDTH,
                                                         .values = m->weight,
                                                         .slots = slots});
    evaluation_run(e);
    evaluation_free(e);
}

typedef struct shard_plan {
    tdi_plan *plan;
    tdi_shard shard[THREADS];
    tdi_control control[THREADS];
    char *scratch[THREADS], *activations;
} shard_plan;

static void bind(shard_plan *p, tdi_device *device, int index, int threads, memory *m, float *const *gradients,
                 char *exchange)
{
    float *slots[] = {m->slots[0], m->slots[1], m->slots[2]};
    for (int thread = 0; thread < threads; thread++) {
        p->control[thread] = control;
        p->shard[thread] = (tdi_shard){
            .index = index, .shards = SHARDS, .group_count = SHARDS, .first_row = index * ROWS, .gradients = gradients};
        p->scratch[thread] = device->allocate(device, tdi_plan_scratch_bytes(p->plan) + 1);
        assert_non_null(p->scratch[thread]);
    }
    p->activations = device->allocate(device, tdi_plan_activation_bytes(p->plan) + 1);
    assert_non_null(p->activations);
    tdi_plan_bind(p->plan, &(tdi_bindings){.activations = p->activations,
                                           .scratch = p->scratch,
                                           .values = m->weight,
                                           .slots = slots,
                                           .gradients = m->gradients[index],
                                           .reduced = m->gradients[0],
                                           .exchange = exchange,
                                           .control = p->control,
                                           .shard = p->shard});
    for (int thread = 0; thread < threads; thread++)
        tdi_plan_set_input(p->plan, thread, 0, x + index * ROWS * WIDTH);
}

/* One replica computes both shards. */
static void run_plans(tdi_graph *graph, int threads, memory *m)
{
    tdi_error error = {0};
    tdi_device *device = test_device_open();
    tdi_schedule schedule = {0};
    tdi_communicator *communicator;
    shard_plan shards[SHARDS] = {{0}};
    tdi_plan *plans[SHARDS];
    float *gradients[SHARDS] = {m->gradients[0], m->gradients[1]};
    char exchange[64];
    tdi_collectives collectives = {0};
    tdi_group_spec group = {.workers = 1, .threads = threads, .collectives = &collectives};
    assert_int_equal(tdi_schedule_make(graph, &schedule, &collectives, &error), TD_OK);
    for (int i = 0; i < SHARDS; i++) {
        tdi_plan_spec spec = {.graph = graph,
                              .schedule = &schedule,
                              .device = device,
                              .rows = ROWS,
                              .shard = i,
                              .replicas = 1,
                              .threads = threads};
        assert_int_equal(tdi_plan_create(&spec, &shards[i].plan, &error), TD_OK);
        bind(&shards[i], device, i, threads, m, gradients, exchange);
        for (int thread = 0; thread < threads; thread++)
            tdi_control_reckon(&shards[i].control[thread], graph);
        plans[i] = shards[i].plan;
    }
    assert_int_equal(tdi_local_group_create(&group, &communicator, &error), TD_OK);
    assert_int_equal(tdi_plans_run_in_turn(plans, SHARDS, 1, 1, &communicator), TD_OK);
    communicator->release(communicator);
    for (int i = 0; i < SHARDS; i++) {
        tdi_plan_free(plans[i]);
        device->release(device, shards[i].activations);
        for (int thread = 0; thread < threads; thread++)
            device->release(device, shards[i].scratch[thread]);
    }
    tdi_vec_free(&schedule);
    tdi_vec_free(&collectives);
    device->close(device);
}

static void compare(const float *seen, const float *expected)
{
    for (int i = 0; i < WIDTH; i++)
        if (fabsf(seen[i] - expected[i]) > 1e-6f * fmaxf(1, fabsf(expected[i])))
            fail_msg("element %d is %.9g, not %.9g", i, (double)seen[i], (double)expected[i]);
}

static void an_update_is_fused(void **state)
{
    (void)state;
    static memory expected, one, two;
    tdi_variable variable;
    tdi_graph *graph = make_graph(&variable);
    memory_init(&expected);
    memory_init(&one);
    memory_init(&two);
    run_references(graph, &expected);
    run_plans(graph, 1, &one);
    run_plans(graph, THREADS, &two);
    compare(one.weight, expected.weight);
    for (int i = 0; i < SLOTS; i++)
        compare(one.slots[i], expected.slots[i]);
    assert_memory_equal(one.weight, two.weight, sizeof one.weight);
    assert_memory_equal(one.slots, two.slots, sizeof one.slots);
    tdi_graph_free(graph);
}

int main(void)
{
    for (int i = 0; i < SHARDS * ROWS * WIDTH; i++)
        x[i] = (float)sin(0.37 * i);
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_update_is_fused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
