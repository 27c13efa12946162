/* deep.c - models of many layers: saved, loaded with little stack, refused when they are too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <tandem/tandem.h>

#include "files/scratch.h"
#include "support/sanitized.h"

enum { LAYERS = 1500, STACK = (SANITIZED ? 4096 : 256) * 1024, TOO_MANY = 4100 };

static td_model *deep(td_context *context, int layers)
{
    td_tensor *x = td_input(context, TD_SHAPE(2)), *y = x;
    for (int i = 0; i < layers; i++)
        y = i % 3 == 2 ? td_add(TD_TENSORS(y, x)) : td_dense(y, 2, .activation = TD_TANH);
    return td_model_create(x, y, .seed = 1);
}

static void predict(td_model *model, float *y)
{
    const float x[] = {0.5f, -0.25f};
    assert_int_equal(td_predict_on_batch(model, 1, x, y), TD_OK);
}

static void *load(void *y)
{
    td_context *context = td_context_create(NULL);
    td_model *model = td_load(context, scratch_path("deep.keras"));
    if (model)
        predict(model, y);
    td_context_free(context);
    return model ? y : NULL;
}

static void many_layers_load_with_little_stack(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = deep(context, LAYERS);
    float expected[2], seen[2] = {0};
    predict(model, expected);
    assert_int_equal(td_save(model, scratch_path("deep.keras")), TD_OK);
    pthread_attr_t attributes;
    pthread_t thread;
    void *loaded;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, load, seen), 0);
    assert_int_equal(pthread_join(thread, &loaded), 0);
    pthread_attr_destroy(&attributes);
    assert_non_null(loaded);
    assert_memory_equal(seen, expected, sizeof seen);
    td_context_free(context);
}

static void what_could_not_be_loaded_is_not_made(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    assert_null(deep(context, TOO_MANY));
    assert_non_null(strstr(td_error(context), "calls of layers; at most 4096 are possible"));
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_layers_load_with_little_stack),
                                       cmocka_unit_test(what_could_not_be_loaded_is_not_made)};
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
