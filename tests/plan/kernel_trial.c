/* kernel_trial.c - memory that runs out while kernels are timed, at each buffer in turn: the plan is made all the same
 * or says so, and nobody writes behind what there was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "support/devices.h"
#include "support/lone_plan.h"

enum { CHANNELS = 96, GUARD = 64, MOST_BUFFERS = 64, WORKERS = 2, NAN_BYTE = 0xff };

static struct {
    char *memory;
    size_t size;
} buffers[MOST_BUFFERS];
static long asked, fails_at;

/* With a guard behind its end. */
static void *allocate(tdi_device *device, size_t size)
{
    (void)device;
    int at = 0;
    if (asked++ == fails_at)
        return NULL;
    while (buffers[at].memory)
        assert_true(++at < MOST_BUFFERS);
    buffers[at].memory = tdi_buffer_create(size + GUARD);
    buffers[at].size = size;
    assert_non_null(buffers[at].memory);
    memset(buffers[at].memory, 0, size);
    memset(buffers[at].memory + size, NAN_BYTE, GUARD);
    return buffers[at].memory;
}

static void release(tdi_device *device, void *buffer)
{
    (void)device;
    int at = 0;
    if (!buffer)
        return;
    while (buffers[at].memory != buffer)
        assert_true(++at < MOST_BUFFERS);
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal((unsigned char)buffers[at].memory[buffers[at].size + i], NAN_BYTE);
    tdi_buffer_free(buffer);
    buffers[at].memory = NULL;
}

static tdi_graph *convolution(tdi_variable *filter)
{
    tdi_graph *graph = tdi_graph_create();
    assert_non_null(graph);
    graph->shards = 1;
    tdi_conv2d_attrs attrs = {
        .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1, .padding = TD_SAME};
    tdi_node *x = tdi_input(graph, 0, &(td_shape){4, {TDI_BATCH, 8, 8, CHANNELS}}, TD_FLOAT32);
    lone_plan_output(graph, tdi_conv2d(graph, x, tdi_parameter(graph, filter), &attrs));
    return graph;
}

/* Workers may then differ in whether they have a packed-weight cache. */
static void any_buffer_may_be_missing(void **state)
{
    (void)state;
    tdi_variable filter = {.layer = "conv",
                           .name = "kernel",
                           .shape = {4, {3, 3, CHANNELS, CHANNELS}},
                           .elements = (int64_t)9 * CHANNELS * CHANNELS};
    tdi_graph *graph = convolution(&filter);
    tdi_error error = {0};
    tdi_schedule schedule = {0};
    tdi_collectives collectives = {0};
    tdi_device *device = test_device_open();
    tdi_team *team;
    assert_int_equal(tdi_schedule_make(graph, &schedule, &collectives, &error), TD_OK);
    assert_int_equal(tdi_team_create(WORKERS, &team, &error), TD_OK);
    device->allocate = allocate;
    device->release = release;
    td_context *context = td_context_create(NULL);
    for (fails_at = 0, asked = 1; fails_at < asked; fails_at++) {
        tdi_chooser chooser = {tdi_tuning_cache_create(), context, team, WORKERS};
        tdi_plan_spec spec = {.graph = graph,
                              .schedule = &schedule,
                              .device = device,
                              .rows = 2,
                              .replicas = 1,
                              .threads = 1,
                              .most_packed = 1 << 30,
                              .chooser = &chooser};
        tdi_plan *plan = NULL;
        asked = 0;
        td_status status = tdi_plan_create(&spec, &plan, &error);
        assert_true(status == TD_OK || status == TD_NO_MEMORY);
        tdi_plan_free(plan);
        tdi_tuning_cache_free(chooser.cache);
        for (int i = 0; i < MOST_BUFFERS; i++)
            assert_null(buffers[i].memory);
    }
    assert_true(fails_at > 1);
    td_context_free(context);
    tdi_team_free(team);
    tdi_vec_free(&schedule);
    tdi_vec_free(&collectives);
    device->close(device);
    tdi_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_buffer_may_be_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
