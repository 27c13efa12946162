/* long_lives.c - a context that lives long: what is created, loaded, compiled, opened and attached in it many
 * times, and freed, gives its memory back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <tandem/tandem.h>

#include "files/scratch.h"
#include "support/sanitized.h"
#include "support/small.h"

enum { SAMPLES = 8, WARM = 20, TIMES = 200, FEW_TIMES = 20 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];
static td_context *context;
static td_model *model; /* one that stays */
static char model_path[256], csv_path[256], log_path[256];

static td_data *data(void)
{
    return td_arrays(SAMPLES, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
}

static void load(void)
{
    td_model_free(td_load(context, model_path));
}

static void load_what_is_none(void)
{
    assert_null(td_load(context, csv_path));
    td_clear_error(context);
}

static void load_and_train(void)
{
    td_model *loaded = td_load(context, model_path);
    assert_int_equal(td_train_on_batch(loaded, SAMPLES, x, y, NULL), TD_OK);
    td_model_free(loaded);
}

static void load_and_predict(void)
{
    float to[SAMPLES * SMALL_CLASSES];
    td_model *loaded = td_load(context, model_path);
    assert_int_equal(td_predict_on_batch(loaded, SAMPLES, x, to), TD_OK);
    td_model_free(loaded);
}

static void make_new(void)
{
    td_model_free(td_new(context, "mlp", 1));
    td_model_free(td_new_lstm(context, 5, 2, 1, 1));
}

static void make_large(void)
{
    td_model_free(td_new_resnet20(context, TD_NO, 1));
    td_model_free(td_new_char_lstm(context, 20, 10, 1));
}

static void compile(void)
{
    td_compile(model,
               .optimizer = td_sgd(.schedule = td_piecewise_constant_decay(3, .boundaries = (int64_t[]){3, 5},
                                                                           .values = (float[]){0.1f, 0.2f, 0.3f})),
               .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
               .metrics = TD_METRICS(td_metric_sparse_top_k_categorical_accuracy(.name = "named", .k = 2)));
}

static void compile_and_train(void)
{
    compile();
    assert_int_equal(td_train_on_batch(model, SAMPLES, x, y, NULL), TD_OK);
}

static void fit(void)
{
    td_fit(model, data(), .validation = data(), .epochs = 2, .batch_size = 3,
           .callbacks = TD_CALLBACKS(td_csv_logger(log_path), td_early_stopping(.patience = 5)));
}

static void evaluate(void)
{
    td_confusion *confusion = NULL;
    td_logs logs;
    td_evaluate(model, data(), .logs = &logs, .confusion = &confusion);
    td_confusion_free(confusion);
}

static void open_files(void)
{
    td_data_release(td_open(csv_path));
    td_data_release(td_cache(data()));
    td_data_release(td_open(model_path)); /* which is no data */
    td_clear_error(context);
}

static void make_callbacks(void)
{
    td_callback_free(td_csv_logger(log_path));
    td_callback_free(td_early_stopping(.patience = 5));
}

static void find_rate(void)
{
    td_rate_test *test = NULL;
    td_find_learning_rate(model, data(), &test, .batch_size = 3);
    td_rate_test_free(test);
}

static void save(void)
{
    td_save(model, model_path);
}

static void live(void)
{
    td_context *other = td_context_create(NULL);
    td_model *of_other = td_new(other, "mlp", 1);
    assert_non_null(of_other);
    td_context_free(other);
}

static size_t in_use(void)
{
    struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

static void repeat(const char *what, void (*action)(void), int times)
{
    for (int i = 0; i < WARM; i++)
        action();
    size_t before = in_use();
    for (int i = 0; i < times; i++)
        action();
    double grown = ((double)in_use() - (double)before) / times;
    assert_string_equal(td_error(context), "");
    if (grown >= 16)
        fail_msg("%s: %.0f bytes stay each time", what, grown);
}

static void memory_is_given_back(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("skipped: allocators belong to the sanitizer\n");
        skip();
    }
    repeat("td_load", load, TIMES);
    repeat("td_load of what is none", load_what_is_none, TIMES);
    repeat("td_load, td_train_on_batch", load_and_train, TIMES);
    repeat("td_load, td_predict_on_batch", load_and_predict, TIMES);
    repeat("td_new", make_new, FEW_TIMES);
    repeat("td_new_resnet20, td_new_char_lstm", make_large, FEW_TIMES);
    repeat("td_compile", compile, TIMES);
    repeat("td_compile, td_train_on_batch", compile_and_train, TIMES);
    repeat("td_fit", fit, FEW_TIMES);
    repeat("td_evaluate", evaluate, TIMES);
    repeat("td_open", open_files, TIMES);
    repeat("callbacks", make_callbacks, TIMES);
    repeat("td_find_learning_rate", find_rate, FEW_TIMES);
    repeat("td_save", save, FEW_TIMES);
    repeat("td_context_create", live, FEW_TIMES);
}

static int begin(void **state)
{
    if (scratch_create(state) != 0)
        return -1;
    small_data(SAMPLES, x, y);
    context = td_context_create(NULL);
    snprintf(model_path, sizeof model_path, "%s", scratch_path("long.keras"));
    snprintf(csv_path, sizeof csv_path, "%s", scratch_path("long.csv"));
    snprintf(log_path, sizeof log_path, "%s", scratch_path("long_log.csv"));
    FILE *csv = fopen(csv_path, "w");
    fputs("a,b,c\n1,2,0\n3,4,1\n", csv);
    fclose(csv);
    model = small_model(context, SMALL_CNN, td_adam(), (td_strategy){0});
    return td_save(model, model_path) == TD_OK ? 0 : 1;
}

static int end(void **state)
{
    td_context_free(context);
    return scratch_remove(state);
}

/* Counts of memory in use are to be exact: threads keep no freed pieces for themselves. */
static void begin_anew_without_caches(char **arguments)
{
    if (getenv("GLIBC_TUNABLES"))
        return;
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
    execv("/proc/self/exe", arguments);
}

int main(int count, char **arguments)
{
    (void)count;
    begin_anew_without_caches(arguments);
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_given_back)};
    return cmocka_run_group_tests(tests, begin, end);
}
