/* fuzz_backup.c - any bytes as a backup of a small run: resumed or refused, never a crash. The seed backup.npz is this
 * run's, after 7 of its batches. */
#define _GNU_SOURCE
#include <string.h>
#include <tandem/tandem.h>

#include "support/memory_file.h"
#include "train/backup/run_contents.h"
#include "tune/tuning_cache_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static td_model *make_model(td_context *context)
{
    td_tensor *x = td_input(context, TD_SHAPE(3));
    td_model *model =
        td_model_create(x, td_dense(td_batch_normalization(td_dense(x, 2)), 2), .name = "tiny", .seed = 1);
    td_compile(model, .optimizer = td_adam(), .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
               .strategy = td_mirrored("cpu:0"));
    return model;
}

static void resume(td_state *state)
{
    td_context *context = td_context_create(NULL);
    tdi_error error = {0};
    td_callback *callbacks[] = {td_early_stopping(.restore_best_weights = TD_YES),
                                td_reduce_lr_on_plateau(.monitor = "loss"), NULL};
    td_training training = {.model = make_model(context), .callbacks = callbacks};
    if (tdi_run_restore(state, &training, &(tdi_run){.batch = 4, .steps = 5}, &error) == TD_OK)
        tdi_run_visit_callbacks(state, &training);
    td_callback_free(callbacks[0]);
    td_callback_free(callbacks[1]);
    td_context_free(context);
}

/* Whose run it was; every kind of value differs from something. */
static void compare_facts(const json_t *facts)
{
    tdi_error error = {0};
    json_t *here =
        json_loads("{\"model\": {\"config\": {\"layers\": [{\"config\": {\"name\": \"a\", \"units\": 2}}, 7]}},"
                   "\"optimizer\": {\"class_name\": \"SGD\"}, \"metrics\": [\"accuracy\", 1], \"shards\": \"0\"}",
                   0, NULL);
    tdi_facts_compare(facts, here, "folder", &error);
    tdi_facts_compare(here, facts, "folder", &error);
    json_decref(here);
}

static void import_tuning_cache(const json_t *json)
{
    tdi_error error = {0};
    tdi_tuning_cache *choices = tdi_tuning_cache_create();
    tdi_tuning_cache_import(choices, json, &error);
    tdi_tuning_cache_free(choices);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[MEMORY_PATH];
    td_state state;
    tdi_error error = {0};
    int fd = memory_file(bytes, size, path);
    if (tdi_state_read(&state, path, &error) == TD_OK) {
        compare_facts(json_object_get(state.root, "facts"));
        resume(&state);
        if (state.tuned)
            import_tuning_cache(state.tuned);
        tdi_state_release(&state);
    }
    close(fd);
    return 0;
}
