/* shared_team.c - the threads belong to the context: its models' runtimes share them, however many come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>

#include "base/machine.h"
#include "runtime/runtime_struct.h"
#include "support/small.h"

enum { TIMES = 1000, ROWS = 4 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS];

static int threads_now(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(tasks);
    for (const struct dirent *task = readdir(tasks); task; task = readdir(tasks))
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static td_model *train(td_context *context)
{
    td_model *model = small_model(context, SMALL_MLP, td_sgd(), (td_strategy){0});
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, NULL), TD_OK);
    return model;
}

static void models_come_and_go(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *first = train(context);
    int threads = threads_now();
    const tdi_team *team = tdi_runtime_own(first)->team;
    for (int i = 0; i < TIMES; i++) {
        td_model *model = train(context);
        assert_ptr_equal(tdi_runtime_own(model)->team, team);
        td_model_free(model);
    }
    assert_int_equal(threads_now(), threads);
    assert_int_equal(td_train_on_batch(first, ROWS, x, y, NULL), TD_OK);
    td_context_free(context);
}

static void contexts_come_and_go(void **state)
{
    (void)state;
    int threads = threads_now();
    for (int i = 0; i < TIMES; i++) {
        td_context *context = td_context_create(NULL);
        train(context);
        td_context_free(context);
    }
    assert_int_equal(threads_now(), threads);
}

/* A model with more shards than another needs no more threads than the process has cores. */
static void the_largest_need_counts(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    int before = threads_now();
    for (int shards = 1; shards <= 8; shards *= 2) {
        td_model *model = small_model(context, SMALL_CNN, td_sgd(), (td_strategy){.shards = shards});
        assert_int_equal(td_train_on_batch(model, ROWS, x, y, NULL), TD_OK);
        int used = tdi_runtime_own(model)->division.workers * tdi_runtime_own(model)->division.threads;
        assert_true(threads_now() - before + 1 >= used && used <= tdi_cores_allowed());
    }
    assert_true(threads_now() - before < tdi_cores_allowed() + 1);
    td_context_free(context);
    assert_int_equal(threads_now(), before);
}

int main(void)
{
    small_data(ROWS, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_come_and_go),
        cmocka_unit_test(contexts_come_and_go),
        cmocka_unit_test(the_largest_need_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
