/* lone_plan.c - makes, runs and frees plans without a model. */
#include "support/lone_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "ops/ops.h"
#include "passes/passes.h"
#include "profile/explain.h"
#include "support/devices.h"

lone_plan lone_plan_create(tdi_graph *graph, int64_t rows, int threads)
{
    return lone_plan_create_shared(graph, rows, threads, threads);
}

lone_plan lone_plan_create_shared(tdi_graph *graph, int64_t rows, int threads, int sharing)
{
    tdi_error error = {0};
    lone_plan p = {.graph = graph, .rows = rows, .threads = threads};
    tdi_collectives collectives = {0};
    assert_true(threads <= LONE_PLAN_THREADS);
    p.device = test_device_open();
    assert_int_equal(tdi_schedule_make(graph, &p.schedule, &collectives, &error), TD_OK);
    assert_int_equal(collectives.count, 0);
    tdi_plan_spec spec = {.graph = graph,
                          .schedule = &p.schedule,
                          .device = p.device,
                          .rows = rows,
                          .replicas = 1,
                          .threads = threads,
                          .sharing = sharing};
    assert_int_equal(tdi_plan_create(&spec, &p.plan, &error), TD_OK);
    return p;
}

void lone_plan_free(lone_plan *p)
{
    tdi_plan_free(p->plan);
    tdi_vec_free(&p->schedule);
    p->device->close(p->device);
}

char *lone_plan_explain(const lone_plan *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    tdi_explain_plan(p->plan, out);
    fclose(out);
    return text;
}

void lone_plan_run(const lone_plan *p, const float *const *inputs, int n_inputs, float *values, size_t count)
{
    tdi_error error = {0};
    tdi_communicator *communicator;
    tdi_collectives none = {0};
    tdi_group_spec group = {.workers = 1, .threads = p->threads, .collectives = &none};
    tdi_device *device = p->device;
    tdi_plan *plan = p->plan;
    tdi_control control[LONE_PLAN_THREADS];
    tdi_shard shard[LONE_PLAN_THREADS];
    char *scratch[LONE_PLAN_THREADS], *activations = device->allocate(device, tdi_plan_activation_bytes(plan) + 1);
    assert_non_null(activations);
    for (int thread = 0; thread < p->threads; thread++) {
        control[thread] = (tdi_control){.rows = p->rows, .step = 5, .seed = 11};
        tdi_control_reckon(&control[thread], p->graph);
        shard[thread] = (tdi_shard){.shards = 1, .group_count = 1};
        scratch[thread] = device->allocate(device, tdi_plan_scratch_bytes(plan) + 1);
        assert_non_null(scratch[thread]);
    }
    assert_int_equal(tdi_local_group_create(&group, &communicator, &error), TD_OK);
    tdi_plan_bind(plan,
                  &(tdi_bindings){.activations = activations, .scratch = scratch, .control = control, .shard = shard});
    for (int thread = 0; thread < p->threads; thread++)
        for (int slot = 0; slot < n_inputs; slot++)
            tdi_plan_set_input(plan, thread, slot, inputs[slot]);
    assert_int_equal(tdi_plans_run_in_turn(&plan, 1, 1, 1, &communicator), TD_OK);
    memcpy(values, tdi_plan_output(plan, 0), count * sizeof *values);
    communicator->release(communicator);
    device->release(device, activations);
    for (int thread = 0; thread < p->threads; thread++)
        device->release(device, scratch[thread]);
}

tdi_node *lone_plan_output(tdi_graph *graph, tdi_node *node)
{
    tdi_node *home = tdi_place_output(graph, node, TDI_HOME_OUTPUT, NULL, 0);
    assert_non_null(home);
    assert_true(tdi_push(&graph->outputs, home));
    return home;
}
